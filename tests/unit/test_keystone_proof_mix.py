"""Steps (1) to (9) of docs/keystone-proof.md: estimates, floor, mix, and lists held in blocks.

Each check takes what it claims as an argument, passes with the claim of the page, and fails with a
wrong one: a smaller constant, or what a first version of the theorem took for granted.
"""

import itertools
import math

import numpy as np
import pytest

from tests.unit.keystone_theorem import (
    WEIGHTS,
    by_item,
    chances,
    corrections,
    lifted,
    list_chances,
    mean_weights,
    rounds_of,
)

PRIOR = 0.01
LOG_PRIOR = math.log(1.0 / PRIOR)
M = 5


def cases(n_cases=60, m=M):
    """Yield lists, trust, floor, k, gains and means of all kinds."""
    numbers = np.random.default_rng(0)
    for case in range(n_cases):
        safe, other = (tuple(numbers.permutation(m).tolist()) for _ in range(2))
        trust = (0.0, 1.0, 0.5, float(numbers.random()))[case % 4]
        floor = float((0.5, 0.1, 0.01)[case % 3])
        gains = numbers.integers(0, 2, m).astype(float)
        means = (1.0 - gains, numbers.random(m))[case % 2]
        yield safe, other, trust, floor, 1 + case % (m - 1), gains, means


def check_estimates_are_unbiased(seen_with):
    for safe, other, trust, floor, k, gains, means in cases():
        used = seen_with(safe, other, trust, floor, k)
        seen, estimates, total = np.zeros(M), np.zeros(M), 0.0
        for shown, likely in rounds_of(safe, other, trust, floor, k):
            seen[list(shown[:k])] += likely
            estimates += likely * (means + corrections(shown, k, gains, means, used))
            total += likely
        assert total == pytest.approx(1.0)
        assert seen == pytest.approx(used, abs=1e-14)
        assert estimates == pytest.approx(gains, abs=1e-12)


def of_floors_that_always_move(safe, other, trust, floor, k):
    return chances(safe, other, trust, floor * M / (M - k), k)


def of_the_safe_list(safe, _, trust, floor, k):
    return chances(safe, safe, trust, floor, k)


def test_1_chances_are_exact_and_estimates_unbiased():
    check_estimates_are_unbiased(chances)
    for wrong in (of_floors_that_always_move, of_the_safe_list):
        with pytest.raises(AssertionError):
            check_estimates_are_unbiased(wrong)


def check_moments(share, most=1.0):
    for safe, other, trust, floor, k, gains, means in cases():
        p = chances(safe, other, trust, floor, k)
        assert (1.0 / p).sum() <= share * (M * (M - k) / floor + 2.0 * k / (1.0 - floor))
        sizes, squares = 0.0, 0.0
        for shown, likely in rounds_of(safe, other, trust, floor, k):
            c = corrections(shown, k, gains, means, p)
            assert np.abs(c).max() <= most * M / floor + 1e-9
            assert c @ c <= most * k * (M / floor) ** 2 + 1e-9
            sizes += likely * np.abs(c).sum()
            squares += likely * (c @ c)
        assert sizes == pytest.approx(np.abs(gains - means).sum())
        assert sizes <= M + 1e-9
        assert squares <= (1.0 / p).sum() + 1e-9


def test_2_moments_of_corrections():
    check_moments(1.0)
    with pytest.raises(AssertionError):
        check_moments(0.5)
    with pytest.raises(AssertionError):
        check_moments(1.0, most=0.5)


def check_cost_of_lifts(cost):
    """The gain of a round, and what the floor takes from it: (3) and (4)."""
    for weights in (make(M) for make in WEIGHTS.values()):
        for safe, other, trust, floor, k, gains, _ in cases(24):
            spread = weights[k - 1] - weights[-1]
            for place, flags in itertools.product(
                range(k, M), itertools.product((0.0, 1.0), repeat=M)
            ):
                moved = by_item(weights, lifted(safe, place, k)) - by_item(weights, safe)
                assert moved @ flags >= -cost * spread - 1e-12
            of_lists = trust * by_item(weights, safe) + (1.0 - trust) * by_item(weights, other)
            gain = sum(
                likely * by_item(weights, shown) @ gains
                for shown, likely in rounds_of(safe, other, trust, floor, k)
            )
            assert gain >= of_lists @ gains - cost * floor * (1.0 - k / M) * spread - 1e-12


def test_3_and_4_a_lift_costs_what_position_k_is_worth():
    check_cost_of_lifts(1.0)
    with pytest.raises(AssertionError):
        check_cost_of_lifts(0.5)
    rounds = np.arange(1.0, 2001.0)
    assert (np.cumsum(rounds ** (-1 / 3)) <= 1.5 * rounds ** (2 / 3)).all()
    assert not (np.cumsum(rounds ** (-1 / 3)) <= 1.4 * rounds ** (2 / 3)).all()


def soft(lead, rate):
    """Return Psi: a soft maximum of the lead and 0, that of the prior at 0."""
    return np.logaddexp(math.log(PRIOR) + rate * lead, math.log(1.0 - PRIOR)) / rate


def trust_at(lead, rate):
    return 1.0 / (1.0 + math.exp(-(math.log(PRIOR / (1.0 - PRIOR)) + rate * lead)))


def lead_sequences(rounds=200):
    """Yield leads round by round: noise, heavy tails, doubling, signs that alternate."""
    numbers = np.random.default_rng(1)
    for _ in range(8):
        yield numbers.normal(size=rounds)
        yield numbers.standard_cauchy(rounds)
        yield numbers.normal(0.3, 1.0, rounds)
    yield 2.0 ** (0.5 * np.arange(45))
    yield 3.0 ** np.arange(25) * (-1.0) ** np.arange(25)


