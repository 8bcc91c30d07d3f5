"""Over how many relevances at a time a gradient falls apart, by enumeration."""

from itertools import product

import numpy as np
from numpy.typing import ArrayLike

from keyhole.base.errors import check_number, check_relevance
from keyhole.surrogates.base import Surrogate, check_scores


def interaction_order(
    surrogate: Surrogate,
    scores: ArrayLike,
    *,
    grades: ArrayLike = (0, 1),
    tolerance: float = 1e-9,
) -> int:
    """Return the least k such that the gradient is a sum of terms of k relevances each.

    Parameters
    ----------
    surrogate, scores
        Whose gradient, and where.
    grades
        The relevances that can occur; all lists of them are tried.
    tolerance
        Terms smaller than this share of the largest gradient count as zero.

    Notes
    -----
    Feedback on the top k items is necessary, and with exploration sufficient, for an
    unbiased estimate (Lemma 25 of [T16]). The gradients of all lists are differenced along every
    item against the first grade; the order is the largest number of items with
    a difference that is not zero.

    Examples
    --------
    >>> from keyhole import surrogate
    >>> interaction_order(surrogate("ranksvm"), [1.0, 0.0, 0.0])
    2
    >>> interaction_order(surrogate("ranksvm"), [0.0, 0.0, 0.0])
    1
    """
    by_item, levels = check_scores(scores), check_relevance(grades, "grades")
    tolerance = check_number(tolerance, "`tolerance`", at_least=0.0)
    n_items, n_grades = len(by_item), len(levels)
    lists = product(range(n_grades), repeat=n_items)
    table = np.array([surrogate.gradient(by_item, levels[list(row)]) for row in lists])
    terms = table.reshape(*[n_grades] * n_items, n_items)
    for axis in range(n_items):
        first = terms.take([0], axis=axis)
        others = terms.take(range(1, n_grades), axis=axis) - first
        terms = np.concatenate([first, others], axis=axis)
    large = np.abs(terms).max(axis=-1) > tolerance * np.abs(table).max()
    return int((np.argwhere(large) > 0).sum(axis=1).max(initial=0))
