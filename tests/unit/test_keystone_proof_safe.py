"""Steps (10) to (21) of docs/keystone-proof.md: the safe half, by exact potentials.

Each check takes what it claims as an argument, passes with the claim of the page, and fails with a
wrong one: a smaller constant, or what a first version of the theorem took for granted.
"""

import itertools
import math
import re
from pathlib import Path

import numpy as np
import pytest

from tests.unit.keystone_theorem import (
    EULER,
    WEIGHTS,
    bregman,
    by_item,
    chances,
    correction_weight,
    corrections,
    drift_of,
    list_chances,
    mean_weights,
    potential,
    rounds_of,
    slopes,
)

PARTS = ("proof_mix", "proof_safe", "bound")


def score_vectors(m, n_vectors=40):
    numbers = np.random.default_rng(m)
    for case in range(n_vectors):
        yield numbers.normal(0.0, (0.1, 1.0, 3.0, 8.0)[case % 4], m)


def test_the_closed_forms_are_those_of_lists_that_are_drawn():
    for make, scores in itertools.product(WEIGHTS.values(), score_vectors(4, 8)):
        weights = make(4)
        drawn = sum(q * by_item(weights, a) for a, q in list_chances(scores))
        assert mean_weights(weights, scores) == pytest.approx(drawn, abs=1e-10)
        step = 1e-5
        for item in range(4):
            up, down = (scores + s * step * (np.arange(4) == item) for s in (1, -1))
            rise = (potential(weights, up) - potential(weights, down)) / (2 * step)
            assert rise == pytest.approx(drawn[item], abs=1e-6)
            bend = (mean_weights(weights, up) - mean_weights(weights, down)) / (2 * step)
            assert bend == pytest.approx(slopes(weights, scores)[item], abs=1e-6)


def order_statistics(m):
    """Return the means of the largest, second largest, ... of m centred Gumbel numbers.

    The p-th largest is -log of the p-th smallest of m exponential numbers, -log(1 - u) of uniform
    ones; they are integrated over the logit of u, where sums over a grid are as good as exact.
    """
    logits, width = np.linspace(-40.0, 36.0, 3000, retstep=True)
    log_u, log_rest = -np.logaddexp(0.0, -logits), -np.logaddexp(0.0, logits)
    keys, found = -np.log(-log_rest), []
    for p in range(1, m + 1):
        log_choose = math.lgamma(m + 1) - math.lgamma(p) - math.lgamma(m - p + 1)
        density = np.exp(log_choose + p * log_u + (m - p + 1) * log_rest)
        found.append(float((density * keys).sum() * width) - EULER)
    return np.array(found)


def check_penalty(share):
    for m in (2, 5, 20, 100):
        means, p = order_statistics(m), np.arange(1, m + 1)
        assert means.sum() == pytest.approx(0.0, abs=1e-8)
        assert (means <= share * np.log(m / p) + 1e-9).all()
        for make in WEIGHTS.values():
            weights = make(m) - make(m)[-1]
            exact = float(weights @ means)
            assert exact <= share * float((weights * np.log((m + 1) / p)).sum())
            if m <= 5:
                assert potential(make(m), np.zeros(m)) == pytest.approx(exact, abs=1e-8)


def test_10_penalty_of_the_noise():
    check_penalty(1.0)
    with pytest.raises(AssertionError):
        check_penalty(0.5)


def check_falling_rates(share):
    numbers = np.random.default_rng(2)
    for make, totals in itertools.product(WEIGHTS.values(), score_vectors(4, 12)):
        weights = make(4)
        first = potential(weights, np.zeros(4))
        best = float(np.sort(weights) @ np.sort(totals))
        assert potential(weights, totals, 0.5) >= best - 1e-10
        for totals_now in (totals, 0.0 * totals):
            rise = potential(weights, totals_now, 0.2) - potential(weights, totals_now, 0.9)
            assert rise <= share * first * (1.0 / 0.2 - 1.0 / 0.9) + 1e-9
        rates, now = np.sort(numbers.random(10) + 0.05)[::-1], np.zeros(4)
        regret = excess = 0.0
        target = by_item(weights, numbers.permutation(4))
        for rate in rates:
            step = numbers.normal(0.5, 2.0, 4)
            regret += (target - mean_weights(weights, rate * now)) @ step
            excess += bregman(weights, now, step, rate)
            now = now + step
        assert regret <= share * first / rates[-1] + excess + 1e-9


