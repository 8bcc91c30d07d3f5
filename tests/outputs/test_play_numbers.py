"""What ``keyhole play`` tells, added up by hand over all rankings of the list."""

import csv
import io
import json
import math
import time
from typing import Any, NamedTuple

import numpy as np
import pytest

import keyhole
from keyhole import Flips, Top
from keyhole.reveals.full import Full
from keyhole.worlds.table import Ratings
from tests.lab.running import run
from tests.outputs.by_hand import (
    Run,
    checkpoints,
    mean_and_error,
    play_by_hand,
    slope_and_interval,
)
from tests.outputs.inputs import ITEMS, write_people
from tests.unit.references import average_precision, dcg, ndcg, sum_loss

pytestmark = pytest.mark.interpreted


class Case(NamedTuple):
    """A game: how it is asked for, and what it is made of."""

    given: list[Any]
    ranker: str
    options: dict[str, Any]
    world: Any
    reveal: Any
    value: Any
    rounds: int
    seed: int
    runs: int
    is_loss: bool = False
    final: bool = False
    same_users: bool = False


def people(folder):
    path = folder / "people.csv"
    write_people(path)
    rows = list(csv.reader(path.read_text().splitlines()))[1:]
    return path, np.array(rows, float)


def case_of(name, folder):
    path, table = people(folder)
    flips = Flips(4, n_relevant=2, flip=0.3)
    asked = ["--items", 4, "--set", "world.flip=0.3", "--set", "world.n_relevant=2"]
    if name == "gain":
        given = ["--ranker", "epsilon-greedy", "--set", "ranker.scale=0.5", "--rounds", 300,
                 "--runs", 3, "--seed", 4, "--top", 1, *asked]  # fmt: skip
        options: dict[str, Any] = {"scale": 0.5, "k": 1}
        return Case(given, "epsilon-greedy", options, flips, Top(1), dcg, 300, 4, 3)
    if name == "loss":
        given = ["--ranker", "epsilon-greedy", "--measure", "SumLoss", "--rounds", 50, "--top", 2,
                 "--runs", 2, "--seed", 9, "--comparator", "final", *asked]  # fmt: skip
        options = {"k": 2, "measure": "SumLoss"}
        return Case(
            given, "epsilon-greedy", options, flips, Top(2), sum_loss, 50, 9, 2, is_loss=True,
            final=True,
        )  # fmt: skip
    if name == "grades":
        given = ["--ranker", "epsilon-greedy", "--world", path, "--measure", "NDCG@2", "--top", 2,
                 "--rounds", 45, "--runs", 3, "--seed", 1, "--same-users"]  # fmt: skip
        options = {"k": 2, "max_grade": 3.0}
        value = lambda r, order: ndcg(r, order, 2)  # noqa: E731
        world = Ratings(table, item_names=ITEMS)
        return Case(
            given, "epsilon-greedy", options, world, Top(2), value, 45, 1, 3, same_users=True
        )
    given = ["--ranker", "hedge", "--measure", "AP", "--rounds", 30, "--seed", 6, "--top", 4,
             *asked]  # fmt: skip
    options = {"measure": "AP", "k": 4}
    return Case(given, "hedge", options, flips, Full(), average_precision, 30, 6, 1)


def games_of(case: Case) -> list[Run]:
    ranker = keyhole.ranker(
        case.ranker, n_items=case.world.n_items, horizon=case.rounds, seed=case.seed, **case.options
    )
    return [
        play_by_hand(
            ranker, case.world, case.reveal, case.value, case.rounds, case.seed, run,
            0 if case.same_users else run,
        )
        for run in range(case.runs)
    ]  # fmt: skip


def regrets_of(case: Case, games: list[Run]) -> np.ndarray:
    """Return the total regret of each run after each round."""
    sign = 1.0 if case.is_loss else -1.0
    best = np.array([game.best(case.is_loss, final=case.final) for game in games])
    return sign * (np.cumsum([game.shown for game in games], axis=1) - best)


