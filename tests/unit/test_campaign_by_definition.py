"""Campaigns, moments and defaults of evaluations, by the sentences that define them."""

import inspect
import math
import time
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest

from keyhole.base.errors import InvalidInput, KeyholeError
from keyhole.data.bandit import campaign
from keyhole.data.bandit.campaign import Campaign
from keyhole.data.bandit.columns import UnusableRow, second_of, seconds_of
from keyhole.offline import bounds, estimators, evaluation, items, lists
from keyhole.service.commands import EvaluationRequest

pytestmark = pytest.mark.interpreted


@pytest.fixture(autouse=True)
def few(monkeypatch):
    monkeypatch.setattr("keyhole.data.bandit.campaign._N_REFERENCE", 40)


def chance(odds):
    return 1 / (1 + math.exp(-odds))


@pytest.mark.parametrize("shape", ["linear", "bent"])
def test_who_clicks_follows_from_tastes_and_rates(shape):
    rates = [0.3, 0.05, 0.6]
    world = Campaign(rates, n_features=5, n_informative=4, strength=1.5, shape=shape, seed=3)
    assert np.linalg.norm(world.tastes, axis=1).tolist() == pytest.approx([1.5] * 3)
    assert world.tastes.shape == (3, 4)
    contexts = world.visitors(30, seed=2)
    assert contexts.shape == (30, 5)
    found = world.click_chances(contexts)
    for row, context in zip(found.tolist(), contexts.tolist(), strict=True):
        seen = context[:4]
        if shape == "bent":  # standardised: of a normal x, |x| has a mean and a variance
            mean, variance = math.sqrt(2 / math.pi), 1 - 2 / math.pi
            bent = [(abs(x) - mean) / math.sqrt(variance) for x in seen]
            seen = [bent[0], seen[1], bent[2], seen[3]]
        for ad, told in enumerate(row):
            pull = sum(x * w for x, w in zip(seen, world.tastes[ad].tolist(), strict=True))
            assert told == pytest.approx(chance(pull + world.intercepts[ad]), rel=1e-12)
    policy = np.random.default_rng(1).dirichlet(np.ones(3), size=30)
    value = sum(p * c for p, c in zip(policy.ravel(), found.ravel(), strict=True)) / 30
    assert world.value(policy, contexts) == pytest.approx(value)


def test_rates_are_those_of_all_visitors():
    world = Campaign([0.3, 0.05], n_features=3, n_informative=2, seed=5)
    reference = campaign._numbers(5, campaign._REFERENCE_USE, (40, 2), normal=True, round=0)
    wide = np.hstack([reference, np.zeros((40, 1))])
    assert world.click_chances(wide).mean(axis=0).tolist() == pytest.approx([0.3, 0.05], rel=1e-9)


@pytest.mark.parametrize("shares", [None, (1.0, 5.0, 2.0)])
def test_a_log_of_a_campaign_has_its_visitors_chances_and_clicks(shares):
    world = Campaign([0.3, 0.5, 0.6], n_features=3, n_informative=2, seed=1)
    log = world.log(60, shares=shares, seed=9)
    weights = shares or (1.0, 1.0, 1.0)
    contexts = world.visitors(60, seed=9)
    assert np.array_equal(log.contexts, contexts)
    drawn, clicks = (
        campaign._numbers(9, use, (60,), normal=False, round=1).tolist()
        for use in (campaign._ACTION_USE, campaign._CLICK_USE)
    )
    chances = world.click_chances(contexts).tolist()
    ends = np.cumsum(np.array(weights) / sum(weights)).tolist()
    for row in range(60):
        action = next(ad for ad in range(3) if drawn[row] < ends[ad] or ad == 2)
        assert log.actions[row] == action
        assert log.propensities[row] == pytest.approx(weights[action] / sum(weights))
        assert log.rewards[row] == float(clicks[row] < chances[row][action])
    assert log.n_actions == 3


def test_campaigns_that_make_no_sense_are_refused():
    Campaign([0.5], n_features=1, n_informative=1)
    wrong: Any = ({"rates": [0.0]}, {"rates": [1.0]}, {"rates": [[0.5]]}, {"n_features": 0},
                  {"n_informative": 0}, {"n_features": 2, "n_informative": 3}, {"strength": 0.0},
                  {"shape": "round"})  # fmt: skip
    for given in wrong:
        with pytest.raises(KeyholeError):
            Campaign(**{"rates": [0.5], **given})
    world = Campaign([0.5, 0.5], n_features=1, n_informative=1)
    for shares in ((1.0,), (1.0, 0.0), (1.0, -1.0)):
        with pytest.raises(InvalidInput, match="shares must be 2 positive numbers"):
            world.log(3, shares=shares)
    with pytest.raises(InvalidInput, match="`n_visitors`"):
        world.visitors(0)
    usual = Campaign(seed=1)
    assert (usual.n_features, usual.n_informative, usual.shape) == (40, 8, "linear")
    assert np.linalg.norm(usual.tastes[0]) == pytest.approx(1.0)
    assert usual.rates.tolist() == [0.0017, 0.0040, 0.0045, 0.0030, 0.0023]
    assert np.array_equal(Campaign().tastes, Campaign(seed=0).tastes)
    assert np.array_equal(world.visitors(4), world.visitors(4, seed=0))
    assert np.array_equal(world.log(4).rewards, world.log(4, seed=0).rewards)


def test_a_moment_without_a_zone_is_of_greenwich_wherever_it_is_read(monkeypatch):
    monkeypatch.setenv("TZ", "Asia/Kathmandu")
    time.tzset()
    try:
        moment = datetime(2026, 1, 31, 12, 30, tzinfo=UTC).timestamp()
        for text in ("2026-01-31 12:30:00", " 2026-01-31T12:30Z ", "2026-01-31T14:30+02:00"):
            assert second_of(text) == moment
        assert seconds_of(["2026-01-31 12:30", "2026-01-31"]).tolist() == [moment, moment - 45_000]
    finally:
        monkeypatch.undo()
        time.tzset()
    assert second_of("7.5") == second_of(7.5) == 7.5
    with pytest.raises(UnusableRow, match="Row 3 of a BanditLog: a time must be a number or like"):
        second_of("soon", 3)


def test_confidence_is_95_percent_wherever_nothing_is_said():
    n_found = 0
    for module in (bounds, estimators, evaluation, items, lists):
        for name, function in inspect.getmembers(module, inspect.isfunction):
            asked = inspect.signature(function).parameters.get("confidence")
            if asked is not None and asked.default is not inspect.Parameter.empty:
                assert asked.default == 0.95, name
                n_found += 1
    assert n_found >= 9
    usual = EvaluationRequest()
    told = (usual.policy, usual.baseline, usual.confidence, usual.bound, usual.after)
    assert told == ("best", "logged", 0.95, "betting", 0)
