"""Descent on pairs reaches the minimum of the AUC surrogate, as fast as theory says."""

# ruff: noqa: T201 (tests print the bounds they hold results against)

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import norm
from sklearn.metrics import roc_auc_score
from sklearn.svm import LinearSVC

from keyhole.kernels.draw import Draw
from keyhole.policies.pairs import (
    POLICY_STREAM,
    descend_pairs,
    fit_pairs,
    init_pairs,
    pair_params,
    thresholded,
)

N_STEPS = 200_000
SEEDS = range(4)


@pytest.fixture(scope="module")
def examples():
    numbers = np.random.default_rng(5)
    shift = np.array([0.8, -0.5, 0.3, 0.0, 0.0, 0.0])
    return numbers.normal(size=(30, 6)) + shift, numbers.normal(size=(80, 6))


def differences(examples):
    positives, negatives = examples
    return (positives[:, None, :] - negatives[None, :, :]).reshape(-1, positives.shape[1])


def objective(weights, pairs, loss, l1, l2):
    margins = pairs @ weights
    losses = np.logaddexp(0, -margins) if loss == "logistic" else np.maximum(0, 1 - margins)
    return losses.mean() + l1 * np.abs(weights).sum() + 0.5 * l2 * weights @ weights


def logistic_minimum(pairs, l1, l2):
    """Return the minimiser, by parting the weights into what is above and below zero."""
    n_features = pairs.shape[1]

    def value_and_slope(parts):
        weights = parts[:n_features] - parts[n_features:]
        slope = -(pairs.T @ (1 / (1 + np.exp(pairs @ weights)))) / len(pairs) + l2 * weights
        value = objective(weights, pairs, "logistic", 0, l2) + l1 * parts.sum()
        return value, np.concatenate([slope + l1, -slope + l1])

    found = minimize(
        value_and_slope,
        np.zeros(2 * n_features),
        jac=True,
        method="L-BFGS-B",
        bounds=[(0, None)] * (2 * n_features),
        options={"ftol": 1e-15, "gtol": 1e-10, "maxiter": 10_000},
    )
    return found.x[:n_features] - found.x[n_features:]


def hinge_minimum(pairs, l2):
    signs = np.where(np.arange(len(pairs)) % 2, 1.0, -1.0)
    machine = LinearSVC(
        loss="hinge", C=1 / (l2 * len(pairs)), fit_intercept=False, tol=1e-8, max_iter=1_000_000
    )
    return machine.fit(pairs * signs[:, None], signs).coef_[0]


def expected_gap(pairs, best, l2):
    """Return the bound on the mean gap: the regret of follow-the-regularised-leader over T.

    Mean squared gradients are at most the mean squared difference c. With the divisor c + l2 t
    the regret is at most c |w*|^2 / 2 + sum of c / (2 (c + l2 t)); with c sqrt(t + 1) it is
    c sqrt(T + 1) |w*|^2 / 2 + sum of 1 / (2 sqrt(t)). No iterate weighs more than 4 / T in the
    polynomial-decay average, and no gap is negative.
    """
    c, size = (pairs**2).sum(axis=1).mean(), best @ best
    if l2 > 0:
        regret = c * size / 2 + c / (2 * l2) * np.log1p(l2 * N_STEPS / c) + 0.5
    else:
        regret = c * np.sqrt(N_STEPS + 1) * size / 2 + np.sqrt(N_STEPS)
    return 4 * regret / N_STEPS


@pytest.mark.parametrize(
    ("loss", "l1", "l2"),
    [
        ("logistic", 0.0, 0.1),
        ("logistic", 0.0, 0.01),
        ("logistic", 0.05, 0.1),
        ("logistic", 0.05, 0.0),
        ("hinge", 0.0, 0.1),
    ],
)
def test_the_mean_gap_is_within_its_bound(examples, loss, l1, l2):
    pairs = differences(examples)
    best = hinge_minimum(pairs, l2) if loss == "hinge" else logistic_minimum(pairs, l1, l2)
    lowest = objective(best, pairs, loss, l1, l2)
    found = [
        fit_pairs(*examples, loss=loss, l1=l1, l2=l2, n_steps=N_STEPS, seed=seed) for seed in SEEDS
    ]
    gaps = [objective(weights, pairs, loss, l1, l2) - lowest for weights in found]
    bound = expected_gap(pairs, best, l2)
    at_zero = objective(np.zeros(6), pairs, loss, l1, l2) - lowest
    print(f"gap {np.mean(gaps):.2e}, bound {bound:.2e}, gap of no weights {at_zero:.2e}")
    assert min(gaps) > -1e-6
    assert np.mean(gaps) < bound < at_zero / 2


