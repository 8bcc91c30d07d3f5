"""S11: squared loss of the gaps between pairs."""

import math
from typing import Any, ClassVar

from keyhole.kernels.compiled import kernel
from keyhole.surrogates.base import PartKernel, Surrogate, SurrogateKernel


@kernel
def _mean_gap(scores: Any, relevance: Any) -> float:
    total = 0.0
    for item in range(scores.shape[0]):
        total += scores[item] - relevance[item]
    return total / scores.shape[0]


@kernel
def _value(params: Any, scores: Any, relevance: Any, work: Any) -> float:
    mean = _mean_gap(scores, relevance)
    total = 0.0
    for item in range(scores.shape[0]):
        gap = scores[item] - relevance[item] - mean
        total += gap * gap
    return scores.shape[0] * total


@kernel
def _gradient(params: Any, scores: Any, relevance: Any, out: Any, work: Any) -> None:
    mean = _mean_gap(scores, relevance)
    for item in range(scores.shape[0]):
        out[item] = 2.0 * scores.shape[0] * (scores[item] - relevance[item] - mean)


@kernel
def _known(params: Any, scores: Any, out: Any) -> None:
    total = 0.0
    for item in range(scores.shape[0]):
        total += scores[item]
    mean = total / scores.shape[0]
    for item in range(scores.shape[0]):
        out[item] = 2.0 * scores.shape[0] * (scores[item] - mean)


@kernel
def _part(params: Any, scores: Any, item: int, grade: float, out: Any) -> None:
    for other in range(scores.shape[0]):
        out[other] += 2.0 * grade
    out[item] -= 2.0 * scores.shape[0] * grade


class PairwiseSquared(Surrogate):
    """Sum over pairs i < j of ((s_i - s_j) - (r_i - r_j))^2.

    Notes
    -----
    Extension of [T16] (S11). Only gaps count, yet the gradient is affine in the relevance, so
    top-1 feedback does. The sum over pairs is m times the spread of s - r around its mean,
    in O(m). The smoothness 2 m^2 (2 m^2 - 2 for odd m) is exact, and so is the
    Lipschitz constant, that times max_score + max_grade / 2.

    Examples
    --------
    >>> PairwiseSquared().value([3.0, 2.0, 2.0], [1, 0, 1])
    2.0
    >>> PairwiseSquared().gradient([1.0, 0.0], [0, 0]).tolist()
    [2.0, -2.0]
    """

    name: ClassVar[str] = "pairwise_squared"
    kernel: ClassVar[SurrogateKernel] = SurrogateKernel(_value, _gradient)
    is_shift_invariant: ClassVar[bool] = True
    parts: ClassVar[PartKernel | None] = PartKernel(_known, _part)

    def _lipschitz(self, n_items: int, max_grade: float, max_score: float) -> float | None:
        if max_score == float("inf"):
            return None
        return self._smoothness(n_items, max_grade, max_score) * (max_score + 0.5 * max_grade)

    def _smoothness(self, n_items: int, max_grade: float, max_score: float) -> float:
        return 2.0 * (n_items * n_items - n_items % 2)

    def _l2_lipschitz(self, n_items: int, max_grade: float, max_score: float) -> float | None:
        if max_score == math.inf:
            return None
        spread = math.sqrt(n_items * (n_items**2 // 4))
        return 2.0 * spread * (2.0 * max_score + max_grade)

    def _l2_smoothness(self, n_items: int, max_grade: float, max_score: float) -> float:
        return 2.0 * n_items if n_items > 1 else 0.0

    def _loss_range(self, n_items: int, max_grade: float, max_score: float) -> float:
        return (n_items**2 // 4) * (2.0 * max_score + max_grade) ** 2
