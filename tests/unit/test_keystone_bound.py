"""The bound of keystone's theorem, and whether its code is what the theorem speaks of."""

import math
from collections import Counter

import numpy as np
import pytest

from keyhole.base.errors import InvalidInput
from keyhole.bounds import ftpl
from keyhole.bounds.keystone import (
    constants,
    leading_constant,
    position_weights,
    price_bound,
    safety_bound,
    safety_parts,
)
from keyhole.bounds.regrets import largest_regret, regret_bounds
from keyhole.lab.bound_lines import LINES
from keyhole.rankers.fixed.keystone import Keystone
from tests.unit.keystone_theorem import chance_in, list_chances

VARIANCE, LEAD, LEAD_SQUARES = 0, 1, 2


@pytest.mark.parametrize(
    ("items", "k", "leading"),
    [(20, 1, 199.2), (20, 2, 275.8), (20, 5, 295.2), (10, 1, 82.05), (100, 1, 1534.3)],
)
def test_leading_constants(items, k, leading):
    c = constants("DCG", items, k)
    assert leading_constant(c) == pytest.approx(leading, rel=1e-3)
    rounds = 1e18
    assert safety_bound(c, rounds) / rounds ** (2 / 3) == pytest.approx(leading, rel=0.01)


def by_hand(d, k, T, g, L, prior):
    """Return FLOOR, MIX, SAFE, the leading constant and the price, as the page has them."""
    m, root, l = len(d), math.sqrt, math.log(1 / prior)  # noqa: E741
    spread, total = d[0] - d[-1], sum(d) - m * d[-1]
    c0 = sum((d[p] - d[-1]) * math.log((m + 1) / (p + 1)) for p in range(m))
    a = spread / (2 * math.e) if k == 1 else spread / math.e
    kappa = (L + 1) * total / 4 + (L - 1) * m * spread / (2 * math.e)
    first = a * (m / g) ** 2
    reach = sum(max(d[p] - d[m - 1 - p], 0) for p in range(m))
    squares = sum((d[p] - d[m - 1 - p]) ** 2 for p in range(m))
    inverse = (0.75 * T ** (4 / 3) + T ** (1 / 3)) / g
    n_last = m * (m - k) * T ** (1 / 3) / g + 2 * k / (1 - g)
    outliers = (2 + 2 * root(2)) * (reach + k * spread * m * T ** (1 / 3) / g)
    leads = root(1 + reach**2 * T + k * squares * m * inverse)
    floor = 1.5 * g * (1 - k / m) * (d[k - 1] - d[-1]) * T ** (2 / 3)
    mix = (9 + root(2)) / 8 * root(l) * leads + outliers
    grown = first + kappa * T + a * (m * (m - k) * inverse + 2 * k * T / (1 - g))
    safe = (2 + root(2)) * root(c0 * grown) + 2 * root(c0 * kappa * T)
    safe += kappa * L * root(c0 / first) + (L - 1) * a * n_last * root(c0 / first)
    safe += (2 + 2 * root(2)) * spread * k * m * T ** (1 / 3) / g
    leading = floor / T ** (2 / 3) + (2 + root(2)) * root(3 * c0 * a * m * (m - k) / (4 * g))
    leading += (9 + root(2)) / 8 * root(3 * l * k * squares * m / (4 * g))
    share = math.log(1 / (1 - prior)) / root(l) + root(l) * (1 + root(2)) / 8
    return floor, mix, safe, leading, floor + share * leads + outliers


@pytest.mark.parametrize("k", [1, 2, 3])
@pytest.mark.parametrize(("measure", "grade", "gain"), [("DCG", 2, 3), ("SumLoss", 1, 1)])
def test_the_parts_by_hand(measure, grade, gain, k):
    weights = {
        "DCG": [1 / math.log2(place + 2) for place in range(4)],
        "SumLoss": [-1, -2, -3, -4],
    }[measure]
    free = (0.3, 5, 0.2)
    c = constants(measure, 4, k, grade, floor_rate=0.3, block=5, prior=0.2)
    *parts, leading, price = (gain * value for value in by_hand(weights, k, 50, *free))
    assert safety_parts(c, 50) == pytest.approx(tuple(parts))
    assert safety_bound(c, 50) == pytest.approx(sum(parts))
    assert leading_constant(c) == pytest.approx(leading)
    assert price_bound(c, 50) == pytest.approx(price)


