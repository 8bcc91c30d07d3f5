"""keyhole learn and keyhole rank, as a user meets them."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from keyhole.cli import app
from keyhole.lab.spec import data_folder


def run(*arguments, code=0):
    result = CliRunner().invoke(app, [str(a) for a in arguments], env={"COLUMNS": "200"})
    assert result.exit_code == code, result.output + result.stderr
    return result


@pytest.fixture(scope="module")
def letor(tmp_path_factory):
    numbers = np.random.default_rng(3)
    lines = []
    for query in range(30):
        for _ in range(6):
            x = numbers.random(3)
            values = " ".join(f"{i + 1}:{v:.4f}" for i, v in enumerate(x))
            lines.append(f"{int(x[0] > 0.6)} qid:{query} {values}")
    path = tmp_path_factory.mktemp("letor") / "train.txt"
    path.write_text("\n".join(lines) + "\n")
    return path


def test_learn_then_rank(letor, tmp_path):
    model = tmp_path / "model.npz"
    arguments = ["--surrogate", "kl", "--top", 1, "--rounds", 4000, "--model", model, "--json"]
    record = json.loads(run("learn", letor, *arguments).stdout)
    random = ["--ranker", "random", "--rounds", 4000, "--json"]
    chance = json.loads(run("learn", letor, *random).stdout)
    assert record["average_score"] > chance["average_score"] + 0.1
    assert record["curve"][-1] == [4000, pytest.approx(record["average_score"])]
    assert record["queries"] + record["dropped_queries"] == 30
    rankings = json.loads(run("rank", letor, "--model", model, "--json").stdout)
    assert len(rankings) == 30
    assert all(sorted(row["ranking"]) == list(range(6)) for row in rankings)
    lines = run("rank", letor, "--model", model).stdout.splitlines()
    assert lines[0].split("\t")[1].split() == [str(i) for i in rankings[0]["ranking"]]


def test_passes_count_queries(letor):
    record = json.loads(run("learn", letor, "--ranker", "listnet", "--passes", 3, "--json").stdout)
    assert record["rounds"] == 3 * record["queries"]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--ranker", "rtop"], "Did you mean 'rtopk'?"),
        (["--surrogate", "listnet"], "needs the relevance of all"),
        (["--surrogate", "ranksvm", "--top", 1], "shows only 1"),
        (["--rounds", 0], "rounds must be an integer of at least 1"),
        (["--rounds", 5, "--passes", 5], "At most one of --rounds and --passes"),
        (["--set", "ranker.rates=3"], "An option of ContextualRTopK must be one of"),
        (["--set", "world.flip=3"], "what to set must be one of ranker"),
        (["--measure", "NDGC"], "Did you mean 'NDCG'?"),
    ],
)
def test_bad_input_is_one_sentence(arguments, sentence, letor, tmp_path):
    model = tmp_path / "model.npz"
    result = run("learn", letor, *arguments, "--model", model, "--json", code=2)
    assert sentence in result.stderr.replace("\n", " ")
    assert not model.exists()


def test_models_that_are_none(letor, tmp_path):
    (tmp_path / "model.npz").write_bytes(b"nonsense")
    result = run("rank", letor, "--model", tmp_path / "model.npz", code=2)
    assert "must be a model saved by keyhole learn" in result.stderr.replace("\n", " ")


def test_the_ordering_on_mq2008():
    files = sorted((data_folder() / "mq2008").glob("S*.txt.gz"))
    if not files:
        pytest.skip(f"MQ2008 is not in {data_folder()}")

    def score(*arguments):
        return json.loads(run("learn", *files, *arguments, "--json").stdout)["average_score"]

    listnet = score("--ranker", "listnet")
    ranksvm = score("--surrogate", "ranksvm", "--top", 2)
    kl = score("--surrogate", "kl", "--top", 1)
    random = score("--ranker", "random")
    assert listnet >= ranksvm >= kl > random + 0.15
    assert kl >= 0.66
    assert ranksvm >= 0.67
    assert 0.69 <= listnet <= 0.72
    assert 0.45 <= random <= 0.48
