"""Recall ranks and learns, list by list, as a plain reference does; feedback may be late."""

import numpy as np
import pytest

from keyhole.contracts.lists import Feedback, Query
from keyhole.rankers.lists.recall import Recall
from tests.unit.references_recall import Recall as Reference

N_FEATURES, LONGEST, SEED, RUN = 5, 7, 11, 2


def lists(numbers, n_rounds):
    """Return lists: those of before, some with documents exchanged, and new ones of any length."""
    kept: list[np.ndarray] = []
    for round in range(n_rounds):
        if kept and numbers.random() < 0.75:
            features = kept[numbers.integers(len(kept))].copy()
            for _ in range(numbers.integers(0, 3)):
                features[numbers.integers(len(features))] = new_rows(numbers, 1, round)
        else:
            features = new_rows(numbers, numbers.integers(1, LONGEST + 1), round)
        kept = [*kept, features][-5:]
        yield features


def new_rows(numbers, n_items, round):
    """Return documents; two columns have few numbers, and one becomes large after a while."""
    rows = numbers.random((n_items, N_FEATURES))
    rows[:, 1] = numbers.integers(-1, 2, n_items)
    rows[:, 2] = 0.25 if round % 3 else rows[:, 2]
    rows[:, 3] = (rows[:, 3] - 0.7) * (5.0 if round < 40 else 5e4)
    return rows


@pytest.mark.parametrize(
    ("k", "delay", "id_column"), [(1, 0, None), (3, 0, None), (2, 4, None), (1, 0, 0)]
)
def test_recall(k, delay, id_column):
    numbers = np.random.default_rng(k)
    ranker = Recall(N_FEATURES, LONGEST, k=k, id_column=id_column, seed=SEED, run=RUN)
    reference = Reference(N_FEATURES, k, SEED, RUN, id_column)
    waiting, n_explored = [], 0
    for round, features in enumerate(lists(numbers, 120)):
        shown = ranker.rank(Query(len(features), features), round=round)
        ranking, explored = reference.rank(features, round)
        assert shown.ranking.tolist() == ranking, round
        assert shown.explored == explored, round
        n_explored += explored
        values = numbers.integers(0, 4, len(features)).astype(float)
        values[k:] = np.nan
        waiting.append((shown, features, ranking, values, round))
        if len(waiting) > delay:
            then, *what = waiting.pop(0)
            ranker.update(then, Feedback(what[2]))
            reference.update(*what)
    assert 10 < n_explored < 110
    agrees(ranker.state_dict(), reference)


def agrees(state, reference):
    """Compare all that is known, documents by the scores that they are remembered with."""
    for name, mine in (
        ("weights_by_prior", reference.weights),
        ("guesses", reference.guesses),
        ("covariances", reference.covariances),
        ("trust", reference.trust),
        ("numbers", (reference.residuals, reference.first_sights,
                     reference.within, reference.freedom)),
        ("peak", reference.peak),
        ("component", reference.component),
        ("component_squares", (reference.squares, reference.n_components)),
        ("clock", reference.clock),
    ):  # fmt: skip
        np.testing.assert_allclose(state[name], mine, rtol=1e-7, atol=1e-9, err_msg=name)
    used = np.flatnonzero(state["keys"])
    known = np.column_stack([state["counts"][used], state["values"][used]])
    mine = np.array([
        (each.seen, each.listed, each.last, each.mean, each.weight, each.moment, each.prior)
        for each in reference.documents.values()
    ])  # fmt: skip
    assert len(known) == len(mine)
    known, mine = (rows[np.argsort(rows[:, -1])] for rows in (known, mine))
    np.testing.assert_allclose(known, mine, rtol=1e-7, atol=1e-9)
