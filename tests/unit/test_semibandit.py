"""A11: every step of docs/precision.md, what is seen how often, and what is lost at most."""

# ruff: noqa: T201 (tests print the bounds they hold results against)

import numpy as np
import pytest

from keyhole import Random, Recorded, Top, play
from keyhole.base.errors import InvalidInput
from keyhole.bounds import precision
from keyhole.checks.non_learners import check_only_learners_pass
from keyhole.rankers.fixed.neighbourhood import NeighbourhoodWatch
from keyhole.rankers.fixed.plain import Fixed
from keyhole.rankers.fixed.semibandit import SemiBandit, choose_chances, rate_at

NUMBERS = np.random.default_rng(0)


def projected(losses, rate, n_counted):
    """Return the chances, by the ranker's own projection."""
    ranker = SemiBandit(len(losses), measure=f"Precision@{n_counted}")
    work = ranker.kernel.work(ranker.params, len(losses))
    choose_chances(rate, np.asarray(losses, dtype=float), n_counted, work)
    return work.chosen.copy()


def projected_slowly(losses, rate, n_counted):
    """Return min(1, share e^(-rate losses)), the share found by bisection of its logarithm."""
    scores = -rate * (losses - losses.min())
    low, high = -20.0, 1e4
    for _ in range(200):
        middle = (low + high) / 2.0
        total = np.exp(np.minimum(scores + middle, 0.0)).sum()
        low, high = (middle, high) if total < n_counted else (low, middle)
    return np.exp(np.minimum(scores + middle, 0.0))


def some_chances(n_items, n_counted):
    """Return chances that sum to n and are at most 1, many of them at the ends."""
    return projected(NUMBERS.exponential(3.0, n_items), 1.0, n_counted)


def divergence(z, x):
    """Return the Bregman divergence of negative entropy."""
    return float((z * np.log(np.maximum(z, 1e-300) / x) - z + x).sum())


@pytest.mark.parametrize(("n_items", "n_counted"), [(1, 1), (5, 1), (6, 3), (9, 8), (70, 12)])
def test_1_chances_are_the_projection(n_items, n_counted):
    for scale in (0.0, 1.0, 30.0, 2000.0):
        losses = scale * NUMBERS.random(n_items)
        chosen = projected(losses, 0.7, n_counted)
        assert chosen.sum() == pytest.approx(n_counted, rel=1e-12)
        assert chosen.max() <= 1.0
        assert chosen.min() > 0.0
        slowly = projected_slowly(losses, 0.7, n_counted)
        assert np.allclose(chosen, slowly, rtol=1e-9, atol=1e-12)


def test_2_the_minimiser_is_better_than_others_by_their_divergence():
    """F_t(z) >= F_t(x) + D(z, x) / eta over all chances z: what a projection gives."""
    rate = 0.3
    for _ in range(200):
        losses = NUMBERS.exponential(4.0, 7)
        x, z = projected(losses, rate, 3), some_chances(7, 3)

        def value(chances, losses=losses):
            return float(chances @ losses + (chances * np.log(chances)).sum() / rate)

        assert value(z) >= value(x) + divergence(z, x) / rate - 1e-9


@pytest.mark.parametrize("k", [1, 2, 3, 4, 6])
def test_3_items_are_seen_as_often_as_the_note_says(k):
    """One over the noted chance, where an item was seen, has mean one for each item."""
    n_rounds = 1_500
    ranker = SemiBandit(6, k=k, measure="Precision@3", horizon=n_rounds)
    ranker.state.losses[:] = np.array([0.0, 0.7, 1.0, 2.5, 1.0, 4.0]) / ranker.rate
    chances = projected(ranker.state.losses, ranker.rate, 3)
    expected = precision.chances_of_sight(chances, 3, k)
    assert expected.sum() == pytest.approx(k)
    seen, among = np.zeros((2, n_rounds, 6))
    for round in range(n_rounds):
        shown = ranker.rank(round=round)
        assert np.allclose(shown.note, expected[shown.ranking[:k]], rtol=1e-12)
        assert np.isnan(shown.propensity) if k > 1 else shown.propensity == shown.note[0]
        seen[round, shown.ranking[:k]] = 1.0 / shown.note
        among[round, shown.ranking[:3]] = 1.0 / chances[shown.ranking[:3]]
    for weights in (seen, among):
        errors = weights.std(axis=0) / np.sqrt(n_rounds)
        assert (np.abs(weights.mean(axis=0) - 1.0) <= 4.5 * errors + 1e-9).all()


