"""Every ranker of query-document lists learns as a plain reference of its own does.

A reference keeps weights (or support vectors) in NumPy and follows the theory's formulae; both see
the same lists, draw the same numbers and must show the same rankings and keep the same weights.
"""

import math
from typing import Any

import numpy as np
import pytest

from keyhole.contracts.lists import Feedback, Query
from keyhole.game.play import checkpoints_of, play
from keyhole.rankers import RANKERS
from keyhole.rankers.lists.base import ContextualRanker
from keyhole.rankers.lists.gradient import Descent
from keyhole.rankers.lists.kernel_perceptron import (
    KernelMaxViolationPerceptron,
    KernelSLAMPerceptron,
)
from keyhole.rankers.lists.perceptron import (
    ClassificationPerceptron,
    MaxViolationPerceptron,
    SLAMPerceptron,
)
from keyhole.rankers.lists.plain import RandomLists
from keyhole.rankers.lists.top_k import ContextualRTopK
from keyhole.reveals.top import Top
from keyhole.worlds.queries import Queries
from tests.unit.references import average_precision, descending, ndcg, units
from tests.unit.references_lists import (
    N_FEATURES,
    RUN,
    SEED,
    Estimator,
    Greedy,
    Steps,
    Supports,
    kl,
    listnet,
    place_of,
    ranksvm,
    slam,
    slam_ap,
    smooth_dcg,
    squared,
    worst_pair,
)

pytestmark = pytest.mark.interpreted

LONGEST, ROUNDS = 7, 120


def stream(n_grades=3, seed=0):
    """Return lists of one to seven documents whose grades follow the first feature."""
    numbers = np.random.default_rng(seed)
    lists = []
    for round in range(ROUNDS):
        n_items = 1 if round == 20 else int(numbers.integers(3, LONGEST + 1))
        features = numbers.normal(size=(n_items, N_FEATURES)) / 2
        quality = features[:, 0] + 0.3 * numbers.normal(size=n_items)
        grades = np.clip(np.floor(quality * n_grades), 0, n_grades - 1)
        lists.append((features, grades))
    return lists


def same_lists(ranker, reference, lists, depth=None):
    for round, (features, grades) in enumerate(lists):
        impression = ranker.rank(Query(len(grades), features))
        ranking, explored, propensity = reference.rank(features, round)
        assert impression.ranking.tolist() == ranking.tolist()
        assert impression.explored == explored
        assert impression.propensity == pytest.approx(propensity, rel=1e-12)
        values = grades[ranking]
        values[len(values) if depth is None else depth :] = math.nan
        ranker.update(impression, Feedback(values))
        reference.update(features, ranking, grades, round)


def weights_agree(ranker, steps):
    np.testing.assert_allclose(ranker.state.weights, steps.weights, rtol=1e-9, atol=1e-12)
    assert np.linalg.norm(steps.weights) > 0.01


STEPS: dict[str, Any] = {
    "adagrad": {"step": "adagrad", "rate": 0.2, "row_norm": 3.0},
    "power": {"step": "power", "rate": 0.5, "power": 0.4, "row_norm": 2.0},
    "fixed": {"step": "fixed", "rate": 0.05, "radius": 0.4},
}


def steps_of(options):
    return Steps(
        options["step"], options["rate"], options.get("power", 0.0), options.get("radius"),
        options.get("row_norm", 1.0),
    )  # fmt: skip


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize(
    ("surrogate", "estimate", "k"),
    [
        ("kl", kl, 1),
        ("squared", squared, 1),
        ("smooth_dcg", smooth_dcg, 1),
        ("ranksvm", ranksvm, 2),
    ],
)
def test_contextual_rtopk(surrogate, estimate, k, step):
    how: Any = {"mix": 0.7, "mix_power": 0.2, "mismatch_scale": 1.5, "exploration": "lifted"}
    if surrogate == "squared":
        how["exploration"] = "uniform"
    if step == "fixed":
        how["centred"] = False
    ranker = ContextualRTopK(
        N_FEATURES, LONGEST, surrogate=surrogate, seed=SEED, run=RUN, **how, **STEPS[step]
    )
    reference = Estimator(steps_of(STEPS[step]), estimate, k, **how)
    same_lists(ranker, reference, stream(), depth=k)
    weights_agree(ranker, reference.steps)
    assert reference.n_hits > 10
    if "radius" in STEPS[step]:
        assert np.linalg.norm(reference.steps.weights) < 0.4 + 1e-9


