"""What the best fixed ranking in hindsight would have scored, kept while a game is played.

A comparator sums what it needs of each round (``observe``) and can say at any moment what
the best fixed ranking of the rounds so far has scored in total (``best``). For linear
measures the sums are gains per item, and sorting them is optimal (``sorted``); for the others
they are the totals of all m! rankings (``exhaustive``). Average precision is a sum over pairs of
items, so that lists too long for that are searched from the items' totals on: what is
found need not be the best, and regret against it is a lower bound (``local``).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from keyhole.base.errors import (
    MAX_ROUND,
    FloatArray,
    IntArray,
    InvalidInput,
    check_integer,
    check_seed,
)
from keyhole.contracts.measures import Measure, MeasureParams, measure_work
from keyhole.contracts.worlds import World
from keyhole.kernels.compiled import assemble, kernel, rare_kernel
from keyhole.kernels.draw import WORLD_STREAM, Draw, stream_of
from keyhole.kernels.sorting import SortWork, sort_descending, sort_work
from keyhole.measures import measure as named_measure
from keyhole.measures.ap import AP
from keyhole.rankers.fixed.enumerated import all_rankings

LARGEST_EXHAUSTIVE = 8
"""Longest list whose rankings are tried one by one."""
LARGEST_SEARCHED = 200
"""Longest list whose pairs of items are kept, for measures that are sums over pairs."""
_ROUNDING = 1e-12
_SEGMENT_WORK = 4_000_000
"""Items looked at in one call of compiled code: part of a second."""


class ComparatorParams(NamedTuple):
    """The measure's parameters, all rankings if they are enumerated, and +1 for losses."""

    measure: MeasureParams
    rankings: Any
    sign: float


class Sums(NamedTuple):
    """Sums over the rounds so far; ``offset[0]`` is what no ranking can change."""

    sums: Any
    offset: Any
    order: Any
    sort: SortWork


def new_sums(n_sums: int) -> Sums:
    """Return empty sums."""
    order = np.empty(n_sums, np.int64)
    return Sums(np.zeros(n_sums), np.zeros(1), order, sort_work(n_sums))


@kernel
def _add_gains(params: Any, gains: Any, offset: float, norm: float, to: Any) -> None:
    to.offset[0] += offset / norm
    if norm == 1.0:
        for item in range(gains.shape[0]):
            to.sums[item] += gains[item]
    else:
        for item in range(gains.shape[0]):
            to.sums[item] += gains[item] / norm


@rare_kernel
def _best_sorted(params: Any, of: Any) -> float:
    sort_descending(of.sums, of.order, of.sort)
    total = of.offset[0]
    for position in range(of.sums.shape[0]):
        total += params.measure.weights[position] * of.sums[of.order[position]]
    return total


@rare_kernel
def _best_of_all(params: Any, of: Any) -> float:
    best = of.sums[0]
    for action in range(1, of.sums.shape[0]):
        if params.sign * of.sums[action] < params.sign * best:
            best = of.sums[action]
    return best


@kernel
def _add_pairs(params: Any, gains: Any, offset: float, norm: float, to: Any) -> None:
    # APLoss is 1 less AP, and what no ranking changes is 1 less that of AP.
    to.offset[0] += offset / norm if params.sign < 0.0 else 1.0 - offset / norm
    n_items = gains.shape[0]
    for item in range(n_items):
        if gains[item] != 0.0:
            for other in range(n_items):
                to.sums[item * n_items + other] += gains[item] * gains[other] / norm


@kernel
def _precision_weight(params: Any, position: int) -> float:
    """Return the weight of the pairs whose lower item is at a position."""
    return 1.0 / (position + 1.0) if position < params.measure.depth else 0.0


@kernel
def _sort_by_own_pair(of: Any, n_items: int) -> None:
    """Begin with the items in the order of their totals, by insertion."""
    for item in range(n_items):
        place = item
        while place > 0:
            above = of.order[place - 1]
            if of.sums[above * n_items + above] >= of.sums[item * n_items + item]:
                break
            of.order[place] = above
            place -= 1
        of.order[place] = item


