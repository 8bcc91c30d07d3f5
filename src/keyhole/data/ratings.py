"""Ratings by people of items, read from wide or long files and turned into relevance."""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from keyhole.base.display import Described, Description, some_of
from keyhole.base.errors import (
    FloatArray,
    InvalidInput,
    check_array,
    check_choice,
    check_integer,
    check_number,
    shown,
)
from keyhole.base.files import reading_arrays, shortened
from keyhole.data.ratings_csv import LARGEST_RATING, Layout, check_no_ids, read_fields

MISSING_RULES = ("error", "drop")


@dataclass(frozen=True, repr=False)
class RatingsTable(Described):
    """Relevance of every item (column) for every person (row)."""

    values: FloatArray
    item_names: tuple[str, ...]
    n_dropped: int
    """People left out because a rating was missing."""
    has_index: bool = False
    """Whether a column of the file had person ids; it is left out."""
    is_long: bool = False
    """Whether the rows of the file were user, item and rating."""

    def _described(self) -> Description:
        rows = [("people", f"{len(self.values):,}"), ("items", some_of(self.item_names))]
        if self.is_long:
            rows.append(("read from", "rows of user, item and rating"))
        if self.n_dropped:
            rows.append(("left out", f"{self.n_dropped:,} people without all ratings"))
        return Description("RatingsTable", rows)


def read_ratings(
    path: Path | str,
    *,
    threshold: float | None = None,
    grades: int | None = None,
    n_chosen: int | None = None,
    scale: Sequence[float] | None = None,
    columns: Sequence[str] | None = None,
    missing: str = "error",
    delimiter: str | None = None,
    decimal: str | None = None,
    header: bool | None = None,
    index: bool | None = None,
    ids: str | None = None,
    long: bool | None = None,
) -> RatingsTable:
    """Read ratings: a CSV file, plain or compressed, or one array of a .npz file.

    A *wide* CSV file has a row per person and a column per item, named by its header. A *long* one
    has a row per rating, with user, item and rating. The items of an array are called 0, 1, 2, …

    Parameters
    ----------
    path
        A CSV file, or a file of NumPy's whose only array has two dimensions. Its ratings are
        missing where they are NaN, or where whole numbers are the least that their type holds.
    threshold
        A rating of at least this is relevance 1, any other 0.
    grades
        Cut the span of all ratings into so many bands of equal width, grades 0 to ``grades - 1``.
    n_chosen
        Each person chooses this many items, their highest rated (ties: the leftmost).
    scale
        The lowest and the highest rating there can be, which become 0 and 1.
        Without any of the four the ratings themselves are the relevance.
    columns
        The names of the items to read, in this order; by default all of them.
    missing
        What to do about people with a missing rating (an empty field, NA, NaN, null and the like;
        in a long file, an item without a row): ``error`` or ``drop`` them.
    delimiter
        The character between fields; by default the comma, semicolon or tab by which all rows
        have the same number of fields, numbers in all columns but the first.
    decimal
        ``.`` or ``,`` within numbers; by default a comma where it is not between fields and
        numbers have one, and is refused if that may be thousands or others have a point.
    header
        Whether the first row names the items, which are else called 0, 1, 2, …; by default it
        must be names, and one with a number among them is refused.
    index
        Whether the first column names the people and is left out; by default it does if it has no
        name or has different texts, and is refused if its name or numbers leave it in doubt.
        False keeps every column as an item, whatever it is called.
    ids
        The name of the column of person ids, which is left out.
    long
        Whether rows are user, item and rating. By default they are if the header has exactly these
        columns by name (such as ``userId,movieId,rating``, with or without a timestamp). True
        also takes three columns with other names, or without a header, in this order.
    """
    path = Path(path)
    if sum(option is not None for option in (threshold, grades, n_chosen, scale)) > 1:
        raise InvalidInput(
            "At most one of `threshold`, `grades`, `n_chosen` and `scale` can be given."
        )
    check_choice(missing, "`missing`", MISSING_RULES)
    layout = Layout(delimiter, decimal, header, index, ids, long)
    names, numbers, places, has_index, is_long = _read(path, layout, columns)
    if columns is not None:
        chosen = _columns(path, columns, names)
        names, numbers = tuple(names[place] for place in chosen), numbers[:, chosen]
    gaps = np.isnan(numbers)
    if gaps.any() and missing == "error":
        row, column = np.argwhere(gaps)[0]
        raise InvalidInput(
            f"{path}, {places[row]}, {'item' if is_long else 'column'} {names[column]!r}: a rating "
            f"is missing; missing='drop' leaves such people out."
        )
    values = numbers[~gaps.any(axis=1)]
    if not values.size:
        raise InvalidInput(f"{path} must have at least one complete row of ratings.")
    table = _relevance(values, threshold, grades, n_chosen, scale)
    negative = np.argwhere(table < 0)
    if len(negative):
        column = names[int(negative[0, 1])]
        raise InvalidInput(
            f"{path}, column {column!r}: a rating is negative ({table[tuple(negative[0])]:g}); use "
            f"a threshold or grades to turn ratings into relevance."
        )
    return RatingsTable(table, names, len(numbers) - len(values), has_index, is_long)


