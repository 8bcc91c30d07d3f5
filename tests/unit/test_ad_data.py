"""Bandit feedback from classes, information gain, simulated campaigns."""

import numpy as np
import pytest
from sklearn.feature_selection import mutual_info_classif
from sklearn.metrics import mutual_info_score

from keyhole.base.errors import InvalidInput
from keyhole.data.bandit.campaign import BANK_RATES, HOTEL_RATES, Campaign
from keyhole.data.bandit.convert import bandit_feedback
from keyhole.data.bandit.selection import bins_of, information_gain, select_features


def test_feedback_is_of_a_uniform_logger():
    n_rows, n_classes = 20_000, 5
    labels = np.arange(n_rows) % n_classes
    log = bandit_feedback(np.zeros((n_rows, 2)), labels, seed=3)
    assert np.array_equal(log.rewards, (log.actions == labels).astype(float))
    assert (log.propensities == 1 / n_classes).all()
    spread = np.sqrt(n_rows * 0.2 * 0.8)
    assert (np.abs(np.bincount(log.actions) - n_rows / n_classes) < 5 * spread).all()
    assert abs(log.rewards.sum() - n_rows / n_classes) < 5 * spread
    same, other = (bandit_feedback(np.zeros((n_rows, 2)), labels, seed=s) for s in (3, 4))
    assert np.array_equal(log.actions, same.actions)
    assert not np.array_equal(log.actions, other.actions)


def test_labels_that_are_no_classes_are_refused():
    rows = np.zeros((3, 1))
    with pytest.raises(InvalidInput, match="labels must be integers from 0"):
        bandit_feedback(rows, [0.5, 1, 2])
    with pytest.raises(InvalidInput, match="labels must be integers from 0"):
        bandit_feedback(rows, [-1, 1, 2])
    with pytest.raises(InvalidInput, match="below n_actions=2, got 2"):
        bandit_feedback(rows, [0, 1, 2], n_actions=2)
    with pytest.raises(InvalidInput, match="one label each"):
        bandit_feedback(rows, [0, 1])


def test_gain_of_discrete_features_is_scikit_learns():
    numbers = np.random.default_rng(0)
    features = numbers.integers(0, 6, size=(500, 4)).astype(float)
    labels = (features[:, 0] + numbers.integers(0, 4, size=500)) // 3
    expected = mutual_info_classif(features, labels, discrete_features=True)
    np.testing.assert_allclose(information_gain(features, labels), expected, atol=1e-12)


def test_gain_of_numbers_is_that_of_their_bins():
    numbers = np.random.default_rng(1)
    features = numbers.normal(size=(1000, 3))
    labels = (features[:, 1] > 0.5).astype(int)
    bins = np.column_stack([bins_of(column, 8) for column in features.T])
    assert (np.bincount(bins[:, 0]) == 125).all()
    expected = [mutual_info_score(labels, column) for column in bins.T]
    gains = information_gain(features, labels, n_bins=8)
    np.testing.assert_allclose(gains, expected, atol=1e-12)
    assert select_features(gains, 0.3).tolist() == [1]


def test_gain_within_groups_is_their_mean():
    numbers = np.random.default_rng(2)
    features = numbers.integers(0, 3, size=(600, 2)).astype(float)
    groups = np.repeat(["a", "b"], [200, 400])
    labels = np.where(groups == "a", features[:, 0], 2 - features[:, 0]) > numbers.random(600)
    parts = [information_gain(features[groups == g], labels[groups == g]) for g in ("a", "b")]
    expected = (200 * parts[0] + 400 * parts[1]) / 600
    np.testing.assert_allclose(information_gain(features, labels, groups=groups), expected)


def test_equal_values_share_a_bin():
    values = np.array([0.0] * 90 + list(range(1, 31)))
    bins = bins_of(values, 4)
    assert len(set(bins[:90])) == 1
    assert (np.diff(bins) >= 0).all()
    assert (information_gain(np.zeros((5, 1)), [0, 1, 0, 1, 1]) == 0).all()


def test_features_that_cannot_be_binned_are_refused():
    with pytest.raises(InvalidInput, match="must be finite"):
        information_gain([[np.nan], [1.0]], [0, 1])
    with pytest.raises(InvalidInput, match="one label each"):
        information_gain([[0.0], [1.0]], [0])
    with pytest.raises(InvalidInput, match="`share`"):
        select_features([1.0], 0.0)


@pytest.mark.parametrize("shape", ["linear", "bent"])
@pytest.mark.parametrize("rates", [BANK_RATES, HOTEL_RATES])
def test_campaigns_have_the_rates_asked_for(rates, shape):
    campaign = Campaign(rates, shape=shape, seed=1)
    visitors = campaign.visitors(100_000, seed=2)
    chances = campaign.click_chances(visitors)
    # The intercepts were set on a sample of the same size: two errors of a mean.
    slack = 4 * np.sqrt(2) * chances.std(axis=0) / np.sqrt(len(visitors))
    assert (np.abs(chances.mean(axis=0) - rates) < slack).all()
    log = campaign.log(100_000, seed=2)
    assert np.array_equal(log.contexts, visitors)
    counts = np.bincount(log.actions)
    clicks = np.bincount(log.actions, log.rewards)
    expected = counts * np.array(rates)
    assert (np.abs(clicks - expected) < 5 * np.sqrt(expected)).all()


def test_shares_are_the_loggers_propensities():
    shares = np.array([1.0, 2.0, 3.0, 4.0, 10.0])
    log = Campaign().log(50_000, shares=shares, seed=4)
    chances = shares / shares.sum()
    assert np.array_equal(log.propensities, chances[log.actions])
    spread = np.sqrt(50_000 * chances * (1 - chances))
    assert (np.abs(np.bincount(log.actions) - 50_000 * chances) < 5 * spread).all()


def test_importance_weights_agree_with_the_true_value():
    campaign = Campaign(HOTEL_RATES, seed=3)
    log = campaign.log(200_000, seed=5)
    best = np.argmax(campaign.click_chances(log.contexts), axis=1)
    shown = np.full((len(best), 5), 0.05)
    shown[np.arange(len(best)), best] = 0.8
    earned = log.rewards * shown[np.arange(len(best)), log.actions] / log.propensities
    error = earned.std() / np.sqrt(len(earned))
    assert abs(earned.mean() - campaign.value(shown, log.contexts)) < 4 * error


def test_campaigns_are_checked():
    with pytest.raises(
        InvalidInput, match=r"rates of Campaign must be a list of numbers in \(0, 1"
    ):
        Campaign([0.1, 0.0])
    with pytest.raises(InvalidInput, match="between 1 and n_features=4, got 5"):
        Campaign(n_features=4, n_informative=5)
    with pytest.raises(InvalidInput, match="shares must be 5 positive numbers"):
        Campaign().log(10, shares=[1, 1])
