"""PEGE: phases of exploration, each followed by greedy exploitation twice as long as before."""

from typing import Any, NamedTuple, Unpack

import numpy as np

from keyhole.base.errors import MAX_ROUND, IntArray
from keyhole.contracts.arrays import ItemFlags, ItemIndices, PerItem, Sorting
from keyhole.contracts.rows import DOTTED, Look
from keyhole.kernels.compiled import kernel, rare_kernel
from keyhole.kernels.draw import uniforms_of
from keyhole.kernels.sorting import sort_descending
from keyhole.rankers.fixed.base import GameFacts
from keyhole.rankers.fixed.counting import (
    CountingRanker,
    Gains,
    count_seen,
    counting_kernel,
    sort_by_means,
)

_PASS = 1


class PEGEParams(NamedTuple):
    """What is seen, when phases start, and how many lists show every item once."""

    k: int
    gains: Gains
    starts: Any
    n_cells: int


class PEGEWork(NamedTuple):
    """Scratch memory."""

    keys: PerItem
    order: ItemIndices
    shuffled: ItemIndices
    chosen: ItemFlags
    sort: Sorting


class Slot(NamedTuple):
    """Where a round stands: its phase, from 1 on, and the exploring list that it may show.

    ``cell`` is -1 where it exploits; ``first`` is the round in which its pass began.
    """

    phase: int
    cell: int
    first: int


def phase_starts(n_cells: int) -> IntArray:
    """Return when each phase begins: phase b has b passes over the cells, then 2^b greedy rounds.

    Examples
    --------
    >>> phase_starts(20)[:4].tolist()
    [0, 22, 66, 134]
    """
    starts = [0]
    while starts[-1] < MAX_ROUND:
        phase = len(starts)
        starts.append(starts[-1] + phase * n_cells + 2**phase)
    return np.array(starts, dtype=np.int64)


@kernel
def slot_of(params: Any, round: int) -> Slot:
    """Return where a round stands."""
    phase = 1
    while round >= params.starts[phase]:
        phase += 1
    start, n_cells = params.starts[phase - 1], params.n_cells
    after = round - start
    if after >= phase * n_cells:
        return Slot(phase, -1, -1)
    return Slot(phase, after % n_cells, start + after // n_cells * n_cells)


@rare_kernel
def shuffle_pass(draw: Any, first: int, work: Any) -> None:
    """Fill ``work.shuffled`` with the items in the random order of the pass of a round."""
    uniforms_of(draw, first, _PASS, work.keys)
    sort_descending(work.keys, work.shuffled, work.sort)


@rare_kernel
def put_chosen_first(chosen: Any, out: Any, work: Any) -> None:
    """Put the chosen items of a list before the others, both in the order they had."""
    for position in range(out.shape[0]):
        work.order[position] = out[position]
    place = 0
    for side in (True, False):
        for position in range(out.shape[0]):
            if chosen[work.order[position]] == side:
                out[place] = work.order[position]
                place += 1


@kernel
def _rank(
    params: Any, state: Any, draw: Any, features: Any, out: Any, work: Any
) -> tuple[bool, float]:
    slot = slot_of(params, draw.round)
    sort_by_means(state, draw, out, work)
    if slot.cell < 0:
        return False, np.nan
    shuffle_pass(draw, slot.first, work)
    for place in range(out.shape[0]):
        work.chosen[work.shuffled[place]] = place // params.k == slot.cell
    put_chosen_first(work.chosen, out, work)
    return True, np.nan


@kernel
def count_explored(params: Any, state: Any, seen: Any, work: Any) -> None:
    """Learn from rounds that explore alone."""
    if seen.explored:
        count_seen(params, state, seen, work)


class PEGE(CountingRanker):
    """Explore in phases, each followed by greedy lists for twice as long as the one before.

    Parameters
    ----------
    n_items, game
        See :class:`~keyhole.rankers.fixed.base.GameFacts`; the horizon is of no concern. The
        measure must have gains per item.

    Notes
    -----
    PEGE of Chaudhuri & Tewari (2016), "Phased Exploration with Greedy Exploitation in Stochastic
    Combinatorial Partial Monitoring Games", for a fixed list of which the first k are seen. Their
    algorithm is given a global observable set: actions whose outcomes together determine the
    mean of the adversary's moves. Here it is a cut of the list into ceil(m / k) cells, each of
    which is on top once (a pass). Phase b plays b passes, estimates all means by what all passes
    so far have shown, and then shows the greedy list 2^b times.

    After phase b every item was seen at least b(b + 1) / 2 times. So an order that is wrong by a
    gap of D has a probability of at most 2 m exp(-b(b + 1) D^2 / 4), while the phase lasts 2^b
    rounds: the sum over phases is finite, and what is lost by exploring up to round T is of order
    (m / k) log^2 T. Neither T nor the gaps are known, and items may be tied. Without gaps, or for
    crowds that change, there is no guarantee of this variant.

    What differs: cells are drawn anew for every pass; the items below a cell are in greedy order
    instead of any; where k does not divide m, the last cell is filled by the best of the others.

    Examples
    --------
    >>> ranker = PEGE(6, k=2)
    >>> for _ in range(3):
    ...     ranker.update(ranker.rank(), [0, 1])
    >>> ranker.state.counts.tolist()
    [1.0, 1.0, 1.0, 1.0, 1.0, 1.0]
    >>> ranker.rank().explored
    False
    """

    label = "PEGE"
    look = Look("#AA4499", DOTTED, "<")
    kernel = counting_kernel(_rank, count_explored, PEGEWork)

    def __init__(self, n_items: int, **game: Unpack[GameFacts]) -> None:
        super().__init__(n_items, **game)
        n_cells = -(-self.n_items // self.k)
        self.params = PEGEParams(self.k, self.gains, phase_starts(n_cells), n_cells)
