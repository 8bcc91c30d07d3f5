"""A game is what one gets by asking the ranker, the world, the reveal and the judge in turn."""

import itertools
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from keyhole import Flips, RTopK, play, replay
from keyhole.base.errors import FeedbackTooSmall, InvalidInput
from keyhole.base.threads import Stop, play_runs
from keyhole.contracts.lists import Feedback
from keyhole.game.comparators import best_fixed
from keyhole.game.log import Log
from keyhole.game.play import checkpoints_of
from keyhole.measures import measure
from keyhole.rankers.fixed.plain import Random
from keyhole.reveals.full import Full
from keyhole.reveals.top import Top
from keyhole.worlds.table import Recorded

pytestmark = pytest.mark.interpreted

ROUNDS, SEED = 23, 5
WORLD = Flips(4, n_relevant=2, flip=0.3)
RANKER = RTopK(4, horizon=ROUNDS, k=2)
RANKINGS = [np.array(order) for order in itertools.permutations(range(4))]


def by_hand(name, run, world_run):
    """Return the running score, the best fixed score of every prefix, and the rankings shown."""
    judge, ranker = measure(name), RANKER.fresh(seed=SEED, run=run)
    pick = min if judge.is_loss else max
    scores, totals, bests, shown, whole = [], np.zeros(24), [], [], []
    for t in range(ROUNDS):
        relevance = WORLD.relevance(t, seed=SEED, run=world_run)
        impression = ranker.rank(round=t)
        ranker.update(impression, Top(2)(relevance, impression.ranking, round=t))
        scores.append(judge(relevance, impression.ranking))
        totals += [judge(relevance, order) for order in RANKINGS]
        bests.append(pick(totals))
        whole.append(totals.copy())
        shown.append(impression.ranking)
    last = int(np.argmin(totals) if judge.is_loss else np.argmax(totals))
    return np.cumsum(scores), np.array(bests), np.array(whole)[:, last], shown


@pytest.mark.parametrize("name", ["DCG", "AP"])
@pytest.mark.parametrize("same_users", [False, True])
def test_scores_and_best_fixed_scores(name, same_users):
    game = {"measure": name, "rounds": ROUNDS, "seed": SEED, "runs": 2, "same_users": same_users}
    prefix = play(RANKER, WORLD, **game, n_points=None, record=True)
    final = play(RANKER, WORLD, **game, n_points=6, comparator="final", n_threads=1)
    assert prefix.rounds.tolist() == list(range(1, ROUNDS + 1))
    assert prefix.exact == ("sorted" if name == "DCG" else "exhaustive")
    at = final.rounds - 1
    for run in range(2):
        scores, best, best_last, shown = by_hand(name, run, 0 if same_users else run)
        assert prefix.scores[run] == pytest.approx(scores, rel=1e-12)
        assert prefix.best[run] == pytest.approx(best, rel=1e-12)
        assert final.scores[run] == pytest.approx(scores[at], rel=1e-12)
        assert final.best[run] == pytest.approx(best_last[at], rel=1e-12)
        log = prefix.logs[run]
        assert log.rankings.reshape(ROUNDS, 4).tolist() == [order.tolist() for order in shown]
        assert log.rounds.tolist() == list(range(ROUNDS))
        assert log.starts.tolist() == list(range(0, 4 * ROUNDS + 1, 4))
        assert np.isnan(log.values.reshape(ROUNDS, 4)).tolist() == [[False, False, True, True]] * 23
        assert (log.seed, log.run) == (SEED, run)
        again = replay(RANKER, log)
        assert again.next_round == ROUNDS
        assert np.array_equal(again.state.scores, prefix.states[run]["scores"])
    assert final.logs == ()
    assert (final.comparator, prefix.comparator) == ("final", "prefix")


@pytest.mark.parametrize("name", ["DCG", "AP", "SumLoss"])
def test_the_best_fixed_ranking_is_best(name):
    judge = measure(name)
    lists = [WORLD.relevance(t, seed=3, run=2) for t in range(40)]
    values = {tuple(o): sum(judge(relevance, o) for relevance in lists) for o in RANKINGS}
    found = best_fixed(WORLD, measure=name, rounds=40, seed=3, run=2)
    extreme = min(values.values()) if judge.is_loss else max(values.values())
    assert values[tuple(found)] == pytest.approx(extreme, rel=1e-12)
    with pytest.raises(InvalidInput, match="`rounds` must be an integer between 1 and"):
        best_fixed(WORLD, measure=name, rounds=0)


