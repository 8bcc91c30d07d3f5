"""keyhole compare, as it is printed and written, and on lists whose documents are shuffled."""

import csv
import json
from statistics import fmean

import numpy as np
import pytest

from keyhole.data.letor.reader import read_letor
from keyhole.game.play import play
from keyhole.lab.compare import as_record, contest_of_lists, play_contest
from keyhole.lab.kinds.lists import ListSpec, how_to_read
from keyhole.rankers import ranker as named_ranker
from keyhole.reveals.top import Top
from keyhole.worlds.queries import Queries
from tests.lab.plain_sums import close
from tests.lab.running import run, said

pytestmark = pytest.mark.interpreted


def test_the_table_has_the_numbers_of_the_record(tmp_path, monkeypatch):
    monkeypatch.setattr("keyhole.cli.compare.save_comparison", lambda *_: None)  # takes longest
    given = [
        "compare", "--rankers", "random,epsilon-greedy", "--against", "fixed", "--items", 4,
        "--top", 2, "--rounds", 40, "--runs", 3, "--seed", 5, "--set", "fixed.ranking=[0,1,2,3]",
    ]  # fmt: skip
    printed = run(*given, "--out", tmp_path).stdout
    record = json.loads((tmp_path / "results.json").read_text())
    rows = [
        [cell.strip() for cell in line.strip("│").split("│")]
        for line in printed.splitlines() if line.startswith("│")
    ]  # fmt: skip
    expected = []
    for row in record["rankers"]:
        low, high = row["worse_by_interval"] or (0.0, 0.0)
        expected.append(
            [
                row["ranker"],
                f"{row['average_regret']:.4f} ± {row['average_regret_error']:.4f}",
                f"{low:.4f} to {high:.4f}" if row["standing"] not in (None, "best") else "",
                row["standing"] or "sees top(1)",
            ]
        )
    assert rows == expected
    for sentence in record["verdict"]:
        assert f"{sentence}." in " ".join(printed.split())
    with (tmp_path / "curves.csv").open() as file:
        table = list(csv.DictReader(file))
    flat = [
        (row["ranker"] + ("" if row["is_judged"] else ", top(1)"), x, y, error)
        for row in record["rankers"]
        for (x, y), error in zip(row["curve"], row["curve_error"], strict=True)
    ]
    assert [
        (row["curve"], int(row["round"]), float(row["average_regret"]),
         float(row["standard_error"])) for row in table
    ] == flat  # fmt: skip
    assert {row["runs"] for row in table} == {"3"}


def lists_file(path, seed=0, n_lists=9, length=5):
    """Write lists whose documents all look alike but differ in their labels: order tells all."""
    numbers = np.random.default_rng(seed)
    rows = []
    for query in range(n_lists):
        labels = sorted(numbers.integers(0, 4, size=length), reverse=True)
        labels[0] = 3
        rows += [f"{label} qid:{query} 1:1 2:{numbers.random():.3f}" for label in labels]
    path.write_text("\n".join(rows) + "\n")
    return path


@pytest.mark.parametrize("seed", [0, 4])
def test_documents_are_shuffled_by_the_seed(tmp_path, seed):
    """The same game by hand, on documents shuffled by the seed, and by another: only one is it."""
    path = lists_file(tmp_path / "train.txt")
    given = ["compare", path, "--rankers", "random-lists,contextual-rtopk", "--rounds", 25,
             "--runs", 2, "--shuffle", "--measure", "DCG@2", "--seed", seed, "--json"]  # fmt: skip
    record = json.loads(run(*given).stdout)
    assert record["spec"]["world_options"] == {"document_seed": seed}
    queries = read_letor([path], **how_to_read())

    def by_hand(document_seed):
        world = Queries(
            queries.features, queries.relevance, queries.starts, document_seed=document_seed
        )
        ranker = named_ranker("random-lists", n_features=2, n_items=5, seed=seed)
        trace = play(ranker, world, measure="DCG@2", reveal=Top(1), rounds=25, seed=seed, runs=2)
        return (trace.scores[:, -1] / 25).tolist()

    row = next(row for row in record["rankers"] if row["ranker"] == "random-lists")
    assert row["by_run"] == by_hand(seed)
    assert row["by_run"] != by_hand(seed + 1)
    assert row["average_regret"] is None
    assert row["by_run"] == [pytest.approx(score) for score in row["by_run"]]
    assert close(row["average_score"], fmean(row["by_run"]))


def test_lists_have_the_scores_of_their_runs_and_costs_are_their_negatives(tmp_path):
    path = lists_file(tmp_path / "train.txt")
    spec = ListSpec(world=[str(path)], measure="NDCG@3", rounds=20, runs=3, seed=2, top=1, points=5)
    comparison = play_contest(contest_of_lists(spec, ["random-lists", "contextual-rtopk"], [], {}))
    record = as_record(comparison)
    for row, result in zip(record["rankers"], comparison.results, strict=True):
        scores = result.trace.scores
        assert close(row["by_run"], (scores[:, -1] / 20).tolist())
        columns = (scores / result.trace.rounds).T.tolist()
        assert close([y for _, y in row["curve"]], [fmean(each) for each in columns])
        assert row["average_regret"] is None
    first, second = (fmean(row["by_run"]) for row in record["rankers"])
    assert first > second
    assert close(record["rankers"][1]["worse_by"], first - second)
    assert record["rankers"][0]["settings"]["name"] == record["rankers"][0]["ranker"]


@pytest.mark.parametrize(
    ("wrong", "sentence", "mended"),
    [
        (["--rankers", "random,,pege"], "different names", ["--rankers", "random, pege"]),
        (["--rankers", "random,random"], "different names", ["--rankers", "random,pege"]),
        (["--rankers", "fixed"], "told the best ranking",
         ["--rankers", "fixed", "--set", "fixed.ranking=[1,0,2]"]),
        (["--rankers", "ftpl"], "needs the relevance", ["--rankers", "ftpl", "--top", 3]),
        (["--runs", 0], "runs must be", ["--runs", 1]),
        (["--rankers", "random", "--set", "random.k=9"], "one of (none), got 'k'",
         ["--rankers", "random"]),
        (["--top", 4], "top must be", ["--top", 3]),
        (["--shuffle"], "for query-document lists alone", []),
        (["--world", "graded", "--items", 3], "for fixed lists alone", ["--world", "flips"]),
    ],
)  # fmt: skip
def test_what_cannot_be_compared_can_be_when_it_is_mended(wrong, sentence, mended):
    given = ["compare", "--items", 3, "--rounds", 5, "--runs", 2]
    given += [] if "--rankers" in wrong else ["--rankers", "random"]
    refused = run(*given, *wrong, code=2)
    assert sentence in said(refused)
    own = [] if "--rankers" in mended else ["--rankers", "random"]
    names = given[: given.index("--rankers")] if "--rankers" in given else given
    assert " is " in said(run(*names, *own, *mended))
