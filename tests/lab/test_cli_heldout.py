"""keyhole learn --test and --out, and keyhole rank: lists held out, runs for trec_eval."""

import csv
import gzip
import json
from itertools import pairwise

import ir_measures
import numpy as np
import pytest
from typer.testing import CliRunner

import keyhole
from keyhole.cli.app import app
from keyhole.data.letor.reader import read_letor
from keyhole.rankers.lists.models import load_model

pytestmark = pytest.mark.interpreted

LEARN = ["--surrogate", "kl", "--top", 1, "--rounds", 300, "--json"]


def run(*arguments, code=0):
    result = CliRunner().invoke(app, [str(a) for a in arguments], env={"COLUMNS": "200"})
    assert result.exit_code == code, result.output + result.stderr
    return result


def learn(*arguments):
    return json.loads(run("learn", *arguments).stdout)


def lists_of(seed, n_queries, n_items=6, *, first=1, sorted_by_label=False, scale=1.0):
    """Return text of lists in which the first of three features tells what is relevant."""
    numbers = np.random.default_rng(seed)
    lines = []
    for query in range(n_queries):
        rows = numbers.random((n_items, 3))
        if sorted_by_label:
            rows = rows[np.argsort(-rows[:, 0])]
        for item, x in enumerate(rows):
            values = " ".join(f"{i + first}:{v * scale:.4f}" for i, v in enumerate(x))
            lines.append(f"{int(x[0] > 0.6)} qid:{query} {values} #docid = D{query}-{item} inc = 1")
    return "\n".join(lines) + "\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("lists")
    (folder / "train.txt").write_text(lists_of(3, 30))
    (folder / "test.txt").write_text(lists_of(4, 20))
    # In the other one what was relevant is not, and documents are another order of magnitude.
    opposite = "".join(
        f"{1 - int(line[0])}{line[1:]}\n" for line in lists_of(5, 20, scale=90.0).splitlines()
    )
    (folder / "opposite.txt").write_text(opposite)
    return folder


def test_what_is_held_out_is_judged_by_every_measure(folder, tmp_path):
    model = tmp_path / "m.npz"
    measures = ["--measure", "NDCG@10", "--measure", "AP", "--measure", "SumLoss"]
    record = learn(
        folder / "train.txt", "--test", folder / "test.txt", *LEARN, *measures, "--model", model
    )
    assert list(record["test"]) == ["NDCG@10", "AP", "SumLoss"]
    assert record["test_losses"] == ["SumLoss"]
    assert record["model"] == str(model)
    assert record["test_errors"] == {"NDCG@10": None, "AP": None, "SumLoss": None}
    queries = read_letor(folder / "test.txt", normalise="minmax", dtype=np.float32)
    assert (record["test_queries"], record["test_documents"]) == (
        queries.n_queries,
        6 * queries.n_queries,
    )
    scorer = load_model(model)
    for name, score in record["test"].items():
        by_hand = [
            keyhole.measure(name)(relevance, np.argsort(-scorer.scores(features), kind="stable"))
            for features, relevance in map(queries.query, range(queries.n_queries))
        ]
        assert score == pytest.approx(np.mean(by_hand), abs=1e-12)
    assert record["test"]["NDCG@10"] > 0.9


def test_a_model_knows_what_files_call_the_first_feature(tmp_path):
    """A file from 0 on that never names feature 0 looks like one from 1 on."""
    train, rest, model = (tmp_path / name for name in ("train.txt", "rest.txt", "m.npz"))
    train.write_text("".join(f"{n % 2} qid:{n // 4} 0:{n % 2} 1:{n % 3}\n" for n in range(40)))
    rest.write_text("0 qid:1 1:2\n0 qid:1 1:1\n")
    learn(train, *LEARN, "--raw", "--model", model)
    with np.load(model) as arrays:
        weights = arrays["weights"]
    assert len(set(weights)) == 2
    ranked = json.loads(run("rank", model, rest, "--json").stdout)
    assert sorted(ranked[0]["scores"]) == pytest.approx(sorted([2 * weights[1], weights[1]]))


