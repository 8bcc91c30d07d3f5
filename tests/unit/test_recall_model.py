"""What recall makes of features: numbers of any scale, least squares, guesses and trust by hand."""

import math

import numpy as np
import pytest

from keyhole.game.play import play
from keyhole.kernels.draw import Draw
from keyhole.rankers.lists.recall import Recall
from keyhole.rankers.lists.recall_features import (
    COMPONENT,
    CONSTANT,
    LENGTH,
    OF_LIST,
    REFERENCES,
)
from keyhole.rankers.lists.recall_model import (
    FIRST_SIGHTS,
    FREEDOM,
    RESIDUALS,
    WITHIN,
    begin_list,
    judge_priors,
    learn_relevance,
    new_model,
    variances,
)
from keyhole.worlds.queries import Queries

pytestmark = pytest.mark.interpreted

N_FEATURES, N_ITEMS = 4, 6
NUMBERS = np.random.default_rng(3)


def prepared(ranker, features):
    """Return the scratch memory of a ranker that has looked at a list."""
    work = ranker.kernel.work(ranker.params, len(features))
    ranker.kernel.prepare(ranker.params, ranker.state, features, features[:0], work)
    return work


def deviate(share):
    """Return the normal deviate of a rank by bisection."""
    low, high = -8.0, 8.0
    for _ in range(60):
        middle = 0.5 * (low + high)
        below = math.erf(middle / math.sqrt(2.0)) < share
        low, high = (middle, high) if below else (low, middle)
    return low


def test_features_are_deviations_and_ranks_within_the_list():
    features = NUMBERS.random((7, N_FEATURES))
    features[:, 1] = [3, 1, 3, 2, 0, 5, 4]  # two are alike
    features[:, 2] = 0.25
    features[:, 3] = -np.exp(8.0 * features[:, 3])
    work = prepared(Recall(N_FEATURES, 7), features).features
    logs = features.copy()
    logs[:, 3] = -np.log1p(-features[:, 3])
    spread = logs.std(axis=0)
    z = (logs - logs.mean(axis=0)) / np.where(spread > 0, spread, 1)
    signs = np.sign(features[:, None] - features[None]).sum(axis=1) / 7
    ranks = np.vectorize(deviate)(signs)
    assert np.abs(work.deviates - ranks).max() < 0.005
    assert np.abs(work.rows[:, :N_FEATURES] - (z + ranks) / 2).max() < 0.005
    assert not work.rows[:, 2].any()
    extra = work.rows[:, N_FEATURES:]
    assert np.allclose(extra[:, LENGTH], math.log(7) - 3)
    assert (extra[:, CONSTANT] == 1.0).all()
    assert np.allclose(extra[:, COMPONENT], work.deviates.sum(axis=1) / math.sqrt(N_FEATURES))
    assert not extra[:, OF_LIST].any()
    again = prepared(Recall(N_FEATURES, 7, id_column=0), features).features
    assert not again.rows[:, 0].any()
    assert np.array_equal(again.rows[:, 1:N_FEATURES], work.rows[:, 1:N_FEATURES])


def test_long_lists_are_ranked_by_some_of_their_documents():
    features = NUMBERS.random((200, N_FEATURES))
    work = prepared(Recall(N_FEATURES, 200), features)
    chosen = work.features.references
    assert sorted(work.hashes)[-REFERENCES:] == sorted(work.hashes[chosen])
    above = np.sign(features[:, None] - features[None, chosen]).sum(axis=1) / REFERENCES
    most = 1 - 1 / REFERENCES
    expected = np.vectorize(deviate)(np.clip(above, -most, most))
    assert np.abs(work.features.deviates - expected).max() < 0.005


def test_the_component_is_what_ranks_have_in_common():
    numbers = np.random.default_rng(1)
    common = numbers.normal(size=(600, 1))
    features = numbers.normal(size=(600, N_FEATURES)) + common * [2.0, 2.0, 0.0, -2.0]
    world = Queries(features, np.ones(600), np.arange(0, 601, N_ITEMS))
    state = play(Recall(N_FEATURES, N_ITEMS), world, rounds=100).states[0]
    direction = state["component"] / np.linalg.norm(state["component"])
    assert (np.abs(direction[[0, 1]]) > 0.45).all()
    assert abs(direction[2]) < 0.25
    assert direction[0] * direction[3] < 0.0
    squares, count = state["component_squares"]
    assert count == 101.0
    assert 1.0 < squares / count < N_FEATURES