def test_11_falling_rates():
    check_falling_rates(1.0)
    with pytest.raises(AssertionError):
        check_falling_rates(0.5)


def check_hazard(e=math.e, trace=1.0, own=1.0):
    """(12): what bounds the diagonal; the signs, and rows that add up to nothing."""
    for m, make in itertools.product((2, 3, 5), WEIGHTS.values()):
        weights = make(m)
        spread, total = weights[0] - weights[-1], (weights - weights[-1]).sum()
        for scores in score_vectors(m):
            h = slopes(weights, scores)
            x = mean_weights(weights, scores)
            assert (np.diag(h) <= own * (x - weights[-1]) + 1e-9).all()
            assert (np.diag(h) <= spread / e + 1e-9).all()
            assert np.trace(h) <= trace * total + 1e-9
            assert (h - np.diag(np.diag(h)) <= 1e-9).all()
            assert np.abs(h.sum(axis=1)).max() < 1e-9


def test_12_hazard():
    check_hazard()
    for wrong in ({"e": 2.0 * math.e}, {"trace": 0.5}, {"own": 0.5}):
        with pytest.raises(AssertionError):
            check_hazard(**wrong)


def check_bilinear(half, whole=1.0):
    numbers = np.random.default_rng(3)
    for m, make in itertools.product((2, 4), WEIGHTS.values()):
        for scores in score_vectors(m, 20):
            h = slopes(make(m), scores)
            for n in (1.0, 7.0):
                u = n * numbers.integers(0, 2, m)
                r = numbers.integers(0, 2, m).astype(float)
                assert r @ h @ u <= half * n * np.trace(h) + 1e-9
                assert (np.abs(r @ h) <= whole * np.diag(h) + 1e-9).all()


def test_13_and_14_gains_against_means_and_against_corrections():
    check_bilinear(0.5)
    with pytest.raises(AssertionError):
        check_bilinear(0.25)
    with pytest.raises(AssertionError):
        check_bilinear(0.5, whole=0.5)


def of_any_item(weights, k, totals):
    """Return what a squared correction of each item counts."""
    return np.full(len(totals), correction_weight(weights, k))


def of_its_mean_place(weights, k, totals):
    """Return what it counted in the first version."""
    return mean_weights(weights, 0.5 * totals) - weights[-1]


def check_jumps(counts=of_any_item, share=1.0, linear=1.0):
    """(15): one round's corrections, small and as large as thirty times the noise."""
    numbers = np.random.default_rng(4)
    rate = 0.5
    for m, make in itertools.product((2, 4), WEIGHTS.values()):
        weights = make(m)
        spread = weights[0] - weights[-1]
        for totals, k in itertools.product(score_vectors(m, 16), (1, 2)):
            step = np.zeros(m)
            size = (0.01, 1.0, 10.0, 60.0)[numbers.integers(4)]
            step[numbers.permutation(m)[:k]] = size * numbers.choice([-1.0, 1.0], k)
            excess = bregman(weights, totals, step, rate)
            assert excess >= -1e-9
            assert excess <= share * rate * counts(weights, k, totals) @ (step * step) + 1e-9
            assert excess <= linear * spread * np.abs(step).sum() + 1e-9


def test_15_one_correction():
    check_jumps()
    for wrong in ({"share": 0.5}, {"linear": 0.5}, {"counts": of_its_mean_place}):
        with pytest.raises(AssertionError):
            check_jumps(**wrong)


def blocks_of_two(wrong):
    """Yield rates, lists, exact chances and both rounds of blocks, leaf after leaf."""
    m, k, floor = 3, 1, 0.4
    numbers = np.random.default_rng(5)

    def means_of(gains, order):
        return np.abs(gains - wrong * (1.0 - 0.1 * order[0]))

    for name, rate in itertools.product(("DCG", "top one"), (0.1, 1.0)):
        weights, totals = WEIGHTS[name](m), numbers.normal(0.0, 1.0 / rate, m)
        gains = numbers.integers(0, 2, (2, m)).astype(float)
        gains[1] = gains[0]
        leaves = []
        for held, of_list in list_chances(rate * totals):
            first = (held[::-1], 0.25 + 0.25 * held[0], means_of(gains[0], held))
            p = chances(held, *first[:2], floor, k)
            for shown, likely in rounds_of(held, *first[:2], floor, k):
                c = corrections(shown, k, gains[0], first[2], p)
                second = (shown[::-1], 0.8 - 0.2 * shown[0], means_of(gains[1], shown))
                then_p = chances(held, *second[:2], floor, k)
                for later, then in rounds_of(held, *second[:2], floor, k):
                    d = corrections(later, k, gains[1], second[2], then_p)
                    leaves.append((of_list * likely * then, [first[2], second[2]], [c, d]))
        yield weights, rate, totals, gains, leaves