def test_nothing_of_the_test_file_is_learnt(folder, tmp_path):
    """A leak into learning, scaling or settings would change the weights or the curve."""
    weights, curves, scores = [], [], []
    for test in ([], ["--test", folder / "test.txt"], ["--test", folder / "opposite.txt"]):
        model = tmp_path / "m.npz"
        record = learn(folder / "train.txt", *test, *LEARN, "--raw", "--model", model)
        with np.load(model) as arrays:
            weights.append(arrays["weights"].tolist())
        curves.append(record["curve"])
        scores.append(record.get("test", {}).get("NDCG@10"))
    assert weights[0] == weights[1] == weights[2]
    assert curves[0] == curves[1] == curves[2]
    assert scores[0] is None
    assert scores[2] < 0.7  # whoever had seen its labels would do better
    assert scores[1] > 0.9


def test_who_does_not_learn_scores_worse_on_what_is_held_out(folder):
    test = ["--test", folder / "test.txt", "--json"]
    learnt = learn(folder / "train.txt", *LEARN, *test)["test"]["NDCG@10"]
    chance = learn(folder / "train.txt", "--ranker", "random-lists", "--rounds", 300, *test)
    assert chance["test"]["NDCG@10"] < learnt - 0.1


def test_runs_have_an_error_and_both_contenders_are_tested(folder):
    record = learn(
        folder / "train.txt", "--test", folder / "test.txt", "--rounds", 200, "--runs", 2, "--json"
    )
    assert [one["ranker"] for one in (record, *record["against"])] == ["recall", "contextual-rtopk"]
    for one in (record, *record["against"]):
        assert one["test_errors"]["NDCG@10"] >= 0.0
        assert one["test"]["NDCG@10"] > 0.6


def test_lists_held_out_may_be_longer_and_need_not_name_every_feature(folder, tmp_path):
    longer = tmp_path / "longer.txt"
    longer.write_text(lists_of(6, 10, n_items=9))
    for ranker in (["--surrogate", "kl"], ["--ranker", "recall"]):
        arguments = [*ranker, "--rounds", 200, "--test", longer, "--json"]
        assert learn(folder / "train.txt", *arguments)["test"]["NDCG@10"] > 0.6
    from_zero, sparse = tmp_path / "zero.txt", tmp_path / "sparse.txt"
    from_zero.write_text(lists_of(3, 30, first=0))
    sparse.write_text(lists_of(7, 20, first=0).replace(" 0:", " 9:"))
    refused = run("learn", from_zero, "--test", sparse, *LEARN, code=2).stderr
    assert "a feature index must be at most 2 with n_features=3 and first_index=0" in refused
    # Without its first feature the file alone looks as if it were numbered from 1.
    lines = [line.split(" ") for line in lists_of(7, 20, first=0).splitlines()]
    sparse.write_text("\n".join(" ".join([*line[:2], *line[3:]]) for line in lines) + "\n")
    blind = learn(from_zero, "--test", sparse, *LEARN, "--raw")["test"]["NDCG@10"]
    assert blind < 0.85  # the feature that tells is missing, and no other one takes its place


def test_ties_are_no_gift_where_documents_are_shuffled(tmp_path):
    for name, seed in (("train", 3), ("test", 4)):
        text = lists_of(seed, 30, sorted_by_label=True)
        lines = [" ".join([*line.split(" ")[:2], "1:0.5"]) for line in text.splitlines()]
        (tmp_path / f"{name}.txt").write_text("\n".join(lines) + "\n")
    arguments = [tmp_path / "train.txt", "--test", tmp_path / "test.txt", *LEARN]
    assert learn(*arguments)["test"]["NDCG@10"] == 1.0
    assert learn(*arguments, "--shuffle")["test"]["NDCG@10"] < 0.9


