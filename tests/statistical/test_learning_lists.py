"""Rankers of query-document lists learn: A6 with B8, the baselines A13, and E4 and E5 in small.

Every claim is run on rankers that do not learn too, and must fail for them.
"""

# ruff: noqa: T201 (tests print the bounds they hold results against)

import math

import numpy as np
import pytest

from keyhole import Top
from keyhole.bounds import gradients
from keyhole.bounds.gradients import ListSize
from keyhole.checks.non_learners import check_only_learners_pass, non_learners
from keyhole.contracts.lists import Query
from keyhole.game.play import play
from keyhole.rankers.lists.gradient import Descent
from keyhole.rankers.lists.perceptron import MaxViolationPerceptron, SLAMPerceptron
from keyhole.rankers.lists.plain import RandomLists
from keyhole.rankers.lists.top_k import ContextualRTopK
from keyhole.surrogates import surrogate
from keyhole.surrogates.estimators import top_one
from keyhole.worlds.generated import Graded

# ------------------------------------------------------------------ B8

FLIP = 0.1


def two_kinds(rounds: int):
    """Return lists of a relevant and an irrelevant document, each judged wrongly now and then."""
    rng = np.random.default_rng(8)
    first = rng.integers(0, 2, rounds)  # which of the two kinds comes first
    kinds = np.stack([first, 1 - first], axis=1)
    flipped = rng.random((rounds, 2)) < FLIP
    return np.eye(2)[kinds.ravel()], np.where(flipped, kinds, 1 - kinds).astype(float)


def weights_of(ranker, features, relevance, reveal):
    """Return the weights before each round, one row each."""
    ranker, found = ranker.fresh(), []
    for t, row in enumerate(relevance):
        impression = ranker.rank(Query(2, features[2 * t : 2 * t + 2]), round=t)
        found.append(ranker.state.weights.copy())
        ranker.update(impression, reveal(row, impression.ranking, round=t))
    return np.array(found)


def losses_of(kind: str, scores, relevance):
    """Return the surrogate loss of each list of two."""
    if kind == "squared":
        return ((scores - relevance) ** 2).sum(axis=-1)
    if kind == "kl":
        grown = np.exp(relevance)
        return (grown * (relevance - scores - 1.0) + np.exp(scores)).sum(axis=-1)
    sign = relevance[..., 0] - relevance[..., 1]
    hinge = np.maximum(0.0, 1.0 - sign * (scores[..., 0] - scores[..., 1]))
    return np.abs(sign) * hinge


def exploring_loss(kind: str, relevance):
    """Return the mean loss of each list under scores that are uniform in [0, 1]."""
    grid = (np.arange(40) + 0.5) / 40
    pairs = np.stack(np.meshgrid(grid, grid), axis=-1).reshape(-1, 2)
    tables = {
        row: losses_of(kind, pairs, np.tile(row, (len(pairs), 1))).mean()
        for row in [(0.0, 0.0), (0.0, 1.0), (1.0, 0.0), (1.0, 1.0)]
    }
    return np.array([tables[tuple(row)] for row in relevance.tolist()])


def least_loss(kind: str, by_document, relevance, radius: float) -> float:
    """Return the total of the best weights in the ball, on a fine grid of it."""
    angles = np.linspace(0.0, 2.0 * math.pi, 181)
    ball = [r * np.array([math.cos(a), math.sin(a)]) for r in np.linspace(0, radius, 41)
            for a in angles]  # fmt: skip
    patterns, counts = np.unique(
        np.concatenate([by_document.reshape(-1, 4), relevance], axis=1), axis=0, return_counts=True
    )
    rows, judged = patterns[:, :4].reshape(-1, 2, 2), patterns[:, 4:]
    return min(float(counts @ losses_of(kind, rows @ w, judged)) for w in ball)


@pytest.mark.parametrize(("kind", "rounds"), [("squared", 12_000), ("kl", 6000), ("ranksvm", 4000)])
def test_b8_regret_in_the_surrogate_is_below_its_bound(kind, rounds):
    """gamma B T + U^2 / (2 eta) + eta C T / (2 gamma) at the best settings, and C as corrected.

    Lists of two documents, and enough of them, keep it below what weights of 0 lose.
    """
    size = ListSize(n_items=2, row_norm=1.0, radius=1.0, max_grade=1.0)
    constant, worst = gradients.estimate_constant(kind, size), gradients.worst_loss(kind, size)
    settings = gradients.best_settings(constant, worst, size.radius, rounds)
    features, relevance = two_kinds(rounds)
    by_document = features.reshape(-1, 2, 2)
    least = least_loss(kind, by_document, relevance, size.radius)
    exploring = exploring_loss(kind, relevance)
    ranker = ContextualRTopK(
        2, 2, surrogate=kind, mix=settings.mix, mix_power=0.0, step="fixed", rate=settings.rate,
        radius=size.radius, exploration="uniform", centred=False,
    )  # fmt: skip

    def keeps(ranker):
        weights = weights_of(ranker, features, relevance, Top(ranker.depth))
        assert np.linalg.norm(weights, axis=1).max() <= size.radius * (1.0 + 1e-9)
        scores = np.einsum("tid,td->ti", by_document, weights)
        greedy = losses_of(kind, scores, relevance)
        regret = ((1.0 - settings.mix) * greedy + settings.mix * exploring).sum() - least
        print(f"{kind}: regret {regret:.0f}, bound {settings.bound:.0f}")
        assert regret <= settings.bound

    others = non_learners(ranker)  # the lists that they show make no difference to their weights
    check_only_learners_pass(keeps, ranker, {name: others[name] for name in ("idle", "contrary")})


