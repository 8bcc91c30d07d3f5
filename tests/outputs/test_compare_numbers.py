"""What ``keyhole compare`` tells: means, paired intervals of Student and sentences, by hand."""

import csv
import json
import math
import time
from typing import Any

import numpy as np
import pytest
from scipy.stats import t as student, ttest_1samp

import keyhole
from keyhole import Flips, Top
from keyhole.base.errors import InvalidInput
from keyhole.lab.price import price_over, ratio_interval
from keyhole.reveals.full import Full
from tests.lab.running import run
from tests.outputs.by_hand import checkpoints, mean_and_error, play_by_hand
from tests.outputs.inputs import write_lists
from tests.outputs.test_learn_numbers import learn_by_hand, ndcg_2, read, world_of
from tests.unit.references import dcg, sum_loss

pytestmark = pytest.mark.interpreted


def precision_2(relevance, order):
    return float(np.asarray(relevance)[order][:2].sum())


def interval(differences, n_pairs):
    """Return the mean of paired differences, and the interval that holds for all pairs at once."""
    mean, error = mean_and_error(differences)
    reach = student.isf(0.05 / n_pairs / 2, len(differences) - 1) * error
    return mean, mean - reach, mean + reach


def check_standings(told, costs):
    """Compare who is best, and how far the others are from it, with what each cost in each run."""
    order = sorted(costs, key=lambda name: np.mean(costs[name]))
    n_pairs = math.comb(len(costs), 2)
    assert (told["best"], told["n_pairs"], told["confidence"]) == (order[0], n_pairs, 0.95)
    rows = {row["ranker"]: row for row in told["rankers"] if row["is_judged"]}
    assert list(rows) == order
    assert rows[order[0]]["worse_by_interval"] == [0.0, 0.0]
    assert rows[order[0]]["worse_by"] == 0.0
    apart = {}
    for name in order[1:]:
        mean, low, high = interval(np.subtract(costs[name], costs[order[0]]), n_pairs)
        assert rows[name]["worse_by"] == pytest.approx(mean, rel=1e-9, abs=1e-12)
        assert rows[name]["worse_by_interval"] == pytest.approx([low, high], rel=1e-6)
        apart[name] = low > 0.0
        assert rows[name]["standing"] == ("worse" if low > 0.0 else "not told apart")
    assert told["worse"] == [name for name, is_worse in apart.items() if is_worse]
    assert told["not_told_apart"] == [name for name, is_worse in apart.items() if not is_worse]
    return order, apart


def check_words(told, costs, beside):
    """Compare the numbers of the verdict's sentences with intervals made again."""
    order, apart = check_standings(told, costs)
    n_runs, n_pairs = len(costs[order[0]]), math.comb(len(costs), 2)
    said = " | ".join(told["verdict"])
    assert f"{order[0]} is best in the mean of {n_runs} runs" in said
    if all(apart.values()):
        mean, low, high = interval(np.subtract(costs[order[1]], costs[order[0]]), n_pairs)
        assert f"the next, by {mean:.4f} ({low:.4f} to {high:.4f})" in said
    if n_pairs > 1:
        assert f"All {n_pairs} differences between two rankers lie in their intervals" in said
    assert "with 95% confidence" in said
    for name, cost in beside.items():
        ahead = np.mean(cost) < np.mean(costs[order[0]])
        gap = np.subtract(costs[order[0]], cost) * (1 if ahead else -1)
        mean, low, high = interval(gap, 1)
        how = "better" if low > 0.0 else "better in the mean, but not told apart"
        first = name if ahead else order[0]
        assert f"{first} is {how}, by {mean:.4f} ({low:.4f} to {high:.4f})" in said