def test_4_one_step_costs_no_more_than_its_second_moment():
    """<x - z, c> - D(z, x) / eta is at most eta / 2 sum x c^2, whatever z and however large c."""
    for _ in range(500):
        rate = NUMBERS.exponential()
        x, costs = some_chances(6, 2), NUMBERS.exponential(3.0, 6) * NUMBERS.integers(0, 2, 6)
        z = x * np.exp(-rate * costs)  # where it is largest
        for other in (z, NUMBERS.random(6), some_chances(6, 2)):
            value = (x - other) @ costs - divergence(other, x) / rate
            assert value <= rate / 2.0 * (x @ costs**2) + 1e-9


@pytest.mark.parametrize(("n_items", "n_counted"), [(5, 1), (6, 3), (9, 8)])
def test_5_chances_over_chances_of_sight_add_up_to_n_m_over_k(n_items, n_counted):
    for k in range(1, n_items + 1):
        most = precision.steepness(n_items, n_counted, k)
        uniform = np.full(n_items, n_counted / n_items)
        at_uniform = uniform / precision.chances_of_sight(uniform, n_counted, k)
        assert at_uniform.sum() == pytest.approx(most)
        for _ in range(100):
            x = some_chances(n_items, n_counted)
            assert (x / precision.chances_of_sight(x, n_counted, k)).sum() <= most * (1 + 1e-12)


def test_6_the_bound_is_what_the_rates_make_of_it():
    for n_items, n_counted, k, rounds in [(10, 3, 1, 1000), (6, 2, 5, 400)]:
        name = f"Precision@{n_counted}"
        known = SemiBandit(n_items, k=k, measure=name, horizon=rounds)
        unknown = SemiBandit(n_items, k=k, measure=name)
        largest = precision.penalty(n_items, n_counted)
        steep = precision.steepness(n_items, n_counted, k)
        for ranker, bound in (
            (known, precision.semi_bandit_bound(n_items, n_counted, k, rounds)),
            (unknown, precision.anytime_bound(n_items, n_counted, k, rounds)),
        ):
            rates = np.array([rate_at(ranker.params, t) for t in range(rounds)])
            assert (np.diff(rates) <= 0.0).all()
            total = largest / rates[-1] + steep / 2.0 * rates.sum()
            assert total <= bound * (1 + 1e-12)
            assert total >= 0.98 * bound
        assert rate_at(known.params, rounds) < rate_at(known.params, rounds - 1)
        assert rate_at(known.params, rounds) == pytest.approx(rate_at(unknown.params, rounds))


def test_the_bound_in_numbers():
    assert precision.semi_bandit_bound(10, 3, 1, 64_000) == pytest.approx(
        3 * np.sqrt(2 * 10 * 64_000 * np.log(10 / 3))
    )
    assert precision.semi_bandit_bound(10, 3, 10, 900) == pytest.approx(
        90 * np.sqrt(2 * np.log(10 / 3))
    )
    assert precision.anytime_bound(6, 2, 3, 50) == pytest.approx(
        2 * 2 * np.sqrt(6 * 50 * np.log(3) / 3)
    )


