"""Excess risks of batch learners stay below their bounds over many draws (B11)."""

import math

import numpy as np
import pytest

from keyhole.bounds import covering
from keyhole.bounds import generalisation as bounds
from keyhole.lab.generalisation import (
    RiskSpec,
    best_of,
    build_risk,
    learn_once,
    setting_at,
)

DRAWS = 40


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


@pytest.mark.parametrize("surrogate", ["listnet", "ranksvm", "logistic"])
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
