"""S6: RankSVM's pairwise hinge."""

import math
from typing import Any, ClassVar

from keyhole.kernels.compiled import kernel
from keyhole.surrogates.base import PairKernel, Surrogate, SurrogateKernel


@kernel
def _value(params: Any, scores: Any, relevance: Any, work: Any) -> float:
    total = 0.0
    for i in range(scores.shape[0]):
        for j in range(scores.shape[0]):
            if relevance[i] > relevance[j]:
                total += max(0.0, 1.0 + scores[j] - scores[i])
    return total


@kernel
def _pair(
    params: Any, scores: Any, i: int, j: int, grade_i: float, grade_j: float, out: Any
) -> None:
    if grade_i > grade_j and 1.0 + scores[j] > scores[i]:
        out[j] += 1.0
        out[i] -= 1.0


@kernel
def _gradient(params: Any, scores: Any, relevance: Any, out: Any, work: Any) -> None:
    for item in range(scores.shape[0]):
        out[item] = 0.0
    for i in range(scores.shape[0]):
        for j in range(scores.shape[0]):
            _pair(params, scores, i, j, relevance[i], relevance[j], out)


class RankSVM(Surrogate):
    """Sum of max(0, 1 + s_j - s_i) over the pairs in which item i is more relevant than j.

    Notes
    -----
    Section 3.3.3.1 of [T16], whose appendix has the value of the hinge in the gradient
    where its indicator belongs (R23). The gradient needs the relevance of two items at a time
    (Lemma 26), so top-2 feedback does; on two grades, where all scores are within 1 of each
    other, one item at a time is enough (R19). The Lipschitz constant floor(m^2 / 2) is
    the exact supremum: the items that lose can lose only to the others. So is the Euclidean
    one, sqrt(m (m^2 - 1) / 3): gradients lie in the hull of those of full orders of the items,
    m - 1, m - 3, ..., 1 - m. Time is O(m^2).

    Examples
    --------
    >>> RankSVM().value([0.0, 0.0, 0.0], [2, 1, 0])
    3.0
    >>> RankSVM().gradient([0.0, 0.0, 0.0], [2, 1, 0]).tolist()
    [-2.0, 0.0, 2.0]
    """

    name: ClassVar[str] = "ranksvm"
    kernel: ClassVar[SurrogateKernel] = SurrogateKernel(_value, _gradient)
    is_shift_invariant: ClassVar[bool] = True
    pairs: ClassVar[PairKernel | None] = PairKernel(_pair)

    def _lipschitz(self, n_items: int, max_grade: float, max_score: float) -> float:
        return float(n_items * n_items // 2)

    def _l2_lipschitz(self, n_items: int, max_grade: float, max_score: float) -> float:
        return math.sqrt(n_items * (n_items**2 - 1.0) / 3.0)

    def _loss_range(self, n_items: int, max_grade: float, max_score: float) -> float:
        return 0.5 * n_items * (n_items - 1.0) * (1.0 + 2.0 * max_score)
