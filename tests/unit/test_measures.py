"""The measures reproduce every table and vector of the theory (M1-M11).

The seeds' tables list rank vectors ("231": item 1 has rank 2, ...); erratum R1. Columns are
relevance vectors in binary order unless they are named.
"""

import itertools
import math

import numpy as np
import pytest

from keyhole import LinearMeasure, measure
from keyhole.base.errors import InvalidInput, UnknownName
from keyhole.contracts.measures import Measure, measure_work
from keyhole.measures import MEASURES

pytestmark = pytest.mark.interpreted

L = math.log2(3)
EPSILON = float(np.finfo(np.float64).eps)

SUM_LOSS_TABLE = {
    "123": [0, 3, 2, 5, 1, 4, 3, 6],
    "132": [0, 2, 3, 5, 1, 3, 4, 6],
    "213": [0, 3, 1, 4, 2, 5, 3, 6],
    "231": [0, 1, 3, 4, 2, 3, 5, 6],
    "312": [0, 2, 1, 3, 3, 5, 4, 6],
    "321": [0, 1, 2, 3, 3, 4, 5, 6],
}
AUC_COLUMNS = [
    *(0b0000, 0b0001, 0b0010, 0b0100, 0b1000),
    *(0b0011, 0b0101, 0b1001, 0b0110, 0b1010, 0b1100),
    *(0b0111, 0b1011, 0b1101, 0b1110, 0b1111),
]


def ranking_of(ranks: str) -> list[int]:
    """Turn a rank vector into the item at each position."""
    return sorted(range(len(ranks)), key=lambda item: ranks[item])


def columns(n_items: int) -> list[tuple[int, ...]]:
    return list(itertools.product((0, 1), repeat=n_items))


def row(name: str, ranks: str) -> list[float]:
    of, ranking = measure(name), ranking_of(ranks)
    return [of(relevance, ranking) for relevance in columns(len(ranks))]


def rounded_sums(n_terms: int, size: float) -> float:
    """Bound the rounding of a sum of terms whose absolute values add up to ``size``."""
    return (n_terms + 2) * EPSILON * size


def test_rank_vectors_are_inverted():
    assert ranking_of("231") == [2, 0, 1]
    assert ranking_of("312") == [1, 2, 0]


@pytest.mark.parametrize("ranks", SUM_LOSS_TABLE)
def test_m1_table_3_1(ranks):
    assert row("SumLoss", ranks) == SUM_LOSS_TABLE[ranks]


def test_r1_reading_ranks_as_items_changes_rows_4_and_5():
    wrong = {r: [measure("SumLoss")(c, [int(d) - 1 for d in r]) for c in columns(3)]
             for r in SUM_LOSS_TABLE}  # fmt: skip
    assert [r for r in SUM_LOSS_TABLE if wrong[r] != SUM_LOSS_TABLE[r]] == ["231", "312"]


@pytest.mark.parametrize("n_items", [1, 2, 3, 4, 5])
def test_m2_is_sum_loss_less_a_constant_for_binary_relevance(n_items):
    pairwise, sums = measure("PairwiseLoss"), measure("SumLoss")
    for relevance in columns(n_items):
        n_relevant = sum(relevance)
        for ranking in itertools.permutations(range(n_items)):
            expected = sums(relevance, ranking) - n_relevant * (n_relevant + 1) / 2
            assert pairwise(relevance, ranking) == expected


def test_m2_identity_fails_with_three_grades():
    pairwise, sums = measure("PairwiseLoss"), measure("SumLoss")
    differences = {sums([0, 1, 2], p) - pairwise([0, 1, 2], p)
                   for p in itertools.permutations(range(3))}  # fmt: skip
    assert len(differences) > 1


def test_m2_counts_pairs():
    rng = np.random.default_rng(0)
    for _ in range(50):
        relevance, ranking = rng.integers(0, 4, 9), rng.permutation(9)
        shown = relevance[ranking]
        expected = sum(a < b for a, b in itertools.combinations(shown.tolist(), 2))
        assert measure("PairwiseLoss")(relevance, ranking) == expected


def test_m2_linear_path_equals_the_pair_count():
    pairwise = measure("PairwiseLoss")
    assert pairwise.is_linear(True)
    assert not pairwise.is_linear(False)
    fast = pairwise.kernel_for(True)
    for relevance in columns(5):
        by_item, gains = np.array(relevance, dtype=np.float64), np.empty(5)
        offset, norm = fast.prepare(pairwise.params(5), by_item, gains, measure_work(5))
        for ranking in itertools.permutations(range(5)):
            order = np.array(ranking)
            value = fast.score(pairwise.params(5), gains, offset, norm, order)
            assert value == pairwise(relevance, ranking)


