"""Every number that the gate reports, by definition: for settings of which none is the default."""

import itertools
import math
from typing import Any

import numpy as np
import pytest

from keyhole.data.bandit.log import BanditLog
from keyhole.data.bandit.row_digests import SeenRows
from keyhole.offline.bounds import bootstrap
from keyhole.offline.evaluation import best_fixed_action, evaluate
from keyhole.offline.rewards import predict_rewards
from keyhole.policies.base import Always
from tests.unit import references_gate

NUMBERS = np.random.default_rng(8)
N = 60
NAMES = ("ant", "bee", "cat", "dog")


def assert_same(found, expected, where=""):
    """Compare plain data, numbers to rounding."""
    if isinstance(expected, dict):
        assert list(found) == list(expected), where
        for name in expected:
            assert_same(found[name], expected[name], f"{where}/{name}")
    elif isinstance(expected, list | tuple):
        assert len(found) == len(expected), where
        for place, each in enumerate(expected):
            assert_same(found[place], each, f"{where}/{place}")
    elif isinstance(expected, float):
        assert found is not None, where
        close = math.isclose(found, expected, rel_tol=1e-9, abs_tol=1e-11)
        assert close, f"{where}: {found} must be {expected}"
    else:
        assert found == expected, f"{where}: {found} must be {expected}"


def graded_log():
    """Rewards between -1 and 2, of three of four actions."""
    propensities = NUMBERS.uniform(0.15, 0.9, size=N)
    return BanditLog.of(
        NUMBERS.normal(size=(N, 2)),
        NUMBERS.integers(3, size=N),
        NUMBERS.uniform(-1.0, 2.0, size=N).round(2),
        propensities,
        n_actions=4,
        action_names=NAMES,
    )


GRADED = graded_log()
CHANCES = NUMBERS.dirichlet([2.0, 1.0, 3.0, 0.5], size=N)
OTHERS = NUMBERS.dirichlet([1.0, 4.0, 1.0, 1.0], size=N)
TABLE = NUMBERS.uniform(-1.5, 3.0, size=(N, 4))
UNFIT = (
    "Clopper-Pearson needs a uniform logging policy and a policy that takes one action for "
    "certain, or the logging policy itself."
)
BINARY = "Clopper-Pearson needs rewards that are 0 or 1."


def without_words(report):
    return {key: value for key, value in report.items() if key not in ("notes", "warnings")}


@pytest.mark.parametrize("bound", ["betting", "empirical-bernstein", "student-t", "bootstrap"])
def test_graded_rewards_with_predictions_of_another_log(bound):
    question: dict[str, Any] = {
        "confidence": 0.8, "bound": bound, "rewards": (-1.0, 2.0), "clip": 1.3, "seed": 4
    }  # fmt: skip
    found = evaluate(
        GRADED, CHANCES, OTHERS, floor=0.05, predictions=TABLE, names=("new", "old"), **question
    )
    expected = references_gate.report(
        GRADED,
        [
            ("new", CHANCES, CHANCES.max() / 0.05, BINARY),
            ("old", OTHERS, OTHERS.max() / 0.05, BINARY),
        ],
        **question,
        table=TABLE,
        elsewhere=True,
    )
    assert_same(without_words(found.as_dict()), expected)
    assert found.lower_bound == found.as_dict()["lower_bound"]
    assert list(found.interval) == found.as_dict()["interval"]
    assert found.as_dict()["policy"]["diagnostics"]["unknown_actions"] == ("dog",)


def clicks():
    numbers = np.random.default_rng(2)
    actions = numbers.integers(3, size=N)
    rewards = numbers.random(N) < np.array([0.05, 0.95, 0.4])[actions]
    return BanditLog.of(numbers.normal(size=(N, 1)), actions, rewards, np.full(N, 1 / 3))


@pytest.mark.parametrize("clip", [None, 2.0])
def test_clicks_of_fixed_actions_with_predictions_of_its_own(clip):
    log = clicks()
    question: dict[str, Any] = {
        "confidence": 0.9, "bound": "betting", "rewards": None, "clip": clip, "seed": 11
    }  # fmt: skip
    found = evaluate(log, Always(3, 1), Always(3, 0), **question)
    trials = [
        (int(log.rewards[log.actions == a].sum()), int((log.actions == a).sum())) for a in (1, 0)
    ]
    expected = references_gate.report(
        log,
        [("Always", np.eye(3)[[action] * N], 3.0, trials[place])
         for place, action in enumerate((1, 0))],
        **question,
        table=predict_rewards(log, seed=11),
        elsewhere=False,
    )  # fmt: skip
    assert_same(without_words(found.as_dict()), expected)
    assert found.verdict == "promote"
    assert found.difference["clipped"].bounds["betting"].value is None or clip is None


