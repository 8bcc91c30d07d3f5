"""The kernelised perceptrons (A16) against their linear twins, a reference, and what they claim."""

import os
import subprocess
import sys
from collections import deque
from typing import Any

import numpy as np
import pytest

from keyhole.base.errors import InvalidInput, UnknownName
from keyhole.contracts.lists import Feedback, Query
from keyhole.measures import measure
from keyhole.rankers.lists.kernel_perceptron import (
    KernelMaxViolationPerceptron,
    KernelSLAMPerceptron,
)
from keyhole.rankers.lists.perceptron import MaxViolationPerceptron, SLAMPerceptron
from keyhole.rankers.lists.plain import RandomLists
from keyhole.surrogates import surrogate
from keyhole.worlds.generated import Separable

NDCG = measure("NDCG@10")


def _play(ranker, lists):
    """Return the rankings shown, and how good they were."""
    rankings, scores = [], []
    for features, relevance in lists:
        impression = ranker.rank(Query(len(features), features))
        ranker.update(impression, Feedback(relevance[impression.ranking]))
        rankings.append(impression.ranking)
        scores.append(NDCG(relevance, impression.ranking))
    return np.array(rankings), np.array(scores)


def _lists(relevant, n_lists, n_items=10, seed=0):
    """Return lists of points of a square, those that are relevant by some rule."""
    numbers = np.random.default_rng(seed)
    points = [numbers.uniform(-1.0, 1.0, (n_items, 2)) for _ in range(n_lists)]
    return [(x, relevant(x).astype(float)) for x in points]


def _near(x):
    return np.hypot(x[:, 0] - 0.1, x[:, 1] + 0.2) < 0.5


def _xor(x):
    return x[:, 0] * x[:, 1] > 0.0


@pytest.mark.parametrize(
    ("linear", "kernelised"),
    [
        (
            SLAMPerceptron(20, 20, rate=1.0),
            KernelSLAMPerceptron(20, 20, rate=1.0, similarity="linear", budget=4000),
        ),
        (
            SLAMPerceptron(20, 20, row_norm=9.0, max_grade=4),
            KernelSLAMPerceptron(
                20, 20, row_norm=9.0, max_grade=4, similarity="linear", budget=20_000
            ),
        ),
        (MaxViolationPerceptron(20, 20), KernelMaxViolationPerceptron(20, 20, similarity="linear")),
    ],
    ids=["slam", "slam at the default rate", "max-violation"],
)
def test_linear_kernels_predict_what_linear_scores_predict(linear, kernelised):
    world = Separable()
    lists = [(world.query(t).features, world.relevance(t)) for t in range(400)]
    shown, _ = _play(linear.fresh(), lists)
    kernelised = kernelised.fresh()
    again, scores = _play(kernelised, lists)
    assert np.array_equal(shown, again)
    state = kernelised.state
    assert state.added[0] <= kernelised.budget
    mistakes = np.count_nonzero(scores < 1.0 - 1e-12)
    assert mistakes > 10
    per_mistake = state.added[0] / mistakes
    assert per_mistake == 2 if isinstance(linear, MaxViolationPerceptron) else 2 < per_mistake <= 20


@pytest.mark.parametrize("rule", [_near, _xor])
def test_kernels_learn_what_no_linear_score_can(rule):
    lists = _lists(rule, 500)

    def late(cls, **options):
        return _play(cls(2, 10, **options), lists)[1][-150:].mean()

    assert max(late(SLAMPerceptron, rate=0.1), late(MaxViolationPerceptron)) < 0.85
    for options in ({"similarity": "rbf", "gamma": 2.0}, {"similarity": "polynomial"}):
        for score in (
            late(KernelSLAMPerceptron, rate=0.1, **options),
            late(KernelMaxViolationPerceptron, **options),
        ):
            assert score > 0.93


@pytest.mark.parametrize(
    "ranker",
    [
        KernelSLAMPerceptron(2, 10, similarity="rbf", rate=0.1, gamma=2.0, budget=2000),
        KernelMaxViolationPerceptron(2, 10, similarity="polynomial"),
    ],
    ids=["slam", "max-violation"],
)
def test_the_support_stops_growing_where_the_kernel_separates(ranker):
    # A finite set that the kernel separates: a perceptron makes finitely many mistakes on it.
    lists = [
        (x, r)
        for x, r in _lists(lambda x: np.hypot(*x.T) < 0.6, 60)
        if np.abs(np.hypot(*x.T) - 0.6).min() > 0.02
    ]
    ranker = ranker.fresh()
    scores = np.zeros(1)
    for _ in range(100):
        before = int(ranker.state.added[0])
        _, scores = _play(ranker, lists)
        if ranker.state.added[0] == before:
            break
    assert len(lists) > 20
    assert scores.min() == pytest.approx(1.0)
    assert 0 < ranker.state.added[0] < ranker.budget
    state = ranker.state_dict()
    _play(ranker, lists)
    assert all(np.array_equal(state[k], v) for k, v in ranker.state._asdict().items())


