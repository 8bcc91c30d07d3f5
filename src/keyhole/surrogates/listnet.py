"""S4: ListNet's cross-entropy."""

import math
from typing import Any, ClassVar

from keyhole.kernels.compiled import kernel
from keyhole.surrogates.base import Surrogate, SurrogateKernel
from keyhole.surrogates.scalar import fill_softmax, softmax_norm


@kernel
def _value(params: Any, scores: Any, relevance: Any, work: Any) -> float:
    target = work.gains[: scores.shape[0]]
    fill_softmax(relevance, 1.0, target)
    largest, total = softmax_norm(scores, 1.0)
    log_norm = math.log(total)
    value = 0.0
    for item in range(scores.shape[0]):
        value += target[item] * (log_norm + (largest - scores[item]))
    return value


@kernel
def _gradient(params: Any, scores: Any, relevance: Any, out: Any, work: Any) -> None:
    target = work.gains[: scores.shape[0]]
    fill_softmax(relevance, 1.0, target)
    fill_softmax(scores, 1.0, out)
    for item in range(scores.shape[0]):
        out[item] -= target[item]


class ListNet(Surrogate):
    """Cross-entropy of the softmax of the scores against the softmax of the relevance.

    Notes
    -----
    Section 3.3.3.1 of [T16]; grades enter the exponential as they are. The gradient
    is softmax(s) - softmax(R). It needs all relevances at once: on two grades it has terms of
    m - 1 items, with three of m (R19), so top-k feedback does not do. Lipschitz constant at
    most 2 (Proposition 1 of [T16]); the smoothness 1 is the exact supremum, where
    the source has 2 (B11). The Euclidean constants are sqrt(2) and 1/2.

    Examples
    --------
    >>> ListNet().gradient([0.0, 0.0], [1, 1]).tolist()
    [0.0, 0.0]
    >>> round(ListNet().value([0.0, 0.0], [1, 0]), 4)
    0.6931
    """

    name: ClassVar[str] = "listnet"
    kernel: ClassVar[SurrogateKernel] = SurrogateKernel(_value, _gradient)
    is_shift_invariant: ClassVar[bool] = True

    def _lipschitz(self, n_items: int, max_grade: float, max_score: float) -> float:
        return 2.0 if n_items > 1 else 0.0

    def _smoothness(self, n_items: int, max_grade: float, max_score: float) -> float:
        return 1.0 if n_items > 1 else 0.0

    def _l2_lipschitz(self, n_items: int, max_grade: float, max_score: float) -> float:
        return math.sqrt(2.0) if n_items > 1 else 0.0

    def _l2_smoothness(self, n_items: int, max_grade: float, max_score: float) -> float:
        return 0.5 if n_items > 1 else 0.0

    def _loss_range(self, n_items: int, max_grade: float, max_score: float) -> float:
        # all of the target on the one document that is scored lowest
        return 2.0 * max_score + math.log(math.exp(-2.0 * max_score) + n_items - 1.0)
