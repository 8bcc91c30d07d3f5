"""Policies and predictions in the Open Bandit Pipeline's shape: rounds, actions and positions.

Logs go both ways in :mod:`keyhole.data`: ``to_open_bandit_pipeline`` and
``from_open_bandit_pipeline``. Keyhole's policies do not look at the position.
"""

import numpy as np
from numpy.typing import ArrayLike

from keyhole.base.errors import FloatArray, InvalidInput
from keyhole.data.bandit.log import BanditLog
from keyhole.offline.target import HasProbabilities, target_of


def action_distribution(log: BanditLog, policy: HasProbabilities | ArrayLike) -> FloatArray:
    """Return the ``action_dist`` of a policy on a log: its probabilities, alike in all positions.

    Examples
    --------
    >>> from keyhole import Uniform
    >>> log = BanditLog.of([[0.5], [0.1]], [1, 0], [0, 1], [0.5, 0.5], positions=[0, 2])
    >>> action_distribution(log, Uniform(2)).shape
    (2, 2, 3)
    """
    return in_all_positions(log, target_of(log, policy).probabilities)


def in_all_positions(log: BanditLog, table: ArrayLike) -> FloatArray:
    """Return numbers by row and action alike in all positions that a log has.

    Predictions of rewards become ``estimated_rewards_by_reg_model`` in this way.
    """
    rows = np.asarray(table, dtype=np.float64)
    return np.repeat(rows[:, :, None], int(log.positions.max()) + 1, axis=2)


def in_own_position(log: BanditLog, table: ArrayLike) -> FloatArray:
    """Return, of numbers by row, action and position, those of the position that each row has.

    So an ``action_dist`` of the pipeline's becomes what ``evaluate`` takes as a policy, and its
    ``estimated_rewards_by_reg_model`` what it takes as predictions.
    """
    given = np.asarray(table, dtype=np.float64)
    if given.ndim != 3 or given.shape[:2] != (len(log), log.n_actions):
        raise InvalidInput(
            f"`table` must be rows by actions by positions, {(len(log), log.n_actions)} and "
            f"positions, got shape {given.shape}."
        )
    if given.shape[2] <= log.positions.max():
        raise InvalidInput(
            f"`table` must have the {log.positions.max() + 1} positions of the log, got "
            f"{given.shape[2]}."
        )
    return given[np.arange(len(log)), :, log.positions]