def test_the_users_are_those_of_seed_0_and_run_0_unless_told():
    close = Flips(4, n_relevant=2, flip=0.5)
    found = [best_fixed(close, rounds=9), best_fixed(close, rounds=9, seed=0, run=0)]
    others = [best_fixed(close, rounds=9, seed=s, run=r).tolist() for s, r in ((1, 0), (0, 1))]
    assert np.array_equal(found[0], found[1])
    assert found[0].tolist() not in others
    usual, told = play(RANKER, close, rounds=9), play(RANKER, close, rounds=9, seed=0, runs=1)
    assert np.array_equal(usual.scores, told.scores)
    assert np.array_equal(usual.best, told.best)
    assert (usual.n_runs, usual.comparator, usual.logs) == (1, "prefix", ())


def test_the_best_of_long_lists_is_found_by_sorting_alone():
    assert sorted(best_fixed(Flips(9, n_relevant=1), rounds=3)) == list(range(9))
    assert best_fixed(Flips(8, n_relevant=8, flip=0.0), rounds=1, measure="AP").tolist()
    with pytest.raises(InvalidInput, match=r"a list of at most 8 items .* got 9"):
        best_fixed(Flips(9, n_relevant=1), rounds=3, measure="ERR")


def test_checkpoints_are_half_even_and_half_geometric():
    assert checkpoints_of(5, None).tolist() == checkpoints_of(5, 5).tolist() == [1, 2, 3, 4, 5]
    assert checkpoints_of(5, 9).tolist() == [1, 2, 3, 4, 5]
    expected = [1, 6, 32, 178, 200, 400, 600, 800, 1000]
    assert checkpoints_of(1000, 10).tolist() == expected
    expected = [1, 4, 16, 63, 200, 251, 400, 600, 800, 1000]
    assert checkpoints_of(1000, 11).tolist() == expected
    assert np.array_equal(checkpoints_of(10**6), checkpoints_of(10**6, 200))


def test_a_game_must_fit():
    with pytest.raises(InvalidInput, match="`rounds` must be an integer between 1 and"):
        play(RANKER, WORLD, rounds=0)
    with pytest.raises(InvalidInput, match="`rounds` must be at most the 3 recorded ones, got 4"):
        play(RANKER, Recorded(np.eye(4)[:3]), rounds=4)
    with pytest.raises(InvalidInput, match="`n_items` of RTopK must be 5, as in the world, got 4"):
        play(RANKER, Flips(5, n_relevant=2), rounds=3)
    with pytest.raises(
        FeedbackTooSmall, match=r"first 2 of 4 positions, but top\(1\) shows only 1"
    ):
        play(RANKER, WORLD, reveal=Top(1), rounds=3)
    with pytest.raises(InvalidInput, match="`max_grade` of RTopK must be at least 2,"):
        play(RANKER, Recorded(2 * np.eye(4)), rounds=3)
    with pytest.raises(InvalidInput, match="`empty` of a measure must be a number in a game"):
        play(RANKER, WORLD, rounds=3, measure=measure("AP", empty=float("nan")))
    with pytest.raises(InvalidInput, match="`runs` must be an integer of at least 1, got 0"):
        play(RANKER, WORLD, rounds=3, runs=0)
    with pytest.raises(InvalidInput, match="`n_points` must be an integer of at least 2, got 1"):
        play(RANKER, WORLD, rounds=3, n_points=1)


def test_progress_adds_up():
    for n_threads in (1, 2):
        told: list[int] = []
        play(RANKER, WORLD, rounds=ROUNDS, runs=3, n_threads=n_threads, progress=told.append)
        assert sum(told) == 3 * ROUNDS


def has_ended(stop: Stop, within: float) -> bool:
    """Return whether a run is asked to stop within some seconds."""
    until = time.monotonic() + within
    while not stop.asked and time.monotonic() < until:
        time.sleep(0.01)
    return stop.asked


def test_one_run_that_fails_stops_the_others():
    def run(number, report, stop):
        if number == 1:
            raise InvalidInput("no")
        report(1)
        return has_ended(stop, 30.0)  # an error elsewhere ends it at once

    with pytest.raises(InvalidInput, match="no"):
        play_runs(run, 3, 3, None)
    alone = play_runs(lambda number, _, stop: (number, stop.asked), 3, 1, None)
    assert alone == [(0, False), (1, False), (2, False)]
    assert isinstance(play_runs(lambda *given: given[2], 1, 4, None)[0], Stop)


# ------------------------------------------------------------------ logs