def test_curves_and_a_figure_are_written_and_it_is_said_where(folder, tmp_path):
    out, model = tmp_path / "o", tmp_path / "my model.npz"
    arguments = ["--test", folder / "test.txt", "--measure", "SumLoss", "--model", model]
    shown = run("learn", folder / "train.txt", *LEARN[:-1], *arguments, "--out", out).stdout
    assert f"The model is in {model}; keyhole rank '{model}' FILE ranks with it." in shown
    assert f"Figure and results are in {out}." in shown
    assert "held out" in shown
    assert "SumLoss; lower is better" in shown
    assert sorted(path.name for path in out.iterdir()) == [
        "curves.csv", "learn.png", "learn.svg", "results.json",
    ]  # fmt: skip
    record = json.loads((out / "results.json").read_text())
    with (out / "curves.csv").open() as file:
        last = list(csv.DictReader(file))[-1]
    assert float(last["average_score"]) == pytest.approx(record["average_score"])
    assert (last["curve"], last["round"]) == ("contextual-rtopk", "300")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--test", "absent.txt"], "absent.txt must be a readable LETOR file"),
        (["--test", "TRAIN"], "--test must be held out, got"),
        (["--test", "WIDE"], "a feature index must be at most 3 with n_features=3"),
        (["--test", "BAD"], "line 1: a feature must be index:value"),
        (["--measure", "AP", "--measure", "DCG"], "with --test, got AP, DCG."),
        (["--test", "TEST", "--measure", "AP", "--measure", "AP"], "different measures, got AP"),
        (["--test", "TEST", "--measure", "APP"], "Did you mean 'AP'?"),
        (["--test-groups", "TEST"], "--test-groups needs the --test"),
        (["--test", "TEST", "--test-groups", "TEST"], "a group size must be an integer"),
        (["--out", "TRAIN"], "must be a folder to write to"),
    ],
)  # fmt: skip
def test_bad_input_is_one_sentence_and_nothing_is_written(folder, tmp_path, arguments, sentence):
    (tmp_path / "wide.txt").write_text("1 qid:1 1:0 4:2\n0 qid:1 1:1\n")
    (tmp_path / "bad.txt").write_text("1 qid:1 1\n")
    (tmp_path / "test.txt").write_text(lists_of(4, 20))
    (tmp_path / "train.txt").write_text(lists_of(3, 30))
    paths = {word: tmp_path / f"{word.lower()}.txt" for word in ("TEST", "TRAIN", "WIDE", "BAD")}
    before = sorted(tmp_path.iterdir())
    given = [paths.get(word, word) for word in arguments]
    result = run("learn", tmp_path / "train.txt", *LEARN, *given, "--model", tmp_path / "m", code=2)
    assert sentence in result.stderr
    assert result.stderr.count("\n") == 1
    assert result.stdout == ""
    assert sorted(tmp_path.iterdir()) == before


@pytest.fixture(scope="module")
def model(folder):
    """Return a model whose scores are often equal, and one document unlike the others."""
    np.savez(folder / "m.npz", weights=np.array([2.0, 0.0, 0.0]), minmax=np.array(False))
    return folder / "m.npz"


