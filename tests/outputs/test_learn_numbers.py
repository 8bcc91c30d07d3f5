"""What ``keyhole learn`` and ``keyhole rank`` tell, from the files and the weights by NumPy."""

import csv
import json
import re
import time
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import keyhole
from keyhole.reveals.noisy import Noisy
from keyhole.reveals.top import Top
from keyhole.worlds.queries import Queries
from tests.lab.running import run
from tests.outputs.by_hand import checkpoints, mean_and_error
from tests.outputs.inputs import write_lists
from tests.unit.references import dcg, ndcg

pytestmark = pytest.mark.interpreted


def read(path, *, keep_empty=False):
    """Return features scaled within each list, grades and ids by query, and how many were left out.

    Features are scaled to 0 to 1 within a list; one that is the same in all of it is 0.
    """
    lists: dict[str, list[Any]] = {}
    order = []
    for line in path.read_text().splitlines():
        body, _, comment = line.partition("#")
        grade, query, *pairs = body.split()
        if query not in lists:
            order.append(query)
        values = [float(pair.split(":")[1]) for pair in pairs]
        name = re.findall(r"docid = (\S+)", comment)[0]
        lists.setdefault(query, []).append((float(grade), values, name))
    found, n_dropped = [], 0
    for query in order:
        grades, values, names = (list(each) for each in zip(*lists[query], strict=True))
        if not keep_empty and not any(grades):
            n_dropped += 1
            continue
        rows: Any = np.array(values)
        low, high = rows.min(axis=0), rows.max(axis=0)
        scaled = np.divide(rows - low, high - low, out=np.zeros_like(rows), where=high > low)
        found.append((query.removeprefix("qid:"), scaled, np.array(grades), names))
    return found, n_dropped


def world_of(lists, document_seed=None, **options):
    """Return lists as a world, and the order of the documents in each."""
    sizes = [len(grades) for _, _, grades, _ in lists]
    starts = np.concatenate([[0], np.cumsum(sizes)])
    features = np.concatenate([rows for _, rows, _, _ in lists])
    grades = np.concatenate([grades for _, _, grades, _ in lists])
    if document_seed is not None:
        draws = np.random.default_rng(document_seed).random(len(grades))
        order = np.concatenate(
            [first + np.argsort(draws[first:end]) for first, end in pairwise(starts)]
        )
        features, grades = features[order], grades[order]
    return Queries(features, grades, starts, **options)


def learn_by_hand(ranker, world, reveal, value, rounds, seed, run):
    """Return scores of what was shown and of what the weights alone would show, and the ranker."""
    ranker, shown, greedy = ranker.fresh(seed=seed, run=run), [], []
    for t in range(rounds):
        query = world.query(t, seed=seed, run=run)
        relevance = world.relevance(t, seed=seed, run=run)
        impression = ranker.rank(query, round=t)
        shown.append(value(relevance, impression.ranking))
        order = np.argsort(-(query.features @ ranker.state.weights), kind="stable")
        greedy.append(value(relevance, order) if impression.explored else shown[-1])
        seen = reveal(relevance, impression.ranking, round=t, seed=seed, run=run)
        ranker.update(impression, seen)
    return np.array(shown), np.array(greedy), ranker


def judged(weights, lists, value):
    """Return the mean of a measure over lists that are sorted by scores."""
    values = []
    for _, rows, grades, _ in lists:
        values.append(value(grades, np.argsort(-(rows @ weights), kind="stable")))
    return np.mean(values)


def ndcg_2(relevance, order):
    return ndcg(relevance, order, 2)


def ndcg_loss(relevance, order):
    return 1.0 - ndcg(relevance, order)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("lists")
    write_lists(folder / "train.txt", 4)
    write_lists(folder / "test.txt", 5, n_queries=6)
    return folder


