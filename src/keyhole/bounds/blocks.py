"""B7: the block estimate of RTop-kF is unbiased, checked by enumeration."""

import itertools
from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike

from keyhole.base.errors import FloatArray, InvalidInput, check_integer, check_relevance


def n_cells(n_items: int, k: int) -> int:
    """Return q, the number of cells of k items that cover the list."""
    return -(-n_items // k)


def cells_in_order(n_items: int, k: int) -> list[list[int]]:
    """Return the partition into consecutive cells; the last may be smaller."""
    return [list(range(first, min(first + k, n_items))) for first in range(0, n_items, k)]


def plans(length: int, n_items: int, k: int) -> Iterator[tuple[int, ...]]:
    """Yield every assignment of distinct times to the cells, all equally likely."""
    yield from itertools.permutations(range(length), n_cells(n_items, k))


def expected_block_estimate(gains: ArrayLike, k: int) -> FloatArray:
    """Return the mean of the block estimate over all plans (Lemma 18 of [T16]).

    Parameters
    ----------
    gains
        Gain of each item (column) in each round (row) of the block.
    k
        Number of items seen in an exploration round.

    Examples
    --------
    >>> expected_block_estimate([[1, 0, 0], [0, 0, 1], [1, 0, 1]], k=2).round(9).tolist()
    [0.666666667, 0.0, 0.666666667]
    """
    by_round = check_relevance(gains, "`gains`")
    length, n_items = by_round.shape
    check_integer(k, "`k`", at_least=1, at_most=n_items, bound="n_items=")
    if length < n_cells(n_items, k):
        raise InvalidInput(
            f"`gains` must have at least {n_cells(n_items, k)} rounds, one per cell, got {length}."
        )
    cells = cells_in_order(n_items, k)
    total, n_plans = np.zeros(n_items), 0
    for times in plans(length, n_items, k):
        for cell, time in zip(cells, times, strict=True):
            total[cell] += by_round[time, cell]
        n_plans += 1
    return total / n_plans
