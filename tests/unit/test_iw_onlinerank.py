"""A12: every numbered step of docs/iw-onlinerank.md, and its bound against what is lost."""

# ruff: noqa: T201 (tests print the bounds they hold results against)

import itertools
import math

import numpy as np
import pytest

from keyhole import Flips, Random, Recorded, Top, play
from keyhole.base.errors import InvalidInput
from keyhole.bounds import iw_onlinerank as bounds
from keyhole.checks.non_learners import check_only_learners_pass
from keyhole.rankers.fixed.iw_onlinerank import (
    IWOnlineRank,
    chance_among,
    chance_of_sight,
    chance_on_top,
    nodes_of_the_unit,
)
from keyhole.rankers.fixed.plain import Fixed

NUMBERS = np.random.default_rng(2)
WEIGHTS = {
    "DCG": bounds.falling_weights("DCG", 4),
    "SumLoss": bounds.falling_weights("SumLoss", 4),
    "Precision@2": bounds.falling_weights("Precision@2", 4),
    "steps": np.array([3.0, 3.0, 0.5, 0.0]),
}


def plackett_luce(scores):
    """Return every ranking, and its probability."""
    rankings = np.array(list(itertools.permutations(range(len(scores)))))
    strengths = np.exp(np.asarray(scores) - np.max(scores))[rankings]
    left = np.cumsum(strengths[:, ::-1], axis=1)[:, ::-1]
    return rankings, np.prod(strengths / left, axis=1)


def mean_weights(scores, weights):
    """Return x: the weight of the position that each item has in the mean."""
    rankings, chances = plackett_luce(scores)
    x = np.zeros(len(scores))
    for position, weight in enumerate(weights):
        np.add.at(x, rankings[:, position], weight * chances)
    return x


def hessian(scores, weights, step=1e-5):
    """Return the derivatives of x by the scores, by central differences."""
    eye = step * np.eye(len(scores))
    columns = [
        (mean_weights(scores + e, weights) - mean_weights(scores - e, weights)) / (2 * step)
        for e in eye
    ]
    return np.array(columns).T


def seen_exactly(scores, k, mix):
    """Return how likely each item is to be seen, by enumeration of rankings and lifts."""
    rankings, chances = plackett_luce(scores)
    n_items = len(scores)
    seen = np.zeros(n_items)
    for ranking, chance in zip(rankings.tolist(), chances, strict=True):
        for item in ranking[:k]:
            seen[item] += (1.0 - mix) * chance
        for lifted in range(n_items):
            top = ranking[:k] if lifted in ranking[:k] else [*ranking[: k - 1], lifted]
            for item in top:
                seen[item] += mix * chance / n_items
    return seen


def seen_by_formula(scores, k, mix):
    ranker = IWOnlineRank(len(scores), k=k)
    by_score, counts = np.argsort(-scores), np.empty(k)

    def among(item, k):
        return chance_among(ranker.params, scores, by_score, item, k, counts) if k else 0.0

    return np.array([
        chance_of_sight(mix, k, len(scores), among(item, k), among(item, k - 1))
        for item in range(len(scores))
    ])  # fmt: skip


@pytest.mark.parametrize("k", [1, 2, 3])
def test_1_chances_of_sight_are_those_of_all_rankings(k):
    for scale in (0.0, 1.0, 3.0, 9.0):
        for _ in range(5):
            scores = scale * NUMBERS.normal(size=4)
            expected = seen_exactly(scores, k, 0.3)
            tolerance = 1e-12 if k == 1 or scale < 2.0 else 1e-6
            assert np.allclose(seen_by_formula(scores, k, 0.3), expected, rtol=tolerance, atol=0.0)
            assert expected.sum() == pytest.approx(k)


@pytest.mark.parametrize("k", [1, 2, 3])
def test_1_chances_of_sight_are_numbers_however_far_scores_are_apart(k):
    chances = seen_by_formula(np.array([0.0, 2000.0, -2000.0, 5000.0]), k, 0.3)
    in_order = np.array([k >= 3, k >= 2, False, True])
    at_k = np.array([k == 3, k == 2, False, k == 1])
    expected = np.where(in_order, 1.0 - at_k * 0.3 * (1 - k / 4), 0.3 / 4)
    assert chances == pytest.approx(expected)
    assert chance_on_top(np.array([0.0, 2000.0]), np.arange(2), 0) > 0.0


