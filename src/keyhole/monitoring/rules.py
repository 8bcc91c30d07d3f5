"""Rules for any number of items: the interaction order of differences of losses.

A swap of neighbours changes the loss by a function of the items' relevance. The top k show its
expectation iff it is a sum of functions of k items each: its *order* is at most k. Notation:
a and b are the swapped items at positions i and i + 1, s the number of relevant items among the
others, Delta^j the j-th difference. For (r_a - r_b) h(s) the order is 1 + the last j with
Delta^j h(0) not zero. Each rule gives the least k at which a measure is globally and locally
observable; all are compared with enumeration wherever both run.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from decimal import Decimal, localcontext
from functools import cache, partial
from math import comb

from keyhole.contracts.measures import Measure
from keyhole.measures.ap import AP
from keyhole.measures.auc import AUC
from keyhole.measures.dcg import DCG
from keyhole.measures.err import ERR
from keyhole.measures.induced import APLoss, NDCGLoss
from keyhole.measures.inversion import InversionLoss
from keyhole.measures.linear import LinearMeasure
from keyhole.measures.ndcg import NDCG
from keyhole.measures.pairwise import PairwiseLoss
from keyhole.measures.precision import Precision
from keyhole.measures.recall import Recall
from keyhole.measures.rr import RR
from keyhole.measures.sum_loss import SumLoss
from keyhole.monitoring.cells import level_of_positions


@dataclass(frozen=True)
class Rule:
    """From which k a measure is globally and locally observable, and why."""

    global_from: int
    local_from: int
    order: str
    locality: str = ""
    is_trivial: bool = False
    unknown_at: int = 0

    def class_at(self, k: int) -> str:
        """Return the class of the game in which the top ``k`` are shown."""
        if k == self.unknown_at:
            return "unknown"
        if self.is_trivial:
            return "trivial"
        if k < self.global_from:
            return "hopeless"
        return "global" if k < self.local_from else "local"

    def reason_at(self, k: int, n_items: int) -> str:
        """Return one sentence that says why."""
        class_ = self.class_at(k)
        if k == n_items and class_ == "local":
            return "The whole list is shown, so that every ranking's loss is seen."
        order = self.order[0].upper() + self.order[1:]
        if class_ == "trivial":
            return f"{order}."
        if class_ == "hopeless":
            return f"{order}, and the top {k} show no more than {k} of them together."
        return f"{order}, which the top {k} show; {self.locality}."


def rule_for(measure: Measure, n_items: int, grades: int) -> Rule | None:
    """Return the rule of a measure, or None where none is known.

    Examples
    --------
    >>> rule = rule_for(NDCG(), n_items=1000, grades=2)
    >>> rule.global_from, rule.local_from
    (999, 1000)
    """
    kind = type(measure)
    if n_items == 1 and kind in _RULES:
        return _trivial("one item can be ranked in one way only")
    return _RULES[kind](measure, n_items, grades) if kind in _RULES else None


def _trivial(why: str) -> Rule:
    return Rule(1, 1, why, is_trivial=True)


def _cutoff(measure: Measure, n_items: int) -> int:
    return min(measure.cutoff or n_items, n_items)


# --------------------------------------------------------------------------- gains that add up


def _additive(measure: Measure, n_items: int, grades: int) -> Rule:
    """Return the rule of gains per item: neighbours exchange items of neighbouring weights.

    Duplicates permute positions of equal weight, so an exchanged item is seen iff the first
    position of its level is among the top k. The last exchange is between the last two levels.
    """
    levels = level_of_positions(measure.weights(n_items))
    if levels[-1] == 0:
        return _trivial("every position has the same weight, so every ranking has the same value")
    last_but_one = levels.index(levels[-1] - 1) + 1
    return Rule(
        1,
        last_but_one,
        "differences of losses are sums of functions of one item",
        f"neighbours exchange two items of neighbouring weights, and each is seen under one of "
        f"them from k={last_but_one} on, not before",
    )


def _pairwise(measure: Measure, n_items: int, grades: int) -> Rule:
    if grades == 2:  # SumLoss less a function of the number of relevant items
        return _additive(measure, n_items, grades)
    return Rule(
        2,
        n_items,
        "the sign of r_b - r_a is an interaction of 2 items with three grades or more",
        "a swap of the last two items is seen only if both are",
    )


# --------------------------------------------------------------------------- normalised measures


def _normalised(n_items: int, norm: str) -> Rule:
    """Return the rule for (r_a - r_b) h(s) of order m - 1 at the first two positions."""
    return Rule(
        n_items - 1,
        n_items - 1 if n_items == 2 else n_items,
        f"{norm} makes differences of losses interactions of {n_items - 1} items",
        "a swap of the first two items depends on the last, which both rankings hide until all "
        "are shown",
    )


def _average_precision(measure: Measure, n_items: int, grades: int) -> Rule:
    """Return the rule for order m - 1: Delta^j of 1/(1 + s) at 0 is (-1)^j/(j + 1)."""
    if _cutoff(measure, n_items) == 1:
        return _recall(measure, n_items, grades)
    return _normalised(n_items, "dividing by the number of relevant items")


def _recall(measure: Measure, n_items: int, grades: int) -> Rule:
    """Return the rule of measures in which either exchanged item can be put last."""
    if _cutoff(measure, n_items) == n_items:
        return _trivial("all relevant items are found whatever the ranking")
    return Rule(
        n_items - 1,
        n_items - 1,
        f"dividing by the number of relevant items makes differences of losses interactions of "
        f"{n_items - 1} items",
        "either exchanged item can be the one that is hidden",
    )


def _auc(measure: Measure, n_items: int, grades: int) -> Rule:
    """Return the rule for h = 1/((1 + s)(m - 1 - s)).

    Delta^j h(0) = ((-1)^j + 1/C(m - 1, j + 1))/(m (j + 1)), zero only for odd j = m - 2.
    """
    if n_items == 3:
        return Rule(
            1,
            2,
            "with three items every list that matters has two pairs, and differences of losses "
            "are sums of functions of one item",
            "a swap of the last two items is seen from k=2 on",
        )
    if n_items % 2 == 0:
        return _normalised(n_items, "dividing by the number of pairs")
    return Rule(
        n_items - 2,
        n_items,
        f"dividing by the number of pairs makes differences of losses interactions of "
        f"{n_items - 2} items (one less than m - 1, as m is odd)",
        "a swap of the first two items depends on the last, which both rankings hide until all "
        "are shown",
    )


def _cascade(measure: Measure, n_items: int, grades: int) -> Rule:
    """Return the rule of users who read downwards until they stop.

    A swap at i changes the loss by (R_a - R_b) prod_above (1 - R) / (i (i + 1)), of order i.
    Without a cutoff the last item's share is prod_others (1 - R) less prod_all (1 - R).
    """
    depth = min(_cutoff(measure, n_items), n_items - 1)
    return Rule(
        depth,
        depth,
        f"a user who stops at the first relevant item makes differences of losses interactions of "
        f"{depth} items",
        f"every loss is a function of its own first {depth} items, but for a term that no ranking "
        f"changes",
    )


def _ndcg(measure: Measure, n_items: int, grades: int) -> Rule | None:
    cutoff = _cutoff(measure, n_items)
    if grades > 2:
        return _graded_ndcg(measure, n_items, cutoff)
    if cutoff == 1:
        return Rule(
            1,
            1,
            "the ideal DCG@1 of two grades is 1, so differences of losses are sums of functions "
            "of one item",
            "any item can be put first",
        )
    # 1/log2(1 + p) is completely monotone, so its sums Z are a Bernstein function and 1/Z is
    # completely monotone: no difference vanishes. A cutoff before m - 1 needs a look.
    if cutoff < n_items - 1 and not _cut_order_is_full(n_items, cutoff):
        return None
    return _normalised(n_items, "the ideal DCG")


def _graded_ndcg(measure: Measure, n_items: int, cutoff: int) -> Rule | None:
    full = Rule(
        n_items,
        n_items,
        f"with three grades or more the ideal DCG makes differences of losses interactions of all "
        f"{n_items} items",
        "the whole list is shown",
    )
    if _graded_order_is_full(n_items, cutoff):
        return full
    binary = _ndcg(measure, n_items, 2)  # two of the grades are a game within the game
    if binary is None or binary.global_from < n_items - 1:
        return None
    return replace(full, order=binary.order, unknown_at=n_items - 1)


# --------------------------------------------------------------------------- certified signs

_MOST_TERMS = 2000
"""Longer sums would take more than seconds; their sign is then not known."""

Values = Callable[[list[Decimal], int, int], Decimal]
"""From Z(0), Z(1), ..., the number of other relevant items and the cutoff to a value."""


def _is_certainly_not_zero(n_items: int, cutoff: int, value: Values) -> bool:
    """Return whether Delta^(m-2) of a value at 0 is certainly beyond its own rounding error.

    Values no longer change from s = cutoff on, so that they count less the last one. A unit is
    10^(1 - digits): logarithms are off by at most 4 log2(m + 1) + 6 units of themselves, Z by
    8 m, a value by 240 m, and adding the products up by another 4 m + 4, times the sum of the
    binomial coefficients. That is less than the error used.
    """
    order = n_items - 2
    n_terms = min(order, cutoff) + 1
    if n_terms > _MOST_TERMS:
        return False
    shares = [comb(order, s) for s in range(n_terms)]
    for digits in (40 + len(str(sum(shares))) * factor for factor in (1, 2, 4)):
        with localcontext() as context:
            context.prec = digits
            sums = _prefix_sums(cutoff)
            last = value(sums, order, cutoff) if order else Decimal(0)
            terms = (
                (-1) ** s * share * (value(sums, s, cutoff) - last)
                for s, share in enumerate(shares)
            )
            total = sum(terms, Decimal(0))
            error = Decimal(sum(shares)) * n_items * Decimal(10) ** (8 - digits)
            if abs(total) > error:
                return True
    return False


def _prefix_sums(cutoff: int) -> list[Decimal]:
    """Return Z(0), ..., Z(cutoff): sums of 1/log2(1 + p)."""
    logs = [Decimal(0)] * (cutoff + 2)  # logarithms of primes are enough
    for prime in range(2, cutoff + 2):
        if logs[prime] == 0:
            log = Decimal(prime).ln()
            power = prime
            while power < cutoff + 2:
                for multiple in range(power, cutoff + 2, power):
                    logs[multiple] += log
                power *= prime
    sums = [Decimal(0)]
    for position in range(1, cutoff + 1):
        sums.append(sums[-1] + logs[2] / logs[1 + position])
    return sums


def _ideal(sums: list[Decimal], n_top: int, n_low: int, cutoff: int) -> Decimal:
    """Return Z of ``n_top`` items of grade 2 (gain 3) and ``n_low`` of grade 1."""
    top = sums[min(n_top, cutoff)]
    return 3 * top + sums[min(n_top + n_low, cutoff)] - top


def _cut(sums: list[Decimal], s: int, cutoff: int) -> Decimal:
    return 1 / sums[min(1 + s, cutoff)]


def _graded(sums: list[Decimal], s: int, cutoff: int, top: bool = False) -> Decimal:
    """Return (G_a - G_b)/Z, differenced against grade 0 at r_a = 2 and r_b = 1."""
    high, low = (s, 0) if top else (0, s)
    both = _ideal(sums, 1 + high, 1 + low, cutoff)
    first = _ideal(sums, 1 + high, low, cutoff)
    second = _ideal(sums, high, 1 + low, cutoff)
    return 2 / both - 3 / first + 1 / second


@cache
def _cut_order_is_full(n_items: int, cutoff: int) -> bool:
    """Return whether Delta^(m-2) of 1/Z_n is certainly not zero (NDCG@n, two grades)."""
    return _is_certainly_not_zero(n_items, cutoff, _cut)


@cache
def _graded_order_is_full(n_items: int, cutoff: int) -> bool:
    """Return whether all m items certainly interact in NDCG with grades 0, 1, 2."""
    # The others have grade 1, or grade 2: with a cutoff of 1 only these change the ideal DCG.
    return any(
        _is_certainly_not_zero(n_items, cutoff, partial(_graded, top=top))
        for top in (cutoff == 1, cutoff > 1)
    )


_RULES = {
    SumLoss: _additive,
    InversionLoss: _additive,
    DCG: _additive,
    Precision: _additive,
    LinearMeasure: _additive,
    PairwiseLoss: _pairwise,
    AP: _average_precision,
    APLoss: _average_precision,
    Recall: _recall,
    AUC: _auc,
    RR: _cascade,
    ERR: _cascade,
    NDCG: _ndcg,
    NDCGLoss: _ndcg,
}
