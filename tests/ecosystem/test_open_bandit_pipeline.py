"""Logs and policies between Keyhole and the Open Bandit Pipeline, on the data that it ships."""

from pathlib import Path

import numpy as np
import obp.dataset
import pytest
from obp.dataset import OpenBanditDataset, SyntheticBanditDataset, logistic_reward_function
from obp.ope import (
    DirectMethod,
    DoublyRobust,
    InverseProbabilityWeighting,
    OffPolicyEvaluation,
    RegressionModel,
    SelfNormalizedInverseProbabilityWeighting,
)
from sklearn.linear_model import LogisticRegression

from keyhole.data.bandit.formats import (
    from_open_bandit_pipeline,
    read_open_bandit,
    to_open_bandit_pipeline,
    write_open_bandit,
)
from keyhole.ecosystem.open_bandit import action_distribution, in_all_positions, in_own_position
from keyhole.offline.estimators import estimate_all
from keyhole.offline.evaluation import evaluate
from keyhole.offline.rewards import predict_rewards
from keyhole.offline.target import target_of
from keyhole.policies.base import Softmax
from keyhole.policies.training import fit_classifiers

CLIP = 1.0
NAMES = {
    "importance-weighted": InverseProbabilityWeighting(estimator_name="importance-weighted"),
    "self-normalised": SelfNormalizedInverseProbabilityWeighting(estimator_name="self-normalised"),
    "clipped": InverseProbabilityWeighting(lambda_=CLIP, estimator_name="clipped"),
    "direct": DirectMethod(estimator_name="direct"),
    "doubly-robust": DoublyRobust(estimator_name="doubly-robust"),
}


@pytest.fixture(scope="module")
def feedback():
    """Return the sample of the Open Bandit Dataset that comes with the pipeline."""
    return OpenBanditDataset("random", "men").obtain_batch_bandit_feedback()


def values_of(feedback, action_dist, predictions):
    evaluation = OffPolicyEvaluation(bandit_feedback=feedback, ope_estimators=list(NAMES.values()))
    return evaluation.estimate_policy_values(
        action_dist=action_dist, estimated_rewards_by_reg_model=predictions
    )


def same(one, other):
    assert one.n_actions == other.n_actions
    for name in ("contexts", "actions", "rewards", "propensities", "positions"):
        assert getattr(one, name).tolist() == getattr(other, name).tolist(), name


def test_feedback_comes_back_as_it_went(feedback):
    log = from_open_bandit_pipeline(feedback)
    assert len(log) == feedback["n_rounds"] == 10_000
    again = to_open_bandit_pipeline(log, action_context=feedback["action_context"])
    for name, values in feedback.items():
        assert np.array_equal(again[name], values), name
    same(log, from_open_bandit_pipeline(again))


def test_its_files_are_read_as_it_reads_them(feedback):
    folder = Path(obp.dataset.__file__).parent / "obd" / "random" / "men"
    ours = read_open_bandit(folder / "men.csv", items=folder / "item_context.csv")
    theirs = from_open_bandit_pipeline(feedback)
    # The pipeline sorts by time, and rows of one moment in no order of their own.
    ours, theirs = (log.rows(np.lexsort(_columns(log))) for log in (ours, theirs))
    for one, other in zip(_columns(ours), _columns(theirs), strict=True):
        assert one.tolist() == other.tolist()
    # pandas' quick parser is a few bits off: 1/34 is 0.0294117647058823 to it.
    assert ours.propensities == pytest.approx(theirs.propensities, rel=1e-14, abs=0.0)
    assert (ours.propensities == 1 / 34).all()


def _columns(log):
    return [*log.contexts.T, log.rewards, log.positions, log.actions]


def test_its_data_set_reads_what_is_written(feedback, tmp_path):
    log = from_open_bandit_pipeline(feedback).rows(slice(500))
    write_open_bandit(log, tmp_path, policy="bts", campaign="women")
    data = OpenBanditDataset("bts", "women", data_path=tmp_path).obtain_batch_bandit_feedback()
    again = from_open_bandit_pipeline({**data, "n_actions": log.n_actions})
    same(again, log)


def test_values_of_a_learnt_policy_are_equal(feedback):
    log = from_open_bandit_pipeline(feedback)
    train, test = log.rows(slice(5000)), log.rows(slice(5000, None))
    scorer = fit_classifiers(
        train.contexts, train.actions, train.rewards, n_actions=log.n_actions, no_click="never"
    )
    policy, predictions = Softmax(scorer), predict_rewards(test)
    ours = estimate_all(test, target_of(test, policy), predictions, clip=CLIP)
    theirs = values_of(
        to_open_bandit_pipeline(test),
        action_distribution(test, policy),
        in_all_positions(test, predictions),
    )
    assert set(ours) == set(theirs) == set(NAMES)
    for name, estimate in ours.items():
        assert estimate.value == pytest.approx(theirs[name], abs=1e-10, rel=1e-10), name
    assert len({round(value, 6) for value in theirs.values()}) == len(NAMES)


def test_its_policies_and_models_are_judged_alike(feedback):
    log = from_open_bandit_pipeline(feedback)
    rng = np.random.default_rng(0)
    action_dist = rng.dirichlet(np.ones(log.n_actions), size=(len(log), 3)).transpose(0, 2, 1)
    base = LogisticRegression(max_iter=200)
    model = RegressionModel(base_model=base, n_actions=log.n_actions, len_list=3)
    predictions = model.fit_predict(
        feedback["context"].astype(float), feedback["action"], feedback["reward"],
        position=feedback["position"],
    )  # fmt: skip
    theirs = values_of(feedback, action_dist, predictions)
    judged = evaluate(
        log,
        in_own_position(log, action_dist),
        predictions=in_own_position(log, predictions),
        clip=CLIP,
    )
    for name, line in judged.policy.lines.items():
        assert line.estimate.value == pytest.approx(theirs[name], abs=1e-10, rel=1e-10), name


def test_synthetic_feedback_without_positions():
    data = SyntheticBanditDataset(4, dim_context=3, reward_function=logistic_reward_function)
    feedback = data.obtain_batch_bandit_feedback(300)
    log = from_open_bandit_pipeline(feedback)
    assert feedback["position"] is None
    assert log.positions.tolist() == [0] * 300
    assert log.propensities.tolist() == feedback["pscore"].tolist()
    policy = feedback["expected_reward"] / feedback["expected_reward"].sum(axis=1, keepdims=True)
    theirs = values_of(feedback, policy[:, :, None], feedback["expected_reward"][:, :, None])
    ours = estimate_all(log, target_of(log, policy), feedback["expected_reward"], clip=CLIP)
    for name, estimate in ours.items():
        assert estimate.value == pytest.approx(theirs[name], abs=1e-10), name
