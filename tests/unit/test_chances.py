"""What rankers say of how likely an item was to be seen: exact, on average over seeds."""

import numpy as np
import pytest

from keyhole.rankers import ranker

pytestmark = pytest.mark.interpreted

_KNOWN = [
    ("keystone", {}),
    ("keystone", {"k": 2}),
    ("rtopk", {"horizon": 40}),
    ("rtopk", {"horizon": 40, "k": 2}),
    ("semibandit", {"measure": "Precision@2"}),
    pytest.param("iw-onlinerank", {"k": 2}, marks=pytest.mark.compiled),
    ("epsilon-greedy", {}),
    ("random", {"k": 2}),
    ("fixed", {}),
]
_ITEMS, _ROUNDS, _SEEDS = 4, 12, 400
_RELEVANCE = np.array([0.0, 1.0, 0.0, 1.0])


def weighted_sights(name: str, settings: dict[str, object]) -> tuple[np.ndarray, np.ndarray]:
    """Return the mean and standard error over seeds of what each item's sights weigh in all."""
    totals = np.zeros((_SEEDS, _ITEMS))
    for seed in range(_SEEDS):
        learner = ranker(name, n_items=_ITEMS, seed=seed, **settings)
        for _ in range(_ROUNDS):
            shown = learner.rank()
            chances = learner.chances(shown)
            if chances is not None:
                seen = shown.ranking[: len(chances)]
                totals[seed, seen] += 1.0 / chances / _ROUNDS
            learner.update(shown, _RELEVANCE[shown.ranking[: max(learner.depth, 1)]])
    return totals.mean(axis=0), totals.std(axis=0) / np.sqrt(_SEEDS)


@pytest.mark.parametrize(("name", "settings"), _KNOWN, ids=str)
def test_sights_weighted_by_their_chances_count_every_item_once(name, settings):
    if name == "fixed":
        assert ranker(name, n_items=3).chances(ranker(name, n_items=3).rank()) == 1.0
        return
    mean, error = weighted_sights(name, settings)
    assert np.all(np.abs(mean - 1.0) <= 4.5 * error), (mean, error)
    assert error.max() < 0.2


def one_chance(learner, shown):
    return learner.chances(shown)[0]


def test_given_the_past_a_cell_that_was_shown_cannot_come_again():
    learner = ranker("rtopk", n_items=_ITEMS, horizon=40)
    explored = [shown for shown in (learner.rank() for _ in range(40)) if shown.explored]
    marginal = [float(one_chance(learner, shown)) for shown in explored]
    given = [learner.chance_given_the_past(shown) or 0.0 for shown in explored]
    assert marginal == [shown.propensity for shown in explored]
    assert all(late >= early for late, early in zip(given, marginal, strict=True))
    assert max(given) > 2 * max(marginal)


def test_a_ranker_that_does_not_know_says_so():
    learner = ranker("thompson", n_items=3)
    shown = learner.rank()
    assert learner.chances(shown) is None
    assert learner.chance_given_the_past(shown) is None
    assert learner.n_alarms == 0
