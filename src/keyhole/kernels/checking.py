"""Compiled checks of arrays that other kernels will index, add up or learn from."""

from typing import Any

from keyhole.kernels.compiled import rare_kernel


@rare_kernel
def all_finite(numbers: Any) -> bool:
    """Return whether no number of a flat array is infinite or NaN."""
    n_bad = 0
    for index in range(numbers.shape[0]):  # without a way out, so that it vectorises
        number = numbers[index]
        n_bad += 0 if number - number == 0.0 else 1
    return n_bad == 0


@rare_kernel
def first_bad_value(values: Any, largest: float) -> int:
    """Return where a relevance is neither hidden (NaN) nor between 0 and the largest, or -1."""
    for index in range(values.shape[0]):
        if values[index] < 0.0 or values[index] > largest:  # neither is true of NaN
            return index
    return -1


@rare_kernel
def is_ranking(ranking: Any, taken: Any) -> bool:
    """Return whether a list holds each of the items 0, 1, ... once; ``taken`` must be false."""
    n_items = ranking.shape[0]
    for position in range(n_items):
        item = ranking[position]
        if item < 0 or item >= n_items or taken[item]:
            return False
        taken[item] = True
    return True


@rare_kernel
def first_bad_list(starts: Any, rankings: Any, taken: Any) -> int:
    """Return the first list that is no ranking of its items, or -1.

    ``taken`` has room for the longest list.
    """
    for row in range(starts.shape[0] - 1):
        n_items = starts[row + 1] - starts[row]
        for item in range(n_items):
            taken[item] = False
        if not is_ranking(rankings[starts[row] : starts[row + 1]], taken):
            return row
    return -1
