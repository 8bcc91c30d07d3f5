"""Ratings of people by items, from CSV files to relevance."""

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from keyhole.data.ratings_csv import LARGEST_RATING, Layout, read_fields
from keyhole.errors import FloatArray, InvalidInput, check_choice, check_integer, check_number
from keyhole.files import shortened

MISSING_RULES = ("error", "drop")


@dataclass(frozen=True)
class RatingsTable:
    """Relevance of every item (column) for every person (row)."""

    values: FloatArray
    item_names: tuple[str, ...]
    n_dropped: int
    """People left out because a rating was missing."""
    has_index: bool = False
    """Whether the first column of the file named the people; it is no item and left out."""


def read_ratings(
    path: Path | str,
    *,
    threshold: float | None = None,
    grades: int | None = None,
    n_chosen: int | None = None,
    missing: str = "error",
    delimiter: str | None = None,
    decimal: str = ".",
    header: bool | None = None,
    index: bool | None = None,
) -> RatingsTable:
    """Read a CSV file, plain or compressed, of people by items; the header names the items.

    Parameters
    ----------
    threshold
        A rating of at least this is relevance 1, any other 0.
    grades
        Cut the span of all ratings into bands of equal width, grades 0 to ``grades``.
    n_chosen
        Each person chooses this many items, their highest rated (ties: the leftmost).
        Without any of the three the ratings themselves are the relevance.
    missing
        What to do about people with a rating that is missing (an empty field, NA, NaN, null and
        the like): ``error`` or ``drop`` them.
    delimiter
        The character between fields; by default the comma, semicolon or tab by which all rows
        have the same number of fields.
    decimal
        ``.`` or ``,`` within numbers.
    header
        Whether the first row names the items, which are else called 1, 2, 3, …; by default it
        must be names, and one with a number among them is refused.
    index
        Whether the first column names the people and is left out; by default it does if it has no
        name or has different texts, and is refused if its name or numbers leave it in doubt.
    """
    path = Path(path)
    if sum(option is not None for option in (threshold, grades, n_chosen)) > 1:
        raise InvalidInput("At most one of `threshold`, `grades` and `n_chosen` can be given.")
    check_choice(missing, "`missing`", MISSING_RULES)
    layout = Layout(delimiter, decimal, header, index)
    names, rows, has_index = read_fields(path, layout)
    values: list[list[float]] = []
    n_dropped = 0
    for line, row in rows:
        numbers = _numbers(path, line, names, row, layout)
        gaps = [name for name, number in zip(names, numbers, strict=True) if math.isnan(number)]
        if gaps and missing == "error":
            raise InvalidInput(
                f"{path}, line {line}, column {gaps[0]!r}: a rating is missing; missing='drop' "
                f"leaves such people out."
            )
        if gaps:
            n_dropped += 1
        else:
            values.append(numbers)
    if not values:
        raise InvalidInput(f"{path} must have at least one complete row of ratings.")
    table = _relevance(np.array(values), threshold, grades, n_chosen)
    negative = np.argwhere(table < 0)
    if len(negative):
        column = names[int(negative[0, 1])]
        raise InvalidInput(
            f"{path}, column {column!r}: a rating is negative ({table[tuple(negative[0])]:g}); use "
            f"a threshold or grades to turn ratings into relevance."
        )
    return RatingsTable(table, names, n_dropped, has_index)


def _numbers(
    path: Path, line: int, names: tuple[str, ...], row: list[str], layout: Layout
) -> list[float]:
    """Return the ratings of a person, NaN where one is missing."""
    numbers = []
    for name, field in zip(names, row, strict=True):
        number = layout.number(field)
        if number is None:
            raise InvalidInput(
                f"{path}, line {line}, column {name!r}: a rating must be a number, got "
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
    if name == names[0]:
        return "; index=True leaves the first column out (keyhole play: --set world.index=true)"
    return ""


def _is_too_large(field: str) -> bool:
    try:
        return abs(float(field)) > LARGEST_RATING
    except ValueError:
        return False


def _relevance(
    ratings: FloatArray, threshold: float | None, grades: int | None, n_chosen: int | None
) -> FloatArray:
    if threshold is not None:
        return (ratings >= check_number(threshold, "`threshold`")).astype(np.float64)
    if grades is not None:
        grades = check_integer(grades, "`grades`", at_least=1, at_most=50)
        low, high = float(ratings.min()), float(ratings.max())
        if high == low:
            raise InvalidInput("`grades` needs ratings that differ, got one value only.")
        share = (ratings - low) / (high - low)
        return np.minimum(np.floor(share * (grades + 1)), grades)
    if n_chosen is not None:
        n_chosen = check_integer(
            n_chosen, "`n_chosen`", at_least=1, at_most=ratings.shape[1], bound="n_items="
        )
        order = np.argsort(-ratings, axis=1, kind="stable")[:, :n_chosen]
        chosen = np.zeros_like(ratings)
        np.put_along_axis(chosen, order, 1.0, axis=1)
        return chosen
    return ratings
