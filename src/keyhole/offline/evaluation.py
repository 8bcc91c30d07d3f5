"""A policy judged on a log of choices: promoted only if a lower bound says that it is better."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from keyhole.base.errors import InvalidInput, check_choice, check_seed
from keyhole.base.limits import check_memory
from keyhole.data.bandit.log import BanditLog, check_rewards_differ
from keyhole.offline.bounds import DEFAULT_BOUND, check_bound, check_confidence
from keyhole.offline.diagnostics import diagnose
from keyhole.offline.estimators import Range, estimate_all, importance_weighted, predict_rewards
from keyhole.offline.report import Evaluation, Side, compare
from keyhole.offline.target import (
    NAMED,
    HasProbabilities,
    Target,
    binomial_trials,
    logged_target,
    target_of,
    training_overlap,
    training_remarks,
    unseen_remarks,
)
from keyhole.policies.base import Always, Uniform

_BYTES_PER_CHANCE = 48
"""Chances, weights and predictions of both policies, of one action in one row."""

PolicyLike = HasProbabilities | ArrayLike | str
"""What can be evaluated: a policy, its probabilities row by row, or a name of NAMED."""


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
    confidence, seed, bound = check_confidence(confidence), check_seed(seed), check_bound(bound)
    check_memory(
        float(len(log)) * log.n_actions * _BYTES_PER_CHANCE,
        f"The chances of {log.n_actions} actions in {len(log)} rows",
    )
    shown = names or (_name_of(policy, "policy"), _name_of(baseline, "baseline"))
    asked = [policy, baseline]
    overlaps = [training_overlap(log, each) for each in asked]
    notes: list[str] = []
    remarks: list[str] = []
    for name, each, overlap in zip(shown, asked, overlaps, strict=True):
        more, graver = training_remarks(name, each, overlap, allowed=allow_training_rows)
        notes += more + unseen_remarks(log, name, each)
        remarks += graver
    if any(_is_best(each) for each in asked):
        chosen, kept = _halves(log, seed)
        best = best_fixed_action(log.rows(chosen))
        notes.append(
            f"best-fixed is action {log.name_of(best)}, chosen on {int(chosen.sum())} rows; the "
            f"{int(kept.sum())} others are what everything is evaluated on."
        )
        log = log.rows(kept)
        check_rewards_differ(log, "to compare policies")
        fixed = Always(log.n_actions, best)
        asked = [fixed if _is_best(each) else _rows_of(each, kept) for each in asked]
        if predictions is not None:
            predictions = np.asarray(predictions)[kept]
    elsewhere = predictions is not None
    table = predict_rewards(log, seed=seed) if predictions is None else predictions
    sides = []
    for name, each, overlap in zip(shown, asked, overlaps, strict=True):
        target = _target(log, each, floor)
        estimates = estimate_all(
            log, target, table, rewards=rewards, clip=clip, fitted_elsewhere=elsewhere
        )
        sides.append(Side(name, estimates, diagnose(log, target), overlap, _trials(log, target)))
    return compare(sides, confidence, bound, notes=notes, remarks=remarks, seed=seed)


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


def _trials(log: BanditLog, target: Target) -> tuple[int, int] | str:
    try:
        return binomial_trials(log, target)
    except InvalidInput as error:
        return str(error)
