"""A10: its parts by hand, and that it learns what the semi-bandit learns."""

# ruff: noqa: T201 (tests print the bounds they hold results against)

import numpy as np
import pytest

from keyhole import Random, Recorded, Top, play
from keyhole.base.errors import InvalidInput
from keyhole.checks.non_learners import check_only_learners_pass
from keyhole.rankers.fixed.neighbourhood import (
    NeighbourhoodWatch,
    fill_moves,
    neighbours_of,
    settle,
)
from keyhole.rankers.fixed.plain import Fixed
from keyhole.rankers.fixed.semibandit import SemiBandit

pytestmark = pytest.mark.interpreted

NUMBERS = np.random.default_rng(1)


def test_neighbours_differ_in_one_item():
    sets = np.array([[0, 1], [0, 2], [1, 2]])
    neighbour, leaves, joins = neighbours_of(sets, 3)
    assert neighbour.tolist() == [[2, 1], [2, 0], [1, 0]]
    assert leaves.tolist() == [[0, 1], [0, 2], [1, 2]]
    assert joins.tolist() == [[2, 2], [1, 1], [0, 0]]


@pytest.mark.parametrize("n_sets", [1, 2, 6])
def test_sets_settle_where_moves_leave_them(n_sets):
    moves = NUMBERS.random((n_sets, n_sets)) ** 8
    moves /= moves.sum(axis=1, keepdims=True)
    settled = np.empty(n_sets)
    settle(moves.copy(), settled)
    assert settled.sum() == pytest.approx(1.0)
    assert np.allclose(settled @ moves, settled, atol=1e-13)


def test_moves_are_exponential_weights_of_what_is_known():
    ranker = NeighbourhoodWatch(4, measure="Precision@2")
    totals = NUMBERS.normal(size=24) * 100.0
    moves = np.empty((6, 6))
    fill_moves(ranker.params, 0.02, totals, moves)
    for index in range(6):
        weights = np.exp(-0.02 * totals[4 * index : 4 * index + 4])
        expected = np.zeros(6)
        expected[ranker.params.neighbour[index]] = weights / (1.0 + weights.sum())
        assert np.allclose(moves[index], expected)
    fill_moves(ranker.params, 1.0, np.full(24, 1e300), moves)
    assert np.isfinite(moves).all()
    assert moves.max() == pytest.approx(1e-15, rel=1e-9, abs=0.0)


def test_sets_are_shown_as_often_as_the_note_says_and_estimates_are_unbiased():
    """The mean over all that may be shown is what is estimated: P(A) (r_a - r_b), less a bonus."""
    ranker = NeighbourhoodWatch(4, measure="Precision@2", horizon=2000)
    ranker.state.totals[:] = NUMBERS.normal(size=24) * 40.0
    n_rounds, relevance = 2_000, np.array([0.0, 1.0, 1.0, 0.0])
    index_of = {frozenset(items): index for index, items in enumerate(ranker.sets.tolist())}
    before = ranker.state.totals.copy()
    seen, gained, tops = np.zeros((6, 4)), [], np.zeros(4)
    for round in range(n_rounds):
        shown = ranker.rank(round=round)
        seen[index_of[frozenset(shown.ranking[:2].tolist())], shown.ranking[0]] += 1.0
        tops[shown.ranking[0]] += 1.0 / shown.propensity
        ranker.update(shown, relevance[shown.ranking[0]])
        gained.append(ranker.state.totals - before)
        ranker.state.totals[:] = before
    settled, mix = shown.note, ranker.mix
    chance = ((1.0 - mix) * settled + mix / 6.0) / 2.0
    for index, items in enumerate(ranker.sets.tolist()):
        for item in items:
            expected = chance[index] * n_rounds
            assert abs(seen[index, item] - expected) < 4.5 * np.sqrt(expected)
    assert np.allclose(tops / n_rounds, 1.0, atol=0.15)
    params = ranker.params
    truth = settled[:, None] * (relevance[params.leaves] - relevance[params.joins])
    bonus = (
        ranker.rate * settled[:, None] ** 2 * (1 / chance[:, None] + 1 / chance[params.neighbour])
    )
    mean, error = np.mean(gained, axis=0), np.std(gained, axis=0) / np.sqrt(n_rounds)
    assert (np.abs(mean - (truth - bonus).ravel()) <= 4.5 * error + 1e-12).all()


