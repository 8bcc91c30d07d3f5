"""A12: what sorting importance-weighted totals with Gumbel noise costs at most.

Notes
-----
docs/iw-onlinerank proves it for any weights of positions that do not rise, and numbers the
inequalities that tests check. Regret after T rounds is at most::

    c0 / eta_T + a sum_t eta_t (m(m-k)/gamma_t + m) + f sum_t gamma_t

for rates eta and shares gamma of lifts that do not rise; c0, a and f depend on the weights.
"""

import math
from typing import NamedTuple

import numpy as np

from keyhole.base.errors import FloatArray
from keyhole.bounds import ftpl
from keyhole.contracts.measures import Measure
from keyhole.kernels.compiled import kernel
from keyhole.measures import measure as named_measure

EULER = 0.5772156649015329
_LEAST_LOG, _LARGEST_LOG, _LOG_STEP = -45.0, 7.0, 1.0 / 64.0
_TINY = 1e-12


def falling_weights(measure: str | Measure, n_items: int, max_grade: float = 1.0) -> FloatArray:
    """Return the weights of positions as gains, largest first, the last of them 0, or raise."""
    measure = named_measure(measure)
    ftpl.constants(measure, n_items, max_grade)  # refuses measures without gains per item
    weights = measure.weights(n_items) * (-1.0 if measure.is_loss else 1.0)
    return np.ascontiguousarray(weights - weights[-1])


def expected_noise(n_items: int) -> FloatArray:
    """Return what the p-th largest of m Gumbel numbers is in the mean, less the mean of one.

    The p-th largest is minus the logarithm of the p-th smallest of m exponential numbers, whose
    density is summed on a fine grid of logarithms.

    Examples
    --------
    >>> expected_noise(2).round(6).tolist()
    [0.693147, -0.693147]
    """
    logs = np.arange(_LEAST_LOG, _LARGEST_LOG, _LOG_STEP)
    times = np.exp(logs)
    rank = np.arange(1, n_items + 1)
    ways = np.array(
        [math.lgamma(n_items + 1) - math.lgamma(p) - math.lgamma(n_items - p + 1) for p in rank]
    )
    arrived = np.log(-np.expm1(-times))
    means = np.empty(n_items)
    for index, p in enumerate(rank):
        log_density = ways[index] + (p - 1) * arrived - (n_items - p + 1) * times + logs
        means[index] = -float(np.exp(log_density) @ logs) * _LOG_STEP
    return means - EULER


class Constants(NamedTuple):
    """c0, a and f of the bound, and the numbers m(m-k) and m of its second term."""

    penalty: float
    curvature: float
    lift: float
    unseen: float
    seen: float


def constants(weights: FloatArray, k: int) -> Constants:
    """Return the constants for weights that do not rise and end at 0.

    Examples
    --------
    >>> [round(float(c), 4) for c in constants(np.array([2.0, 1.0, 0.0]), 1)]
    [2.0794, 0.3679, 1.3333, 6.0, 3.0]
    """
    n_items = len(weights)
    return Constants(
        max(float(weights @ expected_noise(n_items)), 0.0),
        float(weights[0]) / (2.0 * math.e),
        (1.0 - k / n_items) * float(weights[k - 1]),
        float(n_items * (n_items - k)),
        float(n_items),
    )


class Schedule(NamedTuple):
    """Rates and shares of lifts: those for a known ``horizon``, and those from its end on.

    gamma_t = min(1, ``mix`` t^(-1/3)) and eta_t = ``rate`` sqrt(gamma_t / ((u + s gamma_t) t)) with
    ``unseen`` = u and ``seen`` = s; before the horizon t is the horizon, with ``known_mix`` and
    ``known_rate``.
    """

    horizon: int
    known_mix: float
    known_rate: float
    mix: float
    rate: float
    unseen: float
    seen: float


def best_schedule(
    given: Constants, horizon: int, *, mix_scale: float = 1.0, rate_scale: float = 1.0
) -> Schedule:
    """Return the schedule whose bound is least, times scales; ``horizon`` 0 is an unknown one."""
    if given.lift > 0.0:
        cubed = given.penalty * given.curvature * given.unseen / given.lift**2
        known_mix, mix = cubed ** (1.0 / 3.0), (2.0 * cubed / 3.0) ** (1.0 / 3.0)
    else:  # a look costs nothing
        known_mix = mix = math.inf
    rate = math.sqrt(given.penalty / max(given.curvature, _TINY))
    return Schedule(
        horizon,
        mix_scale * known_mix,
        rate_scale * rate,
        mix_scale * mix,
        rate_scale * math.sqrt(2.0 / 3.0) * rate,
        given.unseen,
        given.seen,
    )


@kernel
def mix_and_rate(schedule: Schedule, round: int) -> tuple[float, float]:
    """Return gamma and eta of a round."""
    known = round < schedule.horizon
    time = float(schedule.horizon) if known else round + 1.0
    mix = min((schedule.known_mix if known else schedule.mix) * time ** (-1.0 / 3.0), 1.0)
    rate = schedule.known_rate if known else schedule.rate
    return mix, rate * math.sqrt(mix / ((schedule.unseen + schedule.seen * mix) * time))


def regret_bound(given: Constants, schedule: Schedule, rounds: int) -> float:
    """Return the bound for a schedule: the sums themselves, no approximation of them.

    Examples
    --------
    >>> dcg = constants(falling_weights("DCG", 20), 1)
    >>> bound = regret_bound(dcg, best_schedule(dcg, 10**6), 10**6)
    >>> round(bound), round(leading_constant(dcg) * 10**4)
    (160339, 160135)
    """
    if given.penalty == 0.0:  # all rankings are worth the same
        return 0.0
    pairs = np.array([mix_and_rate(schedule, t) for t in range(rounds)])
    mixes, rates = pairs.T
    spread = rates @ (given.unseen / mixes + given.seen)
    return float(given.penalty / rates[-1] + given.curvature * spread + given.lift * mixes.sum())


def leading_constant(given: Constants, *, anytime: bool = False) -> float:
    """Return C of the bound C T^(2/3) + O(T^(1/3)), with the best schedule."""
    product = given.penalty * given.curvature * given.unseen * given.lift
    factor = 4.5 * (2.0 / 3.0) ** (1.0 / 3.0) if anytime else 3.0
    return float(factor * product ** (1.0 / 3.0))
