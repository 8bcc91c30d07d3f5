"""Steps (1) to (6) of docs/adaptive-ftpl.md, by exact potentials, and the code they are about.

Each check takes what it claims as an argument, passes with the claim of the page, and fails with a
smaller constant.
"""

import itertools
import math
from collections import Counter

import numpy as np
import pytest

from keyhole.bounds.adaptive_ftpl import (
    AdaptiveConstants,
    bound_after,
    constants,
    movement,
    regret_bound,
)
from keyhole.rankers.fixed.adaptive_ftpl import AdaptiveFTPL
from tests.unit.keystone_theorem import (
    WEIGHTS,
    bregman,
    by_item,
    list_chances,
    mean_weights,
    potential,
    slopes,
)

pytestmark = pytest.mark.interpreted


def constants_of(weights):
    """Return c0, b and v0 as the page has them."""
    m, least = len(weights), weights[-1]
    return AdaptiveConstants(
        sum((weights[p] - least) * math.log((m + 1) / (p + 1)) for p in range(m)),
        (weights[0] - least) / (2 * math.e),
        sum(weights - least) / 4,
        1.0,
    )


def moved_by(c, r):
    """Return v(r) in plain Python."""
    low, high = min(r), max(r)
    from_low, from_high = (sum((each - end) ** 2 for each in r) for end in (low, high))
    return min(c.first * (high - low) ** 2, c.slope * from_low, c.slope * from_high)


def games(m):
    """Yield scores and gains: level and apart, with few liked and many, of two grades and more."""
    numbers = np.random.default_rng(m)
    for case in range(30):
        scores = numbers.normal(0.0, (0.0, 0.5, 2.0)[case % 3], m)
        n_liked = case % (m + 1)
        gains = (numbers.permutation(m) < n_liked).astype(float)
        yield scores, gains * (numbers.random(m) if case % 2 else 1.0)
        yield scores, 1.0 - gains * (numbers.random(m) if case % 2 else 1.0)


def test_1_the_mean_of_what_is_shown():
    for make, (scores, gains) in itertools.product(WEIGHTS.values(), [*games(4)][:8]):
        weights = make(4)
        shown = sum(q * by_item(weights, order) @ gains for order, q in list_chances(scores))
        assert shown == pytest.approx(mean_weights(weights, scores) @ gains, abs=1e-10)


