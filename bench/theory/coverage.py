"""How often a bound or an interval holds, on simulated logs whose truth is known."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from keyhole.base.errors import check_choice, check_integer, check_seed
from keyhole.data.bandit.log import BanditLog
from keyhole.offline.bounds import binomial_trials, clopper_pearson, lower_bound
from keyhole.offline.estimators import Estimate, importance_weighted
from keyhole.offline.intervals import interval
from keyhole.offline.target import target_of
from keyhole.policies.base import Always


@dataclass(frozen=True)
class Setting:
    """A logging policy and click rates, and which action is compared with which.

    ``about`` says what it stands for. The policy always takes action 0; the baseline takes action 1
    for certain, or there is none and the value of the policy itself is bounded.
    """

    about: str
    chances: tuple[float, ...]
    clicks: tuple[float, ...]
    n_rows: int
    compare: bool

    @property
    def truth(self) -> float:
        """What is bounded: a value, or a difference of two."""
        return self.clicks[0] - self.clicks[1] * self.compare


SETTINGS = {
    "often": Setting("a value, 30 % clicks", (0.5, 0.5), (0.3, 0.3), 1000, False),
    "rare": Setting("a value, 0.3 % clicks", (0.5, 0.5), (0.003, 0.003), 2000, False),
    "rare-difference": Setting(
        "a difference, 0.3 % clicks", (0.5, 0.5), (0.003, 0.003), 2000, True
    ),
    "neglected-baseline": Setting(
        "a difference, 0.3 % clicks, the baseline in 10 % of the log",
        (0.9, 0.1),
        (0.003, 0.003),
        2000,
        True,
    ),
}


@dataclass(frozen=True)
class Coverage:
    """How many bounds held the truth, with an interval for the probability of that."""

    bound: str
    setting: str
    confidence: float
    n_covered: int
    n_logs: int
    interval: tuple[float, float]

    @property
    def rate(self) -> float:
        """The share of logs whose bound held."""
        return self.n_covered / self.n_logs

    @property
    def falls_short(self) -> bool:
        """Whether the bound certainly holds less often than it says."""
        return self.interval[1] < self.confidence

    def __str__(self) -> str:
        low, high = self.interval
        word = "falls short" if self.falls_short else "holds"
        return (
            f"{self.setting}, {self.bound}: {self.rate:.1%} of {self.n_logs} logs, interval "
            f"{low:.1%} to {high:.1%}, nominal {self.confidence:.0%}: {word}"
        )


Ends = tuple[float | None, float | None]


def lower_end(bound: str, estimate: Estimate, confidence: float, **options: Any) -> Ends:
    """Return a lower bound as an interval that goes on for ever."""
    return lower_bound(bound, estimate, confidence, **options).value, math.inf


def both_ends(bound: str, estimate: Estimate, confidence: float, **options: Any) -> Ends:
    """Return a two-sided interval."""
    found = interval(bound, estimate, confidence, **options)
    return found.low, found.high


def measure_coverage(
    setting: str,
    bound: str,
    *,
    confidence: float = 0.95,
    n_logs: int = 2000,
    seed: int = 0,
    ends: Callable[..., Ends] = lower_end,
) -> Coverage:
    """Return how often a bound held on simulated logs; a two-sided one with :func:`both_ends`.

    The interval is Clopper and Pearson's at 99.8 %, 0.1 % on either side.

    Examples
    --------
    >>> measure_coverage("often", "student-t", n_logs=200).falls_short
    False
    """
    given = SETTINGS[check_choice(setting, "A setting", SETTINGS)]
    n_logs = check_integer(n_logs, "`n_logs`", at_least=1)
    numbers = np.random.default_rng(check_seed(seed))
    contexts = np.zeros((given.n_rows, 0))
    chances, clicks = np.array(given.chances), np.array(given.clicks)
    n_actions = len(chances)
    n_covered = 0
    for index in range(n_logs):
        actions = numbers.choice(n_actions, size=given.n_rows, p=chances)
        rewards = numbers.random(given.n_rows) < clicks[actions]
        log = BanditLog.of(contexts, actions, rewards, chances[actions], n_actions=n_actions)
        target = target_of(log, Always(n_actions, 0), floor=min(given.chances))
        estimate = importance_weighted(log, target)
        trials: tuple[int, int] | str = "it is not for differences"
        if given.compare:
            other = target_of(log, Always(n_actions, 1), floor=min(given.chances))
            estimate = estimate.minus(importance_weighted(log, other))
        elif bound == "clopper-pearson":
            trials = binomial_trials(log, target)
        low, high = ends(bound, estimate, confidence, trials=trials, seed=index)
        n_covered += low is not None and high is not None and low <= given.truth <= high
    return Coverage(bound, setting, confidence, n_covered, n_logs, _interval(n_covered, n_logs))


def _interval(n_successes: int, n_trials: int) -> tuple[float, float]:
    low = clopper_pearson(n_successes, n_trials, 0.999)
    high = 1.0 - clopper_pearson(n_trials - n_successes, n_trials, 0.999)
    return low, high
