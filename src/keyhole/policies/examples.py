"""Logged impressions as examples to fit models to, ad by ad."""

from collections.abc import Iterator
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from keyhole.base.errors import FloatArray, IntArray, InvalidInput, check_integer, check_number
from keyhole.data.bandit.columns import Names
from keyhole.data.bandit.convert import check_indices
from keyhole.data.bandit.log import BanditLog
from keyhole.data.bandit.row_digests import SeenRows
from keyhole.kernels.draw import Draw, uniforms
from keyhole.policies.base import Scorer, check_contexts
from keyhole.policies.linear import LinearScorer
from keyhole.policies.pairs import POLICY_STREAM, SAMPLE_USE

S = TypeVar("S", bound=Scorer)


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


class Clicks(NamedTuple):
    """Impressions that fit together: contexts, ads, clicks, and what they are called."""

    contexts: FloatArray
    ads: IntArray
    clicks: FloatArray
    n_ads: int
    feature_names: Names = None
    action_names: Names = None

    def sign(self, scorer: S) -> S:
        """Return a scorer that knows what it was fitted to."""
        seen = SeenRows.of(self.contexts, self.ads, self.clicks)
        return scorer.fitted_to(seen, self.feature_names, self.action_names)


def check_log(
    contexts: ArrayLike | BanditLog,
    actions: ArrayLike | None,
    rewards: ArrayLike | None,
    n_actions: int | None,
) -> Clicks:
    """Return contexts, ads and clicks as arrays that fit together, or raise."""
    features = named = None
    if isinstance(contexts, BanditLog):
        if actions is not None or rewards is not None:
            raise InvalidInput(
                "actions and rewards must be those of the log, got others beside it."
            )
        log = contexts
        n_actions = log.n_actions if n_actions is None else n_actions
        features = log.feature_names
        named = log.action_names if n_actions == log.n_actions else None
        contexts, actions, rewards = log.contexts, log.actions, log.rewards
    elif actions is None or rewards is None:
        raise InvalidInput("contexts must come with actions and rewards, or be a BanditLog.")
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
    return Clicks(table, ads, clicks, n_ads, features, named)


def _sample(rows: FloatArray, n: int, seed: int, ad: int) -> FloatArray:
    """Return n rows without replacement, in their order; all if there are no more."""
    keys = np.empty(len(rows))
    uniforms(Draw(seed, POLICY_STREAM, ad), SAMPLE_USE, keys)
    return rows[np.sort(np.argsort(keys, kind="stable")[:n])]


def examples_of(
    given: Clicks, negatives_per_click: float | None, no_click: str, seed: int
) -> Iterator[AdExamples]:
    """Yield the examples of each ad that can be learnt; raise if there is none."""
    n_found = 0
    for ad in range(given.n_ads):
        rows, hits = given.contexts[given.ads == ad], given.clicks[given.ads == ad] == 1.0
        positives, negatives = rows[hits], rows[~hits]
        if len(positives) == 0 and no_click == "never":
            continue
        if len(positives) == 0 or len(negatives) == 0:
            hint = "" if len(positives) else "; no_click='never' leaves such ads out"
            name = "" if given.action_names is None else f" ({given.action_names[ad]})"
            raise InvalidInput(
                f"Ad {ad}{name} must have impressions with and without a click, got "
                f"{len(positives)} clicks on {len(rows)} impressions{hint}."
            )
        sampled = negatives
        if negatives_per_click is not None:
            ratio = check_number(negatives_per_click, "`negatives_per_click`", above=0.0)
            sampled = _sample(negatives, max(1, round(ratio * len(positives))), seed, ad)
        n_found += 1
        yield AdExamples(ad, positives, negatives, sampled)
    if not n_found:
        raise InvalidInput("At least one ad must have a click, got none.")


def labels_of(*sizes: int) -> FloatArray:
    """Return so many clicks, and so many impressions without one."""
    return np.repeat([1.0, 0.0], sizes)
