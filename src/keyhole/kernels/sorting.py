"""Stable descending order of an array of keys, ties by lowest index.

Numba's own ``argsort`` would make the compiled game slower than plain NumPy.
Short lists are ranked by counting how many keys are larger, which vectorises;
long ones go through one pass of equal-width buckets, in expected linear time for
the noisy keys of a game and O(m log m) whatever the keys.
"""

from typing import Any, NamedTuple

import numpy as np

from keyhole.kernels.compiled import kernel, rare_kernel

_VECTOR = 8
_ROWS_LIMIT = 16
_COUNTING_LIMIT = 64
_INSERTION_LIMIT = 24
_BUCKETS_PER_ITEM = 2


class SortWork(NamedTuple):
    """Scratch memory of :func:`sort_descending`; no result depends on its content."""

    buckets: Any
    counts: Any
    spare: Any
    sorted_keys: Any


def sort_work(n_items: int) -> SortWork:
    """Allocate the scratch memory for lists of up to ``n_items``."""
    return SortWork(
        np.empty(n_items + _VECTOR, np.uint32),
        np.empty(_BUCKETS_PER_ITEM * n_items + 2, np.uint32),
        np.empty(n_items, np.int64),
        np.empty(n_items + _VECTOR, np.float64),
    )


@rare_kernel
def _insertion(keys: Any, order: Any, low: int, high: int) -> None:
    for place in range(low + 1, high):
        item = order[place]
        key = keys[item]
        free = place
        while free > low and keys[order[free - 1]] < key:
            order[free] = order[free - 1]
            free -= 1
        order[free] = item


@rare_kernel
def _merge(keys: Any, order: Any, spare: Any, low: int, high: int) -> None:
    """Sort ``order[low:high]`` by insertion in runs, then bottom-up merging."""
    run = _INSERTION_LIMIT
    for begin in range(low, high, run):
        _insertion(keys, order, begin, min(begin + run, high))
    while run < high - low:
        for begin in range(low, high, 2 * run):
            middle, end = min(begin + run, high), min(begin + 2 * run, high)
            left, right = begin, middle
            for place in range(begin, end):
                take_left = right >= end or (
                    left < middle and keys[order[left]] >= keys[order[right]]
                )
                if take_left:
                    spare[place] = order[left]
                    left += 1
                else:
                    spare[place] = order[right]
                    right += 1
        for place in range(low, high):
            order[place] = spare[place]
        run *= 2


@kernel
def _by_rows(keys: Any, order: Any) -> int:
    n_items = keys.shape[0]
    total = 0
    for item in range(n_items):
        key = keys[item]
        rank = 0
        for other in range(n_items):
            rank += 1 if keys[other] > key else 0
        order[rank] = item
        total += rank
    return total


@kernel
def _by_columns(keys: Any, order: Any, ranks: Any, padded: Any) -> int:
    """Count four other keys at a time, for whole vectors of items, so that nothing is summed up."""
    n_items = keys.shape[0]
    n_padded = (n_items + _VECTOR - 1) // _VECTOR * _VECTOR
    for item in range(n_items):
        padded[item] = keys[item]
    for item in range(n_items, n_padded):
        padded[item] = -np.inf
    for item in range(n_padded):
        ranks[item] = 0
    for other in range(0, n_padded, 4):
        key_0, key_1 = padded[other], padded[other + 1]
        key_2, key_3 = padded[other + 2], padded[other + 3]
        for item in range(n_padded):
            key = padded[item]
            ranks[item] += (
                (1 if key_0 > key else 0)
                + (1 if key_1 > key else 0)
                + (1 if key_2 > key else 0)
                + (1 if key_3 > key else 0)
            )
    total = 0
    for item in range(n_items):
        order[ranks[item]] = item
        total += ranks[item]
    return total


@kernel
def _by_counting(keys: Any, order: Any, work: SortWork) -> None:
    n_items = keys.shape[0]
    if n_items <= _ROWS_LIMIT:
        total = _by_rows(keys, order)
    else:
        total = _by_columns(keys, order, work.buckets, work.sorted_keys)
    if total != n_items * (n_items - 1) // 2:  # ties left two items in one place
        for item in range(n_items):
            order[item] = item
        _insertion(keys, order, 0, n_items)


@kernel
def _settle(order: Any, sorted_keys: Any) -> None:
    """Finish an order in which every item is already near its place."""
    for place in range(1, order.shape[0]):
        key = sorted_keys[place]
        if sorted_keys[place - 1] < key:
            item, free = order[place], place
            while free > 0 and sorted_keys[free - 1] < key:
                sorted_keys[free] = sorted_keys[free - 1]
                order[free] = order[free - 1]
                free -= 1
            sorted_keys[free] = key
            order[free] = item


