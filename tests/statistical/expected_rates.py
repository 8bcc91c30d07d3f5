"""How often a bound must hold: the chances of all logs, by their clicks, for which it does.

A log counts by how many clicks the policy has, and the baseline. Nothing is simulated, and nothing
of the package is used: bounds are taken from their formulas.
"""

import math
from functools import cache

import numpy as np
from scipy import stats

_RARE = 1e-9
N_RESAMPLES = 2000


def _spread(n_rows, chance):
    """Return the counts that are likely enough to matter."""
    low, high = stats.binom.ppf([_RARE, 1 - _RARE], n_rows, chance)
    return np.arange(int(low), int(high) + 1)


@cache
def counts_of(setting):
    """Return chances of clicks of the policy (rows) and of the baseline (columns), and counts."""
    n, rates = setting.n_rows, [c * r for c, r in zip(setting.chances, setting.clicks, strict=True)]
    own = _spread(n, rates[0])
    other = _spread(n, rates[1]) if setting.compare else np.zeros(1, int)
    chances = stats.binom.pmf(own, n, rates[0])[:, None]
    if setting.compare:
        rest = rates[1] / (1 - rates[0])
        chances = chances * stats.binom.pmf(other[None, :], n - own[:, None], rest)
    return own, other, chances


def student(setting, confidence, two_sided):
    own, other, chances = counts_of(setting)
    n, (up, down) = setting.n_rows, (1 / setting.chances[0], 1 / setting.chances[1])
    total = up * own[:, None] - down * other[None, :]
    squares = up**2 * own[:, None] + down**2 * other[None, :]
    deviation = np.sqrt((squares - total**2 / n) / (n - 1) / n)
    reach = deviation * stats.t.ppf(confidence, n - 1)
    holds = total / n - reach <= setting.truth
    if two_sided:
        holds &= setting.truth <= total / n + reach
    return float((chances * holds).sum())


def clopper_pearson(setting, confidence, two_sided):
    """Successes among the rows that agree, of which there are more or fewer."""
    expected, n = 0.0, setting.n_rows
    for trials in _spread(n, setting.chances[0]):
        successes = np.arange(trials + 1)
        low = np.where(successes == 0, 0, stats.beta.ppf(
            1 - confidence, successes, trials - successes + 1
        ))  # fmt: skip
        holds = low <= setting.truth
        if two_sided:
            high = np.where(successes == trials, 1, stats.beta.ppf(
                confidence, successes + 1, trials - successes
            ))  # fmt: skip
            holds &= setting.truth <= high
        given = float(stats.binom.pmf(successes, trials, setting.clicks[0]) @ holds)
        expected += stats.binom.pmf(trials, n, setting.chances[0]) * given
    return float(expected)


def bootstrap(setting, confidence, two_sided):
    """The bound holds where enough of the resampled means are at most the truth.

    Means that are equal to the truth but for rounding count as equal.
    """
    own, other, chances = counts_of(setting)
    n, (up, down) = setting.n_rows, (1 / setting.chances[0], 1 / setting.chances[1])
    needed = math.floor((1 - confidence) * (N_RESAMPLES - 1) + 1e-9) + 1
    expected = 0.0
    for (row, column), chance in np.ndenumerate(chances):
        if chance < _RARE:
            continue
        k, j = own[row], other[column]
        drawn = _spread(n, k / n) if k else np.zeros(1, int)
        beside = _spread(n, j / n) if j else np.zeros(1, int)
        likely = stats.binom.pmf(drawn, n, k / n)[:, None] * stats.binom.pmf(
            beside[None, :], n - drawn[:, None], j / (n - k)
        )
        gaps = (up * drawn[:, None] - down * beside[None, :]) / n - setting.truth
        below, above = (float(likely[side * gaps <= 1e-12].sum()) for side in (1, -1))
        holds = stats.binom.sf(needed - 1, N_RESAMPLES, min(below, 1.0))
        if two_sided:
            holds *= stats.binom.sf(needed - 1, N_RESAMPLES, min(above, 1.0))
        expected += chance * holds
    return float(expected)


_RATES = {"student-t": student, "clopper-pearson": clopper_pearson, "bootstrap": bootstrap}


@cache
def expected_rate(setting, bound, confidence, *, two_sided=False):
    """Return how often a bound, or an interval of two, holds."""
    each = (1 + confidence) / 2 if two_sided else confidence
    return _RATES[bound](setting, each, two_sided)
