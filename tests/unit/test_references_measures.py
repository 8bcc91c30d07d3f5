"""Every measure is its definition, written out by pairs and positions, on whole sets of lists."""

import math
from typing import Any

import numpy as np
import pytest

from keyhole.contracts.measures import measure_work
from keyhole.measures import MEASURES, measure
from keyhole.measures.linear import LinearMeasure
from tests.unit.references import all_lists, auc_loss, dcg, ndcg, orders, sum_loss


def pairs_of(values):
    return [(values[i], values[j]) for i in range(len(values)) for j in range(i + 1, len(values))]


def cut_ap(shown, n):
    hits = np.cumsum(shown > 0)
    total = sum(hits[p] / (p + 1) for p in range(min(n, len(shown))) if shown[p] > 0)
    return total / hits[-1] if hits[-1] else 1.0


def err(shown, n):
    total, reach = 0.0, 1.0
    for position, grade in enumerate(shown[:n]):
        stop = (2**grade - 1) / 2**4
        total += reach * stop / (position + 1)
        reach *= 1 - stop
    return total


def rr(shown, n):
    return next((1 / (p + 1) for p, grade in enumerate(shown[:n]) if grade > 0), 0.0)


def recall(shown, n):
    return (shown[:n] > 0).sum() / (shown > 0).sum() if (shown > 0).any() else 1.0


UNCUT: dict[str, Any] = {
    "SumLoss": sum_loss,
    "PairwiseLoss": lambda r, order: sum(above < below for above, below in pairs_of(r[order])),
    "InversionLoss": lambda r, order: sum(
        max(below - above, 0) for above, below in pairs_of(r[order])
    ),
    "AUC": lambda r, order: auc_loss((r > 0).astype(float), order),
}
CUT: dict[str, Any] = {
    "DCG": dcg,
    "NDCG": ndcg,
    "NDCGLoss": lambda r, order, n: 1 - ndcg(r, order, n),
    "Precision": lambda r, order, n: r[order][:n].sum(),
    "AP": lambda r, order, n: cut_ap(r[order], n),
    "APLoss": lambda r, order, n: 1 - cut_ap(r[order], n),
    "ERR": lambda r, order, n: err(r[order], n),
    "RR": lambda r, order, n: rr(r[order], n),
    "Recall": lambda r, order, n: recall(r[order], n),
}
assert {*UNCUT, *CUT} <= set(MEASURES)  # every row: test_monitoring_games, by its `exact`


def lists_and_orders():
    """All lists of three items with three grades in all orders, and longer ones at random."""
    for relevance in all_lists(3, 3):
        for order in orders(3):
            yield relevance, np.array(order)
    numbers = np.random.default_rng(0)
    for _ in range(12):
        n_items = int(numbers.integers(5, 10))
        grades = numbers.integers(0, 5, size=n_items).astype(float)
        yield grades, numbers.permutation(n_items)
        yield numbers.integers(0, 2, size=n_items).astype(float), numbers.permutation(n_items)
        yield numbers.random(n_items) * 4, numbers.permutation(n_items)


@pytest.mark.parametrize("name", UNCUT)
def test_measures_by_definition(name):
    judge = measure(name)
    for relevance, order in lists_and_orders():
        expected = UNCUT[name](relevance, order)
        assert judge(relevance, order) == pytest.approx(expected, rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("name", CUT)
def test_measures_with_a_cutoff_by_definition(name):
    for cutoff in (None, 1, 2, 5, 20):
        judge = measure(name if cutoff is None else f"{name}@{cutoff}")
        for relevance, order in lists_and_orders():
            expected = CUT[name](relevance, order, cutoff or len(order))
            assert judge(relevance, order) == pytest.approx(expected, rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("name", MEASURES)
def test_kernels_for_two_grades_give_the_same(name):
    judge = measure(name)
    kernel = judge.kernel_for(True)
    for relevance in all_lists(4):
        for order in orders(4)[::5]:
            value, gains = judge(relevance, order), np.empty(4)
            params = judge.params(4)
            offset, norm = kernel.prepare(params, relevance, gains, measure_work(4))
            shown = kernel.score(params, gains, offset, norm, np.array(order))
            assert shown == pytest.approx(value, abs=1e-12)


def test_facts_of_measures():
    """Losses; linear with two grades, with more; gains per item; 2^r - 1; empty lists."""
    facts = {
        name: (
            one.is_loss, one.is_linear(True), one.is_linear(False), one.is_gain_per_item(1.0),
            one.is_gain_per_item(2.0), one.exponential_gain, one.empty,
        )
        for name, one in ((name, measure(name)) for name in MEASURES)
    }  # fmt: skip
    assert facts == facts | {
        "SumLoss": (True, True, True, True, True, False, None),
        "PairwiseLoss": (True, True, False, True, False, False, None),
        "InversionLoss": (True, True, True, True, True, False, None),
        "DCG": (False, True, True, True, True, True, None),
        "NDCG": (False, True, True, False, False, True, 1.0),
        "Precision": (False, True, True, True, True, False, None),
        "AP": (False, False, False, False, False, False, 1.0),
        "AUC": (True, True, True, False, False, False, 0.0),
        "ERR": (False, False, False, False, False, False, None),
        "RR": (False, False, False, False, False, False, 0.0),
        "Recall": (False, True, True, False, False, False, 1.0),
        "NDCGLoss": (True, True, True, False, False, True, 1.0),
        "APLoss": (True, False, False, False, False, False, 1.0),
    }
    assert measure("ERR").max_grade == 4.0
    assert measure("DCG").max_grade == 1000.0
    assert measure("SumLoss").max_grade == math.inf


def test_linear_measures_by_definition():
    """Falling weights are a gain, rising ones a loss; so are equal ones a gain."""
    for weights, is_loss in (([5, 3, 3, 0, -1], False), ([0, 1, 4, 4, 9], True), ([2] * 5, False)):
        for gain in ("identity", "exponential"):
            judge = LinearMeasure(weights, gain=gain)
            assert judge.is_loss == is_loss
            assert judge.exponential_gain == (gain == "exponential")
            relevance, order = np.array([2.0, 0.0, 1.0, 3.0, 1.0]), [3, 1, 0, 4, 2]
            gains = 2**relevance - 1 if gain == "exponential" else relevance
            assert judge(relevance, order) == (np.array(weights) * gains[order]).sum()
