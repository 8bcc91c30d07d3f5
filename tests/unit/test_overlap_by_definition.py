"""What diagnostics warn of, and how rows that were trained on are counted: on either side of each.

Thresholds are tried where they lie, and what is refused for being too much is accepted a little
below it.
"""

import math
from typing import Any

import numpy as np
import pytest

from keyhole.base.errors import InvalidInput
from keyhole.data.bandit import row_digests as digests_of_rows
from keyhole.data.bandit.log import BanditLog
from keyhole.data.bandit.row_digests import Overlap, RowRecorder, SeenRows, row_digests
from keyhole.offline.diagnostics import Diagnostics, diagnose
from keyhole.offline.evaluation import evaluate
from keyhole.offline.overlap import training_overlap, training_remarks
from keyhole.offline.target import target_of

FINE = Diagnostics(
    n_rows=1000,
    effective_rows=100.0,
    largest_weight=3.0,
    largest_share=0.01,
    mean_weight=1.0,
    mean_weight_error=0.05,
    overlap=0.5,
    n_rewarded=10,
    unknown=0.0,
    unknown_actions=(),
)


def changed(**fields):
    return Diagnostics(**{**vars(FINE), **fields})


TOLD: dict[str, tuple[dict[str, Any], str]] = {
    "few": ({"effective_rows": 99.9}, "99.9 effective rows of 1000, fewer than 100"),
    "unrewarded": ({"n_rewarded": 9}, "it has 9 rewarded rows, fewer than 10"),
    "too heavy": (
        {"mean_weight": 1.201},
        "it has a mean weight of 1.201 ± 0.050 where it should be 1.000",
    ),
    "too light": (
        {"mean_weight": 0.799},
        "it has a mean weight of 0.799 ± 0.050 where it should be 1.000",
    ),
    "unknown": (
        {"unknown": 0.011, "mean_weight": 0.989, "unknown_actions": tuple("abcde")},
        "it makes 1.1% of its choices among actions that the log never shows (a, b, c, d, e):",
    ),
    "many unknown": (
        {"unknown": 0.4, "mean_weight": 0.6, "unknown_actions": tuple("abcdef")},
        "it makes 40.0% of its choices among actions that the log never shows (a, b, c, d, e, …):",
    ),
}


@pytest.mark.parametrize("name", TOLD)
def test_each_warning_is_of_one_thing(name):
    fields, sentence = TOLD[name]
    (warning,) = changed(**fields).warnings("it")
    assert sentence in warning


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"mean_weight": 1.2},
        {"mean_weight": 0.8},
        {"unknown": 0.01, "mean_weight": 0.99, "unknown_actions": ("a",)},
        {"unknown": 0.01, "mean_weight": 0.79, "unknown_actions": ("a",)},
        {"unknown": 0.01, "mean_weight": 1.19, "unknown_actions": ("a",)},
        {"mean_weight": 1.0 + 5e-10, "mean_weight_error": 0.0},
    ],
)
def test_what_is_just_enough_is_no_reason_to_warn(fields):
    assert changed(**fields).warnings("it") == []


def test_what_falls_on_unknown_actions_is_missing_from_the_mean_weight():
    """A policy that does 30 % of what the log never shows has a mean weight of 0.7, not of 1."""
    for mean, n_warnings in (
        (0.7, 1),
        (0.5001, 1),
        (0.8999, 1),
        (0.4999, 2),
        (0.9001, 2),
        (1.3, 2),
    ):
        found = changed(unknown=0.3, mean_weight=mean, unknown_actions=("x",)).warnings("it")
        assert len(found) == n_warnings, mean
    assert "where it should be 0.700" in found[1]


def test_too_few_rows_are_told_of_before_too_few_rewards():
    found = changed(effective_rows=50.0, n_rewarded=2).warnings("it")
    assert [word in found[0] for word in ("effective", "rewarded")] == [True, False]
    assert len(found) == 1


