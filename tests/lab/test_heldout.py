"""What was learnt, on lists held out: each run by its own state and its own chance."""

import json
import math
from itertools import pairwise
from statistics import fmean, stdev

import numpy as np
import pytest

from keyhole.data.letor.reader import read_letor
from keyhole.experiment.worlds import how_to_read
from keyhole.game.play import play
from keyhole.lab.heldout import held_out_scores, read_held_out
from keyhole.measures import measure as named_measure
from keyhole.rankers import ranker as named_ranker
from keyhole.reveals.top import Top
from keyhole.worlds.queries import Queries
from tests.lab.running import run

pytestmark = pytest.mark.interpreted

MEASURES = [named_measure(name) for name in ("DCG@2", "AP", "SumLoss")]


def lists_file(path, seed, n_lists=6, length=4, *, tied=False):
    numbers = np.random.default_rng(seed)
    rows = []
    for query in range(n_lists):
        for _ in range(length):
            x = numbers.random(3)
            label = int(3 * x[0])
            x = x * (not tied)
            rows.append(
                f"{label} qid:{query} " + " ".join(f"{i + 1}:{v:.3f}" for i, v in enumerate(x))
            )
    path.write_text("\n".join(rows) + "\n")
    return path


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("lists")
    return {
        "train": lists_file(folder / "train.txt", 1),
        "test": lists_file(folder / "test.txt", 2, length=6),
        "tied": lists_file(folder / "tied.txt", 3, tied=True),
    }


def by_list(queries):
    """Return the features and relevance of each list."""
    ends = queries.starts.tolist()
    return [
        (queries.features[a:b], queries.relevance[a:b].astype(float)) for a, b in pairwise(ends)
    ]


def over_runs(scores):
    """Return mean and standard error of the scores of the runs."""
    if len(scores) == 1:
        return fmean(scores), math.nan
    return fmean(scores), stdev(scores) / math.sqrt(len(scores))


def learnt(name, files, runs, seed=4):
    queries = read_letor([files["train"]], **how_to_read())
    world = Queries(queries.features, queries.relevance, queries.starts)
    ranker = named_ranker(name, n_features=3, n_items=4, seed=seed)
    return ranker, play(
        ranker, world, measure="DCG", reveal=Top(1), rounds=30, seed=seed, runs=runs
    )


@pytest.mark.parametrize("runs", [1, 3])
def test_every_run_is_judged_by_what_it_has_learnt_itself(files, runs):
    ranker, trace = learnt("contextual-rtopk", files, runs)
    test = read_held_out([files["test"]], [files["train"]], 3, how_to_read())
    found = held_out_scores(ranker, trace.states, test, MEASURES)
    weights = [state["weights"] for state in trace.states]
    assert len({tuple(each) for each in weights}) == runs
    for judged in MEASURES:
        scores = [
            fmean(
                judged(relevance, np.argsort(-(features @ own), kind="stable"))
                for features, relevance in by_list(test)
            )
            for own in weights
        ]
        assert len(set(scores)) > 1 or runs == 1
        mean, error = over_runs(scores)
        assert found[judged.label].mean == pytest.approx(mean, rel=1e-12)
        assert found[judged.label].error == pytest.approx(error, rel=1e-9, nan_ok=True)


def test_who_ranks_by_chance_does_so_by_the_chance_of_each_run(files):
    ranker, trace = learnt("random-lists", files, 3)
    test = read_held_out([files["test"]], [files["train"]], 3, how_to_read())
    found = held_out_scores(ranker, trace.states, test, MEASURES)
    lists = by_list(test)
    world = Queries(test.features, test.relevance, test.starts, shuffle=False)

    def scores_of(judged, run):
        own = ranker.fresh(n_items=6, run=run)
        rankings = [
            own.rank(world.query(round=place), round=place).ranking for place in range(len(lists))
        ]
        pairs = zip(lists, rankings, strict=True)
        return fmean(judged(relevance, ranking) for (_, relevance), ranking in pairs)

    for judged in MEASURES:
        scores = [scores_of(judged, run) for run in range(3)]
        assert len(set(scores)) == 3
        assert found[judged.label].mean == pytest.approx(fmean(scores), rel=1e-12)
        assert found[judged.label].error == pytest.approx(over_runs(scores)[1], rel=1e-9)


