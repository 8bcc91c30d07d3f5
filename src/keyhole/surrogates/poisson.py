"""S11: Poisson loss, item by item."""

import math
from typing import Any, ClassVar

from keyhole.kernels.compiled import kernel
from keyhole.surrogates.base import PartKernel, Surrogate, SurrogateKernel
from keyhole.surrogates.scalar import LARGEST_SCORE, clipped_exp, straight_exp


@kernel
def _value(params: Any, scores: Any, relevance: Any, work: Any) -> float:
    total = 0.0
    for item in range(scores.shape[0]):
        total += straight_exp(scores[item]) - relevance[item] * scores[item]
    return total


@kernel
def _gradient(params: Any, scores: Any, relevance: Any, out: Any, work: Any) -> None:
    for item in range(scores.shape[0]):
        out[item] = clipped_exp(scores[item]) - relevance[item]


@kernel
def _known(params: Any, scores: Any, out: Any) -> None:
    for item in range(scores.shape[0]):
        out[item] = clipped_exp(scores[item])


@kernel
def _part(params: Any, scores: Any, item: int, grade: float, out: Any) -> None:
    out[item] -= grade


class Poisson(Surrogate):
    """Sum over items of e^s - r s: relevance as a count of mean e^s.

    Notes
    -----
    Extension of [T16] (S11): a Bregman loss, whose risk is least at the logarithm of the
    mean relevance. The gradient e^s - r is affine in the relevance, so top-1 feedback does.
    Outside [-30, 30] the loss goes on along its tangent, as that of ``kl``.

    Examples
    --------
    >>> Poisson().value([0.0, 0.0], [1, 2])
    2.0
    >>> Poisson().gradient([0.0, 0.0], [1, 2]).tolist()
    [0.0, -1.0]
    """

    name: ClassVar[str] = "poisson"
    kernel: ClassVar[SurrogateKernel] = SurrogateKernel(_value, _gradient)
    parts: ClassVar[PartKernel | None] = PartKernel(_known, _part)
    is_nonnegative: ClassVar[bool] = False

    def _lipschitz(self, n_items: int, max_grade: float, max_score: float) -> float:
        reach = min(max_score, LARGEST_SCORE)
        return n_items * max(math.exp(reach), max_grade - math.exp(-reach))

    def _smoothness(self, n_items: int, max_grade: float, max_score: float) -> float:
        return n_items * math.exp(min(max_score, LARGEST_SCORE))

    def _l2_lipschitz(self, n_items: int, max_grade: float, max_score: float) -> float:
        return self._lipschitz(n_items, max_grade, max_score) / math.sqrt(n_items)

    def _l2_smoothness(self, n_items: int, max_grade: float, max_score: float) -> float:
        return math.exp(min(max_score, LARGEST_SCORE))

    def _loss_range(self, n_items: int, max_grade: float, max_score: float) -> float:
        if max_score == math.inf:
            return math.inf
        most = max(straight_exp(max_score), straight_exp(-max_score) + max_grade * max_score)
        least = straight_exp(-max_score)
        if max_grade > 0.0:
            best = min(max(math.log(max_grade), -max_score), max_score)
            least = min(least, straight_exp(best) - max_grade * best)
        return n_items * (most - least)