def test_a_log_with_an_action_that_nobody_took():
    """Weights, errors and the share of what is unknown, from the rows."""
    numbers = np.random.default_rng(1)
    actions = numbers.choice([0, 2], size=300)
    log = BanditLog.of(
        np.zeros((300, 0)), actions, numbers.random(300), np.full(300, 0.5), n_actions=4,
        action_names=["a", "b", "c", "d"],
    )  # fmt: skip
    chances = numbers.dirichlet([3.0, 1.0, 1.0, 0.2], size=300)
    chances[:, 0] += chances[:, 3]
    chances[:, 3] = 0.0
    found = diagnose(log, target_of(log, chances))
    weights = [2.0 * row[action] for row, action in zip(chances, actions, strict=True)]
    mean = math.fsum(weights) / 300
    spread = math.fsum((weight - mean) ** 2 for weight in weights) / 299
    assert found.mean_weight == pytest.approx(mean, rel=1e-12)
    assert found.mean_weight_error == pytest.approx(math.sqrt(spread / 300), rel=1e-12)
    assert found.unknown == pytest.approx(math.fsum(chances[:, 1]) / 300, rel=1e-12)
    assert found.unknown_actions == ("b",)  # d is never shown, and never chosen
    assert found.unknown > 0.1
    assert len(found.warnings("it")) == 1


# ------------------------------------------------------------------ rows that were trained on


def table(keys, actions=None, rewards=None):
    keys = np.asarray(keys, float)
    actions = np.zeros(len(keys), int) if actions is None else np.asarray(actions)
    rewards = np.zeros(len(keys)) if rewards is None else np.asarray(rewards, float)
    return keys[:, None], actions, rewards


@pytest.mark.parametrize(
    ("trained", "asked"),
    [
        ([1, 2, 3, 4, 5], [4, 5, 6, 7, 8, 9, 10]),
        ([1, 1, 2, 3, 3, 3, 4, 5], [1, 2, 6, 6]),
        ([7, 7, 8], [7]),
        ([7, 7], [7, 8]),
        (list(range(50)), list(range(40, 90))),
        ([1] * 30 + list(range(100, 170)), list(range(95, 105)) * 3),
    ],
)
def test_how_many_rows_are_found_and_would_be_by_chance(trained, asked):
    found = SeenRows.of(*table(trained)).overlap(*table(asked))
    n, m = len(trained), len(asked)
    equal = sum(
        trained.count(key) > 1 for key in trained
    )  # rows with an equal one among the others
    chance = (equal + 1) / (n + 2) if equal < n else 1.0
    plain = (equal + 1) / (n + 2)
    error = math.sqrt(plain * (1 - plain) * (1 / m + 2 / n))
    share = sum(key in trained for key in asked) / m
    assert found.n_rows == m
    assert found.found == pytest.approx(share, rel=1e-12)
    assert found.by_chance == pytest.approx(chance, rel=1e-12)
    assert found.error == pytest.approx(error, rel=1e-12)
    beyond = max(0.0, share - chance)
    assert found.share == pytest.approx(beyond / (1 - chance) if chance < 1 else 0.0, rel=1e-12)
    assert found.is_known == (1 - chance > 4 * error)
    assert found.is_certain == (found.is_known and share - chance > 4 * error)


def test_what_is_certain_and_what_is_known():
    """Just above four errors, and at four errors."""
    assert Overlap(10, 0.5, 0.25, 0.0624).is_certain
    assert not Overlap(10, 0.5, 0.25, 0.0625).is_certain
    assert Overlap(10, 0.5, 0.25, 0.1874).is_known
    assert not Overlap(10, 0.5, 0.25, 0.1875).is_known
    assert not Overlap(0, 0.5, 0.25, 0.01).is_known
    assert not Overlap(0, 0.5, 0.25, 0.01).is_certain
    assert Overlap(10, 0.5, 0.25, 0.0).share == pytest.approx(1 / 3)
    assert Overlap(10, 0.2, 0.25, 0.0).share == 0.0
    assert Overlap(10, 1.0, 1.0, 0.0).share == 0.0


class Fitted:
    is_fitted = True

    def __init__(self, rows, action_names=None):
        self.seen_rows, self.action_names = SeenRows.of(*rows), action_names

    def probabilities(self, contexts):
        return np.full((len(contexts), 2), 0.5)


REFUSED = Overlap(1000, 0.5, 0.0, 0.01)
LET_PASS = {
    "a hundredth": Overlap(1000, 0.0100, 0.0, 0.001),
    "not certain": Overlap(20, 0.5, 0.2, 0.08),
    "by chance": Overlap(1000, 0.5, 0.5, 0.01),
}


