"""M10: expected reciprocal rank."""

from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from keyhole.base.errors import FloatArray, check_integer
from keyhole.contracts.measures import Measure, MeasureKernel
from keyhole.kernels.compiled import kernel
from keyhole.measures.exact import Items, Sum, depth_of, rational
from keyhole.measures.linear import fill_exponential


@kernel
def _stops(params: Any, relevance: Any, gains: Any, work: Any) -> tuple[float, float]:
    fill_exponential(relevance, gains)
    scale = 2.0**-params.max_grade
    for item in range(relevance.shape[0]):
        gains[item] *= scale
    return 0.0, 1.0


@kernel
def _cascade(params: Any, gains: Any, offset: float, norm: float, ranking: Any) -> float:
    total = 0.0
    reach = 1.0
    for position in range(min(params.depth, ranking.shape[0])):
        stop = gains[ranking[position]]
        total += reach * stop / (position + 1)
        reach *= 1.0 - stop
    return total


class ERR(Measure):
    """Expected reciprocal of the position at which a user who reads downwards stops.

    Parameters
    ----------
    cutoff
        Last position counted.
    max_grade
        The top grade; a user stops at an item of grade r with probability
        (2^r - 1) / 2^max_grade. The evaluation tools use 4.

    Examples
    --------
    >>> ERR(max_grade=1)([1, 0], [1, 0])
    0.25
    """

    name: ClassVar[str] = "ERR"
    kernel = MeasureKernel(_stops, _cascade)
    discount: ClassVar[str] = "1/p, if the user gets there"
    takes_cutoff: ClassVar[bool] = True

    def __init__(
        self, cutoff: int | None = None, *, max_grade: int = 4, empty: float | None = None
    ) -> None:
        super().__init__(cutoff, empty=empty)
        self._max_grade = check_integer(max_grade, "`max_grade` of ERR", at_least=1, at_most=50)
        self.gain = f"(2^r - 1)/2^{self._max_grade}"  # type: ignore[misc]

    @property
    def max_grade(self) -> float:
        return float(self._max_grade)

    def __matmul__(self, cutoff: int) -> "ERR":
        return ERR(cutoff, max_grade=self._max_grade)

    def weights(self, n_items: int) -> FloatArray:
        return np.ones(n_items)

    def exact(self, relevance: Items, ranking: Items) -> Sum:
        stops = [Fraction(2**grade - 1, 2 ** int(self.max_grade)) for grade in relevance]
        total, reach = Fraction(0), Fraction(1)
        for p, item in enumerate(ranking[: depth_of(self, relevance)]):
            total += reach * stops[item] / (p + 1)
            reach *= 1 - stops[item]
        return rational(total)