def test_the_logging_policy_is_what_it_did():
    log = clicks()
    question: dict[str, Any] = {
        "confidence": 0.85, "bound": "student-t", "rewards": None, "clip": 0.5, "seed": 1
    }  # fmt: skip
    table = np.random.default_rng(1).random((N, 3))
    chances = np.random.default_rng(5).dirichlet(np.ones(3), size=N)
    found = evaluate(log, chances, "logged", predictions=table, **question)
    expected = references_gate.report(
        log,
        [("policy", chances, chances.max() * 3, UNFIT), ("logged", np.eye(3)[log.actions], 1.0,
         (int(log.rewards.sum()), N))],
        **question,
        table=table,
        elsewhere=True,
    )  # fmt: skip
    # Of the logger only the weights are known, which are 1: its propensities count for nothing.
    logger = BanditLog.of(log.contexts, log.actions, log.rewards, np.ones(N), n_actions=3)
    alone = references_gate.report(
        logger,
        [("policy", chances, 1.0, UNFIT), ("logged", np.eye(3)[log.actions], 1.0,
         (int(log.rewards.sum()), N))],
        **question,
        table=table,
        elsewhere=True,
    )["baseline"]  # fmt: skip
    assert_same(found.as_dict()["policy"], expected["policy"])
    assert_same(found.as_dict()["baseline"], alone)
    values = [
        found.as_dict()[who]["estimates"]["importance-weighted"]["value"]
        for who in ("policy", "baseline")
    ]
    gap = found.as_dict()["difference"]["importance-weighted"]["value"]
    assert gap == pytest.approx(values[0] - values[1], rel=1e-12)


