"""A11: chances to be among the first n, learnt from what is seen of the first k."""

import math
from typing import Any, ClassVar, NamedTuple, Unpack

import numpy as np

from keyhole.base.errors import FloatArray, check_number
from keyhole.bounds import ftpl, precision
from keyhole.contracts.arrays import ItemIndices, PerItem, PerSeen, Sorting, ranker_kernel
from keyhole.contracts.lists import Impression
from keyhole.contracts.rows import ANY_CROWD, SOLID, Guarantee, Look
from keyhole.kernels.compiled import kernel
from keyhole.kernels.draw import scalar, uniforms
from keyhole.kernels.sorting import sort_descending
from keyhole.rankers.fixed.base import FixedListRanker, GameFacts, gain_of

_ORDER, _START, _WINDOW = 0, 1, 2
_LEAST_CHANCE = 1e-300
"""Below it one over a chance would be no number; what it adds to the sum of chances is nothing."""


class SemiBanditParams(NamedTuple):
    """Settings; ``rate`` times 1/sqrt(t) is eta from the ``horizon`` on, ``known_rate`` before."""

    k: int
    n_counted: int
    exponential: bool
    largest_gain: float
    horizon: int
    known_rate: float
    rate: float


class SemiBanditState(NamedTuple):
    """Estimated total loss of each item."""

    losses: PerItem


class SemiBanditWork(NamedTuple):
    """Scratch memory, and the note of the last ranking."""

    keys: PerItem
    order: ItemIndices
    sums: PerItem
    chosen: PerItem
    note: PerSeen
    sort: Sorting


@kernel
def rate_at(params: Any, round: int) -> float:
    """Return eta of a round: that of the horizon before its end, falling from there on."""
    if round < params.horizon:
        return params.known_rate
    return params.rate / math.sqrt(round + 1.0)


@kernel
def choose_chances(rate: float, losses: Any, n_counted: int, work: Any) -> None:
    """Fill ``work.chosen`` with the chances x that e^(-rate * losses) is projected to.

    They are at most 1 and sum to n: the least losses are capped at 1, and the others are in
    proportion to e^(-rate * losses). How many are capped is found from sums over all losses above
    each one, taken relative to it, so that nothing underflows that matters.
    """
    n_items, order, sums = losses.shape[0], work.order, work.sums
    for item in range(n_items):
        work.keys[item] = -rate * losses[item]
    sort_descending(work.keys, order, work.sort)
    sums[n_items - 1] = 1.0
    for place in range(n_items - 2, -1, -1):
        gap = work.keys[order[place + 1]] - work.keys[order[place]]
        sums[place] = 1.0 + sums[place + 1] * math.exp(gap)
    n_capped = 0
    while n_counted - n_capped > sums[n_capped]:
        work.chosen[order[n_capped]] = 1.0
        n_capped += 1
    largest = work.keys[order[n_capped]]
    share = (n_counted - n_capped) / sums[n_capped]
    for place in range(n_capped, n_items):
        item = order[place]
        chance = share * math.exp(work.keys[item] - largest)
        work.chosen[item] = min(max(chance, _LEAST_CHANCE), 1.0)


@kernel
def draw_set(draw: Any, n_counted: int, out: Any, work: Any) -> None:
    """Draw a set in which each item is with its chance: it comes first, in random order.

    Systematic sampling: the chances are laid end to end in random order, and items are those that
    n points at distances of 1 hit. The others follow, in random order as well.
    """
    n_items, order = out.shape[0], work.order
    uniforms(draw, _ORDER, work.keys)
    sort_descending(work.keys, order, work.sort)
    point, end = scalar(draw, draw.round, _START, 0), 0.0
    n_hit = 0
    for place in range(n_items):
        item, n_left = order[place], n_items - place
        end += work.chosen[item]
        # The sum may miss n by a rounding error, but the set has n items in any case.
        if n_hit < n_counted and (point + n_hit < end or n_left == n_counted - n_hit):
            out[n_hit] = item
            n_hit += 1
        else:
            out[n_counted + place - n_hit] = item


@kernel
def _turn(out: Any, first: int, end: int, by: int, spare: Any) -> None:
    """Turn a part of a list round, so that what stood ``by`` places in comes first."""
    length = end - first
    for place in range(length):
        spare[place] = out[first + (place + by) % length]
    for place in range(length):
        out[first + place] = spare[place]


