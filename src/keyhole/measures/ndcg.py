"""M5: NDCG and NDCG@n."""

from typing import Any, ClassVar

import numpy as np

from keyhole.compiled import kernel
from keyhole.contracts import MeasureKernel
from keyhole.measures.dcg import DCG
from keyhole.measures.linear import fill_exponential, linear_score, weighted_sum
from keyhole.sorting import sort_descending

_N_GRADES = 16


@kernel
def ideal_dcg(params: Any, gains: Any, work: Any) -> float:
    """Return Z: the DCG of the best ranking."""
    sort_descending(gains, work.order, work.sort)
    return weighted_sum(params, gains, work.order[: gains.shape[0]])


@kernel
def _best_of_whole_grades(params: Any, relevance: Any, work: Any) -> bool:
    """Fill ``work.order`` with items of the gains of the best ranking; return whether it could.

    Grades are few: count the items of each, and let one stand for all of its grade. That gives
    the gains by position that sorting gives, so that their sum is the same.
    """
    n_items = relevance.shape[0]
    if n_items < _N_GRADES:  # too short for the scratch memory, and quickly sorted
        return False
    counts, members = work.sort.counts, work.sort.spare
    for grade in range(_N_GRADES):
        counts[grade] = 0
    for item in range(n_items):
        # Unsigned indices spare the test for negative ones.
        whole = np.uint64(relevance[item]) if relevance[item] < _N_GRADES else np.uint64(0)
        if float(whole) != relevance[item]:
            return False
        counts[whole] += np.uint32(1)
        members[whole] = item
    depth, place = min(params.depth, n_items), 0
    for grade in range(_N_GRADES - 1, -1, -1):
        end = min(place + int(counts[grade]), depth)
        for position in range(place, end):
            work.order[position] = members[grade]
        place = end
    return True


@kernel
def normalised_gains(params: Any, relevance: Any, gains: Any, work: Any) -> tuple[float, float]:
    """Use 2^r - 1 as the gain and the ideal DCG as the norm."""
    fill_exponential(relevance, gains)
    if _best_of_whole_grades(params, relevance, work):
        norm = weighted_sum(params, gains, work.order[: gains.shape[0]])
    else:
        norm = ideal_dcg(params, gains, work)
    return (0.0, norm) if norm > 0.0 else (params.empty, 1.0)


class NDCG(DCG):
    """DCG divided by the DCG of the best ranking.

    Notes
    -----
    Section 3.2.2 of [T16], which gives an empty list the value 1; ``empty=0``
    follows the evaluation tools, ``empty=nan`` marks such lists so that they can
    be skipped.

    Examples
    --------
    >>> NDCG(10)([0, 0, 1], [2, 0, 1])
    1.0
    >>> NDCG(empty=0)([0, 0, 0], [2, 0, 1])
    0.0
    """

    name: ClassVar[str] = "NDCG"
    kernel = MeasureKernel(normalised_gains, linear_score)
    discount: ClassVar[str] = "1/log2(1+p), over that of the best ranking"
    gain_per_item: ClassVar[bool] = False
    default_empty: ClassVar[float | None] = 1.0

    def kernel_for(self, binary: bool) -> MeasureKernel:
        return self.kernel