def test_the_ball_is_met():
    """Far from 1, so that the radius over the norm is not the radius over its square."""
    for radius in (0.05, 4.0):
        step: Any = {"step": "fixed", "rate": 5.0, "radius": radius}
        ranker = Descent(N_FEATURES, LONGEST, seed=SEED, run=RUN, **step)
        reference = Greedy(steps_of(step), listnet)
        same_lists(ranker, reference, stream())
        weights_agree(ranker, reference.steps)
        norms = []
        for features, grades in stream()[:20]:
            impression = ranker.rank(Query(len(grades), features))
            ranker.update(impression, Feedback(grades[impression.ranking]))
            norms.append(np.linalg.norm(ranker.state.weights))
        assert max(norms) == pytest.approx(radius, rel=1e-12)


@pytest.mark.parametrize("step", STEPS)
def test_descent(step):
    ranker = Descent(N_FEATURES, LONGEST, seed=SEED, run=RUN, **STEPS[step])
    reference = Greedy(steps_of(STEPS[step]), listnet)
    same_lists(ranker, reference, stream())
    weights_agree(ranker, reference.steps)


@pytest.mark.parametrize("step", ["adagrad", "power", "fixed"])
def test_a_rate_means_the_same_whatever_the_scale_of_the_features(step):
    """Documents ten times as long with ``row_norm`` 10: the same rankings, weights over 10."""
    plain = Descent(N_FEATURES, LONGEST, step=step, rate=0.3)
    scaled = Descent(N_FEATURES, LONGEST, step=step, rate=0.3, row_norm=10.0)
    for features, grades in stream():
        for ranker, scale in ((plain, 1.0), (scaled, 10.0)):
            impression = ranker.rank(Query(len(grades), scale * features))
            ranker.update(impression, Feedback(grades[impression.ranking]))
    np.testing.assert_allclose(10.0 * scaled.state.weights, plain.state.weights, rtol=1e-9)


def test_default_steps():
    """AdaGrad 0.3 for both; contextual RTop-kF: gamma 0.1, kl, lifted; powers 1/2 and 2/3."""
    default, falling = Descent(N_FEATURES, LONGEST), Descent(N_FEATURES, LONGEST, step="power")
    for ranker, step in ((default, "adagrad"), (falling, "power")):
        reference = Greedy(Steps(step, 0.3, 0.5, None), listnet)
        same_lists(ranker, reference, stream())
        weights_agree(ranker, reference.steps)
    plain = ContextualRTopK(N_FEATURES, LONGEST, seed=SEED, run=RUN)
    told = Estimator(Steps("adagrad", 0.3, 0.0, None), kl, 1, 0.1, 0.0, "lifted", 1.0)
    same_lists(plain, told, stream(), depth=1)
    weights_agree(plain, told.steps)
    slower = ContextualRTopK(N_FEATURES, LONGEST, step="power", seed=SEED, run=RUN)
    told = Estimator(Steps("power", 0.3, 2 / 3, None), kl, 1, 0.1, 0.0, "lifted", 1.0)
    same_lists(slower, told, stream(), depth=1)
    weights_agree(slower, told.steps)


def induced(measure):
    """Return whether a list is not perfect: its induced loss (M9) is not 0."""
    cutoff = int(measure[5:]) if "@" in measure else None
    if measure == "AP":
        return lambda grades, ranking: average_precision(grades, ranking) != 1.0
    return lambda grades, ranking: 1 - ndcg(grades, ranking, cutoff) > 1e-12


@pytest.mark.parametrize("measure", ["NDCG@10", "NDCG@2", "NDCG", "AP"])
def test_slam_perceptron(measure):
    """A2: eta = 1 / (4 kappa R^2 v_max), v_max = G_max log2(kappa + 1) for NDCG, 1 for AP."""
    cutoff = {"NDCG@10": LONGEST, "NDCG@2": 2, "NDCG": LONGEST, "AP": LONGEST}[measure]
    v_max = 1.0 if measure == "AP" else 3 * math.log2(cutoff + 1)
    rate = 1 / (4 * cutoff * 1.5**2 * v_max)
    ranker = SLAMPerceptron(N_FEATURES, LONGEST, measure=measure, row_norm=1.5, max_grade=2)
    assert ranker.rate == pytest.approx(rate, rel=1e-12)
    gradient = slam_ap if measure == "AP" else (lambda s, r: slam(s, r, cutoff))
    for eta in (rate, 0.3):
        ranker = ranker.fresh(rate=eta)
        reference = Greedy(Steps("fixed", eta, 0.0, None), gradient, induced(measure))
        same_lists(ranker, reference, stream(2 if measure == "AP" else 3))
        np.testing.assert_allclose(ranker.state.weights, reference.steps.weights, atol=1e-12)
        assert np.linalg.norm(reference.steps.weights) > 0


