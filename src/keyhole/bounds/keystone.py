"""The safety theorem of keystone: its regret against any crowd, whatever its adaptive half does.

Notes
-----
The page keystone-proof of the docs has the theorem, every step of its proof and the names used
here. The bound has three parts: what the floor's lifts cost, what choosing between the two halves
costs, and the regret of the safe half by itself.
"""

import math
from typing import NamedTuple

import numpy as np

from keyhole.base.errors import FloatArray, check_integer, check_number
from keyhole.bounds import ftpl
from keyhole.contracts.measures import Measure
from keyhole.measures import measure as named_measure

_LEAST_FIRST = 1e-9
_OF_OUTLIERS = 2.0 + math.sqrt(8.0)
"""Times the largest term of a scale-free sum: at most what its outliers add up to."""


class Constants(NamedTuple):
    """What the theorem knows of a game: m items of which k are seen, and a measure.

    ``penalty``, ``weight``, ``drift`` and ``first`` are c, a, kappa and V0, with which the rate of
    the safe half is sqrt(c / (V0 + V)); ``spread`` is d_1 - d_m, ``at_k`` is d_k - d_m, ``reach``
    by how much two lists may differ in value, ``squares`` by how much their weights may, squared
    and added up. All are for gains of at most 1; ``gain`` is that of an item of the top grade.
    ``floor_rate``, ``block`` and ``prior`` are g, L and w0, which are free.
    """

    n_items: int
    k: int
    gain: float
    penalty: float
    weight: float
    drift: float
    first: float
    spread: float
    at_k: float
    reach: float
    squares: float
    floor_rate: float
    block: int
    prior: float

    @property
    def log_prior(self) -> float:
        """The logarithm of 1 / w0."""
        return math.log(1.0 / self.prior)


class Parts(NamedTuple):
    """The three parts of the bound: FLOOR, MIX and SAFE."""

    floor: float
    mix: float
    safe: float


def position_weights(measure: str | Measure, n_items: int, max_grade: float = 1.0) -> FloatArray:
    """Return d_p - d_m: how much more a gain is worth at each position than at the last one.

    Examples
    --------
    >>> position_weights("SumLoss", 4).tolist()
    [3.0, 2.0, 1.0, 0.0]
    """
    measure = named_measure(measure)
    ftpl.constants(measure, n_items, max_grade)  # refuses measures without gains per item
    weights = measure.weights(n_items) * (-1.0 if measure.is_loss else 1.0)
    return np.ascontiguousarray(weights - weights[-1])


def constants(
    measure: str | Measure,
    n_items: int,
    k: int = 1,
    max_grade: float = 1.0,
    *,
    floor_rate: float = 0.1,
    block: int = 16,
    prior: float = 0.01,
) -> Constants:
    """Return the constants of the theorem for a game; by default those of keystone.

    Examples
    --------
    >>> found = constants("DCG", 20)
    >>> round(found.weight, 3), round(found.drift, 1), round(found.first)
    (0.142, 53.2, 5682)
    """
    weights = position_weights(measure, n_items, max_grade)
    k = check_integer(k, "`k`", at_least=1, at_most=n_items, bound="n_items=")
    floor_rate = check_number(floor_rate, "`floor_rate`", above=0.0, at_most=0.5)
    block = check_integer(block, "`block`", at_least=1)
    prior = check_number(prior, "`prior`", above=0.0, at_most=0.5)
    spread, apart = float(weights[0]), weights - weights[::-1]
    weight = spread / math.e / (2.0 if k == 1 else 1.0)
    positions = np.arange(1, n_items + 1)
    return Constants(
        n_items,
        k,
        ftpl.largest_gain(measure, max_grade),
        penalty=float((weights * np.log((n_items + 1.0) / positions)).sum()),
        weight=weight,
        drift=(block + 1) * float(weights.sum()) / 4.0
        + (block - 1) * n_items * spread / (2.0 * math.e),
        first=max(weight * (n_items / floor_rate) ** 2, _LEAST_FIRST),
        spread=spread,
        at_k=float(weights[k - 1]),
        reach=float(np.maximum(apart, 0.0).sum()),
        squares=float((apart * apart).sum()),
        floor_rate=floor_rate,
        block=block,
        prior=prior,
    )


