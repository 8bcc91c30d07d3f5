"""A list to be ranked, what was shown of it, and what was revealed."""

import json
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from keyhole.errors import (
    FloatArray,
    IntArray,
    InvalidInput,
    check_choice,
    check_ranking,
    check_relevance,
    check_round,
)

Item = str | int
"""What an item is called: a name, or its index where it has none."""


@dataclass(frozen=True)
class Query:
    """A list to be ranked.

    ``features`` is (n_items, n_features), or None for a fixed list; ``items`` names the items
    (ids of documents, say), or is None where they are known by their indices.
    """

    n_items: int
    features: FloatArray | None = None
    items: tuple[Item, ...] | None = None


@dataclass(frozen=True)
class Impression:
    """What was shown, and all that ``update`` may remember of ``rank``.

    ``ranking[p]`` is the index of the item at position ``p``. ``propensity`` is the marginal
    probability with which each revealed item was put where it was seen, or NaN
    where the ranker does not compute it (no learner then divides by it).
    """

    round: int
    query: Query
    ranking: IntArray
    explored: bool
    propensity: float

    @property
    def items(self) -> list[Item]:
        """What was shown by name, best first."""
        names = self.query.items
        return [index if names is None else names[index] for index in self.ranking.tolist()]

    def to_json(self) -> str:
        """Return the impression as text, to be kept until its feedback comes."""
        features = self.query.features
        record = {
            "round": self.round,
            "ranking": self.ranking.tolist(),
            "explored": self.explored,
            "propensity": None if np.isnan(self.propensity) else self.propensity,
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
            items = None if given["items"] is None else tuple(given["items"])
            if items is not None and (
                len(items) != n_items or not all(isinstance(name, str | int) for name in items)
            ):
                raise ValueError(f"items must be {n_items} names, got {given['items']!r}.")
            propensity = np.nan if given["propensity"] is None else float(given["propensity"])
            ranking = check_ranking(given["ranking"], n_items, "ranking of the impression")
            query = Query(n_items, features, items)
            round = check_round(given["round"])
            return cls(round, query, ranking, bool(given["explored"]), propensity)
        except (KeyError, TypeError, ValueError) as error:
            raise InvalidInput(
                f"An impression must be text that Impression.to_json wrote: {error}"
            ) from None


@dataclass(frozen=True)
class Feedback:
    """Relevance by position of the shown ranking; NaN where it was not revealed.

    There may be fewer values than positions: what is not there was not revealed.
    """

    values: FloatArray

    @classmethod
    def top(cls, *values: float) -> Self:
        """Return what was revealed of the first positions, best position first.

        Examples
        --------
        >>> Feedback.top(1, 0).values.tolist()
        [1.0, 0.0]
        """
        return cls(check_relevance(values, "revealed relevance"))


def values_by_position(feedback: "Feedback | ArrayLike", n_items: int) -> FloatArray:
    """Return what a feedback reveals of each position, NaN where nothing, or raise.

    A number is the relevance of the first position, numbers are those of the first ones.
    """
    given = feedback.values if isinstance(feedback, Feedback) else feedback
    try:
        values = np.atleast_1d(np.asarray(given, dtype=np.float64))
    except (TypeError, ValueError):
        raise InvalidInput(
            f"feedback must be a Feedback, or the relevance of the first positions as a number or "
            f"a list of numbers, got {feedback!r}."
        ) from None
    if values.ndim != 1 or not 1 <= len(values) <= n_items:
        raise InvalidInput(
            f"values of the feedback must have at most one entry per position ({n_items}; NaN "
            f"where hidden), got shape {values.shape}."
        )
    by_position = np.full(n_items, np.nan)
    by_position[: len(values)] = values
    check_relevance(by_position[~np.isnan(by_position)], "revealed relevance")
    return by_position


def no_features(n_items: int) -> FloatArray:
    """Return the feature matrix of a list without features."""
    return np.empty((n_items, 0))