@pytest.mark.parametrize("name", ["gain", "loss", "grades", "all seen"])
def test_a_game_is_added_up_over_all_rankings(name, tmp_path):
    case = case_of(name, tmp_path)
    games = games_of(case)
    began = time.perf_counter()
    out = tmp_path / "out"
    told = json.loads(run("play", *case.given, "--out", out, "--json").stdout)
    took = time.perf_counter() - began
    regrets, at = regrets_of(case, games), checkpoints(case.rounds)
    averages = regrets[:, [t - 1 for t in at]] / at
    scores = [game.shown.mean() for game in games]
    best = [game.best(case.is_loss, final=case.final)[-1] / case.rounds for game in games]
    for key, values in (("average_regret", averages[:, -1]), ("average_score", scores)):
        mean, error = mean_and_error(values)
        assert told[key] == pytest.approx(mean, rel=1e-12, abs=1e-12)
        assert told[f"{key}_error"] == (None if error is None else pytest.approx(error, rel=1e-9))
    assert told["best_fixed_score"] == pytest.approx(np.mean(best), rel=1e-12)
    curve = [mean_and_error(column) for column in averages.T]
    assert [t for t, _ in told["curve"]] == at
    assert [y for _, y in told["curve"]] == pytest.approx([m for m, _ in curve], abs=1e-12)
    assert told["curve_error"] == [
        e if e is None else pytest.approx(e, abs=1e-12) for _, e in curve
    ]
    names = told["item_names"] or range(case.world.n_items)
    assert told["learnt_ranking"] == [names[item] for item in games[0].ranker.best()]
    assert told["item_names"] == (ITEMS if name == "grades" else None)
    assert told["is_loss"] == case.is_loss
    check_times(told, case, took)
    check_table(out / "curves.csv", f"{case.ranker}, {told['reveal']}", at, curve, case.runs)


def check_times(told, case, took):
    """Compare times with the clock outside: nothing else knows them."""
    assert 0.0 < told["seconds"] < took
    n_rounds = case.rounds * case.runs
    assert told["rounds_per_second"] == pytest.approx(n_rounds / told["seconds"], rel=1e-12)


def check_table(path, label, at, curve, runs):
    rows = list(csv.DictReader(io.StringIO(path.read_text())))
    assert [row["curve"] for row in rows] == [label] * len(at)
    assert [int(row["round"]) for row in rows] == at
    assert [float(row["average_regret"]) for row in rows] == pytest.approx([m for m, _ in curve])
    errors = [float(row["standard_error"]) if row["standard_error"] else None for row in rows]
    assert errors == [e if e is None else pytest.approx(e, abs=1e-12) for _, e in curve]
    assert {row["runs"] for row in rows} == {str(runs)}


def test_slopes_are_fitted_again():
    """Of regret in total, over the last nine tenths, with a bootstrap interval over the runs."""
    given = ["--ranker", "random", "--items", 3, "--rounds", 240, "--runs", 4, "--seed", 2,
             "--set", "world.flip=0.2", "--set", "world.n_relevant=1"]  # fmt: skip
    told = json.loads(run("play", *given, "--json").stdout)
    world = Flips(3, n_relevant=1, flip=0.2)
    case = Case(given, "random", {}, world, Top(1), dcg, 240, 2, 4)
    at = checkpoints(240)
    regrets = regrets_of(case, games_of(case))[:, [t - 1 for t in at]]
    value, low, high = slope_and_interval(at, regrets)
    assert told["slope"] == pytest.approx(value, rel=1e-9)
    assert told["slope_interval"] == pytest.approx([low, high], rel=1e-9)
    assert low < value < high


