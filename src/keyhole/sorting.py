"""Stable descending order of an array of keys, ties by lowest index.

Numba's own ``argsort`` would make the compiled game slower than plain NumPy.
Short lists are ranked by counting how many keys are larger, which vectorises;
long ones go through one pass of equal-width buckets, in expected linear time for
the noisy keys of a game and O(m log m) whatever the keys.
"""

from typing import Any, NamedTuple

import numpy as np

from keyhole.compiled import kernel, rare_kernel

_COUNTING_LIMIT = 48
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
        np.empty(n_items, np.int64),
        np.empty(_BUCKETS_PER_ITEM * n_items + 2, np.int64),
        np.empty(n_items, np.int64),
        np.empty(n_items, np.float64),
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
def _by_counting(keys: Any, order: Any) -> None:
    n_items = keys.shape[0]
    total = 0
    for item in range(n_items):
        key = keys[item]
        rank = 0
        for other in range(n_items):
            rank += 1 if keys[other] > key else 0
        order[rank] = item
        total += rank
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


@rare_kernel
def _by_buckets(keys: Any, order: Any, work: SortWork) -> None:
    n_items = keys.shape[0]
    n_buckets = _BUCKETS_PER_ITEM * n_items
    buckets, counts, sorted_keys = work.buckets, work.counts, work.sorted_keys
    low = high = keys[0]
    for item in range(1, n_items):
        key = keys[item]
        low = key if key < low else low
        high = key if key > high else high
    scale = n_buckets / (high - low) if high > low else 0.0
    if not 0.0 < scale < np.inf:
        for item in range(n_items):
            order[item] = item
        _merge(keys, order, work.spare, 0, n_items)
        return
    for bucket in range(n_buckets + 2):
        counts[bucket] = 0
    for item in range(n_items):
        # Rounding is monotone, so a larger key never lands in a later bucket.
        buckets[item] = np.int64((high - keys[item]) * scale)
    for item in range(n_items):
        counts[buckets[item] + 1] += 1
    most = begin = 0
    for bucket in range(n_buckets + 2):
        most = max(most, counts[bucket])
        begin += counts[bucket]
        counts[bucket] = begin
    for item in range(n_items):
        bucket = buckets[item]
        place = counts[bucket]
        counts[bucket] = place + 1
        order[place] = item
        sorted_keys[place] = keys[item]
    if most <= _INSERTION_LIMIT:
        _settle(order, sorted_keys)
        return
    begin = 0
    for bucket in range(n_buckets + 1):
        _merge(keys, order, work.spare, begin, counts[bucket])
        begin = counts[bucket]


@kernel
def sort_descending(keys: Any, order: Any, work: SortWork) -> None:
    """Write into ``order`` the indices of ``keys`` from the largest key to the smallest.

    Keys must be finite. Equal keys keep the order of their indices.
    """
    if keys.shape[0] <= _COUNTING_LIMIT:
        _by_counting(keys, order)
    else:
        _by_buckets(keys, order, work)
