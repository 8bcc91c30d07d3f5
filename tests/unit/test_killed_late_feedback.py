"""Feedback that comes late: what counts, from when on, and what has been forgotten."""

import numpy as np
import pytest

from keyhole import FTPL, Forecaster, Hedge, RTopK
from keyhole.contracts.lists import Feedback

pytestmark = pytest.mark.interpreted


def seen(ranker, impression, relevance):
    values = np.asarray(relevance, float)[impression.ranking]
    ranker.update(impression, Feedback(values))


def test_full_information_counts_late_rounds_of_its_epoch_only():
    """Epochs of 5 and 10 rounds."""
    ranker = FTPL(3, horizon=5, measure="SumLoss")
    shown = [ranker.rank(round=t) for t in range(8)]
    seen(ranker, shown[4], [1, 0, 0])
    seen(ranker, shown[1], [0, 1, 0])  # late, but of the same epoch
    assert ranker.state.scores.tolist() == [1, 1, 0]
    seen(ranker, shown[5], [0, 0, 1])  # the first of a new epoch: all else is forgotten
    assert ranker.state.scores.tolist() == [0, 0, 1]
    seen(ranker, shown[3], [1, 1, 1])  # of an epoch that has ended
    assert ranker.state.scores.tolist() == [0, 0, 1]
    seen(ranker, shown[7], [1, 0, 0])
    assert ranker.state.scores.tolist() == [1, 0, 1]


def test_an_old_round_is_ranked_as_if_nothing_were_known():
    """What was learnt belongs to another epoch, before it and after it."""
    ranker, fresh = (FTPL(4, horizon=5, measure="SumLoss", rate=100.0) for _ in range(2))
    for _ in range(3):
        seen(ranker, ranker.rank(round=6), [0, 0, 0, 1])
    assert ranker.rank(round=7).ranking[0] == 3
    others = (0, 1, 2, 3, 15, 16, 40)
    for t in others:
        expected = fresh.rank(round=t).ranking.tolist()
        assert ranker.rank(round=t).ranking.tolist() == expected
    assert any(fresh.rank(round=t).ranking[0] != 3 for t in others)


@pytest.mark.parametrize("make", [Hedge, Forecaster])
def test_weights_over_rankings_forget_epochs_too(make):
    ranker = make(3, horizon=5, measure="SumLoss", rate=0.1)
    shown = [ranker.rank(round=t) for t in range(7)]
    seen(ranker, shown[1], [1, 0, 0])
    assert np.ptp(ranker.state.losses) > 0
    before = ranker.state.losses.copy()
    seen(ranker, shown[6], [0, 0, 0])
    after = ranker.state.losses.copy()
    assert not np.array_equal(before, after)
    seen(ranker, shown[0], [1, 0, 0])
    assert np.array_equal(ranker.state.losses, after)
    assert ranker.state.clock[0] == 1


def exploring(ranker, rounds):
    shown = [ranker.rank(round=t) for t in rounds]
    return [impression for impression in shown if impression.explored]


def test_blocks_count_late_feedback_from_the_next_block_on():
    """Two blocks of six rounds, three cells of one item each; then an epoch of 24 rounds."""
    ranker = RTopK(3, horizon=12, n_blocks=2, measure="SumLoss", rate=1.0)
    first, second = exploring(ranker, range(6)), exploring(ranker, range(6, 12))
    assert len(first) == len(second) == 3
    assert sorted(i.ranking[0] for i in first) == sorted(i.ranking[0] for i in second) == [0, 1, 2]
    ones = np.ones(3)
    seen(ranker, first[0], ones)
    assert ranker.state.scores.sum() == 0
    assert ranker.state.pending.sum() == 1
    seen(ranker, second[0], ones)  # the first block is over: what it showed is in force
    assert ranker.state.scores[first[0].ranking[0]] == 1
    assert ranker.state.pending[second[0].ranking[0]] == 1
    assert ranker.state.scores.sum() == ranker.state.pending.sum() == 1
    seen(ranker, first[1], ones)  # late: pending with the second block
    assert ranker.state.scores.sum() == 1
    assert ranker.state.pending.sum() == 2
    third = exploring(ranker, range(12, 18))
    seen(ranker, third[0], ones)
    assert ranker.state.scores.sum() == 0
    assert ranker.state.pending.sum() == 1
    assert ranker.state.clock.tolist() == [1, 12]
    seen(ranker, second[1], ones)  # of an epoch that has ended
    assert ranker.state.scores.sum() == 0
    assert ranker.state.pending.sum() == 1


def test_pending_estimates_are_ranked_by_from_the_next_block_on():
    """Three sightings of item 2 outweigh any noise at this rate."""
    ranker = RTopK(3, horizon=12, n_blocks=2, measure="SumLoss", rate=10.0)
    first = exploring(ranker, range(6))
    for impression in first:
        seen(ranker, impression, [0, 0, 1])
    greedy = [i.ranking[0] for i in (ranker.rank(round=t) for t in range(12)) if not i.explored]
    assert set(greedy[3:]) == {2}
    assert set(greedy[:3]) != {2}
    # The next epoch begins with nothing known.
    assert {ranker.rank(round=t).ranking[0] for t in range(12, 36)} == {0, 1, 2}


def test_what_lies_below_a_small_cell_is_not_used():
    """Four items in cells of three: the second cell has one item, and two more are seen."""
    ranker = RTopK(4, k=3, horizon=8, n_blocks=1, measure="SumLoss")
    shown = exploring(ranker, range(8))
    assert len(shown) == 2
    for impression in shown:
        seen(ranker, impression, np.ones(4))
    assert ranker.state.pending.tolist() == [1, 1, 1, 1]
