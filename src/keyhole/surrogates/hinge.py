"""S1: the hinge loss of binary classification."""

import math
from typing import Any, ClassVar

from keyhole.kernels.compiled import kernel
from keyhole.surrogates.base import PartKernel, Surrogate, SurrogateKernel


@kernel
def _label(grade: float) -> float:
    return 1.0 if grade > 0.0 else -1.0


@kernel
def _value(params: Any, scores: Any, relevance: Any, work: Any) -> float:
    total = 0.0
    for item in range(scores.shape[0]):
        total += max(0.0, 1.0 - _label(relevance[item]) * scores[item])
    return total


@kernel
def _known(params: Any, scores: Any, out: Any) -> None:
    for item in range(scores.shape[0]):
        out[item] = 0.0


@kernel
def _part(params: Any, scores: Any, item: int, grade: float, out: Any) -> None:
    label = _label(grade)
    if label * scores[item] < 1.0:
        out[item] -= label


@kernel
def _gradient(params: Any, scores: Any, relevance: Any, out: Any, work: Any) -> None:
    _known(params, scores, out)
    for item in range(scores.shape[0]):
        _part(params, scores, item, relevance[item], out)


class Hinge(Surrogate):
    """Sum over items of max(0, 1 - y s), with y = 1 if the item is relevant (r > 0), else -1.

    Notes
    -----
    The loss of the perceptron in section 2.3 of [T16], which has one example per round;
    here a list is a round, so its examples are added up. The Lipschitz constant is the
    number of items.

    Examples
    --------
    >>> Hinge().value([0.5, 0.0], [1, 0])
    1.5
    >>> Hinge().gradient([0.5, 0.0], [1, 0]).tolist()
    [-1.0, 1.0]
    """

    name: ClassVar[str] = "hinge"
    kernel: ClassVar[SurrogateKernel] = SurrogateKernel(_value, _gradient)
    parts: ClassVar[PartKernel | None] = PartKernel(_known, _part)

    def _lipschitz(self, n_items: int, max_grade: float, max_score: float) -> float:
        return float(n_items)

    def _l2_lipschitz(self, n_items: int, max_grade: float, max_score: float) -> float:
        return math.sqrt(n_items)

    def _loss_range(self, n_items: int, max_grade: float, max_score: float) -> float:
        return n_items * (1.0 + max_score)
