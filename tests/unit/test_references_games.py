"""Whole games, added up by hand: scores, the best fixed ranking, regret, and what a trace says."""

import math
import sys

import numpy as np
import pytest

from keyhole import Flips, Hedge, Recorded, RTopK, Top, best_fixed, play
from keyhole.game.comparators import comparator_for, new_sums
from keyhole.game.play import checkpoints_of
from keyhole.game.trace import Trace, log_log_slope
from keyhole.measures import measure
from keyhole.reveals.full import Full
from tests.unit.references import all_lists, average_precision, dcg, orders, sum_loss

pytestmark = pytest.mark.interpreted

SEED, ROUNDS = 4, 80


def by_hand(ranker, world, reveal, value, run, users):
    """Return what a ranker scored and every fixed ranking would have scored, by round."""
    ranker = ranker.fresh(seed=SEED, run=run)
    shown, fixed, log = [], [], []
    for t in range(ROUNDS):
        relevance = world.relevance(t, seed=SEED, run=users)
        impression = ranker.rank()
        feedback = reveal(relevance, impression.ranking, round=t, seed=SEED, run=run)
        ranker.update(impression, feedback)
        shown.append(value(relevance, impression.ranking))
        fixed.append([value(relevance, order) for order in orders(world.n_items)])
        log.append((impression, feedback))
    return np.cumsum(shown), np.cumsum(fixed, axis=0), log


@pytest.mark.parametrize("same_users", [False, True])
def test_a_game_of_dcg(same_users):
    ranker, world = RTopK(5, horizon=ROUNDS, k=2), Flips(5, n_relevant=2, flip=0.3)
    trace = play(
        ranker, world, rounds=ROUNDS, seed=SEED, runs=3, same_users=same_users, n_points=None,
        record=True,
    )  # fmt: skip
    final = play(
        ranker, world, rounds=ROUNDS, seed=SEED, runs=3, same_users=same_users, n_points=None,
        comparator="final",
    )  # fmt: skip
    assert (trace.rounds == np.arange(1, ROUNDS + 1)).all()
    for run in range(3):
        users = 0 if same_users else run
        scores, fixed, log = by_hand(ranker, world, Top(2), dcg, run, users)
        np.testing.assert_allclose(trace.scores[run], scores, rtol=1e-12)
        np.testing.assert_allclose(trace.best[run], fixed.max(axis=1), rtol=1e-12)
        np.testing.assert_allclose(trace.regret[run], fixed.max(axis=1) - scores, atol=1e-9)
        np.testing.assert_allclose(final.scores[run], scores, rtol=1e-12)
        # Where several rankings are best at the end, they may differ before it.
        np.testing.assert_allclose(final.best[run, -1], fixed[-1].max(), rtol=1e-12)
        best = np.flatnonzero(np.isclose(fixed[-1], fixed[-1].max(), rtol=1e-12))
        assert any(np.allclose(final.best[run], fixed[:, b], rtol=1e-12) for b in best)
        for t, (impression, feedback) in enumerate(log):
            mine, seen = trace.logs[run].pair(t)
            assert mine.ranking.tolist() == impression.ranking.tolist()
            assert (mine.round, mine.explored) == (impression.round, impression.explored)
            np.testing.assert_array_equal(mine.propensity, impression.propensity)
            np.testing.assert_array_equal(seen.values, feedback.values)
        chosen = best_fixed(world, rounds=ROUNDS, seed=SEED, run=users)
        assert orders(5).index(chosen.tolist()) in best
    met = [[tuple(world.relevance(t, seed=SEED, run=run)) for t in range(40)] for run in range(2)]
    assert met[0] != met[1]


