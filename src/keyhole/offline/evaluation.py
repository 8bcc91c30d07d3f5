"""The gate: promote a policy only if a lower confidence bound says that it beats the baseline."""

from dataclasses import dataclass
from textwrap import shorten
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from keyhole.base.display import Described, Description
from keyhole.base.errors import InvalidInput, check_choice, check_seed
from keyhole.base.lazy import named
from keyhole.base.limits import check_memory
from keyhole.data.bandit.log import BanditLog, check_rewards_differ
from keyhole.data.bandit.row_digests import Overlap
from keyhole.offline.bounds import (
    BOUNDS,
    DEFAULT_BOUND,
    Bound,
    binomial_trials,
    check_confidence,
    lower_bounds,
)
from keyhole.offline.diagnostics import Diagnostics, diagnose
from keyhole.offline.estimators import (
    DECISIVE,
    ESTIMATORS,
    Estimate,
    Range,
    estimate_all,
    importance_weighted,
)
from keyhole.offline.intervals import Interval, intervals
from keyhole.offline.overlap import training_overlap, training_remarks, unseen_remarks
from keyhole.offline.rewards import predict_rewards
from keyhole.offline.target import HasProbabilities, Target, logged_target, target_of
from keyhole.policies.base import Always, Uniform

_BYTES_PER_CHANCE = 48
"""Chances, weights and predictions of both policies, of one action in one row."""
_LONGEST_REMARK = 80
NAMED = ("uniform", "logged", "best-fixed")
"""Policies that need no file."""

PolicyLike = HasProbabilities | ArrayLike | str
"""What can be evaluated: a policy, its probabilities row by row, or a name of NAMED."""


def told(value: float | None) -> str:
    """Return a number as tables of the gate have it."""
    return "none" if value is None else f"{value:.5f}"


def _between(line: "Line", bound: str) -> str:
    found = line.intervals[bound]
    return f"{told(line.estimate.value)} ({told(found.low)} to {told(found.high)})"


@dataclass(frozen=True, repr=False)
class Line(Described):
    """One estimate with all its lower bounds, and its intervals by the names of the bounds."""

    estimate: Estimate
    bounds: dict[str, Bound]
    intervals: dict[str, Interval]

    def _described(self) -> Description:
        rows = [
            (
                name,
                f"at least {told(bound.value)}; {told(self.intervals[name].low)} to "
                f"{told(self.intervals[name].high)}",
            )
            for name, bound in self.bounds.items()
            if bound.value is not None
        ]
        return Description(f"{self.estimate.name} {told(self.estimate.value)}", rows)

    @classmethod
    def of(cls, estimate: Estimate, confidence: float, **options: Any) -> "Line":
        """Return an estimate with all its bounds; options as in :func:`lower_bounds`."""
        return cls(
            estimate,
            lower_bounds(estimate, confidence, **options),
            intervals(estimate, confidence, **options),
        )

    def as_dict(self) -> dict[str, Any]:
        """Return the line as plain data."""
        return {
            "value": self.estimate.value,
            "standard_error": self.estimate.error,
            "bounds": {name: bound.value for name, bound in self.bounds.items()},
            "why_not": {
                name: bound.why_not for name, bound in self.bounds.items() if bound.value is None
            },
            "intervals": {name: found.ends for name, found in self.intervals.items()},
        }