def _inverse_floors(c: Constants, rounds: float) -> float:
    """Return at least the sum of 1 / gamma_t over the rounds."""
    return float(0.75 * rounds ** (4 / 3) + rounds ** (1 / 3)) / c.floor_rate


def _largest_correction(c: Constants, rounds: float) -> float:
    """Return m / gamma_T."""
    return float(c.n_items * rounds ** (1 / 3)) / c.floor_rate


def _floor(c: Constants, rounds: float) -> float:
    return float(1.5 * c.floor_rate * (1.0 - c.k / c.n_items) * c.at_k * rounds ** (2 / 3))


def _leads(c: Constants, rounds: float) -> float:
    """Return at least the mean of sqrt(1 + all squared leads of one half over the other)."""
    corrected = c.k * c.squares * c.n_items * _inverse_floors(c, rounds)
    return math.sqrt(1.0 + c.reach**2 * rounds + corrected)


def _largest_lead(c: Constants, rounds: float) -> float:
    return c.reach + c.k * c.spread * _largest_correction(c, rounds)


def _safe(c: Constants, rounds: float) -> float:
    m, k, kept = c.n_items, c.k, 1.0 - c.floor_rate
    squares = m * (m - k) * _inverse_floors(c, rounds) + 2.0 * k * rounds / kept
    of_last_round = (m - k) * _largest_correction(c, rounds) + 2.0 * k / kept
    variance = c.first + c.drift * rounds + c.weight * squares
    first_rate = math.sqrt(c.penalty / c.first)
    return (
        (2.0 + math.sqrt(2.0)) * math.sqrt(c.penalty * variance)
        + 2.0 * math.sqrt(c.penalty * c.drift * rounds)
        + c.drift * c.block * first_rate
        + (c.block - 1) * c.weight * of_last_round * first_rate
        + _OF_OUTLIERS * c.spread * k * _largest_correction(c, rounds)
    )


def safety_parts(c: Constants, rounds: float) -> Parts:
    """Return FLOOR, MIX and SAFE, whose sum bounds the expected regret after any number of rounds.

    Examples
    --------
    >>> [round(part) for part in safety_parts(constants("DCG", 20), 10**6)]
    [1101, 534652, 1662932]
    """
    rounds = check_number(rounds, "`rounds`", at_least=1.0)
    mix = (9.0 + math.sqrt(2.0)) / 8.0 * math.sqrt(c.log_prior) * _leads(c, rounds)
    mix += _OF_OUTLIERS * _largest_lead(c, rounds)
    return Parts(c.gain * _floor(c, rounds), c.gain * mix, c.gain * _safe(c, rounds))


def safety_bound(c: Constants, rounds: float) -> float:
    """Return FLOOR + MIX + SAFE: the regret of keystone with anything for its adaptive half.

    Examples
    --------
    >>> round(safety_bound(constants("DCG", 20), 10**8) / 10**8, 2)
    0.44
    """
    return sum(safety_parts(c, rounds))


def leading_constant(c: Constants) -> float:
    """Return C of the bound C T^(2/3) + terms of order T^(1/2).

    Examples
    --------
    >>> round(leading_constant(constants("DCG", 20))), round(leading_constant(constants("DCG", 10)))
    (199, 82)
    """
    share = 0.75 * c.n_items / c.floor_rate
    mix = (9.0 + math.sqrt(2.0)) / 8.0 * math.sqrt(c.log_prior * share * c.k * c.squares)
    safe = math.sqrt(share * c.penalty * c.weight * (c.n_items - c.k))
    return c.gain * (_floor(c, 1.0) + mix + (2.0 + math.sqrt(2.0)) * safe)


def price_bound(c: Constants, rounds: float) -> float:
    """Return by how much its adaptive half alone may be better than keystone: the price of safety.

    Examples
    --------
    >>> game = constants("DCG", 20)
    >>> round(price_bound(game, 10**6) / safety_bound(game, 10**6), 3)
    0.083
    """
    rounds = check_number(rounds, "`rounds`", at_least=1.0)
    share = math.log(1.0 / (1.0 - c.prior)) / c.log_prior + (1.0 + math.sqrt(2.0)) / 8.0
    choosing = math.sqrt(c.log_prior) * share * _leads(c, rounds)
    outliers = _OF_OUTLIERS * _largest_lead(c, rounds)
    return c.gain * (_floor(c, rounds) + choosing + outliers)
