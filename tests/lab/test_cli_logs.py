"""keyhole evaluate, as a user meets it."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from keyhole.cli.app import app
from keyhole.data.bandit.files import write_bandit_csv, write_bandit_parquet
from keyhole.data.bandit.log import BanditLog
from keyhole.offline.evaluation import evaluate
from keyhole.policies.base import Always, EpsilonGreedy
from keyhole.policies.files import save_policy
from keyhole.policies.linear import LinearScorer


def run(*arguments, code=0):
    result = CliRunner().invoke(app, [str(a) for a in arguments], env={"COLUMNS": "100"})
    assert result.exit_code == code, result.output + result.stderr
    return result


@pytest.fixture(scope="module")
def log():
    numbers = np.random.default_rng(0)
    actions = numbers.integers(3, size=4000)
    clicks = numbers.random(4000) < np.array([0.05, 0.1, 0.3])[actions]
    return BanditLog.of(
        numbers.random((4000, 2)), actions, clicks, np.full(4000, 1 / 3), feature_names=["a", "b"]
    )


@pytest.fixture(scope="module")
def path(log, tmp_path_factory):
    path = tmp_path_factory.mktemp("logs") / "log.csv"
    write_bandit_csv(log, path)
    return path


def test_promote_with_numbers_and_figure(path, log, tmp_path):
    out = tmp_path / "out"
    result = run("evaluate", path, "--policy", "best-fixed", "--out", out, "--json")
    record = json.loads(result.stdout)
    assert record["verdict"] == "promote"
    assert record["lower_bound"] > 0
    again = evaluate(log, "best-fixed", "logged")
    assert record["lower_bound"] == again.lower_bound
    assert set(record["policy"]["estimates"]) == set(again.difference)
    assert record == json.loads((out / "evaluation.json").read_text())
    assert (out / "values.png").read_bytes()[:4] == b"\x89PNG"
    assert b"<svg" in (out / "values.svg").read_bytes()


def test_keep_is_exit_code_1_and_says_why(path):
    result = run("evaluate", path, "--policy", "uniform", "--baseline", "best-fixed", code=1)
    text = " ".join(result.stdout.split())
    assert "keep: the betting bound on the difference is -" in text
    assert "importance-weighted" in text
    assert "best-fixed is action 2" in text
    assert "effective rows of 2,000" in text


def test_warnings_when_the_log_cannot_answer(path):
    arguments = ["--policy", "uniform", "--actions", 6, "--confidence", 0.9]
    result = run("evaluate", path, *arguments, code=1)
    warning = " ".join(result.stderr.split())
    assert "50.0% of its choices among actions that the log never shows (3, 4, 5)" in warning


def test_parquet_and_the_bound_of_ones_choice(log, tmp_path):
    write_bandit_parquet(log, tmp_path / "log.parquet")
    arguments = ["--policy", "best-fixed", "--bound", "student-t", "--json"]
    record = json.loads(run("evaluate", tmp_path / "log.parquet", *arguments).stdout)
    assert record["decided_by"] == "student-t"
    bounds = record["difference"]["importance-weighted"]["bounds"]
    assert record["lower_bound"] == bounds["student-t"] > bounds["betting"]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--policy", "unifrom"], "--policy must be uniform, logged, best-fixed or the file of"),
        (["--policy", "uniform", "--baseline", "x.npz"], "--baseline must be uniform"),
        (
            ["--policy", "uniform", "--confidence", 1],
            "Error: --confidence must be a number below 1",
        ),
        (["--policy", "uniform", "--bound", "betthing"], "Did you mean 'betting'?"),
        (["--policy", "uniform", "--actions", 2], "an action must be between 0 and n_actions-1=1"),
        (["--policy", "uniform", "--actions", 0], "--actions must be an integer of at least 1"),
        (["--policy", "uniform", "--rewards", 0, 0.5], "Rewards must be between 0 and 0.5"),
        (
            ["--policy", "uniform", "--floor", 0.9],
            "Error: --floor must be at most the least propensity",
        ),
        (["--policy", "uniform", "--clip", 0], "Error: --clip must be a number above 0"),
    ],
)
def test_bad_input_is_one_sentence(path, tmp_path, arguments, sentence):
    out = tmp_path / "out"
    result = run("evaluate", path, *arguments, "--out", out, code=2)
    assert sentence in " ".join(result.stderr.split())
    assert not out.exists()


def test_bad_logs_name_their_line(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("action,propensity,reward\n0,0.5,1\n1,0,0\n")
    result = run("evaluate", path, "--policy", "uniform", code=2)
    assert "line 3: a propensity must be above 0" in " ".join(result.stderr.split())
    path.write_text("action,propensity,reward\n0,0.5,0\n1,0.5,0\n")
    result = run("evaluate", path, "--policy", "uniform", code=2)
    assert "must differ to compare policies" in " ".join(result.stderr.split())


def test_a_saved_policy(path, log, tmp_path):
    weights = [[0.0, 0.0], [0.0, 0.0], [1.0, 0.0]]
    scorer = LinearScorer(weights, [0.0, 0.0, 0.5])
    policy = EpsilonGreedy(scorer, epsilon=0.2)
    save_policy(policy, tmp_path / "greedy.npz")
    arguments = ["--policy", tmp_path / "greedy.npz", "--baseline", "uniform", "--json"]
    record = json.loads(run("evaluate", path, *arguments, code=0).stdout)
    assert record["policy"]["name"] == "greedy.npz"
    assert record["lower_bound"] == evaluate(log, policy, "uniform").lower_bound
    save_policy(Always(5, action=4), tmp_path / "always.npz")
    arguments = ["--policy", tmp_path / "greedy.npz", "--baseline", tmp_path / "always.npz"]
    result = run("evaluate", path, *arguments, code=2)
    assert "must agree on the number of actions, got 3, 5" in " ".join(result.stderr.split())
    arguments = ["--policy", tmp_path / "always.npz"]
    warning = " ".join(run("evaluate", path, *arguments, code=1).stderr.split())
    assert "100.0% of its choices among actions that the log never shows (4)" in warning
    (tmp_path / "none.npz").write_bytes(b"nonsense")
    result = run("evaluate", path, "--policy", tmp_path / "none.npz", code=2)
    assert "must be a policy saved by save_policy" in " ".join(result.stderr.split())
