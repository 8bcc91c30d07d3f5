"""Policies, their training and the estimates of their worth, against plain references."""

import math

import numpy as np
import pytest

from keyhole.data.bandit import BanditLog
from keyhole.offline import evaluate, target_of
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
from keyhole.offline.gate import best_fixed_action
from keyhole.offline.rewards import predict_rewards
from keyhole.offline.target import logged_target
from keyhole.policies import (
    Always,
    EpsilonGreedy,
    Greedy,
    LinearScorer,
    OnlineRankers,
    Softmax,
    Uniform,
    fit_classifiers,
    fit_pairs,
    fit_rankers,
)
from keyhole.policies.aligning import calibration, f1_threshold
from keyhole.policies.logistic import fit_logistic
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


# --------------------------------------------------------------------------- estimates


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
    assert plain.range == (0.0, pytest.approx(largest))
    wide = importance_weighted(LOG, target, rewards=(-2.0, 3.0))
    assert wide.range == (pytest.approx(-2 * largest), pytest.approx(3 * largest))
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
    assert both.range == (pytest.approx(-largest), pytest.approx(1 + largest))
    assert doubly_robust(LOG, target, TABLE).range is None
    wider = doubly_robust(LOG, target, 4 * TABLE - 1, fitted_elsewhere=True).range
    low, high = (4 * TABLE - 1).min(), (4 * TABLE - 1).max()
    reach = largest * (high - low)
    assert wider == (pytest.approx(low - reach), pytest.approx(high + reach))
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
    gap = 2.0 * clicks * np.where(actions == 1, 1, -1)
    assert verdict.difference["importance-weighted"].estimate.value == pytest.approx(gap.mean())
    expected = lower_bounds(Estimate("", gap, "none", (-2.0, 2.0)), 0.95)
    assert verdict.lower_bound == expected["betting"].value
    assert verdict.verdict == "promote"
    assert verdict.confidence == 0.95
    assert verdict.decided_by == "betting"
    assert evaluate(log, Always(2, 0), Always(2, 1)).verdict == "keep"
    assert evaluate(log, "logged", "logged").verdict == "keep"
    stricter = evaluate(log, Always(2, 1), Always(2, 0), 0.99)
    assert stricter.lower_bound < verdict.lower_bound
