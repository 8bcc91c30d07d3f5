"""Lists as they are shown to learners: in several orders, shuffled, with noise, with new labels."""

import json

import pytest
from typer.testing import CliRunner

from keyhole.cli.app import app
from tests.papers.test_lists import write_letor


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return write_letor(tmp_path_factory.mktemp("lists") / "train.txt", 1)


def learn(path, *args):
    given = ["learn", path, "--ranker", "contextual-rtopk", "--rounds", 4000, *args]
    return CliRunner().invoke(app, [str(each) for each in given])


def score(path, *args):
    said = learn(path, *args, "--json")
    assert said.exit_code == 0, said.stderr
    return json.loads(said.stdout)


def test_several_runs_have_a_mean_and_a_standard_error(path):
    several = score(path, "--runs", 3)
    assert several["runs"] == 3
    assert several["average_score_error"] > 0
    assert several["curve"][-1][1] == pytest.approx(several["average_score"])
    assert score(path)["average_score_error"] is None
    assert "\u00a0±\u00a0" in learn(path, "--runs", 3).stdout


@pytest.mark.interpreted
def test_recall_learns_by_default_and_the_papers_algorithm_beside_it(path):
    given = ["learn", path, "--rounds", 300, "--top", 2]
    said = CliRunner().invoke(app, [str(each) for each in [*given, "--json"]])
    record = json.loads(said.stdout)
    assert record["ranker"] == "recall"
    assert [other["ranker"] for other in record["against"]] == ["contextual-rtopk"]
    assert record["average_score"] > record["against"][0]["average_score"]
    printed = CliRunner().invoke(app, [str(each) for each in given]).stdout
    assert printed.index("recall") < printed.index("contextual-rtopk")
    given += ["--surrogate", "kl", "--json"]
    alone = json.loads(CliRunner().invoke(app, [str(each) for each in given]).stdout)
    assert (alone["ranker"], alone["against"]) == ("contextual-rtopk", [])
    assert alone["options"] == {"surrogate": "kl"}


@pytest.mark.interpreted
def test_one_pass_is_each_list_once(path):
    given = ["learn", path, "--passes", 1, "--runs", 2, "--json"]
    said = CliRunner().invoke(app, [str(each) for each in given])
    record = json.loads(said.stdout)
    assert record["rounds"] == record["queries"] < 40  # those without a relevant document go


def test_a_file_that_is_sorted_by_label_tells_nothing_when_it_is_shuffled(tmp_path):
    lines = [
        f"{label} qid:{query} 1:1" for query in range(40) for label in (2, 1, 0, 0, 0, 0)
    ]  # fmt: skip
    tied = tmp_path / "tied.txt"
    tied.write_text("\n".join(lines) + "\n")
    # Features are all the same, so a learner has ties alone: they go to the first document.
    assert score(tied)["average_greedy_score"] == pytest.approx(1.0)
    assert score(tied, "--shuffle")["average_greedy_score"] < 0.8


def test_labels_at_random_teach_nothing(path):
    clean = score(path)["average_greedy_score"]
    assert clean > 0.85
    assert score(path, "--label-noise", 1)["average_greedy_score"] < clean - 0.1


def test_after_labels_are_permuted_what_was_learnt_is_worth_less(path):
    record = score(path, "--permute-at", 0.5)
    assert record["average_score_after"] < record["average_score"] - 0.05
    printed = learn(path, "--permute-at", 0.5).stdout
    assert "contextual-rtopk, after labels were permuted: 0." in printed
    assert score(path, "--permute-at", 1)["average_score_after"] is None
    before = score(path, "--rounds", 2000)["curve"]
    assert dict(map(tuple, record["curve"]))[2000] == pytest.approx(dict(map(tuple, before))[2000])


@pytest.mark.parametrize(
    ("args", "sentence"),
    [
        (["--label-noise", 1.5], "--label-noise must be"),
        (["--permute-at", 0], "--permute-at must be"),
        (["--permute-at", 2], "--permute-at must be"),
        (["--runs", 0], "runs must be"),
        (["--runs", 2, "--model", "m.npz"], "--runs must be 1 where a --model is saved"),
        (["--stream", "--shuffle"], "need lists in memory"),
        (["--stream", "--permute-at", 0.5], "need lists in memory"),
    ],
)
@pytest.mark.interpreted
def test_what_cannot_be_is_refused(path, args, sentence):
    said = learn(path, *args)
    assert said.exit_code == 2
    assert sentence in said.stderr
