"""Fitting one model per ad on logged contexts, ads and clicks (A15)."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from keyhole.data.bandit.convert import check_indices
from keyhole.errors import (
    FloatArray,
    IntArray,
    InvalidInput,
    LibraryMissing,
    check_choice,
    check_integer,
    check_number,
    check_seed,
)
from keyhole.kernels.draw import Draw, uniforms
from keyhole.policies.aligning import ALIGNMENTS, align
from keyhole.policies.base import check_contexts
from keyhole.policies.forest import ForestScorer, join_forests
from keyhole.policies.linear import LinearScorer
from keyhole.policies.logistic import fit_logistic
from keyhole.policies.pairs import POLICY_STREAM, SAMPLE_USE, fit_pairs

NO_CLICK_RULES = ("error", "never")


class AdExamples(NamedTuple):
    """What the log says about one ad."""

    ad: int
    positives: FloatArray
    negatives: FloatArray
    sampled: FloatArray
    """The negatives to train on: all of them, or a sample."""


class Scale(NamedTuple):
    """Mean and standard deviation of each feature over the whole log (1 for a constant)."""

    mean: FloatArray
    spread: FloatArray

    @classmethod
    def of(cls, contexts: FloatArray) -> "Scale":
        spread = contexts.std(axis=0)
        return cls(contexts.mean(axis=0), np.where(spread > 0.0, spread, 1.0))

    def apply(self, contexts: FloatArray) -> FloatArray:
        return np.ascontiguousarray((contexts - self.mean) / self.spread)

    def scorer(self, weights: FloatArray, offsets: FloatArray) -> LinearScorer:
        """Return weights of standardised contexts as a scorer of contexts as they come."""
        plain = weights / self.spread
        return LinearScorer(plain, offsets - plain @ self.mean)


def check_log(
    contexts: ArrayLike, actions: ArrayLike, rewards: ArrayLike, n_actions: int | None
) -> tuple[FloatArray, IntArray, FloatArray, int]:
    """Return contexts, ads and clicks as arrays that fit together, or raise."""
    table = check_contexts(contexts)
    ads = check_indices(actions, "actions")
    try:
        clicks = np.asarray(rewards, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidInput("rewards must be 0 or 1.") from None
    if not ads.shape == clicks.shape == table.shape[:1] or not len(table):
        raise InvalidInput(
            "contexts, actions and rewards must have one row per impression, got shapes "
            f"{table.shape}, {ads.shape} and {clicks.shape}."
        )
    n_ads = int(ads.max()) + 1 if n_actions is None else n_actions
    n_ads = check_integer(n_ads, "`n_actions`", at_least=1)
    if ads.max() >= n_ads:
        raise InvalidInput(f"actions must be below n_actions={n_ads}, got {ads.max()}.")
    bad = ~np.isin(clicks, (0.0, 1.0))
    if bad.any():
        row = int(np.flatnonzero(bad)[0])
        raise InvalidInput(f"rewards must be 0 or 1, got {clicks[row]} in row {row}.")
    return table, ads, clicks, n_ads


def _sample(rows: FloatArray, n: int, seed: int, ad: int) -> FloatArray:
    """Return n rows without replacement, in their order; all if there are no more."""
    keys = np.empty(len(rows))
    uniforms(Draw(seed, POLICY_STREAM, ad), SAMPLE_USE, keys)
    return rows[np.sort(np.argsort(keys, kind="stable")[:n])]


def _examples(
    contexts: FloatArray,
    ads: IntArray,
    clicks: FloatArray,
    n_ads: int,
    negatives_per_click: float | None,
    no_click: str,
    seed: int,
) -> Iterator[AdExamples]:
    """Yield the examples of each ad that can be learnt; raise if there is none."""
    check_choice(no_click, "`no_click`", NO_CLICK_RULES)
    n_found = 0
    for ad in range(n_ads):
        rows, hits = contexts[ads == ad], clicks[ads == ad] == 1.0
        positives, negatives = rows[hits], rows[~hits]
        if len(positives) == 0 and no_click == "never":
            continue
        if len(positives) == 0 or len(negatives) == 0:
            hint = "" if len(positives) else "; no_click='never' leaves such ads out"
            raise InvalidInput(
                f"Ad {ad} must have impressions with and without a click, got {len(positives)} "
                f"clicks on {len(rows)} impressions{hint}."
            )
        sampled = negatives
        if negatives_per_click is not None:
            ratio = check_number(negatives_per_click, "`negatives_per_click`", above=0.0)
            sampled = _sample(negatives, max(1, round(ratio * len(positives))), seed, ad)
        n_found += 1
        yield AdExamples(ad, positives, negatives, sampled)
    if not n_found:
        raise InvalidInput("At least one ad must have a click, got none.")


def _labels(*sizes: int) -> FloatArray:
    return np.repeat([1.0, 0.0], sizes)


class AdRankers(NamedTuple):
    """Rankers whose scores cannot be compared yet, and the examples that will align them."""

    scale: Scale
    weights: FloatArray
    examples: tuple[AdExamples, ...]

    def aligned(self, alignment: str) -> LinearScorer:
        """Return the scorer whose ads are aligned by all of their examples."""
        weights, offsets = np.zeros_like(self.weights), np.full(len(self.weights), -np.inf)
        for ad, positives, negatives, _ in self.examples:
            scores = np.concatenate([positives @ self.weights[ad], negatives @ self.weights[ad]])
            slope, offsets[ad] = align(scores, _labels(len(positives), len(negatives)), alignment)
            weights[ad] = slope * self.weights[ad]
        return self.scale.scorer(weights, offsets)


def descend_ads(
    contexts: ArrayLike,
    actions: ArrayLike,
    rewards: ArrayLike,
    *,
    n_actions: int | None = None,
    negatives_per_click: float | None = None,
    no_click: str = "error",
    seed: int = 0,
    **settings: Any,
) -> AdRankers:
    """Fit the rankers of :func:`fit_rankers`, to be aligned in one way or several."""
    table, ads, clicks, n_ads = check_log(contexts, actions, rewards, n_actions)
    seed, scale = check_seed(seed), Scale.of(table)
    weights = np.zeros((n_ads, table.shape[1]))
    given = (scale.apply(table), ads, clicks, n_ads, negatives_per_click, no_click, seed)
    examples = tuple(_examples(*given))
    for one in examples:
        fitted = fit_pairs(one.positives, one.sampled, seed=seed, ad=one.ad, **settings)
        weights[one.ad] = fitted
    return AdRankers(scale, weights, examples)


def fit_rankers(
    contexts: ArrayLike,
    actions: ArrayLike,
    rewards: ArrayLike,
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
        One row per impression: the visitor, the ad shown (from 0), clicked (1) or not (0).
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
    >>> from keyhole.policies import Greedy
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
    contexts: ArrayLike,
    actions: ArrayLike,
    rewards: ArrayLike,
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
    table, ads, clicks, n_ads = check_log(contexts, actions, rewards, n_actions)
    seed, scale = check_seed(seed), Scale.of(table)
    l2 = check_number(l2, "`l2`", above=0.0)
    weights, offsets = np.zeros((n_ads, table.shape[1])), np.full(n_ads, -np.inf)
    given = (scale.apply(table), ads, clicks, n_ads, negatives_per_click, no_click, seed)
    for ad, positives, _, sampled in _examples(*given):
        rows = np.concatenate([positives, sampled])
        weights[ad], offsets[ad] = fit_logistic(rows, _labels(len(positives), len(sampled)), l2=l2)
    return scale.scorer(weights, offsets)


def fit_forests(
    contexts: ArrayLike,
    actions: ArrayLike,
    rewards: ArrayLike,
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
    table, ads, clicks, n_ads = check_log(contexts, actions, rewards, n_actions)
    seed, n_trees = check_seed(seed), check_integer(n_trees, "`n_trees`", at_least=1)
    forests: list[Any | None] = [None] * n_ads
    given = (table, ads, clicks, n_ads, negatives_per_click, no_click, seed)
    for ad, positives, _, sampled in _examples(*given):
        rows = np.concatenate([positives, sampled])
        forest = _forest_class()(n_trees, random_state=(seed * n_ads + ad) % 2**32)
        forests[ad] = forest.fit(rows, _labels(len(positives), len(sampled)))
    return join_forests(forests, table.shape[1])


def _forest_class() -> Any:
    try:
        from sklearn.ensemble import RandomForestClassifier
    except ImportError:
        raise LibraryMissing("Random forests need scikit-learn", "ads") from None
    return RandomForestClassifier
