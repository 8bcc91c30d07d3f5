"""Policies and their training, against plain references."""

import math

import numpy as np
import pytest

from keyhole.policies.aligning import calibration, f1_threshold
from keyhole.policies.base import Always, EpsilonGreedy, Greedy, Softmax, Uniform
from keyhole.policies.linear import LinearScorer
from keyhole.policies.logistic import fit_logistic
from keyhole.policies.online import OnlineRankers
from keyhole.policies.pairs import fit_pairs
from keyhole.policies.training import fit_classifiers, fit_rankers
from tests.unit.references import sigmoid
from tests.unit.test_draw import reference_start, reference_unit, reference_word

NUMBERS = np.random.default_rng(3)
VISITORS = NUMBERS.normal(size=(60, 3))
SCORER = LinearScorer([[1.0, -2.0, 0.5], [0.3, 0.1, 0.0], [-1.0, 1.0, 2.0]], [0.1, 0.0, -0.4])
SCORES = VISITORS @ np.array(SCORER.weights).T + np.array([0.1, 0.0, -0.4])


# --------------------------------------------------------------------------- choosing


@pytest.mark.parametrize("temperature", [0.25, 1.0, 3.0])
def test_softmax(temperature):
    """exp(score / temperature), over the sum of all."""
    powers = np.exp(SCORES / temperature)
    chances = Softmax(SCORER, temperature).probabilities(VISITORS)
    np.testing.assert_allclose(chances, powers / powers.sum(axis=1, keepdims=True), rtol=1e-12)
    plain = Softmax(SCORER).probabilities(VISITORS)
    np.testing.assert_allclose(plain, np.exp(SCORES) / np.exp(SCORES).sum(axis=1, keepdims=True))


def test_greedy_and_epsilon_greedy():
    best = np.eye(3)[SCORES.argmax(axis=1)]
    np.testing.assert_array_equal(Greedy(SCORER).probabilities(VISITORS), best)
    for epsilon in (0.1, 0.4):
        given = EpsilonGreedy(SCORER, epsilon).probabilities(VISITORS)
        np.testing.assert_allclose(given, (1 - epsilon) * best + epsilon / 2 * (1 - best))
    np.testing.assert_array_equal(
        EpsilonGreedy(SCORER).probabilities(VISITORS),
        EpsilonGreedy(SCORER, 0.1).probabilities(VISITORS),
    )
    np.testing.assert_allclose(Uniform(5).probabilities(VISITORS), np.full((60, 5), 0.2))
    np.testing.assert_array_equal(Always(3, 2).probabilities(VISITORS), np.eye(3)[[2] * 60])


# --------------------------------------------------------------------------- training


class Descent:
    """S10 by dual averaging: w = -soft(sum of gradients, l1 t) / (c + l2 t), averaged."""

    def __init__(self, n_features, loss, l1, l2, curvature):
        self.loss, self.l1, self.l2, self.curvature = loss, l1, l2, curvature
        self.gradients, self.average = np.zeros(n_features), np.zeros(n_features)
        self.cut, self.t = 0.0, 0

    def divisor(self):
        if self.l2 > 0:
            return self.curvature + self.l2 * self.t
        return self.curvature * math.sqrt(self.t + 1)

    def step(self, positive, negative):
        sign, size = np.sign(self.gradients), np.abs(self.gradients)
        weights = -sign * np.maximum(size - self.l1 * self.t, 0) / self.divisor()
        margin = weights @ (positive - negative)
        pull = sigmoid(-margin) if self.loss == "logistic" else float(margin < 1)
        self.gradients = self.gradients - pull * (positive - negative)
        self.t += 1
        share = 4 / (self.t + 3)  # polynomial decay of exponent 3
        self.average = self.average + share * (-self.gradients / self.divisor() - self.average)
        self.cut += share * (self.l1 * self.t / self.divisor() - self.cut)

    def weights(self):
        return np.sign(self.average) * np.maximum(np.abs(self.average) - self.cut, 0)


def words(seed, ad, use):
    """Return the numbers of the stream of policies, one by one."""
    begin = reference_start(seed, 3, ad, use)
    return lambda index: reference_unit(reference_word(begin, index))


