"""Many rounds in one call are what one after the other would be, to the last bit."""

import numpy as np
import pytest

from keyhole.game.batched import learn_many, rank_many
from keyhole.rankers import ranker

pytestmark = pytest.mark.interpreted

_SOME = [("keystone", {"k": 2}), ("rtopk", {"horizon": 60}), ("thompson", {}), ("ftpl", {})]
_RELEVANCE = np.array([0.0, 1.0, 0.0, 1.0, 0.0])


def pair(name, settings):
    return [ranker(name, n_items=5, seed=3, **settings) for _ in range(2)]


def together(learner, shown, values):
    """Learn from impressions at once."""
    return learn_many(
        learner,
        [one.round for one in shown],
        np.array([one.ranking for one in shown]),
        [one.explored for one in shown],
        [one.propensity for one in shown],
        values,
        np.array([one.note for one in shown]),
    )


@pytest.mark.parametrize(("name", "settings"), _SOME, ids=str)
def test_many_rounds_are_one_after_the_other(name, settings):
    one_by_one, at_once = pair(name, settings)
    for first in (0, 7, 20):
        apart = [one_by_one.rank(round=round) for round in range(first, first + 6)]
        shown = rank_many(at_once, first, 6)
        assert at_once.next_round == one_by_one.next_round
        for ours, theirs in zip(shown, apart, strict=True):
            assert ours.round == theirs.round
            assert ours.items == theirs.items
            assert ours.explored == theirs.explored
            assert np.array_equal(ours.note, theirs.note, equal_nan=True)
            assert np.array_equal(ours.propensity, theirs.propensity, equal_nan=True)
        values = np.array([_RELEVANCE[one.ranking] for one in shown])
        for theirs, value in zip(apart, values, strict=True):
            one_by_one.update(theirs, value)
        assert together(at_once, shown, values)
        for part, other in zip(at_once.state, one_by_one.state, strict=True):
            assert np.array_equal(part, other)
        assert at_once.next_round == one_by_one.next_round


def test_where_one_is_refused_nothing_has_changed():
    learner, _ = pair("ftpl", {})
    shown = rank_many(learner, 0, 3)
    values = np.array([_RELEVANCE[one.ranking] for one in shown])
    before = [piece.copy() for piece in learner.pieces]
    values[1, 0] = np.inf
    assert not together(learner, shown, values)
    shown[2].ranking[0] = shown[2].ranking[1]
    values[1, 0] = 1.0
    assert not together(learner, shown, values)
    shown[2].ranking[0] = 77
    assert not together(learner, shown, values)
    assert all((piece == kept).all() for piece, kept in zip(learner.pieces, before, strict=True))
