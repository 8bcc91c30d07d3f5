"""A7: gradients estimated from the top of a list are unbiased, by enumeration of all rankings."""

import itertools
import math
from typing import Any

import numpy as np
import pytest

from keyhole.base.errors import FeedbackTooSmall, InvalidInput, NotObservable
from keyhole.contracts.lists import Feedback, Query
from keyhole.rankers.lists.top_k import ContextualRTopK
from keyhole.surrogates import SURROGATES, surrogate
from keyhole.surrogates.estimators import top_k, top_one, top_two
from keyhole.surrogates.interactions import interaction_order
from keyhole.surrogates.propensities import ordered_propensity, set_propensity

pytestmark = pytest.mark.interpreted

GAMMA = 0.3
SCORES = np.array([0.4, -0.3, 1.2, 0.1])
RELEVANCE = np.array([2.0, 0.0, 1.0, 2.0])
GREEDY = np.array([2, 0, 3, 1])
OPTIONS: dict[str, Any] = {
    "logistic": {"max_grade": 2},
    "ordinal": {"max_grade": 2},
    "smooth_dcg": {"eps": 0.5},
}
ALL: dict[str, Any] = {name: surrogate(name, **OPTIONS.get(name, {})) for name in SURROGATES}
ORDER_1 = [name for name, loss in ALL.items() if loss.order == 1]
ORDER_2 = [name for name, loss in ALL.items() if loss.order == 2]


def rankings(n_items, greedy=GREEDY, gamma=GAMMA):
    """Yield every ranking and its probability."""
    for order in itertools.permutations(range(n_items)):
        explored = gamma / math.factorial(n_items)
        yield np.array(order), explored + (1 - gamma) * (tuple(greedy) == order)


def expected(estimate, loss, depth, relevance=RELEVANCE, scores=SCORES, **options):
    total = np.zeros(len(relevance))
    for ranking, chance in rankings(len(relevance), options.get("greedy", GREEDY)):
        values = relevance[ranking].copy()
        values[depth:] = np.nan
        total += chance * estimate(loss, scores, ranking, values, gamma=GAMMA, **options)
    return total


def part(loss, item, grade, scores=SCORES):
    out = np.zeros(len(scores))
    loss.parts.part(loss.params(len(scores)), scores, item, grade, out)
    return out


def test_orders():
    assert sorted(ORDER_1) == [
        "hinge", "kl", "logistic", "ordinal", "pairwise_squared", "poisson", "smooth_dcg",
        "squared",
    ]  # fmt: skip
    assert ORDER_2 == ["ranksvm"]


@pytest.mark.parametrize("name", ORDER_1)
@pytest.mark.parametrize("greedy", [GREEDY, np.array([1, 3, 0, 2])])
def test_top_one_is_unbiased(name, greedy):
    loss = ALL[name]
    truth = loss.gradient(SCORES, RELEVANCE)
    np.testing.assert_allclose(expected(top_one, loss, 1, greedy=greedy), truth, atol=1e-12)
    for guess in ([0, 0, 0, 0], [1, 2, 0.5, 0], RELEVANCE):
        mean = expected(top_one, loss, 1, greedy=greedy, guess=guess)
        np.testing.assert_allclose(mean, truth, atol=1e-12)


def test_the_greedy_ranking_is_by_scores():
    loss = ALL["squared"]
    assert (expected(top_one, loss, 1) == expected(top_one, loss, 1, greedy=GREEDY)).all()


@pytest.mark.parametrize("name", ORDER_1)
def test_a_perfect_guess_leaves_no_variance(name):
    loss = ALL[name]
    truth = loss.gradient(SCORES, RELEVANCE)
    for ranking, _ in rankings(4):
        values = RELEVANCE[ranking]
        given = top_one(loss, SCORES, ranking, values, gamma=GAMMA, guess=RELEVANCE)
        np.testing.assert_allclose(given, truth, atol=1e-12)


def test_a_good_guess_cuts_the_second_moment():
    loss = ALL["squared"]

    def moment(**options):
        return sum(
            chance * (top_one(loss, SCORES, r, RELEVANCE[r], gamma=GAMMA, **options) ** 2).sum()
            for r, chance in rankings(4)
        )

    assert moment(guess=RELEVANCE - [0.2, 0, 0.3, 0.4]) < moment() / 3


