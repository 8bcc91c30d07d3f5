"""A policy as the rows of a log meet it: probabilities, importance weights, ranges."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from keyhole.base.display import Described, Description
from keyhole.base.errors import FloatArray, InvalidInput, check_number
from keyhole.data.bandit.log import BanditLog
from keyhole.offline.matching import view_of

_ROUNDING = 1e-6


class HasProbabilities(Protocol):
    """Whatever says how likely each action is in each context."""

    def probabilities(self, contexts: FloatArray, /) -> FloatArray:
        """Return an (n, n_actions) array whose rows sum to 1."""


@dataclass(frozen=True, repr=False)
class Target(Described):
    """What a policy would have done in each row of a log.

    ``weights`` are its probabilities of the logged actions over their propensities; no row of
    these contexts could have had a weight above ``largest_weight``.
    """

    probabilities: FloatArray
    weights: FloatArray
    largest_weight: float

    def _described(self) -> Description:
        n_rows, n_actions = self.probabilities.shape
        weights = f"{self.weights.min():.3g} to {self.weights.max():.3g}"
        return Description(
            f"Target of {n_rows:,} rows and {n_actions:,} actions", [("weights", weights)]
        )

    @property
    def is_deterministic(self) -> bool:
        """Whether every row has one action for certain."""
        return bool(((self.probabilities == 0.0) | (self.probabilities == 1.0)).all())

    @property
    def is_logger(self) -> bool:
        """Whether it does what the log shows, as likely."""
        return bool(np.allclose(self.weights, 1.0, rtol=1e-9, atol=0.0))


def target_of(
    log: BanditLog, policy: HasProbabilities | ArrayLike, *, floor: float | None = None
) -> Target:
    """Return a policy's probabilities and importance weights on a log.

    Parameters
    ----------
    policy
        Anything with a method ``probabilities``, or its (n, n_actions) result. Where it has
        ``feature_names`` or ``action_names``, the log's are found by their names.
    floor
        The least propensity that the logging policy gives any action; by default the least that
        the log shows. Bounds with a guarantee rest on it, estimates do not.

    Examples
    --------
    >>> log = BanditLog.of([[0.5], [0.1]], actions=[1, 0], rewards=[0, 1], propensities=[0.5, 0.5])
    >>> target_of(log, [[0.2, 0.8], [0.2, 0.8]]).weights
    array([1.6, 0.4])
    """
    view = view_of(log, policy)
    given = policy.probabilities(view.contexts) if hasattr(policy, "probabilities") else policy
    try:
        probabilities = np.ascontiguousarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidInput("Probabilities of a policy must be numbers in rows.") from None
    if probabilities.ndim == 2:
        probabilities = view.by_log(probabilities)
    if probabilities.shape != (len(log), log.n_actions):
        raise InvalidInput(
            f"Probabilities of a policy must have a row per row of the log and a column per "
            f"action, {(len(log), log.n_actions)}, got {probabilities.shape}."
        )
    sums = probabilities.sum(axis=1)
    fair = (probabilities >= 0.0).all(axis=1) & (np.abs(sums - 1.0) <= _ROUNDING)
    if not fair.all():
        row = int(np.argmin(fair))
        raise InvalidInput(
            f"Probabilities of a policy must not be negative and must sum to 1, got a sum of "
            f"{sums[row]:g} and a least value of {probabilities[row].min():g} in row {row}."
        )
    chosen = probabilities[np.arange(len(log)), log.actions]
    least = float(log.propensities.min())
    if floor is not None:
        floor = check_number(floor, "`floor`", above=0.0, at_most=1.0)
        if floor > least:
            raise InvalidInput(
                f"`floor` must be at most the least propensity of the log, {least:g}, got "
                f"{floor:g}."
            )
    largest = float(probabilities.max()) / (least if floor is None else floor)
    return Target(probabilities, chosen / log.propensities, largest)


def logged_target(log: BanditLog) -> Target:
    """Return the policy that wrote the log: every weight is 1.

    How likely it was to take other actions is not in the log; where a model of rewards asks what it
    would have done, the answer is what it did.
    """
    did = np.zeros((len(log), log.n_actions))
    did[np.arange(len(log)), log.actions] = 1.0
    return Target(did, np.ones(len(log)), 1.0)
