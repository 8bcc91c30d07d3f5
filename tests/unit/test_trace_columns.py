"""Every column and every number of a trace, by hand: of several runs, resumed, of losses and gains.

The games are played again round by round in plain Python; the curves of made-up traces are added up
number by number.
"""

import csv
import itertools
import math
import statistics
from typing import Any

import numpy as np
import pytest

from keyhole import Flips, RTopK, Trace, play, replay
from keyhole.game.log import Log
from keyhole.game.run_end import RunEnd
from keyhole.game.trace import interval_over_runs, log_log_slope
from keyhole.measures import measure
from keyhole.reveals.noisy import Noisy
from keyhole.reveals.top import Top

pytestmark = pytest.mark.interpreted

ROUNDS = [3, 8, 20, 50]
SCORES = [[2.0, 5.0, 11.0, 30.5], [1.0, 6.0, 9.0, 28.0], [3.0, 3.5, 12.0, 41.0]]
BEST = [[2.5, 6.0, 14.0, 35.0], [2.0, 7.0, 13.0, 33.0], [3.5, 6.5, 15.0, 44.5]]
GREEDY = [[2.25, 5.5, 12.5, 33.0], [1.5, 6.5, 10.0, 29.0], [3.0, 4.0, 13.0, 42.0]]


def made_up(**changes):
    given: dict[str, Any] = {
        "rounds": np.array(ROUNDS), "scores": np.array(SCORES), "best": np.array(BEST),
        "is_loss": False, "comparator": "prefix", "exact": "local", "states": (), "logs": (),
        "seconds": 1.5, "greedy": np.array(GREEDY), "ranker": "R", "world": "W", "measure": "M",
        "sees": "S",
    }  # fmt: skip
    return Trace(**{**given, **changes})


def expected_rows(sign):
    return [
        {
            "run": run, "round": ROUNDS[point], "score": SCORES[run][point],
            "best": BEST[run][point], "greedy": GREEDY[run][point],
            "regret": sign * (BEST[run][point] - SCORES[run][point]),
            "ranker": "R", "world": "W", "measure": "M", "sees": "S",
        }
        for run, point in itertools.product(range(3), range(4))
    ]  # fmt: skip