def test_rankers_beside_the_first_meet_the_same_users():
    """Each of them is what it would be alone, but for its time."""
    given = ["--items", 4, "--rounds", 40, "--runs", 2, "--seed", 5, "--top", 2]
    told = json.loads(
        run("play", "--ranker", "epsilon-greedy", *given, "--against", "random", "--against",
            "ftpl", "--set", "ranker.scale=0.3", "--json").stdout
    )  # fmt: skip
    assert [each["spec"]["ranker"] for each in told["against"]] == ["random", "ftpl"]
    assert [each["reveal"] for each in told["against"]] == ["top(2)", "full"]
    for each in told["against"]:
        name = each["spec"]["ranker"]
        reveal, options = (Full(), {"k": 4}) if name == "ftpl" else (Top(2), {"k": 2})
        case = Case(given, name, options, Flips(4), reveal, dcg, 40, 5, 2)
        games = games_of(case)
        at, regrets = checkpoints(40), regrets_of(case, games)
        averages = regrets / np.array(at)
        for key, values in (
            ("average_regret", averages[:, -1]),
            ("average_score", [game.shown.mean() for game in games]),
        ):
            mean, error = mean_and_error(values)
            assert each[key] == pytest.approx(mean, rel=1e-12)
            assert each[f"{key}_error"] == pytest.approx(error, rel=1e-9)
        best = [game.best(is_loss=False)[-1] / 40 for game in games]
        assert each["best_fixed_score"] == pytest.approx(np.mean(best), rel=1e-12)
        curve = [mean_and_error(column) for column in averages.T]
        assert [t for t, _ in each["curve"]] == at
        assert [y for _, y in each["curve"]] == pytest.approx([m for m, _ in curve])
        assert each["curve_error"] == pytest.approx([e for _, e in curve], abs=1e-12)
        assert each["learnt_ranking"] == [int(item) for item in games[0].ranker.best()]
        value, low, high = slope_and_interval(at, regrets)
        assert each["slope"] == pytest.approx(value, rel=1e-9)
        assert each["slope_interval"] == pytest.approx([low, high], rel=1e-9)
        n_rounds = 80
        assert each["rounds_per_second"] == pytest.approx(n_rounds / each["seconds"], rel=1e-12)


def test_people_are_counted(tmp_path):
    path, table = people(tmp_path)
    path.write_text(path.read_text() + "3,,1,0\n,1,2,\n")
    told = json.loads(
        run("play", "--ranker", "random", "--world", path, "--missing", "drop", "--rounds", 9,
            "--json").stdout
    )  # fmt: skip
    assert told["notes"] == [
        f"{len(table)} people, 4 items from {path}",
        "2 people left out: a rating is missing",
    ]


def test_frames_have_the_totals_of_each_run():
    world, rounds = Flips(4, n_relevant=2, flip=0.3), 45
    ranker = keyhole.ranker("epsilon-greedy", n_items=4, k=2, measure="SumLoss")
    trace = keyhole.play(ranker, world, rounds=rounds, runs=3, seed=6, measure="SumLoss")
    frame = trace.to_frame()
    games = [play_by_hand(ranker, world, Top(2), sum_loss, rounds, 6, run, run) for run in range(3)]
    assert frame["run"].tolist() == [run for run in range(3) for _ in range(rounds)]
    assert frame["round"].tolist() == list(range(1, rounds + 1)) * 3
    shown = np.concatenate([np.cumsum(game.shown) for game in games])
    best = np.concatenate([game.best(is_loss=True) for game in games])
    np.testing.assert_allclose(frame["score"], shown, rtol=1e-12)
    np.testing.assert_allclose(frame["best"], best, rtol=1e-12)
    np.testing.assert_allclose(frame["regret"], shown - best, atol=1e-9)
    assert all(math.isnan(value) for value in frame["greedy"])  # nobody asked
    told = trace._described()
    rows = dict(told.rows)
    assert (rows["rounds"], rows["runs"]) == ("45", "3")
    for name, totals in (("score", shown), ("regret", shown - best)):
        mean, error = mean_and_error(totals.reshape(3, rounds)[:, -1] / rounds)
        assert rows[f"average {name}"] == f"{mean:.4g} ± {error:.2g}"
    check_drawn(trace, (shown - best).reshape(3, rounds) / np.arange(1, rounds + 1))


def check_drawn(trace, averages):
    """Compare what is drawn with means over the runs, and two standard errors around them."""
    axes = trace.plot()
    (line,) = axes.lines
    at = [int(t) for t in line.get_xdata()]
    found = [mean_and_error(averages[:, t - 1]) for t in at]
    assert at[-1] == averages.shape[1]
    np.testing.assert_allclose(line.get_ydata(), [mean for mean, _ in found], rtol=1e-12)
    (band,) = axes.collections
    ends = {round(y, 9) for path in band.get_paths() for y in path.vertices[:, 1]}
    wanted = {round(mean + s * 2.0 * error, 9) for mean, error in found for s in (-1.0, 1.0)}
    assert ends == wanted
