"""Lower confidence bounds on a mean, below it with the stated probability, and intervals of them.

``betting``, ``empirical-bernstein`` and ``clopper-pearson`` hold for every number of rows;
``student-t`` and ``bootstrap`` hold in the limit, and docs/offline.md says how far they are from it
where clicks are rare.
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from keyhole.base.errors import (
    FloatArray,
    InvalidInput,
    LibraryMissing,
    check_choice,
    check_integer,
    check_number,
    check_seed,
)
from keyhole.base.limits import check_memory
from keyhole.offline.estimators import Estimate

_BOLDEST = 0.5
_HALVINGS = 40
_FEW_VALUES = 100
_GROUPS = 5000
_PICKS_AT_ONCE = 100_000
"""Rows that the bootstrap draws in one go: as many as a processor's cache holds."""


@dataclass(frozen=True)
class Bound:
    """A lower bound, or why there is none."""

    name: str
    value: float | None
    why_not: str = ""


@dataclass(frozen=True)
class Interval:
    """An interval around an estimate; an end that nothing bounds is None, and ``why_not`` why."""

    name: str
    low: float | None
    high: float | None
    why_not: str = ""

    @property
    def ends(self) -> list[float | None]:
        """Both ends, as plain data."""
        return [self.low, self.high]


def _special() -> Any:
    try:
        from scipy import special

        return special
    except ModuleNotFoundError:
        raise LibraryMissing("Confidence bounds need SciPy", "logs") from None


def check_confidence(confidence: Any) -> float:
    """Return a confidence strictly between 0 and 1, or raise."""
    confidence = check_number(confidence, "`confidence`", above=0.0)
    if confidence >= 1.0:
        raise InvalidInput(f"`confidence` must be a number below 1, got {confidence:g}.")
    return confidence


def student_t(contributions: FloatArray, confidence: float = 0.95) -> float:
    """Return mean - s / sqrt(n) t, with t the quantile of Student's distribution.

    Notes
    -----
    Eq. 5.5 of [T16]. Exact for normal contributions and in the limit. Rewards of rare clicks are
    far from normal: what is skewed to the right is covered more often than stated, what is
    skewed to the left less often.

    Examples
    --------
    >>> round(student_t(np.array([0.0, 1.0, 1.0, 0.0, 1.0])), 4)
    0.0778
    """
    n_rows = len(contributions)
    if n_rows < 2:
        raise InvalidInput(f"Student's bound needs at least 2 rows, got {n_rows}.")
    quantile = float(_special().stdtrit(n_rows - 1, check_confidence(confidence)))
    spread = float(contributions.std(ddof=1))
    return float(contributions.mean()) - spread / math.sqrt(n_rows) * quantile


def empirical_bernstein(
    contributions: FloatArray, confidence: float = 0.95, *, low: float, high: float
) -> float:
    """Return mean - sqrt(2 V ln(2/delta) / n) - 7 (high - low) ln(2/delta) / (3 (n - 1)).

    Notes
    -----
    Theorem 4 of Maurer and Pontil 2009: holds for independent contributions between ``low`` and
    ``high``, whatever their distribution. V is their sample variance.

    Examples
    --------
    >>> coins = np.tile([0.0, 1.0], 5000)
    >>> round(empirical_bernstein(coins, low=0.0, high=1.0), 4)
    0.4856
    """
    n_rows = len(contributions)
    if n_rows < 2:
        raise InvalidInput(f"Bernstein's bound needs at least 2 rows, got {n_rows}.")
    _check_range(contributions, low, high)
    surprise = math.log(2.0 / (1.0 - check_confidence(confidence)))
    variance = float(contributions.var(ddof=1))
    return (
        float(contributions.mean())
        - math.sqrt(2.0 * variance * surprise / n_rows)
        - 7.0 * (high - low) * surprise / (3.0 * (n_rows - 1))
    )


