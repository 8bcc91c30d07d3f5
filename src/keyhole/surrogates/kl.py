"""S7: Kullback-Leibler divergence of unnormalised vectors."""

import math
from typing import Any, ClassVar

from keyhole.kernels.compiled import kernel
from keyhole.surrogates.base import PartKernel, Surrogate, SurrogateKernel
from keyhole.surrogates.scalar import LARGEST_SCORE, clipped_exp, straight_exp


@kernel
def _value(params: Any, scores: Any, relevance: Any, work: Any) -> float:
    total = 0.0
    for item in range(scores.shape[0]):
        grade, score = relevance[item], scores[item]
        total += math.exp(grade) * (grade - score - 1.0) + straight_exp(score)
    return total


@kernel
def _gradient(params: Any, scores: Any, relevance: Any, out: Any, work: Any) -> None:
    for item in range(scores.shape[0]):
        out[item] = clipped_exp(scores[item]) - math.exp(relevance[item])


@kernel
def _known(params: Any, scores: Any, out: Any) -> None:
    for item in range(scores.shape[0]):
        out[item] = 0.0


@kernel
def _part(params: Any, scores: Any, item: int, grade: float, out: Any) -> None:
    out[item] += clipped_exp(scores[item]) - math.exp(grade)


class UnnormalisedKL(Surrogate):
    """Sum over items of e^r (r - s) - e^r + e^s, which is least at s = r.

    Notes
    -----
    Section 3.3.3.1 of [T16]: ListNet without its norms, so that the gradient e^s - e^r needs
    one relevance at a time. The whole gradient of an item counts as its part, as in the
    source: an item that is not seen is not moved, and near s = r the estimate is small.
    Outside [-30, 30] the loss goes on along its tangent (R18): it stays convex, and its
    gradient is that of the clipped score. The constants grow as e^max_score (R17).

    Examples
    --------
    >>> UnnormalisedKL().value([0.0, 1.0], [0, 1])
    0.0
    >>> UnnormalisedKL().gradient([1.0, 0.0], [1, 0]).tolist()
    [0.0, 0.0]
    """

    name: ClassVar[str] = "kl"
    kernel: ClassVar[SurrogateKernel] = SurrogateKernel(_value, _gradient)
    parts: ClassVar[PartKernel | None] = PartKernel(_known, _part)

    @property
    def max_grade(self) -> float:
        return LARGEST_SCORE

    def _lipschitz(self, n_items: int, max_grade: float, max_score: float) -> float:
        reach = min(max_score, LARGEST_SCORE)
        return n_items * max(math.exp(reach) - 1.0, math.exp(max_grade) - math.exp(-reach))

    def _smoothness(self, n_items: int, max_grade: float, max_score: float) -> float:
        return n_items * math.exp(min(max_score, LARGEST_SCORE))

    def _l2_lipschitz(self, n_items: int, max_grade: float, max_score: float) -> float:
        return self._lipschitz(n_items, max_grade, max_score) / math.sqrt(n_items)

    def _l2_smoothness(self, n_items: int, max_grade: float, max_score: float) -> float:
        return math.exp(min(max_score, LARGEST_SCORE))

    def _loss_range(self, n_items: int, max_grade: float, max_score: float) -> float:
        if max_score == math.inf:
            return math.inf
        corners = [
            math.exp(r) * (r - s - 1.0) + straight_exp(s)
            for r in (0.0, max_grade)
            for s in (-max_score, max_score)
        ]
        return n_items * max(corners)