@pytest.mark.parametrize(("runs", "seed", "shuffle"), [(3, 6, True), (2, 1, False)])
def test_learning_is_added_up_list_by_list(runs, seed, shuffle, folder, tmp_path):
    """Four grades, two documents revealed, some labels wrong, all of them permuted on the way."""
    rounds, change = 40, 10
    began = time.perf_counter()
    told = json.loads(run(
        "learn", folder / "train.txt", "--test", folder / "test.txt", "--surrogate", "squared",
        "--top", 2, "--rounds", rounds, "--runs", runs, "--seed", seed, "--measure", "NDCG@2",
        "--measure", "NDCGLoss", "--permute-at", change / rounds, "--label-noise", 0.2,
        "--set", "ranker.mix=0.5", "--out", tmp_path, "--json", *["--shuffle"] * shuffle,
    ).stdout)  # fmt: skip
    assert 0.0 < told["seconds"] < time.perf_counter() - began
    lists, n_dropped = read(folder / "train.txt")
    held_out, n_missing = read(folder / "test.txt")
    world = world_of(lists, seed if shuffle else None, permute_at=change)
    ranker = keyhole.ranker(
        "contextual-rtopk", n_features=3, n_items=5, surrogate="squared", k=2, mix=0.5, seed=seed,
        row_norm=float(np.sqrt((world.features**2).sum(axis=1)).max()),
    )  # fmt: skip
    reveal = Noisy(Top(2), noise=0.2, max_grade=3)
    games = [
        learn_by_hand(ranker, world, reveal, ndcg_2, rounds, seed, number) for number in range(runs)
    ]
    shown, greedy = (np.array([game[part] for game in games]) for part in (0, 1))
    mean, error = mean_and_error(shown.mean(axis=1))
    assert told["average_score"] == pytest.approx(mean, rel=1e-9)
    assert told["average_score_error"] == pytest.approx(error, rel=1e-6)
    assert told["average_greedy_score"] == pytest.approx(greedy.mean(), rel=1e-9)
    assert not np.allclose(shown, greedy)
    after = shown[:, change:].mean()
    assert told["average_score_after"] == pytest.approx(after, rel=1e-9)
    at = checkpoints(rounds)
    averages = np.cumsum(shown, axis=1) / np.array(at)
    assert [t for t, _ in told["curve"]] == at
    assert [y for _, y in told["curve"]] == pytest.approx(averages.mean(axis=0), rel=1e-9)
    tests = {"NDCG@2": ndcg_2, "NDCGLoss": ndcg_loss}
    for name, value in tests.items():
        per_run = [judged(game[2].state.weights, held_out, value) for game in games]
        mean, error = mean_and_error(per_run)
        assert told["test"][name] == pytest.approx(mean, rel=1e-9)
        assert told["test_errors"][name] == pytest.approx(error, rel=1e-6, abs=1e-12)
        assert error > 0.0
    counts = {
        "queries": len(lists), "documents": 5 * len(lists), "features": 3,
        "dropped_queries": n_dropped, "test_queries": len(held_out),
        "test_documents": 5 * len(held_out), "test_dropped_queries": n_missing,
    }  # fmt: skip
    assert {name: told[name] for name in counts} == counts
    assert (n_dropped, n_missing) == (1, 1)
    rows = list(csv.DictReader((tmp_path / "curves.csv").read_text().splitlines()))
    found = [mean_and_error(column) for column in averages.T]
    assert [int(row["round"]) for row in rows] == at
    assert [float(row["average_score"]) for row in rows] == pytest.approx([m for m, _ in found])
    errors = [float(row["standard_error"]) for row in rows]
    assert errors == pytest.approx([e for _, e in found], rel=1e-6, abs=1e-9)
    assert {row["runs"] for row in rows} == {str(runs)}