def test_slam_perceptron_defaults():
    ranker = SLAMPerceptron(N_FEATURES, 20)
    assert ranker.rate == pytest.approx(1 / (4 * 10 * math.log2(11)), rel=1e-12)


@pytest.mark.parametrize("rate", [None, 0.3])
def test_max_violation_perceptron(rate):
    options = {} if rate is None else {"rate": rate}
    ranker = MaxViolationPerceptron(N_FEATURES, LONGEST, **options)
    steps = Steps("fixed", rate or 1.0, 0.0, None)
    reference = Greedy(steps, worst_pair, induced("NDCG@10"))
    same_lists(ranker, reference, stream())
    weights_agree(ranker, steps)


def test_classification_perceptron():
    """A1: w += eta y x where y w.x <= 0, document by document in the order shown."""
    for rate in (1.0, 0.2):
        options: Any = {} if rate == 1 else {"rate": rate}  # 1 is the default
        ranker = ClassificationPerceptron(N_FEATURES, LONGEST, **options)
        weights = np.zeros(N_FEATURES)
        for features, grades in stream():
            impression = ranker.rank(Query(len(grades), features))
            assert impression.ranking.tolist() == descending(features @ weights).tolist()
            ranker.update(impression, Feedback(grades[impression.ranking]))
            for item in impression.ranking:
                sign = 1 if grades[item] > 0 else -1
                if sign * (features[item] @ weights) <= 0:
                    weights = weights + rate * sign * features[item]
        np.testing.assert_allclose(ranker.state.weights, weights, rtol=1e-9)


NORM = 1.5
KERNELS: dict[str, Any] = {
    "rbf": (lambda x, y: math.exp(-4 * ((x - y) ** 2).sum() / NORM**2), {}, 1.0),
    "polynomial": (
        lambda x, y: (1 + 0.5 * x @ y / NORM**2) ** 3, {"gamma": 0.5, "degree": 3}, 1.5**3
    ),
    "linear": (lambda x, y: x @ y / NORM**2, {"gamma": 7.0}, 1.0),
}  # fmt: skip


@pytest.mark.parametrize("kernel", KERNELS)
def test_kernel_slam_perceptron(kernel):
    """A16 with A2's rate, R^2 being the largest K(x, x); a budget forgets the oldest."""
    similarity, options, largest = KERNELS[kernel]
    rate = 1 / (4 * largest * 2 * 3 * math.log2(3))
    for budget in (200, 9):
        ranker = KernelSLAMPerceptron(
            N_FEATURES, LONGEST, similarity=kernel, row_norm=NORM, measure="NDCG@2", max_grade=2,
            budget=budget, **options,
        )  # fmt: skip
        assert ranker.rate == pytest.approx(rate, rel=1e-12)
        reference = Supports(
            similarity, rate, lambda s, r: slam(s, r, 2), induced("NDCG@2"), budget
        )
        same_lists(ranker, reference, stream()[:50])
        assert ranker.state.added[0] == len(reference.support) > 40
        kept = reference.support[-budget:]
        np.testing.assert_allclose(
            np.sort(ranker.state.coefficients[: len(kept)]),
            np.sort([a for _, a in kept]),
            rtol=1e-9,
        )


@pytest.mark.parametrize("kernel", KERNELS)
def test_kernel_max_violation_perceptron(kernel):
    similarity, options, _ = KERNELS[kernel]
    ranker = KernelMaxViolationPerceptron(
        N_FEATURES, LONGEST, similarity=kernel, row_norm=NORM, budget=11, **options
    )
    reference = Supports(similarity, 1.0, worst_pair, induced("NDCG@10"), 11)
    same_lists(ranker, reference, stream()[:60])
    assert ranker.state.added[0] == len(reference.support) > 30