def test_what_is_shared_for_certain_is_refused_and_what_is_not_is_let_pass():
    policy = Fitted(table([1]))
    for name, overlap in LET_PASS.items():
        assert training_remarks("it", policy, overlap, allowed=False) == ([], []), name
        assert training_remarks("it", policy, overlap, allowed=True) == ([], []), name
    assert LET_PASS["not certain"].share > 0.01
    for overlap in (REFUSED, Overlap(1000, 0.0101, 0.0, 0.001)):
        with pytest.raises(InvalidInput, match=r"it was trained on (50\.0|1\.0)% of this log: "):
            training_remarks("it", policy, overlap, allowed=False)
        notes, warnings = training_remarks("it", policy, overlap, allowed=True)
        assert (notes, len(warnings)) == ([], 1)
    unknown = Overlap(10, 0.9, 0.8, 0.05)
    notes, warnings = training_remarks("it", policy, unknown, allowed=False)
    assert (len(notes), warnings) == (1, [])
    assert "cannot be told" in notes[0]


def test_the_gate_refuses_a_log_of_which_half_was_seen_and_judges_the_other_half():
    keys, rewards = np.arange(80.0), np.arange(80) % 2
    policy = Fitted(table(keys[:40], rewards=rewards[:40]))
    contexts, actions, _ = table(keys)
    log = BanditLog.of(contexts, actions, rewards, np.full(80, 0.5), n_actions=2)
    with pytest.raises(InvalidInput, match=r"Fitted was trained on 48\.8% of this log: 50\.0% of"):
        evaluate(log, policy, "uniform")
    rest = evaluate(log.rows(np.arange(40, 80)), policy, "uniform")
    assert rest.policy.overlap is not None
    assert (rest.n_rows, rest.policy.overlap.found, rest.warnings[0][:6]) == (40, 0.0, "Fitted")
    assert evaluate(log, policy, "uniform", allow_training_rows=True).n_rows == 80


def test_rows_of_actions_that_a_policy_does_not_know_are_not_asked_for():
    """By their names: the policy's first action is the log's second."""
    actions = np.array([0, 1, 2, 1, 0, 2])
    log = BanditLog.of(
        np.arange(6.0)[:, None], actions, np.arange(6) % 2, np.full(6, 0.3),
        action_names=["new", "b", "a"],
    )  # fmt: skip
    policy = Fitted(table([1, 2, 5], [1, 0, 1], [1, 0, 1]), action_names=("a", "b"))
    found = training_overlap(log, policy)
    assert found is not None
    assert found.n_rows == 4  # rows of a and b
    assert found.found == pytest.approx(2 / 4)  # row 5 was seen with the other action
    assert training_overlap(log, object()) is None


def test_digests_that_are_added_are_counted(monkeypatch):
    first, second = table([1, 1, 2, 3]), table([3, 4, 4, 5])
    found = SeenRows.of(*first).and_rows(*second)
    counts = dict(zip(found.digests.tolist(), found.counts.tolist(), strict=True))
    keys = row_digests(*table([1, 2, 3, 4, 5])).tolist()
    assert counts == dict(zip(keys, [2, 1, 2, 2, 1], strict=True))
    assert found.n_rows == 8
    monkeypatch.setattr(digests_of_rows, "_MOST", 3)
    kept = SeenRows.of(*first).and_rows(*second)
    assert kept.digests.tolist() == sorted(keys)[:3]
    assert kept.limit == sorted(keys)[2]
    assert kept.counts.tolist() == [counts[key] for key in sorted(keys)[:3]]
    share = kept.limit / (2**64 - 1)
    assert kept.n_rows == round(sum(counts[key] for key in sorted(keys)[:3]) / share)
    asked = kept.overlap(*table([1, 2, 3, 4, 5]))
    assert (asked.n_rows, asked.found) == (3, 1.0)
    # What is above the limit stays out, however little there is.
    again = kept.and_rows(*table([1, 2, 3, 4, 5]))
    assert (again.digests.tolist(), again.limit) == (sorted(keys)[:3], kept.limit)
    assert again.counts.tolist() == [counts[key] + 1 for key in sorted(keys)[:3]]


def test_a_recorder_tells_of_what_it_was_given(monkeypatch):
    monkeypatch.setattr(digests_of_rows, "_PENDING", 3)
    recorder = RowRecorder(SeenRows.of(*table([1, 2])))
    contexts, actions, rewards = table([2, 3])
    recorder.add(contexts, actions, rewards)
    contexts[:] = 77.0  # arrays that are used again
    for key in (4, 5, 6, 7):
        recorder.add(*table([key]))
    found = recorder.seen()
    assert found is not None
    expected = SeenRows.of(*table([1, 2, 2, 3, 4, 5, 6, 7]))
    assert np.array_equal(found.digests, expected.digests)
    assert np.array_equal(found.counts, expected.counts)
    unknown = RowRecorder(None)
    unknown.add(*table([1]))
    assert unknown.seen() is None