def test_best_fixed_is_judged_on_the_other_half():
    """Chances and predictions that are given row by row go with their rows."""
    question: dict[str, Any] = {
        "confidence": 0.9, "bound": "student-t", "rewards": (-1.0, 2.0), "clip": 1.1
    }  # fmt: skip
    halves = [np.random.default_rng(seed).permutation(N) < N // 2 for seed in range(30)]
    bests = [best_fixed_action(GRADED.rows(half)) for half in halves]
    # One half that would choose otherwise than the whole log does, and than the other half does.
    others = [best_fixed_action(GRADED.rows(~half)) for half in halves]
    question["seed"] = next(
        seed
        for seed in range(1, 30)
        if bests[seed] not in (best_fixed_action(GRADED), others[seed], bests[0])
    )
    chosen, best = halves[question["seed"]], bests[question["seed"]]
    kept, half = GRADED.rows(~chosen), ~chosen
    found = evaluate(GRADED, CHANCES, "best-fixed", predictions=TABLE, **question)
    fixed = np.eye(4)[[best] * len(kept)]
    least = kept.propensities.min()
    expected = references_gate.report(
        kept,
        [
            ("policy", CHANCES[half], CHANCES[half].max() / least, BINARY),
            ("best-fixed", fixed, 1.0 / least, BINARY),
        ],
        **question,
        table=TABLE[half],
        elsewhere=True,
    )
    assert_same(without_words(found.as_dict()), expected)
    assert found.notes == (
        f"best-fixed is action {NAMES[best]}, chosen on {N // 2} rows; the {N - N // 2} others are "
        f"what everything is evaluated on.",
    )


@pytest.mark.parametrize("n_groups", [5000, 50])
def test_means_of_many_values_are_resampled_by_groups(n_groups, monkeypatch):
    """Rows are dealt into groups of nearly one size; each row is a group where there is room."""
    monkeypatch.setattr("keyhole.offline.bounds._GROUPS", n_groups)
    rows = np.random.default_rng(3).normal(size=130) ** 3
    numbers = np.random.default_rng(17)
    group = numbers.permutation(130) % min(130, n_groups)
    groups = [rows[group == number].tolist() for number in range(min(130, n_groups))]
    means = []
    for _ in range(250):
        picked = [
            value
            for pick in numbers.integers(len(groups), size=len(groups))
            for value in groups[pick]
        ]
        means.append(math.fsum(picked) / len(picked))
    expected = sorted(means)[math.floor(0.15 * 249)]
    found = bootstrap(rows, 0.85, n_resamples=250, seed=17)
    assert found == pytest.approx(expected, rel=1e-12)


def test_the_best_fixed_action_is_worth_most_after_an_error():
    """By definition, over logs with rewards of either sign and actions that were never taken."""
    for seed in range(30):
        numbers = np.random.default_rng(seed)
        actions = numbers.choice([0, 2, 3], size=12)
        rewards = numbers.normal(0.3 * (seed % 3 - 1), 1.0, size=12)
        log = BanditLog.of(
            np.zeros((12, 0)), actions, rewards, numbers.uniform(0.2, 0.9, 12), n_actions=6
        )
        worth = []
        for action in range(6):
            rows = [
                reward / chance if taken == action else 0.0
                for taken, reward, chance in zip(actions, rewards, log.propensities, strict=True)
            ]
            error = math.sqrt(references_gate.variance(rows) / 12)
            worth.append(math.fsum(rows) / 12 - error)
        assert best_fixed_action(log) == int(np.argmax(worth))


class Fitted:
    """A policy that says what it was trained on."""

    is_fitted = True

    def __init__(self, seen):
        self.seen_rows = seen

    def probabilities(self, contexts):
        return np.tile([0.1, 0.2, 0.3, 0.4], (len(contexts), 1))


def test_what_was_trained_on_is_reported():
    """30 rows of the log and 50 others were seen."""
    others = np.random.default_rng(9).normal(size=(50, 2))
    seen = SeenRows.of(
        np.concatenate([GRADED.contexts[:30], others]),
        np.concatenate([GRADED.actions[:30], np.zeros(50, int)]),
        np.concatenate([GRADED.rewards[:30], np.zeros(50)]),
    )
    found = evaluate(GRADED, Fitted(seen), "uniform", rewards=(-1, 2), allow_training_rows=True)
    by_chance = 1 / 82
    error = math.sqrt(by_chance * (1 - by_chance) * (1 / N + 2 / 80))
    share = (30 / N - by_chance) / (1 - by_chance)
    assert_same(
        found.as_dict()["policy"]["training_rows"],
        {
            "n_rows": N,
            "found": 30 / N,
            "by_chance": by_chance,
            "error": error,
            "share": share,
            "is_known": True,
        },
    )
    assert found.as_dict()["baseline"]["training_rows"] is None
    told = f"Fitted was trained on {share:.1%} of this log: {30 / N:.1%} of its rows are among"
    assert found.warnings[0].startswith(told), found.warnings
    assert f"{by_chance:.1%} would be by chance. Its value here is flattered." in found.warnings[0]


def test_a_report_shows_its_numbers():
    found = evaluate(
        GRADED, CHANCES, OTHERS, 0.8, bound="student-t", rewards=(-1, 2), names=("new", "old")
    )
    report = found.as_dict()
    gap = report["difference"]["importance-weighted"]
    text = repr(found)
    assert text.splitlines()[0] == f"{report['verdict']}: new against old on {N} rows"
    for name, line in (
        ("new", report["policy"]["estimates"]["importance-weighted"]),
        ("old", report["baseline"]["estimates"]["importance-weighted"]),
        ("difference", gap),
    ):
        low, high = line["intervals"]["student-t"]
        row = next(row for row in text.splitlines() if row.strip().startswith(name))
        assert row.split(name)[1].strip() == f"{line['value']:.5f} ({low:.5f} to {high:.5f})"
    assert f"{gap['bounds']['student-t']:.5f} (student-t, 0.8)" in text
    of_line = repr(found.difference["importance-weighted"])
    assert of_line.splitlines()[0].startswith(f"importance-weighted {gap['value']:.5f}")
    for name, bound in gap["bounds"].items():
        if bound is not None:
            low, high = gap["intervals"][name]
            assert f"at least {bound:.5f}; {low:.5f} to {high:.5f}" in of_line
    for name, line in report["policy"]["estimates"].items():
        told = f"{line['value']:.5g} ± {line['standard_error']:.2g}"
        assert told in repr(found.policy), name
    drawn = found.drawing("it")
    assert drawn.estimates.label == "it"
    for name, line in report["difference"].items():
        point = drawn.estimates.rows[name]
        known = {key: value for key, value in line["bounds"].items() if value is not None}
        assert (point.value, point.low, point.bounds) == (
            line["value"], line["bounds"]["student-t"], known
        )  # fmt: skip


def test_every_verdict_is_that_of_the_bound_that_decides():
    """All bounds are tried: some promote, some keep, and each says so of itself alone."""
    log = clicks()
    verdicts = set()
    for bound, confidence in itertools.product(
        ("betting", "empirical-bernstein", "student-t", "bootstrap"), (0.6, 0.999)
    ):
        found = evaluate(log, Always(3, 2), Always(3, 0), confidence, bound=bound)
        values = {
            name: each.value
            for name, each in found.difference["importance-weighted"].bounds.items()
        }
        decides = values[bound]
        assert decides is not None
        assert found.verdict == ("promote" if decides > 0 else "keep")
        verdicts.add((bound, found.verdict))
    assert len(verdicts) > 4
