"""Means of what was seen of each item, audited: a change drops the past that it contradicts.

Each item keeps an exponential histogram of its observed gains: buckets of 1, 2, 4, ... of them, at
most three of a size, the oldest first; where there is no room for another one, after 10^10, the two
oldest become one. Every observation tests all splits of it into an older and
a newer part. Where the parts differ by more than chance allows, the older one is dropped, and every
other item doubts its own past as well.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from keyhole.base.errors import FloatArray, IntArray
from keyhole.kernels.compiled import kernel, rare_kernel

MOST_BUCKETS = 96
_OF_A_SIZE = 3
_LARGEST_OF_THREE = 2.0 ** (MOST_BUCKETS // _OF_A_SIZE - 1)
"""Three buckets of each size up to here are all that there are."""
_LEAST_OLDER = 2.0
_SUSPICION = 2.0
_ALARM = 1.5
_KEPT_IN_DOUBT = 2.0
_BLIND = 20.0
_TINY = 1e-9


class Histograms(NamedTuple):
    """What is remembered of each item, bucket by bucket and in total.

    ``counts``, ``sums`` and ``squares`` are by item and bucket, ``n_buckets`` says how many are in
    use; ``n``, ``total`` and ``total_square`` add them up, ``all_n`` and ``all_total`` also what
    was dropped. ``mean`` and ``spread`` are what follows for the gain of an item, and a ``suspect``
    is one that may have changed.
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


def new_histograms(n_items: int) -> Histograms:
    """Return the memory of items that were never seen."""
    shape = (n_items, MOST_BUCKETS)
    return Histograms(
        np.zeros(shape),
        np.zeros(shape),
        np.zeros(shape),
        np.zeros(n_items, np.int64),
        np.zeros(n_items),
        np.zeros(n_items),
        np.zeros(n_items),
        np.zeros(n_items),
        np.zeros(n_items),
        np.full(n_items, 0.5),
        np.full(n_items, 0.5),
        np.zeros(n_items, np.int64),
    )


def odd_items(counts: FloatArray, n_buckets: IntArray) -> IntArray:
    """Return the items whose buckets are none that observations fill.

    Sizes halve, down to 1, but for an oldest bucket that others were merged into for room.
    """
    used = np.arange(MOST_BUCKETS) < n_buckets[:, None]
    newest = counts[np.arange(len(counts)), np.maximum(n_buckets - 1, 0)]
    pairs = (counts[:, :-1] == counts[:, 1:]) | (counts[:, :-1] == 2.0 * counts[:, 1:])
    oldest, next_one = counts[:, 0], counts[:, 1]
    is_merged = (oldest >= next_one) & (oldest % _LARGEST_OF_THREE == 0.0)
    pairs[:, 0] |= is_merged & (next_one >= _LARGEST_OF_THREE)
    too_many = (counts[:, :-_OF_A_SIZE] == counts[:, _OF_A_SIZE:]) & used[:, _OF_A_SIZE:]
    odd = (n_buckets > 0) & (newest != 1.0)
    odd |= (~pairs & used[:, 1:]).any(axis=1) | too_many.any(axis=1)
    return np.flatnonzero(odd)


@kernel
def _divergence(p: float, q: float) -> float:
    """Return the relative entropy of two coins."""
    value = 0.0  # p is a difference of sums, and may be off [0, 1] by rounding
    if p > 0.0:
        value += p * math.log(p / q)
    if p < 1.0:
        value += (1.0 - p) * math.log((1.0 - p) / (1.0 - q))
    return value


@kernel
def judge(memory: Any, item: int, blind: float) -> None:
    """Work out mean and spread of an item: what was dropped of its past is its prior.

    The prior weighs two observations, and more where one is ``blind`` for the present.
    """
    n, weight, prior = memory.n[item], 1.0, 0.5
    if memory.all_n[item] > n:
        weight = 2.0 + blind
        prior = (memory.all_total[item] + 0.5) / (memory.all_n[item] + 1.0)
    memory.mean[item] = (memory.total[item] + weight * prior) / (n + weight)
    centre = (memory.total[item] + 0.5) / (n + 1.0)
    variance = (memory.total_square[item] + 0.5) / (n + 1.0) - centre * centre
    memory.spread[item] = math.sqrt(max(variance, 1e-12) / (n + weight))


@rare_kernel
def _merge_oldest(memory: Any, item: int) -> None:
    """Make one bucket of the two oldest: what is that old need not be told apart."""
    for parts in (memory.counts[item], memory.sums[item], memory.squares[item]):
        parts[0] += parts[1]
        for place in range(1, MOST_BUCKETS - 1):
            parts[place] = parts[place + 1]
    memory.n_buckets[item] -= 1


