"""S11: logistic loss, item by item."""

import math
from typing import Any, ClassVar, NamedTuple

from keyhole.base.errors import check_integer, check_top_grade
from keyhole.kernels.compiled import kernel
from keyhole.surrogates.base import PartKernel, Surrogate, SurrogateKernel
from keyhole.surrogates.scalar import sigmoid, softplus


class LogisticParams(NamedTuple):
    """The grade that counts as one."""

    max_grade: float


@kernel
def _value(params: Any, scores: Any, relevance: Any, work: Any) -> float:
    total = 0.0
    for item in range(scores.shape[0]):
        share = relevance[item] / params.max_grade
        total += share * softplus(-scores[item]) + (1.0 - share) * softplus(scores[item])
    return total


@kernel
def _gradient(params: Any, scores: Any, relevance: Any, out: Any, work: Any) -> None:
    for item in range(scores.shape[0]):
        out[item] = sigmoid(scores[item]) - relevance[item] / params.max_grade


@kernel
def _known(params: Any, scores: Any, out: Any) -> None:
    for item in range(scores.shape[0]):
        out[item] = sigmoid(scores[item])


@kernel
def _part(params: Any, scores: Any, item: int, grade: float, out: Any) -> None:
    out[item] -= grade / params.max_grade


class Logistic(Surrogate):
    """Sum over items of the log loss of the chance 1 / (1 + e^-s) against r / max_grade.

    Parameters
    ----------
    max_grade
        The top grade; relevance is divided by it.

    Notes
    -----
    Extension of [T16] (S11): the gradient is affine in the relevance, so top-1 feedback does.
    Lipschitz constant m, smoothness m / 4, both exact suprema.

    Examples
    --------
    >>> Logistic().gradient([0.0, 0.0], [1, 0]).tolist()
    [-0.5, 0.5]
    >>> round(Logistic(max_grade=4).value([0.0], [2]), 4)
    0.6931
    """

    name: ClassVar[str] = "logistic"
    kernel: ClassVar[SurrogateKernel] = SurrogateKernel(_value, _gradient)
    parts: ClassVar[PartKernel | None] = PartKernel(_known, _part)

    def __init__(self, max_grade: float = 1.0) -> None:
        self._max_grade = check_top_grade(max_grade, "`max_grade` of Logistic", exponential=False)

    @property
    def max_grade(self) -> float:
        return self._max_grade

    def params(self, max_items: int) -> LogisticParams:
        check_integer(max_items, "`max_items`", at_least=1)
        return LogisticParams(self._max_grade)

    def _lipschitz(self, n_items: int, max_grade: float, max_score: float) -> float:
        return float(n_items)

    def _smoothness(self, n_items: int, max_grade: float, max_score: float) -> float:
        return n_items / 4.0

    def _l2_lipschitz(self, n_items: int, max_grade: float, max_score: float) -> float:
        return math.sqrt(n_items)

    def _l2_smoothness(self, n_items: int, max_grade: float, max_score: float) -> float:
        return 0.25

    def _loss_range(self, n_items: int, max_grade: float, max_score: float) -> float:
        return n_items * (max_score + math.log1p(math.exp(-max_score)))
