"""Numbers by hand: formulas of the theory and default settings, written out once more."""

import math

import numpy as np
import pytest

from bench.theory.adversary import defeat
from bench.theory.coverage import SETTINGS, measure_coverage
from keyhole import Hedge
from keyhole.bounds import gradients, perceptrons
from keyhole.bounds.guarantees import Problem, guarantees
from keyhole.contracts.lists import Feedback
from keyhole.data.bandit.campaign import (
    BANK_IMPRESSIONS,
    BANK_RATES,
    HOTEL_IMPRESSIONS,
    HOTEL_RATES,
    Campaign,
)
from keyhole.data.bandit.log import BanditLog
from keyhole.game.log import Log
from keyhole.kernels.draw import Draw, normals, uniforms
from keyhole.offline.bounds import lower_bound
from keyhole.offline.estimators import importance_weighted
from keyhole.offline.rankings import item_position, top_set
from keyhole.offline.target import target_of
from keyhole.policies.base import Always
from keyhole.policies.online import OnlineRankers
from keyhole.policies.training import fit_classifiers
from keyhole.rankers.lists.perceptron import MaxViolationPerceptron
from tests.unit.references import dcg

# --------------------------------------------------------------------------- rankers


def test_exponential_weights_of_large_losses_are_no_numbers_too_large():
    """With a huge rate all weight is on the ranking that has lost least so far."""
    ranker = Hedge(3, measure="DCG", rate=1e4)
    for _ in range(20):
        impression = ranker.rank()
        relevance = np.array([0.0, 0.0, 1.0])
        ranker.update(impression, Feedback(relevance[impression.ranking]))
    assert ranker.rank().ranking[0] == 2


def test_hedge_where_all_rankings_are_alike():
    """All three items count: the range is 0, and the rate that of a range of 1."""
    ranker = Hedge(3, measure="Precision@3", horizon=50)
    assert ranker.rate == pytest.approx(math.sqrt(8 * math.log(6) / 50), rel=1e-12)


def test_the_adversary_by_hand():
    """Documents R e_t and -R e_t; the one shown last is relevant."""
    outcome = defeat(MaxViolationPerceptron(9, 2), 9, row_norm=2.0, margin=0.5)
    np.testing.assert_allclose(outcome.losses, 1 - 1 / math.log2(3), rtol=1e-12)
    # Weights of 0 show the first document, R e_t, on top: the second is the relevant one.
    np.testing.assert_allclose(outcome.separator, np.full(9, -1 / 3), rtol=1e-12)
    assert outcome.margin == pytest.approx(2 * 2.0 / 3)
    assert outcome.loss == pytest.approx(9 * (1 - 1 / math.log2(3)))


# --------------------------------------------------------------------------- bounds


def test_perceptron_constants():
    """B1 to B5: C = R^2, 4 kappa R^2 v_max and 4 R^2."""
    assert perceptrons.classification_constant(3.0) == 9.0
    assert perceptrons.max_violation_constant(3.0) == 36.0
    v_max = 7 * math.log2(6)
    ndcg = perceptrons.slam_constant("NDCG@5", 20, row_norm=3.0, max_grade=3)
    assert ndcg == pytest.approx(4 * 5 * 9 * v_max)
    longer = perceptrons.slam_constant("NDCG@50", 20, row_norm=1.0)
    assert longer == pytest.approx(4 * 20 * math.log2(21))
    assert perceptrons.slam_constant("AP", 20, row_norm=0.5) == 4 * 20 / 4
    assert perceptrons.mistake_bound(3.0, 2.0, 5.0) == pytest.approx(3 + 2 * math.sqrt(15) + 5 * 4)
    at_rate = (3 + 4 / (2 * 0.1)) / (1 - 0.1 * 5 / 2)
    assert perceptrons.mistake_bound(3.0, 2.0, 5.0, rate=0.1) == pytest.approx(at_rate)
    assert perceptrons.mistake_bound(3.0, 2.0, 5.0, rate=0.4) == math.inf
    assert perceptrons.separable_bound(0.25, 36.0) == 36 * 16
    assert perceptrons.least_loss("NDCG@1") == 1.0
    assert perceptrons.least_loss("NDCG@2") == pytest.approx(1 - 1 / math.log2(3))
    assert perceptrons.least_loss("AP") == 0.5
    assert perceptrons.defeated_rounds(3.0, 0.7) == 18
    assert perceptrons.defeated_rounds(3.0, 0.7, tight=True) == 73
    assert perceptrons.defeated_rounds(0.3, 0.1) == 9
    assert perceptrons.unavoidable_loss("AP", row_norm=3.0, margin=0.7, tight=True) == 36.5
    assert perceptrons.bounds_itself(2.0, 2.0, 2.0)
    assert not perceptrons.bounds_itself(2.0 + 1e-9, 2.0, 2.0)


