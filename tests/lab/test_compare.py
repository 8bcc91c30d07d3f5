"""Comparisons: who takes part, on which users, and the verdict."""

import csv
import json

import numpy as np
import pytest
from scipy.stats import t as student
from typer.testing import CliRunner

from keyhole.base.errors import InvalidInput
from keyhole.cli.app import app
from keyhole.experiment.description import Experiment
from keyhole.game.play import play
from keyhole.lab.compare import contest
from keyhole.lab.paired import judge_pairs, student_quantile
from tests.papers.test_lists import write_letor


def run(*args):
    return CliRunner().invoke(app, ["compare", *map(str, args)])


# --------------------------------------------------------------------------- the verdict


@pytest.mark.parametrize("n_free", [1, 2, 3, 4, 9, 10, 19, 100])
@pytest.mark.parametrize("outside", [0.3, 0.05, 0.05 / 66])
def test_quantiles_are_those_of_student(n_free, outside):
    assert student_quantile(n_free, outside) == pytest.approx(student.isf(outside / 2, n_free))


def test_the_best_and_who_cannot_be_told_apart_from_it():
    users = np.array([10.0, -20.0, 5.0, 0.0, 7.0])  # what the runs have in common
    costs = {
        "far": users + np.array([3.0, 3.1, 2.9, 3.0, 3.2]),
        "best": users + np.array([1.0, 1.1, 0.9, 1.0, 1.0]),
        "near": users + np.array([1.1, 1.0, 1.0, 0.9, 1.1]),
    }
    verdict = judge_pairs(costs)
    assert list(verdict.gaps) == ["best", "near", "far"]
    assert (verdict.best, verdict.named("worse")) == ("best", ["far"])
    assert verdict.named("not told apart") == ["near"]
    assert (verdict.n_pairs, verdict.n_runs) == (3, 5)
    gap = verdict.gaps["far"]
    differences = costs["far"] - costs["best"]
    width = student.isf(0.05 / 3 / 2, 4) * differences.std(ddof=1) / np.sqrt(5)
    assert [gap.mean, gap.low, gap.high] == pytest.approx(
        [differences.mean(), differences.mean() - width, differences.mean() + width]
    )


def _share_of_false_verdicts(confidence):
    """Return how often one of four equal rankers is said to be worse than another."""
    noise = np.random.default_rng(7).normal(size=(1000, 4, 6))
    verdicts = (judge_pairs(dict(zip("abcd", each, strict=True)), confidence) for each in noise)
    return np.mean([bool(verdict.named("worse")) for verdict in verdicts])


def test_equal_rankers_are_told_apart_as_seldom_as_it_says():
    # Of 1,000 shares of at most 5 %, three standard errors of a share are .021.
    assert _share_of_false_verdicts(0.95) < 0.05 + 0.021
    assert _share_of_false_verdicts(1.0 - 6 * 0.05) > 0.05 + 0.021  # without Bonferroni


def test_one_run_tells_nothing():
    verdict = judge_pairs({"a": np.array([1.0]), "b": np.array([9.0])})
    assert verdict.gaps["b"].standing == "one run tells nothing"
    assert np.isnan(verdict.gaps["b"].low)


# --------------------------------------------------------------------------- who takes part


def test_every_ranker_that_fits_takes_part_and_the_others_say_why():
    games = contest(Experiment(items=6, top=1, rounds=100))
    names = {each.name for each in games.contenders}
    assert {"keystone", "rtopk", "random"} <= names
    assert "FTPL needs the relevance of the first 6" in games.left_out["ftpl"]
    assert "told the best ranking" in games.left_out["fixed"]
    assert not any(name.startswith("contextual") for name in [*names, *games.left_out])
    lists = contest(Experiment(world="graded", top=1, rounds=100), None, ["listnet"])
    assert {"contextual-rtopk", "random-lists"} <= {each.name for each in lists.contenders}
    assert [each.name for each in lists.contenders if not each.is_judged] == ["listnet"]
    assert "listnet" not in lists.left_out
    assert "needs the relevance of the first 20" in lists.left_out["slam"]