def test_grades_scale_the_bound_and_equal_weights_cost_next_to_nothing():
    one, four = (safety_bound(constants("DCG", 6, max_grade=g), 1e5) for g in (1.0, 2.0))
    assert four == pytest.approx(3.0 * one)
    assert safety_bound(constants("Precision@6", 6), 1e9) < 5.0
    assert constants("SumLoss", 5, k=5).at_k == 0.0


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"measure": "NDCG"}, "measure must have gains per item"),
        ({"k": 7}, "`k` must be an integer between 1 and n_items=6, got 7"),
        ({"floor_rate": 0.6}, "`floor_rate` must be a number above 0.0 and at most 0.5"),
        ({"prior": 0.0}, "`prior` must be a number above 0.0"),
        ({"block": 0}, "`block` must be an integer of at least 1"),
    ],
)
def test_what_has_no_theorem_is_refused(given, sentence):
    with pytest.raises(InvalidInput, match=sentence):
        constants(**{"measure": "DCG", "n_items": 6, **given})
    for bound in (safety_bound, price_bound):
        assert bound(constants("DCG", 6), 1.0) > 0.0
        with pytest.raises(InvalidInput, match="`rounds` must be a number of at least 1"):
            bound(constants("DCG", 6), 0.99)


def test_bounds_side_by_side():
    found = {row.ranker: row for row in regret_bounds("SumLoss", 5, 1000, k=2, max_grade=1)}
    assert [row.value for row in found.values()] == sorted(row.value for row in found.values())
    assert found["keystone"].value == safety_bound(constants("SumLoss", 5, 2), 1000)
    of_ftpl = ftpl.constants("SumLoss", 5)
    assert found["rtopk"].value == ftpl.top_k_bound(of_ftpl, 3, 1000)
    assert found["rtopk, tight=True"].value < found["rtopk"].value
    assert found["ftpl"].value == ftpl.full_information_bound(of_ftpl, 1000)
    assert {row.sees for row in found.values()} == {"top 2", "all"}
    assert largest_regret("DCG", 2, 10, max_grade=2) == pytest.approx(30 * (1 - 1 / math.log2(3)))
    line = LINES["safety-bound"](np.array([10, 1000]), items=5, top=2, measure="SumLoss")
    assert line[1] == found["keystone"].value / 1000
    assert line[0] > line[1]


@pytest.mark.parametrize("measure", ["DCG", "SumLoss", "Precision@3", "PairwiseLoss"])
@pytest.mark.parametrize("k", [1, 2, 6])
def test_the_ranker_is_tuned_as_the_theorem_says(measure, k):
    params, c = Keystone(6, k=k, measure=measure).params, constants(measure, 6, k)
    assert (params.penalty, params.weight, params.drift, params.first) == pytest.approx(
        (c.penalty, c.weight, c.drift, c.first)
    )
    assert params.weights == pytest.approx(position_weights(measure, 6))
    assert params.largest_gain == c.gain == ftpl.largest_gain(measure)


def trust_of(numbers):
    """Return how likely the safe half is to be played."""
    rate = math.sqrt(math.log(100.0) / (1.0 + numbers[LEAD_SQUARES]))
    return 1.0 / (1.0 + 99.0 * math.exp(-rate * numbers[LEAD]))