def betting(
    contributions: FloatArray, confidence: float = 0.95, *, low: float, high: float
) -> float:
    """Return the least mean against which a cautious gambler could not have become rich.

    For every mean that could be the true one, a gambler starts with 1 and bets row by row that
    contributions are larger. If that mean is the true one, the bets are fair or worse, and
    the chance of ever owning 1/delta is at most delta. Means at which the gambler owns that much
    are ruled out; the bound is the least that is not.

    Notes
    -----
    Waudby-Smith and Ramdas 2024, the one-sided capital with predictable plug-in bets:
    sqrt(2 ln(1/delta) / (n V)), V the variance of the rows before, at most half of what can be
    lost. Holds for independent contributions of at least ``low``; ``high`` only tunes the first
    bets, so a value of rewards that cannot be negative needs no largest weight. The bound
    depends a little on the order of the rows; that of the log is used.

    Examples
    --------
    >>> coins = np.tile([0.0, 1.0], 5000)
    >>> round(betting(coins, low=0.0, high=1.0), 4)
    0.4878
    """
    _check_range(contributions, low, high)
    surprise = -math.log(1.0 - check_confidence(confidence))
    above = contributions - low
    bets = np.sqrt(2.0 * surprise / (len(above) * _variance_before(above, high - low)))

    def ruled_out(mean: float) -> bool:
        gains = np.minimum(bets, _BOLDEST / mean) * (above - mean)
        return float(np.log1p(gains).sum()) >= surprise

    # Every factor falls as the mean grows, so what is ruled out is an interval from `low` on.
    out, kept = 0.0, float(above.mean())
    if kept == 0.0:
        return low
    for _ in range(_HALVINGS):
        middle = (out + kept) / 2.0
        if ruled_out(middle):
            out = middle
        else:
            kept = middle
    return low + out


def _variance_before(values: FloatArray, width: float) -> FloatArray:
    """Return the variance of the values before each, as if one had been half the width off."""
    count = np.arange(len(values))
    total = np.concatenate([[0.0], np.cumsum(values)[:-1]])
    squares = np.concatenate([[0.0], np.cumsum(values * values)[:-1]])
    spread = np.maximum(squares - total * total / np.maximum(count, 1), 0.0)
    return (width * width / 4.0 + spread) / (count + 1)


def clopper_pearson(n_successes: int, n_trials: int, confidence: float = 0.95) -> float:
    """Return the exact lower bound on the probability of a success.

    Examples
    --------
    >>> round(clopper_pearson(3, 1000), 6)
    0.000818
    """
    n_trials = check_integer(n_trials, "`n_trials`", at_least=1)
    n_successes = check_integer(
        n_successes, "`n_successes`", at_least=0, at_most=n_trials, bound="n_trials="
    )
    delta = 1.0 - check_confidence(confidence)
    if n_successes == 0:
        return 0.0
    return float(_special().betaincinv(n_successes, n_trials - n_successes + 1, delta))