def test_runs_end_however_often_they_are_interrupted(monkeypatch):
    """Every call on the way out is interrupted: only an assignment cannot be."""

    class Interrupted(ThreadPoolExecutor):
        n_calls = 0

        def shutdown(self, *args, **kwargs):
            self.n_calls += 1
            if self.n_calls == 1:
                raise KeyboardInterrupt
            super().shutdown(*args, **kwargs)

    def interrupt(*args, **kwargs):
        raise KeyboardInterrupt

    ended = []
    monkeypatch.setattr("keyhole.base.threads.ThreadPoolExecutor", Interrupted)
    monkeypatch.setattr("keyhole.base.threads.wait", interrupt)
    with pytest.raises(KeyboardInterrupt):
        play_runs(lambda *given: ended.append(has_ended(given[2], 5.0)), 2, 2, None)
    assert ended == [True, True]


def test_logs_of_rounds_by_hand(tmp_path):
    ranker = RANKER.fresh(seed=SEED, run=1)
    pairs = []
    for t in (4, 2):
        impression = ranker.rank(round=t)
        pairs.append((impression, Feedback(np.array([1.0, 0.0, np.nan, np.nan]))))
    log = Log.of(ranker, pairs)
    log.save(tmp_path / "log.npz")
    read = Log.load(tmp_path / "log.npz")
    assert (read.seed, read.run) == (SEED, 1)
    for row, (impression, feedback) in enumerate(pairs):
        shown, seen = read.pair(row)
        assert shown.round == impression.round
        assert shown.ranking.tolist() == impression.ranking.tolist()
        assert (shown.explored, shown.propensity) == (impression.explored, impression.propensity)
        assert shown.query.features is None
        assert shown.query.n_items == 4
        assert seen.values.tolist()[:2] == feedback.values.tolist()[:2]
    assert replay(ranker, read).next_round == 5
    assert replay(ranker, Log.empty(0, 0, 0, 4)).next_round == 0


def test_rows_of_a_log_are_told_apart():
    log = Log.empty(0, 0, 3, 2)
    log.rounds[:], log.explored[:], log.propensities[:] = [7, 8, 9], [0, 1, 0], [0.1, 0.2, 0.3]
    log.rankings[:], log.values[:] = [0, 1, 1, 0, 0, 1], [1, 2, 3, 4, 5, 6]
    pairs = [log.pair(row) for row in range(3)]
    assert [shown.round for shown, _ in pairs] == [7, 8, 9]
    assert [shown.explored for shown, _ in pairs] == [False, True, False]
    assert [shown.propensity for shown, _ in pairs] == [0.1, 0.2, 0.3]
    assert [shown.ranking.tolist() for shown, _ in pairs] == [[0, 1], [1, 0], [0, 1]]
    assert [seen.values.tolist() for _, seen in pairs] == [[1, 2], [3, 4], [5, 6]]


def test_logs_must_show_enough():
    log = Log.empty(0, 0, 2, 4)
    log.rankings[:] = [0, 1, 2, 3] * 2
    log.values[:] = [1, 0, np.nan, np.nan] * 2
    log.rounds[:] = [0, 1]
    assert log.starts.tolist() == [0, 4, 8]
    assert np.isnan(Log.empty(0, 0, 1, 4).values).all()
    assert replay(RANKER, log).next_round == 2
    log.values[5] = np.nan
    with pytest.raises(FeedbackTooSmall, match="first 2 positions"):
        replay(RANKER, log)
    short = Log.empty(0, 0, 1, 3)
    short.rankings[:] = [2, 0, 1]
    with pytest.raises(InvalidInput, match="`n_items` of the query must be 4, got 3"):
        replay(RANKER, short)
    with pytest.raises(InvalidInput, match="at least one impression"):
        Log.of(RANKER, [])


def test_a_reveal_is_chosen_that_shows_enough():
    whole = RTopK(4, horizon=ROUNDS, k=4)
    seen = play(whole, WORLD, rounds=ROUNDS, record=True).logs[0].values
    assert not np.isnan(seen).any()
    given = play(whole, WORLD, rounds=ROUNDS, record=True, reveal=Full()).logs[0].values
    assert np.array_equal(seen, given)
    blind = play(Random(4), WORLD, rounds=3, record=True).logs[0].values.reshape(3, 4)
    assert np.isnan(blind).tolist() == [[False, True, True, True]] * 3


def test_curves_have_two_hundred_points():
    assert np.array_equal(play(Random(4), WORLD, rounds=250).rounds, checkpoints_of(250, 200))
