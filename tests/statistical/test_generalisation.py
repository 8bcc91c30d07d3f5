"""Excess risks of batch learners stay below their bounds over many draws (B11), and are small.

Some bounds are above the range of the loss, where nothing exceeds them: so excess risks are also
held against those of no weights, random weights and the true weights negated, which must fail.
"""

# ruff: noqa: T201 (tests print the bounds they hold results against)

import math
from functools import cache

import numpy as np
import pytest

from keyhole.bounds import covering, generalisation as bounds
from keyhole.checks.non_learners import check_only_learners_pass
from keyhole.lab.kinds.risks import (
    RiskSpec,
    best_of,
    build_risk,
    learn_once,
    setting_at,
)

DRAWS = 40
SURROGATES = ["listnet", "ranksvm", "logistic"]


@cache
def excess(surrogate, learner, n, *, grades="binary", noise=1.0):
    spec = RiskSpec(
        points=(6,), surrogate=surrogate, learner=learner, queries=n, features=6, strength=2.0,
        noise=noise, grades=grades, test_queries=1500, runs=DRAWS, seed=21,
    )  # fmt: skip
    built = build_risk(spec)
    setting = setting_at(spec, 6)
    best = best_of(built, setting)
    values = np.array([learn_once(built, setting, best, run) for run in range(DRAWS)])
    return built.loss, best, values


@pytest.mark.parametrize("surrogate", SURROGATES)
@pytest.mark.parametrize("n", [20, 200])
def test_excess_risk_is_below_its_bound(surrogate, n, record_property):
    """Means are judged with four standard errors added, so that chance cannot help to pass."""
    for learner in ("online", "regularised", "erm"):
        loss, _, values = excess(surrogate, learner, n)
        G, W = loss.lipschitz(6, max_score=2.0), 2.0
        assert G is not None
        high = values.mean() + 4 * values.std(ddof=1) / math.sqrt(DRAWS)
        if learner == "online":
            bound = bounds.descent_bound(G, W, 1.0, n, tight=True)
        elif learner == "regularised":
            bound = bounds.regularised_bound(G, W, 1.0, n)
        else:  # every one of the draws, at a confidence at which none of them should fail
            B = loss.loss_range(6, max_score=2.0)
            assert B is not None
            rademacher = covering.l2_complexity(
                lipschitz=G, radius=W, norm=1.0, loss_bound=B, n_queries=n, n_items=6, safe=True
            )
            bound, high = bounds.erm_bound(rademacher, B, n, 1 - 1e-6), values.max()
        record_property(f"{learner} share of the bound", float(high / bound))
        assert (values > -1e-9).all()  # no weights are below the least
        assert high <= bound, (learner, high, bound)


SHARES = {"online": 0.5, "regularised": 0.6, "erm": 0.05}
"""Of the excess risk of no weights, that learners may keep after 200 lists.

The first two take the steps of the theory, which are those of the worst case.
"""


def unlearnt(best):
    """Return the excess risks of weights that nothing was learnt for."""
    directions = np.random.default_rng(3).normal(size=(DRAWS, 6))
    directions *= 2.0 / np.linalg.norm(directions, axis=1, keepdims=True)
    truth = setting_at(RiskSpec(points=(6,), features=6, strength=2.0, seed=21), 6).truth
    weights = {
        "none": np.zeros((DRAWS, 6)),
        "random": directions,
        "negated": np.tile(-truth, (DRAWS, 1)),
    }
    return {
        name: np.array([best.risk(row)[0] - best.value for row in rows])
        for name, rows in weights.items()
    }


@pytest.mark.parametrize("surrogate", SURROGATES)
@pytest.mark.parametrize("learner", SHARES)
def test_excess_risk_is_a_part_of_that_of_no_weights(surrogate, learner):
    _, best, values = excess(surrogate, learner, 200)
    others = unlearnt(best)
    allowed = SHARES[learner] * others["none"].mean()

    def is_small(values):
        high = values.mean() + 4 * values.std(ddof=1) / math.sqrt(DRAWS)
        print(f"{surrogate}, {learner}: excess risk {high:.4f}, at most {allowed:.4f}")
        assert high <= allowed

    check_only_learners_pass(is_small, values, others)


@pytest.mark.parametrize("surrogate", SURROGATES)
def test_the_least_mean_loss_falls_at_least_like_one_over_the_root_of_lists(surrogate):
    """Ten times the lists, so by sqrt(10) at least: the rate that the bounds have."""

    def falls(draws):
        few, many = draws
        error = math.hypot(
            *(float(v.std(ddof=1) / math.sqrt(DRAWS) / v.mean()) for v in (few, many))
        )
        ratio = float(few.mean() / many.mean())
        print(f"{surrogate}: {ratio:.2f} +- {ratio * error:.2f}, at least {math.sqrt(10):.2f}")
        assert ratio * (1.0 - 4.0 * error) >= math.sqrt(10.0)

    _, best, few = excess(surrogate, "erm", 20)
    many = excess(surrogate, "erm", 200)[2]
    others = unlearnt(best)
    check_only_learners_pass(falls, (few, many), {n: (v, v) for n, v in others.items()})


@pytest.mark.parametrize("noise", [0.0, 1.0])
def test_smooth_descent_is_below_its_bound(noise):
    loss, best, values = excess("listnet", "online-smooth", 100, grades="real", noise=noise)
    optimal = best.value - best.unavoidable
    assert (optimal < 1e-6) is (noise == 0.0)
    H = loss.smoothness(6)
    assert H is not None
    bound = bounds.smooth_descent_bound(H, 2.0, 1.0, 100, max(optimal, 0.0))
    assert values.mean() + 4 * values.std(ddof=1) / math.sqrt(DRAWS) <= bound


def test_more_lists_are_better_and_random_weights_are_not():
    few, many = (excess("listnet", "erm", n)[2] for n in (20, 200))
    spread = math.hypot(few.std(ddof=1), many.std(ddof=1)) / math.sqrt(DRAWS)
    assert few.mean() - many.mean() > 4 * spread
    _, best, _ = excess("listnet", "erm", 20)
    wrong = -2.0 * np.ones(6) / math.sqrt(6)
    assert best.risk(wrong)[0] - best.value > few.mean()