@kernel
def _rank(
    params: Any, state: Any, draw: Any, features: Any, out: Any, work: Any
) -> tuple[bool, float]:
    n_items, k, n_counted = out.shape[0], params.k, params.n_counted
    choose_chances(rate_at(params, draw.round), state.losses, n_counted, work)
    draw_set(draw, n_counted, out, work)
    # The set is turned round by a uniform number of places: each of it is in a window of k of its
    # places, and each of the others in one of k - n of theirs, with a chance that is known exactly.
    number = scalar(draw, draw.round, _WINDOW, 0)
    n_others = n_items - n_counted
    beyond = 0.0
    if k < n_counted:
        _turn(out, 0, n_counted, min(int(number * n_counted), n_counted - 1), work.order)
    elif k > n_counted:
        _turn(out, n_counted, n_items, min(int(number * n_others), n_others - 1), work.order)
        beyond = (k - n_counted) / n_others
    share = min(k / n_counted, 1.0)
    for position in range(k):
        chosen = work.chosen[out[position]]
        work.note[position] = chosen * share + (1.0 - chosen) * beyond
    return True, work.note[0] if k == 1 else np.nan


@kernel
def _update(params: Any, state: Any, seen: Any, work: Any) -> None:
    for position in range(params.k):
        gain = gain_of(seen.values[position], params.exponential) / params.largest_gain
        state.losses[seen.ranking[position]] += (1.0 - gain) / seen.note[position]


@kernel
def _greedy(params: Any, state: Any, features: Any, out: Any, work: Any) -> None:
    """Sort by estimated total loss, the least first."""
    for item in range(out.shape[0]):
        work.keys[item] = -state.losses[item]
    sort_descending(work.keys, out, work.sort)


class SemiBandit(FixedListRanker):
    """Learn each item's chance to be among the first n, for Precision@n at the rate of T^(1/2).

    Parameters
    ----------
    n_items, game
        See :class:`~keyhole.rankers.fixed.base.GameFacts`. The measure must count the first n
        positions alike and no other: Precision@n (by default Precision@1, an m-armed bandit). With
        a horizon the rate is tuned for it; without, and past it, the rate falls as 1/sqrt(t).
    rate_scale
        Multiplies the theory's eta; above 1, estimates are trusted more than the worst case
        allows.

    Notes
    -----
    A11: online mirror descent with negative entropy over {x: sum x = n, x <= 1}, the chances to
    be among the first n. The first n are drawn by systematic sampling in random order. For
    k <= n, k of them are seen; for k > n, all of them and k - n others. Losses 1 - r that are seen
    are divided by the exact chance to be seen, which travels in the note of the impression.
    Regret is at most n sqrt(2 m T log(m/n) / k) for every k, a square root of two more without a
    horizon (docs/precision.md).

    Deviations: the totals of losses are projected, rather than each step (dual averaging): the
    bound is the same, feedback may come in any order, and no horizon is needed. What of the first
    n is seen is a window of them at a uniform place, which has the chances of a uniform subset.
    What the others show for k > n is learnt from as well, so that the bound falls with k up to m.

    Examples
    --------
    >>> ranker = SemiBandit(10, measure="Precision@3", horizon=10_000)
    >>> round(ranker.rate, 5)
    0.00491
    >>> sorted(ranker.rank().ranking.tolist()) == list(range(10))
    True
    """

    label = "Semi-bandit"
    look = Look("#882255", SOLID, "v")
    guarantee = Guarantee(
        1 / 2, f"{ANY_CROWD}, for Precision@n with any k", "semi-bandit mirror descent"
    )
    needs_gain_per_item: ClassVar[bool] = True
    unknown_horizon = 0
    shared_settings: ClassVar[dict[str, Any]] = {
        **FixedListRanker.shared_settings,
        "measure": "Precision@1",
    }
    by_item: ClassVar[tuple[str, ...] | None] = ("losses",)
    kernel = ranker_kernel(SemiBanditState, SemiBanditWork, _rank, _update, _greedy)

    def __init__(self, n_items: int, *, rate_scale: float = 1.0, **game: Unpack[GameFacts]) -> None:
        super().__init__(n_items, **game)
        rate_scale = check_number(rate_scale, "`rate_scale` of SemiBandit", above=0.0)
        n_counted = precision.n_counted(self.measure, self.n_items, "SemiBandit")
        ratio = precision.penalty(self.n_items, n_counted) / precision.steepness(
            self.n_items, n_counted, self.k
        )
        anytime = rate_scale * math.sqrt(ratio)
        self.rate = anytime * math.sqrt(2.0 / self.horizon) if self.horizon else anytime
        self.params = SemiBanditParams(
            self.k,
            n_counted,
            self.measure.exponential_gain,
            ftpl.largest_gain(self.measure, self.max_grade),
            self.horizon,
            self.rate,
            anytime,
        )

    @property
    def depth(self) -> int:
        return self.k

    def chances(self, impression: Impression) -> FloatArray | None:
        return impression.note[: self.k]
