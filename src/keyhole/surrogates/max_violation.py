"""S3: the hinge of the worst pair."""

import math
from typing import Any, ClassVar

from keyhole.kernels.compiled import kernel
from keyhole.kernels.sorting import sort_descending
from keyhole.surrogates.base import Surrogate, SurrogateKernel
from keyhole.surrogates.slam import best_of, first_of_grade


@kernel
def worst_pair(scores: Any, relevance: Any, work: Any) -> tuple[int, int]:
    """Return the pair (i, j), R_i > R_j, with the largest s_j - s_i, or (-1, -1) if none.

    Ties go to the lowest i, then to the lowest j.
    """
    n_items = scores.shape[0]
    order = work.order[:n_items]
    sort_descending(relevance, order, work.sort)
    end, lower = n_items, -1
    above, below = -1, -1
    while end > 0:
        begin = first_of_grade(relevance, order, end)
        for position in range(begin, end):
            item = order[position]
            if lower >= 0:
                gap = scores[lower] - scores[item]
                worst = scores[below] - scores[above] if above >= 0 else gap - 1.0
                if gap > worst or (gap == worst and item < above):
                    above, below = item, lower
        lower = best_of(scores, order, begin, end, lower)
        end = begin
    return above, below


@kernel
def _value(params: Any, scores: Any, relevance: Any, work: Any) -> float:
    above, below = worst_pair(scores, relevance, work)
    return max(0.0, 1.0 + scores[below] - scores[above]) if above >= 0 else 0.0


@kernel
def _gradient(params: Any, scores: Any, relevance: Any, out: Any, work: Any) -> None:
    for item in range(scores.shape[0]):
        out[item] = 0.0
    above, below = worst_pair(scores, relevance, work)
    if above >= 0 and 1.0 + scores[below] - scores[above] > 0.0:
        out[above] = -1.0
        out[below] = 1.0


class MaxViolation(Surrogate):
    """Largest max(0, 1 + s_j - s_i) over the pairs in which item i is more relevant than j.

    Notes
    -----
    The loss phi_C of section 2.6.2 of [T16]: at least 1 - NDCG, 1 - NDCG@n and 1 - AP, whatever the
    measure. The Lipschitz constant is 2, and the gradient moves two items only.
    Where several pairs are worst, it takes the lowest i, then the lowest j.

    Examples
    --------
    >>> MaxViolation().value([0.0, 2.0, 1.0], [2, 1, 0])
    3.0
    >>> MaxViolation().gradient([0.0, 2.0, 1.0], [2, 1, 0]).tolist()
    [-1.0, 1.0, 0.0]
    """

    name: ClassVar[str] = "max_violation"
    kernel: ClassVar[SurrogateKernel] = SurrogateKernel(_value, _gradient)
    is_shift_invariant: ClassVar[bool] = True

    def _lipschitz(self, n_items: int, max_grade: float, max_score: float) -> float:
        return 2.0

    def _l2_lipschitz(self, n_items: int, max_grade: float, max_score: float) -> float:
        return math.sqrt(2.0)

    def _loss_range(self, n_items: int, max_grade: float, max_score: float) -> float:
        return 1.0 + 2.0 * max_score