def _read(
    path: Path, layout: Layout, columns: Sequence[str] | None
) -> tuple[tuple[str, ...], FloatArray, Sequence[str], bool, bool]:
    """Return item names, ratings, the place of each row, and whether it has ids and is long."""
    if path.suffix == ".npz":
        if layout.ids is not None or layout.long is not None:
            raise InvalidInput(f"`ids` and `long` are for CSV files, got {path}.")
        numbers = _array(path)
        names = tuple(str(number) for number in range(numbers.shape[1]))
        return names, numbers, [f"line {i}" for i in range(1, len(numbers) + 1)], False, False
    names, rows, has_index, found = read_fields(path, layout)
    if layout.index is None and columns is None and not found.long:
        check_no_ids(path, names)
    if not rows:
        raise InvalidInput(f"{path} must have at least one complete row of ratings.")
    values = [_numbers(path, where, names, row, found) for where, row in rows]
    return names, np.array(values), [where for where, _ in rows], has_index, bool(found.long)


def _array(path: Path) -> FloatArray:
    """Return the ratings of a file of arrays, NaN where one is missing."""
    with reading_arrays(path, "one array of ratings, people by items") as arrays:
        if len(arrays) != 1:
            raise InvalidInput(f"it holds {len(arrays)} arrays")
        (array,) = arrays.values()
        if array.ndim != 2 or 0 in array.shape or array.dtype.kind not in "iuf":
            raise InvalidInput(f"its array has the shape {array.shape} and holds {array.dtype}")
        numbers = array.astype(np.float64)
        if array.dtype.kind == "i":
            numbers[array == np.iinfo(array.dtype).min] = np.nan
        if bool((np.abs(numbers) > LARGEST_RATING).any()):
            raise InvalidInput(f"a rating is more than {LARGEST_RATING:.0f}")
        return numbers


def _columns(path: Path, columns: Sequence[str], names: tuple[str, ...]) -> list[int]:
    """Return where the items of some names are, or raise."""
    if not isinstance(columns, list | tuple) or not columns:
        raise InvalidInput(f"`columns` must be a list of names of items, got {shown(columns)}.")
    found = [names.index(check_choice(name, f"`columns` of {path}", names)) for name in columns]
    if len(set(found)) < len(found):
        raise InvalidInput(f"`columns` must be different items, got {shown(columns)}.")
    return found


def _numbers(
    path: Path, where: str, names: tuple[str, ...], row: list[str], layout: Layout
) -> list[float]:
    """Return the ratings of a person, NaN where one is missing."""
    numbers = []
    for name, field in zip(names, row, strict=True):
        number = layout.number(field)
        if number is None:
            raise InvalidInput(
                f"{path}, {where}, column {name!r}: a rating must be a number, got "
                f"{shortened(repr(field))}{_hint(name, field, names)}."
            )
        numbers.append(number)
    return numbers


def _hint(name: str, field: str, names: tuple[str, ...]) -> str:
    """Return what may help with a field that is no number."""
    if _is_too_large(field):
        return f", which is more than {LARGEST_RATING:.0f}"
    if len(names) == 1:
        return "; `delimiter` says what is between cells"
    if "," in field:
        return "; decimal=',' reads decimal commas (keyhole play: --set world.decimal=,)"
    advice = f"; ids={name!r} leaves the column out (keyhole play: --ids {shlex.quote(name)})"
    long = "; long=True reads rows of user, item and rating (--set world.long=true)"
    return advice + long * (len(names) in (2, 3))


def _is_too_large(field: str) -> bool:
    try:
        return abs(float(field)) > LARGEST_RATING
    except ValueError:
        return False


def _relevance(
    ratings: FloatArray,
    threshold: float | None,
    grades: int | None,
    n_chosen: int | None,
    scale: Sequence[float] | None,
) -> FloatArray:
    if threshold is not None:
        return (ratings >= check_number(threshold, "`threshold`")).astype(np.float64)
    if grades is not None:
        grades = check_integer(grades, "`grades`", at_least=2, at_most=51)
        low, high = float(ratings.min()), float(ratings.max())
        if high == low:
            raise InvalidInput("`grades` needs ratings that differ, got one value only.")
        share = (ratings - low) / (high - low)
        return np.minimum(np.floor(share * grades), grades - 1)
    if n_chosen is not None:
        n_chosen = check_integer(
            n_chosen, "`n_chosen`", at_least=1, at_most=ratings.shape[1], bound="n_items="
        )
        order = np.argsort(-ratings, axis=1, kind="stable")[:, :n_chosen]
        chosen = np.zeros_like(ratings)
        np.put_along_axis(chosen, order, 1.0, axis=1)
        return chosen
    return ratings if scale is None else _scaled(ratings, scale)


def _scaled(ratings: FloatArray, scale: Sequence[float]) -> FloatArray:
    """Return ratings of which the lowest and the highest that there can be are 0 and 1."""
    ends = check_array(scale, "`scale`", n_dims=1)
    if ends.shape != (2,) or not -np.inf < ends[0] < ends[1] < np.inf:
        raise InvalidInput(
            f"`scale` must be the lowest and the highest rating, got {shown(scale)}."
        )
    low, high = float(ratings.min()), float(ratings.max())
    if low < ends[0] or high > ends[1]:
        raise InvalidInput(
            f"`scale` must hold all ratings, from {low:g} to {high:g}, got {shown(scale)}."
        )
    return (ratings - ends[0]) / (ends[1] - ends[0])