def bootstrap(
    contributions: FloatArray, confidence: float = 0.95, *, n_resamples: int = 2000, seed: int = 0
) -> float:
    """Return the percentile bootstrap bound: a low quantile of the means of resampled rows.

    Notes
    -----
    Where rows have few different values, how often each comes is drawn at once. Otherwise more
    than 5,000 rows are dealt into 5,000 groups first and groups are resampled, whose means spread
    as those of rows do.

    Examples
    --------
    >>> coins = np.tile([0.0, 1.0], 5000)
    >>> 0.49 < bootstrap(coins) < 0.4925
    True
    """
    confidence = check_confidence(confidence)
    n_resamples = check_integer(n_resamples, "`n_resamples`", at_least=100)
    numbers, n_rows = np.random.default_rng(check_seed(seed)), len(contributions)
    values, counts = np.unique(contributions, return_counts=True)
    check_memory(8.0 * n_resamples * min(len(values), _FEW_VALUES), f"`n_resamples`={n_resamples}")
    if len(values) <= _FEW_VALUES:
        drawn = numbers.multinomial(n_rows, counts / n_rows, size=n_resamples)
        means = drawn @ values / n_rows
    else:
        group = numbers.permutation(n_rows) % min(n_rows, _GROUPS)
        sums, sizes = np.bincount(group, weights=contributions), np.bincount(group)
        means, at_once = np.empty(n_resamples), max(1, _PICKS_AT_ONCE // len(sums))
        for some in np.split(means, range(at_once, n_resamples, at_once)):
            picks = numbers.integers(len(sums), size=(len(some), len(sums)))
            some[:] = sums[picks].sum(axis=1) / sizes[picks].sum(axis=1)
    return float(np.quantile(means, 1.0 - confidence, method="lower"))


def _check_range(contributions: FloatArray, low: float, high: float) -> None:
    if not (contributions.min() >= low and contributions.max() <= high and low < high):
        raise InvalidInput(
            f"Contributions must be between low={low:g} and high={high:g}, got "
            f"{contributions.min():g} to {contributions.max():g}."
        )


_NO_TRIALS = "it is for the importance-weighted value of one policy"


class BoundRequest(NamedTuple):
    """What a bound is asked: of which estimate, how sure, and what else is known."""

    estimate: Estimate
    confidence: float
    trials: tuple[int, int] | str = _NO_TRIALS
    seed: int = 0

    def mirrored(self) -> "BoundRequest":
        """Return what bounds the same from above: losses for gains, failures for successes."""
        trials = self.trials
        if not isinstance(trials, str):
            trials = (trials[1] - trials[0], trials[1])
        return self._replace(estimate=self.estimate.negated(), trials=trials)

    @property
    def rows(self) -> FloatArray:
        return self.estimate.contributions

    @property
    def range(self) -> dict[str, float]:
        """What contributions keep, as the bounds that need it take it."""
        low, high = self.estimate.range or (math.nan, math.nan)
        return {"low": low, "high": high}


def _in_the_limit(asked: BoundRequest) -> str:
    """Return why a bound that holds in the limit does not apply, or nothing."""
    return "the bias of the estimate is not known" if asked.estimate.bias == "unknown" else ""


def _for_every_number_of_rows(asked: BoundRequest) -> str:
    if asked.estimate.bias == "vanishing":
        return "the estimate is unbiased in the limit only"
    if asked.estimate.bias != "unknown" and asked.estimate.range is None:
        return "the range of rewards is not known, or the rows depend on each other"
    return _in_the_limit(asked)


def _of_trials(asked: BoundRequest) -> str:
    return asked.trials if isinstance(asked.trials, str) else ""


@dataclass(frozen=True)
class BoundRow:
    """One way to bound a value from below.

    ``compute`` is the bound, ``why_not`` the reason why there is none (empty where there is one).
    ``is_guaranteed`` says that it holds for every number of rows, ``compares`` that it can bound
    the difference of two policies. What is bounded from above is ``mirror`` less the bound of what
    is mirrored: 1 for probabilities, 0 for the rest.
    """

    compute: Callable[[BoundRequest], float]
    why_not: Callable[[BoundRequest], str]
    is_guaranteed: bool = False
    compares: bool = True
    mirror: float = 0.0


BOUNDS: dict[str, BoundRow] = {
    "betting": BoundRow(
        lambda asked: betting(asked.rows, asked.confidence, **asked.range),
        _for_every_number_of_rows,
        is_guaranteed=True,
    ),
    "empirical-bernstein": BoundRow(
        lambda asked: empirical_bernstein(asked.rows, asked.confidence, **asked.range),
        _for_every_number_of_rows,
        is_guaranteed=True,
    ),
    "clopper-pearson": BoundRow(
        lambda asked: clopper_pearson(int(asked.trials[0]), int(asked.trials[1]), asked.confidence),
        _of_trials,
        is_guaranteed=True,
        compares=False,
        mirror=1.0,
    ),
    "student-t": BoundRow(lambda asked: student_t(asked.rows, asked.confidence), _in_the_limit),
    "bootstrap": BoundRow(
        lambda asked: bootstrap(asked.rows, asked.confidence, seed=asked.seed), _in_the_limit
    ),
}
DEFAULT_BOUND = next(iter(BOUNDS))
"""The first is the one that decides by default."""


def check_bound(name: Any) -> str:
    """Return the name of a bound that can decide between two policies, or raise."""
    if not BOUNDS[check_choice(name, "`bound`", BOUNDS)].compares:
        raise InvalidInput(
            f"`bound` must bound a difference of two policies, which {name} does not."
        )
    return str(name)


def lower_bound(
    name: str,
    estimate: Estimate,
    confidence: float = 0.95,
    *,
    trials: tuple[int, int] | str = _NO_TRIALS,
    seed: int = 0,
) -> Bound:
    """Return one lower bound on the value behind an estimate, or why there is none.

    Parameters
    ----------
    name
        One of ``BOUNDS``.
    trials
        Successes and trials of :func:`binomial_trials`, or why there are none.
    """
    row = BOUNDS[check_choice(name, "A bound", BOUNDS)]
    asked = BoundRequest(estimate, confidence, trials, seed)
    if len(asked.rows) < 2 or np.isnan(asked.rows).any():
        return Bound(name, None, "there is no estimate")
    why_not = row.why_not(asked)
    return Bound(name, None if why_not else row.compute(asked), why_not)


def lower_bounds(
    estimate: Estimate, confidence: float = 0.95, *, names: Iterable[str] = BOUNDS, **options: Any
) -> dict[str, Bound]:
    """Return lower bounds by name, by default every one; options as :func:`lower_bound`."""
    return {name: lower_bound(name, estimate, confidence, **options) for name in names}


def interval(name: str, estimate: Estimate, confidence: float = 0.95, **options: Any) -> Interval:
    """Return a two-sided interval: either end is wrong with half of 1 - confidence.

    Parameters
    ----------
    name
        One of ``BOUNDS``. The upper end is the lower bound of the rows with their signs changed, so
        it holds where the lower bound holds; bounds that need a largest contribution for it take
        that of the estimate's range. No end is beyond what rewards can be worth in the mean.
    options
        Those of :func:`lower_bound`.

    Notes
    -----
    What holds in the limit may be far from it where rewards are rare: at .3 % clicks and 2,000
    rows, half of them with weight 2, an interval of Student's at 95 % holds in 79.7 % of logs, its
    lower end alone in 99.6 %: logs with few clicks have a low estimate and little spread at once.

    Examples
    --------
    >>> coins = Estimate("coins", np.tile([0.0, 1.0], 5000), "none", (0.0, 1.0))
    >>> found = interval("betting", coins)
    >>> round(found.low, 4), round(found.high, 4)
    (0.4864, 0.5136)
    """
    row = BOUNDS[check_choice(name, "A bound", BOUNDS)]
    half = (1.0 + check_confidence(confidence)) / 2.0
    below = lower_bound(name, estimate, half, **options)
    if below.value is None:
        return Interval(name, None, None, below.why_not)
    if estimate.bias == "down":
        return Interval(
            name, below.value, None, "the estimate may be too low, by nobody knows what"
        )
    above = row.mirror - row.compute(BoundRequest(estimate, half, **options).mirrored())
    least, most = estimate.value_range or (-math.inf, math.inf)
    low, high = (min(max(end, least), most) for end in (below.value, above))
    return Interval(name, low, high)


def intervals(
    estimate: Estimate, confidence: float = 0.95, *, names: Iterable[str] = BOUNDS, **options: Any
) -> dict[str, Interval]:
    """Return two-sided intervals by the names of bounds; arguments as :func:`lower_bounds`."""
    return {name: interval(name, estimate, confidence, **options) for name in names}
