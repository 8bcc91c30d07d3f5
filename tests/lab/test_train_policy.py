"""keyhole train-policy, and its policies before the gate, as a user meets them."""

import json
import os

import numpy as np
import pytest

from keyhole.data.bandit.files import write_bandit_csv
from keyhole.data.bandit.formats import read_bandit
from keyhole.data.bandit.log import BanditLog
from keyhole.offline.evaluation import evaluate
from keyhole.policies.files import load_policy
from keyhole.policies.training import fit_classifiers
from tests.lab.running import run, said


@pytest.fixture(scope="module")
def log():
    numbers = np.random.default_rng(0)
    contexts, actions = numbers.normal(size=(4000, 2)), numbers.integers(2, size=4000)
    likes = contexts[:, 0] * np.where(actions == 1, 1, -1)
    clicks = numbers.random(4000) < np.clip(0.1 + 0.1 * likes, 0, 1)
    return BanditLog.of(
        contexts, np.array(["tea", "milk"])[actions], clicks, np.full(4000, 0.5),
        feature_names=["age", "height"], times=np.arange(4000),
    )  # fmt: skip


@pytest.fixture(scope="module")
def path(log, tmp_path_factory):
    path = tmp_path_factory.mktemp("logs") / "log.csv"
    write_bandit_csv(log, path)
    return path


QUICK = ["--model", "classifiers", "--folds", 2, "--penalty", 0.1, "--penalty", 0.001]


def test_from_a_log_to_a_promoted_policy(path, log, tmp_path):
    out, rest = tmp_path / "new" / "policy.npz", tmp_path / "rest.csv"
    result = run("train-policy", path, "--out", out, "--held-out", rest, *QUICK, "--json")
    record = json.loads(result.stdout)
    train, held_out = log.split(0.7)
    assert (record["training_rows"], record["held_out_rows"]) == (len(train), len(held_out))
    assert record["split"] == "time"
    assert np.array_equal(read_bandit(rest).contexts, held_out.contexts)
    scores = {row["penalty"]: row["score"] for row in record["penalties"]}
    assert record["penalty"] == max(scores, key=lambda penalty: scores[penalty])
    scorer = fit_classifiers(train, l2=record["penalty"])
    policy = load_policy(out)
    assert np.array_equal(vars(policy)["scorer"].weights, scorer.weights)
    assert policy.feature_names == ("age", "height")
    judged = evaluate(held_out, policy)
    assert record["evaluation"]["lower_bound"] == judged.lower_bound
    assert judged.verdict == "promote"
    again = json.loads(run("evaluate", rest, "--policy", out, "--json").stdout)
    assert again["lower_bound"] == judged.lower_bound
    assert again["interval"] == list(judged.interval)
    text = said(run("evaluate", path, "--policy", out, code=2))
    assert "policy.npz was trained on 70.0% of this log" in text
    assert "--allow-training-rows judges it all the same" in text
    forced = run("evaluate", path, "--policy", out, "--allow-training-rows", "--json")
    assert "was trained on" in json.loads(forced.stdout)["warnings"][0]
    assert json.loads(forced.stdout)["allow_training_rows"]


def test_what_it_prints(path, tmp_path):
    text = said(run("train-policy", path, "--out", tmp_path / "p.npz", *QUICK))
    assert "Trained classifiers on 2,800 rows of 4,000 (the first by time): 2 actions" in text
    assert "0.001 -0.3" in text
    assert "chosen" in text
    assert "Judged on the 1,200 rows held out" in text
    assert "Two-sided, at 0.95" in text
    assert "promote: the betting bound on the difference is 0.0" in text
    assert f"The policy is in {tmp_path / 'p.npz'}." in text