def test_a_ranker_that_is_asked_for_and_does_not_fit_is_an_error():
    with pytest.raises(InvalidInput, match="told the best ranking"):
        contest(Experiment(items=6, top=1), ["fixed"])


def test_runs_are_those_of_play_on_the_same_users():
    spec = Experiment(items=20, top=1, rounds=500, runs=3, seed=4)
    comparison = contest(spec, ["random", "rtopk"]).play()
    assert [result.contender.name for result in comparison.results] == ["rtopk", "random"]
    for result in comparison.results:
        alone = play(
            result.contender.built.ranker, comparison.contest.built.world, rounds=500, seed=4,
            runs=3, measure="DCG", reveal=result.contender.built.reveal,
        )  # fmt: skip
        assert np.array_equal(alone.scores, result.trace.scores)
    best, worst = comparison.results
    assert np.array_equal(best.trace.best, worst.trace.best)  # they met the same users
    assert np.allclose(worst.costs - best.costs, worst.regrets - best.regrets)


# --------------------------------------------------------------------------- the command


def test_compare_writes_figure_table_and_verdict(tmp_path):
    out = tmp_path / "out"
    said = run(
        "--items", 20, "--rankers", "rtopk,random", "--against", "ftpl", "--rounds", 3000,
        "--runs", 3, "--set", "rtopk.n_blocks=100", "--out", out,
    )  # fmt: skip
    assert said.exit_code == 0, said.stderr
    assert "rtopk is best in the mean of 3 runs, and better than every other" in said.stdout
    assert "ftpl sees more (full) and is not judged: ftpl is better, by" in said.stdout
    assert sorted(path.name for path in out.iterdir()) == [
        "compare.png", "compare.svg", "curves.csv", "results.json",
    ]  # fmt: skip
    record = json.loads((out / "results.json").read_text())
    assert [row["ranker"] for row in record["rankers"]] == ["ftpl", "rtopk", "random"]
    assert (record["best"], record["worse"]) == ("rtopk", ["random"])
    assert record["rankers"][1]["settings"]["n_blocks"] == 100
    random = record["rankers"][2]
    assert len(random["by_run"]) == 3
    low, high = random["worse_by_interval"]
    assert 0 < low < random["worse_by"] < high
    with (out / "curves.csv").open() as file:
        assert {row["curve"] for row in csv.DictReader(file)} == {"ftpl, full", "rtopk", "random"}


def test_lists_are_sorted_by_the_measure_itself(tmp_path):
    path = write_letor(tmp_path / "train.txt", 1)
    said = run(
        path, "--rankers", "random-lists,contextual-rtopk", "--rounds", 3000, "--runs", 2,
        "--shuffle", "--json",
    )  # fmt: skip
    assert said.exit_code == 0, said.stderr
    record = json.loads(said.stdout)
    assert [row["ranker"] for row in record["rankers"]] == ["contextual-rtopk", "random-lists"]
    scores = [row["average_score"] for row in record["rankers"]]
    assert scores[0] > scores[1] + 0.1
    assert record["rankers"][0]["average_regret"] is None
    assert record["spec"]["world_options"] == {"document_seed": 0}


@pytest.mark.parametrize(
    ("args", "sentence"),
    [
        (["--rankers", "rtopk,,random"], "--rankers must be different names"),
        (["--rankers", "rtopk,rtopk"], "--rankers must be different names"),
        (["--rankers", "rtopc"], "Did you mean 'rtopk'"),
        (["--shuffle"], "for query-document lists alone"),
        (["--world", "graded", "--shuffle"], "need FILEs"),
        (["a.txt", "--world", "flips"], "--world must not be given with FILEs"),
        (["--world", "graded", "--items", "3"], "for fixed lists alone"),
        (["--runs", "0"], "runs must be"),
        (["--set", "rtopc.k=1"], "Did you mean"),
        (["--rankers", "hedge"], "`n_items` of Hedge"),
    ],
)
def test_what_cannot_be_compared_is_said_in_a_sentence(args, sentence):
    said = run(*args)
    assert said.exit_code == 2
    assert sentence in said.stderr
