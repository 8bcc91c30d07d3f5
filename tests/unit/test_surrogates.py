"""Surrogates against their definitions; what all of them must keep is in the contract suite."""

import itertools
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from keyhole.base.errors import InvalidInput, UnknownName
from keyhole.measures import measure
from keyhole.surrogates import SURROGATES, surrogate
from keyhole.surrogates.base import surrogate_work
from keyhole.surrogates.max_violation import MaxViolation
from keyhole.surrogates.slam import SLAM
from keyhole.surrogates.smooth_dcg import SmoothDCG, annealed_eps

OPTIONS: dict[str, Any] = {
    "logistic": {"max_grade": 3},
    "ordinal": {"max_grade": 3},
    "smooth_dcg": {"eps": 0.5},
}
SLAMS = {
    f"slam {name} {weights}": SLAM(name, weights=weights)
    for name in ("AP", "NDCG", "NDCG@3")
    for weights in ("average", "index")
} | {"slam NDCG@3 by grades": SLAM("NDCG@3", margin="grades")}
ALL: dict[str, Any] = {
    name: surrogate(name, **OPTIONS.get(name, {})) for name in SURROGATES if name != "slam"
} | SLAMS


def softmax(x):
    weights = np.exp(x - x.max())
    return weights / weights.sum()


def pairs(s, R):
    return [1 + s[j] - s[i] for i in range(len(s)) for j in range(len(s)) if R[i] > R[j]]


def ideal(R):
    return measure("DCG")(R, np.argsort(-R, kind="stable"))


DEFINITIONS = {
    "hinge": lambda s, R: np.maximum(0, 1 - np.where(R > 0, 1, -1) * s).sum(),
    "max_violation": lambda s, R: max([0.0, *pairs(s, R)]),
    "listnet": lambda s, R: -(softmax(R) * np.log(softmax(s))).sum(),
    "squared": lambda s, R: ((s - R) ** 2).sum(),
    "ranksvm": lambda s, R: np.maximum(0, pairs(s, R)).sum(),
    "kl": lambda s, R: (np.exp(R) * (R - s) - np.exp(R) + np.exp(s)).sum(),
    "smooth_dcg": lambda s, R: -((2**R - 1) * softmax(s / 0.5)).sum(),
    "ndcg_squared": lambda s, R: ((s - (2**R - 1) / (ideal(R) or 1)) ** 2).sum(),
    "logistic": lambda s, R: (np.log1p(np.exp(s)) - R / 3 * s).sum(),
    "ordinal": lambda s, R: sum(
        np.log1p(np.exp(-(s - g + 2) * np.where(g <= R, 1, -1))).sum() for g in (1, 2, 3)
    ),
    "poisson": lambda s, R: (np.exp(s) - R * s).sum(),
    "pairwise_squared": lambda s, R: sum(
        ((s[i] - s[j]) - (R[i] - R[j])) ** 2 for i in range(len(s)) for j in range(i)
    ),
}


def slam_weights(name, R, within):
    """Eqs. 2.10, 2.11 and 2.24, ``within`` a grade by index, by score (an array) or shared."""
    order = np.lexsort((np.arange(len(R)) if within is None else -within, -R))
    base, _, cutoff = name.partition("@")
    gains = (R > 0) * 1.0 if base == "AP" else 2**R - 1
    discounts = np.ones(len(R)) if base == "AP" else 1 / np.log2(np.arange(2, len(R) + 2))
    discounts[int(cutoff or len(R)) :] = 0
    weights = np.zeros(len(R))
    weights[order] = gains[order] * discounts
    return weights / (weights.sum() or 1)


def slam(s, R, weights, margin="unit"):
    total = 0.0
    for i in range(len(s)):
        margins = np.ones(len(s)) if margin == "unit" else R[i] - R
        lower = [margins[j] + s[j] - s[i] for j in range(len(s)) if R[j] < R[i]]
        total += weights[i] * max([0.0, *lower])
    return total


def slam_by_definition(loss, s, R):
    weights = slam_weights(loss.measure.label, R, None)
    if loss.weights == "average":
        weights = np.array([weights[grade == R].mean() for grade in R])
    return slam(s, R, weights, loss.margin)


def lists(seed, n, largest=7, n_grades=4, spread=1.5):
    rng = np.random.default_rng(seed)
    for _ in range(n):
        m = rng.integers(1, largest + 1)
        yield rng.normal(0, spread, m), rng.integers(0, n_grades, m).astype(float)


@pytest.mark.parametrize("name", [*SLAMS, *DEFINITIONS])
def test_value_is_the_definition(name):
    loss = ALL[name]
    for s, R in lists(1, 60):
        own = slam_by_definition(loss, s, R) if name in SLAMS else DEFINITIONS[name](s, R)
        assert loss.value(s, R) == pytest.approx(own, rel=1e-10, abs=1e-10)


@pytest.mark.parametrize("name", SLAMS)
def test_slam_in_long_lists_is_the_definition(name):
    rng = np.random.default_rng(5)
    s, R = rng.normal(0, 2, 150), rng.integers(0, 5, 150).astype(float)
    loss = ALL[name]
    assert loss.value(s, R) == pytest.approx(slam_by_definition(loss, s, R), rel=1e-10)


def lists_with_ties(n_lists, m, n_grades, seed):
    rng = np.random.default_rng(seed)
    s = rng.normal(0, 1, (n_lists, m))
    s[::2] = rng.integers(-2, 3, s[::2].shape) / 2
    return s, rng.integers(0, n_grades, (n_lists, m)).astype(float)


