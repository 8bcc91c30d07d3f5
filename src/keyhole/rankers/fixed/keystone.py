"""KEYSTONE: audited means, lifts by value, and a safe learner beside them."""

import math
from typing import Any, ClassVar, NamedTuple, Self, Unpack

import numpy as np

from keyhole.bounds import ftpl
from keyhole.contracts import RankerKernel
from keyhole.errors import MAX_ROUND, IntArray, InvalidInput, check_ranking
from keyhole.kernels.compiled import kernel, rare_kernel
from keyhole.kernels.draw import scalar, uniform, uniforms, uniforms_of
from keyhole.kernels.sorting import SortWork, sort_descending, sort_work
from keyhole.rankers.fixed.audited import (
    MOST_BUCKETS,
    Histograms,
    doubt_all,
    new_histograms,
    observe,
)
from keyhole.rankers.fixed.base import Arrays, FixedListRanker, GameFacts, gain_of, places_in
from keyhole.rankers.fixed.lifting import is_worth_a_look, value_table

_TIES, _SWEEP, _COIN, _FLOOR, _FLOOR_ITEM, _NOISE = 0, 1, 2, 3, 4, 5
_BLOCK = 16
_LOOKS = 2
_FLOOR_RATE = 0.1
_PRIOR = 0.01
_LOGIT = math.log(_PRIOR / (1.0 - _PRIOR))
_LOG_PRIOR = math.log(1.0 / _PRIOR)
_LARGEST_LOGIT = 40.0
_TIE = 1e-6
_VARIANCE, _LEAD, _LEAD_SQUARES, _ALARMS = 0, 1, 2, 3


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
    """The audited means; and of the safe learner the estimated totals and its list.

    ``clock`` is one more than the block whose list is ``held``; ``numbers`` are the variance that
    its rate falls with, by how much it leads the audited list, the squares of that, and the alarms.
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
    estimates: Any
    held: Any
    clock: Any
    numbers: Any


class KeystoneWork(NamedTuple):
    """Scratch memory, the note of the last ranking, and the sweep that ``header`` names."""

    header: Any
    sweep: Any
    keys: Any
    safe: Any
    audited: Any
    place_safe: Any
    place_audited: Any
    note: Any
    sort: SortWork


def _init(params: Any, n_items: int, n_features: int) -> KeystoneState:
    return KeystoneState(
        *new_histograms(n_items),
        np.zeros(n_items),
        np.arange(n_items),
        np.zeros(1, np.int64),
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
        np.zeros(3 * params.k + 1),
        sort_work(n_items),
    )


def _note_size(params: Any) -> int:
    return 3 * params.k + 1


@kernel
def _note(params: Any, work: Any, out: Any) -> None:
    for place in range(out.shape[0]):
        out[place] = work.note[place]


@rare_kernel
def _draw_safe_list(params: Any, state: Any, draw: Any, block: int, out: Any, work: Any) -> None:
    """Sort the estimated totals with the noise of a block."""
    rate = math.sqrt(params.penalty / (params.first + state.numbers[_VARIANCE]))
    uniforms_of(draw, block * _BLOCK, _NOISE, work.keys)
    for item in range(out.shape[0]):
        work.keys[item] = rate * state.estimates[item] - math.log(-math.log(work.keys[item]))
    sort_descending(work.keys, out, work.sort)


@rare_kernel
def _draw_sweep(draw: Any, sweep: int, work: Any) -> None:
    uniforms_of(draw, sweep, _SWEEP, work.keys)
    sort_descending(work.keys, work.sweep, work.sort)
    work.header[0], work.header[1], work.header[2] = draw.seed, draw.stream, sweep


@kernel
def _next_look(draw: Any, look: int, work: Any) -> int:
    """Return the item of a look: all items once in each sweep, in random order."""
    n_items = work.sweep.shape[0]
    sweep, header = look // n_items, work.header
    if header[0] != draw.seed or header[1] != draw.stream or header[2] != sweep:
        _draw_sweep(draw, sweep, work)
    return work.sweep[look % n_items]


@kernel
def _lift(order: Any, place: int, k: int) -> None:
    """Move the item at a place up to position k."""
    item = order[place]
    for position in range(place, k - 1, -1):
        order[position] = order[position - 1]
    order[k - 1] = item


@kernel
def _audited_list(params: Any, state: Any, draw: Any, out: Any, work: Any) -> bool:
    """Sort by audited means, and lift what is worth a look; return whether anything was."""
    uniforms(draw, _TIES, work.keys)
    for item in range(out.shape[0]):
        work.keys[item] = state.mean[item] + _TIE * work.keys[item]
    sort_descending(work.keys, out, work.sort)
    for position in range(out.shape[0]):
        work.place_audited[out[position]] = position
    for step in range(_LOOKS):
        place = work.place_audited[_next_look(draw, _LOOKS * draw.round + step, work)]
        if place >= params.k and is_worth_a_look(
            params, state, out, place, draw.round, state.numbers[_ALARMS]
        ):
            _lift(out, place, params.k)
            return True
    return False


@kernel
def _chance(place: int, k: int, n_items: int, floor: float) -> float:
    """Return how likely the item at some place of a list is to be seen."""
    if place < k - 1:
        return 1.0
    return 1.0 - floor * (1.0 - k / n_items) if place == k - 1 else floor / n_items


@kernel
def _rank(
    params: Any, state: Any, draw: Any, features: Any, out: Any, work: Any
) -> tuple[bool, float]:
    n_items, k, weights = out.shape[0], params.k, params.weights
    floor = _FLOOR_RATE * (draw.round + 1.0) ** (-1.0 / 3.0)
    lifted = _audited_list(params, state, draw, work.audited, work)
    block = draw.round // _BLOCK
    safe = state.held
    if state.clock[0] != block + 1:
        _draw_safe_list(params, state, draw, block, work.safe, work)
        safe = work.safe
    lead = state.numbers[_LEAD] * math.sqrt(_LOG_PRIOR / (1.0 + state.numbers[_LEAD_SQUARES]))
    logit = min(max(_LOGIT + lead, -_LARGEST_LOGIT), _LARGEST_LOGIT)
    trust = 1.0 / (1.0 + math.exp(-logit))
    plays_safe = scalar(draw, draw.round, _COIN, 0) < trust
    baseline = 0.0
    for position in range(n_items):
        out[position] = safe[position] if plays_safe else work.audited[position]
        work.place_safe[safe[position]] = position
        work.place_audited[work.audited[position]] = position
        baseline += weights[position] * state.mean[safe[position]]
        baseline -= weights[position] * state.mean[work.audited[position]]
    floored = scalar(draw, draw.round, _FLOOR, 0) < floor
    if floored:
        _lift_anything(draw, out, k)
    propensity = 1.0
    for position in range(k):
        item = out[position]
        there, here = work.place_safe[item], work.place_audited[item]
        propensity = trust * _chance(there, k, n_items, floor)
        propensity += (1.0 - trust) * _chance(here, k, n_items, floor)
        work.note[position] = propensity
        work.note[k + position] = state.mean[item]
        work.note[2 * k + position] = weights[there] - weights[here]
    work.note[3 * k] = baseline
    return lifted or plays_safe or floored, propensity


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
    k, round, numbers = params.k, seen.draw.round, state.numbers
    block = round // _BLOCK
    if block + 1 > state.clock[0]:
        _draw_safe_list(params, state, seen.draw, block, state.held, work)
        state.clock[0] = block + 1
    lead, squares = seen.note[3 * k], 0.0
    for item in range(state.estimates.shape[0]):
        state.estimates[item] += state.mean[item]
    for position in range(k):
        item, chance = seen.ranking[position], seen.note[position]
        gain = gain_of(seen.values[position], params.exponential) / params.largest_gain
        state.estimates[item] += (gain - state.mean[item]) / chance
        correction = (gain - seen.note[k + position]) / chance
        lead += correction * seen.note[2 * k + position]
        squares += correction * correction
    numbers[_VARIANCE] += params.weight * squares + params.drift
    numbers[_LEAD] += lead
    numbers[_LEAD_SQUARES] += lead * lead
    alarm = False
    for position in range(k):
        gain = gain_of(seen.values[position], params.exponential) / params.largest_gain
        if observe(state, seen.ranking[position], gain, round, numbers[_ALARMS]):
            numbers[_ALARMS] += 1.0
            alarm = True
    if alarm:
        doubt_all(state)


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
    by_item: ClassVar[tuple[str, ...] | None] = (*Histograms._fields, "estimates")
    kernel = RankerKernel(_init, _work, _rank, _update, _greedy, note=_note, note_size=_note_size)

    def __init__(self, n_items: int, **game: Unpack[GameFacts]) -> None:
        super().__init__(n_items, **game)
        ftpl.constants(self.measure, self.n_items, self.max_grade)  # refuses other measures
        weights = self.measure.weights(self.n_items) * (-1.0 if self.measure.is_loss else 1.0)
        weights = weights - weights[-1]
        spread, total = float(weights[0]), float(weights.sum())
        positions = np.arange(1, self.n_items + 1)
        weight = spread / math.e / (2.0 if self.k == 1 else 1.0)
        slow = (_BLOCK - 1) * self.n_items * spread / (2.0 * math.e)
        self.params = KeystoneParams(
            self.k,
            self.measure.exponential_gain,
            ftpl.largest_gain(self.measure, self.max_grade),
            np.ascontiguousarray(weights),
            value_table(),
            float((weights * np.log((self.n_items + 1.0) / positions)).sum()),
            weight,
            (_BLOCK + 1) * total / 4.0 + slow,
            max(weight * (self.n_items / _FLOOR_RATE) ** 2, 1e-9),
        )

    @property
    def depth(self) -> int:
        return self.k

    def check_state(self, arrays: Arrays) -> None:
        check_ranking(arrays["held"], self.n_items, "`held` of the state")
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
        sums = arrays["numbers"][[_VARIANCE, _LEAD_SQUARES, _ALARMS]]
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
        known = [there[item] for item in arrays["held"].tolist() if item in there]
        moved["held"] = np.array([*known, *np.flatnonzero(~stay)], dtype=np.int64)
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
