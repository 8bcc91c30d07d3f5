"""The measures agree with other people's libraries on 10,000 random lists.

Grades are 0 to 4, about half of them 0; one list in twenty has no relevant item. Conventions:
NDCG has gain 2^r - 1 and discount 1/log2(1 + p); ERR has stops (2^r - 1)/2^4 and discount
1/p; all others take an item of positive grade as relevant, with discount 1 (Precision,
Recall), 1/p at the first relevant item (RR) or precision at p (AP).
"""

from fractions import Fraction

import ir_measures
import numpy as np
import pytest
from ranx import metrics as ranx_metrics
from sklearn.metrics import ndcg_score, roc_auc_score

from keyhole import measure

LENGTHS = (1, 2, 3, 5, 8, 10, 11, 20, 40, 60)
LISTS_PER_LENGTH = 1000
TOLERANCE = 1e-12


def _lists(n_items: int):
    rng = np.random.default_rng(n_items)
    shape = (LISTS_PER_LENGTH, n_items)
    relevance = rng.integers(0, 5, shape) * (rng.random(shape) < 0.6)
    relevance[rng.random(LISTS_PER_LENGTH) < 0.05] = 0
    return relevance, rng.permuted(np.tile(np.arange(n_items), (LISTS_PER_LENGTH, 1)), axis=1)


@pytest.fixture(scope="module")
def lists():
    return {n_items: _lists(n_items) for n_items in LENGTHS}


@pytest.fixture(scope="module")
def as_dicts(lists):
    """Return judgements and run as evaluation tools take them, with distinct scores."""
    judged, run = {}, {}
    for n_items, (relevance, rankings) in lists.items():
        for row, (grades, ranking) in enumerate(zip(relevance, rankings, strict=True)):
            key = f"{n_items}/{row}"
            judged[key] = {str(item): int(grade) for item, grade in enumerate(grades)}
            run[key] = {str(item): float(n_items - p) for p, item in enumerate(ranking)}
    return judged, run


def compare(name: str, lists, theirs, divisor=1, **options) -> None:
    """Compare lists with a relevant item with ``theirs``, the others with the empty rule."""
    of = measure(name, **options)
    n_compared = n_empty = 0
    for n_items, (relevance, rankings) in lists.items():
        ours = of.many(relevance, rankings) / divisor
        empty = ~(relevance > 0).any(axis=1)
        expected = np.where(empty, 0.0 if of.empty is None else of.empty, theirs(n_items))
        np.testing.assert_allclose(ours, expected, rtol=0, atol=TOLERANCE)
        n_compared += int(np.count_nonzero(~empty))
        n_empty += int(np.count_nonzero(empty))
    assert n_compared + n_empty == LISTS_PER_LENGTH * len(LENGTHS) == 10_000
    assert n_empty > 300


@pytest.fixture(scope="module")
def tool_values(as_dicts):
    """Return what ir_measures (pytrec_eval, msmarco) says of every list."""
    wanted = [ir_measures.parse_measure(m) for m in ("AP", "AP@10", "RR", "P@5", "P@20", "R@5")]
    providers = ir_measures.providers.registry
    values = [
        *providers["pytrec_eval"].iter_calc(wanted, *as_dicts),
        *providers["msmarco"].iter_calc([ir_measures.parse_measure("RR@10")], *as_dicts),
    ]
    return {(str(metric.measure), metric.query_id): metric.value for metric in values}


@pytest.mark.parametrize(
    ("name", "theirs", "divisor"),
    [
        ("AP", "AP", 1),
        ("AP@10", "AP@10", 1),
        ("RR", "RR", 1),
        ("RR@10", "RR@10", 1),
        ("Recall@5", "R@5", 1),
        ("Precision@5", "P@5", 5),
        ("Precision@20", "P@20", 20),
    ],
)
def test_against_ir_measures(name, theirs, divisor, lists, tool_values):
    """Ours is a count of relevance for Precision: made binary and divided by n to compare."""
    if name.startswith("Precision"):
        lists = {n: (relevance > 0, rankings) for n, (relevance, rankings) in lists.items()}

    def values(n_items: int):
        # The tools leave lists out of which nothing is known; they are compared with our rule.
        keys = [(theirs, f"{n_items}/{row}") for row in range(LISTS_PER_LENGTH)]
        return np.array([tool_values.get(key, np.nan) for key in keys])

    compare(name, lists, values, divisor)


@pytest.mark.parametrize(("name", "cutoff"), [("NDCG", 0), ("NDCG@10", 10), ("NDCG@1", 1)])
def test_ndcg_against_ranx(name, cutoff, lists):
    """Gain 2^r - 1, discount 1/log2(1 + p); ranx gives empty lists 0."""

    def values(n_items: int):
        relevance, rankings = lists[n_items]
        best = np.argsort(-relevance, axis=1, kind="stable")
        grades = np.take_along_axis(relevance, best, axis=1)
        judged = np.stack([best, grades], axis=2).astype(np.float64)
        scores = np.broadcast_to(np.arange(n_items, 0, -1), rankings.shape)
        run = np.stack([rankings, scores], axis=2).astype(np.float64)
        return ranx_metrics.ndcg_burges(judged, run, cutoff)

    compare(name, lists, values)
    compare(name, lists, values, empty=0)


@pytest.mark.parametrize(("name", "cutoff"), [("NDCG", None), ("NDCG@10", 10)])
def test_ndcg_against_scikit_learn(name, cutoff, lists):
    """Gain 2^r - 1 handed over as the relevance, discount 1/log2(1 + p)."""
    for n_items in (5, 20, 60):
        relevance, rankings = (array[:300] for array in lists[n_items])
        full = (relevance > 0).any(axis=1)
        scores = -np.argsort(rankings, axis=1)
        for row in np.flatnonzero(full):
            gains = [2.0 ** relevance[row] - 1]
            expected = ndcg_score(gains, [scores[row]], k=cutoff)
            ours = measure(name)(relevance[row], rankings[row])
            assert abs(ours - expected) <= TOLERANCE


@pytest.mark.parametrize("cutoff", [None, 1, 5, 20])
def test_err_against_exact_fractions(cutoff, lists):
    """Stops (2^r - 1)/2^4, discount 1/p.

    The only tool at hand that computes ERR (gdeval, through ir_measures) prints five digits
    and needs perl, so the peer is the definition itself in exact arithmetic.
    """

    def exactly(grades) -> float:
        total, reach = Fraction(0), Fraction(1)
        for position, grade in enumerate(grades[:cutoff].tolist(), start=1):
            stop = Fraction(2**grade - 1, 16)
            total += reach * stop / position
            reach *= 1 - stop
        return float(total)

    def values(n_items: int):
        relevance, rankings = lists[n_items]
        shown = np.take_along_axis(relevance, rankings, axis=1)
        return np.array([exactly(grades) for grades in shown])

    compare("ERR" if cutoff is None else f"ERR@{cutoff}", lists, values)


def test_auc_against_scikit_learn(lists):
    """Ours is a loss: one less the area under the ROC curve; 0 where it is not defined."""
    n_compared = 0
    for n_items, (relevance, rankings) in lists.items():
        scores = -np.argsort(rankings, axis=1)
        ours = measure("AUC").many(relevance, rankings)
        for row in range(100):
            binary = relevance[row] > 0
            if binary.all() or not binary.any():
                assert ours[row] == 0
                continue
            assert n_items > 1
            assert abs(1 - ours[row] - roc_auc_score(binary, scores[row])) <= TOLERANCE
            n_compared += 1
    assert n_compared > 500
