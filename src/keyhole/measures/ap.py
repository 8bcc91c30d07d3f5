"""M7: average precision."""

from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from keyhole.base.errors import FloatArray
from keyhole.contracts.measures import Measure, MeasureKernel
from keyhole.kernels.compiled import kernel
from keyhole.measures.exact import Items, Sum, depth_of, of_empty, rational


@kernel
def relevant_gains(params: Any, relevance: Any, gains: Any, work: Any) -> tuple[float, float]:
    """Use 1[r > 0] as the gain and the number of relevant items as the norm."""
    n_relevant = 0
    for item in range(relevance.shape[0]):
        relevant = relevance[item] > 0.0
        gains[item] = 1.0 if relevant else 0.0
        n_relevant += 1 if relevant else 0
    return (0.0, float(n_relevant)) if n_relevant > 0 else (params.empty, 1.0)


@kernel
def average_precision(params: Any, gains: Any, offset: float, norm: float, ranking: Any) -> float:
    """Return the mean over relevant items of the precision at their position."""
    total = offset
    hits = 0.0
    for position in range(min(params.depth, ranking.shape[0])):
        gain = gains[ranking[position]]
        hits += gain
        total += gain * hits / (position + 1)
    return total / norm


class AP(Measure):
    """Mean over the relevant items of the precision at their position.

    Notes
    -----
    Section 3.2.2 of [T16]; a list without a relevant item has value 1. AP@n
    counts positions up to n and still divides by all relevant items.

    Examples
    --------
    >>> AP()([0, 1, 0], [0, 1, 2])
    0.5
    """

    name: ClassVar[str] = "AP"
    kernel = MeasureKernel(relevant_gains, average_precision)
    discount: ClassVar[str] = "precision at p"
    takes_cutoff: ClassVar[bool] = True
    default_empty: ClassVar[float | None] = 1.0

    def weights(self, n_items: int) -> FloatArray:
        return np.ones(n_items)

    def exact(self, relevance: Items, ranking: Items) -> Sum:
        hits = [p for p, item in enumerate(ranking) if relevance[item] > 0]
        if not hits:
            return of_empty(self)
        within = [p for p in hits if p < depth_of(self, relevance)]
        total = sum((Fraction(n + 1, p + 1) for n, p in enumerate(within)), Fraction(0))
        return rational(total / len(hits))
