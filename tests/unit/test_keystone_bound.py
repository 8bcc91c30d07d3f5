"""The bound of keystone's theorem, and whether its code is what the theorem speaks of."""

import math

import numpy as np
import pytest

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
from keyhole.errors import InvalidInput
from keyhole.lab.lines import LINES
from keyhole.rankers import Keystone
from tests.unit.keystone_theorem import chance_in, mean_weights

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


def test_the_parts_by_hand():
    """Two items whose weights are 1 and 0, one of which is seen: every constant is simple."""
    c = constants("Precision@1", 2, floor_rate=0.5, block=3, prior=math.exp(-1.0))
    assert (c.spread, c.reach, c.squares, c.at_k, c.gain) == (1.0, 1.0, 2.0, 1.0, 1.0)
    assert c.penalty == pytest.approx(math.log(3.0))
    assert c.weight == pytest.approx(0.5 / math.e)
    assert c.drift == pytest.approx(4 * 1 / 4 + 2 * 2 / (2 * math.e))
    assert c.first == pytest.approx(0.5 / math.e * 16)
    floor, mix, safe = safety_parts(c, 8.0)
    inverse = (0.75 * 16 + 2) / 0.5
    assert floor == pytest.approx(1.5 * 0.5 * 0.5 * 4)
    outliers = 2 + 2 * math.sqrt(2)
    leads = math.sqrt(1 + 8 + 2 * 2 * inverse)
    assert mix == pytest.approx((9 + math.sqrt(2)) / 8 * leads + outliers * (1 + 2 * 2 / 0.5))
    rate = math.sqrt(c.penalty / c.first)
    variance = c.first + 8 * c.drift + c.weight * (2 * inverse + 2 * 8 / 0.5)
    assert safe == pytest.approx(
        (2 + math.sqrt(2)) * math.sqrt(c.penalty * variance)
        + 2 * math.sqrt(8 * c.penalty * c.drift)
        + 3 * c.drift * rate
        + 2 * c.weight * (2 * 2 / 0.5 + 2 / 0.5) * rate
        + outliers * 2 * 2 / 0.5
    )
    assert safety_bound(c, 8.0) == floor + mix + safe
    share = math.log(1 / (1 - math.exp(-1))) + (1 + math.sqrt(2)) / 8
    price = floor + share * leads + outliers * (1 + 2 * 2 / 0.5)
    assert price_bound(c, 8.0) == pytest.approx(price)


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
    with pytest.raises(InvalidInput, match="`rounds` must be a number of at least 1"):
        safety_bound(constants("DCG", 6), 0.0)


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


def test_the_safe_list_is_drawn_by_its_rate_and_anew_in_every_block():
    """How often items are first in many blocks is what sorted Gumbel noise says."""
    ranker, n_blocks = Keystone(3), 4000
    ranker.state.estimates[:] = 0.0, 40.0, 90.0
    ranker.state.numbers[LEAD] = 1e9  # the safe half is always played
    rate = math.sqrt(ranker.params.penalty / ranker.params.first)
    first = [int(ranker.rank(round=16 * block + 10**13).ranking[0]) for block in range(n_blocks)]
    expected = mean_weights(np.array([1.0, 0.0, 0.0]), rate * ranker.state.estimates)
    found = np.bincount(first, minlength=3) / n_blocks
    assert np.abs(found - expected).max() < 5.0 * 0.5 / math.sqrt(n_blocks)
    assert expected.max() - expected.min() > 10.0 * 0.5 / math.sqrt(n_blocks)
