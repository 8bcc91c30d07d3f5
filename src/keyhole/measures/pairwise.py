"""M2: PairwiseLoss."""

from typing import Any, ClassVar

from keyhole.base.errors import FloatArray
from keyhole.contracts.measures import Measure, MeasureKernel
from keyhole.kernels.compiled import kernel
from keyhole.measures.exact import Items, Sum, rational, wrong_pairs
from keyhole.measures.linear import copy_gains, linear_score, position_numbers


@kernel
def count_inversions(params: Any, gains: Any, offset: float, norm: float, ranking: Any) -> float:
    """Return the number of pairs shown in the wrong order."""
    total = 0
    for above in range(ranking.shape[0]):
        grade = gains[ranking[above]]
        for below in range(above + 1, ranking.shape[0]):
            total += 1 if grade < gains[ranking[below]] else 0
    return (total + offset) / norm


@kernel
def _binary_gains(params: Any, relevance: Any, gains: Any, work: Any) -> tuple[float, float]:
    n_relevant = 0.0
    for item in range(relevance.shape[0]):
        gains[item] = relevance[item]
        n_relevant += relevance[item]
    return -n_relevant * (n_relevant + 1.0) / 2.0, 1.0


class PairwiseLoss(Measure):
    """Number of pairs in which the less relevant item is above the more relevant one.

    Notes
    -----
    Section 3.2.2 of [T16]. For binary relevance it equals SumLoss less
    n(n + 1)/2, n the number of relevant items, and is linear; with three grades
    or more it is not.

    Examples
    --------
    >>> PairwiseLoss()([0, 1, 1], [0, 1, 2])
    2.0
    """

    name: ClassVar[str] = "PairwiseLoss"
    kernel = MeasureKernel(copy_gains, count_inversions)
    is_loss: ClassVar[bool] = True
    gain: ClassVar[str] = "r"
    discount: ClassVar[str] = "pairs"
    gain_per_item: ClassVar[bool] = True

    def weights(self, n_items: int) -> FloatArray:
        return position_numbers(n_items)

    def kernel_for(self, binary: bool) -> MeasureKernel:
        return MeasureKernel(_binary_gains, linear_score) if binary else self.kernel

    def is_linear(self, binary: bool) -> bool:
        return binary

    def exact(self, relevance: Items, ranking: Items) -> Sum:
        return rational(len(wrong_pairs(relevance, ranking)))