def test_top_two_is_unbiased_by_sets_and_by_orders():
    loss = ALL["ranksvm"]
    truth = loss.gradient(SCORES, RELEVANCE)
    for greedy in (GREEDY, np.array([1, 3, 0, 2])):
        np.testing.assert_allclose(expected(top_two, loss, 2, greedy=greedy), truth, atol=1e-12)
        total = np.zeros(4)
        for ranking, chance in rankings(4, greedy):
            i, j = ranking[:2]
            term = np.zeros(4)
            loss.pairs.pair(None, SCORES, i, j, RELEVANCE[i], RELEVANCE[j], term)
            total += chance * term / ordered_propensity(greedy, ranking, 2, GAMMA, 1.0)
        np.testing.assert_allclose(total, truth, atol=1e-12)


@pytest.mark.parametrize("k", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("name", sorted(ALL))
def test_top_k_is_unbiased_where_it_can_be(name, k):
    loss = ALL[name]
    needs = 4 if loss.order is None else loss.order
    if needs <= k:
        for relevance in (RELEVANCE, np.array([1.0, 2.0, 0.5, 1.0])):
            mean = expected(top_k, loss, k, relevance=relevance, k=k)
            np.testing.assert_allclose(mean, loss.gradient(SCORES, relevance), atol=1e-12)
    elif loss.order is not None:
        with pytest.raises(NotObservable):
            expected(top_k, loss, k, k=k)


@pytest.mark.parametrize("name", ORDER_1)
def test_top_k_with_one_item_is_top_one(name):
    loss = ALL[name]
    for ranking, _ in rankings(4):
        values = np.where(np.arange(4) < 1, RELEVANCE[ranking], np.nan)
        options: dict[str, Any] = {"gamma": GAMMA, "greedy": GREEDY}
        general = top_k(loss, SCORES, ranking, values, k=1, **options)
        own = top_one(loss, SCORES, ranking, values, guess=np.zeros(4), **options)
        np.testing.assert_allclose(general, own, atol=1e-12)


def outcomes(ranker, query):
    """Return one impression per list that can be shown, and the probability of each."""
    found: dict[Any, Any] = {}
    for t in range(2000):
        impression = ranker.rank(query, round=t)
        found.setdefault((impression.explored, tuple(impression.ranking)), impression)
    m = query.n_items
    n_drawn = min(ranker.depth, m) if ranker.params.lifted else m
    assert len(found) == 1 + math.perm(m, n_drawn)
    chances = {False: 1 - GAMMA, True: GAMMA / math.perm(m, n_drawn)}
    return [(impression, chances[impression.explored]) for impression in found.values()]


def centred(x):
    return x - x.mean()


@pytest.mark.parametrize("exploration", ["uniform", "lifted"])
@pytest.mark.parametrize("k", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("name", ["kl", "squared", "smooth_dcg", "ranksvm"])
def test_rankers_step_along_the_gradient_whatever_they_see(name, k, exploration):
    """Documents are the unit vectors, so weights are scores; the weights change before feedback."""
    loss, later = ALL[name], np.array([-0.2, 0.5, 0.3, 1.1])
    if k < loss.order:
        with pytest.raises(InvalidInput, match=f"`k` of ContextualRTopK .* at least {loss.order}"):
            ContextualRTopK(4, 4, surrogate=loss, k=k)
        return
    for is_centred, less_mean in ((False, np.asarray), (True, centred)):
        ranker = ContextualRTopK(
            4, 4, surrogate=loss, k=k, mix=GAMMA, exploration=exploration, step="fixed", rate=1.0,
            centred=is_centred,
        )  # fmt: skip
        for m in (4, 3, 1):  # R32: a list shorter than k is seen whole
            ranker.state.weights[:] = SCORES
            mean = np.zeros(4)
            for impression, chance in outcomes(ranker, Query(m, np.eye(4)[:m])):
                ranker.state.weights[:] = later
                values = RELEVANCE[impression.ranking].copy()
                values[k:] = np.nan
                ranker.update(impression, Feedback(values))
                mean += chance * (later - ranker.state.weights)
            truth = less_mean(loss.gradient(less_mean(later[:m]), RELEVANCE[:m]))
            np.testing.assert_allclose(mean[:m], truth, atol=1e-12)


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("name", ["kl", "squared", "hinge", "pairwise_squared"])
def test_a_term_divided_by_its_own_probability_varies_less(name, k):
    """Lemma 25 divides by that of the whole top, and greedy tops then weigh next to nothing."""
    loss, own, whole = ALL[name], 0.0, 0.0
    for ranking, chance in rankings(4):
        values = np.where(np.arange(4) < k, RELEVANCE[ranking], np.nan)
        given = top_k(loss, SCORES, ranking, values, k=k, gamma=GAMMA)
        own += chance * (given**2).sum()
        known = loss.gradient(SCORES, np.zeros(4))
        terms = sum(
            part(loss, item, RELEVANCE[item]) - part(loss, item, 0.0) for item in ranking[:k]
        )
        share = math.comb(3, k - 1) * set_propensity(GREEDY, ranking, k, GAMMA, 1.0)
        whole += chance * ((known + terms / share) ** 2).sum()
    assert own < whole


def test_listnet_can_be_estimated_from_all_but_one_only_on_two_grades():
    """R19: interaction order m - 1 on binary labels, m with three grades."""
    loss = ALL["listnet"]

    def bias(k, relevance):
        mean = expected(top_k, loss, k, relevance=np.array(relevance), k=k)
        return np.abs(mean - loss.gradient(SCORES, relevance)).max()

    for binary in itertools.product([0.0, 1.0], repeat=4):
        assert bias(3, binary) < 1e-12
    assert bias(2, (1.0, 1.0, 1.0, 0.0)) > 1e-3
    assert bias(3, (2.0, 1.0, 1.0, 2.0)) > 1e-3


def test_interaction_orders():
    generic = np.array([0.9, -0.7, 0.2, 1.6, -0.1])
    for m in (2, 3, 4, 5):
        assert interaction_order(ALL["listnet"], generic[:m]) == m - 1
        assert interaction_order(ALL["ndcg_squared"], generic[:m], grades=[0, 1, 2]) == m
    for m in (2, 3, 4):
        assert interaction_order(ALL["listnet"], generic[:m], grades=[0, 1, 2]) == m
    # X5 and its caveat: one item at a time is enough where all scores are within 1.
    assert interaction_order(ALL["ranksvm"], [1.0, 0.0, 0.0]) == 2
    assert interaction_order(ALL["ranksvm"], [0.9, 0.0, 0.4]) == 1
    assert interaction_order(ALL["ranksvm"], [0.9, 0.0, 0.4], grades=[0, 1, 2]) == 2
    for name in ("slam", "max_violation"):
        assert interaction_order(ALL[name], generic[:4], grades=[0, 1, 2]) > 2
    for name in ORDER_1:
        assert interaction_order(ALL[name], generic[:4], grades=[0, 1, 2]) == 1


@pytest.mark.parametrize("name", ORDER_1)
def test_mismatch_scale_loses_a_share_of_the_off_top_part(name):
    """R21: the bias is -(1 - 1/c) times the terms of the items that are not greedy."""
    loss, scale = ALL[name], 4.0
    off_top = sum(part(loss, i, RELEVANCE[i]) for i in range(4) if i != GREEDY[0])
    bias = expected(top_one, loss, 1, mismatch_scale=scale) - loss.gradient(SCORES, RELEVANCE)
    np.testing.assert_allclose(bias, -(1 - 1 / scale) * off_top, atol=1e-12)


def test_mismatch_scale_of_pairs():
    loss, scale = ALL["ranksvm"], 2.5
    off_top = np.zeros(4)
    for i, j in itertools.permutations(range(4), 2):
        if {i, j} != set(GREEDY[:2]):
            loss.pairs.pair(None, SCORES, i, j, RELEVANCE[i], RELEVANCE[j], off_top)
    bias = expected(top_two, loss, 2, mismatch_scale=scale) - loss.gradient(SCORES, RELEVANCE)
    np.testing.assert_allclose(bias, -(1 - 1 / scale) * off_top, atol=1e-12)


@pytest.mark.parametrize("m", [1, 2, 3, 5])
@pytest.mark.parametrize("k", [1, 2, 3, 7])
def test_propensities_are_probabilities_of_what_is_on_top(m, k):
    greedy = np.arange(m)[::-1].copy()
    depth = min(k, m)
    by_order: dict[Any, float] = {}
    by_set: dict[Any, float] = {}
    for ranking, chance in rankings(m, greedy):
        top = tuple(ranking[:depth].tolist())
        by_order[top] = by_order.get(top, 0.0) + chance
        by_set[frozenset(top)] = by_set.get(frozenset(top), 0.0) + chance
    for ranking, _ in rankings(m, greedy):
        top = tuple(ranking[:depth].tolist())
        given = ordered_propensity(greedy, ranking, k, GAMMA, 1.0)
        assert given == pytest.approx(by_order[top], rel=1e-12)
        given = set_propensity(greedy, ranking, k, GAMMA, 1.0)
        assert given == pytest.approx(by_set[frozenset(top)], rel=1e-12)
    if m == 1:
        assert set(by_set.values()) == {1.0}
    if k == 2 and m > 2:  # R39
        assert min(by_order.values()) == pytest.approx(GAMMA / (m * (m - 1)))


@pytest.mark.parametrize("name", ["squared", "ranksvm", "kl"])
def test_second_moments_are_bounded(name):
    """B8: E|z|^2 <= C / gamma for models z of bounded features and weights."""
    loss, estimate = ALL[name], top_two if name == "ranksvm" else top_one
    rng, m, largest, reach = np.random.default_rng(3), 4, 2.0, 1.5
    for _ in range(20):
        features, w = rng.normal(size=(m, 3)), rng.normal(size=3)
        w *= reach / np.linalg.norm(w)
        norm = np.linalg.norm(features, axis=1).max()
        constant = {
            "squared": 4 * m**2 * norm**2 * (norm * reach + largest) ** 2,
            "ranksvm": norm**2 * m**2 * (m - 1) ** 2,
            "kl": m**2 * norm**2 * math.exp(max(norm * reach, largest)) ** 2,
        }[name]
        scores, relevance = features @ w, rng.integers(0, 3, m).astype(float)
        greedy = np.argsort(-scores, kind="stable")
        moment = 0.0
        for ranking, chance in rankings(m, greedy):
            given = estimate(loss, scores, ranking, relevance[ranking], gamma=GAMMA)
            moment += chance * ((features.T @ given) ** 2).sum()
        assert moment <= constant / GAMMA


def test_short_lists():
    one: dict[str, Any] = {"scores": [0.5], "ranking": [0], "values": [1.0], "gamma": GAMMA}
    assert top_two(ALL["ranksvm"], **one).tolist() == [0.0]
    assert top_k(ALL["ranksvm"], **one, k=2).tolist() == [0.0]
    assert top_one(ALL["squared"], **one).tolist() == [-1.0]


def test_what_cannot_be_estimated_is_refused():
    shown: dict[str, Any] = {"scores": SCORES, "ranking": GREEDY, "values": RELEVANCE[GREEDY]}
    for name in ("listnet", "slam", "max_violation", "ndcg_squared", "ranksvm"):
        with pytest.raises(NotObservable, match="terms of 1 item, but"):
            top_one(ALL[name], **shown, gamma=GAMMA)
    with pytest.raises(NotObservable, match="terms of 2 items, but"):
        top_two(ALL["listnet"], **shown, gamma=GAMMA)
    with pytest.raises(FeedbackTooSmall):
        top_two(ALL["ranksvm"], SCORES, GREEDY, [1.0, np.nan, np.nan, np.nan], gamma=GAMMA)
    with pytest.raises(InvalidInput, match="`gamma`"):
        top_one(ALL["squared"], **shown, gamma=0.0)
    with pytest.raises(InvalidInput, match="one entry per position"):
        top_one(ALL["squared"], SCORES, GREEDY, [1.0], gamma=GAMMA)
    with pytest.raises(InvalidInput, match="at most 2 for ordinal"):
        top_one(ALL["ordinal"], SCORES, GREEDY, [3.0, 0, 0, 0], gamma=GAMMA)