@pytest.mark.parametrize(
    ("measure", "value", "runs", "seed"),
    [("Precision@2", precision_2, 6, 3), ("SumLoss", sum_loss, 3, 8)],
)
def test_games_are_compared_by_regret_run_by_run(measure, value, runs, seed, tmp_path):
    rounds, at, is_loss = 60, checkpoints(60), measure == "SumLoss"
    began = time.perf_counter()
    told = json.loads(run(
        "compare", "--rankers", "epsilon-greedy,random,thompson", "--items", 4, "--rounds", rounds,
        "--top", 2, "--runs", runs, "--seed", seed, "--measure", measure, "--against", "ftpl",
        "--set", "epsilon-greedy.scale=0.5", "--set", "world.flip=0.2", "--out", tmp_path, "--json",
    ).stdout)  # fmt: skip
    took = time.perf_counter() - began
    world, curves = Flips(4, flip=0.2), {}
    costs: dict[str, Any] = {}
    beside: dict[str, Any] = {}
    for row in told["rankers"]:
        name = row["ranker"]
        options = {"scale": 0.5} if name == "epsilon-greedy" else {}
        settings = {"n_items": 4, "horizon": rounds, "k": 1 if name == "ftpl" else 2,
                    "max_grade": 1.0, "seed": seed, **options}  # fmt: skip
        assert {key: row["settings"][key] for key in settings} == settings
        assert row["settings"]["run"] == 0
        assert row["settings"]["measure"]["cutoff"] == (None if is_loss else 2)
        ranker = keyhole.ranker(name, measure=measure, **settings)
        reveal = Full() if name == "ftpl" else Top(2)
        assert row["sees"] == ("full" if name == "ftpl" else "top(2)")
        games = [
            play_by_hand(ranker, world, reveal, value, rounds, seed, number, number)
            for number in range(runs)
        ]
        scores = np.array([game.shown.mean() for game in games])
        best = np.array([game.best(is_loss) for game in games])
        totals = np.cumsum([game.shown for game in games], axis=1)
        regrets = (totals - best if is_loss else best - totals) / np.array(at)
        (costs if row["is_judged"] else beside)[name] = scores if is_loss else -scores
        for key, values in (("average_regret", regrets[:, -1]), ("average_score", scores)):
            mean, error = mean_and_error(values)
            assert row[key] == pytest.approx(mean, rel=1e-9, abs=1e-12)
            assert row[f"{key}_error"] == pytest.approx(error, rel=1e-9)
        assert row["by_run"] == pytest.approx(regrets[:, -1], abs=1e-12)
        curves[name] = [mean_and_error(column) for column in regrets.T]
        assert [t for t, _ in row["curve"]] == at
        assert [y for _, y in row["curve"]] == pytest.approx(
            [m for m, _ in curves[name]], abs=1e-12
        )
        assert row["curve_error"] == pytest.approx([e for _, e in curves[name]], abs=1e-12)
        assert 0.0 < row["seconds"] < took
    check_words(told, costs, beside)
    rows = list(csv.DictReader((tmp_path / "curves.csv").read_text().splitlines()))
    found = [pair for row in told["rankers"] for pair in curves[row["ranker"]]]
    assert [int(row["round"]) for row in rows] == at * len(curves)
    means, errors = ([pair[part] for pair in found] for part in (0, 1))
    assert [float(row["average_regret"]) for row in rows] == pytest.approx(means, abs=1e-12)
    assert [float(row["standard_error"]) for row in rows] == pytest.approx(errors, abs=1e-12)
    assert {row["runs"] for row in rows} == {str(runs)}


def test_lists_are_compared_by_score_run_by_run(tmp_path):
    """The best ranking is not known: scores are compared, of which more is better."""
    path, rounds, runs, seed = tmp_path / "train.txt", 30, 3, 5
    write_lists(path, 4)
    told = json.loads(run(
        "compare", path, "--rankers", "listnet,perceptron", "--rounds", rounds, "--top", 5,
        "--measure", "NDCG@2", "--runs", runs, "--seed", seed, "--permute-at", 0.5, "--json",
    ).stdout)  # fmt: skip
    lists, _ = read(path)
    world, costs, at = world_of(lists, permute_at=15), {}, checkpoints(rounds)
    for row in told["rankers"]:
        options = {} if row["ranker"] == "perceptron" else {
            "row_norm": float(np.sqrt((world.features**2).sum(axis=1)).max())
        }  # fmt: skip
        ranker = keyhole.ranker(row["ranker"], n_features=3, n_items=5, seed=seed, **options)
        games = [
            learn_by_hand(ranker, world, Full(), ndcg_2, rounds, seed, number)[0]
            for number in range(runs)
        ]
        averages = np.cumsum(games, axis=1) / np.array(at)
        mean, error = mean_and_error(averages[:, -1])
        assert row["average_score"] == pytest.approx(mean, rel=1e-9)
        assert row["average_score_error"] == pytest.approx(error, rel=1e-6)
        assert (row["average_regret"], row["average_regret_error"]) == (None, None)
        assert row["by_run"] == pytest.approx(averages[:, -1], rel=1e-9)
        assert [y for _, y in row["curve"]] == pytest.approx(averages.mean(axis=0), rel=1e-9)
        errors = [mean_and_error(column)[1] for column in averages.T]
        assert row["curve_error"] == pytest.approx(errors, rel=1e-6, abs=1e-9)
        costs[row["ranker"]] = -averages[:, -1]
    check_words(told, costs, {})


