"""A11: the semi-bandit bound for measures that count the first n positions alike.

Notes
-----
docs/precision.md derives it, and numbers the inequalities that tests check.
"""

import math

import numpy as np

from keyhole.base.errors import FloatArray, InvalidInput
from keyhole.contracts.measures import Measure


def n_counted(measure: Measure, n_items: int, name: str) -> int:
    """Return n of a measure that counts the first n positions alike and no other, or raise.

    Examples
    --------
    >>> from keyhole import measure
    >>> n_counted(measure("Precision@3"), 10, "me")
    3
    """
    weights = measure.weights(n_items) if measure.gain_per_item else np.array([0.0])
    counted = int((weights == 1.0).sum())
    first = np.arange(len(weights)) < counted
    if counted == 0 or not np.array_equal(weights, first.astype(float)):
        raise InvalidInput(
            f"`measure` of {name} must count the first n positions alike and no other, as "
            f"Precision@n does, got {measure.label}."
        )
    return counted


def chances_of_sight(chosen: FloatArray, n_counted: int, k: int) -> FloatArray:
    """Return (3): how likely items are to be seen that are among the first n with some chance.

    Examples
    --------
    >>> chances_of_sight(np.array([1.0, 0.5, 0.5]), 2, 1).tolist()
    [0.5, 0.25, 0.25]
    >>> chances_of_sight(np.array([1.0, 0.5, 0.5]), 2, 3).tolist()
    [1.0, 1.0, 1.0]
    """
    if k <= n_counted:
        return chosen * (k / n_counted)
    return chosen + (1.0 - chosen) * ((k - n_counted) / (len(chosen) - n_counted))


def penalty(n_items: int, n_counted: int) -> float:
    """Return n log(m / n): by how much negative entropy can vary over the chances."""
    return n_counted * math.log(n_items / n_counted)


def steepness(n_items: int, n_counted: int, k: int) -> float:
    """Return n m / k: the most that chances over chances of sight add up to, (5)."""
    return n_counted * n_items / k


def semi_bandit_bound(n_items: int, n_counted: int, k: int, rounds: float) -> float:
    """Return n sqrt(2 m T log(m/n) / k), for every k, with the horizon known (A11).

    Examples
    --------
    >>> [round(semi_bandit_bound(10, 3, 1, rounds)) for rounds in (1_000, 64_000)]
    [466, 3724]
    """
    return math.sqrt(2.0 * rounds * penalty(n_items, n_counted) * steepness(n_items, n_counted, k))


def anytime_bound(n_items: int, n_counted: int, k: int, rounds: float) -> float:
    """Return 2 n sqrt(m T log(m/n) / k): the bound of a rate that needs no horizon."""
    return math.sqrt(2.0) * semi_bandit_bound(n_items, n_counted, k, rounds)
