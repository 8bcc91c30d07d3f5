"""KEYSTONE: audited means, lifts by value, and a safe learner beside them."""

from typing import Any, ClassVar, NamedTuple, Self, Unpack

import numpy as np

from keyhole.bounds import ftpl
from keyhole.contracts import RankerKernel
from keyhole.errors import MAX_ROUND, FloatArray, IntArray, InvalidInput, check_ranking
from keyhole.kernels.compiled import kernel, rare_kernel
from keyhole.kernels.draw import scalar, uniform, uniforms_of
from keyhole.kernels.sorting import SortWork, sort_descending, sort_work
from keyhole.rankers.fixed.audited import (
    MOST_BUCKETS,
    Histograms,
    doubt_all,
    new_histograms,
    observe,
)
from keyhole.rankers.fixed.base import Arrays, FixedListRanker, GameFacts, gain_of, places_in
from keyhole.rankers.fixed.lifting import (
    LOOKS,
    is_due,
    is_worth_its_price,
    next_look,
    price_of_lift,
    value_table,
)
from keyhole.rankers.fixed.safe import (
    ALARMS,
    BLOCK,
    FLOOR_RATE,
    LEAD,
    LEAD_SQUARES,
    VARIANCE,
    chance_to_be_seen,
    draw_safe_list,
    safe_params,
    trust_in_safe,
)

_TIES, _COIN, _FLOOR, _FLOOR_ITEM = 0, 2, 3, 4
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
    """Scratch memory, the note of the last ranking, and the sweep that ``header`` names."""

    header: Any
    sweep: Any
    keys: Any
    safe: Any
    order: Any
    place_safe: Any
    place_audited: Any
    failed: Any
    note: Any
    sort: SortWork


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


def _work(params: Any, n_items: int) -> KeystoneWork:
    return KeystoneWork(
        np.full(3, -1, np.int64),
        np.empty(n_items, np.int64),
        np.empty(n_items),
        np.empty(n_items, np.int64),
        np.empty(n_items, np.int64),
        np.empty(n_items, np.int64),
        np.empty(n_items, np.int64),
        np.empty(LOOKS, np.int64),
        np.zeros(_note_size(params)),
        sort_work(n_items),
    )


def _note_size(params: Any) -> int:
    return 3 * params.k + 1 + LOOKS


@kernel
def _note(params: Any, work: Any, out: Any) -> None:
    for place in range(out.shape[0]):
        out[place] = work.note[place]


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
def _place_to_lift(params: Any, state: Any, draw: Any, order: Any, work: Any) -> int:
    """Return the place of an item below k that is worth a look, or -1; note which were not."""
    # In each round that is not answered yet, an item may have been lifted as it would be now.
    unanswered = max(draw.round - state.clock[_NEXT_ROUND], 0)
    pending = LOOKS * unanswered / order.shape[0]
    chosen = -1
    for step in range(LOOKS):
        work.failed[step] = -1
        if chosen >= 0:
            continue
        item = next_look(draw, LOOKS * draw.round + step, work)
        place = work.place_audited[item]
        if place < params.k:
            continue
        if pending < 1.0 and is_due(state, item):
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
        _lift(out, lifted, k)
    floored = scalar(draw, draw.round, _FLOOR, 0) < floor
    if floored:
        _lift_anything(draw, out, k)
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
    return lifted >= 0 or plays_safe or floored, propensity


@kernel
def _lift(order: Any, place: int, k: int) -> None:
    """Move the item at a place up to position k."""
    item = order[place]
    for position in range(place, k - 1, -1):
        order[position] = order[position - 1]
    order[k - 1] = item


@rare_kernel
def _lift_anything(draw: Any, out: Any, k: int) -> None:
    """Lift a uniform item to position k, unless it is above."""
    best, chosen = -1.0, 0
    for position in range(out.shape[0]):
        number = uniform(draw, _FLOOR_ITEM, out[position])
        if number > best:
            best, chosen = number, position
    if chosen >= k:
        _lift(out, chosen, k)


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
        state.estimates[item] += (gain - state.mean[item]) / chance
        correction = (gain - seen.note[k + position]) / chance
        lead += correction * seen.note[2 * k + position]
        squares += correction * correction
    numbers[VARIANCE] += params.weight * squares + params.drift
    numbers[LEAD] += lead
    numbers[LEAD_SQUARES] += lead * lead
    for step in range(LOOKS):
        item = int(seen.note[3 * k + 1 + step])
        if 0 <= item < n_items:
            state.waits[item] = round + round // 100
    alarm = False
    for position in range(k):
        item = seen.ranking[position]
        gain = gain_of(seen.values[position], params.exponential) / params.largest_gain
        state.waits[item] = 0
        if observe(state, item, gain, round, numbers[ALARMS]):
            numbers[ALARMS] += 1.0
            alarm = True
        _move(state, item)
    if alarm:
        doubt_all(state)
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


