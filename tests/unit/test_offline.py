"""Values estimated from logs: exact on small problems, and as other implementations have them."""

import itertools
import math

import numpy as np
import pytest

from keyhole.base.errors import InvalidInput, UnknownName
from keyhole.data.bandit.formats import read_bandit
from keyhole.data.bandit.log import BanditLog
from keyhole.lab.inputs import data_folder
from keyhole.offline.bounds import BOUNDS, binomial_trials, lower_bounds
from keyhole.offline.diagnostics import diagnose
from keyhole.offline.estimators import (
    ESTIMATORS,
    Bias,
    Estimate,
    clipped,
    direct,
    doubly_robust,
    estimate_all,
    importance_weighted,
    self_normalised,
)
from keyhole.offline.evaluation import best_fixed_action, evaluate
from keyhole.offline.rewards import predict_rewards
from keyhole.offline.target import logged_target, target_of
from keyhole.policies.base import Always, Uniform

# Two contexts, three actions, rewards that differ in each.
CHANCES = np.array([[0.5, 0.3, 0.2], [0.1, 0.1, 0.8]])
POLICY = np.array([[0.0, 0.25, 0.75], [0.9, 0.1, 0.0]])
REWARDS = np.array([[0.2, 0.9, 0.4], [0.6, 0.0, 1.0]])
VALUE = float((POLICY * REWARDS).sum(axis=1).mean())


def log_of(contexts, actions):
    rows = np.array(contexts)
    return BanditLog.of(
        rows[:, None],
        actions,
        REWARDS[rows, actions],
        CHANCES[rows, actions],
        n_actions=3,
    )


def every_log(n_rows):
    """Yield every log of some rows and its probability; contexts are equally likely."""
    for contexts in itertools.product(range(2), repeat=n_rows):
        for actions in itertools.product(range(3), repeat=n_rows):
            chance = np.prod(0.5 * CHANCES[list(contexts), list(actions)])
            yield log_of(contexts, actions), POLICY[list(contexts)], float(chance)


@pytest.mark.parametrize("n_rows", [1, 2, 3])
def test_importance_weighting_is_unbiased_by_enumeration(n_rows):
    expected, total = 0.0, 0.0
    robust = 0.0
    predictions = np.array([[0.3, 0.1, 0.9], [0.5, 0.5, 0.2]])
    for log, probabilities, chance in every_log(n_rows):
        target = target_of(log, probabilities)
        total += chance
        expected += chance * importance_weighted(log, target).value
        table = predictions[log.contexts[:, 0].astype(int)]
        robust += chance * doubly_robust(log, target, table).value
    assert total == pytest.approx(1.0, abs=1e-14)
    assert expected == pytest.approx(VALUE, abs=1e-14)
    assert robust == pytest.approx(VALUE, abs=1e-14)


def test_clipping_is_biased_down_and_self_normalising_is_biased():
    clip = normal = 0.0
    for log, probabilities, chance in every_log(2):
        target = target_of(log, probabilities)
        clip += chance * clipped(log, target, clip=1.5).value
        if target.weights.sum() > 0:
            normal += chance * self_normalised(log, target).value
    assert clip < VALUE - 0.01
    assert abs(normal - VALUE) > 0.01


def by_the_formulas(log, policy, table, clip):
    """The estimators again, row by row, from their formulas alone."""
    n = len(log)
    iw = sn = weights = cl = dm = dr = 0.0
    for i in range(n):
        a, r, p = int(log.actions[i]), float(log.rewards[i]), float(log.propensities[i])
        w = float(policy[i, a]) / p
        expected = math.fsum(float(policy[i, b] * table[i, b]) for b in range(log.n_actions))
        iw += w * r / n
        sn += w * r
        weights += w
        cl += min(w, clip) * r / n
        dm += expected / n
        dr += (expected + w * (r - float(table[i, a]))) / n
    return {
        "importance-weighted": iw,
        "self-normalised": sn / weights,
        "clipped": cl,
        "direct": dm,
        "doubly-robust": dr,
    }


