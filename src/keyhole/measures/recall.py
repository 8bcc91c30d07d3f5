"""Recall@n (with M10)."""

from fractions import Fraction
from typing import ClassVar

from keyhole.contracts.measures import MeasureKernel
from keyhole.measures.ap import relevant_gains
from keyhole.measures.exact import Items, Sum, depth_of, of_empty, rational
from keyhole.measures.linear import linear_score
from keyhole.measures.precision import Precision


class Recall(Precision):
    """Share of the relevant items found in the first n positions, 1 if there are none.

    Examples
    --------
    >>> Recall(1)([0, 1, 1], [1, 2, 0])
    0.5
    """

    name: ClassVar[str] = "Recall"
    kernel = MeasureKernel(relevant_gains, linear_score)
    gain: ClassVar[str] = "1[r > 0]"
    discount: ClassVar[str] = "1 up to the cutoff, over the number of relevant items"
    gain_per_item: ClassVar[bool] = False
    default_empty: ClassVar[float | None] = 1.0

    def exact(self, relevance: Items, ranking: Items) -> Sum:
        found = sum(relevance[item] > 0 for item in ranking[: depth_of(self, relevance)])
        total = sum(grade > 0 for grade in relevance)
        return rational(Fraction(found, total)) if total else of_empty(self)
