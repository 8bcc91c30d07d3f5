"""The mean loss of a linear scorer over many lists, and its gradient, compiled."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from keyhole.base.errors import FloatArray, InvalidInput
from keyhole.kernels.compiled import assemble
from keyhole.kernels.vectors import chain, linear_scores
from keyhole.surrogates import surrogate as named_surrogate
from keyhole.surrogates.base import Surrogate, SurrogateWork, surrogate_work
from keyhole.worlds.queries import Queries


class _Room(NamedTuple):
    """Scratch memory."""

    scores: Any
    slopes: Any
    part: Any
    rounded: Any
    surrogate: SurrogateWork


def _over_lists(value: Any, gradient: Any) -> Callable[..., float]:
    def total(
        params: Any, features: Any, relevance: Any, starts: Any, weights: Any, out: Any, room: Any
    ) -> float:
        loss = 0.0
        for column in range(out.shape[0]):
            out[column] = 0.0
        for query in range(starts.shape[0] - 1):
            first, end = starts[query], starts[query + 1]
            documents, grades = features[first:end], relevance[first:end]
            scores, slopes = room.scores[: end - first], room.slopes[: end - first]
            linear_scores(documents, weights, room.rounded, documents[:0], scores)
            loss += value(params, scores, grades, room.surrogate)
            gradient(params, scores, grades, slopes, room.surrogate)
            chain(documents, slopes, room.part)
            for column in range(out.shape[0]):
                out[column] += room.part[column]
        return loss

    return total


class Risk:
    """Mean loss over lists, as a function of the weights of a linear scorer.

    Parameters
    ----------
    surrogate
        The loss of a list, or its name.
    features, relevance, starts
        See :class:`~keyhole.worlds.queries.Queries`.

    Examples
    --------
    >>> risk = Risk("squared", [[1.0], [2.0]], [0, 1], [0, 2])
    >>> value, gradient = risk(np.array([1.0]))
    >>> value, gradient.tolist()
    (2.0, [6.0])
    """

    def __init__(
        self,
        surrogate: str | Surrogate,
        features: ArrayLike,
        relevance: ArrayLike,
        starts: ArrayLike,
    ) -> None:
        self.surrogate = named_surrogate(surrogate)
        lists = Queries(features, relevance, starts)
        if lists.max_grade > self.surrogate.max_grade:
            raise InvalidInput(
                f"`relevance` must be at most {self.surrogate.max_grade:g} for "
                f"{self.surrogate.name}, got {lists.max_grade}."
            )
        kind = np.float32 if lists.features.dtype == np.float32 else np.float64
        self.features = np.ascontiguousarray(lists.features, dtype=kind)
        self.relevance, self.starts = lists.params.relevance, lists.params.starts
        self.n_queries, self.n_features = lists.n_queries, lists.n_features
        self.n_items, self.max_grade = lists.n_items, lists.max_grade
        self._total = assemble(_over_lists, *self.surrogate.kernel)
        self._params = self.surrogate.params(self.n_items)
        self._room = _Room(
            np.empty(self.n_items),
            np.empty(self.n_items),
            np.empty(self.n_features),
            np.empty(self.n_features, np.float32),
            surrogate_work(self.n_items),
        )

    def with_surrogate(self, surrogate: Surrogate) -> "Risk":
        """Return the mean of another loss over the same lists."""
        return Risk(surrogate, self.features, self.relevance, self.starts)

    def __call__(self, weights: FloatArray) -> tuple[float, FloatArray]:
        """Return the mean loss at some weights, and its gradient (or a subgradient)."""
        gradient = np.empty(self.n_features)
        loss = self._total(
            self._params, self.features, self.relevance, self.starts,
            np.ascontiguousarray(weights, dtype=np.float64), gradient, self._room,
        )  # fmt: skip
        return loss / self.n_queries, gradient / self.n_queries