class Keystone(FixedListRanker):
    """KEYSTONE: audited means and lifts by value, with a learner beside them that is always safe.

    Parameters
    ----------
    n_items, game
        See :class:`~keyhole.rankers.fixed.base.GameFacts`; the horizon is of no concern. The
        measure must have gains per item: SumLoss, PairwiseLoss (two grades), InversionLoss, DCG or
        Precision.

    Notes
    -----
    Items are shown by their mean gain, of which a test for changes drops what no longer holds. An
    item below the first k is lifted there where what may be gained by knowing it better, over as
    long as the crowd has been as it is, is more than what showing it is expected to cost. A second
    learner, follow-the-perturbed-leader over importance-weighted estimates, is played as often as
    it has earned; with any crowd fixed in advance, regret is of order T^(2/3) whatever the first
    one does.

    Examples
    --------
    >>> ranker = Keystone(5)
    >>> impression = ranker.rank()
    >>> ranker.update(impression, 1)
    >>> ranker.best()[0] == impression.items[0]
    True
    """

    needs_gain_per_item: ClassVar[bool] = True
    by_item: ClassVar[tuple[str, ...] | None] = (*Histograms._fields, "waits", "estimates")
    kernel = RankerKernel(_init, _work, _rank, _update, _greedy, note=_note, note_size=_note_size)

    def __init__(self, n_items: int, **game: Unpack[GameFacts]) -> None:
        super().__init__(n_items, **game)
        ftpl.constants(self.measure, self.n_items, self.max_grade)  # refuses other measures
        weights = self.measure.weights(self.n_items) * (-1.0 if self.measure.is_loss else 1.0)
        weights = weights - weights[-1]
        self.params = KeystoneParams(
            self.k,
            self.measure.exponential_gain,
            ftpl.largest_gain(self.measure, self.max_grade),
            np.ascontiguousarray(weights),
            value_table(),
            *safe_params(weights, self.k),
        )

    @property
    def depth(self) -> int:
        return self.k

    def check_state(self, arrays: Arrays) -> None:
        for name in ("held", "order"):
            check_ranking(arrays[name], self.n_items, f"`{name}` of the state")
        if int(arrays["n_buckets"].max()) > MOST_BUCKETS - 2:
            raise InvalidInput(
                f"`n_buckets` of the state must leave room in {MOST_BUCKETS} buckets, got "
                f"{arrays['n_buckets'].max()}."
            )
        highest = {"mean": 1.0, "spread": 1.0, "suspect": 1.0}
        for name in Histograms._fields:
            if not 0.0 <= arrays[name].min() <= arrays[name].max() <= highest.get(name, MAX_ROUND):
                raise InvalidInput(
                    f"`{name}` of the state must be between 0 and {highest.get(name, MAX_ROUND)}, "
                    f"got {arrays[name].min()} to {arrays[name].max()}."
                )
        sums = arrays["numbers"][[VARIANCE, LEAD_SQUARES, ALARMS]]
        if arrays["spread"].min() == 0.0 or sums.min() < 0.0:
            raise InvalidInput("`spread` and `numbers` of the state must be those of a Keystone.")

    def carried(
        self, arrays: Arrays, other: Self, where: IntArray, newcomers: float | None = None
    ) -> dict[str, Any]:
        """Let new items begin unseen, with the mean of the others' estimated totals."""
        moved = {name: array.copy() for name, array in arrays.items()}
        fresh = other.kernel.init(other.params, len(where), 0)._asdict()
        stay = where >= 0
        for name in self.by_item or ():
            moved[name] = fresh[name]
            moved[name][stay] = arrays[name][where[stay]]
        if stay.any():
            moved["estimates"][~stay] = arrays["estimates"][where[stay]].mean()
        there = {int(item): place for place, item in enumerate(where) if item >= 0}
        for name in ("held", "order"):
            known = [there[item] for item in arrays[name].tolist() if item in there]
            moved[name] = np.array([*known, *np.flatnonzero(~stay)], dtype=np.int64)
        moved["order"] = _by_mean(moved["order"], moved["mean"])
        return moved

    def _credit(self, earlier: Self, before: Arrays) -> None:
        """Take over what is known of the items that both lists have."""
        where = places_in(earlier.items, self.items)
        own, stay = self.state._asdict(), where >= 0
        own["estimates"][~stay] += own["mean"][~stay]  # as every update adds
        for name, array in earlier.carried(earlier.state._asdict(), self, where).items():
            if name in (self.by_item or ()):
                own[name][stay] = array[stay]
            else:
                own[name][...] = array
        own["order"][...] = _by_mean(own["order"], own["mean"])


def _by_mean(order: IntArray, mean: FloatArray) -> IntArray:
    """Return items by mean, ties as they were."""
    return order[np.argsort(-mean[order], kind="stable")]