@dataclass(frozen=True, repr=False)
class Judged(Described):
    """A policy on a log: every estimate with every bound, and how far the log can be trusted."""

    name: str
    lines: dict[str, Line]
    diagnostics: Diagnostics
    overlap: Overlap | None = None
    """How many rows it was trained on; None where it does not say."""

    def _described(self) -> Description:
        rows = [(name, line.estimate.told) for name, line in self.lines.items()]
        effective = f"{self.diagnostics.effective_rows:,.0f} of {self.diagnostics.n_rows:,}"
        return Description(self.name, [*rows, ("effective rows", effective)])

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain data."""
        overlap = self.overlap
        return {
            "name": self.name,
            "estimates": {name: line.as_dict() for name, line in self.lines.items()},
            "diagnostics": vars(self.diagnostics),
            "training_rows": None
            if overlap is None
            else {**vars(overlap), "share": overlap.share, "is_known": overlap.is_known},
        }


@dataclass(frozen=True, repr=False)
class Evaluation(Described):
    """The verdict on a policy, and the numbers behind it."""

    policy: Judged
    baseline: Judged
    difference: dict[str, Line]
    confidence: float
    decided_by: str
    n_rows: int
    notes: tuple[str, ...]
    warnings: tuple[str, ...]

    def _described(self) -> Description:
        names = (self.policy.name, self.baseline.name)
        title = f"{self.verdict}: {names[0]} against {names[1]} on {self.n_rows:,} rows"
        decided = f"{told(self.lower_bound)} ({self.decided_by}, {self.confidence:.3g})"
        rows = [
            (names[0], _between(self.policy.lines[DECISIVE], self.decided_by)),
            (names[1], _between(self.baseline.lines[DECISIVE], self.decided_by)),
            ("difference", _between(self.difference[DECISIVE], self.decided_by)),
            ("at least", decided),
        ]
        said = [("note", note) for note in self.notes] + [("warning", w) for w in self.warnings]
        cut = [(kind, shorten(text, _LONGEST_REMARK, placeholder=" …")) for kind, text in said]
        return Description(title, rows + cut)

    @property
    def lower_bound(self) -> float | None:
        """The bound on the importance-weighted difference that decides."""
        return self.difference[DECISIVE].bounds[self.decided_by].value

    @property
    def interval(self) -> tuple[float | None, float | None]:
        """The two-sided interval of the importance-weighted difference, beside that bound."""
        found = self.difference[DECISIVE].intervals[self.decided_by]
        return found.low, found.high

    @property
    def verdict(self) -> str:
        """``promote`` if the deciding bound on the difference is above 0, else ``keep``."""
        bound = self.lower_bound
        return "promote" if bound is not None and bound > 0.0 else "keep"

    def plot(self, ax: Any = None, *, label: str | None = None) -> Any:
        """Draw the difference of both policies with its lower bounds, and return the axes.

        ``keyhole.plot(a, b)`` draws several; see :func:`~keyhole.lab.figures.plots.plot` for the
        parameters. Above 0 the policy is better; the deciding bound is the end of a line.
        """
        labels = None if label is None else [label]
        return named("keyhole.lab.figures.plots:plot")(self, ax=ax, labels=labels)

    def drawing(self, label: str | None = None) -> Any:
        """Return what :meth:`plot` draws, labelled by both policies if nobody says how."""
        return named("keyhole.lab.figures.drawings:of_evaluation")(self, label)

    def as_dict(self) -> dict[str, Any]:
        """Return everything as plain data."""
        return {
            "verdict": self.verdict,
            "decided_by": self.decided_by,
            "lower_bound": self.lower_bound,
            "interval": list(self.interval),
            "confidence": self.confidence,
            "rows": self.n_rows,
            "policy": self.policy.as_dict(),
            "baseline": self.baseline.as_dict(),
            "difference": {name: line.as_dict() for name, line in self.difference.items()},
            "notes": list(self.notes),
            "warnings": list(self.warnings),
        }


def best_fixed_action(log: BanditLog) -> int:
    """Return the action that seems to earn the most if it is shown to everyone.

    It has the greatest importance-weighted value after one standard error is taken off: a single
    lucky reward does not count. Ties go to the lowest action.
    """
    # All that were never taken are worth 0: the lowest of them stands for them.
    taken = np.unique(log.actions)
    never = np.setdiff1d(np.arange(min(log.n_actions, len(taken) + 1)), taken)[:1]
    candidates = np.union1d(taken, never).tolist()
    worth = []
    for action in candidates:
        policy = Always(log.n_actions, action)
        estimate = importance_weighted(log, target_of(log, policy))
        worth.append(estimate.value - estimate.error)
    return int(candidates[int(np.argmax(worth))])


def evaluate(
    log: BanditLog,
    policy: PolicyLike,
    baseline: PolicyLike = "logged",
    confidence: float = 0.95,
    *,
    bound: str = DEFAULT_BOUND,
    rewards: Range | None = None,
    floor: float | None = None,
    clip: float | None = None,
    predictions: ArrayLike | None = None,
    names: tuple[str, str] | None = None,
    allow_training_rows: bool = False,
    seed: int = 0,
) -> Evaluation:
    """Compare a policy with a baseline on a log, and say whether to promote it.

    The rule: promote if and only if the lower confidence bound on the difference of their
    importance-weighted values is above 0. The difference is taken row by row. Everything else is
    printed beside it and decides nothing.

    Parameters
    ----------
    log
        Must not be what either policy was trained on: a policy that knows its training rows is
        refused where more than one in a hundred of the log's are among them, beyond what chance
        explains.
    policy, baseline
        Something with a method ``probabilities``, or its result on this log, or ``uniform``,
        ``logged`` (the policy that wrote the log) or ``best-fixed`` (one action for everyone).
        The best action is chosen on a random half of the log; then both are evaluated on the
        other half.
    bound
        The bound that decides. The default, ``betting``, holds for every number of rows.
    rewards
        The range that rewards keep; by default 0 to 1.
    floor
        The least propensity of the logging policy; by default the least in the log.
    clip
        Largest weight of the clipped estimate; by default the square root of the rows.
    predictions
        Rewards of all actions by a model fitted on another log, (n, n_actions); by default a
        cross-fitted ridge regression per action.
    names
        What to call policy and baseline.
    allow_training_rows
        Judge a policy on its own training rows too, with a warning.
    seed
        Halves the log for ``best-fixed``, deals the folds of the regression, draws the bootstrap.

    Examples
    --------
    >>> numbers = np.random.default_rng(0)
    >>> actions = numbers.integers(2, size=4000)
    >>> clicks = numbers.random(4000) < np.where(actions == 1, 0.10, 0.05)
    >>> log = BanditLog.of(np.zeros((4000, 0)), actions, clicks, np.full(4000, 0.5))
    >>> evaluate(log, Always(2, 1), "logged").verdict
    'promote'
    >>> evaluate(log, "uniform", Always(2, 1)).verdict
    'keep'
    """
    check_rewards_differ(log, "to compare policies")
    confidence, seed = check_confidence(confidence), check_seed(seed)
    check_memory(
        float(len(log)) * log.n_actions * _BYTES_PER_CHANCE,
        f"The chances of {log.n_actions} actions in {len(log)} rows",
    )
    check_choice(bound, "`bound`", BOUNDS)
    if not BOUNDS[bound].compares:
        raise InvalidInput(
            f"`bound` must bound a difference of two policies, which {bound} does not."
        )
    shown = names or (_name_of(policy, "policy"), _name_of(baseline, "baseline"))
    overlaps, notes, remarks = _trained_on(log, (policy, baseline), shown, allow_training_rows)
    if _is_best(policy) or _is_best(baseline):
        chosen, kept = _halves(log, seed)
        best = best_fixed_action(log.rows(chosen))
        notes.append(
            f"best-fixed is action {log.name_of(best)}, chosen on {int(chosen.sum())} rows; the "
            f"{int(kept.sum())} others are what everything is evaluated on."
        )
        log = log.rows(kept)
        check_rewards_differ(log, "to compare policies")
        fixed = Always(log.n_actions, best)
        policy, baseline = (
            fixed if _is_best(each) else _rows_of(each, kept) for each in (policy, baseline)
        )
        if predictions is not None:
            predictions = np.asarray(predictions)[kept]
    elsewhere = predictions is not None
    table = predict_rewards(log, seed=seed) if predictions is None else predictions
    targets = [_target(log, each, floor) for each in (policy, baseline)]
    estimates = [
        estimate_all(log, t, table, rewards=rewards, clip=clip, fitted_elsewhere=elsewhere)
        for t in targets
    ]
    judged = [
        Judged(name, _lines(log, target, found, confidence, seed), diagnose(log, target), overlap)
        for name, target, found, overlap in zip(shown, targets, estimates, overlaps, strict=True)
    ]
    no_trials = "it is not for differences of two policies"
    difference = {
        name: Line.of(
            estimates[0][name].minus(estimates[1][name]), confidence, trials=no_trials, seed=seed
        )
        for name in ESTIMATORS
    }
    warnings = remarks + [w for each in judged for w in each.diagnostics.warnings(each.name)]
    warnings += no_bound(difference, bound)
    return Evaluation(
        judged[0], judged[1], difference, confidence, bound, len(log), tuple(notes), tuple(warnings)
    )


def no_bound(difference: dict[str, Line], bound: str) -> list[str]:
    """Return a warning where there is nothing that could decide."""
    decisive = difference[DECISIVE].bounds[bound]
    if decisive.value is not None:
        return []
    return [f"There is no {bound} bound: {decisive.why_not}; give the range of rewards."]


def _name_of(policy: PolicyLike, role: str) -> str:
    if isinstance(policy, str):
        return policy
    return type(policy).__name__ if hasattr(policy, "probabilities") else role


def _is_best(policy: PolicyLike) -> bool:
    return isinstance(policy, str) and policy == "best-fixed"


def _rows_of(policy: PolicyLike, rows: Any) -> PolicyLike:
    """Return the rows of a policy that is given as an array; any other answers for any rows."""
    if isinstance(policy, str) or hasattr(policy, "probabilities"):
        return policy
    table = np.asarray(policy)
    return table[rows] if len(table) == len(rows) else table


def _halves(log: BanditLog, seed: int) -> tuple[Any, Any]:
    if len(log) < 4:
        raise InvalidInput(f"best-fixed needs a log of at least 4 rows, got {len(log)}.")
    chosen = np.random.default_rng(seed).permutation(len(log)) < len(log) // 2
    return chosen, ~chosen


def _target(log: BanditLog, policy: PolicyLike, floor: float | None) -> Target:
    if not isinstance(policy, str):
        return target_of(log, policy, floor=floor)
    check_choice(policy, "A policy", NAMED)
    if policy == "logged":
        return logged_target(log)
    return target_of(log, Uniform(log.n_actions), floor=floor)


def _lines(
    log: BanditLog, target: Target, estimates: dict[str, Estimate], confidence: float, seed: int
) -> dict[str, Line]:
    """Return every estimate of one policy with all its bounds."""
    trials: tuple[int, int] | str
    try:
        trials = binomial_trials(log, target)
    except InvalidInput as error:
        trials = str(error)
    return {
        name: Line.of(
            estimate, confidence, seed=seed, **({"trials": trials} if name == DECISIVE else {})
        )
        for name, estimate in estimates.items()
    }


def _trained_on(
    log: BanditLog, policies: tuple[PolicyLike, ...], names: tuple[str, str], allowed: bool
) -> tuple[list[Overlap | None], list[str], list[str]]:
    """Return what policies share with a log, notes and warnings; raise where that is too much."""
    overlaps, notes, warnings = [], [], []
    for name, policy in zip(names, policies, strict=True):
        overlap = training_overlap(log, policy)
        more, graver = training_remarks(name, policy, overlap, allowed=allowed)
        overlaps.append(overlap)
        notes += more + unseen_remarks(log, name, policy)
        warnings += graver
    return overlaps, notes, warnings
