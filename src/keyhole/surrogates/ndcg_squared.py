"""S9: squared loss against the gains over the best DCG."""

import math
from typing import Any, ClassVar, NamedTuple

from keyhole.base.errors import check_integer
from keyhole.kernels.compiled import kernel
from keyhole.kernels.sorting import sort_descending
from keyhole.measures.linear import fill_exponential, log_discounts
from keyhole.surrogates.base import Surrogate, SurrogateKernel


class DiscountParams(NamedTuple):
    """Discount of each position."""

    discounts: Any


@kernel
def _fill_target(params: Any, relevance: Any, work: Any) -> None:
    """Fill ``work.gains`` with the gains over the best DCG, or zeros if nothing is relevant."""
    n_items = relevance.shape[0]
    target, order = work.gains[:n_items], work.order[:n_items]
    fill_exponential(relevance, target)
    sort_descending(target, order, work.sort)
    norm = 0.0
    for position in range(n_items):
        norm += target[order[position]] * params.discounts[position]
    if norm > 0.0:
        for item in range(n_items):
            target[item] /= norm


@kernel
def _value(params: Any, scores: Any, relevance: Any, work: Any) -> float:
    _fill_target(params, relevance, work)
    total = 0.0
    for item in range(scores.shape[0]):
        gap = scores[item] - work.gains[item]
        total += gap * gap
    return total


@kernel
def _gradient(params: Any, scores: Any, relevance: Any, out: Any, work: Any) -> None:
    _fill_target(params, relevance, work)
    for item in range(scores.shape[0]):
        out[item] = 2.0 * (scores[item] - work.gains[item])


class NDCGSquared(Surrogate):
    """Sum over items of (s - G(r) / Z)^2, Z the DCG of the best ranking.

    Notes
    -----
    Section 3.3.6 of [T16]: its risk is least at the mean of G(r) / Z, the order that NDCG is
    best at, so it is calibrated for NDCG. Dividing by Z couples all relevances: no top-k
    feedback with k < m shows enough for that (docs/learnability.md). A list without a relevant
    item has targets 0. Not Lipschitz unless scores are bounded; targets are at most 1.

    Examples
    --------
    >>> NDCGSquared().value([1.0, 0.0], [1, 0])
    0.0
    >>> NDCGSquared().gradient([0.0, 1.0], [1, 0]).tolist()
    [-2.0, 2.0]
    """

    name: ClassVar[str] = "ndcg_squared"
    kernel: ClassVar[SurrogateKernel] = SurrogateKernel(_value, _gradient)

    @property
    def max_grade(self) -> float:
        return 1000.0

    def params(self, max_items: int) -> DiscountParams:
        return DiscountParams(log_discounts(check_integer(max_items, "`max_items`", at_least=1)))

    def _lipschitz(self, n_items: int, max_grade: float, max_score: float) -> float | None:
        bound = 2.0 * n_items * (max_score + 1.0)
        return None if max_score == float("inf") else bound

    def _smoothness(self, n_items: int, max_grade: float, max_score: float) -> float:
        return 2.0 * n_items

    def _l2_lipschitz(self, n_items: int, max_grade: float, max_score: float) -> float | None:
        bound = 2.0 * math.sqrt(n_items) * (max_score + 1.0)
        return None if max_score == math.inf else bound

    def _l2_smoothness(self, n_items: int, max_grade: float, max_score: float) -> float:
        return 2.0

    def _loss_range(self, n_items: int, max_grade: float, max_score: float) -> float:
        return n_items * (max_score + 1.0) ** 2
