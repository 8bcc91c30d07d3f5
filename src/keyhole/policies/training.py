"""Fitting one model per ad on logged contexts, ads and clicks (A15)."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from keyhole.base.errors import (
    FloatArray,
    LibraryMissing,
    check_choice,
    check_integer,
    check_number,
    check_seed,
)
from keyhole.data.bandit.log import BanditLog
from keyhole.policies.aligning import ALIGNMENTS, align
from keyhole.policies.examples import (
    AdExamples,
    Clicks,
    Scale,
    check_log,
    examples_of,
    labels_of,
)
from keyhole.policies.forest import ForestScorer, join_forests
from keyhole.policies.linear import LinearScorer
from keyhole.policies.logistic import fit_logistic
from keyhole.policies.pairs import fit_pairs

NO_CLICK_RULES = ("error", "never")
Rows = ArrayLike | BanditLog
"""Contexts, to which actions and rewards belong; or a log, which has all three."""


class AdRankers(NamedTuple):
    """Rankers whose scores cannot be compared yet, and the examples that will align them."""

    given: Clicks
    scale: Scale
    weights: FloatArray
    examples: tuple[AdExamples, ...]

    def aligned(self, alignment: str) -> LinearScorer:
        """Return the scorer whose ads are aligned by all of their examples."""
        weights, offsets = np.zeros_like(self.weights), np.full(len(self.weights), -np.inf)
        for ad, positives, negatives, _ in self.examples:
            scores = np.concatenate([positives @ self.weights[ad], negatives @ self.weights[ad]])
            slope, offsets[ad] = align(scores, labels_of(len(positives), len(negatives)), alignment)
            weights[ad] = slope * self.weights[ad]
        return self.given.sign(self.scale.scorer(weights, offsets))


def _examples(
    given: Clicks, negatives_per_click: float | None, no_click: str, seed: int
) -> tuple[AdExamples, ...]:
    check_choice(no_click, "`no_click`", NO_CLICK_RULES)
    return tuple(examples_of(given, negatives_per_click, no_click, seed))


def descend_ads(
    contexts: Rows,
    actions: ArrayLike | None = None,
    rewards: ArrayLike | None = None,
    *,
    n_actions: int | None = None,
    negatives_per_click: float | None = None,
    no_click: str = "error",
    seed: int = 0,
    **settings: Any,
) -> AdRankers:
    """Fit the rankers of :func:`fit_rankers`, to be aligned in one way or several."""
    given = check_log(contexts, actions, rewards, n_actions)
    seed, scale = check_seed(seed), Scale.of(given.contexts)
    weights = np.zeros((given.n_ads, given.contexts.shape[1]))
    scaled = given._replace(contexts=scale.apply(given.contexts))
    examples = _examples(scaled, negatives_per_click, no_click, seed)
    for one in examples:
        fitted = fit_pairs(one.positives, one.sampled, seed=seed, ad=one.ad, **settings)
        weights[one.ad] = fitted
    return AdRankers(given, scale, weights, examples)


def fit_rankers(
    contexts: Rows,
    actions: ArrayLike | None = None,
    rewards: ArrayLike | None = None,
    *,
    n_actions: int | None = None,
    loss: str = "logistic",
    l1: float = 0.0,
    l2: float = 0.01,
    n_steps: int = 1_000_000,
    alignment: str = "calibrated",
    negatives_per_click: float | None = None,
    no_click: str = "error",
    seed: int = 0,
) -> LinearScorer:
    """Fit a linear AUC ranker per ad, and make their scores comparable.

    Parameters
    ----------
    contexts, actions, rewards
        One row per impression: the visitor, the ad shown (from 0), clicked (1) or not (0). A
        :class:`~keyhole.BanditLog` may stand for all three; the scorer keeps its names.
    loss, l1, l2, n_steps
        See :func:`~keyhole.policies.pairs.fit_pairs`.
    alignment
        ``f1`` subtracts from an ad's scores the threshold that maximises F1 on its examples (A15,
        R36); ``calibrated`` turns them into log-odds of a click (Platt scaling), which is not in
        the thesis and chooses better: docs/policies.md has the figures. Either looks at all of
        the ad's examples, sampled or not.
    negatives_per_click
        Train on a sample of so many impressions without a click for each with one.
    no_click
        What to do about an ad that nobody clicked on: ``error``, or ``never`` choose it.

    Notes
    -----
    A15. Features are standardised over the whole log; the scorer takes them as they come.

    Examples
    --------
    >>> import numpy as np
    >>> from keyhole import Greedy
    >>> numbers = np.random.default_rng(0)
    >>> visitors, ads = numbers.normal(size=(4000, 3)), numbers.integers(2, size=4000)
    >>> likes = np.where(ads == 0, visitors[:, 0], -visitors[:, 0])
    >>> clicks = (numbers.random(4000) < 0.05 * np.exp(likes)).astype(float)
    >>> scorer = fit_rankers(visitors, ads, clicks, n_steps=10_000)
    >>> Greedy(scorer).best([[2.0, 0.0, 0.0], [-2.0, 0.0, 0.0]]).tolist()
    [0, 1]
    """
    check_choice(alignment, "`alignment`", ALIGNMENTS)
    rankers = descend_ads(
        contexts,
        actions,
        rewards,
        n_actions=n_actions,
        loss=loss,
        l1=l1,
        l2=l2,
        n_steps=n_steps,
        negatives_per_click=negatives_per_click,
        no_click=no_click,
        seed=seed,
    )
    return rankers.aligned(alignment)


def fit_classifiers(
    contexts: Rows,
    actions: ArrayLike | None = None,
    rewards: ArrayLike | None = None,
    *,
    n_actions: int | None = None,
    l2: float = 0.01,
    negatives_per_click: float | None = None,
    no_click: str = "error",
    seed: int = 0,
) -> LinearScorer:
    """Fit a logistic regression per ad; its scores are log-odds of a click.

    Parameters are those of :func:`fit_rankers`, and features are standardised in the same way.

    Notes
    -----
    A15's linear baseline. The thesis descends by SGD; this is the exact minimum of the mean
    logistic loss + l2/2 |w|^2, with a free intercept.
    """
    given = check_log(contexts, actions, rewards, n_actions)
    seed, scale = check_seed(seed), Scale.of(given.contexts)
    l2 = check_number(l2, "`l2`", above=0.0)
    shape = (given.n_ads, given.contexts.shape[1])
    weights, offsets = np.zeros(shape), np.full(given.n_ads, -np.inf)
    scaled = given._replace(contexts=scale.apply(given.contexts))
    for ad, positives, _, sampled in _examples(scaled, negatives_per_click, no_click, seed):
        rows, labels = np.concatenate([positives, sampled]), labels_of(len(positives), len(sampled))
        weights[ad], offsets[ad] = fit_logistic(rows, labels, l2=l2)
    return given.sign(scale.scorer(weights, offsets))


def fit_forests(
    contexts: Rows,
    actions: ArrayLike | None = None,
    rewards: ArrayLike | None = None,
    *,
    n_actions: int | None = None,
    n_trees: int = 200,
    negatives_per_click: float | None = None,
    no_click: str = "error",
    seed: int = 0,
) -> ForestScorer:
    """Fit a random forest per ad with scikit-learn; its scores are shares of clicks.

    The other parameters are those of :func:`fit_rankers`.
    """
    given = check_log(contexts, actions, rewards, n_actions)
    seed, n_trees = check_seed(seed), check_integer(n_trees, "`n_trees`", at_least=1)
    forests: list[Any | None] = [None] * given.n_ads
    for ad, positives, _, sampled in _examples(given, negatives_per_click, no_click, seed):
        rows = np.concatenate([positives, sampled])
        forest = _forest_class()(n_trees, random_state=(seed * given.n_ads + ad) % 2**32)
        forests[ad] = forest.fit(rows, labels_of(len(positives), len(sampled)))
    return given.sign(join_forests(forests, given.contexts.shape[1]))


def _forest_class() -> Any:
    try:
        from sklearn.ensemble import RandomForestClassifier
    except ImportError:
        raise LibraryMissing("Random forests need scikit-learn", "ads") from None
    return RandomForestClassifier
