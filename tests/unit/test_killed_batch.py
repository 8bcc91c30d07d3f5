"""Balls, mean losses and fitted rankers, by hand and by brute force."""

import inspect
import itertools
import math

import numpy as np
import pytest

from keyhole.batch.averaging import Averaged
from keyhole.batch.balls import Ball
from keyhole.batch.ranker import BatchRanker
from keyhole.batch.risk import Risk
from keyhole.bounds.scorers import bounds_itself, equivariant_scores, largest_row_norm
from keyhole.contracts.lists import Feedback, Query
from keyhole.rankers.lists.gradient import Descent
from tests.unit.references import descending, ndcg
from tests.unit.references_lists import softmax

NUMBERS = np.random.default_rng(4)


def points_of(ball):
    """Return many points inside a ball in the plane, corners and edge among them."""
    angles = np.linspace(0, 2 * math.pi, 4001)
    edge = np.column_stack([np.cos(angles), np.sin(angles)])
    if ball.norm == "l1":
        edge /= np.abs(edge).sum(axis=1, keepdims=True)
    return np.concatenate([share * ball.radius * edge for share in np.linspace(0, 1, 201)])


@pytest.mark.parametrize("norm", ["l1", "l2"])
@pytest.mark.parametrize("curvature", [0.0, 0.3, 5.0])
def test_the_least_of_a_bowl_over_a_ball(norm, curvature):
    ball = Ball(norm, 1.5)
    points = points_of(ball)
    for slope in ([1.0, -2.0], [0.1, 0.05], [0.0, 3.0], [0.0, 0.0]):
        values = points @ np.array(slope) + 0.5 * curvature * (points**2).sum(axis=1)
        least = ball.lowest(np.array(slope), curvature)
        assert least <= values.min() + 1e-12
        assert least == pytest.approx(values.min(), abs=2e-4)
    assert Ball("l2").lowest(np.array([3.0, 4.0]), 2.0) == pytest.approx(-25 / 4)
    assert Ball("l2").lowest(np.array([3.0, 4.0]), 0.0) == -math.inf


def test_what_a_ball_holds():
    """Points on its edge are inside, and stay where they are."""
    for norm, edge in (("l1", [1.0, -0.5]), ("l2", [0.9, 1.2])):
        ball = Ball(norm, 1.5)
        assert ball.holds(np.array(edge))
        assert not ball.holds(np.array(edge) * 1.01)
        beyond = ball.project(2.0 * np.array(edge))
        if norm == "l2":
            np.testing.assert_allclose(beyond, edge)
        else:
            np.testing.assert_allclose(beyond, [1.25, -0.25])
    assert Ball().radius == math.inf
    assert Ball().norm == "l2"


def three_lists():
    features = NUMBERS.normal(size=(9, 2))
    grades = np.array([0, 2, 1, 0, 1, 2, 2, 0, 1.0])
    return features, grades, [0, 4, 6, 9]


def test_the_mean_loss_of_lists():
    """ListNet: the mean over lists of the cross-entropy, and of X' (softmax(s) - softmax(R))."""
    features, grades, starts = three_lists()
    weights = np.array([0.7, -1.3])
    values, slopes = [], []
    for first, end in itertools.pairwise(starts):
        chances = softmax(features[first:end] @ weights)
        target = softmax(grades[first:end])
        values.append(-(target * np.log(chances)).sum())
        slopes.append(features[first:end].T @ (chances - target))
    value, gradient = Risk("listnet", features, grades, starts)(weights)
    assert value == pytest.approx(np.mean(values), rel=1e-12)
    np.testing.assert_allclose(gradient, np.mean(slopes, axis=0), rtol=1e-12)


def test_a_fitted_ranker_ranks_and_scores_its_lists():
    features, grades, starts = three_lists()
    groups = np.repeat(["c", "a", "b"], np.diff(starts))
    ranker = BatchRanker().fit(features, grades, groups)
    scores, positions, values = features @ ranker.coef_, np.empty(9, int), []
    for first, end in itertools.pairwise(starts):
        order = descending(scores[first:end])
        positions[first + order] = np.arange(end - first)
        values.append(ndcg(grades[first:end], order, 10))
    np.testing.assert_allclose(ranker.predict(features), scores, rtol=1e-12)
    assert ranker.rank(features, groups).tolist() == positions.tolist()
    assert ranker.score(features, grades, groups) == pytest.approx(np.mean(values))
    value, gradient = Risk("listnet", features, grades, starts)(ranker.coef_)
    # At the minimum of risk + lambda / 2 |w|^2 the gradient is -lambda w.
    np.testing.assert_allclose(gradient, -1e-3 * ranker.coef_, atol=1e-4)
    held = value + 0.5e-3 * (ranker.coef_**2).sum()
    assert ranker.objective_ == pytest.approx(held, rel=1e-9)
    assert 0 <= ranker.gap_ <= 1e-6
    assert ranker.regularisation_ == 1e-3


def test_settings_of_batch_rankers_by_default():
    given = inspect.signature(BatchRanker).parameters
    assert {name: one.default for name, one in given.items()} == {
        "surrogate": "listnet", "norm": "l2", "radius": None, "regularisation": 1e-3,
        "method": "erm", "measure": "NDCG@10", "tolerance": 1e-6, "max_evaluations": 20_000,
        "seed": 0,
    }  # fmt: skip


def test_the_mean_of_the_weights_before_each_update():
    ranker = Averaged(Descent(2, 4, step="fixed", rate=0.5))
    weights, total = np.zeros(2), np.zeros(2)
    for _ in range(12):
        features, grades = NUMBERS.normal(size=(4, 2)), NUMBERS.integers(3, size=4).astype(float)
        impression = ranker.rank(Query(4, features))
        ranker.update(impression, Feedback(grades[impression.ranking]))
        total += weights
        slopes = softmax(features @ weights) - softmax(grades)
        weights = weights - 0.5 * features.T @ slopes
    np.testing.assert_allclose(ranker.mean_weights, total / 12, rtol=1e-9)
    np.testing.assert_allclose(ranker.state.weights, weights, rtol=1e-9)


def test_self_bounding_is_told_from_what_is_not():
    """(f - f')^2 <= 6 H (f + f') |s - s'|^2: equal, a hair more, and by the largest change."""
    gap = math.sqrt(4.0 / (6 * 0.5 * 4.0))  # (3 - 1)^2 = 6 * 0.5 * (3 + 1) * gap^2
    assert bounds_itself(0.5, (3.0, 1.0), [0.0, 0.0], [gap, -0.1])
    assert not bounds_itself(0.5, (3.0, 1.0), [0.0, 0.0], [gap * (1 - 1e-9), gap * 0.9])
    assert largest_row_norm([[3.0, 4.0], [1.0, 5.5]]) == pytest.approx(math.hypot(1.0, 5.5))
    assert largest_row_norm([[3.0, 4.0], [1.0, 5.5]], p=1) == 7.0
    shown = equivariant_scores([[1.0, 2.0], [3.0, 4.0]], [1.0, 0.0], [0.0, 0.5])
    assert shown.tolist() == [1 + 3.0, 3 + 3.0]
