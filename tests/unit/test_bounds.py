"""The bounds are the theory's numbers, and the constants they rest on are true."""

import itertools
import math

import numpy as np
import pytest

from keyhole import FTPL, LinearMeasure, RTopK, measure
from keyhole.base.errors import InvalidInput
from keyhole.bounds import blocks, choices, ftpl

PER_ITEM = [
    "SumLoss",
    "PairwiseLoss",
    "InversionLoss",
    "DCG",
    "DCG@2",
    "Precision@1",
    "Precision@2",
]


# ------------------------------------------------------------------ B6: FTPL and RTop-kF


@pytest.mark.parametrize("m", [1, 2, 5, 20])
@pytest.mark.parametrize("grade", [1, 2, 4])
def test_seed_constants(m, grade):
    top = 2**grade - 1
    assert ftpl.constants("SumLoss", m, grade) == (m**2, grade * m**2, grade * m)
    assert ftpl.constants("DCG", m, grade) == (m, m * top, m * top)
    for n in {1, min(3, m), m}:
        assert ftpl.constants(f"Precision@{n}", m, grade) == (n, grade * n, grade * m)
        assert ftpl.constants(f"DCG@{n}", m, grade) == (n, n * top, m * top)


@pytest.mark.parametrize("name", ["PairwiseLoss", "InversionLoss"])
def test_pair_losses_have_the_constants_of_sum_loss(name):
    for tight in (False, True):
        assert ftpl.constants(name, 6, tight=tight) == ftpl.constants("SumLoss", 6, tight=tight)


@pytest.mark.parametrize(
    "c",
    [ftpl.constants(name, m, tight=t) for name in PER_ITEM for m in (3, 10) for t in (False, True)],
)
@pytest.mark.parametrize("n_cells", [1, 4, 20])
def test_number_of_blocks_is_the_optimum(c, n_cells):
    rounds = 10_000
    best = ftpl.best_n_blocks(c, n_cells, rounds)
    least = ftpl.top_k_bound(c, n_cells, rounds, best)
    assert least == pytest.approx(ftpl.top_k_bound(c, n_cells, rounds), rel=1e-12)
    for factor in (0.5, 0.9, 0.99, 1.01, 1.1, 2.0):
        assert ftpl.top_k_bound(c, n_cells, rounds, best * factor) > least
    closed = 3 * c.reward ** (2 / 3) * (c.diameter * c.size * n_cells) ** (1 / 3)
    assert least == pytest.approx(closed * rounds ** (2 / 3), rel=1e-12)


@pytest.mark.parametrize("c", [ftpl.constants(name, 7) for name in PER_ITEM])
def test_noise_rate_is_the_optimum_and_gives_the_bound(c):
    """The regret of K updates is at most D / epsilon + epsilon R A K."""
    n_updates = 300.0

    def regret(rate):
        return c.diameter / rate + rate * c.reward * c.size * n_updates

    best = ftpl.best_epsilon(c, n_updates)
    assert regret(best) == pytest.approx(ftpl.full_information_bound(c, n_updates), rel=1e-12)
    assert all(regret(best * factor) > regret(best) for factor in (0.9, 0.99, 1.01, 1.1))


@pytest.mark.parametrize(("name", "grade"), [("DCG", 1), ("DCG", 3), ("SumLoss", 1)])
def test_r4_noise_rate(name, grade):
    m, n_blocks = 10, 215
    top = 2**grade - 1 if name == "DCG" else 1
    rate = ftpl.best_epsilon(ftpl.constants(name, m, grade), n_blocks)
    assert rate == pytest.approx(1 / (top * math.sqrt(m * n_blocks)), rel=1e-12)


def test_orders_of_the_bounds():
    m, q, T, n, top = 12, 4, 5000, 3, 7
    shape = q ** (1 / 3) * T ** (2 / 3)
    expected = {
        ("SumLoss", 1): 3 * m ** (7 / 3) * shape,
        ("DCG", 3): 3 * top * m ** (4 / 3) * shape,
        (f"Precision@{n}", 1): 3 * n * m ** (1 / 3) * shape,
    }
    for (name, grade), value in expected.items():
        c = ftpl.constants(name, m, grade)
        assert ftpl.top_k_bound(c, q, T) == pytest.approx(value, rel=1e-12)


def test_settings_of_the_experiments():
    """E1: K=215, epsilon about .0216, blocks of 46 or 47 rounds. E2: the formula's K is 171."""
    first = RTopK(10, horizon=10_000, k=1, measure="DCG")
    assert first.n_blocks == 215
    assert round(first.rate, 4) == 0.0216
    assert 10_000 // first.n_blocks == 46
    assert RTopK(20, horizon=10_000, k=1, measure="DCG").n_blocks == 171
    assert FTPL(10, horizon=10_000).rate == pytest.approx(1 / math.sqrt(10 * 10_000), rel=1e-12)