def test_l1_gives_the_zeros_of_the_minimum(examples):
    pairs = differences(examples)
    best = logistic_minimum(pairs, 0.2, 0.01)
    gradient = -(pairs.T @ (1 / (1 + np.exp(pairs @ best)))) / len(pairs)
    # A mean of T gradients, each at most as long as a difference, strays by a few c / sqrt(T).
    room = 4 * np.sqrt((pairs**2).mean(axis=0).max() / N_STEPS)
    clear = np.abs(np.abs(gradient) - 0.2) > room
    zeros = (np.abs(gradient) < 0.2) & clear
    assert zeros.sum() >= 2
    weights = fit_pairs(*examples, l1=0.2, l2=0.01, n_steps=N_STEPS)
    assert (weights[zeros] == 0).all()
    assert (weights[(np.abs(best) > 0.05)] != 0).all()


def test_it_ranks_as_well_as_the_minimum(examples):
    """The weights stray no further than averaged stochastic gradients must, and so does AUC.

    Their covariance tends to H^-1 S H^-1 / T (Polyak & Juditsky 1992; H the curvature, S the
    covariance of gradients), times 16/7 for an average that forgets by the exponent 3. How likely
    the error turns the order of a pair follows from it.
    """
    positives, negatives = examples
    rows, labels = np.concatenate(examples), np.repeat([1, 0], [len(positives), len(negatives)])
    pairs, l2 = differences(examples), 0.1
    best = logistic_minimum(pairs, 0.0, l2)
    chances = 1 / (1 + np.exp(pairs @ best))
    curvature = (pairs * (chances * (1 - chances))[:, None]).T @ pairs / len(pairs) + l2 * np.eye(6)
    inverse = np.linalg.inv(curvature)
    covariance = 16 / 7 * inverse @ np.cov(pairs.T * chances) @ inverse / N_STEPS
    spreads = np.sqrt(np.einsum("ij,jk,ik->i", pairs, covariance, pairs))
    expected = norm.sf(np.abs(pairs @ best) / spreads).mean()
    found = [fit_pairs(positives, negatives, l2=l2, n_steps=N_STEPS, seed=seed) for seed in SEEDS]
    turned = np.mean([((pairs @ best > 0) != (pairs @ weights > 0)).mean() for weights in found])
    areas = [roc_auc_score(labels, rows @ weights) for weights in found]
    attainable = roc_auc_score(labels, rows @ best)
    print(f"turned {turned:.5f}, expected {expected:.5f}; AUC {areas} of {attainable:.5f}")
    assert turned < 2 * expected
    assert np.abs(np.mean(areas) - attainable) <= turned


def test_pairs_are_ranked_right_where_they_can_be():
    numbers = np.random.default_rng(1)
    positives = numbers.normal(size=(5, 3)) + np.array([6, 0, 0])
    negatives = numbers.normal(size=(500, 3))
    for loss in ("logistic", "hinge"):
        weights = fit_pairs(positives, negatives, loss=loss, l2=0.001, n_steps=20_000)
        assert (positives @ weights).min() > (negatives @ weights).max()


def test_a_descent_goes_on_where_it_stopped(examples):
    params = pair_params("logistic", 0.01, 0.1, curvature=12.0)
    draw = Draw(3, POLICY_STREAM, 0)
    whole, halves = init_pairs(6), init_pairs(6)
    positives, negatives = examples
    descend_pairs(params, whole, draw, positives, negatives, 1000)
    descend_pairs(params, halves, draw, positives, negatives, 400)
    descend_pairs(params, halves, draw, positives, negatives, 600)
    for one, other in zip(whole, halves, strict=True):
        assert np.array_equal(one, other)
    assert np.array_equal(
        thresholded(whole.average, whole.cut[0]), thresholded(halves.average, halves.cut[0])
    )
