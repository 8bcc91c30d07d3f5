"""Ridge regression of relevance on standardised features, one document at a time."""

import math
from typing import Annotated, Any, NamedTuple

import numpy as np

from keyhole.base.errors import check_number
from keyhole.base.limits import check_memory
from keyhole.contracts.arrays import Array, PerItem, Sorting
from keyhole.kernels.compiled import kernel, rare_kernel
from keyhole.kernels.vectors import chain, linear_scores
from keyhole.rankers.lists.standardised import StandardisedRanker

_SEEN, _SQUARES = 0, 1


class RidgeParams(NamedTuple):
    """How many documents are seen, the penalty of the weights, and how much to explore."""

    n_features: int
    k: int
    penalty: float
    width: float

    @property
    def n_columns(self) -> int:
        """How many weights there are: a constant stands beside the features."""
        return self.n_features + 1


_PerColumn = Annotated[Any, Array(("n_columns",))]


class RidgeState(NamedTuple):
    """The slopes, a root of the inverse covariance, and how wrong predictions were.

    The inverse covariance is ``root`` times its transpose, and so positive semi-definite whatever
    is rounded. ``errors`` are a count of documents and the sum of squared errors at first sight.
    """

    slopes: Any
    root: Any
    errors: Any


class RidgeWork(NamedTuple):
    """Scratch memory: that of lists, and what a step needs of the features' size."""

    rows: Annotated[Any, Array(("n_items", "n_columns"))]
    scores: PerItem
    keys: PerItem
    column: _PerColumn
    rounded: Annotated[Any, Array(("n_columns",), np.float32)]
    sort: Sorting
    turned: _PerColumn
    gain: _PerColumn


def ridge_init(params: Any, n_items: int, n_features: int) -> RidgeState:
    """Return the state of a regression that has seen nothing."""
    n_columns = n_features + 1
    return RidgeState(
        np.zeros(n_columns), np.eye(n_columns) / math.sqrt(params.penalty), np.zeros(2)
    )


@kernel
def deviation(errors: Any) -> float:
    """Return by how much predictions are wrong, as if one had been by 1 at the start."""
    return math.sqrt((errors[_SQUARES] + 1.0) / (errors[_SEEN] + 1.0))


@rare_kernel
def turn(state: Any, row: Any, work: Any) -> float:
    """Fill ``work.turned`` with the transposed root times a row; return its squared length.

    That is the variance of the score of a document with these features, by that of the noise.
    """
    chain(state.root, row, work.turned)
    length = 0.0
    for column in range(row.shape[0]):
        length += work.turned[column] * work.turned[column]
    return length


@rare_kernel
def _learn_one(state: Any, row: Any, relevance: float, work: Any) -> None:
    """Take a step of recursive least squares: Potter's update of a square root."""
    variance = turn(state, row, work)
    linear_scores(state.root, work.turned, work.rounded, state.root[:0], work.gain)
    error = relevance
    for column in range(row.shape[0]):
        error -= state.slopes[column] * row[column]
    root = math.sqrt(1.0 + variance)
    share = 1.0 / (root * (1.0 + root))
    for column in range(row.shape[0]):
        gain = work.gain[column]
        state.slopes[column] += gain * error / (1.0 + variance)
        for other in range(row.shape[0]):
            state.root[column, other] -= share * gain * work.turned[other]
    state.errors[_SEEN] += 1.0
    state.errors[_SQUARES] += error * error


@kernel
def learn_seen(params: Any, state: Any, seen: Any, work: Any) -> None:
    """Regress the relevance of the documents that were seen on their features."""
    for position in range(min(params.k, seen.ranking.shape[0])):
        _learn_one(state, work.rows[seen.ranking[position]], seen.values[position], work)


class RidgeRanker(StandardisedRanker):
    """A ranker by ridge regression of what was seen."""

    def __init__(
        self,
        n_features: int,
        n_items: int,
        *,
        k: int = 1,
        width: float = 1.0,
        penalty: float = 1.0,
        seed: int = 0,
        run: int = 0,
    ) -> None:
        super().__init__(n_features, n_items, k, seed=seed, run=run)
        name = type(self).__name__
        check_memory(8.0 * (self.n_features + 1) ** 2, f"A covariance of {n_features} features")
        self.params = RidgeParams(
            self.n_features,
            self.k,
            check_number(penalty, f"`penalty` of {name}", above=0.0),
            check_number(width, f"`width` of {name}", at_least=0.0),
        )
