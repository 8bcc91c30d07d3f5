"""A list to be ranked, what was shown of it, and what was revealed."""

import json
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from keyhole.base.display import Described, Description, some_of
from keyhole.base.errors import (
    FloatArray,
    IntArray,
    InvalidInput,
    check_choice,
    check_integer,
    check_ranking,
    check_relevance,
    check_round,
    shown,
)
from keyhole.kernels.checking import all_finite, first_bad_value, is_ranking

_LARGEST_FLOAT = float(np.finfo(np.float64).max)

Item = str | int
"""What an item is called: a name, or its index where it has none."""


@dataclass(frozen=True, repr=False)
class Query(Described):
    """A list to be ranked.

    ``features`` is (n_items, n_features), read-only, or None for a fixed list; ``items`` names the
    items (ids of documents, say), or is None where they are known by their indices.

    Examples
    --------
    >>> Query(2, [[0.5, 1.0], [np.inf, 0.0]])
    Traceback (most recent call last):
    ...
    keyhole.base.errors.InvalidInput: `features` of a query must be finite, got inf in row 1.
    """

    n_items: int
    features: FloatArray | None = None
    items: tuple[Item, ...] | None = None

    def __post_init__(self) -> None:
        check_integer(self.n_items, "`n_items` of a query", at_least=1)
        if self.features is not None:
            object.__setattr__(self, "features", check_features(self.features, self.n_items))
        if self.items is not None:
            object.__setattr__(self, "items", check_names(self.items, self.n_items))

    def _described(self) -> Description:
        rows = [("items", f"{self.n_items:,}")]
        if self.features is not None:
            rows.append(("features", f"{self.features.shape[1]:,}"))
        if self.items is not None:
            rows.append(("names", some_of(self.items, 5)))
        return Description("Query", rows)


def check_features(features: Any, n_items: int) -> FloatArray:
    """Return the features of a list as contiguous floats, 32 bits wide if they were, or raise."""
    try:
        given = np.asarray(features)
    except (TypeError, ValueError, OverflowError):
        raise InvalidInput("`features` of a query must be rows of numbers.") from None
    if given.dtype.kind not in "biuf" or given.ndim != 2 or len(given) != n_items:
        raise InvalidInput(
            f"`features` of a query must be {n_items} rows of numbers, got {given.dtype} of shape "
            f"{given.shape}."
        )
    kind = np.float32 if given.dtype == np.float32 else np.float64
    matrix: FloatArray = read_only(np.ascontiguousarray(given, dtype=kind))
    if not all_finite(matrix.reshape(-1)):
        row, column = np.argwhere(~np.isfinite(matrix))[0]
        raise InvalidInput(
            f"`features` of a query must be finite, got {matrix[row, column]} in row {row}."
        )
    return matrix


def read_only(array: NDArray[Any]) -> NDArray[Any]:
    """Return an array as one that cannot be written, of the same memory.

    Features come to rankers only like this: kernels are compiled for arrays that can be written
    and for arrays that cannot as for two types, which nobody should wait for.
    """
    view = array.view()
    view.flags.writeable = False
    return view


def check_names(names: Any, n_items: int) -> tuple[Item, ...]:
    """Return the names of the items of a list, or raise."""
    try:
        found = tuple(names)
    except TypeError:
        found = ()
    if len(found) != n_items or not all(isinstance(name, str | int) for name in found):
        raise InvalidInput(f"`items` of a query must be {n_items} names, got {shown(names)}.")
    return found


def no_note() -> FloatArray:
    """Return the note of a ranker that takes none."""
    return np.empty(0)


@dataclass(frozen=True, repr=False)
class Impression(Described):
    """What was shown, and all that ``update`` may remember of ``rank``.

    ``ranking[p]`` is the index of the item at position ``p``. ``propensity`` is the marginal
    probability with which each revealed item was put where it was seen, or NaN
    where the ranker does not compute it (no learner then divides by it). ``note`` is what else the
    ranker must know of how the list came about, in numbers of its own.
    """

    round: int
    query: Query
    ranking: IntArray
    explored: bool
    propensity: float
    note: FloatArray = field(default_factory=no_note)

    @property
    def items(self) -> list[Item]:
        """What was shown by name, best first."""
        names = self.query.items
        return [index if names is None else names[index] for index in self.ranking.tolist()]

    def _described(self) -> Description:
        rows = [
            ("round", str(self.round)),
            ("shows", some_of(self.items, 5)),
            ("explored", "yes" if self.explored else "no"),
        ]
        if not np.isnan(self.propensity):
            rows.append(("propensity", f"{self.propensity:.4g}"))
        return Description("Impression", rows)

    def to_json(self) -> str:
        """Return the impression as text, to be kept until its feedback comes."""
        features = self.query.features
        record = {
            "round": self.round,
            "ranking": self.ranking.tolist(),
            "explored": self.explored,
            "propensity": None if np.isnan(self.propensity) else self.propensity,
            "note": self.note.tolist(),
            "items": self.query.items,
            "features": None if features is None else features.tolist(),
            "dtype": None if features is None else features.dtype.name,
        }
        return json.dumps(record)

    @classmethod
    def from_json(cls, text: str | bytes) -> Self:
        """Return the impression that :meth:`to_json` wrote, or raise.

        Examples
        --------
        >>> from keyhole import RTopK
        >>> shown = RTopK(3, horizon=100, items=["ant", "bee", "cat"]).rank()
        >>> Impression.from_json(shown.to_json()).items == shown.items
        True
        """
        try:
            given = json.loads(text)
            n_items, features = len(given["ranking"]), given["features"]
            if features is not None:
                features = np.array(features, dtype=check_choice(
                    given["dtype"], "dtype", ("float32", "float64")
                ))  # fmt: skip
            propensity = np.nan if given["propensity"] is None else float(given["propensity"])
            if not isinstance(given["explored"], bool):
                raise ValueError(f"explored must be true or false, got {given['explored']!r}.")
            return cls(
                check_round(given["round"]),
                Query(n_items, features, given["items"]),
                check_ranking(given["ranking"], n_items, "ranking of the impression"),
                given["explored"],
                propensity,
                np.array(given.get("note", []), dtype=np.float64),
            )
        except (KeyError, TypeError, ValueError, OverflowError, RecursionError) as error:
            raise InvalidInput(
                f"An impression must be text that Impression.to_json wrote: {error}"
            ) from None