@pytest.mark.parametrize("is_loss", [False, True])
def test_a_frame_has_a_row_for_each_run_and_checkpoint(is_loss, tmp_path):
    trace, expected = made_up(is_loss=is_loss), expected_rows(-1 if is_loss else 1)
    frame = trace.to_frame()
    assert frame.to_dict("records") == expected
    assert list(frame.columns) == list(expected[0])
    trace.to_csv(tmp_path / "curves.csv")
    with (tmp_path / "curves.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert rows == [{name: str(value) for name, value in row.items()} for row in expected]


def test_what_is_not_known_is_an_empty_cell(tmp_path):
    best = np.array(BEST)
    best[1, 2:] = np.nan
    trace = made_up(best=best, greedy=np.array(np.nan))
    trace.to_csv(tmp_path / "curves.csv")
    with (tmp_path / "curves.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    empty = [(row["run"], row["round"]) for row in rows if row["best"] == ""]
    assert empty == [("1", "20"), ("1", "50")]
    assert [row["regret"] for row in rows].count("") == 2
    assert {row["greedy"] for row in rows} == {""}
    assert {row["score"] for row in rows} == {str(value) for run in SCORES for value in run}


def mean_and_error(per_run):
    return statistics.mean(per_run), statistics.stdev(per_run) / math.sqrt(len(per_run))


@pytest.mark.parametrize("is_loss", [False, True])
def test_averages_and_curves_over_three_runs(is_loss):
    trace, sign = made_up(is_loss=is_loss), -1 if is_loss else 1
    regret = [
        [sign * (b - s) for b, s in zip(*run, strict=True)]
        for run in zip(BEST, SCORES, strict=True)
    ]
    for found, totals in (
        (trace.average_score, SCORES),
        (trace.best_fixed_score, BEST),
        (trace.average_greedy_score, GREEDY),
        (trace.average_regret, regret),
    ):
        assert found == pytest.approx(mean_and_error([run[-1] / 50 for run in totals]), rel=1e-12)
    rounds, means, errors = trace.curve()
    assert rounds.tolist() == ROUNDS
    for point, t in enumerate(ROUNDS):
        mean, error = mean_and_error([run[point] / t for run in regret])
        assert (means[point], errors[point]) == pytest.approx((mean, error), rel=1e-12)
    drawn = trace_of_state(is_loss).drawing("it").curves
    assert len(drawn) == 2
    for points, totals in zip(drawn.values(), (regret, SCORES), strict=True):
        of_points = [mean_and_error([run[p] / t for run in totals]) for p, t in enumerate(ROUNDS)]
        label, drawn_rounds, (curve, band), key = points
        assert (label, drawn_rounds.tolist(), key) == ("it", ROUNDS, "rtopk")
        assert curve == pytest.approx([mean for mean, _ in of_points], rel=1e-12)
        assert band == pytest.approx([error for _, error in of_points], rel=1e-12)


def trace_of_state(is_loss):
    state = {"spec": np.array('{"name": "rtopk", "k": 1}')}
    return made_up(is_loss=is_loss, states=(state,) * 3)


def test_the_slope_and_its_interval_are_of_the_last_nine_tenths():
    """Least squares on logs; the interval is of means over runs drawn with replacement."""
    trace = made_up()
    regret = np.array(BEST) - np.array(SCORES)
    late = [1, 2, 3]  # round 3 is of the first tenth of 50

    def slope(per_run):
        logs = [math.log(ROUNDS[point]) for point in late]
        curve = [math.log(statistics.mean(run[point] for run in per_run)) for point in late]
        return statistics.linear_regression(logs, curve).slope

    picks = np.random.default_rng(0).integers(3, size=(1000, 3)).tolist()
    drawn = [slope([regret[run] for run in pick]) for pick in picks]
    low, high = np.quantile(drawn, [0.025, 0.975])
    assert trace.slope() == pytest.approx((slope(regret), low, high), rel=1e-9)
    assert trace.slope() == log_log_slope(trace.rounds, trace.regret)


def test_resamples_without_a_value_are_left_out():
    per_run = np.array([[1.0], [2.0], [4.0], [9.0]])

    def statistic(mean):
        return float(mean[0]) if mean[0] > 3.0 else math.nan

    picks = np.random.default_rng(0).integers(4, size=(300, 4))
    means = [float(per_run[pick].mean()) for pick in picks]
    expected = np.quantile([mean for mean in means if mean > 3.0], [0.025, 0.975])
    found = interval_over_runs(statistic, per_run, n_resamples=300)
    assert found == pytest.approx(tuple(expected), rel=1e-12)
    assert all(math.isnan(end) for end in interval_over_runs(statistic, per_run[:1]))


# ------------------------------------------------------------------ parts of a game


def log_of(rounds):
    log = Log.empty(0, 0, len(rounds), 2)
    log.rounds[:] = rounds
    return log


@pytest.mark.parametrize("comparator", ["prefix", "final"])
def test_parts_of_a_game_become_one(comparator):
    """Against the best of the whole game the later part has that of the earlier points too."""
    ends: Any = ("end",) * 3
    first = made_up(logs=tuple(log_of([0, 1, 2]) for _ in range(3)), comparator=comparator)
    best = [[100.0 * run + point for point in range(6)] for run in range(3)]
    later = made_up(
        rounds=np.array([60, 90]), scores=np.array([[40.0, 50.0], [41.0, 51.0], [42.0, 52.0]]),
        best=np.array(best) if comparator == "final" else np.array(best)[:, :2],
        greedy=np.array([[45.0, 55.0], [46.0, 56.0], [47.0, 57.0]]), seconds=2.25,
        logs=tuple(log_of([3, 4]) for _ in range(3)), ends=ends, comparator=comparator,
        states=({"later": np.ones(1)},) * 3,
    )  # fmt: skip
    whole = first.followed_by(later)
    assert whole.rounds.tolist() == [*ROUNDS, 60, 90]
    assert whole.seconds == 3.75
    for run in range(3):
        assert whole.scores[run].tolist() == [*SCORES[run], *later.scores[run]]
        assert whole.greedy[run].tolist() == [*GREEDY[run], *later.greedy[run]]
        expected = best[run] if comparator == "final" else [*BEST[run], *best[run][:2]]
        assert whole.best[run].tolist() == expected
        assert whole.logs[run].rounds.tolist() == [0, 1, 2, 3, 4]
    assert (whole.ends, whole.states, whole.comparator) == (ends, later.states, comparator)
    assert first.followed_by(made_up(rounds=np.array(ROUNDS) + 50, logs=())).logs == ()


def test_what_was_just_played_is_put_together():
    def end(number, log):
        arrays: Any = [np.array([number + place, number]) for place in range(6)]
        totals, scores, greedy, best, snapshots, offsets = arrays
        return RunEnd({"of": number}, totals, None, scores, greedy, best, snapshots, offsets, log)

    ends, rounds = [end(10.0, log_of([0])), end(20.0, None)], np.array([4, 9])
    words = {"ranker": "r", "world": "w", "measure": "m", "sees": "s"}
    trace = Trace.of(rounds, ends, True, "final", "sorted", greedy=True, seconds=0.5, **words)
    assert trace.scores.tolist() == [[11.0, 10.0], [21.0, 20.0]]
    assert trace.greedy.tolist() == [[12.0, 10.0], [22.0, 20.0]]
    assert trace.best.tolist() == [[13.0, 10.0], [23.0, 20.0]]
    assert trace.states == ({"of": 10.0}, {"of": 20.0})
    assert [len(log.rounds) for log in trace.logs] == [1]
    assert trace.ends == tuple(ends)
    assert (trace.is_loss, trace.comparator, trace.exact, trace.seconds) == (
        True, "final", "sorted", 0.5
    )  # fmt: skip
    assert {name: getattr(trace, name) for name in words} == words
    silent = Trace.of(rounds, ends, True, "final", "sorted", greedy=False, seconds=0.5)
    assert np.isnan(silent.greedy).all()
    assert silent.greedy.shape == (2, 2)


# ------------------------------------------------------------------ a game that goes on

N, CUTS, SEED = 4, (9, 7, 11), 6
WORLD = Flips(N, n_relevant=2, flip=0.3)
RANKER = RTopK(N, horizon=40, k=2, eps_scale=0.7)


def by_hand(name, run, same_users):
    """Return what was scored, and would have been without exploring, and all rankings' totals."""
    judge, ranker = measure(name), RANKER.fresh(seed=SEED, run=run)
    orders = [np.array(order) for order in itertools.permutations(range(N))]
    scores, greedy, totals = [], [], []
    for t in range(sum(CUTS)):
        relevance = WORLD.relevance(t, seed=SEED, run=0 if same_users else run)
        best = ranker.best()
        impression = ranker.rank(round=t)
        scores.append(judge(relevance, impression.ranking))
        greedy.append(judge(relevance, best) if impression.explored else scores[-1])
        totals.append([judge(relevance, order) for order in orders])
        values = Top(3)(relevance, impression.ranking, round=t, seed=SEED, run=run)
        ranker.update(impression, values)
    return np.cumsum(scores), np.cumsum(greedy), np.cumsum(totals, axis=0), ranker


@pytest.mark.parametrize("name", ["NDCG@2", "AP", "SumLoss"])
@pytest.mark.parametrize("comparator", ["prefix", "final"])
@pytest.mark.parametrize("same_users", [False, True])
def test_a_game_in_three_parts_is_the_game_by_hand(name, comparator, same_users, tmp_path):
    game = {
        "measure": name, "comparator": comparator, "same_users": same_users, "seed": SEED,
        "runs": 2, "greedy": True, "n_points": None, "record": True, "reveal": Top(3),
    }  # fmt: skip
    trace = None
    for rounds in CUTS:
        trace = play(RANKER, WORLD, rounds=rounds, start=trace, **game)
        trace.save(tmp_path / "trace.npz")
        trace = Trace.load(tmp_path / "trace.npz")
    assert trace is not None
    assert trace.rounds.tolist() == list(range(1, sum(CUTS) + 1))
    judge = measure(name)
    pick, best = (np.min, np.argmin) if judge.is_loss else (np.max, np.argmax)
    for run in range(2):
        scores, greedy, totals, ranker = by_hand(name, run, same_users)
        assert trace.scores[run] == pytest.approx(scores, rel=1e-12)
        assert trace.greedy[run] == pytest.approx(greedy, rel=1e-12)
        if comparator == "prefix":
            expected = pick(totals, axis=1)
        else:
            last = totals[-1]
            chosen = np.isclose(last, last[best(last)], rtol=1e-12)
            assert any(trace.best[run] == pytest.approx(totals[:, i]) for i in np.where(chosen)[0])
            expected = trace.best[run]
        regret = scores - expected if judge.is_loss else expected - scores
        assert trace.regret[run] == pytest.approx(regret, abs=1e-9)
        learnt = trace.learnt(run)
        again = replay(RANKER, trace.logs[run])
        for state in (learnt.state, again.state):
            for own, theirs in zip(state, ranker.state, strict=True):
                assert np.array_equal(own, theirs)
        assert trace.logs[run].rounds.tolist() == list(range(sum(CUTS)))
        assert (learnt.next_round, learnt.seed, learnt.run) == (sum(CUTS), SEED, run)
        assert not np.isnan(trace.logs[run].values.reshape(-1, N)[:, :3]).any()
        assert np.isnan(trace.logs[run].values.reshape(-1, N)[:, 3]).all()
    regret = trace.regret[:, -1] / sum(CUTS)
    assert trace.average_regret.mean == pytest.approx(statistics.mean(regret))
    assert trace.average_regret.error == pytest.approx(abs(regret[0] - regret[1]) / 2)


def test_points_of_a_later_part_are_those_of_the_whole_game_after_it():
    first = play(RANKER, WORLD, rounds=12, n_points=5)
    later = play(RANKER, WORLD, rounds=18, n_points=6, start=first)
    whole = play(RANKER, WORLD, rounds=30, n_points=6)
    after = [t for t in whole.rounds.tolist() if t > 12]
    assert later.rounds.tolist() == [*first.rounds.tolist(), *after]
    assert later.scores[0, -len(after) :].tolist() == whole.scores[0, -len(after) :].tolist()


def test_what_a_noisy_reveal_shows_depends_on_the_round():
    """Each round has flips of its own, those that the reveal draws for its seed and run."""
    reveal = Noisy(Top(2), noise=0.4)
    trace = play(RANKER, WORLD, reveal=reveal, rounds=25, seed=SEED, runs=2, record=True)
    for run, log in enumerate(trace.logs):
        ranker = RANKER.fresh(seed=SEED, run=run)
        for t in range(25):
            relevance = WORLD.relevance(t, seed=SEED, run=run)
            impression = ranker.rank(round=t)
            seen = reveal(relevance, impression.ranking, round=t, seed=SEED, run=run)
            assert np.array_equal(log.pair(t)[1].values, seen.values, equal_nan=True), t
            ranker.update(impression, seen)
    assert not np.array_equal(trace.logs[0].values, trace.logs[1].values, equal_nan=True)
