"""A plain model of rewards: one ridge regression per action, fitted on other rows."""

import numpy as np

from keyhole.base.errors import FloatArray, check_integer, check_number, check_seed
from keyhole.data.bandit.log import BanditLog


def predict_rewards(
    log: BanditLog, *, penalty: float = 10.0, n_folds: int = 5, seed: int = 0
) -> FloatArray:
    """Return the predicted reward of every action in every row, (n, n_actions).

    The rows are dealt into folds at random. Each fold is predicted by regressions fitted on the
    other folds, so no row's prediction has seen its own reward.

    Parameters
    ----------
    penalty
        How strongly an action's prediction is drawn to the mean reward of all actions: as
        strongly as this many rows would.
    n_folds
        How many times to fit.

    Notes
    -----
    Features are standardised; an action that was never taken is predicted to earn the mean
    reward. Predictions of clicks may be below 0 or above 1: to cut them off would bias their mean.

    Examples
    --------
    >>> log = BanditLog.of(np.zeros((6, 0)), [0, 0, 0, 1, 1, 1], [1, 1, 1, 0, 0, 0], [0.5] * 6)
    >>> table = predict_rewards(log)
    >>> bool((table[:, 0] > table[:, 1]).all())
    True
    """
    check_number(penalty, "`penalty`", above=0.0)
    n_folds = check_integer(n_folds, "`n_folds`", at_least=2)
    fold = np.random.default_rng(check_seed(seed)).permutation(len(log)) % n_folds
    table = np.full((len(log), log.n_actions), log.mean_reward)
    for held_out in range(min(n_folds, len(log))):
        seen, unseen = fold != held_out, fold == held_out
        if seen.any():
            table[unseen] = _fit_and_predict(log, seen, log.contexts[unseen], penalty)
    return table


def _fit_and_predict(
    log: BanditLog, seen: FloatArray, contexts: FloatArray, penalty: float
) -> FloatArray:
    known, rewards, actions = log.contexts[seen], log.rewards[seen], log.actions[seen]
    centre, scale = known.mean(axis=0), known.std(axis=0)
    scale = np.where(scale > 0.0, scale, 1.0)
    fit, ask = (
        np.column_stack([np.ones(len(rows)), (rows - centre) / scale]) for rows in (known, contexts)
    )
    mean = float(rewards.mean())
    ridge = penalty * np.eye(fit.shape[1])
    table = np.full((len(ask), log.n_actions), mean)
    for action in np.unique(actions).tolist():  # one that was never taken has weights of 0
        rows = actions == action
        chosen = fit[rows]
        weights = np.linalg.solve(chosen.T @ chosen + ridge, chosen.T @ (rewards[rows] - mean))
        table[:, action] += ask @ weights
    return table