@pytest.mark.parametrize("document_seed", [None, 0, 5])
def test_documents_that_tie_are_ranked_in_the_order_of_the_shuffle(files, document_seed):
    ranker, trace = learnt("contextual-rtopk", files, 2)
    test = read_held_out([files["tied"]], [files["train"]], 3, how_to_read())
    found = held_out_scores(ranker, trace.states, test, MEASURES, document_seed)
    shown = Queries(
        test.features, test.relevance, test.starts, shuffle=False, document_seed=document_seed
    )
    in_order = [shown.relevance(round=place) for place in range(test.n_queries)]
    for judged in MEASURES:
        scores = [judged(relevance, np.arange(4)) for relevance in in_order]
        assert found[judged.label].mean == pytest.approx(fmean(scores))


def test_where_nothing_is_held_out_there_are_no_scores(files):
    ranker, trace = learnt("contextual-rtopk", files, 1)
    assert held_out_scores(ranker, trace.states, None, MEASURES) == {}


@pytest.mark.parametrize("seed", [0, 6])
def test_the_command_learns_on_documents_shuffled_by_its_seed(files, seed):
    """The game and the lists held out, both by hand: another seed of the shuffle is another."""
    given = [
        "learn", files["tied"], "--ranker", "random-lists", "--rounds", 20, "--runs", 2, "--seed",
        seed, "--shuffle", "--test", files["test"], "--measure", "DCG@2", "--json",
    ]  # fmt: skip
    record = json.loads(run(*given).stdout)
    queries = read_letor([files["tied"]], **how_to_read())
    test = read_held_out([files["test"]], [files["tied"]], 3, how_to_read())

    def by_hand(document_seed):
        world = Queries(
            queries.features, queries.relevance, queries.starts, document_seed=document_seed
        )
        ranker = named_ranker("random-lists", n_features=3, n_items=4, seed=seed)
        trace = play(ranker, world, measure="DCG@2", reveal=Top(1), rounds=20, seed=seed, runs=2)
        scores = held_out_scores(ranker, trace.states, test, MEASURES[:1], document_seed)
        return (trace.scores[:, -1] / 20).tolist(), scores["DCG@2"]

    scores, held_out = by_hand(seed)
    assert record["average_score"] == pytest.approx(fmean(scores), rel=1e-12)
    assert record["average_score_error"] == pytest.approx(over_runs(scores)[1], rel=1e-9)
    assert record["test"] == {"DCG@2": pytest.approx(held_out.mean, rel=1e-12)}
    assert record["test_errors"] == {"DCG@2": pytest.approx(held_out.error, rel=1e-9)}
    assert by_hand(seed + 1) != (scores, held_out)
    assert (record["test_queries"], record["test_documents"]) == (
        test.n_queries, len(test.relevance),
    )  # fmt: skip


def test_the_score_after_labels_are_permuted_is_that_of_the_rounds_after(files):
    given = ["learn", files["train"], "--ranker", "contextual-rtopk", "--runs", 2, "--seed", 3,
             "--measure", "DCG@3", "--json"]  # fmt: skip
    record = json.loads(run(*given, "--rounds", 40, "--permute-at", 0.4).stdout)
    curve = dict(map(tuple, record["curve"]))
    assert 16 in curve
    after = (40 * curve[40] - 16 * curve[16]) / 24
    assert record["average_score_after"] == pytest.approx(after, rel=1e-9)
    before = json.loads(run(*given, "--rounds", 16).stdout)
    assert before["average_score"] == pytest.approx(curve[16], rel=1e-9)
    printed = " ".join(run(*given[:-1], "--rounds", 40, "--permute-at", 0.4).stdout.split())
    assert f"contextual-rtopk, after labels were permuted: {after:.4f}." in printed
    mean, error = record["average_score"], record["average_score_error"]
    assert f"{mean:.4f} ± {error:.4f}" in printed
    assert f"{record['average_greedy_score']:.4f}" in printed
    assert (
        f"{record['queries']} queries, {record['documents']} documents, 3 features; 0 queries "
        f"without a relevant document left out."
    ) in printed