def test_losses_over_chances_are_added_up_and_the_least_is_best():
    ranker = SemiBandit(4, k=2, measure="Precision@2", max_grade=4.0)
    shown = ranker.rank()
    ranker.update(shown, [1, 4])
    expected = np.zeros(4)
    expected[shown.ranking[0]] = 0.75 / shown.note[0]
    assert ranker.state.losses == pytest.approx(expected)
    assert shown.note == pytest.approx([0.5, 0.5])
    assert ranker.best()[-1] == shown.items[0]
    exponential = SemiBandit(4, measure="DCG@1", max_grade=2.0)
    shown = exponential.rank()
    exponential.update(shown, 1)
    assert exponential.state.losses.sum() == pytest.approx((1 - 1 / 3) / 0.25)
    assert shown.propensity == pytest.approx(0.25)


def crowd(name, rounds):
    """Return relevance by round: three items are good; or three others from a third on."""
    good = np.zeros((rounds, 10), dtype=bool)
    good[:, 5:8] = True
    if name == "switch":
        good[: rounds // 3] = np.roll(good[0], -5)
    return (good != (NUMBERS.random(good.shape) < 0.1)).astype(float)


def lost(ranker, relevance):
    """Return mean regret at the end of games on one sequence."""
    trace = play(ranker, Recorded(relevance), reveal=Top(max(ranker.depth, 1)), runs=4,
                 measure="Precision@3", rounds=len(relevance))  # fmt: skip
    return float(trace.regret[:, -1].mean())


@pytest.mark.parametrize("k", [1, 10])
@pytest.mark.parametrize("name", ["constant", "switch"])
def test_regret_keeps_the_bound_and_no_other_ranker_does(name, k):
    rounds = 3_000
    bound, relevance = precision.semi_bandit_bound(10, 3, k, rounds), crowd(name, rounds)

    def keeps(ranker):
        regret = lost(ranker, relevance)
        print(f"{name}, k={k}: {regret:.0f} of at most {bound:.0f}")
        assert regret <= bound

    learner = SemiBandit(10, k=k, measure="Precision@3", horizon=rounds)
    others = {"random": Random(10), "fixed": Fixed(10, ranking=[3, 4, *range(3), *range(5, 10)])}
    check_only_learners_pass(keeps, learner, others)


def test_regret_is_about_that_of_the_first_prototype():
    """Whose crowd is not known: what it lost is at least half of ours, and no more."""
    for rounds, expected in [(1_000, 136), (4_000, 318), (16_000, 737)]:
        ranker = SemiBandit(10, measure="Precision@3", horizon=rounds)
        regret = lost(ranker, crowd("constant", rounds))
        print(f"{rounds} rounds: {regret:.0f}, prototype {expected}")
        assert expected < regret < expected * 2.4


def test_measures_that_count_otherwise_are_refused():
    for measure in ("DCG", "SumLoss", "NDCG"):
        with pytest.raises(InvalidInput, match="must count the first n positions alike"):
            SemiBandit(5, measure=measure)
        with pytest.raises(InvalidInput, match="must count the first n positions alike"):
            NeighbourhoodWatch(5, measure=measure)
    assert SemiBandit(5, measure="Precision").params.n_counted == 5
    assert SemiBandit(5, measure="DCG@1").params.n_counted == 1


def test_rates_are_scaled():
    theory, scaled = SemiBandit(5, horizon=90), SemiBandit(5, horizon=90, rate_scale=0.05)
    assert scaled.rate == pytest.approx(0.05 * theory.rate)
    with pytest.raises(InvalidInput, match="`rate_scale` of SemiBandit"):
        SemiBandit(5, rate_scale=0.0)


def test_all_of_a_list_counted_is_no_game():
    ranker = SemiBandit(3, measure="Precision@3", k=2)
    for _ in range(5):
        shown = ranker.rank()
        assert shown.note.tolist() == pytest.approx([2 / 3, 2 / 3])
        ranker.update(shown, [1, 0])
    assert SemiBandit(3, measure="Precision@3", k=3).rank().note.tolist() == [1.0] * 3
