"""PEGE2: phased exploration that leaves out what is certain."""

import math
from typing import Any, NamedTuple, Unpack

import numpy as np

from keyhole.base.errors import FloatArray, IntArray
from keyhole.contracts.arrays import ItemFlags, ItemIndices, PerItem, Sorting
from keyhole.contracts.rows import DASH_DOT, Look
from keyhole.kernels.compiled import kernel, rare_kernel
from keyhole.rankers.fixed.base import GameFacts
from keyhole.rankers.fixed.counting import (
    CountingRanker,
    Gains,
    counting_kernel,
    posterior_mean,
    sort_by_means,
)
from keyhole.rankers.fixed.pege import (
    count_explored,
    phase_starts,
    put_chosen_first,
    shuffle_pass,
    slot_of,
)

_LOG_4 = math.log(4.0)


class PEGE2Params(NamedTuple):
    """Those of PEGE; and where positions of the same weight as each begin, and end."""

    k: int
    gains: Gains
    starts: Any
    n_cells: int
    begins: Any
    ends: Any


class PEGE2Work(NamedTuple):
    """Scratch memory: that of PEGE, and bounds by position."""

    keys: PerItem
    order: ItemIndices
    shuffled: ItemIndices
    chosen: ItemFlags
    sort: Sorting
    least_above: PerItem
    most_below: PerItem
    uncertain: ItemFlags


def _levels(weights: FloatArray) -> tuple[IntArray, IntArray]:
    """Return of each position where those of its weight begin, and where they have ended."""
    cuts = np.flatnonzero(np.diff(weights)) + 1
    level = np.searchsorted(cuts, np.arange(len(weights)), side="right")
    edges = np.concatenate([[0], cuts, [len(weights)]]).astype(np.int64)
    return edges[level], edges[level + 1]


@kernel
def _radius(state: Any, item: int, phase: int) -> float:
    """Return how far a mean may be from the truth with probability of 1 - 4^-phase / m.

    The second term is by how much a posterior mean can differ from that of what was seen.
    """
    count = state.counts[item]
    if count == 0.0:
        return 1.0
    log_odds = math.log(2.0 * state.counts.shape[0]) + phase * _LOG_4
    return math.sqrt(log_odds / (2.0 * count)) + 1.0 / (count + 2.0)


@rare_kernel
def _mark_uncertain(params: Any, state: Any, phase: int, order: Any, work: Any) -> None:
    """Mark items whose interval meets that of one that they could wrongly be above or below."""
    n_items = order.shape[0]
    least, most = np.inf, -np.inf
    for position in range(n_items):
        item = order[position]
        least = min(least, posterior_mean(state, item) - _radius(state, item, phase))
        work.least_above[position] = least
    for position in range(n_items - 1, -1, -1):
        item = order[position]
        most = max(most, posterior_mean(state, item) + _radius(state, item, phase))
        work.most_below[position] = most
    for position in range(n_items):
        item, begin, end = order[position], params.begins[position], params.ends[position]
        mean, radius = posterior_mean(state, item), _radius(state, item, phase)
        above = begin > 0 and work.least_above[begin - 1] <= mean + radius
        below = end < n_items and work.most_below[end] >= mean - radius
        work.uncertain[item] = above or below


@kernel
def _rank(
    params: Any, state: Any, draw: Any, features: Any, out: Any, work: Any
) -> tuple[bool, float]:
    slot = slot_of(params, draw.round)
    sort_by_means(state, draw, out, work)
    if slot.cell < 0:
        return False, np.nan
    shuffle_pass(draw, slot.first, work)
    _mark_uncertain(params, state, slot.phase, out, work)
    n_uncertain, explores = 0, False
    for place in range(out.shape[0]):
        item = work.shuffled[place]
        chosen = work.uncertain[item] and n_uncertain // params.k == slot.cell
        work.chosen[item] = chosen
        explores = explores or chosen
        n_uncertain += 1 if work.uncertain[item] else 0
    put_chosen_first(work.chosen, out, work)
    return explores, np.nan


class PEGE2(CountingRanker):
    """Explore in phases, as PEGE does, but only items whose place is not certain yet.

    Parameters
    ----------
    n_items, game
        See :class:`~keyhole.rankers.fixed.base.GameFacts`; the horizon is of no concern. The
        measure must have gains per item.

    Notes
    -----
    PEGE2 of Chaudhuri & Tewari (2016), re-derived for a fixed list of which the first k are seen.
    Theirs first plays passes over the global observable set until the gap between the best action
    and the second best is certain, and then as many passes in each phase as that gap needs: log T
    in place of log^2 T, if the best action is unique.

    Here phases are those of :class:`~keyhole.rankers.fixed.pege.PEGE`, but a pass shows on top only
    items that are not certain. In phase b a mean is known to within r = sqrt(ln(2 m 4^b) / (2 n)),
    and 1 / (n + 2) for the prior. An item is certain where no interval of an item at a position of
    another weight meets its own. Rounds that are left over show the greedy list. An item with a
    gap of D to its neighbours is certain once it was seen about 2 ln(2 m 4^b) / D^2 times, hence
    phases add a constant number of passes for it once they have that many, and what exploring
    costs is of order log T / D^2. A certain order is wrong with probability of at most 4^-b for
    each number of passes, of which there are about b^2, and the phase lasts 2^b rounds: the sum is
    finite.

    What differs: gaps are those of items, not of whole lists, and are judged in every phase anew;
    no second oracle is needed, nor a unique best list: items that are tied are explored for ever,
    at the rate of PEGE, log^2 T. Crowds that change have no guarantee.

    Examples
    --------
    >>> ranker = PEGE2(2, measure="Precision@2")
    >>> ranker.rank().explored  # which item is first is of no concern
    False
    >>> PEGE2(2).rank().explored
    True
    """

    label = "PEGE2"
    look = Look("#B8A030", DASH_DOT, "H")
    kernel = counting_kernel(_rank, count_explored, PEGE2Work)

    def __init__(self, n_items: int, **game: Unpack[GameFacts]) -> None:
        super().__init__(n_items, **game)
        n_cells = -(-self.n_items // self.k)
        starts = phase_starts(n_cells)
        levels = _levels(self.measure.weights(self.n_items))
        self.params = PEGE2Params(self.k, self.gains, starts, n_cells, *levels)