def check_note(note: Any, size: int) -> FloatArray:
    """Return the note of an impression, or raise unless it can be one of the ranker's."""
    is_array = isinstance(note, np.ndarray) and note.dtype == np.float64
    if not is_array or note.shape != (size,) or (size and not all_finite(note)):
        raise InvalidInput(
            f"note of the impression must be the {size} finite numbers that the ranker wrote, got "
            f"{shown(note)}."
        )
    return note if note.flags.carray else note.copy()


def shown_in(impression: Impression) -> IntArray:
    """Return the ranking of an impression, or raise unless all of it can be learnt from."""
    if not isinstance(impression, Impression) or not isinstance(impression.query, Query):
        raise InvalidInput(
            f"impression must be what `rank` returned, or Impression.from_json of its text, got "
            f"{shown(impression)}."
        )
    check_round(impression.round)
    if not isinstance(impression.explored, bool | np.bool_):
        raise InvalidInput(
            f"explored of the impression must be true or false, got {shown(impression.explored)}."
        )
    propensity = impression.propensity
    try:
        number = float(propensity) if isinstance(propensity, float | int | np.floating) else 0.0
    except OverflowError:  # a whole number may be larger than any float
        number = 0.0
    if not (0.0 < number < np.inf or np.isnan(number)):
        raise InvalidInput(
            f"propensity of the impression must be a positive number, or NaN where it is not "
            f"known, got {shown(propensity)}."
        )
    n_items, ranking = impression.query.n_items, impression.ranking
    is_plain = isinstance(ranking, np.ndarray) and ranking.dtype == np.int64 and ranking.ndim == 1
    fits = is_plain and len(ranking) == n_items and ranking.flags.carray
    if fits and is_ranking(ranking, np.zeros(n_items, np.bool_)):
        return ranking
    ranking = check_ranking(ranking, n_items, "ranking of the impression")
    if ranking.ndim != 1:
        raise InvalidInput(
            f"ranking of the impression must be one list, got shape {ranking.shape}."
        )
    return ranking.copy()


@dataclass(frozen=True, repr=False)
class Feedback(Described):
    """Relevance by position of the shown ranking; NaN where it was not revealed.

    There may be fewer values than positions: what is not there was not revealed.
    """

    values: FloatArray

    def _described(self) -> Description:
        revealed = ["hidden" if np.isnan(value) else f"{value:g}" for value in self.values[:6]]
        more = f" … ({len(self.values):,} positions)" if len(self.values) > 6 else ""
        return Description("Feedback", [("values", ", ".join(revealed) + more)])

    @classmethod
    def top(cls, *values: float) -> Self:
        """Return what was revealed of the first positions, best position first.

        Examples
        --------
        >>> Feedback.top(1, 0).values.tolist()
        [1.0, 0.0]
        """
        return cls(check_relevance(values, "revealed relevance"))


def values_by_position(
    feedback: "Feedback | ArrayLike", n_items: int, largest: float = np.inf
) -> FloatArray:
    """Return what a feedback reveals of each position, NaN where nothing, or raise.

    A number is the relevance of the first position, numbers are those of the first ones. None may
    be above the largest.
    """
    given = feedback.values if isinstance(feedback, Feedback) else feedback
    try:
        numbers = np.asarray(given)
        if numbers.dtype.kind == "c":
            raise TypeError("complex numbers have no order")
        values = np.atleast_1d(np.asarray(numbers, dtype=np.float64))
    except (TypeError, ValueError, OverflowError):
        raise InvalidInput(
            f"feedback must be a Feedback, or the relevance of the first positions as a number or "
            f"a list of numbers, got {shown(feedback)}."
        ) from None
    if values.ndim != 1 or not 1 <= len(values) <= n_items:
        raise InvalidInput(
            f"values of the feedback must have at most one entry per position ({n_items}; NaN "
            f"where hidden), got shape {values.shape}."
        )
    where = first_bad_value(values, min(largest, _LARGEST_FLOAT))
    if where >= 0:
        raise InvalidInput(_too_much(float(values[where]), where, largest))
    by_position = np.full(n_items, np.nan)
    by_position[: len(values)] = values
    return by_position


def _too_much(value: float, where: int, largest: float) -> str:
    """Return why a revealed relevance cannot be learnt from."""
    if 0.0 <= value < np.inf and largest < np.inf:
        return (
            f"revealed relevance must be at most max_grade={largest:g}, got {value:g} at index "
            f"{where}: the ranker must be made for the largest relevance that can occur."
        )
    return f"revealed relevance must be finite and not negative, got {value} at index {where}."


def no_features(n_items: int) -> FloatArray:
    """Return the feature matrix of a list without features."""
    return read_only(np.empty((n_items, 0)))