@pytest.mark.parametrize("k", [1, 2, 3])
def test_1_items_are_seen_as_often_as_the_note_says(k):
    n_rounds = 2_000
    ranker = IWOnlineRank(4, k=k, horizon=n_rounds)
    ranker.state.totals[:] = np.array([0.0, 1.0, 2.0, -1.0]) / ranker.rate
    expected = seen_exactly(ranker.rate * ranker.state.totals, k, ranker.mix)
    weights, n_lifted = np.zeros((n_rounds, 4)), 0
    for round in range(n_rounds):
        shown = ranker.rank(round=round)
        assert np.allclose(shown.note, expected[shown.ranking[:k]], rtol=1e-9)
        assert np.isnan(shown.propensity) if k > 1 else shown.propensity == shown.note[0]
        weights[round, shown.ranking[:k]] = 1.0 / shown.note
        n_lifted += shown.explored
    errors = weights.std(axis=0) / math.sqrt(n_rounds)
    assert (np.abs(weights.mean(axis=0) - 1.0) < 4.5 * errors).all()
    assert abs(n_lifted / n_rounds - ranker.mix) < 4.5 * math.sqrt(ranker.mix / n_rounds)


def test_gains_over_chances_are_added_up_and_the_most_is_best():
    ranker = IWOnlineRank(4, k=2, max_grade=2.0)
    shown = ranker.rank()
    ranker.update(shown, [1, 0])
    expected = np.zeros(4)
    expected[shown.ranking[0]] = (1 / 3) / shown.note[0]
    assert ranker.state.totals == pytest.approx(expected)
    assert ranker.best()[0] == shown.items[0]
    plain = IWOnlineRank(4, measure="SumLoss", max_grade=2.0)
    shown = plain.rank()
    plain.update(shown, 1)
    assert plain.state.totals.sum() == pytest.approx(0.5 / 0.25)


def test_1_everything_seen_needs_no_chances():
    ranker = IWOnlineRank(4, k=4)
    shown = ranker.rank()
    assert shown.note.tolist() == [1.0] * 4
    ranker.update(shown, [1, 0, 0, 1])
    assert sorted(ranker.state.totals.tolist()) == [0.0, 0.0, 1.0, 1.0]


def test_2_reciprocal_chances_add_up_to_little():
    for k in range(1, 5):
        for mix in (0.01, 0.3, 1.0):
            for scale in (0.0, 2.0, 30.0):
                chances = seen_exactly(scale * NUMBERS.normal(size=5), k, mix)
                assert chances.min() >= mix / 5 - 1e-15
                assert (1.0 / chances).sum() <= 5 * (5 - k) / mix + 5 + 1e-9


@pytest.mark.parametrize("name", WEIGHTS)
def test_3_a_lift_costs_at_most_the_weight_of_position_k(name):
    weights = WEIGHTS[name]
    for k in (1, 2, 3):
        for gains in NUMBERS.random((50, 4)):
            shown = gains @ weights
            for place in range(k, 4):
                lifted = np.insert(np.delete(gains, place), k - 1, gains[place])
                assert lifted @ weights >= shown - weights[k - 1] - 1e-12


def test_4_the_penalty_is_that_of_sorted_noise():
    for n_items in (2, 5, 20):
        noise = bounds.expected_noise(n_items)
        assert noise.sum() == pytest.approx(0.0, abs=1e-9)
        assert noise[0] == pytest.approx(math.log(n_items), abs=1e-9)
        pairs = bounds.constants(bounds.falling_weights("SumLoss", n_items), 1).penalty
        assert pairs == pytest.approx(n_items * (n_items - 1) / 2 * math.log(2), rel=1e-9)
        closed = np.log(n_items / np.arange(1, n_items + 1))
        for name in ("DCG", "SumLoss"):
            weights = bounds.falling_weights(name, n_items)
            assert weights @ noise <= weights @ closed + 1e-12
    assert bounds.constants(np.zeros(3), 1).penalty == 0.0


