"""The theorem of the adaptive perturbed leader, which sees everything and needs no tuning.

Notes
-----
The page adaptive-ftpl of the docs has the theorem, every step of its proof and the names used here.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from keyhole.base.errors import check_number
from keyhole.bounds import ftpl, keystone
from keyhole.contracts.measures import Measure


class AdaptiveConstants(NamedTuple):
    """What the theorem knows of a game: c0, b, v0 and the gain of an item of the top grade.

    ``penalty`` is what the noise costs, ``slope`` how fast a list answers to one item, and
    ``first`` the most that a round moves.
    """

    penalty: float
    slope: float
    first: float
    gain: float


def constants(measure: str | Measure, n_items: int, max_grade: float = 1.0) -> AdaptiveConstants:
    """Return the constants of the theorem for a measure whose gains are per item.

    Examples
    --------
    >>> found = constants("DCG", 20)
    >>> round(found.penalty, 2), round(found.slope, 3), round(found.first, 3)
    (4.97, 0.142, 0.622)
    """
    weights = keystone.position_weights(measure, n_items, max_grade)
    positions = np.arange(1, n_items + 1)
    return AdaptiveConstants(
        float((weights * np.log((n_items + 1.0) / positions)).sum()),
        float(weights[0]) / (2.0 * math.e),
        float(weights.sum()) / 4.0,
        ftpl.largest_gain(measure, max_grade),
    )


def movement(c: AdaptiveConstants, gains: ArrayLike) -> float:
    """Return by how much a round moves the leader: v, its gains divided by the largest one.

    Examples
    --------
    >>> c = constants("DCG", 20)
    >>> movement(c, [1.0] * 20), movement(c, [1.0] + [0.0] * 19) == c.slope
    (0.0, True)
    """
    values = np.asarray(gains, dtype=float)
    low, high = values.min(), values.max()
    squares = min(float(((values - low) ** 2).sum()), float(((high - values) ** 2).sum()))
    return min(c.first * float(high - low) ** 2, c.slope * squares)


def bound_after(c: AdaptiveConstants, moved: float) -> float:
    """Return the most regret that is expected once movements add up to so much.

    Examples
    --------
    >>> round(bound_after(constants("DCG", 20), 0.0), 1)
    5.0
    """
    moved = check_number(moved, "`moved`", at_least=0.0)
    return c.gain * 2.0 * math.sqrt(2.0 * c.penalty * (c.first + moved))


def regret_bound(c: AdaptiveConstants, rounds: float) -> float:
    """Return the bound after some rounds, of which each has moved as much as one can.

    Examples
    --------
    >>> round(regret_bound(constants("DCG", 20), 10_000))
    497
    """
    rounds = check_number(rounds, "`rounds`", at_least=1.0)
    return bound_after(c, c.first * rounds)
