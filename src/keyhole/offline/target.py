"""A policy as the rows of a log meet it: names, importance weights, and what it was trained on."""

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike

from keyhole.base.display import Described, Description
from keyhole.base.errors import FloatArray, IntArray, InvalidInput, check_number, shown
from keyhole.data.bandit.columns import Names
from keyhole.data.bandit.log import BanditLog
from keyhole.data.bandit.row_digests import Overlap

_ROUNDING = 1e-6
_MOST_NAMED = 8
NAMED = ("uniform", "logged", "best-fixed")
"""Policies that need no file."""

UNKNOWN = -1
"""The number of an action that a policy does not know."""

MOST_SHARED = 0.01
"""A greater share of training rows in a log, and it is refused.

A policy's advantage on its own rows is luck for the most part. What share of a log they are, that
share of the luck is in the estimate: one row in a hundred moves it by a hundredth of that.
"""


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
        if given is not policy or np.iterable(given):
            raise InvalidInput("Probabilities of a policy must be numbers in rows.") from None
        raise InvalidInput(_no_policy(policy)) from None
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


def _no_policy(given: Any) -> str:
    hint = ""
    if hasattr(given, "predict_proba"):
        hint = "; predict_proba(log.contexts) is such a table where its classes are the actions"
    return (
        f"A policy must be {', '.join(NAMED)}, or have a method probabilities(contexts), as those "
        f"of keyhole.policies have, or be its (n, n_actions) table, got {shown(given)}{hint}."
    )


def logged_target(log: BanditLog) -> Target:
    """Return the policy that wrote the log: every weight is 1.

    How likely it was to take other actions is not in the log; where a model of rewards asks what it
    would have done, the answer is what it did.
    """
    did = np.zeros((len(log), log.n_actions))
    did[np.arange(len(log)), log.actions] = 1.0
    return Target(did, np.ones(len(log)), 1.0)


def binomial_trials(log: BanditLog, target: Target) -> tuple[int, int]:
    """Return successes and trials whose success probability is the value of the policy.

    Notes
    -----
    Two cases are binomial. A policy that takes one action for certain, on the log of a uniform
    policy: the rows where both agree are a random sample of all contexts, and each is a success
    with the policy's value as its probability. And the logging policy itself: every row counts.
    In any other case rows would need weights, and this raises with the reason.
    """
    if not log.is_binary:
        raise InvalidInput("Clopper-Pearson needs rewards that are 0 or 1.")
    if target.is_logger:
        return int(log.rewards.sum()), len(log)
    if not (log.is_uniform and target.is_deterministic):
        raise InvalidInput(
            "Clopper-Pearson needs a uniform logging policy and a policy that takes one action for "
            "certain, or the logging policy itself."
        )
    agree = target.weights > 0.0
    if not agree.any():
        raise InvalidInput("Clopper-Pearson needs a row in which the policy agrees with the log.")
    return int(log.rewards[agree].sum()), int(agree.sum())


# --------------------------------------------------------------------------- by their names


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


# --------------------------------------------------------------------------- training rows


def training_overlap(log: BanditLog, policy: Any) -> Overlap | None:
    """Return how many rows of a log a policy was trained on; None where it does not say.

    Examples
    --------
    >>> from keyhole.data.bandit.campaign import Campaign
    >>> from keyhole import Greedy, fit_classifiers
    >>> log = Campaign([0.2, 0.3], n_features=3, n_informative=2).log(2000)
    >>> train, held_out = log.split(0.5, by="random")
    >>> policy = Greedy(fit_classifiers(train))
    >>> [round(training_overlap(part, policy).share, 2) for part in (train, log, held_out)]
    [1.0, 0.5, 0.0]
    """
    seen = getattr(policy, "seen_rows", None)
    if seen is None:
        return None
    view = view_of(log, policy)
    known = view.actions != UNKNOWN
    found: Overlap = seen.overlap(view.contexts[known], view.actions[known], log.rewards[known])
    return found


def is_shared(overlap: Overlap | None) -> bool:
    """Return whether so much of a log is training rows that it flatters a policy."""
    return overlap is not None and overlap.is_certain and overlap.share > MOST_SHARED


def training_remarks(
    name: str, policy: Any, overlap: Overlap | None, *, allowed: bool
) -> tuple[list[str], list[str]]:
    """Return notes and warnings about what a policy was trained on, or raise where it is this log.

    What is no policy fitted to data needs no remark.
    """
    if overlap is None:
        if not getattr(policy, "is_fitted", False):
            return [], []
        return [
            f"{name} does not say what it was trained on: nobody knows whether that was this log."
        ], []
    if not overlap.is_known:
        return [
            f"Whether {name} was trained on rows of this log cannot be told: hardly any of its "
            f"training rows differs from all others."
        ], []
    if not is_shared(overlap):
        return [], []
    told = (
        f"{name} was trained on {overlap.share:.1%} of this log: {overlap.found:.1%} of its rows "
        f"are among the training rows, {overlap.by_chance:.1%} would be by chance"
    )
    if not allowed:
        raise InvalidInput(
            f"{told}. Judge it on rows that were held out (BanditLog.split, keyhole train-policy); "
            f"`allow_training_rows` judges it all the same."
        )
    return [], [f"{told}. Its value here is flattered."]


def unseen_remarks(log: BanditLog, name: str, policy: Any) -> list[str]:
    """Return a note where a log has levels of one-hot features that a policy does not know."""
    unseen = view_of(log, policy).unseen
    if not unseen:
        return []
    columns = [(log.feature_names or ()).index(each) for each in unseen]
    n_rows = int(np.any(log.contexts[:, columns] != 0.0, axis=1).sum())
    shown = ", ".join(unseen[:5]) + (", …" if len(unseen) > 5 else "")
    return [
        f"{name} does not know {shown}: {n_rows:,} of {len(log):,} rows have one of them, and "
        f"count for it as rows of none of the levels that it knows."
    ]
