"""S2: the SLAM family, large-margin upper bounds on 1 - NDCG and 1 - AP."""

import math
from typing import Any, ClassVar, NamedTuple

from keyhole.base.errors import InvalidInput, check_choice, check_integer
from keyhole.contracts.measures import Measure
from keyhole.kernels.compiled import kernel
from keyhole.kernels.sorting import sort_descending
from keyhole.measures import measure
from keyhole.measures.linear import fill_exponential
from keyhole.surrogates.base import Surrogate, SurrogateKernel

_WEIGHTS = ("average", "index")
_MARGINS = ("unit", "grades")


class SLAMParams(NamedTuple):
    """Discount of each position, zero beyond the cutoff, and which weights and margins to use.

    The margin of a pair is ``unit`` plus ``by_grade`` for each grade between the two.
    """

    discounts: Any
    binary: bool
    average: bool
    unit: float
    by_grade: float


@kernel
def _sort_grades(params: Any, relevance: Any, work: Any) -> float:
    """Sort the items by grade, fill their gains and return the sum of all weights."""
    n_items = relevance.shape[0]
    order, gains = work.order[:n_items], work.gains[:n_items]
    sort_descending(relevance, order, work.sort)
    if params.binary:
        for item in range(n_items):
            gains[item] = 1.0 if relevance[item] > 0.0 else 0.0
    else:
        fill_exponential(relevance, gains)
    norm = 0.0
    for position in range(n_items):
        norm += gains[order[position]] * params.discounts[position]
    return norm


@kernel
def _fill_levels(params: Any, scores: Any, relevance: Any, out: Any) -> None:
    """Fill ``out`` with s_i - by_grade R_i; a hinge is ``unit`` plus the difference of two."""
    for item in range(scores.shape[0]):
        out[item] = scores[item] - params.by_grade * relevance[item]


@kernel
def first_of_grade(relevance: Any, order: Any, end: int) -> int:
    """Return where the items begin that have the grade of the one before ``end``."""
    grade = relevance[order[end - 1]]
    begin = end - 1
    while begin > 0 and relevance[order[begin - 1]] == grade:
        begin -= 1
    return begin


@kernel
def _mean_discount(params: Any, begin: int, end: int) -> float:
    total = 0.0
    for position in range(begin, end):
        total += params.discounts[position]
    return total / (end - begin)


@kernel
def _value(params: Any, scores: Any, relevance: Any, work: Any) -> float:
    norm = _sort_grades(params, relevance, work)
    levels, order, total = work.extra[: scores.shape[0]], work.order, 0.0
    _fill_levels(params, scores, relevance, levels)
    end, best = scores.shape[0], -1  # the best scored item of all lower grades
    while end > 0 and norm > 0.0:
        begin = first_of_grade(relevance, order, end)
        mean = _mean_discount(params, begin, end)
        for position in range(begin, end):
            item = order[position]
            discount = mean if params.average else params.discounts[position]
            if best >= 0:
                hinge = params.unit + levels[best] - levels[item]
                total += work.gains[item] * discount / norm * max(0.0, hinge)
        best = best_of(levels, order, begin, end, best)
        end = begin
    return total


@kernel
def _gradient(params: Any, scores: Any, relevance: Any, out: Any, work: Any) -> None:
    for item in range(scores.shape[0]):
        out[item] = 0.0
    norm = _sort_grades(params, relevance, work)
    levels, order = work.extra[: scores.shape[0]], work.order
    _fill_levels(params, scores, relevance, levels)
    end, best = scores.shape[0], -1
    while end > 0 and norm > 0.0:
        begin = first_of_grade(relevance, order, end)
        mean = _mean_discount(params, begin, end)
        for position in range(begin, end):
            item = order[position]
            discount = mean if params.average else params.discounts[position]
            if best >= 0 and params.unit + levels[best] - levels[item] > 0.0:  # Eq. 2.13
                weight = work.gains[item] * discount / norm
                out[item] -= weight
                out[best] += weight
        best = best_of(levels, order, begin, end, best)
        end = begin


@kernel
def best_of(scores: Any, order: Any, begin: int, end: int, best: int) -> int:
    """Return the best scored of ``best`` (-1 for none) and some items, ties by lowest index."""
    for position in range(begin, end):
        item = order[position]
        tied = best >= 0 and scores[item] == scores[best] and item < best
        if best < 0 or scores[item] > scores[best] or tied:
            best = item
    return best


