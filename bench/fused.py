"""The tight loop for machines without a C++ compiler: the game fused by hand, in Numba."""

from typing import Any

import numba
import numpy as np

from bench.setup import Setup
from bench.tight import Curves
from keyhole.kernels.draw import RANKER_STREAM, WORLD_STREAM, Draw, start, to_unit, word
from keyhole.kernels.sorting import sort_descending, sort_work

_TIMES, _CELLS, _ITEMS, _FLIPS, _NOISE = 0, 1, 2, 0, 16


@numba.njit(nogil=True, error_model="numpy")
def _plan(draw: Any, first: int, end: int, times: Any, shown: Any, keys: Any, work: Any) -> None:
    m, chosen = shown.shape[0], 0
    begin = start(draw, first, _TIMES)
    for time in range(end - first):
        if chosen < m and to_unit(word(begin, time)) * (end - first - time) < m - chosen:
            times[chosen] = first + time
            chosen += 1
    cells, items = np.arange(m), np.empty(m, np.int64)
    begin = start(draw, first, _CELLS)
    for last in range(m - 1, 0, -1):
        other = int(to_unit(word(begin, last)) * (last + 1))
        cells[last], cells[other] = cells[other], cells[last]
    begin = start(draw, first, _ITEMS)
    for item in range(m):
        keys[item] = to_unit(word(begin, item))
    sort_descending(keys, items, work)
    for cell in range(m):
        shown[cell] = items[cells[cell]]


@numba.njit(nogil=True, error_model="numpy")
def _play(
    rounds: int,
    seed: int,
    n_blocks: int,
    rate: float,
    flip: float,
    truth: Any,
    weights: Any,
    checkpoints: Any,
    work: Any,
    scores: Any,
    best: Any,
) -> None:
    m = truth.shape[0]
    gains, keys, base, sums = np.empty(m), np.empty(m), np.zeros(m), np.zeros(m)
    totals, pending = np.zeros(m), np.zeros(m)
    order, times, shown = np.empty(m, np.int64), np.full(m + 1, -1), np.empty(m, np.int64)
    total, cursor, t = 0.0, 0, 0
    for block in range(n_blocks):
        # Blocks differ in length by at most one round, the longer ones first.
        first = block * (rounds // n_blocks) + min(block, rounds % n_blocks)
        end = first + rounds // n_blocks + (1 if block < rounds % n_blocks else 0)
        _plan(Draw(seed, RANKER_STREAM, first), first, end, times, shown, keys, work)
        following = 0
        for item in range(m):
            totals[item] += pending[item]
            pending[item] = 0.0
            base[item] = rate * totals[item]
        for t in range(first, end):
            users = start(Draw(seed, WORLD_STREAM, t), t, _FLIPS)
            noise = start(Draw(seed, RANKER_STREAM, t), t, _NOISE)
            for item in range(m):
                flipped = 1.0 if to_unit(word(users, item)) < flip else 0.0
                gains[item] = abs(truth[item] - flipped)
                sums[item] += gains[item]
            for item in range(m):
                keys[item] = base[item] + to_unit(word(noise, item))
            sort_descending(keys, order, work)
            if times[following] == t:
                top = shown[following]
                following += 1
                pending[top] += gains[top]
                place, moved = 0, top
                while order[place] != top:
                    order[place], moved = moved, order[place]
                    place += 1
                order[place] = moved
            for position in range(m):
                total += weights[position] * gains[order[position]]
            if t + 1 == checkpoints[cursor]:
                scores[cursor] = total
                sort_descending(sums, order, work)
                best[cursor] = 0.0
                for position in range(m):
                    best[cursor] += weights[position] * sums[order[position]]
                cursor += 1


def play_fused(setup: Setup) -> Curves:
    """Play the game and return its curves."""
    n_points = len(setup.checkpoints)
    curves = Curves(np.empty(n_points), np.empty(n_points))
    _play(
        setup.rounds,
        setup.seed,
        setup.ranker.n_blocks,
        setup.ranker.rate,
        setup.world.flip,
        setup.world.truth,
        setup.weights,
        setup.checkpoints,
        sort_work(setup.n_items),
        curves.scores,
        curves.best,
    )
    return curves
