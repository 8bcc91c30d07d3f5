"""The constants that surrogates state (B11) are attained, or as small as can be."""

import math

import numpy as np
import pytest

from keyhole.surrogates import surrogate
from keyhole.surrogates.hinge import Hinge
from keyhole.surrogates.listnet import ListNet
from keyhole.surrogates.max_violation import MaxViolation
from keyhole.surrogates.ordinal import Ordinal
from keyhole.surrogates.ranksvm import RankSVM
from keyhole.surrogates.slam import SLAM
from keyhole.surrogates.smooth_dcg import SmoothDCG
from keyhole.surrogates.squared import Squared


@pytest.mark.parametrize(
    ("loss", "s", "R", "bounds"),
    [
        (Hinge(), [0, 0, 0], [1, 0, 1], {}),
        (SLAM("NDCG"), [0, 0, 0], [1, 0, 0], {}),
        (MaxViolation(), [0, 0], [1, 0], {}),
        (RankSVM(), [0, 0, 0, 0, 0], [4, 3, 2, 1, 0], {"max_grade": 4}),
        (RankSVM(), [0, 0, 0, 0], [1, 1, 0, 0], {}),
        (Squared(), [-2, -2], [1, 1], {"max_score": 2}),
        (SmoothDCG(0.2), [0, 0], [2, 0], {"max_grade": 2}),
        (ListNet(), [40, 0], [0, 40], {"max_grade": 40}),
        (Ordinal(3), [50, 50], [0, 0], {"max_grade": 3}),
        (surrogate("logistic"), [50, 50], [0, 0], {}),
        (surrogate("kl"), [2, 2], [0, 0], {"max_score": 2}),
        (surrogate("kl"), [-1, -1], [2, 2], {"max_score": 1, "max_grade": 2}),
        (surrogate("poisson"), [2, 2], [0, 0], {"max_score": 2}),
        (surrogate("pairwise_squared"), [2, 2, -2, -2], [0, 0, 3, 3],
         {"max_score": 2, "max_grade": 3}),
        (surrogate("ndcg_squared"), [-2], [1], {"max_score": 2}),
    ],
)  # fmt: skip
def test_lipschitz_constants_are_attained(loss, s, R, bounds):
    attained = np.abs(loss.gradient(s, R)).sum()
    assert attained == pytest.approx(loss.lipschitz(len(s), **bounds), rel=1e-9)


def test_smoothness_of_listnet_is_one_and_not_two():
    """B11: the l-infinity to l1 norm of diag(p) - pp' is at most 1, attained at p = (1/2, 1/2)."""
    rng = np.random.default_rng(9)
    signs = np.array(np.meshgrid(*[[-1, 1]] * 5)).reshape(5, -1)
    for _ in range(200):
        p = rng.dirichlet(np.full(5, rng.choice([0.2, 1.0])))
        assert np.abs((np.diag(p) - np.outer(p, p)) @ signs).sum(axis=0).max() <= 1 + 1e-12
    step = 1e-6
    change = ListNet().gradient([step, -step], [0, 0]) - ListNet().gradient([-step, step], [0, 0])
    assert np.abs(change).sum() / (2 * step) == pytest.approx(1.0, rel=1e-6)


def test_smoothness_of_smooth_dcg_is_attained():
    loss, step = SmoothDCG(0.5), 1e-5
    u, v = np.array([1, 1, -1, -1.0]), np.array([1, -1, 1, -1.0])
    change = loss.gradient(step * v, u * v > 0) - loss.gradient(-step * v, u * v > 0)
    curvature = np.abs(change).sum() / (2 * step)
    assert curvature == pytest.approx(loss.smoothness(4), rel=1e-6)


def test_unbounded_scores_have_no_constant():
    for name in ("squared", "ndcg_squared", "pairwise_squared"):
        assert surrogate(name).lipschitz(3) is None
    for name in ("hinge", "slam", "max_violation", "ranksvm"):
        assert surrogate(name).smoothness(3) is None
    assert surrogate("kl").lipschitz(2) == pytest.approx(2 * math.exp(30))


def test_smoothness_of_smooth_dcg_holds_for_all_signs():
    """Of items only their signs in u and v matter, so four kinds of items are all there are."""
    u, v = np.array([1, 1, -1, -1]), np.array([1, -1, 1, -1])
    steps = np.linspace(0, 1, 41)
    grid = np.array(np.meshgrid(steps, steps, steps)).reshape(3, -1).T
    grid = grid[grid.sum(axis=1) <= 1]
    p = np.column_stack([grid, 1 - grid.sum(axis=1)])
    x = (u - (p @ u)[:, None]) * (v - (p @ v)[:, None])
    spread = np.abs(x - (p * x).sum(axis=1)[:, None])
    assert (p * spread**2).sum(axis=1).max() <= 1 + 1e-12
    assert (p * spread).sum(axis=1).max() / 2 == pytest.approx(0.5)