def test_sessions_show_a_comparison():
    """A frame, a description and curves, of an experiment as a mapping with fields over it."""
    rounds, runs, seed, at = 60, 4, 3, checkpoints(60)
    comparison = keyhole.compare(
        ["random", "epsilon-greedy"], {"items": 4, "top": 2, "measure": "SumLoss", "runs": 9},
        rounds=rounds, runs=runs, seed=seed,
    )  # fmt: skip
    rows = comparison.to_frame().to_dict("records")
    axes, costs = comparison.plot(), {}
    for row, line, band in zip(rows, axes.lines, axes.collections, strict=True):
        ranker = keyhole.ranker(
            row["ranker"], n_items=4, horizon=rounds, k=2, measure="SumLoss", seed=seed
        )
        games = [
            play_by_hand(ranker, Flips(4), Top(2), sum_loss, rounds, seed, number, number)
            for number in range(runs)
        ]
        costs[row["ranker"]] = np.array([game.shown.mean() for game in games])
        totals = np.cumsum([game.shown for game in games], axis=1)
        regrets = (totals - np.array([game.best(True) for game in games])) / np.array(at)
        for key, values in (
            ("average_regret", regrets[:, -1]), ("average_score", costs[row["ranker"]])
        ):  # fmt: skip
            assert [row[key], row[f"{key}_error"]] == pytest.approx(mean_and_error(values))
        drawn = [int(t) for t in line.get_xdata()]
        points = [mean_and_error(regrets[:, at.index(t)]) for t in drawn]
        assert drawn[-1] == rounds
        assert len(drawn) >= len(at) - 1
        assert np.asarray(line.get_ydata(), float) == pytest.approx([mean for mean, _ in points])
        ends = {round(y, 9) for path in band.get_paths() for y in path.vertices[:, 1]}
        assert ends == {round(m + s * 2.0 * error, 9) for m, error in points for s in (-1.0, 1.0)}
        assert (row["sees"], row["is_judged"]) == ("top(2)", True)
        assert row["seconds"] > 0.0
    order, apart = check_standings(comparison.as_dict(), costs)
    assert [row["ranker"] for row in rows] == order
    assert rows[1]["worse_by"] == pytest.approx(costs[order[1]].mean() - costs[order[0]].mean())
    assert rows[1]["standing"] == ("worse" if apart[order[1]] else "not told apart")
    shown = dict(comparison._described().rows)
    assert (shown["rounds"], shown["runs"]) == (str(rounds), str(runs))
    assert (shown["best"], shown["measure"]) == (order[0], "SumLoss")
    again = keyhole.compare(order, comparison.contest.built.experiment.to_json())
    assert again.verdict == comparison.verdict


def test_who_needs_more_than_is_shown_says_how_much():
    told = json.loads(run("compare", "--items", 3, "--rounds", 4, "--top", 2, "--json").stdout)
    for name, title in (("ftpl", "FTPL"), ("hedge", "Hedge"), ("onlinerank", "OnlineRank")):
        assert told["left_out"][name] == (
            f"{title} needs the relevance of the first 3 of 3 positions, but top(2) shows only 2."
        )


def ratio_by_search(part, whole, outside):
    """Return the ratios at which Student's test begins to tell part - ratio * whole from 0."""

    def is_apart(ratio):
        differences = np.subtract(part, ratio * np.asarray(whole))
        return 2 * student.sf(abs(ttest_1samp(differences, 0.0).statistic), len(part) - 1) < outside

    middle, ends = np.mean(part) / np.mean(whole), []
    for far in (-50.0, 50.0):
        inside, beyond = middle, middle + far
        assert is_apart(beyond)
        for _ in range(60):
            half = (inside + beyond) / 2
            inside, beyond = (inside, half) if is_apart(half) else (half, beyond)
        ends.append(inside)
    return ends


