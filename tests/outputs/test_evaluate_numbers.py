"""What ``keyhole evaluate`` and ``train-policy`` tell, from the rows of the log."""

import csv
import json
import math

import numpy as np
import pytest

from keyhole.base.files import write_arrays
from keyhole.data.bandit.formats import read_bandit
from keyhole.policies.choosing import deal_folds
from keyhole.policies.files import load_policy
from keyhole.policies.training import fit_classifiers
from tests.lab.running import run
from tests.outputs.estimates import (
    Rows,
    check_diagnostics,
    check_line,
    close,
    estimates,
    warned,
)
from tests.outputs.inputs import write_log, write_ranked_log

pytestmark = pytest.mark.interpreted


def rows_of(path):
    """Return actions by number, rewards, propensities and features of a log."""
    rows = list(csv.DictReader(path.read_text().splitlines()))
    names = sorted({row["action"] for row in rows})
    return (
        np.array([names.index(row["action"]) for row in rows]),
        np.array([float(row["reward"]) for row in rows]),
        np.array([float(row["propensity"]) for row in rows]),
        np.array([[float(row["x_age"]), float(row["x_height"])] for row in rows]),
    )


def predictions(actions, rewards, features, seed, penalty=10.0):
    """Return what ridge regressions on the other folds predict of each action."""
    n, n_actions = len(actions), actions.max() + 1
    fold, table = np.random.default_rng(seed).permutation(n) % 5, np.empty((n, n_actions))
    for held_out in range(5):
        seen = fold != held_out
        centre, scale = features[seen].mean(axis=0), features[seen].std(axis=0)
        design = np.column_stack([np.ones(n), (features - centre) / scale])
        for action in range(n_actions):
            rows = seen & (actions == action)
            x = np.concatenate([design[rows], math.sqrt(penalty) * np.eye(design.shape[1])])
            gap = rewards[rows] - rewards[seen].mean()
            weights = np.linalg.lstsq(x, np.append(gap, np.zeros(design.shape[1])), rcond=None)[0]
            table[fold == held_out, action] = (
                rewards[seen].mean() + design[fold == held_out] @ weights
            )
    return table