def test_a_run_gives_trec_eval_the_number_that_keyhole_gives(folder, model):
    """Scores are rounded until many are equal: trec_eval would sort those by document."""
    lines = [line.split(" ") for line in lists_of(8, 40, n_items=12).splitlines()]
    coarse = [[*line[:2], f"1:{float(line[2][2:]):.1f}", *line[5:]] for line in lines]
    text = "".join(" ".join(line) + "\n" for line in coarse)
    path = folder / "ties.txt.gz"
    path.write_bytes(gzip.compress(text.encode()))
    printed = run("rank", model, path, "--format", "trec", "--tag", "mine").stdout
    (folder / "ties.run").write_text(printed)
    qrels, by_hand = [], []
    queries = read_letor(path, missing_relevant="keep")
    for index, name in enumerate(queries.query_ids):
        features, relevance = queries.query(index)
        order = np.argsort(-features[:, 0], kind="stable")
        assert len(set(features[:, 0])) < len(features)
        by_hand.append([keyhole.measure(m)(relevance, order) for m in ("NDCG@5", "AP", "RR")])
        qrels += [
            ir_measures.Qrel(name, f"D{name}-{item}", int(grade))
            for item, grade in enumerate(relevance)
        ]
    theirs = [ir_measures.parse_measure(name) for name in ("nDCG@5", "AP", "RR")]
    found = ir_measures.calc_aggregate(
        theirs, qrels, ir_measures.read_trec_run(str(folder / "ties.run"))
    )
    assert [found[name] for name in theirs] == pytest.approx(np.mean(by_hand, axis=0), abs=1e-9)
    fields = [line.split(" ") for line in printed.splitlines()]
    assert [row[1] for row in fields] == ["Q0"] * 480
    assert {row[5] for row in fields} == {"mine"}
    for query in queries.query_ids:
        own = [row for row in fields if row[0] == query]
        assert [int(row[3]) for row in own] == list(range(1, 13))
        told = [np.float32(row[4]) for row in own]
        assert all(later < earlier for earlier, later in pairwise(told))


def test_a_table_and_json_have_ids_and_scores_as_they_are(folder, model):
    path = folder / "few.txt"
    text = (
        "# docid = z\n0 qid:a 1:0.5 # docid = x\n\n1 qid:a 1:1.5\n0 qid:a 1:0.5 #docno: y inc = 1\n"
    )
    path.write_text(text)
    lines = run("rank", model, path).stdout.splitlines()
    assert lines == [
        "query\trank\tdocument\tscore", "a\t1\t1\t3.0", "a\t2\tx\t1.0", "a\t3\ty\t1.0",
    ]  # fmt: skip
    expected = [
        {"query": "a", "ranking": [1, 0, 2], "documents": ["1", "x", "y"], "scores": [3, 1, 1]}
    ]
    assert json.loads(run("rank", model, path, "--format", "json").stdout) == expected
    assert json.loads(run("rank", path, "--model", model, "--json").stdout) == expected


@pytest.mark.parametrize(
    ("text", "arguments", "sentence"),
    [
        ("1 qid:1 1:2\n", ["--format", "trek"], "--format must be one of json, trec, tsv, got"),
        ("1 qid:1 1:2\n", ["--tag", "two words"], "--tag must be one word, got 'two words'."),
        ("1 qid:1 1:2\n", ["--tag", " x"], "--tag must be one word, got ' x'."),
        ("1 qid:1 4:2\n", [], "Documents must have at most the 3 features of"),
        ("1 qid:1 1:2 #docid=a\n0 qid:1 1:3 #docid=a\n", ["--format", "trec"], "got a twice."),
        ("1 qid:1 1:2 #docid=1\n0 qid:1 1:3\n", ["--format", "trec"], "query 1, got 1 twice."),
        ("1 qid:1 1:-1.7014117e38\n" * 2, ["--format", "trec"], "needs scores between -3.4e38"),
    ],
)  # fmt: skip
def test_bad_runs_are_one_sentence(folder, model, text, arguments, sentence):
    path = folder / "bad.txt"
    path.write_text(text)
    result = run("rank", model, path, *arguments, code=2)
    assert sentence in result.stderr
    assert result.stderr.count("\n") == 1
    assert result.stdout == ""


def test_a_model_alone_and_the_same_query_of_two_files(folder, model):
    assert "A FILE to rank must follow the model" in run("rank", model, code=2).stderr
    twice = [folder / "test.txt", folder / "train.txt"]
    refused = run("rank", model, *twice, "--format", "trec", code=2).stderr
    assert "different ids of the queries of all files, got 0 twice" in refused
    assert len(run("rank", model, *twice).stdout.splitlines()) == 1 + 6 * 50