@pytest.mark.parametrize(
    ("name", "value", "is_loss"), [("AP", average_precision, False), ("SumLoss", sum_loss, True)]
)
def test_games_of_other_measures(name, value, is_loss):
    """AP has no best order but by trying all; SumLoss is a loss."""
    world = Flips(3, n_relevant=1, flip=0.4)
    ranker = Hedge(3, horizon=ROUNDS, measure=name)
    trace = play(ranker, world, measure=name, rounds=ROUNDS, seed=SEED, n_points=None)
    scores, fixed, _ = by_hand(ranker, world, Full(), value, 0, 0)
    best = fixed.min(axis=1) if is_loss else fixed.max(axis=1)
    np.testing.assert_allclose(trace.scores[0], scores, rtol=1e-12)
    np.testing.assert_allclose(trace.best[0], best, rtol=1e-12)
    sign = 1 if is_loss else -1
    np.testing.assert_allclose(trace.regret[0], sign * (scores - best), atol=1e-9)


@pytest.mark.parametrize("name", ["AP", "NDCG", "AUC", "SumLoss"])
def test_the_best_ranking_of_a_total(name):
    """Whatever is tried, and whatever is sorted, is as good as the best of all rankings."""
    judge = measure(name)
    lists = [r for i, r in enumerate(all_lists(4)) if i % 3 != 1]
    world = Recorded(np.array(lists))
    totals = [sum(judge(r, order) for r in lists) for order in orders(4)]
    best = min(totals) if judge.is_loss else max(totals)
    chosen = best_fixed(world, measure=name, rounds=len(lists))
    assert totals[orders(4).index(chosen.tolist())] == pytest.approx(best, rel=1e-12)


@pytest.mark.parametrize("name", ["AP", "APLoss"])
def test_any_of_all_rankings_can_be_the_best(name):
    """Totals are tried one by one, for gains and for losses."""
    judge = comparator_for(measure(name), 3, True)
    for best in range(6):
        sums = new_sums(judge.n_sums)
        sums.sums[:] = [3.0, 2.0, 4.0, 2.5, 3.5, 2.2]
        sums.sums[best] = 1.0 if name == "APLoss" else 9.0
        assert judge.best(judge.params, sums) == sums.sums[best]
        assert judge.best_ranking(sums.sums).tolist() == orders(3)[best]
        scores = judge.scores_of(np.array(orders(3)[best]), sums.sums[None, :], np.zeros(1))
        assert scores.tolist() == [sums.sums[best]]


def test_a_game_by_default():
    """One run of seed 0, judged by DCG against the best of the rounds so far, at 200 points."""
    ranker, world = RTopK(5, horizon=ROUNDS, k=2), Flips(5, n_relevant=2, flip=0.3)
    plain = play(ranker, world, rounds=500)
    told = play(
        ranker, world, reveal=Top(2), measure="DCG", rounds=500, seed=0, runs=1, same_users=False,
        comparator="prefix", n_points=200, record=False,
    )  # fmt: skip
    np.testing.assert_array_equal(plain.rounds, checkpoints_of(500, 200))
    np.testing.assert_array_equal(plain.scores, told.scores)
    np.testing.assert_array_equal(plain.best, told.best)
    assert (plain.n_runs, plain.logs, plain.comparator) == (1, (), "prefix")
    chosen = best_fixed(world, measure="DCG", rounds=500, seed=0, run=0)
    assert best_fixed(world, rounds=500).tolist() == chosen.tolist()


@pytest.mark.parametrize("runs", [1, 3])
def test_games_in_parts_are_the_same_game(runs, monkeypatch):
    """Progress is told after each part, and adds up to all rounds of all runs."""
    ranker, world = RTopK(5, horizon=ROUNDS, k=2), Flips(5, n_relevant=2, flip=0.3)
    told: list[int] = []
    whole = play(ranker, world, rounds=ROUNDS, seed=SEED, runs=runs)
    monkeypatch.setattr(sys.modules["keyhole.game.play"], "_SEGMENT_WORK", 5 * 17)
    parts = play(ranker, world, rounds=ROUNDS, seed=SEED, runs=runs, progress=told.append)
    np.testing.assert_array_equal(parts.scores, whole.scores)
    np.testing.assert_array_equal(parts.best, whole.best)
    assert sum(told) == runs * ROUNDS
    if runs == 1:
        assert told == [17, 17, 17, 17, 12]


