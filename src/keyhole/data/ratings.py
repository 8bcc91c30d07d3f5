"""Ratings of people by items, from CSV files to relevance."""

import csv
import gzip
import io
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from keyhole.errors import FloatArray, InvalidInput, check_choice, check_integer, check_number

MISSING_RULES = ("error", "drop")


@dataclass(frozen=True)
class RatingsTable:
    """Relevance of every item (column) for every person (row)."""

    values: FloatArray
    item_names: tuple[str, ...]
    n_dropped: int
    """People left out because a rating was missing."""


def _rows(path: Path) -> Iterator[tuple[int, list[str]]]:
    try:
        raw = path.read_bytes()
        text = (gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw).decode("utf-8-sig")
    except (OSError, EOFError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InvalidInput(f"{path} must be a readable CSV file: {reason}.") from None
    reader = csv.reader(io.StringIO(text))
    for row in reader:
        if row:
            yield reader.line_num, row


def _number(text: str, place: str) -> float:
    if not text.strip():
        return math.nan
    try:
        value = float(text)
    except ValueError:
        raise InvalidInput(f"{place} must be a number, got {text!r}.") from None
    if math.isinf(value):
        raise InvalidInput(f"{place} must be a finite number, got {text!r}.")
    return value


def read_ratings(
    path: Path | str,
    *,
    threshold: float | None = None,
    grades: int | None = None,
    n_chosen: int | None = None,
    missing: str = "error",
) -> RatingsTable:
    """Read a CSV file (plain or gzipped) of people by items; the header names the items.

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
        What to do about people with an empty cell: ``error`` or ``drop`` them.
    """
    path = Path(path)
    if sum(option is not None for option in (threshold, grades, n_chosen)) > 1:
        raise InvalidInput("At most one of `threshold`, `grades` and `n_chosen` can be given.")
    check_choice(missing, "`missing`", MISSING_RULES)
    rows = _rows(path)
    _, header = next(rows, (0, []))
    names = tuple(name.strip() for name in header)
    if not names:
        raise InvalidInput(f"{path} must start with a header that names the items.")
    values: list[list[float]] = []
    n_dropped = 0
    for line, row in rows:
        if len(row) != len(names):
            raise InvalidInput(
                f"{path}, line {line}: a row must have {len(names)} ratings, one per item of the "
                f"header, got {len(row)}."
            )
        numbers = [
            _number(text, f"{path}, line {line}, column {name!r}: a rating")
            for name, text in zip(names, row, strict=True)
        ]
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
    return RatingsTable(table, names, n_dropped)


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
