"""A policy from a log in one call: the penalty chosen by cross-validation, then all rows fitted."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from keyhole.base.display import Described, Description, description_of
from keyhole.base.errors import IntArray, InvalidInput, check_choice, check_integer, check_seed
from keyhole.data.bandit.log import BanditLog
from keyhole.kernels.draw import Draw, uniforms
from keyhole.policies import POLICIES
from keyhole.policies.base import Policy, Scorer
from keyhole.policies.judging import mean_auc, mean_likelihood
from keyhole.policies.linear import LinearScorer
from keyhole.policies.pairs import POLICY_STREAM
from keyhole.policies.training import fit_classifiers, fit_forests, fit_rankers

FOLD_USE = 3
"""Draws of pairs, samples and reservoirs have lower numbers."""


_NOT_SET = ("l2", "seed", "n_actions")
"""What the log says, or who trains, by another name."""


@dataclass(frozen=True)
class ModelRow:
    """A kind of model: how it is fitted, the penalties to choose from, and what judges them."""

    fit: Callable[..., Scorer]
    about: str
    penalties: tuple[float, ...] = ()
    judge: Callable[[Scorer, BanditLog], float] = mean_likelihood
    judged_by: str = ""

    @property
    def settings(self) -> list[str]:
        """What else can be set when it is fitted."""
        given = inspect.signature(self.fit).parameters.values()
        return [p.name for p in given if p.kind is p.KEYWORD_ONLY and p.name not in _NOT_SET]


# The strongest penalties come first: of equals the first is taken.
MODELS: dict[str, ModelRow] = {
    "rankers": ModelRow(
        fit_rankers,
        "linear, puts those who click above those who do not",
        (10.0, 1.0, 0.1, 0.01, 0.001),
        mean_auc,
        "AUC",
    ),
    "classifiers": ModelRow(
        fit_classifiers,
        "logistic regression",
        (1.0, 0.1, 0.01, 0.001, 0.0001),
        mean_likelihood,
        "log-likelihood",
    ),
    "forests": ModelRow(fit_forests, "random forest of scikit-learn, without a penalty"),
}


@dataclass(frozen=True, repr=False)
class Trained(Described):
    """A policy, and how its penalty was chosen.

    ``scores`` are the penalties that were tried, with the mean over the folds of what judges them.
    """

    policy: Policy
    penalty: float | None
    scores: Mapping[float, float]

    def _described(self) -> Description:
        given = description_of(self.policy)
        chosen = [] if self.penalty is None else [("penalty", f"{self.penalty:g}")]
        return Description(f"Trained {given.title}", [*given.rows, *chosen])


def train_policy(
    log: BanditLog,
    model: str = "rankers",
    *,
    policy: str = "epsilon-greedy",
    policy_options: Mapping[str, Any] | None = None,
    penalties: Sequence[float] | None = None,
    n_folds: int = 5,
    seed: int = 0,
    progress: Callable[[int], None] | None = None,
    **settings: Any,
) -> Trained:
    """Return a policy fitted to a log, its penalty chosen by cross-validation within that log.

    Parameters
    ----------
    log
        The part to train on: what :meth:`~keyhole.BanditLog.split` holds out stays out.
    model
        ``rankers``, ``classifiers`` or ``forests``: one model per ad.
    policy, policy_options
        What is made of the scores, by name: ``greedy``, ``epsilon-greedy`` or ``softmax``.
    penalties
        Values of ``l2`` to choose from; a single one is taken as it is.
    n_folds
        Each fold is judged by a model fitted to the others: by AUC for rankers, by likelihood for
        classifiers. Rows of one group are in one fold.
    progress
        Called with 1 after each fit.
    settings
        Others of :func:`fit_rankers`, :func:`fit_classifiers` or :func:`fit_forests`.

    Examples
    --------
    >>> from keyhole.data.bandit.campaign import Campaign
    >>> campaign = Campaign([0.05, 0.1], n_features=4, n_informative=2)
    >>> trained = train_policy(campaign.log(4000), "classifiers", n_folds=2)
    >>> sorted(trained.scores), trained.policy.n_actions
    ([0.0001, 0.001, 0.01, 0.1, 1.0], 2)
    """
    row = MODELS[check_choice(model, "A model", MODELS)]
    seed = check_seed(seed)
    for name in settings:
        check_choice(name, f"A setting of {model}", row.settings)
    options = dict(policy_options or {})
    # What cannot be made of scores is not made of these either, and they cost nothing.
    POLICIES.make(
        policy, scorer=LinearScorer(np.zeros((log.n_actions, 0)), [0.0] * log.n_actions), **options
    )
    settings = {"no_click": "never", **settings, "seed": seed}
    told = progress or (lambda _: None)
    grid = tuple(row.penalties if penalties is None else penalties)
    if grid and not row.penalties:
        raise InvalidInput(f"A penalty must be of a model that has one, which {model} have not.")
    scores: dict[float, float] = {}
    chosen = {"l2": grid[0]} if grid else {}
    if len(grid) > 1:
        folds = deal_folds(log, n_folds, seed)
        for penalty in grid:
            scores[penalty] = _judged(row, log, folds, told, l2=penalty, **settings)
        chosen["l2"] = max(scores, key=lambda penalty: scores[penalty])
    scorer = row.fit(log, **chosen, **settings)
    told(1)
    return Trained(POLICIES.make(policy, scorer=scorer, **options), chosen.get("l2"), scores)


def n_fits(model: str, penalties: Sequence[float] | None, n_folds: int) -> int:
    """Return how many times :func:`train_policy` fits."""
    grid = MODELS[model].penalties if penalties is None else penalties
    return 1 + (len(grid) * n_folds if len(grid) > 1 else 0)


def deal_folds(log: BanditLog, n_folds: int, seed: int) -> IntArray:
    """Return the fold of each row, by chance; rows of one group are in one fold."""
    n_folds = check_integer(n_folds, "`n_folds`", at_least=2, at_most=len(log), bound="rows=")
    if log.groups is None:
        group, n_groups = np.arange(len(log)), len(log)
    else:
        names, group = np.unique(log.groups, return_inverse=True)
        n_groups = len(names)
    keys = np.empty(n_groups)
    uniforms(Draw(seed, POLICY_STREAM, 0), FOLD_USE, keys)
    fold = np.empty(n_groups, np.int64)
    fold[np.argsort(keys, kind="stable")] = np.arange(n_groups) % n_folds
    return fold[group]


def _judged(
    row: ModelRow,
    log: BanditLog,
    folds: IntArray,
    told: Callable[[int], None],
    **settings: Any,
) -> float:
    """Return the mean over the folds of how good a model of the others is there."""
    found = []
    for fold in range(int(folds.max()) + 1):
        scorer = row.fit(log.rows(folds != fold), **settings)
        found.append(row.judge(scorer, log.rows(folds == fold)))
        told(1)
    return float(np.mean(found))