class SLAM(Surrogate):
    """Weighted sum over items of the worst hinge against items of lower grades.

    With v the weights, the loss is the sum over i of v_i max(0, 1 + s_j - s_i), j the best
    scored item of a lower grade. It is at least 1 - NDCG, 1 - NDCG@n or 1 - AP of the ranking
    by scores, however ties are broken.

    Parameters
    ----------
    measure
        ``"NDCG"``, ``"NDCG@n"`` or ``"AP"``: which loss to bound.
    weights
        ``average``: items of one grade share their weights. ``index``: the earlier item has
        the larger weight.
    margin
        ``unit``: 1 for every pair. ``grades``: R_i - R_j, so that j is that of the largest
        s_j - R_j.

    Notes
    -----
    Eq. 2.9 with the weights of Eqs. 2.10, 2.11 and 2.24 of [T16], in O(m log m): after
    sorting by grade the best lower item is a suffix maximum. The source takes the items of
    one grade to be exchangeable, but NDCG's weights differ within a grade; sorting them by
    score would lose convexity (R14), hence the average by default. A list without a relevant
    item has loss 0. Weights add up to 1, so the Lipschitz constant is 2.

    Margins by grade are not in [T16] but in its author's own code. For whole grades they are at
    least 1, so the loss is still an upper bound; for grades less than 1 apart it is none.

    Examples
    --------
    >>> SLAM("AP").value([0.0, 0.0, 0.0], [0, 1, 1])
    1.0
    >>> SLAM("AP", margin="grades").value([0.0, 0.0], [0, 3])
    3.0
    >>> SLAM("AP").gradient([0.0, -1.0, 0.0], [0, 1, 1]).tolist()
    [1.0, -0.5, -0.5]
    """

    name: ClassVar[str] = "slam"
    kernel: ClassVar[SurrogateKernel] = SurrogateKernel(_value, _gradient)
    is_shift_invariant: ClassVar[bool] = True

    def __init__(
        self,
        measure: str | Measure = "NDCG",
        *,
        weights: str = "average",
        margin: str = "unit",
    ) -> None:
        self.measure = _weighted_by(measure)
        self.weights = check_choice(weights, "`weights` of SLAM", _WEIGHTS)
        self.margin = check_choice(margin, "`margin` of SLAM", _MARGINS)

    @property
    def max_grade(self) -> float:
        return self.measure.max_grade

    def params(self, max_items: int) -> SLAMParams:
        max_items = check_integer(max_items, "`max_items`", at_least=1)
        return SLAMParams(
            self.measure.weights(max_items),
            self.measure.name == "AP",
            self.weights == "average",
            1.0 if self.margin == "unit" else 0.0,
            1.0 if self.margin == "grades" else 0.0,
        )

    def mistake_scale(self, n_items: int, *, max_grade: float = 1.0) -> float:
        """Return kappa v_max of B2: a list that is not ranked best loses at least 1 over it.

        The perceptron of [T16] bounds its mistakes by it (Lemma 5), for whole grades. It holds
        for average weights too: where a grade of n items has t positions above the cutoff, a
        mistake outscores n - t + 1 of them, and t (n - t + 1) / n >= 1.
        """
        n_items = check_integer(n_items, "`n_items`", at_least=1)
        if self.measure.name == "AP":
            return float(n_items)
        depth = min(self.measure.cutoff or n_items, n_items)
        return depth * (2.0**max_grade - 1.0) / float(self.measure.weights(n_items)[depth - 1])

    def _lipschitz(self, n_items: int, max_grade: float, max_score: float) -> float:
        return 2.0

    def _l2_lipschitz(self, n_items: int, max_grade: float, max_score: float) -> float:
        return math.sqrt(2.0)

    def _loss_range(self, n_items: int, max_grade: float, max_score: float) -> float:
        return (1.0 if self.margin == "unit" else max_grade) + 2.0 * max_score


def _weighted_by(name: str | Measure) -> Measure:
    judge = measure(name)
    if judge.name not in ("NDCG", "AP") or (judge.name == "AP" and judge.cutoff is not None):
        raise InvalidInput(f"`measure` of SLAM must be NDCG, NDCG@n or AP, got {judge.label}.")
    return judge
