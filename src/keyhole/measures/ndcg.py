"""M5: NDCG and NDCG@n."""

from typing import Any, ClassVar

from keyhole.contracts.measures import MeasureKernel
from keyhole.kernels.compiled import kernel
from keyhole.kernels.sorting import sort_descending
from keyhole.measures.dcg import DCG
from keyhole.measures.exact import Items, Sum, Term, depth_of, of_empty
from keyhole.measures.linear import fill_exponential, linear_score, weighted_sum

_N_GRADES = 16


@kernel
def ideal_dcg(params: Any, gains: Any, work: Any) -> float:
    """Return Z: the DCG of the best ranking."""
    sort_descending(gains, work.order, work.sort)
    return weighted_sum(params, gains, work.order[: gains.shape[0]])


@kernel
def _largest(relevance: Any) -> int:
    """Return the largest of some whole grades; the largest of integers is found by vectors."""
    largest = 0
    for item in range(relevance.shape[0]):
        largest = max(largest, int(relevance[item]))
    return largest


@kernel
def _best_of_few_grades(params: Any, relevance: Any, largest: int, work: Any) -> None:
    """Fill ``work.order`` with items of the gains of the best ranking, for whole grades.

    Count the items of each grade, from the largest down, and let one stand for all of its
    grade. That gives the gains by position that sorting gives, so that their sum is the same.
    """
    n_items = relevance.shape[0]
    depth, place, grade = min(params.depth, n_items), 0, float(largest)
    while place < depth:
        count, member = 0, 0
        for item in range(n_items):
            same = relevance[item] == grade
            count += 1 if same else 0
            member = max(member, item if same else 0)
        end = min(place + count, depth)
        for position in range(place, end):
            work.order[position] = member
        place, grade = end, grade - 1.0


@kernel
def normalised_gains(params: Any, relevance: Any, gains: Any, work: Any) -> tuple[float, float]:
    """Use 2^r - 1 as the gain and the ideal DCG as the norm."""
    whole, largest = fill_exponential(relevance, gains), _largest(relevance)
    if whole and largest < _N_GRADES:
        _best_of_few_grades(params, relevance, largest, work)
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

    def exact(self, relevance: Items, ranking: Items) -> Sum:
        best = sorted((2**grade - 1 for grade in relevance), reverse=True)
        ideal = tuple(gain for gain in best[: depth_of(self, relevance)] if gain > 0)
        if not ideal:
            return of_empty(self)
        dcg = DCG.exact(self, relevance, ranking)
        return {Term(term.position, ideal): share for term, share in dcg.items()}