def check_evaluation(told, log, chances, *, confidence, seed, bound, clip, floor, span):
    """Compare an evaluation of two policies with rows; chances are None for the logging one."""
    actions, rewards, propensities, features = log
    n, table = len(actions), predictions(actions, rewards, features, seed)
    clip = math.sqrt(n) if clip is None else clip
    found = []
    for role, each in zip(("policy", "baseline"), chances, strict=True):
        own, trials = propensities, None
        if each is None:
            each, own, largest = np.eye(3)[actions], np.ones(n), 1.0
            trials = (int(rewards.sum()), n)
        else:
            largest = each.max() / (propensities.min() if floor is None else floor)
        lines = estimates(actions, rewards, own, each, table, clip=clip, largest=largest, span=span)
        lines["importance-weighted"] = lines["importance-weighted"]._replace(trials=trials)
        for name, rows in lines.items():
            check_line(told[role]["estimates"][name], rows, confidence, seed)
        weights = np.array([each[i, a] / own[i] for i, a in enumerate(actions)])
        check_diagnostics(told[role]["diagnostics"], weights, rewards != 0.0)
        assert told[role]["diagnostics"]["unknown"] == 0.0
        found.append(lines)
    for name, rows in found[0].items():
        check_line(told["difference"][name], rows.minus(found[1][name]), confidence, seed)
    decisive = told["difference"]["importance-weighted"]
    assert told["lower_bound"] == decisive["bounds"][bound]
    assert told["interval"] == decisive["intervals"][bound]
    assert told["rows"] == n
    assert told["verdict"] == ("promote" if told["lower_bound"] > 0.0 else "keep")
    for role in ("policy", "baseline"):
        for sentence in warned(told[role]["name"], told[role]["diagnostics"]):
            assert sentence in told["warnings"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("logs")
    write_log(folder / "log.csv")
    return folder


@pytest.fixture(scope="module")
def trained(folder):
    """Return what training tells, of a log of which the last two fifths are held out."""
    given = ["--model", "classifiers", "--folds", 2, "--penalty", 0.1, "--penalty", 0.01,
             "--hold-out", 0.4, "--seed", 3, "--confidence", 0.9]  # fmt: skip
    rest = ["--held-out", folder / "rest.csv"]
    return json.loads(
        run("train-policy", folder / "log.csv", "--out", folder / "policy.npz", *rest, *given,
            "--json").stdout
    )  # fmt: skip


def test_a_saved_policy_against_chance(folder, trained):
    """Losses as well as gains, a clip and a floor of one's own, at 90 %."""
    log = rows_of(folder / "log.csv")
    told = json.loads(run(
        "evaluate", folder / "log.csv", "--policy", folder / "policy.npz", "--allow-training-rows",
        "--baseline", "uniform", "--confidence", 0.9, "--rewards", -1, 2, "--clip", 1.5, "--floor",
        0.1, "--seed", 5, "--bound", "student-t", "--json",
    ).stdout)  # fmt: skip
    chances = load_policy(folder / "policy.npz").probabilities(log[3])
    check_evaluation(
        told, log, (chances, np.full((120, 3), 1 / 3)), confidence=0.9, seed=5, bound="student-t",
        clip=1.5, floor=0.1, span=(-1.0, 2.0),
    )  # fmt: skip
    lines = (folder / "log.csv").read_text().splitlines()[1:]
    check_training_rows(told["policy"]["training_rows"], lines[:72], lines)
    shared = told["policy"]["training_rows"]
    assert told["warnings"][0].startswith(
        f"policy.npz was trained on {shared['share']:.1%} of this log: {shared['found']:.1%} of "
        f"its rows are among the training rows, {shared['by_chance']:.1%} would be by chance"
    )


def check_training_rows(told, trained_on, judged_on):
    """Compare with rows as texts without their times, which are no part of them."""
    trained_on = [line.rpartition(",")[0] for line in trained_on]
    judged_on = [line.rpartition(",")[0] for line in judged_on]
    n, asked = len(trained_on), len(judged_on)
    alone = sum(trained_on.count(line) == 1 for line in trained_on)
    chance = (n - alone + 1) / (n + 2)
    found = sum(line in trained_on for line in judged_on) / asked
    assert told["n_rows"] == asked
    assert told["found"] == close(found)
    assert told["by_chance"] == close(chance)
    assert told["error"] == close(math.sqrt(chance * (1 - chance) * (1 / asked + 2 / n)))
    assert told["share"] == close(max(0.0, found - chance) / (1 - chance))
    assert told["is_known"]


def test_one_action_for_everyone_against_what_was_logged(folder):
    """The action is chosen on a random half of the rows, and judged on the other."""
    log, seed = rows_of(folder / "log.csv"), 2
    told = json.loads(
        run("evaluate", folder / "log.csv", "--policy", "best-fixed", "--seed", seed, "--json",
            code=1).stdout
    )  # fmt: skip
    chosen = np.random.default_rng(seed).permutation(120) < 60
    actions, rewards, propensities, _ = (part[chosen] for part in log)
    worth = []
    for action in range(3):
        rows = np.where(actions == action, rewards / propensities, 0.0)
        worth.append(rows.mean() - rows.std(ddof=1) / math.sqrt(60))
    best = int(np.argmax(worth))
    kept = tuple(part[~chosen] for part in log)
    check_evaluation(
        told, kept, (np.eye(3)[[best] * 60], None), confidence=0.95, seed=seed, bound="betting",
        clip=None, floor=None, span=(0.0, 1.0),
    )  # fmt: skip
    assert told["notes"] == [
        f"best-fixed is action a{best}, chosen on 60 rows; the 60 others are what everything is "
        f"evaluated on."
    ]


def test_training_is_judged_on_what_it_held_out(folder, trained):
    log = rows_of(folder / "log.csv")
    rest = tuple(part[72:] for part in log)  # by time, which is their order
    chances = load_policy(folder / "policy.npz").probabilities(rest[3])
    check_evaluation(
        trained["evaluation"], rest, (chances, None), confidence=0.9, seed=3, bound="betting",
        clip=None, floor=None, span=(0.0, 1.0),
    )  # fmt: skip
    assert (trained["training_rows"], trained["held_out_rows"]) == (72, 48)
    assert trained["actions"] == 3
    lines = (folder / "log.csv").read_text().splitlines()[1:]
    check_training_rows(trained["evaluation"]["policy"]["training_rows"], lines[:72], lines[72:])


def test_penalties_are_judged_by_likelihood_on_the_other_folds(folder, trained):
    actions, rewards, _, features = (part[:72] for part in rows_of(folder / "log.csv"))
    train = read_bandit(folder / "log.csv").rows(np.arange(120) < 72)
    folds, scores = deal_folds(train, 2, 3), {}
    assert sorted(np.bincount(folds)) == [36, 36]
    for row in trained["penalties"]:
        parts = []
        for fold in range(2):
            scorer = fit_classifiers(train.rows(folds != fold), l2=row["penalty"], no_click="never")
            own = []
            for action in range(3):
                asked = (folds == fold) & (actions == action)
                odds = scorer.scores(features[asked])[:, action]
                chance, clicked = 1.0 / (1.0 + np.exp(-odds)), rewards[asked] > 0.0
                if 0 < clicked.sum() < len(clicked):  # of others nothing is told
                    own.append(np.where(clicked, np.log(chance), np.log(1.0 - chance)).mean())
            parts.append(np.mean(own))
        scores[row["penalty"]] = np.mean(parts)
        assert row["score"] == pytest.approx(scores[row["penalty"]], rel=1e-6)
    assert trained["penalty"] == max(scores, key=lambda penalty: scores[penalty])


def test_rankings_of_documents_from_the_log_of_a_ranker(tmp_path):
    """Grades of 0 to 2, the first two of four documents revealed, each pair as likely."""
    log = write_ranked_log(tmp_path / "log.npz")
    write_arrays(tmp_path / "model.npz", {"weights": [2.0, -0.5], "minmax": False})
    told = json.loads(run(
        "evaluate", tmp_path / "log.npz", "--policy", tmp_path / "model.npz", "--measure", "DCG@2",
        "--top", 2, "--rewards", 0, 3, "--seed", 1, "--bound", "student-t", "--json", code=1,
    ).stdout)  # fmt: skip
    n, second = 60, 1 / math.log2(3)
    features = log.features.reshape(n, 4, 2)
    shown, values = log.rankings.reshape(n, 4)[:, :2], log.values.reshape(n, 4)[:, :2]
    most = 7.0 * (1.0 + second)
    rows, weights = np.zeros(n), np.zeros(n)
    for i in range(n):
        wanted = np.argsort(-(features[i] @ [2.0, -0.5]), kind="stable")[:2].tolist()
        grades = dict(zip(shown[i].tolist(), values[i].tolist(), strict=True))
        if set(wanted) == set(grades):
            weights[i] = 6.0
            first, other = (2.0 ** grades[item] - 1.0 for item in wanted)
            rows[i] = 6.0 * (first + other * second)
    logged = (2.0**values - 1.0) @ [1.0, second]
    lines = {
        "policy": Rows(rows, "none", (0.0, 6.0 * most), (0.0, most)),
        "baseline": Rows(logged, "none", (0.0, most), (0.0, most)),
    }
    for role, line in lines.items():
        check_line(told[role]["estimates"]["importance-weighted"], line, 0.95, 1)
    gap = lines["policy"].minus(lines["baseline"])
    check_line(told["difference"]["importance-weighted"], gap, 0.95, 1)
    rewarded = np.array([bool((row > 0).any()) for row in values])
    check_diagnostics(told["policy"]["diagnostics"], weights, rewarded)
    check_diagnostics(told["baseline"]["diagnostics"], np.ones(n), rewarded)
    decisive = told["difference"]["importance-weighted"]
    assert told["lower_bound"] == decisive["bounds"]["student-t"]
    assert told["interval"] == decisive["intervals"]["student-t"]
    assert told["rows"] == n
    assert told["notes"] == ["Rewards are DCG@2 of the first 2 documents."]


def test_choices_that_were_never_logged_are_not_known(tmp_path):
    """Of four actions the log shows three: a quarter of what chance does is not known."""
    rows = list(csv.DictReader(_written(tmp_path / "named.csv").read_text().splitlines()))
    lines = ["action,propensity,reward,x_age"]
    lines += [f"{r['action'][1]},{r['propensity']},{r['reward']},{r['x_age']}" for r in rows]
    (tmp_path / "log.csv").write_text("\n".join(lines) + "\n")
    told = json.loads(
        run("evaluate", tmp_path / "log.csv", "--policy", "uniform", "--actions", 4, "--json",
            code=1).stdout
    )  # fmt: skip
    found = told["policy"]["diagnostics"]
    weights = np.array([0.25 / float(row["propensity"]) for row in rows])
    check_diagnostics(found, weights, np.array([row["reward"] != "0" for row in rows]))
    assert (found["unknown"], found["unknown_actions"]) == (0.25, ["3"])
    assert (
        "uniform makes 25.0% of its choices among actions that the log never shows (3): what they "
        "earn is not known and counts as nothing."
    ) in told["warnings"]


def _written(path):
    write_log(path, seed=8)
    return path
