"""M6: Precision@n as the papers count it."""

from typing import ClassVar

import numpy as np

from keyhole.base.errors import FloatArray
from keyhole.contracts.measures import Measure, MeasureKernel
from keyhole.measures.exact import Items, Sum, depth_of, rational
from keyhole.measures.linear import copy_gains, linear_score


class Precision(Measure):
    """Total relevance of the first n positions: a count, not divided by n.

    Notes
    -----
    Section 3.2.2 of [T16] with positions up to and including n (erratum R2).

    Examples
    --------
    >>> Precision(2)([0, 1, 1], [1, 2, 0])
    2.0
    """

    name: ClassVar[str] = "Precision"
    kernel = MeasureKernel(copy_gains, linear_score)
    gain: ClassVar[str] = "r"
    discount: ClassVar[str] = "1 up to the cutoff, not divided by it"
    gain_per_item: ClassVar[bool] = True
    takes_cutoff: ClassVar[bool] = True

    def weights(self, n_items: int) -> FloatArray:
        weights = np.ones(n_items)
        weights[self.cutoff or n_items :] = 0.0
        return weights

    def is_linear(self, binary: bool) -> bool:
        return True

    def exact(self, relevance: Items, ranking: Items) -> Sum:
        return rational(sum(relevance[item] for item in ranking[: depth_of(self, relevance)]))
