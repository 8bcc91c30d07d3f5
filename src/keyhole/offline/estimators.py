"""What a policy would have earned, estimated from another policy's log."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from keyhole.base.display import Described, Description
from keyhole.base.errors import FloatArray, InvalidInput, check_number
from keyhole.data.bandit.log import BanditLog
from keyhole.offline.target import Target

Bias = Literal["none", "down", "vanishing", "unknown"]
"""The expected estimate is the value, at most that, that in the limit, or who knows."""

Range = tuple[float, float]


@dataclass(frozen=True, repr=False)
class Estimate(Described):
    """An estimate as the mean of one contribution per row.

    ``range`` holds every value that a contribution could have had, if contributions are
    independent of each other: what bounds with a guarantee need. Otherwise it is None.
    ``value_range`` holds what is estimated, whatever the rows: rewards of 0 and 1 are never worth
    more than 1 in the mean, though single contributions may be.
    """

    name: str
    contributions: FloatArray
    bias: Bias
    range: Range | None = None
    value_range: Range | None = None

    def _described(self) -> Description:
        return Description(f"{self.name} {self.told} of {len(self.contributions):,} rows")

    @property
    def told(self) -> str:
        """The estimate and its error, in short."""
        return f"{self.value:.5g} ± {self.error:.2g}"

    @property
    def value(self) -> float:
        """The estimated reward per row."""
        return float(self.contributions.mean())

    @property
    def error(self) -> float:
        """Its standard error."""
        n_rows = len(self.contributions)
        return float(self.contributions.std(ddof=1)) / math.sqrt(n_rows) if n_rows > 1 else math.nan

    def negated(self) -> "Estimate":
        """Return the estimate of what is lost: every contribution with its sign changed."""
        spans = (_difference((0.0, 0.0), span) for span in (self.range, self.value_range))
        return Estimate(self.name, -self.contributions, self.bias, *spans)

    def minus(self, other: "Estimate") -> "Estimate":
        """Return the estimated difference, row by row, which takes out what both share."""
        kinds = {self.bias, other.bias}
        bias: Bias = "unknown"  # what both miss need not cancel
        if kinds == {"none"}:
            bias = "none"
        elif kinds <= {"none", "vanishing"}:
            bias = "vanishing"
        return Estimate(
            self.name,
            self.contributions - other.contributions,
            bias,
            _difference(self.range, other.range),
            _difference(self.value_range, other.value_range),
        )


def _difference(one: Range | None, other: Range | None) -> Range | None:
    """Return what a difference can be, if it is known what both can be."""
    return None if one is None or other is None else (one[0] - other[1], one[1] - other[0])


def reward_range(log: BanditLog, given: Range | None = None) -> Range | None:
    """Return the range that rewards are known to keep: as given, or 0 to 1 if the log agrees."""
    low, high = (0.0, 1.0) if given is None else given
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise InvalidInput(f"`rewards` must be a low and a higher number, got {given}.")
    inside = bool((log.rewards >= low).all() and (log.rewards <= high).all())
    if given is not None and not inside:
        raise InvalidInput(
            f"Rewards must be between {low:g} and {high:g} as given, got {log.rewards.min():g} to "
            f"{log.rewards.max():g}."
        )
    return (low, high) if inside else None


def _weighted_range(weight: float, rewards: Range | None) -> Range | None:
    if rewards is None:
        return None
    return min(0.0, weight * rewards[0]), max(0.0, weight * rewards[1])


def importance_weighted(
    log: BanditLog, target: Target, *, rewards: Range | None = None
) -> Estimate:
    """Return the mean of rewards times weights, which is unbiased.

    Notes
    -----
    Eq. 5.4 of [T16]; the logging policy may be any whose propensities are known, not only a
    uniform one. It is unbiased where every action the policy takes had a positive propensity.

    Examples
    --------
    >>> from keyhole import target_of
    >>> log = BanditLog.of([[0.5], [0.1]], actions=[1, 0], rewards=[0, 1], propensities=[0.5, 0.5])
    >>> importance_weighted(log, target_of(log, [[0.2, 0.8], [0.2, 0.8]])).value
    0.2
    """
    known = reward_range(log, rewards)
    span = _weighted_range(target.largest_weight, known)
    return Estimate("importance-weighted", target.weights * log.rewards, "none", span, known)


def self_normalised(log: BanditLog, target: Target) -> Estimate:
    """Return the weighted mean of rewards: the weights sum to 1.

    Notes
    -----
    Consistent, not unbiased: an average of rewards that were seen, whatever the weights. The
    contributions are v + w (r - v) / mean(w), whose mean is the estimate v and whose spread is
    that of its linear approximation; they are not independent, so no bound has a guarantee.
    """
    total = float(target.weights.sum())
    if total == 0.0:
        return Estimate("self-normalised", np.full(len(log), math.nan), "vanishing")
    value = float((target.weights * log.rewards).sum()) / total
    mean_weight = total / len(log)
    contributions = value + target.weights * (log.rewards - value) / mean_weight
    return Estimate("self-normalised", contributions, "vanishing")


def clipped(
    log: BanditLog, target: Target, *, rewards: Range | None = None, clip: float | None = None
) -> Estimate:
    """Return the mean of rewards times weights of at most ``clip``.

    Notes
    -----
    By default weights are clipped at the square root of the number of rows. Where no reward is
    negative the estimate is at most the value in expectation: a lower bound on it is one on the
    value. That is not so for a difference of two policies.
    """
    clip = math.sqrt(len(log)) if clip is None else check_number(clip, "`clip`", above=0.0)
    span = reward_range(log, rewards)
    down: Bias = "down" if span is not None and span[0] >= 0.0 else "unknown"
    return Estimate(
        "clipped",
        np.minimum(target.weights, clip) * log.rewards,
        "none" if target.largest_weight <= clip else down,
        _weighted_range(min(target.largest_weight, clip), span),
        span,
    )


def direct(log: BanditLog, target: Target, predictions: ArrayLike) -> Estimate:
    """Return the mean reward that a model predicts; its bias is that of the model.

    Parameters
    ----------
    predictions
        The reward of every action in every row, (n, n_actions), such as those of
        :func:`~keyhole.offline.rewards.predict_rewards`.
    """
    table = _check_predictions(log, predictions)
    return Estimate("direct", (target.probabilities * table).sum(axis=1), "unknown")


def doubly_robust(
    log: BanditLog,
    target: Target,
    predictions: ArrayLike,
    *,
    rewards: Range | None = None,
    fitted_elsewhere: bool = False,
) -> Estimate:
    """Return predicted rewards, corrected by the weighted errors of the predictions.

    Parameters
    ----------
    predictions
        The reward of every action in every row, (n, n_actions), from a model that has not seen
        the row's reward: of another log, or cross-fitted as ``predict_rewards`` does.
    fitted_elsewhere
        Whether the model has seen no row of this log at all. Only then are the contributions
        independent, and only then do bounds have a guarantee.

    Notes
    -----
    Dudík, Langford and Li 2011; unbiased whatever the model.
    """
    table = _check_predictions(log, predictions)
    expected = (target.probabilities * table).sum(axis=1)
    logged = table[np.arange(len(log)), log.actions]
    span = None
    known = reward_range(log, rewards)
    if fitted_elsewhere and known is not None:
        low, high = min(known[0], float(table.min())), max(known[1], float(table.max()))
        reach = target.largest_weight * (high - low)
        span = (low - reach, high + reach)
    contributions = expected + target.weights * (log.rewards - logged)
    return Estimate("doubly-robust", contributions, "none", span, known)


def _check_predictions(log: BanditLog, given: ArrayLike) -> FloatArray:
    table = np.asarray(given, dtype=np.float64)
    if table.shape != (len(log), log.n_actions) or not np.isfinite(table).all():
        raise InvalidInput(
            f"`predictions` must be finite numbers of shape {(len(log), log.n_actions)}, got shape "
            f"{table.shape}."
        )
    return table


class _Question(NamedTuple):
    """What an estimator may ask for."""

    log: BanditLog
    target: Target
    predictions: ArrayLike
    rewards: Range | None
    clip: float | None
    fitted_elsewhere: bool


ESTIMATORS: dict[str, Callable[[_Question], Estimate]] = {
    "importance-weighted": lambda q: importance_weighted(q.log, q.target, rewards=q.rewards),
    "self-normalised": lambda q: self_normalised(q.log, q.target),
    "clipped": lambda q: clipped(q.log, q.target, rewards=q.rewards, clip=q.clip),
    "direct": lambda q: direct(q.log, q.target, q.predictions),
    "doubly-robust": lambda q: doubly_robust(
        q.log, q.target, q.predictions, rewards=q.rewards, fitted_elsewhere=q.fitted_elsewhere
    ),
}
DECISIVE = next(iter(ESTIMATORS))
"""The first is the one that decides."""


def estimate_all(
    log: BanditLog,
    target: Target,
    predictions: ArrayLike,
    *,
    rewards: Range | None = None,
    clip: float | None = None,
    fitted_elsewhere: bool = False,
) -> dict[str, Estimate]:
    """Return every estimate of a policy's value, by name."""
    asked = _Question(log, target, predictions, rewards, clip, fitted_elsewhere)
    return {name: estimate(asked) for name, estimate in ESTIMATORS.items()}
