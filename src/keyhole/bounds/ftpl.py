"""B6: follow the perturbed leader, on full information and under top-k feedback.

Notes
-----
Corollaries 20 to 22 of [T16] with the constants of errata R4, R11 and R12. The
analysis needs three numbers: D bounds how far apart two rankings are, R what a
round can be worth, A the total gain in a round.
"""

import math
from typing import NamedTuple

import numpy as np

from keyhole.base.errors import InvalidInput, check_integer, check_number
from keyhole.contracts.measures import Measure
from keyhole.measures import measure as named_measure


class Constants(NamedTuple):
    """D, R and A of the analysis of follow the perturbed leader."""

    diameter: float
    reward: float
    size: float


def largest_gain(measure: str | Measure, max_grade: float = 1.0) -> float:
    """Return the gain of an item of the top grade."""
    return 2.0**max_grade - 1.0 if named_measure(measure).exponential_gain else max_grade


def constants(
    measure: str | Measure, n_items: int, max_grade: float = 1.0, *, tight: bool = False
) -> Constants:
    """Return D, R and A for a measure whose gains are per item.

    Parameters
    ----------
    measure
        SumLoss, PairwiseLoss (two grades), InversionLoss, DCG, Precision, each with its cutoff.
    tight
        By default the papers' norms: (m^2, m^2, m) for SumLoss, (m, mG, mG) for DCG,
        (n, n, m) for Precision@n, G the largest gain. Tight: D is half the l1 diameter
        of the rankings, which suffices because all rankings have the same sum, so a
        difference of two has positive part D and meets a noise of at most 1/epsilon; R
        is the largest value.

    Examples
    --------
    >>> constants("SumLoss", 4)
    Constants(diameter=16.0, reward=16.0, size=4.0)
    >>> constants("SumLoss", 4, tight=True)
    Constants(diameter=4.0, reward=10.0, size=4.0)
    """
    measure = named_measure(measure)
    n_items = check_integer(n_items, "`n_items`", at_least=1)
    max_grade = check_number(max_grade, "`max_grade`", above=0.0)
    if not measure.is_gain_per_item(max_grade):
        raise InvalidInput(
            f"measure must have gains per item (SumLoss, PairwiseLoss with two grades, "
            f"InversionLoss, DCG or Precision), got {measure.label} with max_grade={max_grade:g}."
        )
    gain = largest_gain(measure, max_grade)
    weights = np.sort(measure.weights(n_items))
    if tight:
        diameter = float(np.maximum(weights - weights[::-1], 0.0).sum())
        reward = max(float(weights[weights > 0].sum()), -float(weights[weights < 0].sum()))
        # All weights equal: every ranking is the same, but the tuning divides by D.
        return Constants(max(diameter, 1e-12), gain * reward, gain * n_items)
    diameter = float(np.count_nonzero(weights) * np.abs(weights).max())
    return Constants(diameter, gain * diameter, gain * n_items)


def best_epsilon(c: Constants, n_updates: float) -> float:
    """Return sqrt(D / (R A K)), the noise rate for K updates (R4)."""
    return math.sqrt(c.diameter / (c.reward * c.size * n_updates))


def best_n_blocks(c: Constants, n_cells: int, rounds: float) -> float:
    """Return (D A / R)^(1/3) (T / q)^(2/3), before rounding."""
    ratio: float = c.diameter * c.size / c.reward
    return float(ratio ** (1 / 3) * (rounds / n_cells) ** (2 / 3))


def full_information_bound(c: Constants, rounds: float) -> float:
    """Return 2 sqrt(D R A T), the regret of the leader that sees everything."""
    return 2.0 * math.sqrt(c.diameter * c.reward * c.size * rounds)


def top_k_bound(c: Constants, n_cells: int, rounds: float, n_blocks: float | None = None) -> float:
    """Return R q K + 2 T sqrt(D R A / K), the regret of RTop-kF with FTPL.

    Without ``n_blocks``, its value at the best K: 3 R^(2/3) (D A)^(1/3) q^(1/3) T^(2/3).

    Examples
    --------
    >>> c = constants("DCG", 20)
    >>> K = best_n_blocks(c, 20, 10_000)
    >>> round(top_k_bound(c, 20, 10_000, K) - top_k_bound(c, 20, 10_000), 6)
    0.0
    """
    if n_blocks is None:
        scale = c.reward ** (2 / 3) * (c.diameter * c.size * n_cells) ** (1 / 3)
        return float(3.0 * scale * rounds ** (2 / 3))
    learning = 2.0 * rounds * math.sqrt(c.diameter * c.reward * c.size / n_blocks)
    return c.reward * n_cells * n_blocks + learning