def check_block(wrong, drift=1.0, squares=1.0):
    """(16) at every leaf of the tree, (17) and what follows of both in the mean."""
    for weights, rate, totals, gains, leaves in blocks_of_two(wrong):
        x = mean_weights(weights, rate * totals)
        a, kappa = correction_weight(weights, 1), drift_of(weights, 2)
        of_block = of_lists = of_squares = all_likely = 0.0
        for likely, means, found in leaves:
            now, rise, bound = totals, 0.0, 0.0
            for t in range(2):
                y = mean_weights(weights, rate * (now + means[t]))
                jump = bregman(weights, now + means[t], found[t], rate)
                assert jump <= rate * a * (found[t] @ found[t]) + 1e-9
                bound += jump + (y - x) @ (means[t] + found[t])
                of_lists += likely * (y - x) @ gains[t]
                of_squares += likely * (found[t] @ found[t])
                now = now + means[t] + found[t]
            rise = potential(weights, now, rate) - potential(weights, totals, rate)
            assert rise - x @ (now - totals) <= bound + 1e-9
            of_block += likely * (rise - x @ (now - totals))
            all_likely += likely
        assert all_likely == pytest.approx(1.0)
        assert of_lists <= drift * rate * 2 * kappa + 1e-9
        assert of_block <= rate * (drift * 2 * kappa + squares * a * of_squares) + 1e-9


def test_16_and_17_a_block():
    check_block(wrong=1.0)
    check_block(wrong=0.0)
    with pytest.raises(AssertionError):  # without drift in the rate: the first version's hole
        check_block(wrong=0.0, drift=0.0)
    with pytest.raises(AssertionError):
        check_block(wrong=1.0, drift=0.0, squares=0.1)