def test_constants_of_estimated_gradients():
    """B8, erratum R17."""
    size = gradients.ListSize(n_items=6, row_norm=0.5, radius=3.0, max_grade=2.0)
    assert size.max_score == 1.5
    squared = 4 * 36 * 0.25 * (1.5 + 2) ** 2
    assert gradients.estimate_constant("squared", size) == pytest.approx(squared)
    assert gradients.estimate_constant("ranksvm", size) == pytest.approx(0.25 * 36 * 25)
    assert gradients.estimate_constant("kl", size) == pytest.approx(36 * 0.25 * math.exp(4))
    wide = size._replace(radius=8.0)
    assert gradients.estimate_constant("kl", wide) == pytest.approx(36 * 0.25 * math.exp(8))
    assert gradients.worst_loss("squared", size) == pytest.approx(6 * 3.5**2)
    assert gradients.worst_loss("ranksvm", size) == pytest.approx(15 * (1 + 3))
    small = size._replace(radius=1.0)  # exploration has scores in [0, 1]
    assert gradients.worst_loss("squared", small) == pytest.approx(6 * 9)
    corners = [
        math.exp(r) * (r - s) - math.exp(r) + math.exp(s) for r in (0, 2) for s in (-1.5, 1.5)
    ]
    assert gradients.worst_loss("kl", size) == pytest.approx(6 * max(corners))
    bound = gradients.regret_bound(5.0, 7.0, 3.0, 1000, rate=0.2, mix=0.1)
    assert bound == pytest.approx(0.1 * 7 * 1000 + 9 / 0.4 + 0.2 * 5 * 1000 / 0.2)
    rate, mix, best = gradients.best_settings(5.0, 7.0, 3.0, 1000)
    assert mix == pytest.approx((3 * math.sqrt(5) / 14) ** (2 / 3) / 10)
    assert rate == pytest.approx(3 * math.sqrt(mix / 5000))
    assert best == pytest.approx(3 * 2 ** (-2 / 3) * (9 * 5 * 7) ** (1 / 3) * 100)
    assert gradients.best_settings(1e6, 1.0, 1.0, 10).mix == 0.5


@pytest.mark.parametrize("ball", ["l2", "l1"])
def test_guarantees_of_listnet_by_hand(ball):
    """B11 with G = 2, H = 1, sqrt(2) in the Euclidean norm; in the l1 ball norms are of entries."""
    problem = Problem(
        "listnet", n_queries=1000, n_items=20, n_features=9, radius=3.0, norm=0.5, ball=ball,
        optimal_loss=0.7, confidence=0.9,
    )  # fmt: skip
    norm = 0.5 if ball == "l2" else 0.5 * math.sqrt(9)
    reach, size = 3.0 * norm, (3.0 * norm) ** 2 / 1000
    widest = 2 * 1.5 + math.log(math.exp(-2 * 1.5) + 19)  # scores are within 1.5 of 0
    expected = {
        "descent, averaged": 2 * reach * math.sqrt(2 / 1000),
        "descent, averaged, tight": 2 * reach * math.sqrt(1 / 1000),
        "regularised": 2 * 2 * reach * (8 / 1000 + math.sqrt(2 / 1000)),
        "descent, averaged, smooth loss": 2 * math.sqrt(2 * size * 0.7) + 8 * size,
        "least mean loss, grows with lists": (
            3 * math.sqrt(2) * reach * math.sqrt(20 / 1000)
            + widest * math.sqrt(8 * math.log(1 / 0.1) / 1000)
        ),
    }
    found = {row.name: row.value for row in guarantees(problem)}
    assert len(found) == (7 if ball == "l2" else 8)
    assert {name: found[name] for name in expected} == pytest.approx(expected, rel=1e-12)
    values = [row.value for row in guarantees(problem) if row.value is not None]
    assert values == sorted(values)
    assert problem.range == pytest.approx(widest)
    assert problem.max_score == 1.5
    assert problem.euclidean_norm == pytest.approx(norm)