def check_mix(eighth, least=1.0):
    for leads in lead_sequences():
        lead, squares, kept, slack = 0.0, 0.0, 0.0, 0.0
        for d in leads:
            rate = math.sqrt(LOG_PRIOR / (1.0 + squares))
            trust = trust_at(lead, rate)
            second = min(eighth * rate * d * d, abs(d))
            tolerance = 1e-9 * (1.0 + abs(lead) + abs(d))
            assert soft(lead + d, rate) <= soft(lead, rate) + trust * d + second + tolerance
            kept, slack, lead, squares = kept + trust * d, slack + second, lead + d, squares + d * d
            later = math.sqrt(LOG_PRIOR / (1.0 + squares))
            assert soft(lead, later) <= soft(lead, rate) + tolerance
        assert lead - kept <= least * LOG_PRIOR / rate + slack + tolerance
        assert -kept <= math.log(1.0 / (1.0 - PRIOR)) / rate + slack + tolerance
    for rate, lead in itertools.product((0.01, 1.0, 30.0), (-9.0, 0.0, 9.0)):
        assert soft(lead, rate) >= lead - least * LOG_PRIOR / rate - 1e-12
        assert soft(lead, rate) >= math.log(1.0 - PRIOR) / rate - 1e-12


def test_5_and_6_the_mix_loses_little_to_either_half():
    check_mix(0.125)
    with pytest.raises(AssertionError):
        check_mix(0.0625)
    with pytest.raises(AssertionError):
        check_mix(0.125, least=0.5)


def check_scale_free(good, bad):
    for leads in lead_sequences():
        y, x, of_good, of_bad = leads * leads, 1e-3, 0.0, 0.0
        for each in y:
            if each <= x:
                of_good += each / math.sqrt(x)
            else:
                of_bad += math.sqrt(each)
            x += each
        assert of_good <= good * math.sqrt(x)
        assert of_bad <= bad * math.sqrt(y.max())


def test_7_scale_free_sums():
    check_scale_free(1.0 + math.sqrt(2.0), 2.0 + math.sqrt(8.0))
    with pytest.raises(AssertionError):
        check_scale_free(1.2, 2.0 + math.sqrt(8.0))
    with pytest.raises(AssertionError):
        check_scale_free(1.0 + math.sqrt(2.0), 2.4)


def check_second_moment_of_the_lead(share, apart=1.0):
    for weights in (make(M) for make in WEIGHTS.values()):
        difference = weights - weights[::-1]
        reach, squares = np.maximum(difference, 0.0).sum(), difference @ difference
        for safe, other, trust, floor, k, gains, means in [
            *cases(24),
            (tuple(range(M)), tuple(range(M))[::-1], 1.0, 0.01, 1, np.ones(M), np.zeros(M)),
        ]:
            e = by_item(weights, safe) - by_item(weights, other)
            assert e @ e <= apart * squares + 1e-12
            assert abs(e @ gains) <= apart * reach + 1e-12
            p = chances(safe, other, trust, floor, k)
            second = 0.0
            for shown, likely in rounds_of(safe, other, trust, floor, k):
                c = corrections(shown, k, gains, means, p)
                lead = e @ (means + c)
                spread = weights[0] - weights[-1]
                assert abs(lead) <= reach + k * spread * M / floor + 1e-9
                second += likely * lead * lead
            assert second <= share * (reach**2 + k * M / floor * squares) + 1e-9


def test_8_second_moment_of_the_lead():
    check_second_moment_of_the_lead(1.0)
    with pytest.raises(AssertionError):
        check_second_moment_of_the_lead(0.5)
    with pytest.raises(AssertionError):
        check_second_moment_of_the_lead(1.0, apart=0.5)


def check_lists_held_in_a_block(seen_with):
    """A block of two rounds: what the other half does may depend on the list that is held."""
    m, k, floor, rate = 3, 1, 0.3, 0.7
    weights, totals = WEIGHTS["DCG"](m), np.array([0.4, 0.0, 1.1])
    gains = [np.array([1.0, 0.0, 1.0]), np.array([0.0, 1.0, 0.2])]
    x, best = mean_weights(weights, rate * totals), by_item(weights, (0, 2, 1))
    real = claimed = 0.0
    for held, of_list in list_chances(rate * totals):
        sums = np.zeros(m)
        first = (held[::-1], 0.2 + 0.2 * held[0], gains[0] * 0.5)
        for shown, likely in rounds_of(held, *first[:2], floor, k):
            c = corrections(shown, k, gains[0], first[2], seen_with(held, *first[:2], floor, k))
            trust = 0.9 if shown[0] == held[0] else 0.3
            second = (tuple(np.roll(shown, 1).tolist()), trust, np.abs(first[2] - 0.1 * held[1]))
            sums += likely * (first[2] + c)
            for later, then in rounds_of(held, *second[:2], floor, k):
                p = seen_with(held, *second[:2], floor, k)
                sums += likely * then * (second[2] + corrections(later, k, gains[1], second[2], p))
        assert sums == pytest.approx(gains[0] + gains[1], abs=1e-12)
        real += of_list * (best - by_item(weights, held)) @ (gains[0] + gains[1])
        claimed += of_list * (best - x) @ sums
    assert claimed == pytest.approx(real, abs=1e-12)


def test_9_estimates_are_unbiased_given_the_list_that_is_held():
    check_lists_held_in_a_block(chances)

    def marginal(held, other, trust, floor, k):
        scores = 0.7 * np.array([0.4, 0.0, 1.1])
        return sum(q * chances(a, other, trust, floor, k) for a, q in list_chances(scores))

    with pytest.raises(AssertionError):  # chances before the list was drawn are not enough
        check_lists_held_in_a_block(marginal)
