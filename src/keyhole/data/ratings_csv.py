"""Reads the cells of a CSV file of ratings: delimiter, decimal mark, header, and person ids.

An ambiguous file is refused with a sentence that names the option which decides.
"""

import csv
import io
import math
import re
import shlex
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from keyhole.base.errors import InvalidInput, check_choice, shown
from keyhole.data.long_ratings import Row, long_columns, pivoted
from keyhole.data.packed import decoded, read_unpacked

_DELIMITERS = {",": "a comma", ";": "a semicolon", "\t": "a tab"}
_MISSING = ("", "na", "n/a", "#n/a", "nan", "null", "none")
_PANDAS_INDEX = "Unnamed: 0"
_PEOPLE = re.compile(
    r"#|no|index|row|name|(.*[ _-])?(id|user|person|people|customer|rater|respondent)|userid",
    re.IGNORECASE,
)
_IDS = re.compile(
    r"(.*[ _-])?(id|uid|guid|uuid)|(user|person|customer|rater|respondent)(id|name)?",
    re.IGNORECASE,
)
"""Names of columns that hardly are items, wherever they stand."""
_DECIMAL_COMMA = re.compile(r"[+-]?\d*,\d+", re.ASCII)
_DECIMAL_POINT = re.compile(r"[+-]?\d*\.\d+", re.ASCII)
_THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2},\d{3}", re.ASCII)
LARGEST_RATING = 2.0**53
"""Beyond it not even whole numbers differ by 1."""
_FEWEST_NUMBERED = 3  # that two people rated an item 1 and 2 is no wonder


@dataclass(frozen=True)
class Layout:
    """The format of a file; None: detect it."""

    delimiter: str | None
    decimal: str | None
    header: bool | None
    index: bool | None
    ids: str | None = None
    long: bool | None = None

    def __post_init__(self) -> None:
        if self.delimiter is not None and not (
            isinstance(self.delimiter, str) and len(self.delimiter) == 1 and self.delimiter != '"'
        ):
            raise InvalidInput(
                f"`delimiter` must be the one character between cells, got {self.delimiter!r}."
            )
        if self.decimal is not None:
            check_choice(self.decimal, "`decimal`", (".", ","))
        if self.ids is not None and self.index is not None:
            raise InvalidInput(
                f"At most one of `ids` and `index` can be given, got ids={shown(self.ids)} and "
                f"index={self.index!r}."
            )
        if self.long and (self.ids is not None or self.index is not None):
            raise InvalidInput("`ids` and `index` must be omitted with long=True.")
        for name in ("header", "index", "long"):
            if getattr(self, name) not in (None, True, False):
                raise InvalidInput(
                    f"`{name}` must be true, false or not given, got {getattr(self, name)!r}."
                )

    def number(self, field: str) -> float | None:
        """Return the number in a field, NaN if it is missing, None if there is none to use."""
        if field.lower() in _MISSING:
            return math.nan
        if self.decimal == ",":
            field = field.replace(".", "_").replace(",", ".")
        try:
            value = float(field) if field.isascii() and "_" not in field else math.inf
        except ValueError:
            return None
        return value if abs(value) <= LARGEST_RATING else None

    def is_number(self, field: str) -> bool:
        """Return whether there is a number in a field, and it is not missing."""
        value = self.number(field)
        return value is not None and not math.isnan(value)


class Fields(NamedTuple):
    """The names of items, and the cells of every person with where they come from."""

    names: tuple[str, ...]
    rows: list[Row]
    has_index: bool
    layout: Layout
    """The format of the file, detected or given."""


def _choose(option: str) -> str:
    return f"`{option}` decides (keyhole play: --set world.{option}=true or false)"