# The Open Bandit Pipeline 0.5.7 on the same files, policy and predictions.
PIPELINE = {
    "bts_men": {
        "importance-weighted": 0.003453682131641593,
        "self-normalised": 0.0037053194262165875,
        "clipped": 0.002007140449314381,
        "direct": 0.005999940971138652,
        "doubly-robust": 0.003859206012299147,
    },
    "random_all": {
        "importance-weighted": 0.003883985274176025,
        "self-normalised": 0.0038592460133653732,
        "clipped": 0.003646986702531727,
        "direct": 0.005999998344857473,
        "doubly-robust": 0.0038442153393205628,
    },
}


@pytest.mark.parametrize("name", PIPELINE)
def test_the_open_bandit_sample_as_others_have_it(name):
    path = data_folder() / "obd_small" / f"{name}.csv.gz"
    if not path.exists():
        pytest.skip(f"The Open Bandit sample is not in {data_folder()}")
    log = read_bandit(path)
    row, action = np.ogrid[: len(log), : log.n_actions]
    policy = 1.0 + (7 * row + 3 * action) % 11
    policy = policy / policy.sum(axis=1, keepdims=True)
    table = ((row + action) % 13) / 1000
    found = estimate_all(log, target_of(log, policy), table, clip=1.5)
    again = by_the_formulas(log, policy, table, 1.5)
    for estimator, expected in PIPELINE[name].items():
        assert found[estimator].value == pytest.approx(expected, abs=1e-10, rel=0)
        assert found[estimator].value == pytest.approx(again[estimator], abs=1e-10, rel=0)


def simulated(n_rows=2000, seed=0, clicks=(0.05, 0.1, 0.2), **changes):
    numbers = np.random.default_rng(seed)
    actions = numbers.integers(len(clicks), size=n_rows)
    given = {
        "contexts": numbers.random((n_rows, 2)),
        "actions": actions,
        "rewards": (numbers.random(n_rows) < np.array(clicks)[actions]).astype(float),
        "propensities": np.full(n_rows, 1 / len(clicks)),
    }
    return BanditLog.of(**{**given, **changes}, n_actions=len(clicks))


def test_every_estimate_is_the_mean_of_its_contributions():
    log = simulated()
    policy = np.random.default_rng(1).dirichlet(np.ones(3), size=len(log))
    table = predict_rewards(log)
    again = by_the_formulas(log, policy, table, math.sqrt(len(log)))
    for name, estimate in estimate_all(log, target_of(log, policy), table).items():
        assert len(estimate.contributions) == len(log)
        assert estimate.value == pytest.approx(again[name], abs=1e-12)


def test_the_logging_policy_earns_the_mean_reward_in_every_unbiased_way():
    log = simulated()
    found = estimate_all(log, logged_target(log), predict_rewards(log))
    for name in ("importance-weighted", "self-normalised", "clipped", "doubly-robust"):
        assert found[name].value == pytest.approx(log.mean_reward, abs=1e-12)


def test_predictions_never_saw_their_own_reward():
    log = simulated(n_rows=60)
    before = predict_rewards(log)
    for row in (0, 17):
        flipped = log.rewards.copy()
        flipped[row] = 1.0 - flipped[row]
        changed = BanditLog.of(
            log.contexts, log.actions, flipped, log.propensities, n_actions=log.n_actions
        )
        after = predict_rewards(changed)
        assert np.array_equal(before[row], after[row])
        assert not np.array_equal(before, after)


def test_predictions_learn():
    numbers = np.random.default_rng(2)
    contexts = numbers.normal(size=(4000, 1))
    actions = numbers.integers(2, size=4000)
    rewards = contexts[:, 0] * np.where(actions == 1, 1.0, -0.5)
    log = BanditLog.of(contexts, actions, rewards, np.full(4000, 0.5))
    table = predict_rewards(log)
    assert np.abs(table[:, 1] - contexts[:, 0]).max() < 0.05
    assert np.abs(table[:, 0] + 0.5 * contexts[:, 0]).max() < 0.05


