"""M4: DCG and DCG@n."""

from fractions import Fraction
from typing import ClassVar

from keyhole.base.errors import FloatArray
from keyhole.contracts.measures import Measure, MeasureKernel
from keyhole.measures.exact import Items, Sum, Term, depth_of
from keyhole.measures.linear import copy_gains, exponential_gains, linear_score, log_discounts


class DCG(Measure):
    """Discounted cumulative gain: the sum of (2^r - 1) / log2(1 + position).

    Notes
    -----
    Section 3.2.2 of [T16]; positions count from 1.

    Examples
    --------
    >>> DCG()([1, 0, 1], [0, 1, 2])
    1.5
    """

    name: ClassVar[str] = "DCG"
    kernel = MeasureKernel(exponential_gains, linear_score)
    gain: ClassVar[str] = "2^r - 1"
    discount: ClassVar[str] = "1/log2(1+p)"
    exponential_gain: ClassVar[bool] = True
    gain_per_item: ClassVar[bool] = True
    takes_cutoff: ClassVar[bool] = True

    def weights(self, n_items: int) -> FloatArray:
        weights = log_discounts(n_items)
        weights[self.cutoff or n_items :] = 0.0
        return weights

    def kernel_for(self, binary: bool) -> MeasureKernel:
        # 2^r - 1 is r for r in {0, 1}.
        return MeasureKernel(copy_gains, linear_score) if binary else self.kernel

    def is_linear(self, binary: bool) -> bool:
        return True

    def exact(self, relevance: Items, ranking: Items) -> Sum:
        shown = ranking[: depth_of(self, relevance)]
        return {
            Term(p + 1): Fraction(2 ** relevance[item] - 1)
            for p, item in enumerate(shown)
            if relevance[item] > 0
        }