def rates_of(increments, block, first):
    """Return V before each round, and V at the beginning of each round's block."""
    v = first + np.concatenate([[0.0], np.cumsum(increments)])
    rounds = np.arange(len(increments))
    return v[:-1], v[rounds // block * block], v[-1]


def increment_sequences(kappa, rounds=16 * 60):
    numbers = np.random.default_rng(6)
    jumps = np.zeros(rounds)
    jumps[::16] = 2.0 ** (1.2 * np.arange(60))
    return [
        np.zeros(rounds),
        numbers.pareto(0.7, rounds),
        jumps,
        kappa * numbers.exponential(1.0, rounds),
    ]


def check_drift_sum(share):
    for kappa, first, block in ((3.0, 1.0, 16), (0.2, 50.0, 4), (3.0, 1.0, 1)):
        for jumps in increment_sequences(kappa):
            _, at_start, _ = rates_of(kappa + jumps, block, first)
            spent = (kappa / np.sqrt(at_start)).sum()
            limit = kappa * block / math.sqrt(first) + 2.0 * math.sqrt(kappa * len(jumps))
            assert spent <= share * limit


def test_18_what_drift_costs():
    check_drift_sum(1.0)
    with pytest.raises(AssertionError):
        check_drift_sum(0.5)


def check_stale_rates(rounds_stale):
    for first, block in ((1.0, 16), (50.0, 4)):
        for jumps in increment_sequences(1.0):
            now, at_start, _ = rates_of(jumps, block, first)
            stale = (1.0 / np.sqrt(at_start) - 1.0 / np.sqrt(now)).sum()
            assert stale <= rounds_stale(block) / math.sqrt(first) + 1e-9


def test_19_rates_that_are_held_in_a_block():
    check_stale_rates(lambda block: block - 1)
    with pytest.raises(AssertionError):
        check_stale_rates(lambda block: (block - 1) / 2)


def check_second_order(good, bad):
    """(20): a and the spread are free here; squares are heavy-tailed, and double."""
    for a, spread, k in ((0.14, 0.77, 1), (0.28, 0.77, 3)):
        doubling = 2.0 ** np.arange(50) / a
        for squares in (*increment_sequences(1.0), doubling):
            first = 1e-2
            now, _, end = rates_of(a * squares, 1, first)
            each = np.minimum(a * squares / np.sqrt(now), spread * np.sqrt(k * squares))
            most = spread * math.sqrt(k * squares.max())
            assert each.sum() <= good * math.sqrt(end) + bad * most + 1e-9


def test_20_second_order_sum():
    check_second_order(1.0 + math.sqrt(2.0), 2.0 + math.sqrt(8.0))
    with pytest.raises(AssertionError):
        check_second_order(0.7, 2.0 + math.sqrt(8.0))


def check_inverse_floors(share):
    sums = np.cumsum(np.arange(1.0, 3001.0) ** (1 / 3))
    rounds = np.arange(1.0, 3001.0)
    assert (sums <= share * 0.75 * rounds ** (4 / 3) + rounds ** (1 / 3)).all()


def test_21_what_the_floor_lets_be_seen():
    check_inverse_floors(1.0)
    with pytest.raises(AssertionError):
        check_inverse_floors(0.9)


def safe_regret(m, rounds, repaired):
    """Return what the safe half loses per round if the means are always right.

    There are no corrections then, and its totals are the true ones: nothing is random but noise.
    """
    weights, half = WEIGHTS["DCG"](m), np.arange(m) < m // 2
    down = weights - weights[-1]
    penalty = float((down * np.log((m + 1) / np.arange(1, m + 1))).sum())
    first = correction_weight(weights, 1) * (m / 0.1) ** 2 if repaired else 1.0
    v, totals, lost = 0.0, np.zeros(m), 0.0
    for block in range(rounds // 16):
        gains = np.where(half == (block % 2 == 0), 1.0, 0.0)
        shown = mean_weights(weights, math.sqrt(penalty / (first + v)) * totals)
        totals = totals + 16 * gains
        lost -= 16 * float(shown @ gains)
        v += 16 * drift_of(weights, 16) if repaired else 0.0
    return (float(np.sort(weights) @ np.sort(totals)) + lost) / rounds


@pytest.mark.parametrize("m", [2, 4])
def test_the_hole_of_the_first_version(m):
    """Means that are always right stop a rate that only errors feed: regret stays linear."""
    stated = [safe_regret(m, rounds, repaired=False) for rounds in (1_600, 16_000)]
    repaired = [safe_regret(m, rounds, repaired=True) for rounds in (1_600, 16_000)]
    assert stated[1] == pytest.approx(stated[0], rel=0.01)
    assert stated[1] > 0.09
    assert repaired[0] < 0.2 * stated[0]
    assert repaired[1] < 0.5 * repaired[0]
    if m == 2:
        assert stated[1] == pytest.approx((1.0 - 1.0 / math.log2(3.0)) / 4.0, rel=1e-3)


@pytest.mark.parametrize("floor", [0.1, 0.01, 0.001])
def test_the_gap_of_the_first_version(floor):
    """Squares weighted by the list that was drawn fall short by 1 / gamma of what is needed."""
    weights, gains, means = np.array([1.0, 0.0]), np.array([1.0, 0.0]), np.zeros(2)
    realised = needed = 0.0
    x = mean_weights(weights, np.zeros(2))
    for held, of_list in list_chances(np.zeros(2)):
        p = chances(held, held, 1.0, floor, 1)
        for shown, likely in rounds_of(held, held, 1.0, floor, 1):
            square = of_list * likely * corrections(shown, 1, gains, means, p) ** 2
            realised += float(square @ by_item(weights, held))
            needed += float(square @ x)
    assert needed / realised == pytest.approx(1.0 / floor)


def test_every_step_of_the_page_names_its_test():
    folder = Path(__file__).parent
    page = (folder.parents[1] / "docs" / "keystone-proof.md").read_text()
    tests = "".join((folder / f"test_keystone_{name}.py").read_text() for name in PARTS)
    steps = re.findall(r"^\*\*\((\d+)\)\*\*(.*?)(?=^\*\*\(|^## )", page, re.M | re.S)
    assert [int(number) for number, _ in steps] == list(range(1, 22))
    for number, text in steps:
        assert re.search(r"`test_\d+`", text), number
    for name in set(re.findall(r"`(test_\w+)`", page)):
        assert re.search(rf"^def {name}(_|\()", tests, re.M), name
