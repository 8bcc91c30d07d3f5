"""Reciprocal rank (with M10)."""

from fractions import Fraction
from typing import Any, ClassVar

from keyhole.contracts.measures import MeasureKernel
from keyhole.kernels.compiled import kernel
from keyhole.measures.ap import AP, relevant_gains
from keyhole.measures.exact import Items, Sum, depth_of, of_empty, rational


@kernel
def _first_hit(params: Any, gains: Any, offset: float, norm: float, ranking: Any) -> float:
    for position in range(min(params.depth, ranking.shape[0])):
        if gains[ranking[position]] > 0.0:
            return 1.0 / (position + 1)
    return offset


class RR(AP):
    """Reciprocal of the position of the first relevant item, 0 if there is none.

    Examples
    --------
    >>> RR()([0, 1, 1], [0, 1, 2])
    0.5
    """

    name: ClassVar[str] = "RR"
    kernel = MeasureKernel(relevant_gains, _first_hit)
    discount: ClassVar[str] = "1/p, first relevant item only"
    default_empty: ClassVar[float | None] = 0.0

    def exact(self, relevance: Items, ranking: Items) -> Sum:
        first = next((p for p, item in enumerate(ranking) if relevance[item] > 0), None)
        if first is None:
            return of_empty(self)
        return rational(Fraction(1, first + 1) if first < depth_of(self, relevance) else 0)
