"""Values of rankings from logs: exact by enumeration of all rankings."""

import itertools
import math

import numpy as np
import pytest

from keyhole.base.errors import InvalidInput
from keyhole.contracts.lists import Feedback, Query
from keyhole.game.log import Log
from keyhole.measures import measure
from keyhole.offline.rankings import item_position, top_set
from keyhole.rankers.lists.top_k import ContextualRTopK
from keyhole.surrogates.propensities import set_propensity

M, K, GAMMA = 4, 2, 0.4
GREEDY = np.array([2, 0, 3, 1])
RELEVANCE = np.array([1.0, 2.0, 0.0, 1.0])


def shown_by_chance():
    """Yield every ranking of a greedy ranker that explores, its chance and its propensity."""
    for order in itertools.permutations(range(M)):
        ranking = np.array(order)
        chance = GAMMA / math.factorial(M) + (1 - GAMMA) * (order == tuple(GREEDY))
        yield ranking, chance, set_propensity(GREEDY, ranking, K, GAMMA, 1.0)


@pytest.mark.parametrize("name", ["DCG", "DCG@1", "Precision@2"])
@pytest.mark.parametrize("wanted", [(2, 0, 1, 3), (0, 2, 1, 3), (1, 3, 0, 2)])
def test_top_sets_are_unbiased_by_enumeration(name, wanted):
    expected = 0.0
    for ranking, chance, propensity in shown_by_chance():
        values = np.full(M, np.nan)
        values[:K] = RELEVANCE[ranking[:K]]
        log = Log(
            0, 0, np.zeros(1, int), np.ones(1, bool), np.array([propensity]), np.array([0, M]),
            ranking, values, np.zeros((M, 0)),
        )  # fmt: skip
        expected += chance * top_set(log, [wanted], k=K, measure=name).value
    score = measure(name) if "@" in name else measure(name) @ K
    assert expected == pytest.approx(score(RELEVANCE, np.array(wanted)), abs=1e-14)


def test_item_positions_are_unbiased_by_enumeration():
    wanted = np.array([1, 3, 0, 2])
    discounts = 1 / np.log2(2 + np.arange(M))
    marginal = np.zeros((M, M))  # item by position
    for ranking, chance, _ in shown_by_chance():
        marginal[ranking, np.arange(M)] += chance
    expected = 0.0
    for ranking, chance, _ in shown_by_chance():
        estimate = item_position(
            [RELEVANCE[ranking] * discounts],
            [marginal[ranking, np.arange(M)]],
            [(ranking == wanted).astype(float)],
        )
        expected += chance * estimate.value
    assert expected == pytest.approx(float((RELEVANCE[wanted] * discounts).sum()), abs=1e-14)


def test_a_rankers_own_log_tells_what_another_ranking_earns():
    numbers = np.random.default_rng(0)
    ranker = ContextualRTopK(2, 4, mix=0.5, surrogate="squared")
    pairs, wanted, truth = [], [], []
    for round in range(800):
        features = numbers.random((4, 2))
        relevance = np.floor(2 * features[:, 0])
        impression = ranker.rank(Query(4, features), round=round)
        values = np.full(4, np.nan)
        values[0] = relevance[impression.ranking[0]]
        pairs.append((impression, Feedback(values)))
        wanted.append(np.argsort(-features[:, 0]))
        truth.append(relevance.max())
    found = top_set(Log.of(ranker, pairs), wanted, k=1)
    five_errors = 5 * found.error
    said = f"estimate {found.value:.3f}, truth {np.mean(truth):.3f}, within {five_errors:.3f}"
    assert abs(found.value - np.mean(truth)) < five_errors < 0.6, said


def test_rankings_refuse_with_a_sentence():
    log = Log(
        0, 0, np.zeros(1, int), np.ones(1, bool), np.array([np.nan]), np.array([0, 2]),
        np.array([0, 1]), np.array([1.0, np.nan]), np.zeros((2, 0)),
    )  # fmt: skip
    fine = log._replace(propensities=np.array([0.5]))
    with pytest.raises(InvalidInput, match="A propensity of the log must be a number above 0"):
        top_set(log, [[0, 1]], k=1)
    with pytest.raises(InvalidInput, match="must reveal the first 2 items, but row 0 hides"):
        top_set(fine, [[0, 1]], k=2)
    with pytest.raises(InvalidInput, match="must be DCG or Precision at a cutoff of at most k=1"):
        top_set(fine, [[0, 1]], k=1, measure="NDCG@1")
    with pytest.raises(InvalidInput, match="cutoff of at most k=1"):
        top_set(fine, [[0, 1]], k=1, measure="DCG@2")
    with pytest.raises(InvalidInput, match="a ranking for each of the 1 rows"):
        top_set(fine, [], k=1)
    with pytest.raises(InvalidInput, match="Ranking 0 must hold each of the items 0 to 1"):
        top_set(fine, [[0, 0]], k=1)
    with pytest.raises(InvalidInput, match="of one shape"):
        item_position([[1.0]], [[0.5, 0.5]], [[1.0]])
    with pytest.raises(InvalidInput, match="A propensity must be a number above 0 and at most 1"):
        item_position([[1.0]], [[0.0]], [[1.0]])
    with pytest.raises(InvalidInput, match="Rewards must be finite"):
        item_position([[np.nan]], [[0.5]], [[1.0]])
    with pytest.raises(InvalidInput, match="`high` must be at least the largest contribution, 2"):
        item_position([[1.0]], [[0.5]], [[1.0]], high=1.0)
