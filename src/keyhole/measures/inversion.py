"""M3: the value-inversion loss of discrete-choice ranking."""

from typing import Any, ClassVar

from keyhole.base.errors import FloatArray
from keyhole.contracts.measures import Measure, MeasureKernel
from keyhole.kernels.compiled import kernel
from keyhole.kernels.sorting import sort_descending
from keyhole.measures.exact import Items, Sum, rational, wrong_pairs
from keyhole.measures.linear import linear_score, position_numbers


@kernel
def _gains(params: Any, relevance: Any, gains: Any, work: Any) -> tuple[float, float]:
    # Sums run over the sorted values, so that relabelling items changes no bit.
    sort_descending(relevance, work.order, work.sort)
    offset = 0.0
    for place in range(relevance.shape[0]):
        # The value at sorted place p is the smaller one in p of the pairs.
        offset -= relevance[work.order[place]] * (place + 1)
    for item in range(relevance.shape[0]):
        gains[item] = relevance[item]
    return offset, 1.0


class InversionLoss(Measure):
    """Sum over pairs shown in the wrong order of the difference in value.

    Notes
    -----
    Equation 2.1 of [Ai]: the sum over u above v of max(s_v - s_u, 0), computed as
    SumLoss less the sum of values less the sum over pairs of the smaller value.
    For a single choice it is the position of the chosen item less one.

    Examples
    --------
    >>> InversionLoss()([0, 0, 1], [0, 1, 2])
    2.0
    """

    name: ClassVar[str] = "InversionLoss"
    kernel = MeasureKernel(_gains, linear_score)
    is_loss: ClassVar[bool] = True
    gain: ClassVar[str] = "s"
    discount: ClassVar[str] = "pairs, by difference of value"
    gain_per_item: ClassVar[bool] = True

    def weights(self, n_items: int) -> FloatArray:
        return position_numbers(n_items)

    def is_linear(self, binary: bool) -> bool:
        return True

    def exact(self, relevance: Items, ranking: Items) -> Sum:
        return rational(sum(wrong_pairs(relevance, ranking)))