@pytest.mark.parametrize(
    ("policy", "sentence"),
    [
        ([[1.0, 0.0]], "must have a row per row of the log and a column per action, (3, 3)"),
        (np.full((3, 3), 0.5), "must sum to 1, got a sum of 1.5"),
        ([[2, -1, 0]] * 3, "a least value of -1 in row 0"),
        ([["a", "b", "c"]] * 3, "must be numbers in rows"),
    ],
)
def test_probabilities_that_are_none(policy, sentence):
    with pytest.raises(InvalidInput) as caught:
        target_of(log_of([0, 1, 0], [0, 1, 2]), policy)
    assert sentence in str(caught.value)


def test_floors_and_ranges():
    log = log_of([0, 1, 0], [0, 1, 2])
    assert target_of(log, Uniform(3), floor=0.05).largest_weight == pytest.approx(1 / 3 / 0.05)
    with pytest.raises(InvalidInput, match="`floor` must be at most the least propensity"):
        target_of(log, Uniform(3), floor=0.2)
    with pytest.raises(InvalidInput, match=r"Rewards must be between 0 and 0\.3 as given"):
        importance_weighted(log, target_of(log, Uniform(3)), rewards=(0.0, 0.3))
    with pytest.raises(InvalidInput, match="a low and a higher number"):
        importance_weighted(log, target_of(log, Uniform(3)), rewards=(1.0, 0.0))
    with pytest.raises(
        InvalidInput, match=r"`predictions` must be finite numbers of shape \(3, 3\)"
    ):
        direct(log, target_of(log, Uniform(3)), [[0.0]])


def test_when_matches_are_binomial():
    log = simulated()
    fixed = target_of(log, Always(3, 1))
    matched = log.actions == 1
    assert binomial_trials(log, fixed) == (log.rewards[matched].sum(), matched.sum())
    assert binomial_trials(log, logged_target(log)) == (log.rewards.sum(), len(log))
    assert binomial_trials(log, target_of(log, Uniform(3))) == (log.rewards.sum(), len(log))
    half = target_of(log, np.tile([0.5, 0.5, 0.0], (len(log), 1)))
    with pytest.raises(
        InvalidInput, match="needs a uniform logging policy and a policy that takes"
    ):
        binomial_trials(log, half)
    uneven = simulated(propensities=np.where(log.actions == 1, 0.4, 0.3))
    with pytest.raises(InvalidInput, match="needs a uniform logging policy"):
        binomial_trials(uneven, target_of(uneven, Always(3, 1)))
    graded = simulated(rewards=log.rewards / 2)
    with pytest.raises(InvalidInput, match="needs rewards that are 0 or 1"):
        binomial_trials(graded, target_of(graded, Always(3, 1)))


def test_estimates_without_a_guarantee_have_no_guaranteed_bound():
    log = simulated()
    target, table = target_of(log, Always(3, 1)), predict_rewards(log)
    found = {n: lower_bounds(e) for n, e in estimate_all(log, target, table).items()}
    given = {
        name: {bound for bound, each in bounds.items() if each.value is not None}
        for name, bounds in found.items()
    }
    limits = {"student-t", "bootstrap"}
    assert given == {
        "importance-weighted": {"betting", "empirical-bernstein", *limits},
        "self-normalised": limits,
        "clipped": {"betting", "empirical-bernstein", *limits},
        "direct": set(),
        "doubly-robust": limits,
    }
    elsewhere = doubly_robust(log, target, np.full((len(log), 3), 0.1), fitted_elsewhere=True)
    assert lower_bounds(elsewhere)["betting"].value is not None
    assert all(bound.why_not for bound in found["direct"].values())


