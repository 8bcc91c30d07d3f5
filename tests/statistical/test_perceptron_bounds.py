"""B1 to B5 on random, separable and adversarial streams of lists.

The bounds are loose: most hold for a perceptron that never updates. So every round's step is
checked on every stream, and where there is something to learn, what does not learn must fail.
"""

# ruff: noqa: T201 (tests print the bounds they hold results against)

import math

import numpy as np
import pytest

from bench.theory.adversary import defeat
from keyhole.base.errors import InvalidInput
from keyhole.bounds import perceptrons
from keyhole.checks.non_learners import check_only_learners_pass, non_learners
from keyhole.contracts.lists import Feedback, Query
from keyhole.game.play import play
from keyhole.measures import measure
from keyhole.rankers.lists.base import ContextualRanker
from keyhole.rankers.lists.gradient import Descent
from keyhole.rankers.lists.perceptron import (
    ClassificationPerceptron,
    MaxViolationPerceptron,
    SLAMPerceptron,
)
from keyhole.surrogates import surrogate
from keyhole.surrogates.slam import SLAM
from keyhole.worlds.generated import Graded, Separable

MEASURES = ["NDCG", "NDCG@3", "AP"]
SEPARABLE = Separable(8, n_features=6, n_grades=3, spread=0.3)
STREAMS = ["random", "noisy", "separable", "opposing"]


def _norm(vector):
    return float(np.linalg.norm(vector))


def _random(rounds, *, n_items=8, n_features=6, max_grade=2):
    lists = np.random.default_rng(7)
    for _ in range(rounds):
        yield (
            lists.normal(size=(n_items, n_features)),
            lists.integers(0, max_grade + 1, size=n_items).astype(float),
        )


def _of_world(world, rounds):
    for t in range(rounds):
        yield world.query(t).features, world.relevance(t)


def _lists(kind, rounds):
    """Return the lists of a stream; relevance is None where it opposes what is shown."""
    if kind == "random":
        return list(_random(rounds))
    if kind == "noisy":
        return list(_of_world(Graded(8, n_features=6, max_grade=2, informative=1.0), rounds))
    if kind == "separable":
        return list(_of_world(SEPARABLE, rounds))
    return [(features, None) for features, _ in _random(rounds)]


def _weights_of(ranker):
    """Return a copy of a ranker's weights, 0 where it has none as it learns nothing."""
    return np.array(getattr(ranker.state, "weights", np.zeros(ranker.n_features)))