@pytest.mark.parametrize("n_items", [2, 3, 7, 60])
def test_m3_identity_against_the_definition(n_items):
    rng = np.random.default_rng(n_items)
    for _ in range(20):
        values, ranking = 3 * rng.random(n_items), rng.permutation(n_items)
        shown = values[ranking]
        expected = math.fsum(max(b - a, 0.0) for a, b in itertools.combinations(shown, 2))
        size = 2 * measure("SumLoss")(values, ranking)  # of all terms that the identity adds up
        error = abs(measure("InversionLoss")(values, ranking) - expected)
        assert error <= rounded_sums(3 * n_items, size)


def test_m3_single_choice_is_position_less_one():
    for ranking in itertools.permutations(range(4)):
        for item in range(4):
            value = measure("InversionLoss")(np.eye(4)[item], ranking)
            assert value == ranking.index(item)


def test_m4_row_of_the_first_ranking():
    expected = [0, 0.5, 1 / L, 0.5 + 1 / L, 1, 1.5, 1 + 1 / L, 1.5 + 1 / L]
    np.testing.assert_allclose(row("DCG", "123"), expected, rtol=4 * EPSILON)


def test_m4_uses_exponential_gains_and_its_cutoff():
    relevance, ranking = [3, 2, 4, 0.5], [2, 0, 3, 1]
    terms = [15 / 1, 7 / L, (2**0.5 - 1) / 2, 3 / math.log2(5)]
    for cutoff in (1, 2, 3, 4):
        value = measure(f"DCG@{cutoff}")(relevance, ranking)
        assert value == pytest.approx(sum(terms[:cutoff]), rel=8 * EPSILON)


def test_m5_vectors():
    first = [1, 1 / 2, 1 / L, (1 + L / 2) / (1 + L), 1, 3 / (2 * (1 + 1 / L)), 1, 1]
    np.testing.assert_allclose(row("NDCG", "123"), first, rtol=8 * EPSILON)
    d = L / (2 * (1 + L))
    difference = np.subtract(row("NDCG", "123"), row("NDCG", "321"))
    np.testing.assert_allclose(difference, [0, -1 / 2, 0, -d, 1 / 2, 0, d, 0], atol=8 * EPSILON)


@pytest.mark.parametrize("cutoff", [None, 1, 3, 10])
def test_m5_of_an_ideal_ranking_is_exactly_one(cutoff):
    rng = np.random.default_rng(1)
    for n_items in (1, 2, 5, 20, 47, 48, 49, 100):
        relevance = rng.integers(0, 5, n_items)
        ideal = np.argsort(-relevance, kind="stable")
        assert measure("NDCG" if cutoff is None else f"NDCG@{cutoff}")(relevance, ideal) == 1.0


@pytest.mark.parametrize("cutoff", [1, 2, 3, 4, 9])
def test_m6_counts_the_first_n_positions(cutoff):
    relevance, ranking = [1, 0, 1, 1], [1, 3, 0, 2]
    expected = sum(relevance[item] for item in ranking[:cutoff])
    assert measure(f"Precision@{cutoff}")(relevance, ranking) == expected


def test_m7_vectors():
    first = [1, 1 / 3, 1 / 2, 7 / 12, 1, 5 / 6, 1, 1]
    last = [1, 1, 1 / 2, 1, 1 / 3, 5 / 6, 7 / 12, 1]
    np.testing.assert_allclose(row("AP", "123"), first, rtol=4 * EPSILON)
    np.testing.assert_allclose(row("AP", "321"), last, rtol=4 * EPSILON)


@pytest.mark.parametrize(
    ("ranks", "twelfths"),
    [
        ("1234", [0, 12, 8, 4, 0, 12, 9, 6, 6, 3, 0, 12, 8, 4, 0, 0]),
        ("4321", [0, 0, 4, 8, 12, 0, 3, 6, 6, 9, 12, 0, 4, 8, 12, 0]),
    ],
)
def test_m8_vectors(ranks, twelfths):
    ranking = ranking_of(ranks)
    values = [measure("AUC")([int(r) for r in f"{column:04b}"], ranking) for column in AUC_COLUMNS]
    np.testing.assert_allclose(values, np.divide(twelfths, 12), rtol=4 * EPSILON)


@pytest.mark.parametrize(("loss", "of"), [("NDCGLoss", "NDCG"), ("APLoss", "AP")])
@pytest.mark.parametrize("cutoff", ["", "@1", "@2", "@5"])
def test_m9_is_one_less_the_measure(loss, of, cutoff):
    rng = np.random.default_rng(2)
    for _ in range(50):
        relevance, ranking = rng.integers(0, 4, 5) * rng.integers(0, 2), rng.permutation(5)
        expected = 1.0 - measure(of + cutoff)(relevance, ranking)
        value = measure(loss + cutoff)(relevance, ranking)
        assert abs(value - expected) <= rounded_sums(5, 2.0)
    assert measure(loss).is_loss
    assert not measure(of).is_loss