def test_clipping_says_what_it_does_to_the_value():
    log = simulated()
    target = target_of(log, Always(3, 1))  # weights of 0 and 3
    assert clipped(log, target, clip=2.0).bias == "down"
    assert clipped(log, target, clip=2.0).range == (0.0, 2.0)
    assert clipped(log, target, clip=3.5).bias == "none"
    losses = simulated(rewards=-log.rewards)
    assert clipped(losses, target, clip=2.0, rewards=(-1.0, 0.0)).bias == "unknown"
    assert clipped(losses, target, clip=2.0, rewards=(-1.0, 0.0)).range == (-2.0, 0.0)


def test_differences_add_up_what_is_not_known():
    rows = np.zeros(3)
    kinds: dict[tuple[Bias, Bias], Bias] = {
        ("none", "none"): "none",
        ("none", "vanishing"): "vanishing",
        ("down", "none"): "unknown",
        ("none", "unknown"): "unknown",
    }
    for (one, other), expected in kinds.items():
        difference = Estimate("a", rows, one, (0, 2)).minus(Estimate("b", rows, other, (0, 5)))
        assert (difference.bias, difference.range) == (expected, (-5, 2))


def test_diagnostics_and_their_sentences():
    log = simulated(n_rows=900)
    found = diagnose(log, target_of(log, Always(3, 2)))
    matched = int((log.actions == 2).sum())
    assert found.effective_rows == pytest.approx(matched)
    assert found.largest_weight == pytest.approx(3.0)
    assert found.overlap == pytest.approx(matched / 900)
    assert found.n_rewarded == log.rewards[log.actions == 2].sum()
    assert found.warnings("it") == []

    few = log.rows(slice(0, 90))
    assert (
        "effective rows of 90, fewer than 100"
        in diagnose(few, target_of(few, Always(3, 2))).warnings("it")[0]
    )

    rare = simulated(n_rows=2000, clicks=(0.003, 0.003, 0.003))
    sentence = diagnose(rare, target_of(rare, Always(3, 2))).warnings("it")[0]
    assert "rewarded rows, fewer than 10" in sentence

    missing = BanditLog.of(
        log.contexts, log.actions, log.rewards, log.propensities, n_actions=5,
        action_names=["a", "b", "c", "d", "e"],
    )  # fmt: skip
    found = diagnose(missing, target_of(missing, Uniform(5)))
    assert found.unknown == pytest.approx(0.4)
    assert found.unknown_actions == ("d", "e")
    assert (
        "40.0% of its choices among actions that the log never shows (d, e)"
        in found.warnings("it")[0]
    )

    wrong = simulated(n_rows=900, propensities=np.full(900, 0.2))
    (sentence,) = diagnose(wrong, target_of(wrong, Uniform(3))).warnings("it")
    assert "the propensities of the log do not fit its actions" in sentence


def test_the_gate_promotes_what_is_better_and_keeps_what_is_not():
    log = simulated(n_rows=4000)
    better, worse = Always(3, 2), Always(3, 0)
    found = evaluate(log, better, worse)
    assert found.verdict == "promote"
    assert found.lower_bound is not None
    assert 0.0 < found.lower_bound < found.difference["importance-weighted"].estimate.value
    assert evaluate(log, worse, better).verdict == "keep"
    assert evaluate(log, better, better).verdict == "keep"
    equal = evaluate(log, "logged", "logged", bound="student-t")
    assert (equal.lower_bound, equal.verdict) == (0.0, "keep")  # above 0, not at it
    rows = found.difference["importance-weighted"].estimate.contributions
    target = target_of(log, better), target_of(log, worse)
    assert np.array_equal(rows, (target[0].weights * log.rewards) - target[1].weights * log.rewards)
    assert found.policy.lines["importance-weighted"].bounds["clopper-pearson"].value is not None
    assert found.difference["importance-weighted"].bounds["clopper-pearson"].value is None