def test_b8_steps_are_estimates_of_the_size_that_is_claimed():
    """Each step is that of Lemma 25's estimate; their mean square is at most C / gamma."""
    rounds, rate, gamma = 400, 0.01, 0.2
    features, relevance = two_kinds(rounds)
    phi, size = surrogate("squared"), ListSize(2, 1.0, 0.3, 1.0)  # a ball that weights run into
    ranker = ContextualRTopK(2, 2, surrogate="squared", mix=gamma, mix_power=0.0, step="fixed",
                             rate=rate, radius=size.radius, exploration="uniform",
                             centred=False)  # fmt: skip
    squares, explored = [], 0
    for t, row in enumerate(relevance):
        rows = features[2 * t : 2 * t + 2]
        before = ranker.state.weights.copy()
        scores = rows @ before
        impression = ranker.rank(Query(2, rows), round=t)
        feedback = Top(1)(row, impression.ranking)
        greedy = np.argsort(-scores, kind="stable")
        ranker.update(impression, feedback)
        expected = rows.T @ top_one(phi, scores, impression.ranking, feedback.values, gamma=gamma,
                                    greedy=greedy)  # fmt: skip
        moved = before - rate * expected
        moved *= min(1.0, size.radius / max(float(np.linalg.norm(moved)), 1e-12))
        assert ranker.state.weights == pytest.approx(moved, rel=1e-9, abs=1e-12)
        explored += impression.explored
        mean = 0.0
        for top in (0, 1):
            chance = gamma / 2 + (1.0 - gamma) * (greedy[0] == top)
            order, seen = [top, 1 - top], np.array([row[top], np.nan])
            slope = rows.T @ top_one(phi, scores, order, seen, gamma=gamma, greedy=greedy)
            mean += chance * float(slope @ slope)
        squares.append(mean)
    assert np.linalg.norm(ranker.state.weights) == pytest.approx(size.radius)
    bound = gradients.estimate_constant("squared", size) / gamma
    print(f"mean square at most {max(squares):.1f}, bound {bound:.1f}")
    assert 0.02 * bound < max(squares) <= bound
    # Hoeffding: P(|mean - gamma| > e) <= 2 exp(-2 n e^2) = 1e-6.
    assert abs(explored / rounds - gamma) <= math.sqrt(math.log(2e6) / (2 * rounds))


# ------------------------------------------------------------------ A13, E4, E5

ROUNDS, RUNS = 4000, 4
WORLD = Graded.like("yandex")


def scores_of(ranker):
    """Return the mean NDCG@10 of the lists shown after a quarter of the game, by run."""
    learnt = play(ranker, WORLD, rounds=ROUNDS, runs=RUNS, n_points=8)
    begin = int(np.searchsorted(learnt.rounds, ROUNDS // 4))
    late = learnt.scores[:, -1] - learnt.scores[:, begin]
    return late / (learnt.rounds[-1] - learnt.rounds[begin])


@pytest.fixture(scope="module")
def chance_and_listnet():
    d, m = WORLD.n_features, WORLD.n_items
    chance, listnet = scores_of(RandomLists(d, m)), scores_of(Descent(d, m))
    assert (listnet - chance).min() > 0.2  # else shares of it would mean nothing
    return chance, listnet


def share_of_lead(ranker, chance, listnet) -> float:
    """Return how much of ListNet's lead over random lists a ranker has, less its errors."""
    lead = scores_of(ranker) - chance
    low = lead.mean() - 4.0 * lead.std(ddof=1) / math.sqrt(RUNS)
    return float(low / (listnet - chance).mean())


LEARNERS = {
    "ListNet, 0.01 / sqrt(t)": (lambda d, m: Descent(d, m, rate=0.01), 0.95, True),
    "KL, top 1": (lambda d, m: ContextualRTopK(d, m, surrogate="kl"), 0.7, True),
    "squared, top 1": (lambda d, m: ContextualRTopK(d, m, surrogate="squared"), 0.7, False),
    "RankSVM, top 2": (lambda d, m: ContextualRTopK(d, m, surrogate="ranksvm"), 0.7, False),
    "A2": (lambda d, m: SLAMPerceptron(d, m, rate=0.1), 0.95, False),
    "A3": (MaxViolationPerceptron, 0.7, False),
}


@pytest.mark.parametrize("row", LEARNERS)
def test_learners_are_far_ahead_of_random_lists(row, chance_and_listnet):
    """A13, E4, E5: of ListNet's lead, all of it where every grade is seen, most of it elsewhere."""
    make, at_least, others_too = LEARNERS[row]

    def learns(ranker):
        share = share_of_lead(ranker, *chance_and_listnet)
        print(f"{row}: {share:.3f} of ListNet's lead, at least {at_least}")
        assert share >= at_least

    ranker = make(WORLD.n_features, WORLD.n_items)
    others = non_learners(ranker, max_grade=WORLD.max_grade) if others_too else {}
    check_only_learners_pass(learns, ranker, others)


@pytest.mark.parametrize(
    ("ahead", "behind"),
    [("ListNet, 0.01 / sqrt(t)", row) for row in LEARNERS if "top" in row] + [("A2", "A3")],
)
def test_who_is_ahead_on_generated_lists(ahead, behind):
    """E5: ListNet sees all and leads; E4: A3 is poor. The errors are those of paired runs.

    The thesis's order among those who see the top is not that of 4,000 generated lists.
    """
    d, m = WORLD.n_features, WORLD.n_items
    lead = scores_of(LEARNERS[ahead][0](d, m)) - scores_of(LEARNERS[behind][0](d, m))
    error = lead.std(ddof=1) / math.sqrt(RUNS)
    print(f"{ahead} before {behind}: by {lead.mean():.4f}, more than {4 * error:.4f}")
    assert lead.mean() > 4.0 * error