@pytest.mark.parametrize("name", WEIGHTS)
def test_5_slower_noise_costs_its_penalty_whatever_was_drawn(name):
    """max <d, S + s'N> is at most max <d, S + sN> + (s' - s) max <d, N> for s' >= s."""
    for _ in range(200):
        totals, noise = 5 * NUMBERS.normal(size=4), NUMBERS.gumbel(size=4)
        little, much = np.sort(NUMBERS.exponential(size=2))

        def best(values, weights=WEIGHTS[name]):
            return np.sort(values)[::-1] @ weights

        more = best(totals + little * noise) + (much - little) * best(noise)
        assert best(totals + much * noise) <= more + 1e-9


@pytest.mark.parametrize("name", WEIGHTS)
def test_6_hazard(name):
    weights = WEIGHTS[name]
    largest = 0.0
    for _ in range(60):
        scores = NUMBERS.exponential(2.0) * NUMBERS.normal(size=4)
        h = hessian(scores, weights)
        own = np.diag(h)
        assert (own <= weights[0] / math.e + 1e-8).all()
        assert (own <= mean_weights(scores, weights) + 1e-8).all()
        assert (h - np.diag(own) <= 1e-8).all()
        assert np.allclose(h.sum(axis=1), 0.0, atol=1e-7)
        assert np.allclose(h, h.T, atol=1e-7)
        estimate = NUMBERS.exponential(size=4) * NUMBERS.integers(0, 2, 4)
        assert estimate @ h @ estimate <= own @ estimate**2 + 1e-7
        largest = max(largest, own.max() / (weights[0] / math.e))
    print(f"{name}: the steepest is {largest:.2f} of its limit")
    assert largest > 0.5


@pytest.mark.parametrize("name", ["DCG", "SumLoss"])
def test_7_one_round_costs_at_most_its_squares(name):
    """The Bregman divergence of the potential, as the integral of x along the way."""
    weights = WEIGHTS[name]
    log_nodes, node_weights = nodes_of_the_unit()
    for _ in range(25):
        rate, totals = NUMBERS.exponential(), 3 * NUMBERS.normal(size=4)
        estimate = NUMBERS.exponential(8.0, size=4) * (NUMBERS.random(4) < 0.5)
        start = mean_weights(rate * totals, weights)
        cost = (
            sum(
                share * (mean_weights(rate * (totals + math.exp(log) * estimate), weights) - start)
                for log, share in zip(log_nodes, node_weights, strict=True)
            )
            @ estimate
        )
        assert -1e-9 <= cost <= rate * weights[0] / (2 * math.e) * (estimate @ estimate) + 1e-9


def test_8_schedules_do_not_rise_and_their_bounds_are_the_least():
    for name, n_items, k in [
        ("DCG", 20, 1),
        ("SumLoss", 6, 2),
        ("Precision@2", 6, 4),
        ("DCG", 4, 4),
    ]:
        given = bounds.constants(bounds.falling_weights(name, n_items), k)
        for horizon in (0, 300):
            schedule = bounds.best_schedule(given, horizon)
            pairs = np.array([bounds.mix_and_rate(schedule, t) for t in range(2_000)])
            assert (np.diff(pairs, axis=0) <= 0.0).all()
            assert (pairs > 0.0).all()
            assert pairs[:, 0].max() <= 1.0
            mixes, rates = pairs[:300].T
            by_hand = given.penalty / rates[-1] + given.lift * mixes.sum()
            by_hand += given.curvature * sum(
                eta * (given.unseen / gamma + given.seen)
                for gamma, eta in zip(mixes, rates, strict=True)
            )
            assert bounds.regret_bound(given, schedule, 300) == pytest.approx(by_hand)
    dcg = bounds.constants(bounds.falling_weights("DCG", 5), 1)
    for horizon, anytime in ((20_000, False), (0, True)):
        least = bounds.regret_bound(dcg, bounds.best_schedule(dcg, horizon), 20_000)
        leading = bounds.leading_constant(dcg, anytime=anytime) * 20_000 ** (2 / 3)
        assert leading * 0.97 < least < leading * 1.07
        for change in (0.7, 1.4):
            for scaled in ({"mix_scale": change}, {"rate_scale": change}):
                other = bounds.best_schedule(dcg, horizon, **scaled)
                assert bounds.regret_bound(dcg, other, 20_000) > 1.01 * least
    flat = bounds.constants(np.zeros(3), 1)
    assert bounds.regret_bound(flat, bounds.best_schedule(flat, 0), 50) == 0.0


