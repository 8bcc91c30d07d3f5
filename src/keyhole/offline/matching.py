"""A log as a policy sees it: features and actions by their names, in the policy's own order."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from keyhole.base.errors import FloatArray, IntArray, InvalidInput
from keyhole.data.bandit.columns import Names
from keyhole.data.bandit.log import BanditLog

_MOST_NAMED = 8
UNKNOWN = -1
"""The number of an action that a policy does not know."""


@dataclass(frozen=True)
class View:
    """What a policy sees of a log.

    Attributes
    ----------
    contexts
        With the policy's features, in its order.
    actions
        By the policy's numbers; ``UNKNOWN`` for those that it does not know.
    columns
        The policy's number of each of the log's actions, where they are not in one order.
    unseen
        Levels of one-hot features that the policy does not know, which count as none of its own.
    """

    contexts: FloatArray
    actions: IntArray
    columns: IntArray | None = None
    unseen: tuple[str, ...] = ()

    def by_log(self, probabilities: FloatArray) -> FloatArray:
        """Return a policy's probabilities by the log's actions; 0 of those it does not know."""
        if self.columns is None:
            return probabilities
        known: FloatArray = probabilities[:, np.maximum(self.columns, 0)]
        return np.where(self.columns == UNKNOWN, 0.0, known)


def view_of(log: BanditLog, policy: Any) -> View:
    """Return what a policy sees of a log, or raise where names that it needs are missing.

    Where the policy or the log has no names, columns are taken in their order.

    Notes
    -----
    Features are found by their names, and what the policy does not know is left out. A feature that
    is missing counts as 0 if that is certain: it is the level of a one-hot feature (``NAME=LEVEL``
    or ``NAME_LEVEL``), and in every row of the log exactly one other level is 1. If some row has no
    level at all, it may be the very one that is missing, left out as the one that all others are
    compared with; then the log is refused.

    Examples
    --------
    >>> from keyhole import Greedy, LinearScorer
    >>> scorer = LinearScorer([[1, 0, 0]], [0], feature_names=["age", "os=mac", "os=win"])
    >>> names = ["os=win", "age"]
    >>> log = BanditLog.of([[1, 30], [1, 40]], [0, 0], [0, 1], [1, 1], feature_names=names)
    >>> view_of(log, Greedy(scorer)).contexts.tolist()
    [[30.0, 0.0, 1.0], [40.0, 0.0, 1.0]]
    """
    contexts, unseen = _contexts(log, getattr(policy, "feature_names", None))
    columns = _columns(log, getattr(policy, "action_names", None))
    actions = log.actions if columns is None else columns[log.actions]
    return View(contexts, actions, columns, unseen)


def _columns(log: BanditLog, names: Names) -> IntArray | None:
    if names is None or log.action_names is None or names == log.action_names:
        return None
    missing = [name for name in names if name not in log.action_names]
    if missing:
        raise InvalidInput(
            f"A log must have every action of the policy, got none called {_listed(missing)}: "
            f"read it with all of the policy's action_names."
        )
    number = {name: index for index, name in enumerate(names)}
    return np.array([number.get(name, UNKNOWN) for name in log.action_names], dtype=np.int64)


def _contexts(log: BanditLog, names: Names) -> tuple[FloatArray, tuple[str, ...]]:
    if names is None or log.feature_names is None or names == log.feature_names:
        return log.contexts, ()
    place = {name: index for index, name in enumerate(log.feature_names)}
    missing = [name for name in names if name not in place]
    lost = [name for name in missing if not _is_surely_zero(log, name)]
    if lost:
        beside = [name for name in log.feature_names if name not in names]
        others = f", which has {_listed(beside)} that it does not know" if beside else ""
        raise InvalidInput(
            f"A log must have every feature that the policy was fitted to, got none called "
            f"{_listed(lost)}{others}: only a level of a one-hot feature may be left out, where "
            f"every row has another one."
        )
    contexts = np.zeros((len(log), len(names)))
    for column, name in enumerate(names):
        if name in place:
            contexts[:, column] = log.contexts[:, place[name]]
    families = {_family(name) for name in names} - {None}
    unseen = [
        name
        for name, index in place.items()
        if name not in names and _family(name) in families and log.contexts[:, index].any()
    ]
    return contexts, tuple(unseen)


def _family(name: str) -> str | None:
    """Return what a one-hot column is a level of, if it may be one."""
    before, mark, _ = name.partition("=")
    if not mark:
        before, mark, _ = name.rpartition("_")
    return f"{before}{mark}" if mark and before else None


def _is_surely_zero(log: BanditLog, name: str) -> bool:
    """Return whether every row has exactly one level of a feature, none of them this one."""
    family = _family(name)
    names = log.feature_names or ()
    levels = [i for i, each in enumerate(names) if family is not None and _family(each) == family]
    if not levels:
        return False
    table = log.contexts[:, levels]
    is_level = bool(((table == 0.0) | (table == 1.0)).all())
    return is_level and bool((table.sum(axis=1) == 1.0).all())


def _listed(names: list[str]) -> str:
    """Return names for a sentence: the first of many."""
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return ", ".join(repr(name) for name in names[:_MOST_NAMED]) + more