def test_the_gate_knows_no_hope():
    """A sure thing by Student's bound, on a baseline that the log hardly shows."""
    numbers = np.random.default_rng(5)
    actions = (numbers.random(3000) < 0.02).astype(int)
    rewards = numbers.random(3000) < np.where(actions == 0, 0.01, 0.01)
    rewards &= actions == 0  # by chance no click on the rare action
    log = BanditLog.of(
        np.zeros((3000, 0)), actions, rewards, np.where(actions == 0, 0.98, 0.02), n_actions=2
    )
    kept = evaluate(log, Always(2, 0), Always(2, 1))
    hoped = evaluate(log, Always(2, 0), Always(2, 1), bound="student-t")
    assert (kept.verdict, hoped.verdict) == ("keep", "promote")
    assert any("effective rows" in warning for warning in kept.warnings)


def test_best_fixed_is_chosen_where_it_is_not_evaluated():
    log = simulated(n_rows=3000)
    found = evaluate(log, "best-fixed", "uniform", seed=4)
    assert found.n_rows == 1500
    assert "best-fixed is action 2, chosen on 1500 rows" in found.notes[0]
    assert found.verdict == "promote"
    assert best_fixed_action(log) == 2
    same = evaluate(log, "best-fixed", Uniform(3).probabilities(log.contexts), seed=4)
    assert same.lower_bound == found.lower_bound
    assert same.baseline.name == "baseline"
    # The one reward is in the half that chooses: nothing is left to compare.
    chosen = np.random.default_rng(0).permutation(8) < 4
    single = simulated(n_rows=8, rewards=np.eye(8)[np.argmax(chosen)])
    with pytest.raises(InvalidInput, match="must differ to compare policies, got 0 in all 4 rows"):
        evaluate(single, "best-fixed", "uniform", seed=0)


def test_the_gate_refuses_with_a_sentence():
    log = simulated(n_rows=50)
    none = simulated(n_rows=50, rewards=np.zeros(50))
    with pytest.raises(InvalidInput, match="must differ to compare policies, got 0 in all 50 rows"):
        evaluate(none, "uniform")
    with pytest.raises(UnknownName, match="Did you mean 'uniform'"):
        evaluate(log, "unifrom")
    with pytest.raises(UnknownName, match="`bound` must be one of"):
        evaluate(log, "uniform", bound="hoeffding")
    with pytest.raises(InvalidInput, match="which clopper-pearson does not"):
        evaluate(log, "uniform", bound="clopper-pearson")
    with pytest.raises(InvalidInput, match="at least 4 rows, got 3"):
        evaluate(simulated(n_rows=3, rewards=[0, 1, 0]), "best-fixed")


def test_a_bound_or_an_estimator_is_one_row(monkeypatch, tmp_path):
    from keyhole.lab.figures.values import save_values
    from keyhole.offline.bounds import BoundRow

    row = BoundRow(lambda asked: float(asked.rows.mean()) - 9.0, lambda _: "")
    monkeypatch.setitem(BOUNDS, "careless", row)
    monkeypatch.setitem(
        ESTIMATORS, "nothing", lambda asked: Estimate("nothing", 0.0 * asked.log.rewards, "none")
    )
    found = evaluate(simulated(n_rows=100), "uniform", bound="careless")
    assert found.difference["nothing"].bounds["careless"].value == -9.0
    assert found.lower_bound == found.difference[next(iter(ESTIMATORS))].estimate.value - 9.0
    save_values(tmp_path, "values", found)
    assert "careless" in (tmp_path / "values.svg").read_text()


def test_rewards_of_any_range_need_it_said():
    log = simulated(n_rows=4000)
    cents = BanditLog.of(
        log.contexts, log.actions, 100 * log.rewards, log.propensities, n_actions=3
    )
    better, worse = Always(3, 2), Always(3, 0)
    found = evaluate(cents, better, worse)
    assert found.verdict == "keep"
    assert "give the range of rewards" in found.warnings[-1]
    told = evaluate(cents, better, worse, rewards=(0.0, 100.0))
    assert told.verdict == "promote"
    plain = evaluate(log, better, worse)
    assert told.lower_bound is not None
    assert plain.lower_bound is not None
    assert told.lower_bound == pytest.approx(100 * plain.lower_bound)
