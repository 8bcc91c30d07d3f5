"""The judges by which penalties of ad models are chosen, against scikit-learn."""

from functools import partial

import numpy as np
import pytest

from keyhole.data.bandit.log import BanditLog
from keyhole.lab.kinds.ad_data import choose_l2
from keyhole.policies.judging import mean_auc, mean_likelihood
from keyhole.policies.linear import LinearScorer

metrics = pytest.importorskip("sklearn.metrics")


@pytest.fixture
def log():
    numbers = np.random.default_rng(0)
    contexts, actions = numbers.normal(size=(600, 2)).round(1), numbers.integers(3, size=600)
    clicks = (numbers.random(600) < 1 / (1 + np.exp(1 - contexts[:, 0]))) & (actions < 2)
    return BanditLog.of(contexts, actions, clicks, np.full(600, 1 / 3), n_actions=3)


SCORER = LinearScorer([[1.0, 0.2], [0.5, -1.0], [1.0, 1.0]], [-1.0, 0.5, 0.0])


def _ads(log):  # nobody clicked on the third ad: it has no say
    for ad in (0, 1):
        shown = log.actions == ad
        yield log.rewards[shown], SCORER.scores(log.contexts[shown])[:, ad]


def test_auc_is_the_mean_over_ads_with_ties(log):
    expected = np.mean([metrics.roc_auc_score(clicks, scores) for clicks, scores in _ads(log)])
    assert mean_auc(SCORER, log) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("negatives_per_click", [None, 0.5])
def test_likelihood_weighs_as_the_training_did(log, negatives_per_click):
    losses = []
    for clicks, scores in _ads(log):
        others = len(clicks) - clicks.sum()
        kept = 1.0 if negatives_per_click is None else negatives_per_click * clicks.sum() / others
        weights = np.where(clicks > 0, 1.0, min(1.0, kept))
        chances = 1 / (1 + np.exp(-scores))
        losses.append(metrics.log_loss(clicks, chances, sample_weight=weights))
    found = mean_likelihood(SCORER, log, negatives_per_click)
    assert found == pytest.approx(-np.mean(losses), abs=1e-12)


@pytest.mark.parametrize("judge", [mean_auc, partial(mean_likelihood, negatives_per_click=None)])
def test_the_better_scorer_is_chosen(log, judge):
    weights = {0.1: -1.0, 1.0: 1.0, 10.0: 0.0}

    def fit(_, l2):
        return (LinearScorer([[weights[l2], 0.0]] * 3, [-1.0] * 3),)

    assert choose_l2(fit, judge, log, (0.1, 1.0, 10.0), seed=0) == 1.0
