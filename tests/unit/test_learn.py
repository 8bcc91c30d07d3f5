"""Learning on lists is what one gets by asking the ranker list by list."""

from dataclasses import replace

import numba
import numpy as np
import pytest

from keyhole.base.errors import InvalidInput
from keyhole.contracts.lists import Feedback, Query, no_features
from keyhole.game import log, play as game
from keyhole.game.log import Log, replay
from keyhole.game.play import checkpoints_of, play
from keyhole.measures import measure
from keyhole.rankers.lists.top_k import ContextualRTopK
from keyhole.reveals.top import Top
from keyhole.worlds.queries import Queries

pytestmark = pytest.mark.interpreted

ROUNDS = 31
GENERATOR = np.random.default_rng(2)
FEATURES = GENERATOR.normal(size=(40, 3))
WORLD = Queries(FEATURES, GENERATOR.integers(0, 2, 40).astype(float), [0, 5, 9, 20, 26, 40])
RANKER = ContextualRTopK(3, 14, surrogate="squared", mix=0.4)


def by_hand(seed):
    """Return the running scores of what was shown, and of what greed would have shown."""
    judge, ranker = measure("NDCG@10"), RANKER.fresh(seed=seed)
    shown, greedy = [], []
    for t in range(ROUNDS):
        query, relevance = WORLD.query(t, seed=seed), WORLD.relevance(t, seed=seed)
        impression = ranker.rank(query, round=t)
        shown.append(judge(relevance, impression.ranking))
        order = np.argsort(-(query.features @ ranker.state.weights), kind="stable")
        greedy.append(judge(relevance, order) if impression.explored else shown[-1])
        feedback = Top(1)(relevance, impression.ranking, round=t, seed=seed)
        ranker.update(impression, feedback)
    return np.cumsum(shown), np.cumsum(greedy), ranker.state.weights


def test_scores_of_what_was_shown_and_of_what_greed_would_show():
    shown, greedy, weights = by_hand(seed=4)
    learnt = play(RANKER, WORLD, rounds=ROUNDS, seed=4, n_points=None)
    assert learnt.rounds.tolist() == list(range(1, ROUNDS + 1))
    assert learnt.scores[0] == pytest.approx(shown, rel=1e-9)
    assert learnt.greedy[0] == pytest.approx(greedy, rel=1e-9)
    assert not np.allclose(shown, greedy)
    assert learnt.states[0]["weights"] == pytest.approx(weights, rel=1e-9)
    assert learnt.average_score.mean == pytest.approx(shown[-1] / ROUNDS)
    assert learnt.average_greedy_score.mean == pytest.approx(greedy[-1] / ROUNDS)


def test_going_on_is_the_same_as_one_call():
    whole = play(RANKER, WORLD, rounds=ROUNDS, seed=4, n_points=9)
    told: list[int] = []
    first = play(RANKER, WORLD, rounds=12, seed=4, n_points=9)
    both = play(
        RANKER, WORLD, rounds=ROUNDS - 12, seed=4, n_points=9, start=first, progress=told.append,
    )  # fmt: skip
    assert told == [ROUNDS - 12]
    assert first.rounds[-1] == 12
    late = whole.rounds[whole.rounds > 12].tolist()
    assert both.rounds.tolist() == [*first.rounds.tolist(), *late]
    for curve in ("scores", "greedy"):
        assert np.array_equal(
            getattr(both, curve)[:, -len(late) :], getattr(whole, curve)[:, -len(late) :]
        )
    assert np.array_equal(both.states[0]["weights"], whole.states[0]["weights"])
    assert both.seconds > first.seconds


def test_rounds_are_counted_from_one():
    assert play(RANKER, WORLD, rounds=1).rounds.tolist() == [1]
    assert np.array_equal(play(RANKER, WORLD, rounds=250).rounds, checkpoints_of(250, 200))
    with pytest.raises(InvalidInput, match=r"`rounds` must be an integer between 1 and .*, got 0"):
        play(RANKER, WORLD, rounds=0)


def _types_of_calls(monkeypatch, features, relevance, starts):
    """Return the types for which a game, a replay and calls round by round want compiled code."""
    seen = []

    def compiled(*args):
        seen.append(args)
        return False, 1.0

    ranker = RANKER.fresh()
    monkeypatch.setattr(game, "loop_of", lambda *_, **__: compiled)
    monkeypatch.setattr(log, "assemble", lambda *_: compiled)
    monkeypatch.setattr(ranker, "kernel", ranker.kernel._replace(
        rank=compiled, update=compiled, greedy=compiled, prepare=compiled
    ))  # fmt: skip
    world = Queries(features, relevance, starts)
    play(ranker, world, rounds=ROUNDS)
    query = Query(5, features[:5])
    impression = replace(ranker.rank(query), ranking=np.arange(5))
    ranker.best(query)
    ranker.update(impression, [1.0])
    replay(ranker, Log.of(ranker, [(impression, Feedback.top(1.0))]))
    return [numba.typeof(args) for args in seen]


def test_arrays_that_cannot_be_written_need_no_code_of_their_own(monkeypatch):
    given = FEATURES, WORLD.params.relevance.copy(), WORLD.params.starts.copy()
    kept = tuple(array.copy() for array in given)
    for array in kept:
        array.flags.writeable = False
    types = _types_of_calls(monkeypatch, *given)
    assert len(types) == 8
    assert all("readonly array(float64, 2d, C)" in str(kind) for kind in types)
    assert types == _types_of_calls(monkeypatch, *kept)
    assert all(array.flags.writeable for array in given)
    moved = WORLD.relabelled(np.arange(14)[::-1])
    assert numba.typeof(moved.params) == numba.typeof(WORLD.params)
    assert numba.typeof(moved.features) == numba.typeof(WORLD.features)


def test_rankers_cannot_write_to_features():
    query, given = WORLD.query(0), np.ones((2, 1))
    assert RANKER.features_of(query) is query.features
    for features in (query.features, WORLD.features, Query(2, given).features, no_features(3)):
        assert features is not None
        assert not features.flags.writeable
    assert given.flags.writeable
