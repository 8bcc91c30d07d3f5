"""The thesis's experiments with advertisements: table 5.1, figures 5.1 and 5.2.

Everything is a function of data, settings and a seed, and returns plain numbers.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from keyhole.base.errors import FloatArray, IntArray, LibraryMissing, check_choice
from keyhole.base.files import reading_arrays
from keyhole.data.bandit.campaign import (
    BANK_IMPRESSIONS,
    BANK_RATES,
    HOTEL_IMPRESSIONS,
    HOTEL_RATES,
    Campaign,
)
from keyhole.data.bandit.convert import bandit_feedback
from keyhole.data.bandit.log import BanditLog
from keyhole.data.bandit.selection import information_gain, select_features
from keyhole.experiment.inputs import DataMissing, data_folder
from keyhole.kernels.draw import WORLD_STREAM, Draw, stream_of, uniforms
from keyhole.offline.bounds import student_t
from keyhole.offline.estimators import importance_weighted
from keyhole.offline.target import target_of
from keyhole.policies.base import EpsilonGreedy, Greedy, Scorer
from keyhole.policies.judging import mean_auc, mean_likelihood
from keyhole.policies.training import descend_ads, fit_classifiers, fit_forests

L2_GRID = (0.01, 0.1, 1.0, 10.0)
CLASS_SETS = ("optdigits", "isolet_part", "letter", "pendigits", "libras")
BUNDLED_SET = "digits"
CAMPAIGNS = {
    "hotel": (HOTEL_RATES, HOTEL_IMPRESSIONS),
    "bank": (BANK_RATES, BANK_IMPRESSIONS),
}
_UNSAMPLED = "-unsampled"
_SPLIT_USE, _VALIDATION_USE = 10, 11

Fit = Callable[[BanditLog, float], tuple[Scorer, ...]]
"""The scorers of a contender, given a log and the weight of the penalty."""
Judge = Callable[[Scorer, BanditLog], float]
"""How good a scorer is on a log, by what it was trained for."""


class ClassData(NamedTuple):
    """Examples by features, and the class of each."""

    name: str
    features: FloatArray
    labels: IntArray


@dataclass(frozen=True)
class AdSettings:
    """How the contenders are trained, the same for all of them."""

    n_steps: int = 1_000_000
    n_trees: int = 200
    l2_grid: tuple[float, ...] = L2_GRID
    negatives_per_click: float | None = None


EVERYTHING, ONE_TO_TWO, ONE_TO_ONE = (
    AdSettings(),
    AdSettings(negatives_per_click=2.0),
    AdSettings(negatives_per_click=1.0),
)
"""No sampling; the samples of figure 5.1; those of figure 5.2."""


def load_classes(name: str = BUNDLED_SET) -> ClassData:
    """Return a data set: scikit-learn's bundled digits, or one of the UCI sets' files."""
    if name == BUNDLED_SET:
        return _bundled_digits()
    check_choice(name, "data set", (*CLASS_SETS, BUNDLED_SET))
    path = data_folder() / "uci_multiclass" / f"{name}.npz"
    if not path.is_file():
        raise DataMissing(f"{name} is not on this machine: {path} is missing.")
    with reading_arrays(path, f"the data set {name}") as arrays:
        features = arrays["X_e4"] / 1e4 if "X_e4" in arrays else arrays["X"]
        return ClassData(name, features.astype(np.float64), arrays["y"].astype(np.int64))


def _bundled_digits() -> ClassData:
    try:
        from sklearn.datasets import load_digits
    except ImportError:
        raise LibraryMissing("The bundled digits need scikit-learn", "ads") from None
    features, labels = load_digits(return_X_y=True)
    return ClassData(BUNDLED_SET, features, labels.astype(np.int64))


def _parts(n_rows: int, share: float, seed: int, use: int) -> tuple[IntArray, IntArray]:
    """Return the rows of a random part, and the others."""
    keys = np.empty(n_rows)
    uniforms(Draw(seed, stream_of(WORLD_STREAM, 0), 0), use, keys)
    order = np.argsort(keys, kind="stable")
    n_first = round(share * n_rows)
    return order[:n_first], order[n_first:]


def choose_l2(fit: Fit, judge: Judge, log: BanditLog, grid: tuple[float, ...], seed: int) -> float:
    """Return the penalty whose scorers, fitted to 70 % of a log, are judged best on the rest.

    Each contender is judged by what it is trained for. A policy's clicks would be the natural
    judge, but few rows of a log agree with it. Of equals the first in the grid is taken.
    """
    if len(grid) == 1:
        return grid[0]
    first, rest = (log.rows(rows) for rows in _parts(len(log), 0.7, seed, _VALIDATION_USE))
    found = [judge(fit(first, l2)[0], rest) for l2 in grid]
    return grid[int(np.argmax(found))]


@dataclass(frozen=True)
class AdLearner:
    """Who is trained.

    ``scorers`` are the names of what ``train`` returns for a penalty, the settings and what all
    contenders take; the first is judged where the penalty is chosen. ``has_penalty`` says whether
    it has one, ``takes_all`` that it learns from all visitors where the others learn from samples
    (figure 5.2), ``by_auc`` that it is trained for that and not for likelihood.
    """

    scorers: tuple[str, ...]
    train: Callable[..., tuple[Scorer, ...]]
    has_penalty: bool = True
    takes_all: bool = False
    by_auc: bool = False

    def fit(self, settings: AdSettings, seed: int) -> Fit:
        """Return how it is fitted."""

        def fit(log: BanditLog, l2: float) -> tuple[Scorer, ...]:
            return self.train(
                l2, settings, contexts=log.contexts, actions=log.actions, rewards=log.rewards,
                n_actions=log.n_actions, negatives_per_click=settings.negatives_per_click,
                no_click="never", seed=seed,
            )  # fmt: skip

        return fit

    def judge(self, settings: AdSettings) -> Judge:
        """Return how good its scorers are, by what it is trained for."""
        if self.by_auc:
            return mean_auc
        return partial(mean_likelihood, negatives_per_click=settings.negatives_per_click)

    def grid(self, settings: AdSettings) -> tuple[float, ...]:
        """Return the penalties to choose from."""
        return settings.l2_grid if self.has_penalty else (0.0,)


def _rankers(l2: float, settings: AdSettings, **given: Any) -> tuple[Scorer, ...]:
    fitted = descend_ads(**given, l2=l2, n_steps=settings.n_steps)
    return fitted.aligned("calibrated"), fitted.aligned("f1")  # and as in the thesis


def _classifiers(l2: float, settings: AdSettings, **given: Any) -> tuple[Scorer, ...]:
    return (fit_classifiers(**given, l2=l2),)


def _forests(l2: float, settings: AdSettings, **given: Any) -> tuple[Scorer, ...]:
    return (fit_forests(**given, n_trees=settings.n_trees),)


CONTENDERS = {
    "rankers": AdLearner(("ranker", "ranker-f1"), _rankers, takes_all=True, by_auc=True),
    "classifier": AdLearner(("classifier",), _classifiers),
    "forest": AdLearner(("forest",), _forests, has_penalty=False),
}


def positive_share(data: ClassData, *, seed: int = 0) -> dict[str, float]:
    """Return the row of table 5.1: the share of clicks is the mean over ads in the training log."""
    train, _ = _parts(len(data.labels), 0.7, seed, _SPLIT_USE)
    n_classes = int(data.labels.max()) + 1
    log = bandit_feedback(data.features[train], data.labels[train], n_actions=n_classes, seed=seed)
    shares = [log.rewards[log.actions == ad].mean() for ad in range(n_classes)]
    return {
        "size": len(data.labels),
        "features": data.features.shape[1],
        "classes": n_classes,
        "percent_positive": 100.0 * float(np.mean(shares)),
    }


def class_policies(
    data: ClassData,
    settings: AdSettings = EVERYTHING,
    *,
    contenders: tuple[str, ...] = tuple(CONTENDERS),
    seed: int = 0,
) -> dict[str, dict[str, float]]:
    """Return one repeat of figure 5.1 (E6): the accuracy of each contender's greedy policy.

    70 % of the examples become bandit feedback; the rest keep their labels to judge by. The linear
    contenders' penalty is chosen by :func:`choose_l2`; ``accuracy`` is that of the one chosen and
    ``accuracy_at_<l2>`` that of each (the thesis reports the best of them).
    """
    train, test = _parts(len(data.labels), 0.7, seed, _SPLIT_USE)
    log = bandit_feedback(
        data.features[train], data.labels[train], n_actions=int(data.labels.max()) + 1, seed=seed
    )
    results = {}
    for kind in contenders:
        contender = CONTENDERS[check_choice(kind, "contender", CONTENDERS)]
        fit, grid = contender.fit(settings, seed), contender.grid(settings)
        scorers = {l2: fit(log, l2) for l2 in grid}
        chosen = choose_l2(fit, contender.judge(settings), log, grid, seed)
        for number, name in enumerate(contender.scorers):
            shown = {l2: Greedy(scorers[l2][number]).best(data.features[test]) for l2 in grid}
            accuracy = {l2: float((shown[l2] == data.labels[test]).mean()) for l2 in grid}
            results[name] = {"accuracy": accuracy[chosen], "l2": chosen}
            results[name] |= {f"accuracy_at_{l2:g}": value for l2, value in accuracy.items()}
    return results


def _judged(probabilities: FloatArray, log: BanditLog) -> dict[str, float]:
    """Return the importance-weighted click rate (5.4) and its lower bound (5.5)."""
    estimate = importance_weighted(log, target_of(log, probabilities))
    return {"estimate": estimate.value, "lower": student_t(estimate.contributions)}


def campaign_policies(
    campaign: str = "bank",
    settings: AdSettings = ONE_TO_ONE,
    *,
    shape: str = "linear",
    strength: float = 1.0,
    n_test: int = 200_000,
    epsilon: float = 0.2,
    share: float = 1.0,
    contenders: tuple[str, ...] = tuple(CONTENDERS),
    seed: int = 0,
) -> dict[str, dict[str, float]]:
    """Return one seed of figure 5.2 (E7): each contender's epsilon-greedy policy on a campaign.

    The training log has the thesis's impressions and click rates (``share`` of the impressions),
    and a fifth of the features is selected by information gain. Classifiers and forests are
    trained on samples, the rankers on everything, as in the thesis; ``classifier-unsampled`` is a
    contender too. ``true`` is the click rate that the simulator knows, ``estimate`` and ``lower``
    are from a uniform log.
    """
    rates, impressions = CAMPAIGNS[check_choice(campaign, "campaign", CAMPAIGNS)]
    world = Campaign(rates, strength=strength, shape=shape, seed=seed)
    n_train = round(share * sum(impressions))
    log = world.log(n_train, shares=impressions, seed=2 * seed + 1)
    test = world.log(n_test, seed=2 * seed + 2)
    gains = information_gain(log.contexts, log.rewards, groups=log.actions)
    columns = select_features(gains, 0.2)
    narrow, narrow_test = (
        replace(part, contexts=part.contexts[:, columns]) for part in (log, test)
    )
    unsampled = replace(settings, negatives_per_click=None)
    results = {}
    for kind in contenders:
        base = kind.removesuffix(_UNSAMPLED)
        contender = CONTENDERS[check_choice(base, "contender", CONTENDERS)]
        own = unsampled if contender.takes_all or kind != base else settings
        fit = contender.fit(own, seed)
        l2 = choose_l2(fit, contender.judge(own), narrow, contender.grid(settings), seed)
        for name, scorer in zip(contender.scorers, fit(narrow, l2), strict=True):
            policy = EpsilonGreedy(scorer, epsilon)
            probabilities = policy.probabilities(narrow_test.contexts)
            results[name + kind.removeprefix(base)] = {
                "true": world.value(probabilities, test.contexts),
                "l2": l2,
                **_judged(probabilities, narrow_test),
            }
    chances = world.click_chances(test.contexts)
    best = (1.0 - epsilon) * chances.max(axis=1) + epsilon / (len(rates) - 1) * (
        chances.sum(axis=1) - chances.max(axis=1)
    )
    results["oracle"] = {"true": float(best.mean())}
    results["uniform"] = {"true": float(chances.mean())}
    return results
