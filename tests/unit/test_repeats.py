"""A ranker learns once from each list that it has shown, however often the answer comes."""

import copy

import numpy as np
import pytest

import keyhole
from keyhole.base.errors import InvalidInput
from keyhole.contracts.repeats import WINDOW, Rounds

pytestmark = pytest.mark.interpreted

FIXED = ("keystone", "rtopk", "ftpl", "thompson", "pege2")
DOCUMENTS = keyhole.Query(3, np.array([[0.0, 1.0], [1.0, 0.5], [0.5, 0.5]]))


def ranker_of(name):
    return keyhole.ranker(name, n_items=4, seed=3)


def told(ranker, impression, values):
    ranker.update(impression, values[: ranker.depth] if ranker.depth else values)


def states(ranker):
    arrays = ranker.state_dict()
    return {name: np.asarray(array).tobytes() for name, array in arrays.items()}


@pytest.mark.parametrize("name", FIXED)
def test_an_answer_that_comes_twice_counts_once(name):
    once, twice = ranker_of(name), ranker_of(name)
    late = []
    for round in range(30):
        values = [float(round % 3 == place) for place in range(4)]
        shown = [ranker.rank() for ranker in (once, twice)]
        assert shown[0].ranking.tolist() == shown[1].ranking.tolist()
        told(once, shown[0], values)
        told(twice, shown[1], values)
        late.append((shown[1], values))
        for again in (late[-1], late[round // 2]):
            told(twice, copy.deepcopy(again[0]), [1.0 - each for each in again[1]])
    assert states(once) == states(twice)


def test_documents_too_and_whoever_has_not_answered_yet_may():
    ranker = keyhole.Recall(2, 3, k=1)
    first, second = ranker.rank(DOCUMENTS), ranker.rank(DOCUMENTS)
    ranker.update(second, 1.0)
    before = states(ranker)
    ranker.update(second, 0.0)
    assert states(ranker) == before
    ranker.update(first, 0.0)
    assert states(ranker) != before


def test_what_was_refused_has_not_been_answered():
    ranker = ranker_of("keystone")
    shown, before = ranker.rank(), states(ranker)
    with pytest.raises(InvalidInput):
        ranker.update(shown, [np.inf])
    ranker.update(shown, [1.0])
    assert states(ranker) != before
    with pytest.raises(InvalidInput):  # nor is it taken where it comes second
        ranker.update(shown, [np.inf])


def test_a_list_that_is_shown_again_and_one_of_a_log_may_be_answered_again():
    ranker, log = ranker_of("keystone"), ranker_of("keystone")
    seen = [states(ranker)]
    for _ in range(3):
        shown = ranker.rank(round=0)
        ranker.update(shown, [1.0])
        log.update(shown, [1.0])  # of a round that it has not shown
        assert states(ranker) == states(log)
        assert states(ranker) not in seen
        seen.append(states(ranker))


def test_copies_and_other_lists_know_what_was_answered():
    ranker = keyhole.ranker("keystone", items=["a", "b", "c", "d"], seed=3)
    shown = ranker.rank()
    ranker.update(shown, [1.0])
    for other in (copy.deepcopy(ranker), ranker.with_items(["a", "b", "c", "e"])):
        before = states(other)
        other.update(shown, [0.0])
        assert states(other) == before
        later = other.rank()
        other.update(later, [1.0])
        assert not ranker.rounds.is_learnt(later.round)


def test_rounds_are_those_of_a_reference():
    numbers = np.random.default_rng(5)
    rounds, shown, learnt, newest = Rounds(), set[int](), set[int](), -1
    for _ in range(6_000):
        jump = (
            numbers.integers(0, 40) if numbers.random() < 0.95 else numbers.integers(0, 2 * WINDOW)
        )
        ahead = newest + int(jump) - 20
        kind, round = numbers.integers(3), max(ahead, 0)
        if kind == 0:
            newest = max(newest, round)
            shown.add(round)
            learnt.discard(round)
            rounds.show(round)
        elif kind == 1:
            if round in shown:
                learnt.add(round)
            rounds.learn(round)
        shown = {each for each in shown if newest - each < WINDOW}
        learnt = {each for each in learnt if each in shown and newest - each < WINDOW}
        assert rounds.is_learnt(round) == (round in learnt)
        old = max(newest - WINDOW + int(numbers.integers(-2, 3)), 0)
        assert rounds.is_learnt(old) == (old in learnt)
    assert learnt
    assert newest > 10 * WINDOW


def test_ten_thousand_rounds_are_known():
    rounds = Rounds()
    for round in range(10_001):
        rounds.show(round)
        rounds.learn(round)
    assert all(rounds.is_learnt(round) for round in range(10_001))
    for round in range(10_001, 10_001 + WINDOW):
        rounds.show(round)
    assert not any(rounds.is_learnt(round) for round in range(10_001))
    assert rounds._learnt.bit_length() <= WINDOW