def test_kernel_defaults():
    """A budget of 1,000 or a list, exp(-4 |x - y|^2), (1 + 4 x.y)^2."""
    assert KernelSLAMPerceptron(N_FEATURES, LONGEST).budget == 1000
    assert KernelSLAMPerceptron(N_FEATURES, 1200).budget == 1200
    assert KernelMaxViolationPerceptron(N_FEATURES, LONGEST).budget == 1000
    assert KernelMaxViolationPerceptron(N_FEATURES, LONGEST, budget=2).budget == 2
    rate = KernelSLAMPerceptron(N_FEATURES, LONGEST).rate
    assert rate == pytest.approx(1 / (4 * 7 * math.log2(8)), rel=1e-12)
    kernels: Any = (
        ({}, lambda x, y: math.exp(-4 * ((x - y) ** 2).sum())),
        ({"similarity": "polynomial"}, lambda x, y: (1 + 4 * x @ y) ** 2),
    )
    for options, similarity in kernels:
        for make, gradient in (
            (KernelSLAMPerceptron, lambda s, r: slam(s, r, 10)),
            (KernelMaxViolationPerceptron, worst_pair),
        ):
            ranker = make(N_FEATURES, LONGEST, **options)
            reference = Supports(similarity, ranker.rate, gradient, induced("NDCG@10"), 1000)
            same_lists(ranker, reference, stream()[:30])
            assert len(reference.support) > 10


@pytest.mark.parametrize(
    "make", [cls for cls in RANKERS.values() if issubclass(cls, ContextualRanker)]
)
def test_seed_and_run_are_0_by_default(make):
    ranker = make(N_FEATURES, LONGEST)
    assert (ranker.seed, ranker.run) == (0, 0)
    assert (ranker.n_features, ranker.n_items) == (N_FEATURES, LONGEST)


def test_random_lists():
    ranker = RandomLists(N_FEATURES, LONGEST, seed=SEED, run=RUN)
    for round, (features, grades) in enumerate(stream()[:30]):
        impression = ranker.rank(Query(len(grades), features))
        numbers = units(place_of(round), 1, len(grades))
        assert impression.ranking.tolist() == descending(numbers).tolist()


def test_learning_by_default():
    """Seed 0, NDCG@10, 200 points, all that the ranker needs is shown."""
    features = np.random.default_rng(2).normal(size=(60, N_FEATURES))
    world = Queries(features, (features[:, 0] > 0).astype(float), np.arange(0, 61, 6))
    ranker = ContextualRTopK(N_FEATURES, LONGEST - 1, mix=0.5)
    plain = play(ranker, world, rounds=300)
    told = play(ranker, world, measure="NDCG@10", reveal=Top(1), rounds=300, seed=0, n_points=200)
    np.testing.assert_array_equal(plain.rounds, told.rounds)
    np.testing.assert_array_equal(plain.rounds, checkpoints_of(300, 200))
    np.testing.assert_array_equal(plain.scores, told.scores)
    np.testing.assert_array_equal(plain.greedy, told.greedy)


def test_learn_adds_up_what_was_shown_and_what_greed_would_have_shown():
    lists = stream()
    starts = np.cumsum([0, *(len(grades) for _, grades in lists)])
    world = Queries(
        np.concatenate([features for features, _ in lists]),
        np.concatenate([grades for _, grades in lists]),
        starts,
        shuffle=False,
    )
    ranker = ContextualRTopK(N_FEATURES, LONGEST, mix=0.5, seed=SEED, run=RUN)
    reference = Estimator(Steps("adagrad", 0.3, 0.0, None), kl, 1, 0.5, 0.0, "lifted", 1.0)
    shown, greedy = [], []
    for round, (features, grades) in enumerate(lists):
        ranking, _, _ = reference.rank(features, round)
        shown.append(ndcg(grades, ranking, 10))
        greedy.append(ndcg(grades, descending(reference.scores), 10))
        reference.update(features, ranking, grades, round)
    played: dict[str, Any] = {"seed": SEED, "runs": RUN + 1, "n_points": None}
    learning = play(ranker, world, rounds=ROUNDS, **played)
    np.testing.assert_allclose(learning.scores[RUN], np.cumsum(shown), rtol=1e-12)
    np.testing.assert_allclose(learning.greedy[RUN], np.cumsum(greedy), rtol=1e-12)
    assert learning.scores[RUN, -1] / ROUNDS == pytest.approx(np.mean(shown), rel=1e-12)
    assert learning.greedy[RUN, -1] / ROUNDS == pytest.approx(np.mean(greedy), rel=1e-12)
    np.testing.assert_allclose(learning.states[RUN]["weights"], reference.steps.weights, rtol=1e-9)
    assert learning.rounds.tolist() == list(range(1, ROUNDS + 1))
    start = play(ranker, world, rounds=50, **played)
    rest = play(ranker, world, rounds=ROUNDS - 50, start=start, **played)
    np.testing.assert_array_equal(rest.rounds, learning.rounds)
    np.testing.assert_allclose(rest.scores, learning.scores, rtol=1e-12)
    np.testing.assert_allclose(rest.greedy, learning.greedy, rtol=1e-12)