def test_contenders_beside_are_what_they_are_alone(folder):
    """The ranker of the papers, beside the default one, from the same lists."""
    given = ["learn", folder / "train.txt", "--test", folder / "test.txt", "--rounds", 25,
             "--runs", 2, "--seed", 3, "--top", 2]  # fmt: skip
    (beside,) = json.loads(run(*given, "--json").stdout)["against"]
    lists, n_dropped = read(folder / "train.txt")
    held_out, _ = read(folder / "test.txt")
    world = world_of(lists)
    norm = float(np.sqrt((world.features**2).sum(axis=1)).max())
    ranker = keyhole.ranker(
        "contextual-rtopk", n_features=3, n_items=5, surrogate="kl", k=2, seed=3, row_norm=norm
    )
    value = lambda relevance, order: ndcg(relevance, order, 10)  # noqa: E731
    games = [learn_by_hand(ranker, world, Top(2), value, 25, 3, number) for number in range(2)]
    shown = np.array([game[0] for game in games])
    mean, error = mean_and_error(shown.mean(axis=1))
    assert beside["average_score"] == pytest.approx(mean, rel=1e-9)
    assert beside["average_score_error"] == pytest.approx(error, rel=1e-6)
    greedy = np.mean([game[1] for game in games])
    assert beside["average_greedy_score"] == pytest.approx(greedy, rel=1e-9)
    averages = np.cumsum(shown, axis=1).mean(axis=0) / np.arange(1, 26)
    assert beside["curve"] == [[t, pytest.approx(y)] for t, y in enumerate(averages, 1)]
    mean, error = mean_and_error([judged(g[2].state.weights, held_out, value) for g in games])
    assert beside["test"] == {"NDCG@10": pytest.approx(mean, rel=1e-9)}
    assert beside["test_errors"] == {"NDCG@10": pytest.approx(error, rel=1e-6, abs=1e-12)}
    counts = [beside[name] for name in ("queries", "documents", "features", "dropped_queries")]
    assert counts == [len(lists), 5 * len(lists), 3, n_dropped]
    assert [beside[f"test_{name}"] for name in ("queries", "documents", "dropped_queries")] == [
        len(held_out), 5 * len(held_out), 1
    ]  # fmt: skip
    assert beside["seconds"] > 0.0


def test_a_model_ranks_by_the_weights_that_it_holds(folder, tmp_path):
    model = tmp_path / "model.npz"
    told = json.loads(run(
        "learn", folder / "train.txt", "--test", folder / "test.txt", "--ranker", "listnet",
        "--rounds", 30, "--seed", 2, "--measure", "DCG@2", "--model", model, "--json",
    ).stdout)  # fmt: skip
    with np.load(model) as file:
        weights = file["weights"]
    value = lambda relevance, order: dcg(relevance, order, 2)  # noqa: E731
    held_out, _ = read(folder / "test.txt")
    assert told["test"]["DCG@2"] == pytest.approx(judged(weights, held_out, value), rel=1e-9)
    every, n_dropped = read(folder / "test.txt", keep_empty=True)
    assert (len(every), n_dropped) == (6, 0)
    ranked = json.loads(run("rank", model, folder / "test.txt", "--json").stdout)
    table = [
        line.split("\t") for line in run("rank", model, folder / "test.txt").stdout.split("\n")
    ]
    trec = run("rank", model, folder / "test.txt", "--format", "trec").stdout.splitlines()
    lines = 0
    for row, (query, rows, _, names) in zip(ranked, every, strict=True):
        scores = rows @ weights
        order = np.argsort(-scores, kind="stable")
        assert row["query"] == query
        assert row["ranking"] == order.tolist()
        assert row["documents"] == [names[place] for place in order]
        assert row["scores"] == pytest.approx(scores[order], abs=1e-6)
        for rank, place in enumerate(order, 1):
            lines += 1
            assert table[lines][:3] == [query, str(rank), names[place]]
            assert float(table[lines][3]) == row["scores"][rank - 1]
            asked, q0, document, told_rank, score, tag = trec[lines - 1].split(" ")
            assert (asked, q0, document, tag) == (query, "Q0", names[place], "keyhole")
            assert told_rank == str(rank)
            assert float(score) == pytest.approx(scores[place], abs=1e-6)
