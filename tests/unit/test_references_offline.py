"""What policies are worth: estimates, their spread, diagnostics and the gate, by definition."""

import math
from typing import Any

import numpy as np
import pytest

from keyhole.data.bandit.log import BanditLog
from keyhole.offline.bounds import lower_bounds
from keyhole.offline.diagnostics import diagnose
from keyhole.offline.estimators import (
    Estimate,
    clipped,
    direct,
    doubly_robust,
    estimate_all,
    importance_weighted,
    self_normalised,
)
from keyhole.offline.evaluation import best_fixed_action, evaluate
from keyhole.offline.rewards import predict_rewards
from keyhole.offline.target import logged_target, target_of
from keyhole.policies.base import Always

NUMBERS = np.random.default_rng(3)
LOG = BanditLog.of(
    NUMBERS.normal(size=(40, 2)),
    NUMBERS.integers(3, size=40),
    NUMBERS.random(40).round(2),
    NUMBERS.uniform(0.1, 0.6, size=40),
    n_actions=3,
)
CHANCES = NUMBERS.dirichlet(np.ones(3), size=40)
TABLE = NUMBERS.random((40, 3))
CHOSEN = CHANCES[np.arange(40), LOG.actions]
WEIGHTS = CHOSEN / LOG.propensities
MODEL = TABLE[np.arange(40), LOG.actions]


def test_estimates_by_definition():
    target = target_of(LOG, CHANCES)
    np.testing.assert_allclose(target.weights, WEIGHTS, rtol=1e-12)
    largest = CHANCES.max() / LOG.propensities.min()
    assert target.largest_weight == pytest.approx(largest, rel=1e-12)
    floored = target_of(LOG, CHANCES, floor=0.05)
    assert floored.largest_weight == pytest.approx(CHANCES.max() / 0.05, rel=1e-12)

    plain = importance_weighted(LOG, target)
    np.testing.assert_allclose(plain.contributions, WEIGHTS * LOG.rewards, rtol=1e-12)
    assert plain.range == pytest.approx((0.0, largest))
    wide = importance_weighted(LOG, target, rewards=(-2.0, 3.0))
    assert wide.range == pytest.approx((-2 * largest, 3 * largest))
    assert plain.value == pytest.approx((WEIGHTS * LOG.rewards).mean())
    spread = math.sqrt(((WEIGHTS * LOG.rewards - plain.value) ** 2).sum() / 39)
    assert plain.error == pytest.approx(spread / math.sqrt(40))

    cut = clipped(LOG, target, clip=0.7)
    np.testing.assert_allclose(cut.contributions, np.minimum(WEIGHTS, 0.7) * LOG.rewards)
    assert cut.range == (0.0, 0.7)
    assert cut.bias == "down"
    by_default = clipped(LOG, target)
    root = math.sqrt(40)
    np.testing.assert_allclose(by_default.contributions, np.minimum(WEIGHTS, root) * LOG.rewards)

    modelled = (CHANCES * TABLE).sum(axis=1)
    np.testing.assert_allclose(direct(LOG, target, TABLE).contributions, modelled)
    both = doubly_robust(LOG, target, TABLE, fitted_elsewhere=True)
    np.testing.assert_allclose(both.contributions, modelled + WEIGHTS * (LOG.rewards - MODEL))
    assert both.range == pytest.approx((-largest, 1 + largest))
    assert doubly_robust(LOG, target, TABLE).range is None
    wider = doubly_robust(LOG, target, 4 * TABLE - 1, fitted_elsewhere=True).range
    low, high = (4 * TABLE - 1).min(), (4 * TABLE - 1).max()
    reach = largest * (high - low)
    assert wider == pytest.approx((low - reach, high + reach))
    assert [e.bias for e in estimate_all(LOG, target, TABLE).values()] == [
        "none", "vanishing", "none" if largest <= root else "down", "unknown", "none",
    ]  # fmt: skip


def test_the_spread_of_the_self_normalised_estimate():
    """Its delta-method variance: the sum of w^2 (r - v)^2 over (sum of w)^2, times n / (n - 1)."""
    estimate = self_normalised(LOG, target_of(LOG, CHANCES))
    value = (WEIGHTS * LOG.rewards).sum() / WEIGHTS.sum()
    assert estimate.value == pytest.approx(value, rel=1e-12)
    variance = (WEIGHTS**2 * (LOG.rewards - value) ** 2).sum() / WEIGHTS.sum() ** 2
    assert estimate.error == pytest.approx(math.sqrt(variance * 40 / 39), rel=1e-12)


def test_the_logged_policy_has_weights_of_one():
    target = logged_target(LOG)
    assert target.weights.tolist() == [1.0] * 40
    assert target.largest_weight == 1.0
    assert target.is_logger
    assert target.is_deterministic
    np.testing.assert_array_equal(target.probabilities, np.eye(3)[LOG.actions])


def test_differences():
    one = Estimate("a", np.array([1.0, 2.0]), "none", (0.0, 3.0))
    other = Estimate("b", np.array([0.5, 2.5]), "none", (-1.0, 5.0))
    gap = one.minus(other)
    assert gap.contributions.tolist() == [0.5, -0.5]
    assert gap.range == (-5.0, 4.0)