def crowds(weights, rounds):
    """Yield functions of the past that choose gains: kind, unkind and reacting ones."""
    m, numbers = len(weights), np.random.default_rng(7)
    likes = np.linspace(0.9, 0.1, m)
    table = numbers.random((rounds, m))
    yield lambda t, *_: (table[t] < likes).astype(float)
    yield lambda t, *_: table[t] * (likes if t < rounds // 3 else likes[::-1])
    yield lambda t, *_: (np.arange(m) % 2 == t % 2).astype(float)
    yield lambda _t, totals, _x: (np.arange(m) == np.argmin(totals)).astype(float)
    yield lambda _t, _totals, x: (x <= np.median(x)).astype(float)
    yield lambda t, *_: (table[t] < 0.02).astype(float)


def play(weights, gains_of, rounds):
    """Return regret, the sum of all D, the last rate, V, and the largest D over rate times v."""
    c, m = constants_of(weights), len(weights)
    totals, moved, gained, excess, ratios = np.zeros(m), 0.0, 0.0, 0.0, []
    for t in range(rounds):
        rate = math.sqrt(c.penalty / (2 * (c.first + moved)))
        x = mean_weights(weights, rate * totals)
        r = gains_of(t, totals, x)
        gained += x @ r
        rise = bregman(weights, totals, r, rate)
        excess += rise
        v = moved_by(c, r)
        ratios.append(rise / (rate * v) if v > 0 else 0.0)
        totals, moved = totals + r, moved + v
    best = float(np.sort(weights)[::-1] @ np.sort(totals)[::-1])
    return best - gained, excess, rate, moved, max(ratios)


@pytest.fixture(scope="module")
def played():
    return [
        (constants_of(make(m)), potential(make(m), np.zeros(m)), *play(make(m), crowd, 150))
        for m, make in itertools.product((2, 4), WEIGHTS.values())
        for crowd in crowds(make(m), 150)
    ]


def check_regret(played, share):
    for c, _, regret, excess, rate, _, _ in played:
        assert regret <= share * (c.penalty / rate + excess) + 1e-9


def test_2_regret_is_the_penalty_and_what_lies_over_the_tangents(played):
    check_regret(played, 1.0)
    assert all(exact <= c.penalty for c, exact, *_ in played)
    with pytest.raises(AssertionError):
        check_regret(played, 0.5)


def check_curvature(half=0.5, e=math.e, total=1.0):
    for m, make in itertools.product((2, 3, 5), WEIGHTS.values()):
        weights = make(m)
        spread, whole = weights[0] - weights[-1], sum(weights - weights[-1])
        for scores, gains in games(m):
            H = slopes(weights, scores)
            by_pairs = sum(
                -H[i, j] * (gains[i] - gains[j]) ** 2
                for i, j in itertools.combinations(range(m), 2)
            )
            assert gains @ H @ gains == pytest.approx(by_pairs, abs=1e-10)
            assert H.sum(axis=1) == pytest.approx(np.zeros(m), abs=1e-10)
            assert (H[~np.eye(m, dtype=bool)] <= 1e-10).all()
            assert H.diagonal().max() <= spread / e + 1e-10
            assert H.trace() <= total * whole + 1e-10
            way = (slopes(weights, scores + step * gains) for step in np.linspace(0.0, 1.0, 21))
            steepest = max(gains @ each @ gains for each in way)
            assert bregman(weights, scores, gains, 1.0) <= half * steepest * 1.001 + 1e-9


def test_3_curvature():
    check_curvature()
    for smaller in ({"half": 0.45}, {"e": 5.0}, {"total": 0.6}):
        with pytest.raises(AssertionError):
            check_curvature(**smaller)


def check_movement(range_share=1.0, square_share=1.0):
    for m, make in itertools.product((2, 3, 6), WEIGHTS.values()):
        weights = make(m)
        c = constants_of(weights)
        c = c._replace(first=range_share * c.first, slope=square_share * c.slope)
        for (scores, gains), rate in itertools.product(games(m), (0.3, 3.0)):
            assert bregman(weights, scores / rate, gains, rate) <= rate * moved_by(c, gains) + 1e-9


def test_4_a_round_moves_the_leader_by_no_more():
    check_movement()
    for smaller in ({"range_share": 0.45}, {"square_share": 0.45}):
        with pytest.raises(AssertionError):
            check_movement(**smaller)


def check_sum(factor):
    numbers = np.random.default_rng(5)
    for case in range(40):
        v = numbers.random(400) ** (1 + case % 5) if case % 2 else np.ones(400 * (case + 1))
        sums = np.cumsum(v)
        assert (v / np.sqrt(1.0 + sums - v)).sum() <= factor * math.sqrt(sums[-1]) + 1e-9


def test_5_rates_that_fall_with_what_has_moved():
    check_sum(2.0)
    with pytest.raises(AssertionError):
        check_sum(1.9)


def check_theorem(played, share):
    for c, _, regret, _, _, moved, largest in played:
        tight = math.sqrt(2 * c.penalty) * (math.sqrt(c.first + moved) + math.sqrt(moved))
        assert regret <= share * tight
        assert tight <= bound_after(c, moved) * (1 + 1e-12)
        assert largest <= 1.0


def test_6_the_theorem(played):
    check_theorem(played, 1.0)
    with pytest.raises(AssertionError):
        check_theorem(played, 0.3)


def test_constants_movement_and_bound_by_hand():
    for measure, weights, grade, gain in (
        ("DCG", [1 / math.log2(p + 2) for p in range(4)], 2, 3),
        ("SumLoss", [-1.0, -2.0, -3.0, -4.0], 1, 1),
    ):
        c, own = constants(measure, 4, grade), constants_of(np.array(weights))
        assert c == pytest.approx(own._replace(gain=gain))
        for _, r in games(4):
            assert movement(c, r) == pytest.approx(moved_by(own, r), abs=1e-12)
            assert movement(c, r) <= min(c.first, c.slope * min(sum(r), sum(1 - r))) + 1e-12
        assert bound_after(c, 7.0) == pytest.approx(
            gain * 2 * math.sqrt(2 * own.penalty * (own.first + 7))
        )
        assert regret_bound(c, 30.0) == pytest.approx(
            gain * 2 * math.sqrt(2 * own.penalty * own.first * 31)
        )
    assert regret_bound(constants("Precision@4", 4), 1e6) == 0.0


def check_drawn_lists(scale):
    """The lists of many rounds, and all that an update adds, are those of the page."""
    numbers, n_rounds, m = np.random.default_rng(1), 4000, 3
    ranker, c = AdaptiveFTPL(m, max_grade=2), constants("DCG", m)
    totals, moved = np.zeros(m), 0.0
    for _ in range(40):
        shown = ranker.rank()
        grades = numbers.integers(0, 3, m)
        ranker.update(shown, grades[shown.ranking])
        gains = (2.0**grades - 1) / 3
        totals, moved = totals + gains, moved + moved_by(c, gains)
        assert ranker.state.scores == pytest.approx(totals)
        assert ranker.state.moved[0] == pytest.approx(moved)
    rate = scale * math.sqrt(c.penalty / (2 * (c.first + moved)))
    drawn = Counter(tuple(ranker.rank(round=40 + t).ranking.tolist()) for t in range(n_rounds))
    for order, likely in list_chances(rate * totals):
        error = math.sqrt(likely * (1 - likely) / n_rounds)
        assert abs(drawn[order] / n_rounds - likely) < 4 * error


def test_the_ranker_draws_lists_by_the_rate_of_the_theorem():
    check_drawn_lists(1.0)
    with pytest.raises(AssertionError):
        check_drawn_lists(0.6)