@pytest.mark.parametrize(
    "ranker",
    [
        KernelSLAMPerceptron(2, 10, similarity="rbf", gamma=2.0, rate=0.1, budget=10),
        KernelMaxViolationPerceptron(2, 10, similarity="rbf", gamma=2.0, budget=6),
    ],
    ids=["slam", "max-violation"],
)
def test_a_tiny_budget_is_kept_and_beats_chance(ranker):
    lists = _lists(_near, 600)
    _, chance = _play(RandomLists(2, 10), lists)
    ranker = ranker.fresh()
    shapes = [array.shape for array in ranker.state]
    _, scores = _play(ranker, lists)
    assert ranker.state.added[0] > 10 * ranker.budget
    assert [array.shape for array in ranker.state] == shapes
    gain = scores - chance
    error = gain.std() / np.sqrt(len(gain))
    assert gain.mean() > 5.0 * error, f"{gain.mean():.3f} with a standard error of {error:.3f}"


def _reference(ranker, options, lists, phi):
    """Play with NumPy and a queue that forgets its oldest entries; return what was shown."""
    queue: deque[tuple[float, Any]] = deque(maxlen=ranker.budget)

    def similar(x, y):
        x, y, gamma = x / options["row_norm"], y / options["row_norm"], options["gamma"]
        return {
            "linear": x @ y,
            "polynomial": (1.0 + gamma * (x @ y)) ** options["degree"],
            "rbf": np.exp(-gamma * np.square(x - y).sum()),
        }[options["similarity"]]

    shown = []
    for features, relevance in lists:
        scores = np.array([sum(a * similar(y, x) for a, y in queue) for x in features])
        ranking = np.argsort(-scores, kind="stable")
        shown.append(ranking)
        if NDCG(relevance, ranking) < 1.0 - 1e-12:
            slopes = phi.gradient(scores, relevance)
            queue.extend(
                (-ranker.rate * slopes[i], features[i]) for i in ranking if slopes[i] != 0.0
            )
    return np.array(shown), queue


@pytest.mark.parametrize("kernel", ["linear", "polynomial", "rbf"])
@pytest.mark.parametrize("cls", [KernelSLAMPerceptron, KernelMaxViolationPerceptron])
def test_scores_and_removals_are_those_of_a_plain_reference(cls, kernel):
    options = {"similarity": kernel, "gamma": 1.5, "degree": 3, "row_norm": 1.3}
    slam = cls is KernelSLAMPerceptron
    ranker = cls(2, 5, budget=13, **options)
    phi = surrogate("slam", measure="NDCG@10") if slam else surrogate("max_violation")
    lists = _lists(_near, 60, n_items=5, seed=4)
    shown, queue = _reference(ranker, options, lists, phi)
    assert np.array_equal(_play(ranker, lists)[0], shown)
    state = ranker.state
    assert state.added[0] > ranker.budget == len(queue)
    oldest_first = np.roll(np.arange(13), -(int(state.added[0]) % 13))
    assert state.support[oldest_first] == pytest.approx(np.array([x for _, x in queue]), abs=0)
    coefficients = np.array([a for a, _ in queue])
    assert state.coefficients[oldest_first] == pytest.approx(coefficients, rel=1e-12, abs=1e-15)


def test_perfect_lists_add_nothing():
    for cls in (KernelSLAMPerceptron, KernelMaxViolationPerceptron):
        ranker = cls(2, 10)
        features = np.random.default_rng(0).random((10, 2))
        _play(ranker, [(features, np.zeros(10)), (features, np.ones(10))])
        assert ranker.state.added[0] == 0


def test_bad_options_are_one_sentence():
    for options, sentence in (
        ({"budget": 1}, "which adds up to 2 support vectors at a time, must be an integer of at"),
        ({"gamma": 0.0}, "`gamma` of KernelMaxViolationPerceptron must be a number above 0"),
        ({"degree": 0}, "`degree` of KernelMaxViolationPerceptron must be an integer of at least"),
        ({"measure": "DCG"}, "must be NDCG, NDCG@n or AP, got DCG"),
    ):
        with pytest.raises(InvalidInput, match=sentence):
            KernelMaxViolationPerceptron(2, 10, **options)
    with pytest.raises(UnknownName, match="Did you mean 'rbf'"):
        KernelMaxViolationPerceptron(2, 10, similarity="rbff")
    assert KernelSLAMPerceptron(2, 1500).budget == 1500


GAME = """
import hashlib
import numpy as np
from keyhole.contracts.lists import Feedback, Query
from keyhole.rankers.lists.kernel_perceptron import KernelMaxViolationPerceptron
from keyhole.rankers.lists.kernel_perceptron import KernelSLAMPerceptron
digest = hashlib.sha256()
for ranker in (
    KernelSLAMPerceptron(9, 6, similarity="rbf", budget=40),
    KernelMaxViolationPerceptron(9, 6, similarity="polynomial", degree=3, budget=16),
):
    numbers = np.random.default_rng(5)
    for _ in range(40):
        features = numbers.random((6, 9))
        relevance = (features[:, 0] * features[:, 1] > 0.3).astype(float)
        impression = ranker.rank(Query(6, features))
        digest.update(impression.ranking.tobytes())
        ranker.update(impression, Feedback(relevance[impression.ranking]))
    for array in ranker.state:
        digest.update(array.tobytes())
print(digest.hexdigest())
"""


def test_interpreted_and_compiled_kernels_give_the_same_bits():
    outcomes = {
        subprocess.run(
            [sys.executable, "-c", GAME],
            env={**os.environ, **environment},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for environment in ({}, {"NUMBA_DISABLE_JIT": "1"})
    }
    assert len(outcomes) == 1
