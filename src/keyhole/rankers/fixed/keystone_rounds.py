"""The rounds of a keystone: what it remembers, shows and learns."""

from typing import Annotated, Any, NamedTuple

import numpy as np

from keyhole.contracts.arrays import Array, ItemIndices, PerItem, Sorting, ranker_kernel
from keyhole.kernels.compiled import kernel, rare_kernel
from keyhole.kernels.draw import scalar, uniforms_of
from keyhole.kernels.sorting import sort_descending
from keyhole.rankers.fixed.audited import (
    blindness,
    doubt_all,
    new_histograms,
    observe,
)
from keyhole.rankers.fixed.base import gain_of
from keyhole.rankers.fixed.exploration_value import (
    LOOKS,
    is_due,
    is_worth_its_price,
    next_look,
    price_of_lift,
)
from keyhole.rankers.fixed.promote import lift, lift_any
from keyhole.rankers.fixed.safe import (
    ALARMS,
    BLOCK,
    FLOOR_RATE,
    LEAD,
    LEAD_SQUARES,
    VARIANCE,
    chance_to_be_seen,
    draw_safe_list,
    trust_in_safe,
)

_TIES, _COIN, _FLOOR, _FLOOR_ITEM, _THINNED = 0, 2, 3, 4, 6
_TIE = 1e-6
_NEXT_BLOCK, _NEXT_ROUND = 0, 1


class KeystoneParams(NamedTuple):
    """Settings: weights of the positions, largest first, and constants of the safe learner.

    ``penalty``, ``weight``, ``drift`` and ``first`` are c, a, kappa and V0 of its theorem.
    """

    k: int
    exponential: bool
    largest_gain: float
    weights: Any
    table: Any
    penalty: float
    weight: float
    drift: float
    first: float

    @property
    def n_noted(self) -> int:
        """How many numbers travel with an impression."""
        return 3 * self.k + 2 + LOOKS


class KeystoneState(NamedTuple):
    """The audited means and their order; and of the safe learner the estimated totals and its list.

    An item is not looked at before the round that it ``waits`` for. ``clock`` is one more than the
    block whose list is ``held``, and one more than the latest round that was learnt; ``numbers``
    are those of the safe learner.
    """

    counts: Any
    sums: Any
    squares: Any
    n_buckets: Any
    n: Any
    total: Any
    total_square: Any
    all_n: Any
    all_total: Any
    mean: Any
    spread: Any
    suspect: Any
    waits: Any
    estimates: Any
    order: Any
    held: Any
    clock: Any
    numbers: Any


class KeystoneWork(NamedTuple):
    """Scratch memory, the note of the last ranking, and the sweep that ``header`` names.

    A note has, for each position that is seen, the chance to be, the mean, and by how much the safe
    list weighs the item more; then by how much that list is ahead by the means, the items that were
    looked at in vain (-1 for none), and for how many rounds nothing was learnt.
    """

    header: Annotated[Any, Array((3,), np.int64, -1)]
    sweep: ItemIndices
    keys: PerItem
    safe: ItemIndices
    order: ItemIndices
    place_safe: ItemIndices
    place_audited: ItemIndices
    failed: Annotated[Any, Array((LOOKS,), np.int64)]
    note: Annotated[Any, Array(("n_noted",))]
    sort: Sorting


def _init(params: Any, n_items: int, n_features: int) -> KeystoneState:
    return KeystoneState(
        *new_histograms(n_items),
        np.zeros(n_items, np.int64),
        np.zeros(n_items),
        np.arange(n_items),
        np.arange(n_items),
        np.zeros(2, np.int64),
        np.zeros(4),
    )


@rare_kernel
def _sort_by_means(state: Any, draw: Any, round: int, out: Any, work: Any) -> None:
    """Sort by audited means, ties at random."""
    uniforms_of(draw, round, _TIES, work.keys)
    for item in range(out.shape[0]):
        work.keys[item] = state.mean[item] + _TIE * work.keys[item]
    sort_descending(work.keys, out, work.sort)


@kernel
def _move(state: Any, item: int) -> None:
    """Bring one item, whose mean has changed, to its place in the order."""
    order, mean, means = state.order, state.mean[item], state.mean
    place, last = 0, order.shape[0] - 1
    while order[place] != item:
        place += 1
    while place > 0 and means[order[place - 1]] < mean:
        order[place] = order[place - 1]
        place -= 1
    while place < last and means[order[place + 1]] > mean:
        order[place] = order[place + 1]
        place += 1
    order[place] = item


@kernel
def _unanswered(state: Any, draw: Any) -> int:
    """Return for how many rounds nothing was learnt."""
    return max(draw.round - state.clock[_NEXT_ROUND], 0)


@kernel
def _place_to_lift(params: Any, state: Any, draw: Any, order: Any, work: Any) -> int:
    """Return the place of an item below k that is worth a look, or -1; note which were not."""
    # In each sweep that is not answered yet, an item may have been lifted as it would be now.
    pending = LOOKS * _unanswered(state, draw) / order.shape[0]
    chosen = -1
    for step in range(LOOKS):
        work.failed[step] = -1
        if chosen >= 0:
            continue
        item = next_look(draw, LOOKS * draw.round + step, work)
        place = work.place_audited[item]
        if place < params.k:
            continue
        if is_due(state, item) and scalar(draw, draw.round, _THINNED, step) * (1.0 + pending) < 1.0:
            chosen = place
        elif draw.round >= state.waits[item]:
            if is_worth_its_price(params, state, order, place, draw.round, pending):
                chosen = place
            else:
                work.failed[step] = item
    return chosen