def read_fields(path: Path, layout: Layout) -> Fields:
    """Read the fields of a file, or raise with a sentence."""
    text = decoded(path, read_unpacked(path, "CSV"), "CSV")
    delimiter = layout.delimiter or _delimiter(path, text)
    rows = list(_rows(path, text, delimiter))
    if not rows:
        raise InvalidInput(f"{path} must start with a header that names the items.")
    decimal = layout.decimal or _decimal(path, rows, delimiter)
    layout = replace(layout, delimiter=delimiter, decimal=decimal)
    line, first = rows[0]
    has_header = layout.header if layout.header is not None else _has_header(path, rows[0], layout)
    names = tuple(first) if has_header else tuple(str(place) for place in range(len(first)))
    rows = rows[1:] if has_header else rows
    for number, row in rows:
        if len(row) != len(names):
            raise InvalidInput(
                f"{path}, line {number}: a row must have {len(names)} cells, as many as line "
                f"{line}, got {len(row)}."
            )
    placed = [(f"line {number}", row) for number, row in rows]
    long = _long_columns(path, names if has_header else None, len(names), layout)
    if long is not None:
        items, people = pivoted(path, placed, long, layout.number)
        return Fields(items, people, False, replace(layout, long=True))
    column = [row[0] for _, row in rows]
    out: int | None = None
    if layout.ids is not None:
        out = _place_of_ids(path, layout.ids, names if has_header else ())
    elif layout.index or (
        layout.index is None
        and _has_index(path, names[0] if has_header else None, column, names, layout)
    ):
        out = 0
    if out is not None:
        # Without a header the items are numbered from 0, whether people have names or not.
        names = names[:out] + names[out + 1 :] if has_header else names[:-1]
        placed = [(where, row[:out] + row[out + 1 :]) for where, row in placed]
    _check_names(path, line, names)
    return Fields(names, placed, out is not None, replace(layout, long=False))


def _long_columns(
    path: Path, names: tuple[str, ...] | None, n_columns: int, layout: Layout
) -> tuple[int, int, int] | None:
    """Return the columns of user, item and rating of a long file, None for a wide one."""
    if layout.long is False or layout.ids is not None or layout.index is not None:
        return None
    found = None if names is None else long_columns(names)
    if found is None and layout.long:
        if n_columns != 3:
            raise InvalidInput(
                f"{path} must have the columns user, item and rating with long=True, got "
                f"{n_columns} columns."
            )
        return 0, 1, 2
    return found


def _place_of_ids(path: Path, ids: str, names: tuple[str, ...]) -> int:
    """Return where the column of people is that a user has named, or raise."""
    if not names:
        raise InvalidInput(f"`ids` needs a header that names the columns of {path}, got none.")
    check_choice(ids, f"`ids` of {path}", names)
    if names.count(ids) > 1:
        raise InvalidInput(f"`ids` of {path} must be one column, got {ids!r}, the name of several.")
    return names.index(ids)


def check_no_ids(path: Path, names: Sequence[str]) -> None:
    """Raise if an item is called what people are told apart by."""
    for name in names:
        if len(names) > 1 and _IDS.fullmatch(name):
            raise InvalidInput(
                f"{path}: the column {name!r} must be ratings of an item, and by its name it may "
                f"tell people apart: {_leave_out(name)}."
            )


def _leave_out(name: str) -> str:
    return (
        f"ids={name!r} leaves it out, index=False keeps it as an item (keyhole play: --ids "
        f"{shlex.quote(name)}, or --set world.index=false)"
    )


def _decimal(path: Path, rows: list[tuple[int, list[str]]], delimiter: str) -> str:
    """Return the decimal mark: a comma where numbers have one, and nothing speaks against it."""
    cells = [cell for _, row in rows for cell in row] if delimiter != "," else []
    commas = [cell for cell in cells if _DECIMAL_COMMA.fullmatch(cell)]
    if not commas:
        return "."
    point = next((cell for cell in cells if _DECIMAL_POINT.fullmatch(cell)), None)
    if point is not None:
        raise InvalidInput(
            f"{path} must have one decimal mark, got {commas[0]!r} and {point!r}: `decimal` "
            f"decides (keyhole play: --set world.decimal=,)."
        )
    if all(_THOUSANDS.fullmatch(cell) for cell in commas):
        raise InvalidInput(
            f"{path} must have one decimal mark, got {commas[0]!r}, which may be thousands or a "
            f"fraction: `decimal` decides (keyhole play: --set world.decimal=,)."
        )
    return ","


