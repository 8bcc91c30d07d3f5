"""The fields of a CSV file of people by items: what separates them, and which are ratings.

Whatever can be meant in two ways is refused with a sentence that names the option which decides.
"""

import csv
import io
import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from keyhole.data.packed import decoded, read_unpacked
from keyhole.errors import InvalidInput, check_choice

_DELIMITERS = {",": "a comma", ";": "a semicolon", "\t": "a tab"}
_MISSING = ("", "na", "n/a", "#n/a", "nan", "null", "none")
_PANDAS_INDEX = "Unnamed: 0"
_PEOPLE = re.compile(
    r"#|no|index|row|name|(.*[ _-])?(id|user|person|people|customer|rater|respondent)|userid",
    re.IGNORECASE,
)
LARGEST_RATING = 2.0**53
"""Beyond it not even whole numbers differ by 1."""
_FEWEST_NUMBERED = 3  # that two people rated an item 1 and 2 is no wonder


@dataclass(frozen=True)
class Layout:
    """How a file is written; None is found out."""

    delimiter: str | None
    decimal: str
    header: bool | None
    index: bool | None

    def __post_init__(self) -> None:
        if self.delimiter is not None and not (
            isinstance(self.delimiter, str) and len(self.delimiter) == 1 and self.delimiter != '"'
        ):
            raise InvalidInput(
                f"`delimiter` must be the one character between cells, got {self.delimiter!r}."
            )
        check_choice(self.decimal, "`decimal`", (".", ","))
        for name in ("header", "index"):
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
    """The names of items, and the fields of every person with the number of their line."""

    names: tuple[str, ...]
    rows: list[tuple[int, list[str]]]
    has_index: bool


def _choose(option: str) -> str:
    return f"`{option}` decides (keyhole play: --set world.{option}=true or false)"


def read_fields(path: Path, layout: Layout) -> Fields:
    """Read the fields of a file, or raise with a sentence."""
    text = decoded(path, read_unpacked(path, "CSV"), "CSV")
    delimiter = layout.delimiter or _delimiter(path, text)
    rows = list(_rows(path, text, delimiter))
    if not rows:
        raise InvalidInput(f"{path} must start with a header that names the items.")
    line, first = rows[0]
    has_header = layout.header if layout.header is not None else _has_header(path, rows[0], layout)
    if has_header:
        names, rows = tuple(first), rows[1:]
    else:
        names = tuple(str(number) for number in range(1, len(first) + 1))
    for number, row in rows:
        if len(row) != len(names):
            raise InvalidInput(
                f"{path}, line {number}: a row must have {len(names)} cells, as many as line "
                f"{line}, got {len(row)}."
            )
    column = [row[0] for _, row in rows]
    has_index = layout.index
    if has_index is None:
        has_index = _has_index(path, names[0] if has_header else None, column, names, layout)
    if has_index:
        # Without a header the items are numbered from 1, whether people have names or not.
        names = names[1:] if has_header else names[:-1]
        rows = [(number, row[1:]) for number, row in rows]
    _check_names(path, line, names)
    return Fields(names, rows, has_index)


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
        raise InvalidInput(
            f"{path}: {called} must be ratings of an item, and by {why} it may be a list of "
            f"people: {_choose('index')}."
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
            f"{names.index('') + 1} of {len(names)}."
        )
    name, count = Counter(names).most_common(1)[0]
    if count > 1:
        raise InvalidInput(
            f"{path}, line {line}: items must have different names, got {name!r} {count} times."
        )
