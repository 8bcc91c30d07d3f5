"""A10: NeighborhoodWatch2 for measures that count the first n positions alike."""

import itertools
import math
from typing import Any, ClassVar, NamedTuple, Self, Unpack

import numpy as np

from keyhole.base.errors import IntArray, InvalidInput
from keyhole.bounds import ftpl, precision
from keyhole.contracts.rankers import RankerKernel
from keyhole.contracts.rows import ANY_CROWD, DASHED, Guarantee, Look
from keyhole.kernels.compiled import kernel, rare_kernel
from keyhole.kernels.draw import uniform, uniforms
from keyhole.kernels.sorting import SortWork, sort_descending, sort_work
from keyhole.rankers.fixed.base import (
    Arrays,
    Epochs,
    FixedListRanker,
    GameFacts,
    Tuning,
    enter_epoch,
    epoch_of,
    epochs,
    gain_of,
)

_REST, _MEMBERS = 0, 1
_MOST_SETS = 70
_LEAST_WEIGHT = 1e-15


class NeighbourhoodParams(NamedTuple):
    """The sets, as bits and as items, and their neighbours.

    Neighbour e of set A is ``neighbour[A, e]``: item ``leaves[A, e]`` gives way to ``joins[A, e]``.
    """

    epochs: Epochs
    exponential: bool
    largest_gain: float
    n_counted: int
    bits: Any
    neighbour: Any
    leaves: Any
    joins: Any


class NeighbourhoodState(NamedTuple):
    """By set and neighbour, in a row: how much worse the neighbour was, as far as is known."""

    clock: Any
    totals: Any


class NeighbourhoodWork(NamedTuple):
    """Scratch memory, and the note of the last ranking."""

    zeros: Any
    moves: Any
    chances: Any
    keys: Any
    order: Any
    sort: SortWork


def _init(params: Any, n_items: int, n_features: int) -> NeighbourhoodState:
    return NeighbourhoodState(np.zeros(1, np.int64), np.zeros(params.neighbour.size))


def _work(params: Any, n_items: int) -> NeighbourhoodWork:
    n_sets = len(params.bits)
    return NeighbourhoodWork(
        np.zeros(params.neighbour.size),
        np.empty((n_sets, n_sets)),
        np.empty(n_sets),
        np.empty(n_items),
        np.empty(n_items, np.int64),
        sort_work(n_items),
    )


def _note_size(params: Any) -> int:
    return len(params.bits)


@kernel
def _note(params: Any, work: Any, out: Any) -> None:
    for place in range(out.shape[0]):
        out[place] = work.chances[place]


@rare_kernel
def fill_moves(params: Any, rate: float, totals: Any, moves: Any) -> None:
    """Fill Q: each set moves to a neighbour, or stays, by exponential weights of what is known."""
    n_sets, n_neighbours = params.neighbour.shape
    for index in range(n_sets):
        first, largest = index * n_neighbours, 0.0  # to stay counts as 0
        for e in range(n_neighbours):
            largest = max(largest, -rate * totals[first + e])
        total = max(math.exp(-largest), _LEAST_WEIGHT)
        for other in range(n_sets):
            moves[index, other] = 0.0
        for e in range(n_neighbours):
            weight = max(math.exp(-rate * totals[first + e] - largest), _LEAST_WEIGHT)
            moves[index, params.neighbour[index, e]] = weight
            total += weight
        for other in range(n_sets):
            moves[index, other] /= total


@rare_kernel
def settle(moves: Any, out: Any) -> None:
    """Fill ``out`` with the stationary distribution of moves, by elimination without subtraction.

    Of Grassmann, Taksar and Heyman: states are taken out one by one, the last first. To stay is
    never looked at.
    """
    n_sets = moves.shape[0]
    for last in range(n_sets - 1, 0, -1):
        leaving = 0.0
        for other in range(last):
            leaving += moves[last, other]
        for index in range(last):
            moves[index, last] /= leaving
            for other in range(last):
                moves[index, other] += moves[index, last] * moves[last, other]
    out[0] = total = 1.0
    for index in range(1, n_sets):
        out[index] = 0.0
        for other in range(index):
            out[index] += out[other] * moves[other, index]
        total += out[index]
    for index in range(n_sets):
        out[index] /= total


@kernel
def _chance(params: Any, mix: float, settled: float) -> float:
    """Return how likely a set is to be shown with a given one of its items on top."""
    return ((1.0 - mix) * settled + mix / params.bits.shape[0]) / params.n_counted


