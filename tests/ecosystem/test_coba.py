"""Logs, policies and rankers in coba's experiments, with the numbers of Keyhole."""

import numpy as np
import pytest
from coba import Environments, Experiment, RandomLearner, RejectionCB, SequentialCB
from coba.context import CobaContext, NullLogger

from keyhole import Flips, Keystone, RTopK
from keyhole.base.errors import InvalidInput
from keyhole.data.bandit.formats import read_bandit
from keyhole.data.bandit.log import BanditLog
from keyhole.ecosystem.coba import LoggedEnvironment, PolicyLearner, RankerLearner, log_of
from keyhole.offline.estimators import importance_weighted
from keyhole.offline.target import target_of
from keyhole.policies.base import Softmax, Uniform
from keyhole.policies.training import fit_classifiers


@pytest.fixture(autouse=True)
def _quiet():
    CobaContext.logger = NullLogger()


@pytest.fixture(scope="module")
def log(real_data):
    whole = read_bandit(real_data / "obd_small" / "random_men.csv.gz")
    return whole.rows(np.union1d(np.flatnonzero(whole.rewards), np.arange(960)))


@pytest.fixture(scope="module")
def policy(log):
    scorer = fit_classifiers(
        log.contexts, log.actions, log.rewards, n_actions=log.n_actions, no_click="never"
    )
    return Softmax(scorer)


def same(one, other):
    assert one.n_actions == other.n_actions
    for name in ("contexts", "actions", "rewards", "propensities", "positions"):
        assert np.array_equal(getattr(one, name), getattr(other, name)), name


def test_a_log_comes_back_as_it_went(log):
    again = log_of(LoggedEnvironment(log), feature_names=log.feature_names)
    same(again, log)
    assert again.feature_names == log.feature_names
    through = Environments.from_custom(LoggedEnvironment(log)).take(300)
    same(log_of(through[0]), log.rows(slice(300)))
    named = BanditLog.of([[0.5], [1.0]], ["tea", "milk"], [0, 1], [0.5, 0.25])
    assert log_of(LoggedEnvironment(named)).action_names == ("milk", "tea")


def test_values_of_a_policy_are_equal(log, policy):
    estimate = importance_weighted(log, target_of(log, policy))
    evaluator = SequentialCB(learn=None, eval="ips", record=["reward"])
    rows = evaluator.evaluate(LoggedEnvironment(log), PolicyLearner(policy))
    assert [row["reward"] for row in rows] == pytest.approx(estimate.contributions, abs=1e-12)
    experiment = Experiment(
        LoggedEnvironment(log), [PolicyLearner(policy), PolicyLearner(Uniform(34))], evaluator
    )
    table = experiment.run(quiet=True).interactions.to_pandas()
    theirs, uniform = (table[table["learner_id"] == i]["reward"].to_numpy() for i in (0, 1))
    # An experiment's table keeps five digits after the point.
    assert theirs == pytest.approx(estimate.contributions, abs=0.5e-5 + 1e-12)
    assert theirs.mean() == pytest.approx(estimate.value, abs=0.5e-5 + 1e-12)
    assert uniform == pytest.approx(log.rewards, abs=1e-10)
    assert estimate.value != pytest.approx(log.mean_reward, rel=0.1)


def test_actions_are_drawn_from_the_probabilities(log, policy):
    context, actions = log.contexts[0].tolist(), list(range(log.n_actions))
    learner, chances = PolicyLearner(policy, seed=1), policy.probabilities(log.contexts[:1])[0]
    n_draws = 2000
    counts = np.zeros(log.n_actions)
    for _ in range(n_draws):
        ((action, chance),) = learner.predict(context, actions).values()
        assert chance == learner.score(context, actions, action) == chances[action]
        counts[action] += 1
    # Five standard deviations of a binomial count, for each of 34 actions.
    assert (np.abs(counts - n_draws * chances) <= 5 * np.sqrt(n_draws * chances) + 1).all()
    accepted = list(RejectionCB(cpct=0.0).evaluate(LoggedEnvironment(log), PolicyLearner(policy)))
    assert 10 < len(accepted) < len(log)


def test_coba_logs_what_keyhole_evaluates():
    """A random learner of coba's writes a log of its own, which Keyhole reads."""
    simulation = Environments.from_linear_synthetic(
        500, n_actions=3, n_action_features=0, seed=1
    ).logged(RandomLearner())
    log = log_of(simulation[0])
    assert (len(log), log.n_actions) == (500, 3)
    assert log.is_uniform
    assert importance_weighted(log, target_of(log, Uniform(3))).value == pytest.approx(
        log.mean_reward
    )
    rows = list(simulation[0].read())
    assert log.rewards.tolist() == [row["reward"] for row in rows]
    assert log.contexts.tolist() == [list(row["context"]) for row in rows]


def test_a_ranker_learns_as_it_does_alone():
    n_rounds, world = 300, Flips(4, n_relevant=1)
    relevance = [world.relevance(round).tolist() for round in range(n_rounds)]
    simulation = Environments.from_lambda(
        n_rounds,
        lambda _: None,
        lambda *_: [0, 1, 2, 3],
        lambda index, _, action: relevance[index][action],
    )
    through, alone = Keystone(4, k=1), Keystone(4, k=1)
    rows = list(
        SequentialCB(record=["reward", "action", "probability"]).evaluate(
            simulation[0], RankerLearner(through)
        )
    )
    for round, row in enumerate(rows):
        shown = alone.rank()
        assert row["action"] == shown.ranking[0]
        assert [row["probability"]] == np.array(alone.chances(shown)).tolist()
        assert row["reward"] == relevance[round][shown.ranking[0]]
        alone.update(shown, [relevance[round][shown.ranking[0]]])
    assert len(rows) == n_rounds
    for name, values in alone.state_dict().items():
        assert np.array_equal(values, through.state_dict()[name]), name
    assert through.best() == alone.best()


def test_contexts_of_other_kinds():
    rows = [
        {"context": context, "action": 1, "reward": 0.5, "probability": 0.5, "actions": [0, 1]}
        for context in ({"age": 2.0}, {"old": 1})
    ]
    log = log_of(rows)
    assert (log.contexts.tolist(), log.feature_names) == ([[2.0, 0.0], [0.0, 1.0]], ("age", "old"))
    assert log_of([{**row, "context": None} for row in rows]).contexts.shape == (2, 0)
    assert log_of([{**row, "context": 3} for row in rows]).contexts.tolist() == [[3.0], [3.0]]


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"probability": None}, "Interaction 1 must have probability, got none"),
        ({"actions": [0, 1, 2]}, "Interaction 1 must have the actions of the first"),
        ({"context": {"a": 1}}, "A context must be a row of numbers, got dict"),
    ],
)
def test_interactions_that_make_no_log(change, sentence):
    row = {"context": [1], "action": 1, "reward": 0.5, "probability": 0.5, "actions": [0, 1]}
    with pytest.raises(InvalidInput, match=sentence):
        log_of([row, {**row, **change}])


def test_what_does_not_fit():
    with pytest.raises(InvalidInput, match="at least one interaction"):
        log_of([])
    with pytest.raises(InvalidInput, match="the 34 actions of the policy, got 2"):
        PolicyLearner(Uniform(34)).predict([], [0, 1])
    with pytest.raises(InvalidInput, match="the 4 actions of the ranker, got 2"):
        RankerLearner(Keystone(4, k=1)).predict(None, [0, 1])
    with pytest.raises(InvalidInput, match="learns from its first position, got RTopK"):
        RankerLearner(RTopK(4, k=2, horizon=100))
