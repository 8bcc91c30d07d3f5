"""S5: squared loss."""

import math
from typing import Any, ClassVar

from keyhole.kernels.compiled import kernel
from keyhole.surrogates.base import PartKernel, Surrogate, SurrogateKernel


@kernel
def _value(params: Any, scores: Any, relevance: Any, work: Any) -> float:
    total = 0.0
    for item in range(scores.shape[0]):
        gap = scores[item] - relevance[item]
        total += gap * gap
    return total


@kernel
def _gradient(params: Any, scores: Any, relevance: Any, out: Any, work: Any) -> None:
    for item in range(scores.shape[0]):
        out[item] = 2.0 * (scores[item] - relevance[item])


@kernel
def _known(params: Any, scores: Any, out: Any) -> None:
    for item in range(scores.shape[0]):
        out[item] = 2.0 * scores[item]


@kernel
def _part(params: Any, scores: Any, item: int, grade: float, out: Any) -> None:
    out[item] -= 2.0 * grade


class Squared(Surrogate):
    """Sum over items of (s - r)^2.

    Notes
    -----
    Section 3.3.3.1 of [T16]. The gradient is 2 (s - r), so top-1 feedback does. Not
    Lipschitz unless scores are bounded; the smoothness is twice the number of items.

    Examples
    --------
    >>> Squared().value([0.0, 1.0], [1, 1])
    1.0
    >>> Squared().gradient([0.0, 1.0], [1, 1]).tolist()
    [-2.0, 0.0]
    """

    name: ClassVar[str] = "squared"
    kernel: ClassVar[SurrogateKernel] = SurrogateKernel(_value, _gradient)
    parts: ClassVar[PartKernel | None] = PartKernel(_known, _part)

    def _lipschitz(self, n_items: int, max_grade: float, max_score: float) -> float | None:
        bound = 2.0 * n_items * (max_score + max_grade)
        return None if max_score == float("inf") else bound

    def _smoothness(self, n_items: int, max_grade: float, max_score: float) -> float:
        return 2.0 * n_items

    def _l2_lipschitz(self, n_items: int, max_grade: float, max_score: float) -> float | None:
        bound = 2.0 * math.sqrt(n_items) * (max_score + max_grade)
        return None if max_score == math.inf else bound

    def _l2_smoothness(self, n_items: int, max_grade: float, max_score: float) -> float:
        return 2.0

    def _loss_range(self, n_items: int, max_grade: float, max_score: float) -> float:
        return n_items * (max_score + max_grade) ** 2