def _rows(path: Path, text: str, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Give the lines that are not blank, their fields stripped; any line end will do."""
    lines = io.StringIO(text, newline=None)
    reader = csv.reader(lines, delimiter=delimiter, skipinitialspace=True, strict=True)
    try:
        for row in reader:
            if row:
                yield reader.line_num, [field.strip() for field in row]
    except csv.Error as error:
        raise InvalidInput(
            f"{path}, line {reader.line_num}: cells must be readable as CSV: {error}."
        ) from None


def _delimiter(path: Path, text: str) -> str:
    """Return what separates the fields: all rows must have equally many of them."""
    first = next((line for line in text.splitlines() if line.strip()), "")
    found = [delimiter for delimiter in _DELIMITERS if delimiter in first]
    if len(found) > 1:
        found = [delimiter for delimiter in found if _is_even(path, text, delimiter)] or found
    if len(found) > 1:
        found = [sign for sign in found if _has_numbers(path, text, sign)] or found
    if len(found) > 1:
        names = " or ".join(_DELIMITERS[delimiter] for delimiter in found)
        raise InvalidInput(
            f"{path} must have one kind of separator between cells, got what may be {names}: "
            f"`delimiter` decides (keyhole play: --set 'world.delimiter=;')."
        )
    return found[0] if found else ","


def _is_even(path: Path, text: str, delimiter: str) -> bool:
    try:
        widths = {len(row) for _, row in _rows(path, text, delimiter)}
    except InvalidInput:
        return False
    return len(widths) == 1 and widths != {1}


def _has_numbers(path: Path, text: str, delimiter: str) -> bool:
    """Return whether all cells below the first row are numbers or missing, the first excepted."""
    marks = (".",) if delimiter == "," else (".", ",")
    layouts = [Layout(delimiter, mark, None, None) for mark in marks]
    rows = [row for _, row in _rows(path, text, delimiter)][1:]
    return all(
        any(layout.number(cell) is not None for layout in layouts)
        for row in rows
        for cell in row[1:]
    )


def _has_header(path: Path, row: tuple[int, list[str]], layout: Layout) -> bool:
    """Return True if no field of the first row is a number."""
    line, fields = row
    for field in fields:
        if layout.is_number(field):
            raise InvalidInput(
                f"{path}, line {line}: the first row must be a header that names the items, got "
                f"{field!r}, which may be a name or a rating: {_choose('header')}."
            )
    return True


def _has_index(
    path: Path, name: str | None, column: list[str], names: Sequence[str], layout: Layout
) -> bool:
    """Return whether the first column names the people and is no item."""
    if len(names) == 1:
        return False
    if name in ("", _PANDAS_INDEX):
        return True
    if len(set(column)) == len(column) > 1 and all(
        layout.number(field) is None for field in column
    ):
        return True
    why = "its name" if name is not None and _PEOPLE.fullmatch(name) else ""
    why = why or ("its numbers, one higher in every row" if _is_numbered(column) else "")
    if why:
        called = "the first column" if name is None else f"the first column, {name!r},"
        advice = _choose("index") if name is None else _leave_out(name)
        raise InvalidInput(
            f"{path}: {called} must be ratings of an item, and by {why} it may be a list of "
            f"people: {advice}."
        )
    return False


def _is_numbered(column: list[str]) -> bool:
    """Return whether a column counts the rows, from 0 or from 1."""
    if len(column) < _FEWEST_NUMBERED:
        return False
    return any(column == [str(first + k) for k in range(len(column))] for first in (0, 1))


def _check_names(path: Path, line: int, names: tuple[str, ...]) -> None:
    if not names:
        raise InvalidInput(f"{path}, line {line}: there must be at least one item.")
    if "" in names:
        raise InvalidInput(
            f"{path}, line {line}: every item must have a name, got none for item "
            f"{names.index('')} of 0 to {len(names) - 1}."
        )
    name, count = Counter(names).most_common(1)[0]
    if count > 1:
        raise InvalidInput(
            f"{path}, line {line}: items must have different names, got {name!r} {count} times."
        )
