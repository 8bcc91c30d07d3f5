"""Who is in which part: splits by time, by rows and by chance, folds, and what models are shown."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from keyhole.data.bandit.campaign import Campaign
from keyhole.data.bandit.log import BanditLog
from keyhole.policies import choosing
from keyhole.policies.choosing import deal_folds, n_fits, train_policy
from tests.unit.references import units

N = 23
MOMENTS = [5, 5, 1, 9, 9, 9, 2, 2, 7, 7, 7, 7, 3, 5, 1, 9, 8, 8, 2, 4, 4, 6, 6]
UNEVEN = ["often"] * 11 + [f"visitor {row // 2}" for row in range(12)]
GROUPS = [f"visitor {row * row % 7}" for row in range(N)]


def some_log(**changes):
    given = {"times": MOMENTS, "groups": None, **changes}
    return BanditLog.of(
        np.arange(float(N))[:, None], np.arange(N) % 3, np.arange(N) % 2, np.full(N, 0.25), **given
    )


def rows_of(log):
    return log.contexts[:, 0].astype(int).tolist()


@pytest.mark.parametrize("share", [0.01, 0.1, 0.3, 0.42, 0.5, 0.77, 0.95, 1.0])
def test_by_time_the_second_part_begins_where_the_share_is_nearest(share):
    """Of all moments but the first, that before which the share of the rows is the nearest."""
    shares = {
        moment: sum(time < moment for time in MOMENTS) / N for moment in sorted(set(MOMENTS))[1:]
    }
    begin = min(shares, key=lambda moment: abs(shares[moment] - share))
    first, second = some_log().split(share)
    assert rows_of(first) == [row for row in range(N) if MOMENTS[row] < begin]
    assert rows_of(second) == [row for row in range(N) if MOMENTS[row] >= begin]


@pytest.mark.parametrize("share", [0.02, 0.25, 0.5, 0.7, 1.0])
def test_by_rows_the_first_part_has_the_nearest_number_of_rows(share):
    n_first = min(range(1, N), key=lambda n: abs(n / N - share))
    first, second = some_log().split(share, by="rows")
    assert (rows_of(first), rows_of(second)) == (list(range(n_first)), list(range(n_first, N)))
    at = some_log().split(by="rows", at=n_first)
    assert rows_of(at[0]) == list(range(n_first))


@pytest.mark.parametrize("seed", [0, 5])
@pytest.mark.parametrize("share", [0.05, 0.3, 0.6, 0.9, 1.0])
@pytest.mark.parametrize("groups", [None, GROUPS, UNEVEN])
def test_by_chance_whole_groups_are_dealt_in_the_order_of_their_numbers(seed, share, groups):
    """As many as come nearest to the share, and never all of them."""
    names = list(range(N)) if groups is None else sorted(set(groups))
    of_row = names if groups is None else groups
    keys = units((seed, 0, 1, 0), 12, len(names))
    dealt = [names[place] for place in np.argsort(keys, kind="stable")]
    reached = [sum(name in dealt[: n + 1] for name in of_row) for n in range(len(dealt))]
    n_first = min(range(len(dealt)), key=lambda n: abs(reached[n] - share * N)) + 1
    chosen = dealt[: min(n_first, len(dealt) - 1)]
    first, second = some_log(groups=groups).split(share, by="random", seed=seed)
    assert rows_of(first) == [row for row in range(N) if of_row[row] in chosen]
    assert rows_of(second) == [row for row in range(N) if of_row[row] not in chosen]


def test_a_split_by_default_is_of_seven_tenths_by_time():
    first, _ = some_log().split()
    assert rows_of(first) == rows_of(some_log().split(0.7, by="time")[0])
    chance = [rows_of(some_log().split(0.5, by="random", **seed)[0]) for seed in ({}, {"seed": 0})]
    assert chance[0] == chance[1]


@pytest.mark.parametrize("groups", [None, GROUPS])
def test_folds_are_of_one_size_and_hold_whole_groups(groups):
    folds = deal_folds(some_log(groups=groups), 3, 4)
    if groups is None:
        assert sorted(np.bincount(folds).tolist()) == [7, 8, 8]
    else:
        names = sorted(set(groups))
        assert all(len({folds[row] for row in range(N) if groups[row] == n}) == 1 for n in names)
        sizes = [len({g for g, f in zip(groups, folds, strict=True) if f == k}) for k in range(3)]
        assert max(sizes) - min(sizes) <= 1
    others = [deal_folds(some_log(groups=groups), 3, seed) for seed in range(5, 15)]
    assert not all(np.array_equal(folds, other) for other in others)
    assert np.array_equal(folds, deal_folds(some_log(groups=groups), 3, 4))


def test_each_fold_is_judged_by_a_model_of_the_others(monkeypatch):
    """What is fitted to never holds what it is judged on; the penalty judged best is taken."""
    log, n_folds = Campaign([0.3, 0.4], n_features=2, n_informative=1).log(60), 3
    folds = deal_folds(log, n_folds, 7)
    shown: list[Any] = []
    judged: list[Any] = []
    worth = {0.5: [0.1, 0.9, 0.2], 2.0: [0.3, 0.4, 0.8], 8.0: [0.0, 0.0, 1.0]}
    row = choosing.MODELS["classifiers"]

    def fit(given, *, l2, **settings):
        shown.append((l2, given.contexts[:, 0].tolist(), settings["seed"]))
        return row.fit(given, l2=l2, **settings)

    def judge(scorer, given):
        l2 = shown[-1][0]
        place = sum(each == l2 for each, _ in judged)
        judged.append((l2, given.contexts[:, 0].tolist()))
        return worth[l2][place]

    monkeypatch.setitem(choosing.MODELS, "classifiers", replace(row, fit=fit, judge=judge))
    trained = train_policy(
        log, "classifiers", penalties=list(worth), n_folds=n_folds, seed=7, policy="greedy"
    )
    assert trained.scores == pytest.approx({l2: sum(each) / 3 for l2, each in worth.items()})
    assert trained.penalty == 2.0
    assert len(shown) == n_fits("classifiers", list(worth), n_folds) == 10
    keys = log.contexts[:, 0]
    for number, (l2, held_out) in enumerate(judged):
        fold = number % n_folds
        assert l2 == list(worth)[number // n_folds]
        assert held_out == keys[folds == fold].tolist()
        assert shown[number][1] == keys[folds != fold].tolist()
    assert shown[-1] == (2.0, keys.tolist(), 7)
    assert {seed for _, _, seed in shown} == {7}


def test_campaigns_are_worth_what_their_visitors_do():
    """Chances, propensities and the value of a policy, ad by ad."""
    campaign = Campaign([0.2, 0.4, 0.1], n_features=4, n_informative=2, strength=1.5, seed=3)
    contexts = campaign.visitors(50, seed=8)
    odds = contexts[:, :2] @ campaign.tastes.T + campaign.intercepts
    chances = 1 / (1 + np.exp(-odds))
    np.testing.assert_allclose(campaign.click_chances(contexts), chances, rtol=1e-12)
    np.testing.assert_allclose(np.linalg.norm(campaign.tastes, axis=1), 1.5, rtol=1e-12)
    policy = np.random.default_rng(1).dirichlet(np.ones(3), size=50)
    assert campaign.value(policy, contexts) == pytest.approx(
        sum(float(policy[row] @ chances[row]) for row in range(50)) / 50, rel=1e-12
    )
    log = campaign.log(4000, shares=[1, 3, 4], seed=2)
    assert np.array_equal(log.propensities, np.array([0.125, 0.375, 0.5])[log.actions])
    assert np.array_equal(log.contexts, campaign.visitors(4000, seed=2))
    for action, share in enumerate((0.125, 0.375, 0.5)):
        within = 4 * np.sqrt(share * (1 - share) / 4000)  # four standard deviations
        assert abs((log.actions == action).mean() - share) < within