def test_best_fixed_takes_an_error_off():
    """Action 0 earns more on average by one lucky reward, action 1 earns steadily."""
    actions = np.repeat([0, 1], 50)
    rewards = np.concatenate([[30.0], np.zeros(49), np.full(50, 0.5)])
    log = BanditLog.of(np.zeros((100, 0)), actions, rewards, np.full(100, 0.5))
    means, errors = [], []
    for action in (0, 1):
        earned = 2 * rewards * (actions == action)
        means.append(earned.mean())
        errors.append(earned.std(ddof=1) / 10)
    assert means[0] > means[1]
    assert means[0] - errors[0] < means[1] - errors[1]
    assert best_fixed_action(log) == 1
    steady = BanditLog.of(np.zeros((100, 0)), actions, 1.0 - 0.5 * actions, np.full(100, 0.5))
    assert best_fixed_action(steady) == 0


def test_diagnostics_by_definition():
    found = diagnose(LOG, target_of(LOG, CHANCES))
    assert found.effective_rows == pytest.approx(WEIGHTS.sum() ** 2 / (WEIGHTS**2).sum())
    assert found.largest_weight == pytest.approx(WEIGHTS.max())
    assert found.largest_share == pytest.approx(WEIGHTS.max() / WEIGHTS.sum())
    assert found.mean_weight == pytest.approx(WEIGHTS.mean())
    assert found.mean_weight_error == pytest.approx(WEIGHTS.std(ddof=1) / math.sqrt(40))
    assert (found.overlap, found.unknown, found.unknown_actions) == (1.0, 0.0, ())
    fixed = diagnose(LOG, target_of(LOG, Always(3, 1)))
    assert fixed.overlap == pytest.approx((LOG.actions == 1).mean())
    assert fixed.n_rewarded == int((LOG.rewards[LOG.actions == 1] != 0).sum())
    lacking = BanditLog.of(LOG.contexts, LOG.actions, LOG.rewards, LOG.propensities, n_actions=5)
    more = np.column_stack([CHANCES * 0.7, np.full(40, 0.3), np.zeros(40)])
    seen = diagnose(lacking, target_of(lacking, more))
    assert seen.unknown == pytest.approx(0.3)
    assert seen.unknown_actions == ("3",)


def test_predicted_rewards_are_ridge_regressions_on_the_other_folds():
    fold = np.random.default_rng(7).permutation(40) % 4
    expected = np.empty((40, 3))
    for held_out in range(4):
        seen = fold != held_out
        centre, scale = LOG.contexts[seen].mean(axis=0), LOG.contexts[seen].std(axis=0)
        design = np.column_stack([np.ones(40), (LOG.contexts - centre) / scale])
        mean = LOG.rewards[seen].mean()
        for action in range(3):
            rows = seen & (LOG.actions == action)
            # The minimum of |X w - y|^2 + penalty |w|^2 as a larger least-squares problem.
            x = np.concatenate([design[rows], math.sqrt(2.5) * np.eye(3)])
            y = np.concatenate([LOG.rewards[rows] - mean, np.zeros(3)])
            weights = np.linalg.lstsq(x, y, rcond=None)[0]
            expected[fold == held_out, action] = mean + design[fold == held_out] @ weights
    found = predict_rewards(LOG, penalty=2.5, n_folds=4, seed=7)
    np.testing.assert_allclose(found, expected, rtol=1e-9)
    np.testing.assert_array_equal(
        predict_rewards(LOG), predict_rewards(LOG, penalty=10.0, n_folds=5, seed=0)
    )


def test_the_verdict_is_that_of_the_betting_bound_on_the_difference():
    """Row by row, policy less baseline, at 95 %; above 0 promotes, 0 does not."""
    numbers = np.random.default_rng(0)
    actions = numbers.integers(2, size=600)
    clicks = numbers.random(600) < np.where(actions == 1, 0.5, 0.2)
    log = BanditLog.of(np.zeros((600, 0)), actions, clicks, np.full(600, 0.5))
    verdict = evaluate(log, Always(2, 1), Always(2, 0))
    gap: Any = 2.0 * clicks * np.where(actions == 1, 1.0, -1.0)
    assert verdict.difference["importance-weighted"].estimate.value == pytest.approx(gap.mean())
    expected = lower_bounds(Estimate("", gap, "none", (-2.0, 2.0)), 0.95)
    assert verdict.lower_bound == expected["betting"].value
    assert verdict.verdict == "promote"
    assert verdict.confidence == 0.95
    assert verdict.decided_by == "betting"
    assert evaluate(log, Always(2, 0), Always(2, 1)).verdict == "keep"
    assert evaluate(log, "logged", "logged").verdict == "keep"
    stricter = evaluate(log, Always(2, 1), Always(2, 0), 0.99)
    assert stricter.lower_bound is not None
    assert verdict.lower_bound is not None
    assert stricter.lower_bound < verdict.lower_bound