def test_columns_of_another_file_are_found_by_name(path, tmp_path):
    out, rest = tmp_path / "policy.npz", tmp_path / "rest.csv"
    run("train-policy", path, "--out", out, "--held-out", rest, *QUICK)
    straight = json.loads(run("evaluate", rest, "--policy", out, "--json").stdout)
    log = read_bandit(rest)
    mixed = BanditLog.of(
        log.contexts[:, ::-1], [log.name_of(a) for a in log.actions], log.rewards,
        log.propensities, feature_names=["height", "age"],
    )  # fmt: skip
    write_bandit_csv(mixed, rest)
    again = json.loads(run("evaluate", rest, "--policy", out, "--json").stdout)
    assert again["lower_bound"] == straight["lower_bound"]
    text = rest.read_text().replace("x_height", "x_weight")
    rest.write_text(text)
    assert "got none called 'height', which has 'weight'" in said(
        run("evaluate", rest, "--policy", out, code=2)
    )
    rest.write_text(text.replace("tea", "soup"))
    assert "an action must be one of milk, tea, got 'soup'" in said(
        run("evaluate", rest, "--policy", out, code=2)
    )


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        (["--model", "forests", "--set", "model.n_trees=3", "--policy", "softmax"], "Softmax"),
        (["--steps", 1000, "--penalty", 0.1, "--set", "policy.epsilon=0.3"], "EpsilonGreedy"),
        (["--model", "classifiers", "--penalty", 0.1, "--policy", "greedy"], "Greedy"),
    ],
)
def test_every_model_and_policy(path, tmp_path, arguments, name):
    out = tmp_path / "policy.npz"
    result = run(
        "train-policy", path, "--out", out, *arguments, "--hold-out", 0.5, "--split", "random",
        "--json",
    )  # fmt: skip
    policy = load_policy(out)
    assert type(policy).__name__ == name
    assert getattr(policy, "epsilon", 0.3) == 0.3
    record = json.loads(result.stdout)
    assert record["evaluation"]["rows"] == 2000
    assert record["penalties"] == []


def test_nothing_need_be_held_out(path, tmp_path):
    arguments = ["--out", tmp_path / "p.npz", *QUICK, "--hold-out", 0]
    assert json.loads(run("train-policy", path, *arguments, "--json").stdout)["evaluation"] is None
    assert "Judged" not in run("train-policy", path, *arguments).stdout


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--model", "rankres"], "Did you mean 'rankers'?"),
        (["--policy", "uniform"], "--policy must be one of"),
        (["--baseline", "x.npz"], "--baseline must be one of"),
        (["--hold-out", 1], "--hold-out must be a number"),
        (["--hold-out", 0, "--held-out", "rest.csv"], "--held-out needs held-out rows"),
        (["--split", "tmie"], "Did you mean 'time'?"),
        (["--folds", 1], "--folds must be an integer of at least 2"),
        (["--steps", 5, "--model", "forests"], "--steps is for --model rankers"),
        (["--penalty", 1, "--model", "forests"], "a model that has one, which forests have not"),
        (["--model", "classifiers", "--penalty", 0], "--penalty must be a number above 0"),
        (["--set", "ranker.x=1"], "what to set must be one of model, policy"),
        (["--set", "model.n_tree=1"], "A setting of rankers must be one of"),
        (["--set", "policy.epsilom=1"], "Did you mean 'epsilon'?"),
        (["--seed", -1], "seed"),
    ],
)
def test_bad_input_is_one_sentence(path, tmp_path, arguments, sentence, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = run("train-policy", path, "--out", tmp_path / "new" / "p.npz", *arguments, code=2)
    assert sentence in said(result)
    assert len(result.stderr.strip().splitlines()) <= 3
    assert not os.listdir(tmp_path)


def test_a_log_without_times_is_dealt_by_chance_or_told_so(path, log, tmp_path):
    plain = tmp_path / "plain.csv"
    write_bandit_csv(BanditLog.of(log.contexts, log.actions, log.rewards, log.propensities), plain)
    out = ["--out", tmp_path / "p.npz", *QUICK]
    assert json.loads(run("train-policy", plain, *out, "--json").stdout)["split"] == "random"
    text = said(run("train-policy", plain, *out, "--split", "time", code=2))
    assert "must have times to be split by time, got none: --split rows takes" in text
    plain.write_text("action,propensity,reward\n" + "0,0.5,0.25\n1,0.5,1\n" * 10)
    assert "rewards must be 0 or 1" in said(run("train-policy", plain, *out, code=2))