def test_m10_err_by_hand():
    relevance, ranking = [2, 0, 1], [2, 0, 1]
    stops = [1 / 4, 3 / 4, 0]
    expected = stops[0] + (1 - stops[0]) * stops[1] / 2
    assert measure("ERR", max_grade=2)(relevance, ranking) == expected
    assert measure("ERR@1", max_grade=2)(relevance, ranking) == stops[0]
    assert measure("RR")(relevance, [1, 0, 2]) == 1 / 2
    assert measure("RR@1")(relevance, [1, 0, 2]) == 0
    assert measure("Recall@2")(relevance, [1, 0, 2]) == 1 / 2


@pytest.mark.parametrize(
    ("name", "weights", "gain"),
    [
        ("SumLoss", [1, 2, 3, 4], "identity"),
        ("DCG", 1 / np.log2([2, 3, 4, 5]), "exponential"),
        ("DCG@2", [1, 1 / np.log2(3), 0, 0], "exponential"),
        ("Precision@3", [1, 1, 1, 0], "identity"),
    ],
)
def test_m11_generic_linear_measure(name, weights, gain):
    generic, named = LinearMeasure(weights, gain=gain), measure(name)
    assert generic.is_loss == named.is_loss
    assert generic.exponential_gain == named.exponential_gain
    for relevance in itertools.product((0, 1, 2), repeat=4):
        for ranking in itertools.permutations(range(4)):
            assert generic(relevance, ranking) == named(relevance, ranking)


@pytest.mark.parametrize("weights", [[1, 3, 2], [1, math.nan, 0], [math.inf, 1, 0], [[1, 0]]])
def test_linear_measure_refuses_weights(weights):
    with pytest.raises(InvalidInput, match="must be finite numbers that never rise or never fall"):
        LinearMeasure(weights)


def test_linear_measure_has_one_length():
    with pytest.raises(InvalidInput, match="must have 3 items, one per weight, got 2"):
        LinearMeasure([3, 1, 0])([0, 1], [0, 1])
    with pytest.raises(UnknownName, match="identity"):
        LinearMeasure([3, 1, 0], gain="ident")


EMPTY_VALUES = {"NDCG": 1, "AP": 1, "AUC": 0, "RR": 0, "Recall": 1, "NDCGLoss": 0, "APLoss": 0}


@pytest.mark.parametrize("name", MEASURES)
def test_value_of_an_empty_list(name):
    assert measure(name)([0, 0, 0], [2, 0, 1]) == EMPTY_VALUES.get(
        name, MEASURES[name].default_empty or 0
    )


@pytest.mark.parametrize("name", ["NDCG", "AP", "AUC", "RR", "Recall"])
def test_empty_rule_can_be_changed(name):
    for value in (0.0, 0.25, math.nan):
        got = measure(name, empty=value)([0, 0, 0], [2, 0, 1])
        np.testing.assert_equal(got, value)
        assert f"empty list {value:g}" in str(measure(name, empty=value))
    usual = measure(name)([0, 1, 2], [0, 2, 1])
    assert measure(name, empty=0.25)([0, 1, 2], [0, 2, 1]) == usual


def test_auc_rule_holds_where_all_items_are_relevant():
    assert measure("AUC", empty=0.5)([1, 2], [0, 1]) == 0.5


@pytest.mark.parametrize("name", ["NDCGLoss", "APLoss"])
def test_induced_losses_keep_the_empty_rule_of_their_measure(name):
    assert measure(name, empty=0.25)([0, 0], [0, 1]) == 0.75


@pytest.mark.parametrize(
    "name", [n for n, of in MEASURES.items() if n not in EMPTY_VALUES and of.default_empty is None]
)
def test_measures_without_empty_rule(name):
    with pytest.raises(InvalidInput, match=f"{name} has no rule for empty lists to change"):
        measure(name, empty=0.0)


def every_measure() -> list[Measure]:
    plain = [cls() for cls in MEASURES.values()]
    return plain + [of @ 3 for of in plain if of.takes_cutoff]


def test_many_equals_one_by_one():
    rng = np.random.default_rng(3)
    for n_items in (1, 3, 7, 60):
        relevance = rng.integers(0, 5, (40, n_items)) * rng.integers(0, 2, (40, 1))
        rankings = np.array([rng.permutation(n_items) for _ in range(40)])
        for of in every_measure():
            singly = [of(r, p) for r, p in zip(relevance, rankings, strict=True)]
            assert of.many(relevance, rankings).tolist() == singly, of.label


def test_cutoff_beyond_the_list_is_no_cutoff():
    rng = np.random.default_rng(4)
    for name in [name for name, cls in MEASURES.items() if cls.takes_cutoff]:
        for _ in range(10):
            relevance, ranking = rng.integers(0, 5, 6), rng.permutation(6)
            assert measure(f"{name}@9")(relevance, ranking) == measure(name)(relevance, ranking)
