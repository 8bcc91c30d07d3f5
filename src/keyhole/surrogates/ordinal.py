"""S11: ordinal logistic loss, item by item."""

import math
from typing import Any, ClassVar, NamedTuple

from keyhole.base.errors import check_integer
from keyhole.kernels.compiled import kernel
from keyhole.surrogates.base import PartKernel, Surrogate, SurrogateKernel
from keyhole.surrogates.scalar import sigmoid, softplus


class OrdinalParams(NamedTuple):
    """The top grade."""

    n_steps: int


@kernel
def _threshold(params: Any, step: int) -> float:
    return step - 0.5 * (params.n_steps + 1)


@kernel
def _value(params: Any, scores: Any, relevance: Any, work: Any) -> float:
    total = 0.0
    for item in range(scores.shape[0]):
        for step in range(1, params.n_steps + 1):
            margin = scores[item] - _threshold(params, step)
            total += softplus(-margin if relevance[item] >= step else margin)
    return total


@kernel
def _known(params: Any, scores: Any, out: Any) -> None:
    for item in range(scores.shape[0]):
        out[item] = 0.0
        for step in range(1, params.n_steps + 1):
            out[item] += sigmoid(scores[item] - _threshold(params, step))


@kernel
def _part(params: Any, scores: Any, item: int, grade: float, out: Any) -> None:
    for step in range(1, params.n_steps + 1):
        out[item] -= 1.0 if grade >= step else 0.0


@kernel
def _gradient(params: Any, scores: Any, relevance: Any, out: Any, work: Any) -> None:
    _known(params, scores, out)
    for item in range(scores.shape[0]):
        _part(params, scores, item, relevance[item], out)


class Ordinal(Surrogate):
    """Sum over items and grades g of the log loss of s on whether r is at least g.

    Parameters
    ----------
    max_grade
        The top grade, a whole number n. The thresholds are 1, ..., n, centred at 0.

    Notes
    -----
    Extension of [T16] (S11): the all-threshold ordinal loss with fixed thresholds. The gradient
    needs one relevance at a time, so top-1 feedback does. With n = 1 it is
    :class:`Logistic`. Lipschitz constant m n, smoothness at most m n / 4.

    Examples
    --------
    >>> Ordinal(1).gradient([0.0, 0.0], [1, 0]).tolist()
    [-0.5, 0.5]
    >>> Ordinal(2).gradient([0.0], [1]).tolist()
    [0.0]
    """

    name: ClassVar[str] = "ordinal"
    kernel: ClassVar[SurrogateKernel] = SurrogateKernel(_value, _gradient)
    parts: ClassVar[PartKernel | None] = PartKernel(_known, _part)

    def __init__(self, max_grade: int = 1) -> None:
        name = "`max_grade` of Ordinal"
        self._max_grade = check_integer(max_grade, name, at_least=1, at_most=1000)

    @property
    def max_grade(self) -> float:
        return float(self._max_grade)

    def params(self, max_items: int) -> OrdinalParams:
        check_integer(max_items, "`max_items`", at_least=1)
        return OrdinalParams(self._max_grade)

    def _lipschitz(self, n_items: int, max_grade: float, max_score: float) -> float:
        return float(n_items * self._max_grade)

    def _smoothness(self, n_items: int, max_grade: float, max_score: float) -> float:
        return n_items * self._max_grade / 4.0

    def _l2_lipschitz(self, n_items: int, max_grade: float, max_score: float) -> float:
        return math.sqrt(n_items) * self._max_grade

    def _l2_smoothness(self, n_items: int, max_grade: float, max_score: float) -> float:
        return self._max_grade / 4.0

    def _loss_range(self, n_items: int, max_grade: float, max_score: float) -> float:
        farthest = max_score + 0.5 * (self._max_grade - 1.0)
        return n_items * self._max_grade * (farthest + math.log1p(math.exp(-farthest)))
