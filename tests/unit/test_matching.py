"""Features and actions that travel by their names."""

import numpy as np
import pytest

from keyhole.base.errors import InvalidInput
from keyhole.data.bandit.log import BanditLog
from keyhole.offline.evaluation import evaluate
from keyhole.offline.matching import view_of
from keyhole.offline.overlap import training_overlap
from keyhole.offline.target import target_of
from keyhole.policies import policy as named_policy
from keyhole.policies.base import Greedy, Softmax
from keyhole.policies.files import load_policy, save_policy
from keyhole.policies.linear import LinearScorer
from keyhole.policies.training import fit_classifiers

NAMES = ["age", "os=linux", "os=mac", "os=win"]


def log_of(systems, names=NAMES, actions=None, seed=5, **options):
    """A log of visitors on systems, whose columns are those of ``names``."""
    numbers = np.random.default_rng(seed)
    n_rows = len(systems)
    ages = numbers.normal(size=n_rows)
    columns = {
        "age": ages,
        **{f"os={s}": np.array(systems) == s for s in ("linux", "mac", "win", "bsd")},
        "shoe": ages * 2,
    }
    taken = numbers.integers(2, size=n_rows)
    contexts = np.column_stack([columns[name] for name in names]).astype(float)
    clicks = numbers.random(n_rows) < 0.3
    actions = taken if actions is None else np.array(actions)[taken]
    chances = np.full(n_rows, 0.5)
    return BanditLog.of(contexts, actions, clicks, chances, feature_names=names, **options)


SYSTEMS = ["linux", "mac", "win"] * 100
WITHOUT_LINUX = ["mac", "win"] * 100


def shared(log, policy):
    return training_overlap(log, policy)


@pytest.fixture(scope="module")
def policy():
    return Softmax(fit_classifiers(log_of(SYSTEMS)))


def test_names_are_kept_in_files_and_specs(policy, tmp_path):
    save_policy(policy, tmp_path / "policy.npz")
    assert load_policy(tmp_path / "policy.npz").feature_names == tuple(NAMES)
    assert named_policy(policy.spec).feature_names == tuple(NAMES)
    with pytest.raises(InvalidInput, match="`feature_names` of LinearScorer must be 2 different"):
        LinearScorer([[1.0, 2.0]], [0.0], feature_names=["a", "a"])


def test_columns_in_another_order_are_the_same_columns(policy):
    log, mixed = log_of(SYSTEMS), log_of(SYSTEMS, ["os=win", "shoe", "age", "os=linux", "os=mac"])
    assert np.array_equal(target_of(log, policy).weights, target_of(mixed, policy).weights)
    assert shared(mixed, policy).share == 1.0
    assert view_of(mixed, policy).unseen == ()


def test_a_level_that_no_row_has_is_zero(policy):
    full, short = log_of(WITHOUT_LINUX), log_of(WITHOUT_LINUX, ["os=mac", "age", "os=win"])
    assert np.array_equal(target_of(full, policy).weights, target_of(short, policy).weights)


@pytest.mark.parametrize(
    ("systems", "names", "sentence"),
    [
        # Some rows have no level: they are those of the missing one.
        (SYSTEMS, ["age", "os=mac", "os=win"], "got none called 'os=linux': only a level"),
        (SYSTEMS, ["os=linux", "os=mac", "os=win"], "got none called 'age'"),
        (SYSTEMS, ["shoe"], "'age', 'os=linux', 'os=mac', 'os=win', which has 'shoe' that it does"),
    ],
)
def test_what_is_missing_is_named(policy, systems, names, sentence):
    with pytest.raises(InvalidInput) as caught:
        target_of(log_of(systems, names), policy)
    assert sentence in str(caught.value)


def test_numbers_whose_names_look_like_levels_are_no_levels():
    log = log_of(SYSTEMS)
    named = ["time_mean", "time_max", "time_min", "other"]
    known = Greedy(fit_classifiers(BanditLog.of(
        log.contexts, log.actions, log.rewards, log.propensities, feature_names=named
    )))  # fmt: skip
    less = BanditLog.of(
        log.contexts[:, :3], log.actions, log.rewards, log.propensities,
        feature_names=["time_mean", "time_max", "other"],
    )  # fmt: skip
    with pytest.raises(InvalidInput, match="got none called 'time_min'"):
        target_of(less, known)


def test_levels_that_the_policy_does_not_know_are_told_of(policy):
    newer = log_of(["mac", "win", "win", "bsd"] * 50, [*NAMES, "os=bsd"], seed=6)
    notes = evaluate(newer, policy).notes
    assert notes == (
        "Softmax does not know os=bsd: 50 of 200 rows have one of them, and count for it as rows "
        "of none of the levels that it knows.",
    )


def test_without_names_columns_are_taken_in_their_order(policy):
    log = log_of(SYSTEMS)
    nameless = BanditLog.of(log.contexts, log.actions, log.rewards, log.propensities)
    assert np.array_equal(target_of(log, policy).weights, target_of(nameless, policy).weights)


def test_actions_go_by_their_names():
    log = log_of(SYSTEMS, actions=["tea", "milk"])
    policy = Softmax(fit_classifiers(log))
    assert policy.action_names == ("milk", "tea")
    other = log_of(SYSTEMS, actions=["tea", "milk"], action_names=["tea", "water", "milk"])
    assert np.array_equal(target_of(log, policy).weights, target_of(other, policy).weights)
    assert (target_of(other, policy).probabilities[:, 1] == 0.0).all()
    assert shared(other, policy).share == 1.0
    fewer = log_of(SYSTEMS, actions=["tea", "cake"])
    with pytest.raises(InvalidInput, match="every action of the policy, got none called 'milk'"):
        target_of(fewer, policy)


def test_everything_shows_itself_in_a_few_lines(policy):
    log = log_of(SYSTEMS, seed=7, times=np.arange(300), groups=np.arange(300) // 2)
    verdict = evaluate(log, policy)
    shown = {
        "log": log,
        "policy": policy,
        "scorer": policy.scorer,
        "rows": policy.seen_rows,
        "target": target_of(log, policy),
        "evaluation": verdict,
        "judged": verdict.policy,
        "line": verdict.difference["importance-weighted"],
        "estimate": verdict.difference["importance-weighted"].estimate,
    }
    for name, thing in shown.items():
        lines = repr(thing).splitlines()
        assert len(lines) <= 13, name
        assert max(len(line) for line in lines) <= 100, (name, lines)
        assert "array" not in repr(thing), name
        assert thing._repr_html_().startswith('<div class="keyhole">'), name
    assert repr(log).splitlines()[0] == "BanditLog of 300 rows"
    assert "trained on" in repr(policy)
    assert repr(verdict).startswith("keep: Softmax against logged on 300 rows")