@kernel
def _total_with(params: Any, mix: float, chances: Any, wanted: int) -> float:
    """Return the chances of all sets that hold some items, each with a given one on top."""
    total = 0.0
    for index in range(chances.shape[0]):
        if params.bits[index] & wanted == wanted:
            total += _chance(params, mix, chances[index])
    return total


@kernel
def _rank(
    params: Any, state: Any, draw: Any, features: Any, out: Any, work: Any
) -> tuple[bool, float]:
    epoch = epoch_of(params.epochs, draw.round)
    totals = state.totals if epoch == state.clock[0] else work.zeros
    fill_moves(params, params.epochs.rates[epoch], totals, work.moves)
    settle(work.moves, work.chances)
    mix = params.epochs.mixes[epoch]
    # A set with one of its items on top is drawn item by item, the top one first, each in
    # proportion to the chances of what it may become a part of: all draws belong to items.
    uniforms(draw, _REST, work.keys)
    held = 0
    propensity = 1.0
    for position in range(params.n_counted):
        best, chosen, weight = -math.inf, 0, 1.0
        for item in range(out.shape[0]):
            bit = 1 << item
            if held & bit == 0:
                total = _total_with(params, mix, work.chances, held | bit)
                number = uniform(draw, _MEMBERS + position, item)
                key = math.log(total) - math.log(-math.log(number))
                if key > best:
                    best, chosen, weight = key, item, total
        held |= 1 << chosen
        if position == 0:
            propensity = weight
        work.keys[chosen] = 1.0 + params.n_counted - position
    sort_descending(work.keys, out, work.sort)
    return True, propensity


@kernel
def _update(params: Any, state: Any, seen: Any, work: Any) -> None:
    if not enter_epoch(params.epochs, seen.draw.round, state.clock, state.totals):
        return
    epoch = state.clock[0]
    mix, rate = params.epochs.mixes[epoch], params.epochs.rates[epoch]
    gain = gain_of(seen.values[0], params.exponential) / params.largest_gain
    top, shown = seen.ranking[0], 0
    for position in range(params.n_counted):
        shown |= 1 << seen.ranking[position]
    n_sets, n_neighbours = params.neighbour.shape
    for index in range(n_sets):
        settled = seen.note[index]
        own = _chance(params, mix, settled)
        for e in range(n_neighbours):
            other = params.neighbour[index, e]
            theirs = _chance(params, mix, seen.note[other])
            estimate = 0.0
            if params.bits[index] == shown and params.leaves[index, e] == top:
                estimate = settled * gain / own
            elif params.bits[other] == shown and params.joins[index, e] == top:
                estimate = -settled * gain / theirs
            bonus = rate * settled * settled * (1.0 / own + 1.0 / theirs)
            state.totals[index * n_neighbours + e] += estimate - bonus


@kernel
def _greedy(params: Any, state: Any, features: Any, out: Any, work: Any) -> None:
    """Sort by the chance to be among the first n."""
    fill_moves(params, params.epochs.rates[state.clock[0]], state.totals, work.moves)
    settle(work.moves, work.chances)
    for item in range(out.shape[0]):
        work.keys[item] = _total_with(params, 0.0, work.chances, 1 << item)
    sort_descending(work.keys, out, work.sort)


def neighbours_of(sets: IntArray, n_items: int) -> tuple[IntArray, IntArray, IntArray]:
    """Return, by set, its neighbours and the items that leave and join on the way to them."""
    index_of = {frozenset(items): index for index, items in enumerate(sets.tolist())}
    rows = []
    for items in sets.tolist():
        others = [item for item in range(n_items) if item not in items]
        rows.append(
            [
                (index_of[frozenset(items) - {leaves} | {joins}], leaves, joins)
                for leaves in items
                for joins in others
            ]
        )
    table = np.array(rows, dtype=np.int64).reshape(len(sets), -1, 3)
    return tuple(np.ascontiguousarray(table[:, :, part]) for part in range(3))  # type: ignore[return-value]