def test_weights_are_those_of_weighted_least_squares():
    model, gain = new_model(N_FEATURES), np.empty(N_FEATURES + 4)
    beliefs = model.weights_by_prior[:, :-1].copy()
    assert beliefs[0].tolist() == [0.0] * 6 + [0.25]
    assert beliefs[1].tolist() == [0.25] * 4 + [0.0] * 3
    assert not beliefs[2].any()
    rows = np.column_stack([NUMBERS.normal(size=(30, N_FEATURES + 3)), np.zeros(30)])
    weights, values = NUMBERS.uniform(0.5, 2.0, 30), NUMBERS.normal(size=30)
    for row, weight, value in zip(rows, weights, values, strict=True):
        learn_relevance(model, Draw(0, 0, 0), 0, row, False, weight, weight * value, gain)
    known = rows[:, :-1]
    for ridge, covariance, priors in zip(
        (20.0, 4.0), model.covariances, ((0, 1), (2,)), strict=True
    ):
        precision = np.append(np.full(N_FEATURES, ridge), [1.0, 1.0, 10.0])
        matrix = np.diag(precision) + (known.T * weights) @ known
        assert np.allclose(np.linalg.inv(matrix), covariance[:-1, :-1])
        for prior in priors:
            right = precision * beliefs[prior] + (known.T * weights) @ values
            found = model.weights_by_prior[prior, :-1]
            assert np.allclose(np.linalg.solve(matrix, right), found)


def test_documents_of_one_list_share_an_effect():
    """Least squares whose noise has variance one and correlation a third within a list."""
    model, gain = new_model(N_FEATURES), np.empty(N_FEATURES + 4)
    size = N_FEATURES + 3
    matrix, right = np.linalg.inv(model.covariances[1, :size, :size]), np.zeros(size)
    for _ in range(8):
        begin_list(model, Draw(0, 0, 0))
        rows, values = NUMBERS.normal(size=(3, size)), NUMBERS.normal(size=3)
        for row, value in zip(rows, values, strict=True):
            own = np.append(row, 0.0)
            learn_relevance(model, Draw(0, 0, 0), 0, own, True, 1.0, value, gain)
            assert own[-1] == 0.0
        inverse = np.linalg.inv(np.full((3, 3), 1 / 3) + np.eye(3) * 2 / 3)
        matrix += rows.T @ inverse @ rows
        right += rows.T @ inverse @ values
    assert np.allclose(np.linalg.inv(matrix), model.covariances[1, :size, :size])
    assert np.allclose(np.linalg.solve(matrix, right), model.weights_by_prior[2, :size])


def test_guesses_are_as_wide_as_the_weights_are_uncertain():
    model, gain = new_model(N_FEATURES), np.empty(N_FEATURES + 4)
    found = []
    for round in range(400):
        model = new_model(N_FEATURES)
        for place in range(3):
            row = np.array([1.0, -2.0, 0.5, 1.0, 0.3, 1.0, 2.0, 0.0])
            learn_relevance(model, Draw(5, 0, round), place, row, False, 3.0, 0.0, gain)
        found.extend(model.guesses @ row)
    # The first width of a guess is half of that of the weights, and nearly all of it is gone.
    variance = row @ model.covariances[0] @ row
    assert np.mean(np.square(found)) == pytest.approx(variance, rel=0.15)
    assert abs(np.mean(found)) < 4.0 * math.sqrt(variance / len(found))


def test_priors_are_trusted_by_what_they_foretold():
    model = new_model(N_FEATURES)
    before = model.trust.copy()
    assert before.tolist() == [0.0, -3.0, -3.0]
    row = np.zeros(N_FEATURES + 4)
    row[N_FEATURES + COMPONENT], row[:N_FEATURES] = 4.0, [1.0, 1.0, -1.0, -1.0]
    judge_priors(model, row, 0.0)  # the first one said 1, the others 0
    assert model.trust.tolist() == [0.0, -1.0, -1.0]
    for _ in range(100):
        judge_priors(model, row, 0.0)
    assert model.trust.tolist() == [-30.0, 0.0, 0.0]


def test_variances_of_noise_and_of_documents():
    model = new_model(N_FEATURES)
    assert variances(model) == pytest.approx((1.0, 0.5, 0.5))
    model.numbers[[RESIDUALS, FIRST_SIGHTS, WITHIN, FREEDOM]] = 6.0, 12.0, 1.5, 6.0
    assert variances(model) == pytest.approx((0.5, 0.25, 0.25))
    model.numbers[WITHIN] = 100.0
    assert variances(model) == pytest.approx((0.5, 0.475, 0.025))