def test_what_a_loss_that_is_neither_convex_nor_above_0_lacks():
    problem = Problem("smooth_dcg", n_queries=1000, n_items=20, optimal_loss=0.1)
    rows = {row.name: row for row in guarantees(problem)}
    assert rows["least mean loss"].value is not None
    lacks = {name: row.needs for name, row in rows.items() if row.value is None}
    assert lacks == {
        "descent, averaged": "a convex loss: smooth_dcg is not",
        "descent, averaged, tight": "a convex loss: smooth_dcg is not",
        "regularised": "a convex loss: smooth_dcg is not",
        "descent, averaged, smooth loss": "a convex loss: smooth_dcg is not",
        "least mean loss, smooth loss": "a loss of at least 0: smooth_dcg can be less",
    }


# --------------------------------------------------------------------------- policies and logs


def test_ads_are_ruled_out_until_both_classes_were_seen():
    rankers = OnlineRankers(3, 2)
    rankers.learn([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], [0, 0, 1], [1.0, 0.0, 1.0])
    scorer = rankers.scorer()
    assert np.isfinite(scorer.offsets).tolist() == [True, False, False]
    assert scorer.offsets[1] == scorer.offsets[2] == -np.inf


def test_a_constant_feature_tells_nothing():
    numbers = np.random.default_rng(0)
    contexts = np.column_stack([numbers.normal(size=50), np.full(50, 3.0)])
    clicks = (numbers.random(50) < 0.5).astype(float)
    scorer = fit_classifiers(contexts, np.zeros(50, int), clicks)
    assert scorer.weights[0, 1] == pytest.approx(0, abs=1e-12)
    assert abs(scorer.weights[0, 0]) > 1e-6


def test_ads_without_a_click_are_never_chosen():
    numbers = np.random.default_rng(0)
    contexts, ads = numbers.normal(size=(90, 2)), np.arange(90) % 3
    clicks = np.where(ads == 1, 0.0, numbers.random(90) < 0.5)
    scorer = fit_classifiers(contexts, ads, clicks, no_click="never")
    assert np.isneginf(scorer.offsets).tolist() == [False, True, False]


def test_ranges_of_estimates_from_rankings():
    rewards, chances = [[1.0, 0.0], [0.0, 2.0]], [[0.5, 0.25], [0.5, 0.5]]
    bounded = item_position(rewards, chances, [[1, 0], [1, 1]], high=8.0)
    assert bounded.range == (0.0, 8.0)
    assert bounded.contributions.tolist() == [2.0, 4.0]
    assert item_position(rewards, chances, [[1, 0], [1, 1]]).range is None
    below = item_position([[-1.0, 0.0]], [[0.5, 0.5]], [[1, 1]], high=8.0)
    assert below.range is None


def test_tops_of_two():
    """Sets decide what matches; the policy's own order is scored, over the propensity."""
    rankings = np.array([[2, 0, 1], [0, 1, 2], [1, 0, 2]])
    values = np.array([[1.0, 2.0, np.nan], [0.0, 1.0, np.nan], [2.0, 1.0, np.nan]])
    chances = np.array([0.5, 0.25, 0.8])
    log = Log(
        0, 0, np.arange(3), np.ones(3, bool), chances, np.arange(0, 10, 3), rankings.ravel(),
        values.ravel(), np.zeros((9, 0)),
    )  # fmt: skip
    found = top_set(log, [[0, 2, 1], [2, 1, 0], [0, 1, 2]], k=2, high=100.0)
    expected = [dcg([2, 0, 1], [0, 2, 1], 2) / 0.5, 0.0, dcg([1, 2, 0], [0, 1, 2], 2) / 0.8]
    np.testing.assert_allclose(found.contributions, expected, rtol=1e-12)
    assert found.range == (0.0, 100.0)
    first = top_set(log, [[0, 2, 1], [2, 1, 0], [0, 1, 2]], k=2, measure="Precision@1")
    np.testing.assert_allclose(first.contributions, [2 / 0.5, 0, 1 / 0.8])


def test_settings_of_coverage():
    rows = {name: (s.chances, s.clicks, s.n_rows, s.compare) for name, s in SETTINGS.items()}
    assert rows == {
        "often": ((0.5, 0.5), (0.3, 0.3), 1000, False),
        "rare": ((0.5, 0.5), (0.003, 0.003), 2000, False),
        "rare-difference": ((0.5, 0.5), (0.003, 0.003), 2000, True),
        "neglected-baseline": ((0.9, 0.1), (0.003, 0.003), 2000, True),
    }
    assert [s.truth for s in SETTINGS.values()] == [0.3, 0.003, 0.0, 0.0]


