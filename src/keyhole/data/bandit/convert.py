"""Labelled data as the log of a policy that shows ads at random."""

import numpy as np
from numpy.typing import ArrayLike

from keyhole.base.errors import IntArray, InvalidInput, check_seed
from keyhole.data.bandit.log import BanditLog
from keyhole.kernels.draw import WORLD_STREAM, Draw, stream_of, uniforms


def check_indices(values: ArrayLike, name: str) -> IntArray:
    """Return a list of integers from 0, or raise."""
    try:
        given = np.asarray(values)
        numbers = given.astype(np.float64)
        whole = bool((np.isfinite(numbers) & (numbers == np.floor(numbers)) & (numbers >= 0)).all())
    except (TypeError, ValueError):
        whole = False
    if not whole:
        raise InvalidInput(f"{name} must be integers from 0.")
    indices: IntArray = given.astype(np.int64)
    return indices


def bandit_feedback(
    features: ArrayLike, labels: ArrayLike, *, n_actions: int | None = None, seed: int = 0
) -> BanditLog:
    """Turn a K-class data set into bandit feedback (E6).

    Each example is shown one class, drawn uniformly; the reward is 1 if it is the right one. The
    propensity is 1/K, and the labels are hidden.

    Examples
    --------
    >>> log = bandit_feedback([[0.5], [1.5], [2.5]], [0, 1, 1], seed=1)
    >>> log.propensities.tolist(), log.n_actions
    ([0.5, 0.5, 0.5], 2)
    >>> (log.rewards == (log.actions == [0, 1, 1])).all()
    np.True_
    """
    table = np.ascontiguousarray(features, dtype=np.float64)
    classes = check_indices(labels, "labels")
    if table.ndim != 2 or classes.shape != table.shape[:1] or not len(classes):
        raise InvalidInput(
            "features must be examples by features with one label each, got shapes "
            f"{table.shape} and {classes.shape}."
        )
    n_classes = int(classes.max()) + 1 if n_actions is None else n_actions
    if classes.max() >= n_classes:
        raise InvalidInput(f"labels must be below n_actions={n_classes}, got {classes.max()}.")
    shown = np.empty(len(classes))
    uniforms(Draw(check_seed(seed), stream_of(WORLD_STREAM, 0), 0), 0, shown)
    actions = np.floor(shown * n_classes).astype(np.int64)
    rewards = (actions == classes).astype(np.float64)
    return BanditLog.of(
        table, actions, rewards, np.full(len(classes), 1 / n_classes), n_actions=n_classes
    )