@pytest.mark.compiled
def test_it_learns_what_the_semi_bandit_learns():
    rounds = 6_000
    relevance = (np.arange(4) > 1) != (NUMBERS.random((rounds, 4)) < 0.2)
    world = Recorded(relevance.astype(float))
    chance = 0.6 * rounds  # two of four at random hold one of the two, and lose 1 - 2 flip

    def learns(ranker):
        trace = play(ranker, world, reveal=Top(1), measure="Precision@2", rounds=rounds, runs=3)
        share = trace.regret[:, -1].mean() / chance
        print(f"{type(ranker).__name__}: {share:.2f} of chance, at most 0.5")
        assert share < 0.5

    others = {"random": Random(4), "fixed": Fixed(4)}
    for ranker in (NeighbourhoodWatch, SemiBandit):
        learner = ranker(4, measure="Precision@2", horizon=rounds)
        check_only_learners_pass(learns, learner, others)
        assert set(learner.fresh().best()[:2]) <= {0, 1, 2, 3}


def test_the_most_likely_items_are_best():
    ranker = NeighbourhoodWatch(4, measure="Precision@2", horizon=1000)
    assert ranker.best() == [0, 1, 2, 3]
    better = ranker.params.joins == 2  # whatever lets item 2 join is better
    worse = ranker.params.leaves == 2
    ranker.state.totals[:] = 100.0 * (worse.astype(float) - better.astype(float)).ravel()
    assert ranker.best()[0] == 2


def test_gains_are_shares_of_the_largest():
    gained = []
    for max_grade, grade in ((1.0, 1), (4.0, 4), (4.0, 2)):
        ranker = NeighbourhoodWatch(3, max_grade=max_grade)
        ranker.update(ranker.rank(), 0)
        bonus = ranker.state.totals.copy()
        ranker.state.totals[:] = 0.0
        ranker.update(ranker.rank(round=0), grade)
        gained.append(ranker.state.totals - bonus)
    assert gained[1] == pytest.approx(gained[0])
    assert gained[2] == pytest.approx(gained[0] / 2.0)
    # Of three items shown equally often, the one seen is better than the others by 1 / (1/3) / 3.
    assert sorted(gained[0]) == pytest.approx([-1.0, -1.0, 0.0, 0.0, 1.0, 1.0])


def test_too_many_sets_are_refused():
    assert len(NeighbourhoodWatch(8, measure="Precision@4").sets) == 70
    with pytest.raises(InvalidInput, match="at most 70 sets of 4 items, got 9, which leaves 126"):
        NeighbourhoodWatch(9, measure="Precision@4")


def test_what_is_known_of_sets_stays_with_their_items():
    ranker = NeighbourhoodWatch(3, measure="Precision@2", items=["a", "b", "c"])
    ranker.state.totals[:] = np.arange(6.0)
    changed = ranker.with_items(["c", "b", "d"])
    known = {
        (frozenset(items), int(leave), int(join)): total
        for index, items in enumerate(changed.sets.tolist())
        for leave, join, total in zip(
            changed.params.leaves[index],
            changed.params.joins[index],
            changed.state.totals[2 * index : 2 * index + 2],
            strict=True,
        )
    }
    assert all(total == 2.5 for total in known.values())  # every move has the new item
    grown = ranker.with_items(["a", "b", "c", "d"])
    assert sorted(grown.state.totals.tolist())[0] == 0.0
    assert np.allclose(grown.with_items(["a", "b", "c"]).state.totals, np.arange(6.0))
    only = NeighbourhoodWatch(2, measure="Precision@2", items=["a", "b"])  # one set, no neighbours
    assert only.with_items(["a", "b", "c"]).state.totals.tolist() == [0.0] * 6