@pytest.mark.parametrize("setting", ["often", "neglected-baseline"])
def test_coverage_is_counted(setting):
    """The same logs, one after another, and the bounds that were at most the truth."""
    given, numbers, n_covered = SETTINGS[setting], np.random.default_rng(3), 0
    for _ in range(40):
        actions = numbers.choice(2, size=given.n_rows, p=given.chances)
        rewards = numbers.random(given.n_rows) < np.array(given.clicks)[actions]
        propensities = np.array(given.chances)[actions]
        log = BanditLog.of(np.zeros((given.n_rows, 0)), actions, rewards, propensities, n_actions=2)
        estimate = importance_weighted(log, target_of(log, Always(2, 0)))
        if given.compare:
            estimate = estimate.minus(importance_weighted(log, target_of(log, Always(2, 1))))
        value = lower_bound("student-t", estimate, 0.6).value
        n_covered += value is not None and value <= given.truth
    found = measure_coverage(setting, "student-t", confidence=0.6, n_logs=40, seed=3)
    assert found.n_covered == n_covered
    assert found.rate == n_covered / 40
    assert found.falls_short == (found.interval[1] < 0.6)
    low, high = found.interval
    assert 0 <= low < found.rate < high <= 1


# --------------------------------------------------------------------------- campaigns


def test_the_thesis_campaigns():
    assert HOTEL_RATES == (0.081, 0.082, 0.078, 0.077, 0.055)
    assert BANK_RATES == (0.0017, 0.0040, 0.0045, 0.0030, 0.0023)
    assert HOTEL_IMPRESSIONS == (36_164, 37_944, 30_871, 32_765, 20_719)
    assert BANK_IMPRESSIONS == (37_750, 38_254, 182_191, 168_789, 17_291)
    plain = Campaign()
    assert (plain.n_features, plain.n_informative, plain.shape) == (40, 8, "linear")
    assert plain.rates.tolist() == list(BANK_RATES)
    np.testing.assert_allclose(np.linalg.norm(plain.tastes, axis=1), 1.0)


def drawn(fill, seed, use, shape, round):
    out = np.empty(int(np.prod(shape)))
    fill(Draw(seed, 1, round), use, out)
    return out.reshape(shape)


@pytest.mark.parametrize("shape", ["linear", "bent"])
def test_campaigns(shape):
    """Log-odds: tastes of a given length times features, and what makes the mean click rate."""
    campaign = Campaign(
        [0.1, 0.3], n_features=5, n_informative=3, strength=2.0, shape=shape, seed=6
    )
    tastes = drawn(normals, 6, 0, (2, 3), 0)
    tastes *= 2.0 / np.linalg.norm(tastes, axis=1, keepdims=True)
    np.testing.assert_allclose(campaign.tastes, tastes, rtol=1e-12)

    def chances(contexts):
        seen = contexts[:, :3].copy()
        if shape == "bent":  # |x| has mean sqrt(2 / pi) and variance 1 - 2 / pi
            for column in (0, 2):
                centred = np.abs(seen[:, column]) - math.sqrt(2 / math.pi)
                seen[:, column] = centred / math.sqrt(1 - 2 / math.pi)
        return 1 / (1 + np.exp(-seen @ tastes.T - campaign.intercepts))

    everybody = drawn(normals, 6, 1, (100_000, 3), 0)
    np.testing.assert_allclose(chances(everybody).mean(axis=0), [0.1, 0.3], rtol=1e-9)
    log = campaign.log(200, shares=[1, 3], seed=9)
    visitors = drawn(normals, 9, 2, (200, 5), 1)
    np.testing.assert_allclose(log.contexts, visitors, rtol=1e-12)
    ads = (drawn(uniforms, 9, 3, (200,), 1) >= 0.25).astype(int)
    assert log.actions.tolist() == ads.tolist()
    np.testing.assert_allclose(log.propensities, np.where(ads == 1, 0.75, 0.25))
    clicked = drawn(uniforms, 9, 4, (200,), 1) < chances(visitors)[np.arange(200), ads]
    assert log.rewards.tolist() == clicked.tolist()
    assert 10 < clicked.sum() < 100
    np.testing.assert_allclose(campaign.click_chances(visitors), chances(visitors), rtol=1e-9)
    policy = np.full((200, 2), 0.5)
    assert campaign.value(policy, visitors) == pytest.approx(chances(visitors).mean())
    np.testing.assert_allclose(campaign.log(50, seed=9).propensities, 0.5)