def check_rounds(rounds=400, m=4, k=2, *, fed=1.0):
    """Every round's note, and all that an update adds, by the formulas of the theorem."""
    ranker, numbers = Keystone(m, k=k), np.random.default_rng(0)
    ranker.params = ranker.params._replace(weight=fed * ranker.params.weight)
    c, weights = constants("DCG", m, k), position_weights("DCG", m)
    for t in range(rounds):
        before = {name: array.copy() for name, array in ranker.state._asdict().items()}
        mean, floor = before["mean"], 0.1 * (t + 1.0) ** (-1 / 3)
        shown = ranker.rank()
        values = (numbers.random(k) < 0.3 + 0.4 * (shown.ranking[:k] < 2)).astype(float)
        ranker.update(shown, values)
        after = ranker.state._asdict()
        held = (before if t else after)["held"].tolist()
        if (t + 1) % 16:  # the last round of a block ends with the list of the next
            assert after["held"].tolist() == held
        top, p, noted = shown.ranking[:k], shown.note[:k], shown.note[k : 2 * k]
        ahead = shown.note[2 * k : 3 * k]
        assert noted == pytest.approx(mean[top])
        there = np.argsort(held)[top]
        here = [int(np.argmin(np.abs(weights - w))) for w in weights[there] - ahead]
        by_place = chance_in(tuple(range(m)), floor, k)
        trust = trust_of(before["numbers"])
        assert p == pytest.approx(trust * by_place[there] + (1.0 - trust) * by_place[here])
        c_t = (values - noted) / p
        estimates = before["estimates"] + mean
        estimates[top] += c_t
        assert after["estimates"] == pytest.approx(estimates)
        grown = after["numbers"] - before["numbers"]
        assert grown[VARIANCE] == pytest.approx(c.weight * c_t @ c_t + c.drift)
        lead = shown.note[3 * k] + c_t @ ahead
        assert grown[LEAD] == pytest.approx(lead)
        assert grown[LEAD_SQUARES] == pytest.approx(lead * lead)
        if t:  # the audited list is in the order of the means, but for one item that may be lifted
            order = before["order"].tolist()
            lists = [order] + [
                [*order[: k - 1], order[place], *order[k - 1 : place], *order[place + 1 :]]
                for place in range(k, m)
            ]
            assert mean[order].tolist() == sorted(mean, reverse=True)
            assert any(
                [audited.index(item) for item in top] == here
                and shown.note[3 * k] == pytest.approx(weights @ (mean[held] - mean[audited]))
                for audited in lists
            )


def test_every_round_is_one_of_the_theorem():
    check_rounds()
    with pytest.raises(AssertionError):
        check_rounds(rounds=20, fed=0.5)


def check_drawn_lists(scale):
    """How often each list is drawn, in many blocks, is what sorted Gumbel noise says."""
    ranker, n_blocks = Keystone(3), 8000
    ranker.state.estimates[:] = 0.0, 8.0, 30.0
    ranker.state.numbers[LEAD] = 1e9  # the safe half is always played
    rate = scale * math.sqrt(ranker.params.penalty / constants("DCG", 3).first)
    far = 10**13  # where the floor hardly ever lifts
    drawn = Counter(
        tuple(ranker.rank(round=far + 16 * block).ranking.tolist()) for block in range(n_blocks)
    )
    for order, likely in list_chances(rate * ranker.state.estimates):
        error = math.sqrt(likely * (1.0 - likely) / n_blocks)
        assert abs(drawn[order] / n_blocks - likely) < 4.0 * error, order


def test_the_safe_list_is_drawn_by_its_rate_and_anew_in_every_block():
    check_drawn_lists(1.0)
    with pytest.raises(AssertionError):
        check_drawn_lists(0.8)


def test_late_feedback_meets_the_means_of_its_arrival():
    """All items get one estimate, of which the correction must be of the same mean."""
    ranker = Keystone(4, k=2)
    shown = [ranker.rank() for _ in range(60)]
    for impression in shown[1:]:
        ranker.update(impression, [1.0, 0.0])
    mean, before = ranker.state.mean.copy(), ranker.state.estimates.copy()
    top, p = shown[0].ranking[:2], shown[0].note[:2]
    ranker.update(shown[0], [1.0, 0.0])
    expected = before + mean
    expected[top] += (np.array([1.0, 0.0]) - mean[top]) / p
    assert ranker.state.estimates == pytest.approx(expected)
    assert not np.allclose(mean[top], shown[0].note[2:4])
