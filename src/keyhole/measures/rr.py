"""Reciprocal rank (with M10)."""

from typing import Any, ClassVar

from keyhole.contracts import MeasureKernel
from keyhole.kernels.compiled import kernel
from keyhole.measures.ap import AP, relevant_gains


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