class NeighbourhoodWatch(FixedListRanker):
    """Compare every set of n items with its neighbours, which differ in one, for small lists.

    Parameters
    ----------
    n_items, game
        See :class:`~keyhole.rankers.fixed.base.GameFacts`; only the first position is looked at,
        whatever ``k``. The measure must count the first n positions alike and no other:
        Precision@n (by default Precision@1). There may be at most 70 sets of n items.

    Notes
    -----
    A10, NeighborhoodWatch2 of Lattimore & Szepesvari (2019) with the tuning of their book: each
    set keeps exponential weights over its neighbours, and sets are shown by the stationary
    distribution of the moves between them, mixed with uniform ones. Regret is of order
    sqrt(T log T), with K = n C(m, n) actions: a set with one of its items on top. It costs
    O(C(m, n)^3) a round, and is here to compare ``semibandit`` with.

    Deviations: actions with one top set are equally likely, in place of the paper's redistribution
    (they have equal losses); gains in place of losses, which changes the sign of an estimate only;
    weights of moves are at least 1e-15 of the largest. Epochs double without a horizon.

    References
    ----------
    Lattimore & Szepesvari, "Cleaning up the neighborhood", 2019; Bandit Algorithms, chapter 37.

    Examples
    --------
    >>> ranker = NeighbourhoodWatch(4, measure="Precision@2", horizon=1000)
    >>> round(ranker.rate, 4), round(ranker.mix, 3)
    (0.028, 0.336)
    >>> NeighbourhoodWatch(20, measure="Precision@5")
    Traceback (most recent call last):
    ...
    keyhole.base.errors.InvalidInput: `n_items` of NeighbourhoodWatch must leave at most 70 sets \
of 5 items, got 20, which leaves 15504.
    """

    label = "Neighbourhood watch"
    look = Look("#8A8A00", DASHED, "<")
    guarantee = Guarantee(
        1 / 2, f"{ANY_CROWD}, for Precision@n of small games", "Lattimore & Szepesvári 2019"
    )
    needs_gain_per_item: ClassVar[bool] = True
    shared_settings: ClassVar[dict[str, Any]] = {
        **FixedListRanker.shared_settings,
        "measure": "Precision@1",
    }
    by_item: ClassVar[tuple[str, ...] | None] = ("totals",)
    kernel = RankerKernel(_init, _work, _rank, _update, _greedy, note=_note, note_size=_note_size)

    def __init__(self, n_items: int, **game: Unpack[GameFacts]) -> None:
        super().__init__(n_items, **game)
        n_counted = precision.n_counted(self.measure, self.n_items, "NeighbourhoodWatch")
        n_sets = math.comb(self.n_items, n_counted)
        if n_sets > _MOST_SETS:
            raise InvalidInput(
                f"`n_items` of NeighbourhoodWatch must leave at most {_MOST_SETS} sets of "
                f"{n_counted} items, got {self.n_items}, which leaves {n_sets}."
            )
        self.sets = np.array(
            list(itertools.combinations(range(self.n_items), n_counted)), dtype=np.int64
        )
        n_actions = n_counted * n_sets

        def tune(length: int) -> Tuning:
            eta = math.sqrt(math.log(n_actions * length) / (length * n_actions))
            return Tuning(rate=eta, mix=min(n_actions * eta, 1.0))

        table = epochs(self.horizon, tune)
        self.rate, self.mix = float(table.rates[0]), float(table.mixes[0])
        self.params = NeighbourhoodParams(
            table,
            self.measure.exponential_gain,
            ftpl.largest_gain(self.measure, self.max_grade),
            n_counted,
            (1 << self.sets).sum(axis=1),
            *neighbours_of(self.sets, self.n_items),
        )

    @property
    def depth(self) -> int:
        return 1

    def carried(
        self, arrays: Arrays, other: Self, where: IntArray, newcomers: float | None = None
    ) -> dict[str, Any]:
        """Keep what is known of sets and neighbours whose items all stay; the mean is new."""
        totals = arrays["totals"]
        with np.errstate(over="ignore"):  # what is not finite is refused by whoever asks
            mean = float(totals.mean()) if len(totals) else 0.0
        fill = mean if newcomers is None else newcomers
        known = dict(zip(_moves(self, np.arange(self.n_items)), totals.tolist(), strict=True))
        moved = [known.get(move, fill) for move in _moves(other, where)]
        return {**{name: array.copy() for name, array in arrays.items()}, "totals": moved}


def _moves(ranker: NeighbourhoodWatch, where: IntArray) -> list[tuple[tuple[int, ...], int, int]]:
    """Return every set with what leaves and joins it, by the items' indices elsewhere."""
    leaves, joins = where[ranker.params.leaves], where[ranker.params.joins]
    return [
        (tuple(sorted(where[ranker.sets[index]].tolist())), int(leave), int(join))
        for index in range(len(ranker.sets))
        for leave, join in zip(leaves[index], joins[index], strict=True)
    ]
