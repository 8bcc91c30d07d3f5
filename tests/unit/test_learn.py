"""Learning on lists is what one gets by asking the ranker list by list."""

import numpy as np
import pytest

from keyhole.base.errors import InvalidInput
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