def brute_force(of, m, grade):
    """Return half the l1 diameter of the rankings, the largest value and the largest size."""
    weights, exponential = of.weights(m), of.exponential_gain
    placed = np.array([weights[list(p)] for p in itertools.permutations(range(m))])
    distance = np.abs(placed[:, None] - placed[None]).sum(axis=2).max()
    lists = np.array(list(itertools.product(range(grade + 1), repeat=m)), dtype=np.float64)
    gains = 2.0**lists - 1 if exponential else lists
    return distance / 2, np.abs(placed @ gains.T).max(), gains.sum(axis=1).max()


@pytest.mark.parametrize(
    ("name", "grade"),
    [
        (name, grade)
        for name in PER_ITEM
        for grade in (1, 2)
        if (name, grade) != ("PairwiseLoss", 2)
    ],
)
@pytest.mark.parametrize("m", [2, 3, 4, 5])
def test_tight_constants_are_true(name, m, grade):
    of = measure(name)
    tight, usual = (ftpl.constants(of, m, grade, tight=t) for t in (True, False))
    diameter, value, size = brute_force(of, m, grade)
    trivial = diameter == 0.0  # every ranking is as good; a tiny number stands in
    assert tight.diameter == (1e-12 if trivial else pytest.approx(diameter, rel=1e-12))
    assert tight.reward == pytest.approx(value, rel=1e-12)
    assert tight.size == size
    assert all(a <= b * (1 + 1e-12) for a, b in zip(tight, usual, strict=True))
    for q, T in ((1, 100), (m, 10_000)):
        assert ftpl.top_k_bound(tight, q, T) <= ftpl.top_k_bound(usual, q, T)
        assert ftpl.full_information_bound(tight, T) <= ftpl.full_information_bound(usual, T)


@pytest.mark.parametrize("m", range(2, 12))
def test_true_diameter_of_sum_loss(m):
    """B6: the l1 diameter is floor(m^2 / 2)."""
    assert 2 * ftpl.constants("SumLoss", m, tight=True).diameter == m**2 // 2


@pytest.mark.parametrize("weights", [[3, 1, 0], [1, 2, 4], [0, 0, 5]])
def test_tight_constants_of_any_linear_measure(weights):
    of = LinearMeasure(weights)
    diameter, value, size = brute_force(of, 3, 1)
    assert ftpl.constants(of, 3, tight=True) == pytest.approx((diameter, value, size))


@pytest.mark.parametrize("name", ["NDCG", "AP", "AUC", "ERR", "RR", "Recall@2", "NDCGLoss"])
def test_constants_need_gains_per_item(name):
    with pytest.raises(InvalidInput, match=rf"must have gains per item .* got {name} with"):
        ftpl.constants(name, 5)


def test_pairwise_loss_has_two_grades():
    with pytest.raises(InvalidInput, match="PairwiseLoss with max_grade=2"):
        ftpl.constants("PairwiseLoss", 5, 2)


@pytest.mark.parametrize(("m", "grade"), [(0, 1), (2.5, 1), (3, 0), (3, -1), (3, math.nan)])
def test_constants_refuse_nonsense(m, grade):
    with pytest.raises(InvalidInput, match="must be"):
        ftpl.constants("DCG", m, grade)


# ------------------------------------------------------------------ B7: blocks


@pytest.mark.parametrize(
    ("m", "k", "cells"), [(3, 2, 2), (4, 2, 2), (5, 2, 3), (5, 5, 1), (7, 3, 3)]
)
def test_cells_cover_the_list(m, k, cells):
    parts = blocks.cells_in_order(m, k)
    assert len(parts) == blocks.n_cells(m, k) == cells
    assert sorted(itertools.chain.from_iterable(parts)) == list(range(m))
    assert max(map(len, parts)) <= k


def test_block_must_be_long_enough():
    with pytest.raises(InvalidInput, match="must have at least 2 rounds, one per cell, got 1"):
        blocks.expected_block_estimate([[1, 0, 0]], k=2)
    with pytest.raises(InvalidInput, match="`k` must be an integer between 1 and n_items=3"):
        blocks.expected_block_estimate([[1, 0, 0]], k=4)


# ------------------------------------------------------------------ B9, B10, B14: choices


