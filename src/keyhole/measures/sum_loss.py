"""M1: SumLoss."""

from typing import ClassVar

from keyhole.base.errors import FloatArray
from keyhole.contracts.measures import Measure, MeasureKernel
from keyhole.measures.exact import Items, Sum, rational
from keyhole.measures.linear import copy_gains, linear_score, position_numbers


class SumLoss(Measure):
    """Sum over items of position times relevance.

    Notes
    -----
    Section 3.2.2 of [T16]. Positions count from 1.

    Examples
    --------
    >>> SumLoss()([0, 1, 1], [0, 1, 2])
    5.0
    """

    name: ClassVar[str] = "SumLoss"
    kernel = MeasureKernel(copy_gains, linear_score)
    is_loss: ClassVar[bool] = True
    gain: ClassVar[str] = "r"
    discount: ClassVar[str] = "p"
    gain_per_item: ClassVar[bool] = True

    def weights(self, n_items: int) -> FloatArray:
        return position_numbers(n_items)

    def is_linear(self, binary: bool) -> bool:
        return True

    def exact(self, relevance: Items, ranking: Items) -> Sum:
        return rational(sum((p + 1) * relevance[item] for p, item in enumerate(ranking)))