@kernel
def _range(keys: Any) -> tuple[float, float]:
    """Return the least and the largest key; four lanes, because one would wait for itself."""
    low_0 = low_1 = low_2 = low_3 = high_0 = high_1 = high_2 = high_3 = keys[0]
    n_items = keys.shape[0]
    n_whole = n_items - n_items % 4
    for item in range(0, n_whole, 4):
        key_0, key_1, key_2, key_3 = keys[item], keys[item + 1], keys[item + 2], keys[item + 3]
        low_0 = key_0 if key_0 < low_0 else low_0
        low_1 = key_1 if key_1 < low_1 else low_1
        low_2 = key_2 if key_2 < low_2 else low_2
        low_3 = key_3 if key_3 < low_3 else low_3
        high_0 = key_0 if key_0 > high_0 else high_0
        high_1 = key_1 if key_1 > high_1 else high_1
        high_2 = key_2 if key_2 > high_2 else high_2
        high_3 = key_3 if key_3 > high_3 else high_3
    low, high = min(low_0, low_1, low_2, low_3), max(high_0, high_1, high_2, high_3)
    for item in range(n_whole, n_items):
        low, high = min(low, keys[item]), max(high, keys[item])
    return low, high


@kernel
def _swap_neighbours(order: Any, sorted_keys: Any) -> None:
    """Put most neighbours in order without a branch that could be mispredicted."""
    for phase in range(2):
        for pair in range((order.shape[0] - phase) // 2):
            left = np.uint64(2 * pair + phase)
            right = left + np.uint64(1)
            key, other_key = sorted_keys[left], sorted_keys[right]
            item, other = order[left], order[right]
            swap = key < other_key
            sorted_keys[left] = other_key if swap else key
            sorted_keys[right] = key if swap else other_key
            order[left] = other if swap else item
            order[right] = item if swap else other


@rare_kernel
def _by_merging(keys: Any, order: Any, work: SortWork) -> None:
    for item in range(keys.shape[0]):
        order[item] = item
    _merge(keys, order, work.spare, 0, keys.shape[0])


@rare_kernel
def _by_buckets(keys: Any, order: Any, work: SortWork) -> None:
    n_items = keys.shape[0]
    n_buckets = _BUCKETS_PER_ITEM * n_items
    buckets, counts, sorted_keys = work.buckets, work.counts, work.sorted_keys
    low, high = _range(keys)
    scale = n_buckets / (high - low) if high > low else 0.0
    if not 0.0 < scale < np.inf:
        _by_merging(keys, order, work)
        return
    for bucket in range(n_buckets + 1):
        counts[bucket] = 0
    n_lost = 0
    for item in range(n_items):
        # Rounding is monotone, so a larger key never lands in a later bucket.
        bucket_at = (high - keys[item]) * scale
        has_one = bucket_at < n_buckets + 1.0
        buckets[item] = np.int32(bucket_at if has_one else 0.0)
        n_lost += 0 if has_one else 1
    if n_lost > 0:  # keys that are no numbers have no bucket
        _by_merging(keys, order, work)
        return
    # Unsigned indices spare the test for negative ones.
    for item in range(n_items):
        counts[buckets[item]] += np.uint32(1)
    most = begin = np.uint32(0)
    for bucket in range(n_buckets + 1):
        here = counts[bucket]
        most = max(most, here)
        counts[bucket] = begin
        begin += here
    for item in range(n_items):
        bucket_of = buckets[item]
        place = counts[bucket_of]
        counts[bucket_of] = place + np.uint32(1)
        order[place] = item
        sorted_keys[place] = keys[item]
    if most <= _INSERTION_LIMIT:
        _swap_neighbours(order, sorted_keys)
        _settle(order, sorted_keys)
        return
    start = 0
    for bucket in range(n_buckets + 1):
        end = int(counts[bucket])
        _merge(keys, order, work.spare, start, end)
        start = end


@kernel
def sort_descending(keys: Any, order: Any, work: SortWork) -> None:
    """Write into ``order`` the indices of ``keys`` from the largest key to the smallest.

    Equal keys keep the order of their indices. Where some keys are NaN the order means nothing, but
    it still has every index once.
    """
    if keys.shape[0] <= _COUNTING_LIMIT:
        _by_counting(keys, order, work)
    else:
        _by_buckets(keys, order, work)