@pytest.mark.parametrize("n", [2, 3, 4, 5, 6])
def test_spread_is_the_largest_sum_over_pairs(n):
    """M bounds the sum over pairs of squared differences of value."""

    def over_pairs(values):
        return sum((a - b) ** 2 for a, b in itertools.combinations(values, 2))

    binary = list(itertools.product((0, 1), repeat=n))
    assert choices.spread(n) == n**2 / 4 >= max(map(over_pairs, binary))
    for k in range(1, n):
        chosen = {over_pairs(values) for values in binary if sum(values) == k}
        assert chosen == {choices.spread(n, k)}
    assert choices.spread(n, 1) == n - 1
    assert choices.spread(n, n) == 1  # nothing to learn, but the tuning divides by it


def test_b9_numbers():
    n, T = 5, 20_000
    assert choices.choice_bound(n, T, choices.spread(n, 1)) == pytest.approx(1177.41, abs=5e-3)
    assert choices.uniform_choice_regret(n, T) == pytest.approx(356.8, abs=0.05)
    rate = choices.best_rate(n, T, 4)
    assert rate == pytest.approx(n * math.sqrt(math.log(2) / (T * 4)), rel=1e-12)
    assert choices.shortest_horizon(n, 4) == pytest.approx(25 * math.log(2) / 4, rel=1e-12)


@pytest.mark.parametrize(("n", "chosen"), [(2, 1), (5, 1), (9, 4), (20, None)])
def test_b9_best_rate_is_the_optimum(n, chosen):
    T, M = 5000, choices.spread(n, chosen)
    least, best = choices.choice_bound(n, T, M), choices.best_rate(n, T, M)
    assert choices.choice_bound(n, T, M, best) == pytest.approx(least, rel=1e-12)
    assert all(choices.choice_bound(n, T, M, best * f) > least for f in (0.9, 0.99, 1.01, 1.1))


def test_b9_upper_bound_is_about_2_95_times_the_lower():
    n, T = 10**6, 10**9
    ratio = choices.choice_bound(n, T, n - 1) / choices.uniform_choice_regret(n, T)
    assert ratio == pytest.approx(2 * math.sqrt(math.pi * math.log(2)), rel=1e-5)
    assert round(ratio, 2) == 2.95


def test_r29_k_choice_bound():
    """n sqrt(T n k log 2) of Corollary 3.2 is never below the bound with M = k(n - k)."""
    for n, k in itertools.combinations(range(1, 12), 2):
        n, k = max(n, k), min(n, k)
        corollary = n * math.sqrt(1000 * n * k * math.log(2))
        assert choices.choice_bound(n, 1000, choices.spread(n, k)) <= corollary


@pytest.mark.parametrize("n_chosen", [0, 6, 1.5])
def test_spread_refuses(n_chosen):
    with pytest.raises(InvalidInput, match="`n_chosen` must be an integer between 1 and n_items=5"):
        choices.spread(5, n_chosen)


@pytest.mark.parametrize(("m", "k"), [(5, 1), (5, 2), (20, 1), (20, 20)])
def test_blocked_bound_is_least_at_its_number_of_blocks(m, k):
    q, T, M = blocks.n_cells(m, k), 10_000, choices.spread(m)
    best = choices.best_n_blocks(m, k, q, T, M)
    least = choices.blocked_bound(m, k, q, T, best, M)
    assert all(choices.blocked_bound(m, k, q, T, best * f, M) > least for f in (0.9, 0.99, 1.01, 2))


@pytest.mark.parametrize("n", [2, 3, 4, 5])
def test_b10_affine_rank_of_pair_matrices(n):
    matrices = []
    for ranking in itertools.permutations(range(n)):
        place = np.argsort(ranking)
        matrices.append((place[:, None] < place[None]).astype(float).ravel())
    differences = np.array(matrices[1:]) - matrices[0]
    assert np.linalg.matrix_rank(differences) == choices.pair_dimension(n) == math.comb(n, 2)


def test_b14_quoted_rates():
    n, T, k = 7.0, 900.0, 3
    single, several, binary = (choices.quoted_rates(7, T, c) for c in (1, k, None))
    log = math.log(n)
    assert single == pytest.approx(
        {
            "OnlineRank": n**1.5 * 30,
            "weights over n! rankings": n**1.5 * 30 * math.sqrt(log),
            "FPL on pair matrices": n**2 * 30,
            "doubly stochastic matrices": n**1.5 * 30 * math.sqrt(log),
            "combinatorial bandit": n**2.5 * 30,
            "interior-point bandit": n**3.5 * 30,
        }
    )
    own = n**1.5 * math.sqrt(k) * 30
    assert several == pytest.approx(
        {
            "OnlineRank": own,
            "weights over n! rankings": own * math.sqrt(k * log),
            "FPL on pair matrices": n**2 * k * 30,
        }
    )
    assert binary == pytest.approx(
        {
            "OnlineRank": n**2 * 30,
            "weights over n! rankings": n**2 * 30 * math.sqrt(n * log),
            "FPL on pair matrices": n**3 * 30,
        }
    )