@pytest.mark.parametrize("n_features", [3, 6])
@pytest.mark.parametrize(
    ("loss", "l1", "l2"),
    [
        ("logistic", 0.0, 0.01),
        ("hinge", 0.0, 0.2),
        ("logistic", 0.05, 0.1),
        ("logistic", 0.02, 0.0),
    ],
)
def test_pairs(loss, l1, l2, n_features):
    numbers = np.random.default_rng(0)
    ups, downs = numbers.normal(0.4, 1, (7, n_features)), numbers.normal(0, 1, (12, n_features))
    gaps = (ups[:, None] - downs[None]).reshape(-1, n_features)
    reference = Descent(n_features, loss, l1, l2, (gaps**2).sum(axis=1).mean())
    number = words(8, 2, 0)
    for t in range(150):
        up, down = ups[int(number(2 * t) * 7)], downs[int(number(2 * t + 1) * 12)]
        reference.step(up, down)
    fitted = fit_pairs(ups, downs, loss=loss, l1=l1, l2=l2, n_steps=150, seed=8, ad=2)
    np.testing.assert_allclose(fitted, reference.weights(), rtol=1e-9, atol=1e-12)
    assert np.abs(fitted).max() > 0.01


def test_pairs_by_default():
    ups, downs = VISITORS[:5], VISITORS[5:20]
    told = fit_pairs(ups, downs, loss="logistic", l1=0.0, l2=0.01, n_steps=300, seed=0, ad=0)
    np.testing.assert_array_equal(fit_pairs(ups, downs, n_steps=300), told)


@pytest.mark.parametrize(("l1", "row_norm", "size"), [(0.0, 1.0, 4), (0.01, 2.0, 50)])
def test_online_rankers(l1, row_norm, size):
    """Each impression meets one of the ad's other class; reservoirs are uniform samples."""
    numbers = np.random.default_rng(1)
    n_rows, n_ads = 200, 2
    contexts, ads = numbers.normal(size=(n_rows, 3)), numbers.integers(n_ads, size=n_rows)
    clicks = (numbers.random(n_rows) < 0.4).astype(float)
    rankers = OnlineRankers(n_ads, 3, l1=l1, l2=0.05, row_norm=row_norm, reservoir=size, seed=6)
    rankers.learn(contexts, ads, clicks)
    for ad in range(n_ads):
        reference = Descent(3, "logistic", l1, 0.05, 2 * row_norm**2)
        kept, seen, number = ([None] * size, [None] * size), [0, 0], words(6, ad, 2)
        rows = np.flatnonzero(ads == ad)
        for index, row in enumerate(rows):
            side = int(clicks[row])
            n_others = min(seen[1 - side], size)
            if n_others:
                other = kept[1 - side][int(number(2 * index) * n_others)]
                pair = (contexts[row], other) if side else (other, contexts[row])
                reference.step(*pair)
            place = seen[side]
            if place >= size:
                place = int(number(2 * index + 1) * (seen[side] + 1))
            if place < size:
                kept[side][place] = contexts[row]
            seen[side] += 1
        state = rankers.state
        assert state.seen[ad].tolist() == seen
        assert seen[0] + seen[1] == len(rows)
        assert state.steps[ad] == reference.t > 80
        np.testing.assert_allclose(state.average[ad], reference.average, rtol=1e-9)
        np.testing.assert_allclose(state.cut[ad], reference.cut, rtol=1e-9)
        for side in (0, 1):
            n_kept = min(seen[side], size)
            np.testing.assert_array_equal(state.kept[ad, side, :n_kept], kept[side][:n_kept])
    for alignment in ("calibrated", "f1"):
        scorer = rankers.scorer(alignment)
        for ad in range(n_ads):
            ranker = np.sign(state.average[ad]) * np.maximum(
                np.abs(state.average[ad]) - state.cut[ad], 0
            )
            n_kept = np.minimum(state.seen[ad], size)
            rows = np.concatenate([state.kept[ad, side, : n_kept[side]] for side in (0, 1)])
            labels = np.repeat([0.0, 1.0], n_kept)
            counts = np.repeat(state.seen[ad] / n_kept, n_kept)
            if alignment == "f1":
                slope, offset = 1.0, -f1_threshold(rows @ ranker, labels, counts)
            else:
                slope, offset = calibration(rows @ ranker, labels, counts)
            np.testing.assert_allclose(scorer.weights[ad], slope * ranker, rtol=1e-12)
            assert scorer.offsets[ad] == pytest.approx(offset, rel=1e-12)