def test_prices_are_ratios_of_regrets_run_by_run():
    """Regret of who sees one item over that of who sees all, and what is said of it."""
    asked = ["compare", "--rankers", "epsilon-greedy,random", "--items", 4, "--rounds", 40,
             "--runs", 20, "--seed", 3, "--against", "leader", "--price"]  # fmt: skip
    told = json.loads(run(*asked, "--json").stdout)
    by_run = {row["ranker"]: np.array(row["by_run"]) for row in told["rankers"]}
    rows = {row["ranker"]: row for row in told["rankers"]}
    sees_all = {name: by_run[name] for name, row in rows.items() if row["sees"] == "full"}
    assert set(sees_all) == {"ftpl", "adaptive-ftpl", "leader", "onlinerank", "hedge"}
    assert not any(rows[name]["is_judged"] or rows[name]["price"] for name in sees_all)
    best = min(sees_all, key=lambda name: sees_all[name].mean())
    ranker = keyhole.ranker("epsilon-greedy", n_items=4, horizon=40, k=4, seed=3)
    games = [
        play_by_hand(ranker, Flips(4), Top(4), dcg, 40, 3, number, number) for number in range(20)
    ]
    whole = np.array([(game.best(False)[-1] - game.shown.sum()) / 40 for game in games])
    said = " | ".join(told["verdict"])
    outside = 0.05 / (2 * len(sees_all) + 2)
    for name, key, references in (
        ("epsilon-greedy", "price", sees_all[best]), ("random", "price", sees_all[best]),
        ("epsilon-greedy", "price_over_itself", whole),
    ):  # fmt: skip
        price, own = rows[name][key], by_run[name]
        assert price["over"] == (best if key == "price" else name)
        assert price["ratio"] == pytest.approx(own.mean() / references.mean())
        assert price["more"] == pytest.approx(own.mean() - references.mean())
        low, high = ratio_by_search(own, references, outside)
        assert price["interval"] == pytest.approx([low, high], rel=1e-6)
        assert f"{price['ratio']:.2f} ({low:.2f} to {high:.2f})" in said
    assert rows["random"]["price_over_itself"]["ratio"] == pytest.approx(1.0)
    assert f"times as much as {best}, the best that sees all" in said
    printed = " ".join(run(*asked).stdout.split())
    assert "times who sees all" in printed
    assert printed.count(f"{rows['random']['price']['ratio']:.2f} (") >= 2  # in table and sentence


def test_a_price_that_would_say_nothing_is_not_told():
    regrets = np.array([3.0, 4.0, 5.0])
    unsure = price_over(regrets, {"a": np.array([-1.0, 0.5, 2.0])}, 0.05)
    assert unsure is not None
    assert (unsure.ratio, unsure.interval, str(unsure)) == (8.0, None, "8.00")
    ahead = price_over(regrets, {"a": np.ones(3), "b": -np.ones(3)}, 0.05)
    assert ahead is not None
    assert (ahead.over, ahead.more, ahead.ratio, str(ahead)) == ("b", 5.0, None, "no ratio")
    assert price_over(regrets, {}, 0.05) is None
    assert price_over(regrets, {"a": np.full(3, np.nan)}, 0.05) is None
    with pytest.raises(InvalidInput, match="`price` must be left out for query-document lists"):
        keyhole.compare(["listnet"], world="graded", rounds=5, runs=2, price=True)


def test_an_interval_of_a_ratio_covers_it_as_often_as_it_says():
    """2,000 ratios of 2: the share outside is 5 %, and two standard errors of it are .01."""
    numbers = np.random.default_rng(3)
    missed = 0
    for _ in range(2000):
        whole = numbers.normal(1.0, 0.5, 8)
        low, high = ratio_interval(2.0 * whole + numbers.normal(0.0, 1.0, 8), whole, 0.05) or (0, 9)
        missed += not low <= 2.0 <= high
    assert 0.04 <= missed / 2000 <= 0.06
