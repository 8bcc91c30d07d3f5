"""Keystone plays, round by round, as a plain reference does; feedback may be late or lost."""

import math

import numpy as np
import pytest

from keyhole import Keystone
from keyhole.contracts.lists import Feedback
from keyhole.rankers.fixed.exploration_value import _value
from tests.unit.references import discount
from tests.unit.references_fixed import RUN, SEED, exponential, linear
from tests.unit.references_keystone import Keystone as Reference


def changing_crowd(n_items, top_grade, seed, period=120):
    """Return relevance by round: half of the items are liked, the other half every other period."""
    numbers, half = np.random.default_rng(seed), np.arange(n_items) < n_items // 2

    def relevance_of(round):
        liked = half if round // period % 2 == 0 else ~half
        # Means of real grades are never tied but for rounding, which differs between the two.
        grades = numbers.uniform(0.0, top_grade, size=n_items) if top_grade > 1 else 1.0
        return np.where(numbers.random(n_items) < np.where(liked, 0.9, 0.1), grades, 0)

    return relevance_of


def check_same_play(ranker, reference, relevance_of, rounds, delay=0, lost=0.0):
    """Play both on the same relevance; feedback comes so many rounds late, a share of it never."""
    numbers, waiting = np.random.default_rng(1), []
    for round in range(rounds):
        impression = ranker.rank(round=round)
        ranking, explored, propensity = reference.rank(round)
        assert impression.ranking.tolist() == ranking, round
        assert impression.explored == explored
        assert impression.propensity == pytest.approx(propensity, rel=1e-9)
        values = np.asarray(relevance_of(round), float)[ranking]
        values[ranker.k :] = math.nan
        waiting.append((impression, ranking, values))
        if len(waiting) > delay:
            then, shown, values = waiting.pop(0)
            if numbers.random() >= lost:
                ranker.update(then, Feedback(values))
                reference.update(shown, values, then.round)
    state = ranker.state_dict()
    for name, mine in (
        ("mean", [item.mean for item in reference.items]),
        ("spread", [item.spread for item in reference.items]),
        ("n", [item.n for item in reference.items]),
        ("all_n", [item.all_n for item in reference.items]),
        ("waits", [item.waits for item in reference.items]),
        ("suspect", [item.suspect for item in reference.items]),
        ("estimates", reference.estimates),
        ("order", reference.order),
        ("numbers", (reference.variance, reference.lead, reference.squares, reference.alarms)),
    ):
        np.testing.assert_allclose(state[name], np.asarray(mine, float), rtol=1e-7, err_msg=name)
    for row, item in enumerate(reference.items):
        used = int(state["n_buckets"][row])
        kept = [state[name][row, :used] for name in ("counts", "sums", "squares")]
        np.testing.assert_allclose(np.transpose(kept).reshape(-1, 3), [*item.buckets], rtol=1e-7)
    return reference.alarms


@pytest.mark.parametrize(
    ("measure", "k", "grade", "gain", "weights", "game"),
    [
        ("DCG", 1, 1, exponential, discount, {}),
        ("DCG", 2, 3, exponential, discount, {}),
        ("SumLoss", 1, 1, linear, lambda m: np.arange(m, 0, -1.0), {"lost": 0.3}),
        ("Precision@2", 3, 1, linear, lambda m: (np.arange(m) < 2) * 1.0, {"delay": 3}),
        ("DCG", 1, 1, exponential, discount, {"delay": 25, "lost": 0.1}),
    ],
)
def test_keystone(measure, k, grade, gain, weights, game):
    n_items = 7
    ranker = Keystone(n_items, k=k, measure=measure, max_grade=grade, seed=SEED, run=RUN)
    reference = Reference(weights(n_items), k, gain, gain(grade))
    n_alarms = check_same_play(
        ranker, reference, changing_crowd(n_items, grade, seed=k), rounds=500, **game
    )
    assert n_alarms > 0
    # Much later the value of a look is no longer in proportion to the rounds that were played.
    later = 10**6
    ranker.state.clock[1] = reference.next_round = later
    for round in range(later, later + 40):
        impression, (ranking, *_) = ranker.rank(round=round), reference.rank(round)
        assert impression.ranking.tolist() == ranking
        assert impression.note[-3:-1].tolist() == reference.shown[round][3]


def test_the_value_of_a_look_at_items_of_any_means_and_spreads():
    """Neighbours may be none, one or many."""
    numbers = np.random.default_rng(3)
    ranker, reference = Keystone(6), Reference(discount(6), 1, exponential, 1.0)
    n_neighbours = set()
    for _ in range(60):
        ranker.state.mean[:] = np.sort(numbers.random(6))[::-1]
        ranker.state.spread[:] = numbers.choice([0.01, 0.03, 0.2], 6)
        for item, mean, spread in zip(
            reference.items, ranker.state.mean, ranker.state.spread, strict=True
        ):
            item.mean, item.spread = float(mean), float(spread)
        order = list(range(6))
        for place in range(1, 6):
            found = _value(
                ranker.state, np.arange(6), place, ranker.params.weights, ranker.params.table
            )
            assert found == pytest.approx(reference.value(order, place), rel=1e-9, abs=1e-15)
            gaps = np.abs(np.diff(ranker.state.mean))
            n_neighbours.add(int((gaps < 0.03).sum()))
    assert len(n_neighbours) > 2
