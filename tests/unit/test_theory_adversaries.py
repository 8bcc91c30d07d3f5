"""Who an adversary plays with, and how it searches: every part by hand."""

import math

import numpy as np
import pytest

from bench.theory import search
from bench.theory.leader import Leader
from bench.theory.phases import Phases
from bench.theory.sabotage import Sabotaged, SabotagedParams, _believe_the_opposite
from bench.theory.search import changed, random_crowd, regret_per_round, worst_crowd
from keyhole import play
from keyhole.base.errors import InvalidInput
from keyhole.rankers.fixed.keystone import Keystone
from keyhole.rankers.fixed.safe import LEAD
from tests.unit.references import WORLD, units

pytestmark = pytest.mark.interpreted


class Scripted:
    """Random numbers that are known: answers in the order of the questions, which are kept."""

    def __init__(self, *answers):
        self.answers, self.asked = list(answers), []

    def ask(self, *question):
        self.asked.append(question)
        answer = self.answers.pop(0)
        return np.array(answer) if isinstance(answer, list) else answer

    def integers(self, *limits):
        return self.ask("integers", *limits)

    def random(self, *shape):
        return self.ask("random", *shape)

    def normal(self, *law):
        return self.ask("normal", *law)

    def permutation(self, row):
        return row[::-1]


# ------------------------------------------------------------------ the search


@pytest.mark.parametrize(("coin", "noise"), [(0.49, 0.3), (0.5, 0.0)])
def test_a_random_crowd(coin, noise):
    numbers = Scripted(
        2, [0.0, 0.4], [[0.1, 0.9, 0.5], [0.7, 0.2, 0.5]], 0.5, [0.8, 0.3],
        [[0.3, 0.0, 0.0], [0.0, -0.3, -0.4]], coin,
    )  # fmt: skip
    lengths, chances = random_crowd(numbers, 3, 1000)
    assert lengths == (1, math.ceil(1000**0.4))
    if noise:
        assert chances == pytest.approx(np.array([[1.0, 0.3, 0.3], [0.3, 0.5, 0.0]]))
    else:
        assert chances == pytest.approx(np.array([[0.8, 0.3, 0.3], [0.3, 0.8, 0.3]]))
    assert numbers.asked[0] == ("integers", 1, 6)
    assert numbers.asked[5] == ("normal", 0.0, 0.1, (2, 3))