def test_8_constants_and_schedules_in_numbers():
    weights = np.array([3.0, 2.0, 0.5, 0.0])
    given = bounds.constants(weights, 2)
    assert given.penalty == pytest.approx(weights @ bounds.expected_noise(4))
    assert given[1:] == pytest.approx((3 / (2 * math.e), 0.5 * 2.0, 8.0, 4.0))
    schedule = bounds.best_schedule(given, 1000, mix_scale=0.5, rate_scale=3.0)
    product = given.penalty * given.curvature * 8.0
    mix, rate = bounds.mix_and_rate(schedule, 999)
    assert mix == pytest.approx(0.5 * (product / 1000) ** (1 / 3))
    per_round = given.curvature * (8.0 / mix + 4.0)
    assert rate == pytest.approx(3.0 * math.sqrt(given.penalty / (1000 * per_round)))
    mix, rate = bounds.mix_and_rate(schedule, 1331)
    assert mix == pytest.approx(0.5 * (2 / 3 * product / 1332) ** (1 / 3))
    per_round = given.curvature * (8.0 / mix + 4.0)
    assert rate == pytest.approx(3.0 * math.sqrt(2 / 3 * given.penalty / (1332 * per_round)))
    assert bounds.mix_and_rate(bounds.best_schedule(given, 1), 0)[0] == 1.0


def test_8_pairs_are_better_than_ailons_argument_has_it():
    for n_items in (3, 20):
        given = bounds.constants(bounds.falling_weights("PairwiseLoss", n_items), 1)
        ailon = 3 * (math.log(2) / 4) ** (1 / 3) * n_items * (n_items - 1)
        assert bounds.leading_constant(given) < 0.72 * ailon


@pytest.mark.parametrize("name", ["DCG", "SumLoss"])
def test_regret_keeps_the_bound_and_no_other_ranker_does(name):
    rounds = 4_000
    good = np.zeros((rounds, 5), dtype=bool)
    good[:, 3:] = True
    relevance = (good != (NUMBERS.random(good.shape) < 0.02)).astype(float)
    given = bounds.constants(bounds.falling_weights(name, 5), 1)
    bound = bounds.regret_bound(given, bounds.best_schedule(given, rounds), rounds)

    def keeps(ranker):
        trace = play(ranker, Recorded(relevance), reveal=Top(1), measure=name, rounds=rounds,
                     runs=4)  # fmt: skip
        regret = trace.regret[:, -1].mean()
        print(f"{name}: {regret:.0f} of at most {bound:.0f}")
        assert regret <= bound

    learner = IWOnlineRank(5, measure=name, horizon=rounds)
    check_only_learners_pass(keeps, learner, {"random": Random(5), "fixed": Fixed(5)})


def test_flips_without_a_horizon_are_learnt_as_by_the_prototype():
    """Which had .044 at a rate and a share of lifts above and below the theory's."""

    def learns(ranker):
        trace = play(ranker, Flips(20), reveal=Top(1), rounds=10_000, runs=6)
        mean, error = trace.average_regret
        print(f"{mean:.4f} ± {error:.4f}, at most .044")
        assert mean + 2.0 * error < 0.044

    learner = IWOnlineRank(20, rate_scale=5.0, mix_scale=0.15)
    check_only_learners_pass(learns, learner, {"theory": IWOnlineRank(20), "random": Random(20)})


def test_measures_without_gains_per_item_are_refused():
    with pytest.raises(InvalidInput, match="must have gains per item"):
        IWOnlineRank(5, measure="NDCG")
    with pytest.raises(InvalidInput, match="`mix_scale` of IWOnlineRank"):
        IWOnlineRank(5, mix_scale=0.0)
