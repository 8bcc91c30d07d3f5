"""Features standardised within their list: a scorer of them works on data of any scale."""

import math
from collections.abc import Callable
from typing import Any

from keyhole.base.errors import check_integer
from keyhole.contracts.arrays import ranker_kernel
from keyhole.contracts.rankers import RankerKernel
from keyhole.kernels.compiled import kernel, rare_kernel
from keyhole.kernels.sorting import sort_descending
from keyhole.kernels.vectors import linear_scores
from keyhole.rankers.lists.base import EVERYTHING, ContextualRanker

_SMALLEST_SPREAD = 1e-12
"""Deviations that are less, by the largest number of their column, are rounding."""


@rare_kernel
def standardise(features: Any, rows: Any) -> None:
    """Fill ``rows`` with features less their mean over the list, by their deviation over it.

    A feature that all documents have alike becomes 0. Columns of ``rows`` beyond those of the
    features become 1.
    """
    n_items, n_features = features.shape
    for column in range(n_features):
        largest = total = squares = 0.0
        for row in range(n_items):
            largest = max(largest, abs(features[row, column]))
        scale = largest if largest > 0.0 else 1.0
        for row in range(n_items):  # numbers of at most 1 can be squared whatever their scale was
            rows[row, column] = features[row, column] / scale
            total += rows[row, column]
        mean = total / n_items
        for row in range(n_items):
            rows[row, column] -= mean
            squares += rows[row, column] * rows[row, column]
        deviation = math.sqrt(squares / n_items)
        factor = 1.0 / deviation if deviation > _SMALLEST_SPREAD else 0.0
        for row in range(n_items):
            rows[row, column] *= factor
    for column in range(n_features, rows.shape[1]):
        for row in range(n_items):
            rows[row, column] = 1.0


@kernel
def score_standardised(params: Any, state: Any, features: Any, upcoming: Any, work: Any) -> None:
    """Standardise a list, and score its documents."""
    n_items = features.shape[0]
    rows = work.rows[:n_items]
    standardise(features, rows)
    linear_scores(rows, state.slopes, work.rounded, rows[:0], work.scores[:n_items])


@rare_kernel
def sort_documents(keys: Any, out: Any, sort: Any) -> None:
    """Sort the documents of a list by keys, of which there may be more than documents."""
    sort_descending(keys[: out.shape[0]], out, sort)


@kernel
def rank_by_scores(params: Any, state: Any, features: Any, out: Any, work: Any) -> None:
    """Sort the documents of a list by the scores they have been given."""
    sort_documents(work.scores, out, work.sort)


def by_scores(
    state: Any, work: Any, rank: Callable[..., tuple[bool, float]], update: Callable[..., None]
) -> RankerKernel:
    """Return the kernel of a ranker of standardised lists.

    Its scratch memory has ``rows``, the list standardised, one for each document; ``scores`` and
    ``keys``, of which there is one for each document; ``column``, with room for a number of each
    feature; ``rounded`` and ``sort``.
    """
    return ranker_kernel(state, work, rank, update, rank_by_scores, score_standardised)


class StandardisedRanker(ContextualRanker):
    """A ranker of lists by a linear score of features that are standardised within each list.

    Its slopes are no weights of the features as they are given, so that it has no model to save.
    """

    def __init__(
        self, n_features: int, n_items: int, k: int, *, seed: int = 0, run: int = 0
    ) -> None:
        super().__init__(n_features, n_items, seed=seed, run=run)
        self.k = check_integer(k, f"`k` of {type(self).__name__}", at_least=1, at_most=EVERYTHING)

    @property
    def depth(self) -> int:
        return self.k