@kernel
def _put(memory: Any, item: int, gain: float) -> None:
    """Add an observation, and merge the two oldest buckets of a size of which there are four."""
    counts, sums, squares = memory.counts[item], memory.sums[item], memory.squares[item]
    if memory.n_buckets[item] == MOST_BUCKETS:
        _merge_oldest(memory, item)
    used = memory.n_buckets[item]
    counts[used], sums[used], squares[used] = 1.0, gain, gain * gain
    used += 1
    last = used - 1
    while last >= _OF_A_SIZE and counts[last] == counts[last - _OF_A_SIZE]:
        first = last - _OF_A_SIZE
        counts[first] += counts[first + 1]
        sums[first] += sums[first + 1]
        squares[first] += squares[first + 1]
        for place in range(first + 1, used - 1):
            counts[place] = counts[place + 1]
            sums[place] = sums[place + 1]
            squares[place] = squares[place + 1]
        used -= 1
        last = first
    memory.n_buckets[item] = used
    memory.n[item] += 1.0
    memory.total[item] += gain
    memory.total_square[item] += gain * gain
    memory.all_n[item] += 1.0
    memory.all_total[item] += gain


@kernel
def _drop_oldest(memory: Any, item: int, n_dropped: int) -> None:
    counts, sums, squares = memory.counts[item], memory.sums[item], memory.squares[item]
    used = memory.n_buckets[item] - n_dropped
    n = total = total_square = 0.0
    for place in range(used):
        counts[place] = counts[place + n_dropped]
        sums[place] = sums[place + n_dropped]
        squares[place] = squares[place + n_dropped]
        n += counts[place]
        total += sums[place]
        total_square += squares[place]
    memory.n_buckets[item] = used
    memory.n[item], memory.total[item], memory.total_square[item] = n, total, total_square


@kernel
def _best_split(memory: Any, item: int, least: float) -> tuple[float, int]:
    """Return how surely an item has changed, and how many of its oldest buckets are of before.

    What is below ``least`` counts as 0.
    """
    counts, sums = memory.counts[item], memory.sums[item]
    n, total = memory.n[item], memory.total[item]
    mean = total / n
    variance = max(memory.total_square[item] / n - mean * mean, 0.0)
    of_coins = max(mean * (1.0 - mean), _TINY)
    # Gains of more than two grades vary less than coins of their mean, and tell more.
    scale = max((n * of_coins + 0.25) / (n * variance + 0.25), 1.0)
    centre = min(max(mean, _TINY), 1.0 - _TINY)
    older = older_total = best = 0.0
    n_older = 0
    for place in range(memory.n_buckets[item] - 1):
        older += counts[place]
        older_total += sums[place]
        newer = n - older
        gap = older_total * n - total * older
        # The divergence is at most the squared gap over the variance: most splits stop here.
        if older < _LEAST_OLDER or scale * gap * gap <= least * n * of_coins * older * newer:
            continue
        surety = scale * (
            older * _divergence(older_total / older, centre)
            + newer * _divergence((total - older_total) / newer, centre)
        )
        if surety > best:
            best, n_older = surety, place + 1
    return best, n_older


@rare_kernel
def _doubt(memory: Any, blind: float) -> None:
    """Let every item keep only its newest observations, two at least."""
    for item in range(memory.n.shape[0]):
        kept, first = 0.0, memory.n_buckets[item]
        while first > 0 and kept < _KEPT_IN_DOUBT:
            first -= 1
            kept += memory.counts[item, first]
        if first > 0:
            _drop_oldest(memory, item, first)
        memory.suspect[item] = 0
        judge(memory, item, blind)


@kernel
def blindness(alarms: float, unanswered: float, round: int) -> float:
    """Return how much more the past weighs where each change went unanswered for so many rounds."""
    return _BLIND * alarms * max(unanswered, 0.0) / (round + 1.0)


@kernel
def regime_length(round: int, alarms: float) -> float:
    """Return for how long the crowd is taken to have been as it is."""
    return (round + 1.0) / (1.0 + alarms / 5.0)


@kernel
def observe(memory: Any, item: int, gain: float, round: int, alarms: float, blind: float) -> bool:
    """Learn one gain of an item, and return whether it shows a change."""
    _put(memory, item, gain)
    length = regime_length(round, alarms)
    # After three rounds an alarm needs more than suspicion, and what is below that is no concern.
    surety, n_older = _best_split(memory, item, _SUSPICION if length >= 3.0 else 0.0)
    alarm = False
    if surety > 0.0:
        patience = 1.0 + alarms / (4.0 * (round + 1.0) ** (1.0 / 3.0))
        alarm = surety > _ALARM * math.log(length + 1.0) * patience
    if alarm:
        _drop_oldest(memory, item, n_older)
    memory.suspect[item] = 1 if surety > _SUSPICION and not alarm else 0
    judge(memory, item, blind)
    return alarm


@kernel
def doubt_all(memory: Any, blind: float) -> None:
    """Let every item doubt its past, after one of them has changed."""
    _doubt(memory, blind)