class Played:
    """A stream as one ranker met it, each list with the weights it was ranked by."""

    def __init__(self, ranker, lists):
        ranker = ranker.fresh()
        self.rounds = []
        for t, (features, relevance) in enumerate(lists):
            impression = ranker.rank(Query(len(features), features), round=t)
            if relevance is None:  # the worst two-grade answer to this ranking
                relevance = np.zeros(len(features))
                relevance[impression.ranking[len(features) // 2 :]] = 2.0
            weights = _weights_of(ranker)
            ranker.update(impression, Feedback(relevance[impression.ranking]))
            self.rounds.append((features, relevance, impression.ranking, weights))
        self.weights = _weights_of(ranker)
        self.row_norm = max(np.linalg.norm(features, axis=1).max() for features, *_ in self.rounds)

    def losses(self, judge):
        return np.array([1.0 - judge(r, ranking) for _, r, ranking, _ in self.rounds])


def _comparators(kind, played):
    """Return weights to compare with: a separator where there is one, and what was learnt."""
    if kind == "separable":
        yield SEPARABLE.separator / SEPARABLE.margin
    for weights in (played.weights, np.eye(len(played.weights))[0]):
        norm = _norm(weights)
        for scale in (0.0, 0.1, 1.0, 10.0):
            yield scale * weights / max(norm, 1e-12)


def _check_steps(played, phi, judge, rate):
    """Check that weights start at 0 and go down the gradient after every mistake, and only then."""
    expected = np.zeros(len(played.weights))
    for features, relevance, ranking, weights in played.rounds:
        assert weights == pytest.approx(expected, rel=1e-9, abs=1e-9 * rate)
        if judge(relevance, ranking) < 1.0 - 1e-12:
            expected = weights - rate * features.T @ phi.gradient(features @ weights, relevance)
    assert played.weights == pytest.approx(expected, rel=1e-9, abs=1e-9 * rate)


def _check(played, phi, judge, kind, constant, rate):
    """Check B4 at every mistake, then that no comparator's bound is exceeded."""
    _check_steps(played, phi, judge, rate)
    losses = played.losses(judge)
    mistakes = [played.rounds[t] for t in np.flatnonzero(losses > 1e-12)]
    total = 0.0
    for features, relevance, _, weights in mistakes:
        scores = features @ weights
        value = phi.value(scores, relevance)
        slope = features.T @ phi.gradient(scores, relevance)
        assert perceptrons.bounds_itself(_norm(slope), value, constant)
        total += value
    assert losses.sum() <= total + 1e-9
    for weights in _comparators(kind, played):
        theirs = sum(phi.value(x @ weights, r) for x, r, *_ in mistakes)
        bound = perceptrons.mistake_bound(theirs, _norm(weights), constant, rate)
        assert losses.sum() <= total <= bound * (1.0 + 1e-9)
    return len(mistakes), total


@pytest.mark.parametrize("kind", STREAMS)
@pytest.mark.parametrize("name", MEASURES)
def test_slam_perceptron(name, kind):
    lists = _lists(kind, 300)
    widest = max(np.linalg.norm(features, axis=1).max() for features, _ in lists)
    constant = perceptrons.slam_constant(name, 8, row_norm=widest, max_grade=2)
    phi, judge = surrogate("slam", measure=name), measure(name)
    safe = SLAMPerceptron(6, 8, measure=name, row_norm=widest, max_grade=2)
    assert safe.rate == pytest.approx(1.0 / constant)
    _check(Played(safe, lists), phi, judge, kind, constant, safe.rate)
    quick = SLAMPerceptron(6, 8, measure=name, rate=1.9 / constant)
    _check(Played(quick, lists), phi, judge, kind, constant, quick.rate)


@pytest.mark.parametrize("kind", STREAMS)
@pytest.mark.parametrize("name", MEASURES)
def test_max_violation_perceptron(name, kind):
    # Its rankings do not depend on the rate, so the bound is that of the best one. The losses of
    # B3 are at least 1 per mistake and belong to one rate: count mistakes.
    ranker = MaxViolationPerceptron(6, 8, measure=name)
    played = Played(ranker, _lists(kind, 300))
    constant = perceptrons.max_violation_constant(played.row_norm)
    phi, judge = surrogate("max_violation"), measure(name)
    _check_steps(played, phi, judge, ranker.rate)
    losses = played.losses(judge)
    mistakes = [played.rounds[t] for t in np.flatnonzero(losses > 1e-12)]
    for features, relevance, _, weights in mistakes:
        scores = features @ weights
        slope = _norm(features.T @ phi.gradient(scores, relevance))
        assert phi.value(scores, relevance) >= 1.0
        assert perceptrons.bounds_itself(slope, phi.value(scores, relevance), constant)
    assert losses.sum() <= len(mistakes)
    for weights in _comparators(kind, played):
        theirs = sum(phi.value(x @ weights, r) for x, r, *_ in mistakes)
        bound = perceptrons.mistake_bound(theirs, _norm(weights), constant)
        assert len(mistakes) <= bound * (1.0 + 1e-9)
    if kind == "separable":
        assert len(mistakes) <= perceptrons.separable_bound(SEPARABLE.margin, constant)


@pytest.mark.parametrize("kind", STREAMS)
def test_classification_perceptron(kind):
    lists = [(x, None if r is None else (r > 1.0).astype(float)) for x, r in _lists(kind, 200)]
    if kind == "separable":  # the origin half way between grades 1 and 2
        lists = [(x - 1.75 * SEPARABLE.separator, r) for x, r in lists]
    played = Played(ClassificationPerceptron(6, 8), lists)
    documents, expected = [], np.zeros(6)
    for features, relevance, ranking, weights in played.rounds:
        assert weights == pytest.approx(expected, rel=1e-9, abs=1e-9)
        for item in ranking:
            sign = 1.0 if relevance[item] > 0 else -1.0
            if sign * (features[item] @ expected) <= 0.0:
                documents.append(sign * features[item])
                expected = expected + sign * features[item]
    signed = np.array(documents)
    constant = perceptrons.classification_constant(played.row_norm)
    for weights in _comparators("random", played):
        theirs = np.maximum(0.0, 1.0 - signed @ weights).sum()
        bound = perceptrons.mistake_bound(theirs, _norm(weights), constant)
        assert len(signed) <= bound
    if kind == "separable":
        along = [(x @ SEPARABLE.separator, r) for x, r, *_ in played.rounds]
        margin = min(float(np.where(r > 0, a, -a).min()) for a, r in along)
        assert margin >= 0.25 - 1e-9
        assert len(signed) <= perceptrons.separable_bound(margin, constant)


def _random_loss(lists, judge):
    """Return the mean loss of random orders of the lists."""
    orders = np.random.default_rng(1)
    return np.mean([1.0 - judge(r, orders.permutation(len(r))) for _, r in lists for _ in range(9)])


PERCEPTRONS = {"A2": SLAMPerceptron, "A3": MaxViolationPerceptron}


@pytest.mark.parametrize(("kind", "at_most"), [("separable", 0.1), ("noisy", 0.75)])
@pytest.mark.parametrize("row", PERCEPTRONS)
def test_perceptrons_lose_far_less_than_random_lists_once_they_have_learnt(row, kind, at_most):
    """After 100 of 300 lists: nearly nothing where lists are separable, part of it elsewhere."""
    for name in MEASURES:
        lists, judge = _lists(kind, 300), measure(name)
        chance = _random_loss(lists[100:], judge)

        def learns(ranker, lists=lists, judge=judge, chance=chance):
            share = Played(ranker, lists).losses(judge)[100:].mean() / chance
            print(f"{row} on {kind} lists: {share:.3f} of chance, at most {at_most}")
            assert share <= at_most

        ranker = PERCEPTRONS[row](6, 8, measure=name)
        others = non_learners(ranker, max_grade=2.0) if name == "NDCG" else {}
        check_only_learners_pass(learns, ranker, others)


@pytest.mark.parametrize("row", PERCEPTRONS)
def test_b2_and_b3_in_the_end_fail_for_what_does_not_learn(row):
    """The separator has no loss, so the bound does not grow with the rounds.

    For A2 at the fixed rate 1/C it is (F + |w|^2 / (2 eta)) / (1 - eta C / 2) = C / gamma^2. Lists
    of three documents keep it below what chance loses.
    """
    world, rounds = Separable(3, n_features=3, n_grades=2, spread=0.1), 1500
    lists, judge = list(_of_world(world, rounds)), measure("NDCG")
    row_norm = max(np.linalg.norm(features, axis=1).max() for features, _ in lists)
    if row == "A2":
        constant = perceptrons.slam_constant("NDCG", 3, row_norm=row_norm, max_grade=1)
        ranker: ContextualRanker = SLAMPerceptron(3, 3, measure="NDCG", rate=1.0 / constant)
        bound = perceptrons.mistake_bound(0.0, 1.0 / world.margin, constant, 1.0 / constant)
    else:
        constant = perceptrons.max_violation_constant(row_norm)
        ranker = MaxViolationPerceptron(3, 3, measure="NDCG")
        bound = perceptrons.mistake_bound(0.0, 1.0 / world.margin, constant)
    assert bound == pytest.approx(perceptrons.separable_bound(world.margin, constant))

    def keeps(ranker):
        loss = Played(ranker, lists).losses(judge).sum()
        print(f"{row}: loss {loss:.1f}, bound {bound:.1f}")
        assert loss <= bound

    check_only_learners_pass(keeps, ranker, non_learners(ranker))


def test_rankings_of_max_violation_do_not_depend_on_the_rate():
    for kind in STREAMS:
        lists = _lists(kind, 200)
        shown = [
            np.array(
                [r for *_, r, _ in Played(MaxViolationPerceptron(6, 8, rate=rate), lists).rounds]
            )
            for rate in (0.1, 1.0, 10.0)
        ]
        assert np.array_equal(shown[0], shown[1])
        assert np.array_equal(shown[0], shown[2])


def test_rankings_of_slam_depend_on_the_rate():
    lists = _lists("random", 200)
    shown = [
        np.array([r for *_, r, _ in Played(SLAMPerceptron(6, 8, rate=rate), lists).rounds])
        for rate in (0.1, 1.0, 10.0)
    ]
    assert not np.array_equal(shown[0], shown[1])
    assert not np.array_equal(shown[1], shown[2])


def _mistakes(ranker, world, rounds):
    learnt = play(ranker, world, measure="NDCGLoss@10", rounds=rounds, n_points=None)
    losses = learnt.scores[0]
    return np.flatnonzero(np.diff(losses, prepend=0.0) > 1e-12), losses[-1]


def test_perceptrons_stop_making_mistakes_on_separable_lists():
    # E3. The specification's own generator gave 47 to 74 mistakes; its means, its horizon and
    # its seeds are not known.
    world, rounds = Separable(), 80_000
    row_norm = world.largest_norm(rounds // 4)
    a3 = perceptrons.max_violation_constant(row_norm)
    a2 = perceptrons.slam_constant("NDCG@10", 20, row_norm=row_norm, max_grade=4)
    for ranker, constant in (
        *((SLAMPerceptron(20, 20, rate=rate), a2) for rate in (0.1, 1.0, 10.0)),
        (MaxViolationPerceptron(20, 20), a3),
    ):
        rounds_of, loss = _mistakes(ranker, world, rounds)
        assert 30 <= len(rounds_of) <= 120
        assert len(rounds_of) <= perceptrons.separable_bound(world.margin, constant)
        assert np.count_nonzero(rounds_of >= rounds // 2) <= 1
        assert loss < 5.0
    slow, loss = _mistakes(Descent(20, 20, step="power", rate=0.01), world, rounds // 4)
    assert len(slow) > 1_000
    assert loss > 15.0


RANKERS = {
    "A2": lambda d, name: SLAMPerceptron(d, 2, measure=name),
    "A2 quick": lambda d, name: SLAMPerceptron(d, 2, measure=name, rate=1.0),
    "A3": lambda d, name: MaxViolationPerceptron(d, 2, measure=name),
    "A1": lambda d, _: ClassificationPerceptron(d, 2),
    "ListNet": lambda d, _: Descent(d, 2),
}


@pytest.mark.parametrize("row", RANKERS)
@pytest.mark.parametrize(("name", "each"), [("NDCG", 1 - 1 / math.log2(3)), ("AP", 0.5)])
def test_no_deterministic_ranker_withstands_the_adversary(row, name, each):
    row_norm, margin = 2.0, 0.25
    rounds = 64
    ranker = RANKERS[row](4 * rounds, name)
    outcome = defeat(ranker, row_norm=row_norm, margin=margin, measure=name)
    assert len(outcome.losses) == rounds == perceptrons.defeated_rounds(row_norm, margin)
    assert outcome.losses.min() == pytest.approx(each)
    assert (
        outcome.loss >= perceptrons.unavoidable_loss(name, row_norm=row_norm, margin=margin) - 1e-9
    )
    assert outcome.margin >= margin
    longer = defeat(ranker, 4 * rounds, row_norm=row_norm, margin=margin, measure=name)
    assert longer.loss == pytest.approx(4 * rounds * each)
    assert longer.margin == pytest.approx(margin)  # R35: the margin is still there
    assert np.linalg.norm(longer.separator) == pytest.approx(1.0)
    constant = perceptrons.max_violation_constant(row_norm)
    assert 4 * rounds == perceptrons.separable_bound(margin, constant)  # A3 cannot err more often


def test_the_adversary_names_its_limits():
    with pytest.raises(InvalidInput, match="at most 4,"):
        defeat(MaxViolationPerceptron(4, 2), 5)
    with pytest.raises(InvalidInput, match="at most 16,"):
        defeat(MaxViolationPerceptron(99, 2), 17, margin=0.5)
    assert len(defeat(MaxViolationPerceptron(4, 2)).losses) == 4


def test_weights_and_losses_of_the_theorems():
    assert perceptrons.largest_weight("NDCG@3", 2) == pytest.approx(math.log2(3))
    assert perceptrons.least_loss("NDCG@1") == 1.0
    for name, n_items, grade in [("NDCG", 7, 3), ("NDCG@4", 9, 2), ("AP", 6, 1)]:
        scale = SLAM(name).mistake_scale(n_items, max_grade=grade)
        constant = perceptrons.slam_constant(name, n_items, row_norm=1.0, max_grade=grade)
        assert constant == pytest.approx(4.0 * scale)
    for loss in (0.0, 3.0, 50.0):  # the stated form is no less than the best rate's
        stated = perceptrons.mistake_bound(loss, 2.0, 5.0)
        rates = np.linspace(1e-3, 0.399, 4000)
        best = min(perceptrons.mistake_bound(loss, 2.0, 5.0, rate) for rate in rates)
        assert best <= stated * (1.0 + 1e-4)
    assert perceptrons.mistake_bound(1.0, 1.0, 5.0, rate=0.4) == math.inf
    with pytest.raises(InvalidInput, match="NDCG, NDCG@n or AP"):
        perceptrons.least_loss("DCG")
