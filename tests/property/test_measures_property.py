"""What holds of measures and comparators whatever the lists."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from hypothesis.extra import numpy as npst

from keyhole import Fixed, Full, Recorded, best_fixed, measure, play
from keyhole.contracts.measures import Measure
from keyhole.measures import MEASURES
from keyhole.rankers.fixed.enumerated import all_rankings

pytestmark = pytest.mark.interpreted

GRADES = st.integers(0, 4).map(float)
EPSILON = float(np.finfo(np.float64).eps)
PLAIN = [cls() for cls in MEASURES.values()]
EVERY = PLAIN + [of @ cutoff for of in PLAIN if of.takes_cutoff for cutoff in (1, 3)]
SHARES = [of for of in EVERY if of.name in {"NDCG", "AP", "RR", "Recall", "ERR", "AUC", "APLoss"}]
LINEAR = [of for of in EVERY if of.is_linear(False)]
SETTINGS = settings(deadline=None, derandomize=True)  # the first example pays for compilation


@st.composite
def lists(draw, elements=GRADES, most=60):
    """Return relevance and a ranking."""
    n_items = draw(st.integers(1, most))
    relevance = draw(npst.arrays(np.float64, n_items, elements=elements))
    return relevance, np.array(draw(st.permutations(range(n_items))), dtype=np.int64)


@SETTINGS
@given(lists(), st.randoms(use_true_random=False))
def test_relabelling_changes_no_bit_of_graded_lists(shown, random):
    check_relabelled(shown, random)


@SETTINGS
@given(lists(elements=st.floats(0.0, 4.0)), st.randoms(use_true_random=False))
def test_relabelling_changes_no_bit_of_real_values(shown, random):
    check_relabelled(shown, random)


def check_relabelled(shown, random) -> None:
    relevance, ranking = shown
    labels = np.array(random.sample(range(len(ranking)), len(ranking)))
    renamed = np.argsort(labels)[ranking]
    for of in EVERY:
        assert of(relevance[labels], renamed) == of(relevance, ranking), of.label


@SETTINGS
@given(lists())
def test_shares_lie_between_zero_and_one(shown):
    for of in SHARES:
        assert 0.0 <= of(*shown) <= 1.0, of.label


@SETTINGS
@given(lists())
def test_losses_of_pairs_are_not_negative(shown):
    for name in ("PairwiseLoss", "InversionLoss", "SumLoss"):
        assert measure(name)(*shown) >= 0.0


@SETTINGS
@given(lists(most=5))
def test_sorting_by_relevance_is_optimal(shown):
    relevance, ranking = shown
    rankings = all_rankings(len(ranking))
    table = np.tile(relevance, (len(rankings), 1))
    ideal = np.argsort(-relevance, kind="stable")
    for of in LINEAR:
        values = of.many(table, rankings)
        best = values.min() if of.is_loss else values.max()
        slack = 2 * len(ranking) * EPSILON * max(np.abs(values).max(), 1.0)
        assert abs(of(relevance, ideal) - best) <= slack, of.label


# ------------------------------------------------------------------ the best fixed ranking

JUDGED = {
    "DCG": "sorted",
    "NDCG": "sorted",
    "AUC": "sorted",
    "Recall@2": "sorted",
    "AP": "exhaustive",
    "ERR": "exhaustive",
    "RR": "exhaustive",
}
TABLES = npst.arrays(
    np.float64, st.tuples(st.integers(1, 10), st.integers(1, 5)), elements=st.integers(0, 3)
)


def totals_of(of: Measure, table, rankings):
    """Return the total score of each ranking (column) after each round (row)."""
    rows = [of.many(np.tile(row, (len(rankings), 1)), rankings) for row in table]
    return np.cumsum(rows, axis=0)


def rounding(totals, table) -> float:
    """Bound what sums in another order differ by."""
    return 8 * (table.size + 2) * EPSILON * max(float(np.abs(totals).max()), 1.0)


def games(name: str, table, comparator: str):
    world = Recorded(table)
    ranker = Fixed(world.n_items, max_grade=4)
    return play(ranker, world, reveal=Full(), measure=name, rounds=len(table), n_points=None,
                comparator=comparator)  # fmt: skip


@pytest.mark.parametrize("name", JUDGED)
@settings(SETTINGS, max_examples=60)
@given(table=TABLES)
def test_prefix_comparator_is_the_best_of_all_rankings(name, table):
    of, rankings = measure(name), all_rankings(table.shape[1])
    trace = games(name, table, "prefix")
    totals = totals_of(of, table, rankings)
    best = totals.min(axis=1) if of.is_loss else totals.max(axis=1)
    assert trace.exact == JUDGED[name]
    assert trace.rounds.tolist() == list(range(1, len(table) + 1))
    assert np.abs(trace.best[0] - best).max() <= rounding(totals, table)
    assert trace.scores[0].tolist() == totals[:, 0].tolist()  # the first ranking is 0, 1, ...
    assert (trace.regret[0] >= -rounding(totals, table)).all()


@pytest.mark.parametrize("name", JUDGED)
@settings(SETTINGS, max_examples=60)
@given(table=TABLES)
def test_final_comparator_is_one_ranking_that_is_best_in_the_end(name, table):
    of, rankings = measure(name), all_rankings(table.shape[1])
    trace = games(name, table, "final")
    totals = totals_of(of, table, rankings)
    best = totals[-1].min() if of.is_loss else totals[-1].max()
    slack = rounding(totals, table)
    assert abs(trace.best[0, -1] - best) <= slack
    chosen = best_fixed(Recorded(table), measure=name, rounds=len(table))
    column = int(np.flatnonzero((rankings == chosen).all(axis=1))[0])
    assert np.abs(trace.best[0] - totals[:, column]).max() <= slack