@pytest.mark.parametrize("name", [*SLAMS, "max_violation"])
def test_surrogates_bound_the_induced_losses(name):
    """Theorem 4 and section 2.6.2 of [T16], on 10^5 lists; ties broken by index and at worst."""
    loss = ALL[name]
    losses = [loss.measure.label] if name in SLAMS else ["AP", "NDCG", "NDCG@3"]
    n_lists = 0
    for m in range(1, 9):
        s, R = lists_with_ties(12_500, m, 4, seed=m)
        params, work = loss.params(m), surrogate_work(m)
        values = np.array([loss.kernel.value(params, *row, work) for row in zip(s, R, strict=True)])
        by_index = np.argsort(-s, axis=1, kind="stable")
        worst = np.lexsort((R, -s), axis=1)
        for label in losses:
            induced = 1 - measure(label).many(R, by_index)
            at_worst = 1 - measure(label).many(R, worst)
            assert (at_worst >= induced - 1e-12).all()
            assert (values >= at_worst - 1e-12).all()
        n_lists += len(s)
    assert n_lists == 100_000


def violations(value, n_points=4000, m=5):
    rng = np.random.default_rng(7)
    worst = 0
    for _ in range(n_points):
        R = rng.integers(0, 3, m).astype(float)
        a, b = rng.normal(0, 1, (2, m))
        gap = value((a + b) / 2, R) - (value(a, R) + value(b, R)) / 2
        worst += gap > 1e-9
    return worst


def test_what_is_not_convex():
    assert violations(SmoothDCG(0.5).value, 200) > 0
    # R14: weights sorted by score within a grade.
    assert violations(lambda s, R: slam(s, R, slam_weights("NDCG", R, s)), 1000) > 10


@pytest.mark.parametrize("name", SLAMS)
@pytest.mark.parametrize("n_grades", [2, 4])
def test_a_mistake_has_a_least_loss(name, n_grades):
    """B4: on lists that are not ranked best, ties at worst, the loss is at least 1/(kappa v_max).

    Scores are spread out, so that pairs in the right order have no hinge.
    """
    loss = ALL[name]
    for m in range(2, 9):
        s, R = lists_with_ties(2000, m, n_grades, seed=m)
        mistakes = measure(loss.measure.label).many(R, np.lexsort((R, -s), axis=1)) < 1 - 1e-9
        least = 1 / loss.mistake_scale(m, max_grade=n_grades - 1)
        for row in np.flatnonzero(mistakes):
            assert loss.value(s[row] * 10.0, R[row]) >= least - 1e-9


@pytest.mark.parametrize("name", ["kl", "poisson"])
def test_beyond_30_the_exponential_is_its_tangent(name):
    loss = surrogate(name)
    for score in (-45.0, 45.0):
        slope = (loss.value([score + 1], [2]) - loss.value([score - 1], [2])) / 2
        assert loss.gradient([score], [2])[0] == pytest.approx(slope, rel=1e-9)


def test_ties_and_empty_lists():
    assert MaxViolation().gradient([0, 0, 0, 0], [0, 1, 0, 1]).tolist() == [1, -1, 0, 0]
    assert SLAM("AP").gradient([0, 0, 0], [0, 0, 1]).tolist() == [1, 0, -1]
    for name in ("slam", "max_violation", "ranksvm"):
        for R in ([0, 0, 0], [2, 2, 2]):
            assert surrogate(name).value([3, 1, 2], R) == 0.0
            assert not surrogate(name).gradient([3, 1, 2], R).any()
    # R15: in a tie the hinge is one, which is enough for a mistake.
    assert SLAM("NDCG").value([0, 0], [0, 1]) == 1.0


def test_annealing():
    schedule = [annealed_eps(1.0, 0.05, 1 / 3, t) for t in range(10_000)]
    assert schedule[0] == 1.0
    assert schedule[-1] == 0.05
    assert all(a >= b for a, b in itertools.pairwise(schedule))


def test_errors():
    loss = surrogate("squared")
    with pytest.raises(InvalidInput, match=r"scores must be finite, got nan at index 1\."):
        loss.value([0.0, np.nan], [0, 1])
    with pytest.raises(InvalidInput, match=r"relevance must have the shape of scores"):
        loss.gradient([0.0, 1.0], [1])
    with pytest.raises(InvalidInput, match=r"at least one item"):
        loss.value([], [])
    with pytest.raises(InvalidInput, match=r"1 dimension"):
        loss.value([[0.0]], [[1]])
    with pytest.raises(InvalidInput, match=r"list of numbers"):
        loss.value(["a"], [1])
    with pytest.raises(InvalidInput, match=r"not negative"):
        loss.value([0.0], [-1])
    with pytest.raises(InvalidInput, match=r"relevance must be at most 30 for kl, got 31\.0\."):
        surrogate("kl").value([0.0], [31])
    with pytest.raises(InvalidInput, match=r"`max_grade` must be at most 1 for logistic"):
        surrogate("logistic").lipschitz(3, max_grade=2)
    with pytest.raises(InvalidInput, match=r"`measure` of SLAM must be NDCG, NDCG@n or AP"):
        SLAM("DCG")
    with pytest.raises(InvalidInput, match=r"got AP@3"):
        SLAM("AP@3")
    with pytest.raises(UnknownName, match=r"Did you mean 'index'"):
        SLAM("AP", weights="indexed")
    with pytest.raises(UnknownName, match=r"A setting of SmoothDCG must be one of eps"):
        surrogate("smooth_dcg", epsilon=1.0)
    with pytest.raises(InvalidInput, match=r"`eps` of SmoothDCG must be a number above 0"):
        SmoothDCG(0.0)
    assert surrogate(loss) is loss
    assert repr(loss) == "Squared()"


def test_every_row_has_its_line_in_the_docs():
    page = (Path(__file__).parents[2] / "docs" / "surrogates.md").read_text()
    assert [name for name in SURROGATES if not re.search(f"`{name}`", page)] == []
