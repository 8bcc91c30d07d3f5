"""B8: how large estimated gradients are, by enumeration, and the settings that follow."""

import itertools
import math

import numpy as np
import pytest

from keyhole.base.errors import UnknownName
from keyhole.bounds import gradients
from keyhole.bounds.gradients import ListSize
from keyhole.surrogates import surrogate
from keyhole.surrogates.estimators import top_one, top_two

pytestmark = pytest.mark.interpreted

KINDS = ["squared", "ranksvm", "kl"]


def _tops(n_items, k):
    """Return the rankings that begin with each set of k items; only the top set matters."""
    for top in itertools.combinations(range(n_items), k):
        yield [*top, *(item for item in range(n_items) if item not in top)]


def _mean_square(kind, features, weights, relevance, gamma, greedy):
    """Return E|z|^2 exactly, and E z, over what is shown with a random top now and then."""
    phi, n_items = surrogate(kind), len(features)
    estimate, k = (top_two, 2) if phi.order == 2 else (top_one, 1)
    scores, square, mean = features @ weights, 0.0, np.zeros(len(weights))
    for ranking in _tops(n_items, k):
        chance = gamma / math.comb(n_items, k)
        if set(ranking[:k]) == set(greedy[:k].tolist()):
            chance += 1.0 - gamma
        values = np.full(n_items, np.nan)
        values[:k] = relevance[ranking[:k]]
        slope = features.T @ estimate(phi, scores, ranking, values, gamma=gamma, greedy=greedy)
        square += chance * float(slope @ slope)
        mean += chance * slope
    return square, mean


def _within(rows, norm):
    return (
        rows * np.minimum(1.0, norm / np.maximum(np.linalg.norm(rows, axis=-1), 1e-12))[..., None]
    )


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n_items", [2, 3, 5])
def test_estimates_are_as_small_as_claimed(kind, n_items):
    lists, largest = np.random.default_rng(n_items), 0.0
    for trial in range(120):
        size = ListSize(n_items, lists.choice([0.5, 1.0, 2.0]), lists.choice([0.1, 1.0, 2.0]), 2.0)
        # Half the lists are extreme: every document at full norm, along one line.
        line = _within(1e9 * lists.normal(size=3), size.row_norm)
        extreme = np.outer(lists.choice([-1.0, 1.0], size=n_items), line)
        spread = _within(lists.normal(size=(n_items, 3)), size.row_norm)
        features = extreme if trial % 2 else spread
        weights = line / size.row_norm * size.radius
        relevance = lists.integers(0, 3, size=n_items).astype(float)
        gamma, greedy = lists.choice([0.01, 0.1, 0.5]), lists.permutation(n_items)
        square, mean = _mean_square(kind, features, weights, relevance, gamma, greedy)
        exact = features.T @ surrogate(kind).gradient(features @ weights, relevance)
        assert mean == pytest.approx(exact, rel=1e-9, abs=1e-9)
        ratio = square * gamma / gradients.estimate_constant(kind, size)
        assert ratio <= 1.0 + 1e-9
        largest = max(largest, ratio)
    assert largest > 0.2  # the constants are of the right size


def test_squared_needs_its_factor_of_four():
    # R17: without the 2 of the gradient this list would exceed the constant.
    size = ListSize(4, 1.0, 1e-9, 3.0)
    features, relevance = np.ones((4, 1)), np.full(4, 3.0)
    greedy = np.arange(4)
    square, _ = _mean_square("squared", features, np.zeros(1), relevance, 0.1, greedy)
    constant = gradients.estimate_constant("squared", size)
    assert constant / 4 < square * 0.1 <= constant


def test_kl_needs_whole_terms():
    # Were e^s left undivided by the propensity, three documents along a line against six
    # would exceed the constant: the estimate is then sum_j e^s_j x_j - e^r x_i / p_i.
    gamma, size = 0.5, ListSize(9, 1.0, 4.0, 4.0)
    rows = np.array([1.0] * 3 + [-1.0] * 6)
    scores, chances = 4.0 * rows, np.full(9, gamma / 9)
    chances[0] += 1.0 - gamma
    split = np.sum(np.exp(scores) * rows) - math.exp(4.0) * rows / chances
    largest = gradients.estimate_constant("kl", size) / gamma
    assert chances @ split**2 > largest
    square, _ = _mean_square(
        "kl", rows[:, None], np.array([4.0]), np.full(9, 4.0), gamma, np.arange(9)
    )
    assert square <= largest


@pytest.mark.parametrize("kind", KINDS)
def test_no_list_is_worse_than_the_worst(kind):
    lists, phi = np.random.default_rng(1), surrogate(kind)
    size = ListSize(4, 1.0, 2.0, 3.0)
    worst = gradients.worst_loss(kind, size)
    values = [
        phi.value(lists.choice([-2.0, 2.0], size=4), lists.integers(0, 4, size=4).astype(float))
        for _ in range(3000)
    ]
    assert 0.5 * worst <= max(values) <= worst * (1.0 + 1e-12)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("rounds", [10_000, 10_000_000])
def test_best_settings_are_the_best(kind, rounds):
    size = ListSize(5, 1.0, 1.0, 1.0)
    constant = gradients.estimate_constant(kind, size)
    loss = gradients.worst_loss(kind, size)
    best = gradients.best_settings(constant, loss, size.radius, rounds)
    assert 0.0 < best.mix < 0.5
    closed = 3.0 * 2.0 ** (-2 / 3) * (size.radius**2 * constant * loss) ** (1 / 3)
    assert best.bound == pytest.approx(closed * rounds ** (2 / 3))
    for rate, mix in itertools.product((0.5, 0.9, 1.0, 1.1, 2.0), repeat=2):
        other = gradients.regret_bound(
            constant, loss, size.radius, rounds, rate=rate * best.rate, mix=mix * best.mix
        )
        assert other >= best.bound * (1.0 - 1e-12)


def test_short_horizons_explore_every_other_round():
    best = gradients.best_settings(1e6, 1.0, 1.0, 100)
    assert best.mix == 0.5
    assert best.bound == pytest.approx(0.5 * 100 + math.sqrt(1e6 * 100 / 0.5))


def test_unknown_surrogates_are_named():
    with pytest.raises(UnknownName, match="ranksvm"):
        gradients.estimate_constant("ranksmv", ListSize(5, 1.0, 1.0, 1.0))