LENGTHS, CHANCES = (4, 9), np.array([[0.1, 0.2, 0.3], [0.9, 0.8, 0.7]])
CHANGES = {
    "a longer phase": ((0, math.log(2.5)), (4, 23), CHANCES),
    "one that is too long": ((0, math.log(100.0)), (4, 50), CHANCES),
    "another chance": ((1, 0.45), (4, 9), [[0.1, 0.2, 0.3], [0.9, 0.8, 0.45]]),
    "other chances": (
        (2, [[-0.2, 0.1, 0.0], [0.2, 0.0, 0.1]]),
        (4, 9),
        [[0.0, 0.3, 0.3], [1.0, 0.8, 0.8]],
    ),
    "items exchanged": ((3,), (4, 9), [[0.1, 0.2, 0.3], [0.7, 0.8, 0.9]]),
    "a phase fewer": ((4,), (4,), [[0.1, 0.2, 0.3]]),
    "a phase more": ((5, 0.5), (4, 9, 8), [[0.1, 0.2, 0.3], [0.9, 0.8, 0.7], [0.7, 0.8, 0.9]]),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_changed_crowd(name):
    (case, *answers), lengths, chances = CHANGES[name]
    numbers, before = Scripted(1, 2, case, *answers), CHANCES.copy()
    found = changed(numbers, LENGTHS, CHANCES, 50)
    assert found[0] == lengths
    assert found[1] == pytest.approx(np.array(chances))
    assert (before == CHANCES).all()
    assert numbers.asked[:3] == [("integers", 2), ("integers", 3), ("integers", 6)]
    if case == 2:
        assert numbers.asked[3] == ("normal", 0.0, 0.1, (2, 3))


def test_the_only_phase_stays_and_a_sixth_is_not_added():
    one = changed(Scripted(0, 0, 4, 0.0), (4,), CHANCES[:1], 50)  # a phase more instead
    assert one[0] == (4, 1)
    five = changed(Scripted(0, 0, 5), (1,) * 5, np.full((5, 2), 0.5), 50)
    assert five[0] == (1,) * 5
    four = changed(Scripted(0, 0, 5, 0.0), (1,) * 4, np.full((4, 2), 0.5), 50)
    assert four[0] == (1,) * 5


def test_the_search_judges_again_what_looks_bad_and_keeps_the_eight_worst():
    """Values are any function of crowd and seed; the first three tenths are at random."""
    calls, tries, first = [], 60, 18

    def regret(ranker, crowd, rounds, *, runs, seed):
        assert (ranker.n_items, rounds) == (3, 200)
        table = crowd.params.chances
        value = float(round(10 * np.sin(37 * table.sum() + seed))) / 10  # of which many are equal
        calls.append((crowd.lengths, table.copy(), runs, seed, value))
        return value

    handed = []

    def progress(attempts):
        handed.extend(attempts)
        return handed

    found = worst_crowd(
        Leader(3), 200, tries=tries, runs=2, seed=5, regret=regret, progress=progress
    )
    assert handed == list(range(tries))
    numbers = np.random.default_rng(5)
    best: list[float] = []
    worst = None
    for attempt in range(tries):
        lengths, table, runs, seed, value = calls.pop(0)
        assert (runs, seed) == (2, 5)
        if attempt < first:
            expected = random_crowd(numbers, 3, 200)
            assert lengths == expected[0]
            assert np.array_equal(table, expected[1])
        if len(best) == 8 and value <= min(best):
            continue
        again = calls.pop(0)
        assert (again[0], again[2], again[3]) == (lengths, 6, 6)
        assert np.array_equal(again[1], table)
        if not best or again[4] > max(best):
            worst = again
        best = sorted([*best, again[4]])[-8:]
    assert not calls
    assert worst is not None
    assert found.regret == worst[4]
    assert found.lengths == worst[0]
    assert np.array_equal(found.world().params.chances, worst[1])
    assert found.world().lengths == worst[0]


def test_later_crowds_are_one_to_three_changes_of_the_worst():
    """A value that only crowds of one phase have keeps nearly all of the later ones near them."""
    n_phases = []

    def regret(_ranker, crowd, _rounds, **_how):
        n_phases.append(len(crowd.lengths))
        return -float(len(crowd.lengths))

    worst_crowd(Leader(2), 100, tries=200, regret=regret)
    assert max(n_phases[150:]) <= 4
    assert np.mean(n_phases[150:]) < 2.0 < np.mean(n_phases[:30])


def test_parents_are_changed_once_to_three_times(monkeypatch):
    n_changes: list[int] = [0]
    parents: set[float] = set()

    def counted(_numbers, lengths, chances, rounds):
        assert rounds == 100
        n_changes[-1] += 1
        parents.add(float(chances.sum()))
        return lengths, chances

    def regret(_ranker, crowd, _rounds, **how):
        if how["runs"] == 4:
            n_changes.append(0)
        return float(crowd.params.chances.sum())

    monkeypatch.setattr(search, "changed", counted)
    search.worst_crowd(Leader(2), 100, tries=100, regret=regret)
    assert n_changes[:30] == [0] * 30
    assert set(n_changes[30:100]) == {1, 2, 3}
    assert len(parents) > 1


def test_the_regret_that_is_searched_for():
    """Of two items the second is liked, which a leader shows first from the second round on."""
    lost = regret_per_round(Leader(2), Phases([0.0, 1.0]), 10, runs=2)
    assert lost == pytest.approx((1 - 1 / math.log2(3)) / 10)
    crowd = Phases([0.5, 0.5])
    trace = play(Leader(2), crowd, rounds=50, runs=3, seed=2, n_points=2, n_threads=1)
    assert regret_per_round(Leader(2), crowd, 50, runs=3, seed=2) == trace.average_regret.mean


# ------------------------------------------------------------------ who is played with


def test_a_leader_follows_what_it_has_seen():
    state = play(Leader(3), Phases([0.0, 1.0, 1.0]), rounds=5).states[0]
    assert state["n"].tolist() == [1.0, 4.0, 0.0]
    assert state["total"].tolist() == [0.0, 4.0, 0.0]
    ranker = Leader(3)
    ranker.state.n[:], ranker.state.total[:] = (4.0, 0.0, 2.0), (3.0, 0.0, 1.9)
    shown = ranker.rank()
    assert shown.ranking.tolist() == [1, 2, 0]  # who was never seen comes first
    assert (shown.explored, shown.propensity) == (False, 1.0)
    assert (ranker.depth, ranker.max_grade) == (1, 1.0)


def test_a_spoilt_keystone_believes_what_it_is_told():
    means = [0.1, 0.9, 0.5]
    ranker = Sabotaged(Keystone(3), means=means)
    for safe in (True, False):
        spoilt = Sabotaged(Keystone(3), means=means, safe=safe)
        state = play(spoilt, Phases([0.0, 1.0, 0.0]), rounds=1, seed=4).states[0]
        assert state["mean"].tolist() == means
        assert state["order"].tolist() == [1, 2, 0]
        assert state["spread"].tolist() == [1e-9] * 3
        assert state["suspect"].tolist() == [0] * 3
        assert (state["numbers"][LEAD] == -1e12) == (not safe)
        assert sorted(state["n"].tolist()) == [0.0, 0.0, 1.0]
        assert spoilt.params.safe == safe
    other = Sabotaged(Keystone(3, k=2), means=means, safe=False).fresh(seed=9)
    assert (other.learner.seed, other.depth, other.safe, other.means) == (9, 2, False, means)
    assert (ranker.max_grade, ranker.params.safe) == (1.0, True)
    assert Sabotaged(Keystone(3)).params.means.tolist() == [0.5] * 3
    assert Sabotaged(Keystone(2), means=[0.0, 1.0]).state.mean.tolist() == [0.0, 1.0]


def test_a_spoilt_keystone_believes_the_opposite_of_what_it_has_seen():
    ranker = Keystone(2)
    state = ranker.state
    state.n[:], state.total[:], state.total_square[:] = (3.0, 0.0), (2.0, 0.0), (2.0, 0.0)
    state.all_n[:], state.all_total[:] = (3.0, 0.0), (2.0, 0.0)
    for _ in range(2):  # and not the opposite of that
        _believe_the_opposite(SabotagedParams(ranker.params, np.zeros(2), True), state)
        assert state.mean == pytest.approx([1 - 2.5 / 4, 0.5])


def test_phases_are_of_the_numbers_of_the_world():
    table = np.array([[0.2, 0.7, 0.4], [0.9, 0.1, 0.6]])
    crowd = Phases(table, lengths=[2, 1])
    for round in range(12):
        chances = table[0 if round % 3 < 2 else 1]
        expected = units((7, 1, WORLD, round), 0, 3) < chances
        assert crowd.relevance(round, seed=7, run=1).tolist() == expected.tolist()
    assert (crowd.n_items, crowd.max_grade, crowd.is_binary) == (3, 1.0, True)
    assert Phases([0.0, 1.0]).lengths == (1,)
    for chances in ([[[0.5]]], [[]], 0.5):
        with pytest.raises(InvalidInput, match="`chances` of Phases must be"):
            Phases(chances)