def test_online_rankers_by_default():
    plain = OnlineRankers(2, 3)
    told = OnlineRankers(
        2, 3, loss="logistic", l1=0.0, l2=0.01, row_norm=1.0, reservoir=1000, seed=0
    )
    assert plain.params == told.params == (0, 0.0, 0.01, 2.0)
    assert plain.state.kept.shape == (2, 2, 1000, 3)


def test_f1_by_definition():
    """The threshold in the middle below the cut of the largest F1, fewest above in ties."""
    for seed in range(20):
        numbers = np.random.default_rng(seed)
        scores, hits = numbers.integers(6, size=9).astype(float), numbers.integers(2, size=9)
        hits[0] = 1
        counts = numbers.integers(1, 4, size=9).astype(float)
        values = sorted(set(scores), reverse=True)

        def f1(cut, scores=scores, hits=hits, counts=counts):
            chosen = scores >= cut
            true = (counts * hits)[chosen].sum()
            return 2 * true / (counts[chosen].sum() + (counts * hits).sum())

        best = max(range(len(values)), key=lambda i: (round(f1(values[i]), 12), -i))
        below = values[best + 1] if best + 1 < len(values) else values[best]
        assert f1_threshold(scores, hits.astype(float), counts) == (values[best] + below) / 2


def test_calibration_minimises_the_log_loss_of_platts_targets():
    scores, hits = VISITORS[:, 0] * 1e-3, (VISITORS[:, 0] + VISITORS[:, 1] > 0).astype(float)
    counts = NUMBERS.integers(1, 4, size=60).astype(float)
    slope, offset = calibration(scores, hits, counts)
    n_hits, n_others = counts @ hits, counts @ (1 - hits)
    targets = np.where(hits > 0, (n_hits + 1) / (n_hits + 2), 1 / (n_others + 2))
    gap = counts * (1 / (1 + np.exp(-slope * scores - offset)) - targets)
    assert abs(gap.sum()) < 1e-9 * counts.sum()  # both derivatives vanish
    assert abs(gap @ scores) < 1e-9 * counts.sum()


def test_logistic_regression_is_where_its_slope_vanishes():
    targets, counts = NUMBERS.random(60), NUMBERS.integers(1, 5, size=60).astype(float)
    weights, offset = fit_logistic(VISITORS, targets, l2=0.3, counts=counts)
    shares = counts / counts.sum()
    gap = shares * (1 / (1 + np.exp(-VISITORS @ weights - offset)) - targets)
    np.testing.assert_allclose(VISITORS.T @ gap + 0.3 * weights, 0, atol=1e-10)
    assert gap.sum() == pytest.approx(0, abs=1e-10)


def a_log_of_clicks():
    numbers = np.random.default_rng(5)
    contexts, ads = numbers.normal(2, 3, size=(120, 3)), numbers.integers(2, size=120)
    return contexts, ads, (numbers.random(120) < 0.3).astype(float)


def test_classifiers_and_rankers_standardise_the_features():
    contexts, ads, clicks = a_log_of_clicks()
    scaled = (contexts - contexts.mean(axis=0)) / contexts.std(axis=0)
    scorer = fit_classifiers(contexts, ads, clicks, l2=0.05)
    ranked = fit_rankers(contexts, ads, clicks, n_steps=200, seed=9, alignment="f1", l2=0.05)
    for ad in range(2):
        own, hits = scaled[ads == ad], clicks[ads == ad]
        weights, offset = fit_logistic(own, hits, l2=0.05)
        expected = scaled @ weights + offset
        np.testing.assert_allclose(scorer.scores(contexts)[:, ad], expected, rtol=1e-7)
        ups, downs = own[hits == 1], own[hits == 0]
        w = fit_pairs(ups, downs, l2=0.05, n_steps=200, seed=9, ad=ad)
        cut = f1_threshold(own @ w, hits)
        np.testing.assert_allclose(ranked.scores(contexts)[:, ad], scaled @ w - cut, atol=1e-9)
    told = fit_classifiers(contexts, ads, clicks, l2=0.01)
    np.testing.assert_array_equal(fit_classifiers(contexts, ads, clicks).weights, told.weights)
    plain = fit_rankers(contexts, ads, clicks, n_steps=200)
    told = fit_rankers(contexts, ads, clicks, n_steps=200, alignment="calibrated", l2=0.01, l1=0.0)
    np.testing.assert_array_equal(plain.weights, told.weights)
    np.testing.assert_array_equal(plain.offsets, told.offsets)