@kernel
def _sum_above(of: Any, n_items: int) -> None:
    """Fill the scratch: for the item at each position its pairs with itself and those above."""
    for position in range(n_items):
        item, total = of.order[position], 0.0
        for place in range(position + 1):
            total += of.sums[item * n_items + of.order[place]]
        of.sums[n_items * n_items + position] = total


@kernel
def _best_place(params: Any, of: Any, n_items: int, start: int) -> tuple[int, float]:
    """Return where to move the item at a position, and what that adds.

    An exchange of neighbours changes the pairs of these two with those above alone, and not the
    pair that they are.
    """
    item, above = of.order[start], n_items * n_items
    best, most = start, 0.0
    for step in (-1, 1):
        own, gained, place = of.sums[above + start], 0.0, start
        while 0 <= place + step < n_items:
            other = of.order[place + step]
            pair = of.sums[item * n_items + other]
            others = of.sums[above + place + step] - (pair if step > 0 else 0.0)
            own -= pair if step < 0 else 0.0
            upper = min(place, place + step)
            change = _precision_weight(params, upper) - _precision_weight(params, upper + 1)
            gained += step * change * (others - own)
            own += pair if step > 0 else 0.0
            place += step
            if gained > most:
                best, most = place, gained
    return best, most


@rare_kernel
def _search(params: Any, of: Any, n_items: int) -> None:
    """Move one item at a time to its best place until no move adds anything."""
    _sort_by_own_pair(of, n_items)
    _sum_above(of, n_items)
    least = _ROUNDING * of.sums[n_items * n_items]  # of the largest total of an item
    improved = True
    while improved:
        improved = False
        for start in range(n_items):
            place, gained = _best_place(params, of, n_items, start)
            if gained > least:
                improved = True
                item, step = of.order[start], 1 if place > start else -1
                for position in range(start, place, step):
                    of.order[position] = of.order[position + step]
                of.order[place] = item
                _sum_above(of, n_items)


@rare_kernel
def _best_found(params: Any, of: Any) -> float:
    n_items, total = params.measure.weights.shape[0], 0.0
    _search(params, of, n_items)
    for position in range(n_items):
        total += _precision_weight(params, position) * of.sums[n_items * n_items + position]
    return of.offset[0] - params.sign * total


@kernel
def _add_nothing(params: Any, gains: Any, offset: float, norm: float, to: Any) -> None:
    pass


@kernel
def _unknown(params: Any, of: Any) -> float:
    return np.nan


def _score_all(score: Any) -> Callable[..., None]:
    def add_scores(params: Any, gains: Any, offset: float, norm: float, to: Any) -> None:
        for action in range(params.rankings.shape[0]):
            to.sums[action] += score(params.measure, gains, offset, norm, params.rankings[action])

    return add_scores


@dataclass(frozen=True)
class Comparator:
    """The kernels and parameters that keep track of the best fixed ranking."""

    kind: str
    observe: Callable[..., None]
    best: Callable[..., float]
    params: ComparatorParams
    n_sums: int

    def best_ranking(self, sums: FloatArray) -> IntArray:
        """Return the ranking that :attr:`best` scores."""
        if self.kind == "sorted":
            return np.argsort(-sums, kind="stable").astype(np.int64)
        if self.kind == "local":
            found, n_items = new_sums(self.n_sums), len(self.params.measure.weights)
            found.sums[:] = sums
            _search(self.params, found, n_items)
            return np.asarray(found.order[:n_items])
        return np.asarray(self.params.rankings[int(np.argmin(self.params.sign * sums))])

    def scores_of(self, ranking: IntArray, sums: FloatArray, offsets: FloatArray) -> FloatArray:
        """Return what one ranking has scored in total, for each row of sums."""
        if self.kind == "sorted":
            weights = self.params.measure.weights
            return np.asarray(sums[:, ranking] @ weights + offsets)
        if self.kind == "local":
            n_items = len(ranking)
            weights = [_precision_weight(self.params, position) for position in range(n_items)]
            pairs = sums[:, : n_items**2].reshape(-1, n_items, n_items)
            above = np.tril(pairs[:, ranking][:, :, ranking]).sum(axis=2)
            return np.asarray(offsets - self.params.sign * (above @ weights))
        row = int(np.flatnonzero((self.params.rankings == ranking).all(axis=1))[0])
        return np.asarray(sums[:, row])