def test_where_no_best_ranking_is_known():
    assert comparator_for(measure("AP"), 8, True).kind == "exhaustive"
    assert comparator_for(measure("AP"), 9, True).kind == "local"
    assert comparator_for(measure("AP"), 200, True).kind == "local"
    assert comparator_for(measure("AP"), 201, True).kind == "none"
    assert comparator_for(measure("ERR"), 9, True).kind == "none"
    assert comparator_for(measure("DCG"), 9, True).kind == "sorted"


def test_checkpoints():
    """Half of them evenly spaced, half geometrically."""
    assert checkpoints_of(5, None).tolist() == [1, 2, 3, 4, 5]
    assert checkpoints_of(5, 5).tolist() == [1, 2, 3, 4, 5]
    even, geometric = [25, 50, 75, 100], [1, 10 ** (2 / 3), 10 ** (4 / 3), 100]
    expected = sorted({round(x) for x in (*even, *geometric)})
    assert checkpoints_of(100, 8).tolist() == expected
    assert len(checkpoints_of(10**6)) <= 200
    assert checkpoints_of(10**6)[-1] == 10**6


def trace_of(scores, best, rounds, is_loss=False):
    return Trace(
        np.array(rounds), np.array(scores, float), np.array(best, float), is_loss, "prefix",
        "sorted", (), (), 0.0,
    )  # fmt: skip


def test_what_a_trace_says():
    trace = trace_of([[1, 6], [2, 4]], [[3, 9], [3, 9]], [2, 10])
    assert trace.n_runs == 2
    assert trace.regret.tolist() == [[2, 3], [1, 5]]
    assert trace_of([[1, 6]], [[3, 9]], [2, 10], is_loss=True).regret.tolist() == [[-2, -3]]
    mean, error = trace.average_regret
    assert mean == pytest.approx(0.4)
    assert error == pytest.approx(math.sqrt(0.02) / math.sqrt(2))  # of 0.3 and 0.5
    assert trace.average_score.mean == pytest.approx(0.5)
    assert trace.best_fixed_score == pytest.approx((0.9, 0.0))
    rounds, means, errors = trace.curve()
    assert rounds.tolist() == [2, 10]
    np.testing.assert_allclose(means, [0.75, 0.4])
    np.testing.assert_allclose(errors, [0.25, 0.1])
    alone = trace_of([[1, 6]], [[3, 9]], [2, 10])
    assert math.isnan(alone.average_regret.error)
    assert np.isnan(alone.curve()[2]).all()


def test_slopes_are_fitted_over_the_last_nine_tenths():
    rounds = np.arange(1, 101)
    regret = np.where(rounds < 10, 1000.0, 3.0 * rounds**0.7)[None, :]
    slope = log_log_slope(rounds, regret)
    assert slope.value == pytest.approx(0.7, abs=1e-12)
    assert math.isnan(slope.low)
    both = np.concatenate([regret, regret])
    assert log_log_slope(rounds, both) == pytest.approx((0.7, 0.7, 0.7))
    bent = np.where(rounds < 20, 5.0, 3.0 * rounds**0.7)[None, :]
    late = np.log(rounds[9:]), np.log(bent[0, 9:])
    slope_of = ((late[0] - late[0].mean()) * late[1]).sum() / late[0].var() / 91
    assert log_log_slope(rounds, bent).value == pytest.approx(slope_of)
    apart = np.concatenate([3.0 * rounds[None, :] ** 0.6, 3.0 * rounds[None, :] ** 0.8])
    value, low, high = log_log_slope(rounds, apart)
    # A quarter of the resamples are one of the two runs twice.
    assert (low, high) == pytest.approx((0.6, 0.8))
    assert 0.6 < value < 0.8
    assert math.isnan(log_log_slope(rounds, -both).value)