@kernel
def _rank(
    params: Any, state: Any, draw: Any, features: Any, out: Any, work: Any
) -> tuple[bool, float]:
    n_items, k, weights = out.shape[0], params.k, params.weights
    floor = FLOOR_RATE * (draw.round + 1.0) ** (-1.0 / 3.0)
    order, safe = state.order, state.held
    if state.clock[_NEXT_BLOCK] == 0:
        _sort_by_means(state, draw, 0, work.order, work)
        order = work.order
    block = draw.round // BLOCK
    if state.clock[_NEXT_BLOCK] != block + 1:
        draw_safe_list(params, state, draw, block, work.safe, work)
        safe = work.safe
    lead = 0.0
    for position in range(n_items):
        work.place_safe[safe[position]] = position
        work.place_audited[order[position]] = position
        lead += weights[position] * (state.mean[safe[position]] - state.mean[order[position]])
    lifted = _place_to_lift(params, state, draw, order, work)
    if lifted >= 0:
        lead += price_of_lift(state, order, lifted, k, weights)
    trust = trust_in_safe(state.numbers)
    plays_safe = scalar(draw, draw.round, _COIN, 0) < trust
    shown = safe if plays_safe else order
    for position in range(n_items):
        out[position] = shown[position]
    if lifted >= 0 and not plays_safe:
        lift(out, lifted, k)
    floored = scalar(draw, draw.round, _FLOOR, 0) < floor
    if floored:
        lift_any(draw, _FLOOR_ITEM, out, k)
    propensity = 1.0
    for position in range(k):
        item = out[position]
        there, here = work.place_safe[item], work.place_audited[item]
        if here == lifted:
            here = k - 1
        elif k - 1 <= here < lifted:
            here += 1
        propensity = trust * chance_to_be_seen(there, k, n_items, floor)
        propensity += (1.0 - trust) * chance_to_be_seen(here, k, n_items, floor)
        work.note[position] = propensity
        work.note[k + position] = state.mean[item]
        work.note[2 * k + position] = weights[there] - weights[here]
    work.note[3 * k] = lead
    for step in range(LOOKS):
        work.note[3 * k + 1 + step] = work.failed[step]
    work.note[3 * k + 1 + LOOKS] = _unanswered(state, draw)
    return lifted >= 0 or plays_safe or floored, propensity


@kernel
def _update(params: Any, state: Any, seen: Any, work: Any) -> None:
    k, round, numbers, n_items = params.k, seen.draw.round, state.numbers, state.n.shape[0]
    block = round // BLOCK
    if state.clock[_NEXT_BLOCK] == 0:
        _sort_by_means(state, seen.draw, 0, state.order, work)
    if block + 1 > state.clock[_NEXT_BLOCK]:
        _hold(params, state, seen.draw, block, work)
    lead, squares = seen.note[3 * k], 0.0
    for item in range(n_items):
        state.estimates[item] += state.mean[item]
    for position in range(k):
        item, chance = seen.ranking[position], seen.note[position]
        gain = gain_of(seen.values[position], params.exponential) / params.largest_gain
        correction = (gain - state.mean[item]) / chance
        state.estimates[item] += correction
        squares += correction * correction
        # The lead is judged by the means of the time when both lists were made.
        lead += (gain - seen.note[k + position]) / chance * seen.note[2 * k + position]
    numbers[VARIANCE] += params.weight * squares + params.drift
    numbers[LEAD] += lead
    numbers[LEAD_SQUARES] += lead * lead
    for step in range(LOOKS):
        item = int(seen.note[3 * k + 1 + step])
        if 0 <= item < n_items:
            state.waits[item] = round + round // 100
    alarm = False
    blind = blindness(numbers[ALARMS], seen.note[3 * k + 1 + LOOKS], round)
    for position in range(k):
        item = seen.ranking[position]
        gain = gain_of(seen.values[position], params.exponential) / params.largest_gain
        state.waits[item] = 0
        if observe(state, item, gain, round, numbers[ALARMS], blind):
            numbers[ALARMS] += 1.0
            alarm = True
        _move(state, item)
    if alarm:
        doubt_all(state, blind)
        _sort_by_means(state, seen.draw, round, state.order, work)
        for item in range(n_items):
            state.waits[item] = 0
    state.clock[_NEXT_ROUND] = max(state.clock[_NEXT_ROUND], round + 1)
    if (round + 1) % BLOCK == 0 and block + 2 > state.clock[_NEXT_BLOCK]:
        _hold(params, state, seen.draw, block + 1, work)


@kernel
def _hold(params: Any, state: Any, draw: Any, block: int, work: Any) -> None:
    """Draw the list of a block, and keep it."""
    draw_safe_list(params, state, draw, block, state.held, work)
    state.clock[_NEXT_BLOCK] = block + 1


@kernel
def _greedy(params: Any, state: Any, features: Any, out: Any, work: Any) -> None:
    """Sort by audited means."""
    sort_descending(state.mean, out, work.sort)


ROUNDS = ranker_kernel(_init, KeystoneWork, _rank, _update, _greedy)