def comparator_for(
    measure: Measure, n_items: int, binary: bool, *, changing: bool = False
) -> Comparator:
    """Return the comparator of a measure: exact, found by search, or NaN where none is feasible.

    ``changing``: lists change with every query, and no ranking is the same item's twice.
    """
    sign = 1.0 if measure.is_loss else -1.0
    params = measure.params(n_items)
    none = np.empty((0, n_items), dtype=np.int64)
    if changing:
        return Comparator("none", _add_nothing, _unknown, ComparatorParams(params, none, sign), 1)
    if measure.is_linear(binary):
        given = ComparatorParams(params, none, sign)
        return Comparator("sorted", _add_gains, _best_sorted, given, n_items)
    if n_items <= LARGEST_EXHAUSTIVE:
        rankings = all_rankings(n_items)
        given = ComparatorParams(params, rankings, sign)
        observe = assemble(_score_all, measure.kernel_for(binary).score)
        return Comparator("exhaustive", observe, _best_of_all, given, len(rankings))
    given = ComparatorParams(params, none, sign)
    if isinstance(measure, AP) and n_items <= LARGEST_SEARCHED:
        n_sums = n_items**2 + n_items  # the last ones are scratch memory of the search
        return Comparator("local", _add_pairs, _best_found, given, n_sums)
    return Comparator("none", _add_nothing, _unknown, given, 1)


def _crowd_loop(relevance_of: Any, prepare: Any, observe: Any) -> Callable[..., None]:
    def observe_rounds(
        params: Any,
        seed: int,
        run: int,
        first: int,
        end: int,
        relevance: Any,
        gains: Any,
        sums: Any,
        scratch: Any,
    ) -> None:
        world_params, measure_params, comparator_params = params
        stream = stream_of(WORLD_STREAM, run)
        for t in range(first, end):
            relevance_of(world_params, Draw(seed, stream, t), relevance)
            offset, norm = prepare(measure_params, relevance, gains, scratch)
            observe(comparator_params, gains, offset, norm, sums)

    return observe_rounds


def best_fixed(
    world: World,
    *,
    measure: str | Measure = "DCG",
    rounds: int,
    seed: int = 0,
    run: int = 0,
) -> IntArray:
    """Return the best fixed ranking in hindsight of the users that a game would meet.

    Worlds do not react to rankings, so it can be known before the game is played. For average
    precision of more than 8 items it is the best that a search finds.

    Examples
    --------
    >>> from keyhole import Flips, best_fixed
    >>> sorted(best_fixed(Flips(5, n_relevant=2), rounds=200)[:2].tolist())
    [3, 4]
    """
    measure = named_measure(measure)
    if world.n_features:
        raise InvalidInput("A best fixed ranking is of one fixed list, not of lists that change.")
    comparator = comparator_for(measure, world.n_items, world.is_binary)
    if comparator.kind == "none":
        raise InvalidInput(
            f"The best fixed ranking for {measure.label} is found by trying all rankings, which "
            f"takes a list of at most {LARGEST_EXHAUSTIVE} items (for AP: by a search, at most "
            f"{LARGEST_SEARCHED}), got {world.n_items}."
        )
    sums = new_sums(comparator.n_sums)
    prepare = measure.kernel_for(world.is_binary).prepare
    observe_rounds = assemble(_crowd_loop, world.kernel.relevance, prepare, comparator.observe)
    params = (world.params, measure.params(world.n_items), comparator.params)
    scratch = (np.empty(world.n_items), np.empty(world.n_items), sums, measure_work(world.n_items))
    seed = check_seed(seed)
    rounds = check_integer(rounds, "`rounds`", at_least=1, at_most=world.length or MAX_ROUND - 1)
    step = max(1, _SEGMENT_WORK // max(world.n_items, comparator.n_sums))
    for first in range(0, rounds, step):  # between them an interrupt is heard
        observe_rounds(params, seed, run, first, min(first + step, rounds), *scratch)
    return comparator.best_ranking(sums.sums)
