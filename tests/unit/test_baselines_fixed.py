"""The baselines of a fixed list play, round by round, as plain references of their own do."""

import math
from typing import Any

import numpy as np
import pytest
from scipy import stats
from scipy.optimize import brentq

from keyhole.base.errors import InvalidInput, UnknownName
from keyhole.checks.non_learners import check_only_learners_pass
from keyhole.contracts.lists import Feedback
from keyhole.kernels.draw import Draw
from keyhole.kernels.laws import beta, free_normals
from keyhole.rankers.fixed.cascade_ucb import BOUNDS, CascadeUCB
from keyhole.rankers.fixed.epsilon_greedy import EpsilonGreedyRanker
from keyhole.rankers.fixed.pege import PEGE
from keyhole.rankers.fixed.pege2 import PEGE2
from keyhole.rankers.fixed.plain import Fixed, Random
from keyhole.rankers.fixed.thompson import Thompson
from keyhole.rankers.fixed.toprank import TopRank
from tests.unit.references import descending, discount, units
from tests.unit.references_fixed import RUN, SEED, place_of
from tests.unit.test_references_fixed import crowd, same_play

pytestmark = pytest.mark.interpreted

TIES, FIRST_USE, SECOND_USE = 0, 1, 2
FAILURE = 1e-6
"""Chance with which a correct generator fails one of the checks of a distribution."""

# ------------------------------------------------------------------ laws


@pytest.mark.parametrize(("won", "lost"), [(1.0, 1.0), (1.0, 40.0), (3.5, 2.25), (800.0, 200.0)])
def test_beta_numbers_have_their_law(won, lost):
    numbers = [
        beta(Draw(5, 4, round), 1, item, won, lost) for round in range(40) for item in range(25)
    ]
    assert stats.kstest(numbers, stats.beta(won, lost).cdf).pvalue > FAILURE
    assert len(set(numbers)) == len(numbers)


def test_free_normals_have_their_law_and_do_not_depend_on_items():
    numbers = np.empty(2000)
    free_normals(Draw(5, 4, 3), 1, numbers)
    assert stats.kstest(numbers, stats.norm.cdf).pvalue > FAILURE
    uniform = units((5, 1, 0, 3), 1, 4)  # stream 4 is that of rankers in run 1
    first = math.sqrt(-2 * math.log(uniform[0])) * math.cos(2 * math.pi * uniform[1])
    second = math.sqrt(-2 * math.log(uniform[2])) * math.cos(2 * math.pi * uniform[3])
    np.testing.assert_allclose(numbers[:2], [first, second], rtol=1e-12)


# ------------------------------------------------------------------ references


class Counts:
    """What was seen of each item; gains are exponential and at most 1."""

    def __init__(self, n_items, k, max_grade=1):
        self.n_items, self.k, self.largest = n_items, k, 2.0**max_grade - 1
        self.seen: list[list[float]] = [[] for _ in range(n_items)]

    def means(self):
        return np.array([(sum(gains) + 1) / (len(gains) + 2) for gains in self.seen])

    def by_means(self, round):
        return descending(self.means() + 1e-6 * units(place_of(round), TIES, self.n_items))

    def update(self, ranking, values):
        for item, value in zip(ranking[: self.k], values, strict=False):
            self.seen[item].append((2.0**value - 1) / self.largest)

    def agrees_with(self, state):
        assert state.counts.tolist() == [len(gains) for gains in self.seen]
        np.testing.assert_allclose(state.sums, [sum(gains) for gains in self.seen])


def gamma(shape, numbers):
    """Return the number of Marsaglia & Tsang, of three uniform ones for each attempt."""
    d = shape - 1 / 3
    for first, second, third in numbers.reshape(-1, 3):
        x = math.sqrt(-2 * math.log(first)) * math.cos(2 * math.pi * second)
        v = (1 + x / math.sqrt(9 * d)) ** 3
        if v > 0 and math.log(third) < x * x / 2 + d - d * v + d * math.log(v):
            return d * v
    return d


class ThompsonReference(Counts):
    def rank(self, round):
        numbers = units(place_of(round), FIRST_USE, 96 * self.n_items).reshape(-1, 2, 48)
        keys = []
        for gains, (first, second) in zip(self.seen, numbers, strict=True):
            won = gamma(1 + sum(gains), first)
            keys.append(won / (won + gamma(1 + len(gains) - sum(gains), second)))
        return descending(keys), True, math.nan


class EpsilonGreedyReference(Counts):
    scale = 1.5

    def rank(self, round):
        order, m = self.by_means(round).tolist(), self.n_items
        epsilon = min(1, self.scale * (round + 1) ** (-1 / 3))
        lifted = int(np.argmax(units(place_of(round), SECOND_USE, m)))
        explores = units(place_of(round), FIRST_USE, 1)[0] < epsilon
        if explores and lifted not in order[: self.k]:
            order.remove(lifted)
            order.insert(self.k - 1, lifted)
            return order, True, epsilon / m
        return order, False, 1 - epsilon + epsilon * self.k / m


class CascadeReference(Counts):
    def __init__(self, *args, kl):
        super().__init__(*args)
        self.kl = kl

    def bound(self, gains, time):
        n, p = len(gains), float(np.mean(gains))
        if not self.kl:
            return p + math.sqrt(1.5 * math.log(time) / n)
        budget = math.log(time) + 3 * math.log(max(math.log(time), 1.0))

        def over(q):
            return n * float(stats.entropy([p, 1 - p], [q, 1 - q])) - budget

        return 1.0 if p == 1 or over(1 - 1e-12) < 0 else brentq(over, p, 1 - 1e-12)

    def rank(self, round):
        keys = [100.0 if not gains else self.bound(gains, round + 1) for gains in self.seen]
        ties = 1e-6 * units(place_of(round), TIES, self.n_items)
        return descending(keys + ties), True, math.nan


@pytest.mark.parametrize("time", [1, 2, 50, 10_000])
def test_bounds_of_means_are_those_of_their_formulas(time):
    for gains in ([0.0, 0.0], [1.0] * 3, [0.2, 0.9, 0.4], [0.0, 1.0] * 40, [0.1] * 900):
        mean, count = float(np.mean(gains)), float(len(gains))
        for name, kl in (("kl", True), ("ucb1", False)):
            expected = CascadeReference(1, 1, kl=kl).bound(gains, time)
            assert BOUNDS[name](mean, count, float(time)) == pytest.approx(expected, abs=2e-6)


class PEGEReference(Counts):
    def __init__(self, *args):
        super().__init__(*args)
        cells = math.ceil(self.n_items / self.k)
        self.plan: list[tuple[int, int, int]] = []  # phase, cell or -1, round in which a pass began
        for phase in range(1, 8):
            for _ in range(phase):
                begin = len(self.plan)
                self.plan += [(phase, cell, begin) for cell in range(cells)]
            self.plan += [(phase, -1, -1)] * 2**phase

    def candidates(self, _phase):
        """Return the items that a pass of a phase shows."""
        return set(range(self.n_items))

    def rank(self, round):
        phase, cell, begin = self.plan[round]
        order, chosen = self.by_means(round).tolist(), []
        if cell >= 0:
            shuffled = descending(units(place_of(begin), FIRST_USE, self.n_items)).tolist()
            left = [item for item in shuffled if item in self.candidates(phase)]
            chosen = left[self.k * cell : self.k * (cell + 1)]
        self.explored = bool(chosen)
        ranking = sorted(order, key=lambda item: (item not in chosen, order.index(item)))
        return ranking, self.explored, math.nan

    def update(self, ranking, values):
        if self.explored:
            super().update(ranking, values)


class PEGE2Reference(PEGEReference):
    weights = discount(5)

    def candidates(self, _phase):
        n = np.array([len(gains) for gains in self.seen])
        with np.errstate(divide="ignore"):
            radius = np.sqrt(math.log(2 * self.n_items * 4**_phase) / (2 * n)) + 1 / (n + 2)
        radius[n == 0] = 1.0
        place = np.argsort(self.by_means(len(self.plan)))  # ties are between items that all meet
        meets = np.abs(np.subtract.outer(self.means(), self.means())) <= np.add.outer(
            radius, radius
        )
        matters = np.not_equal.outer(self.weights[place], self.weights[place])
        return set(np.flatnonzero((meets & matters).any(axis=1)).tolist())


FACTS: Any = {"k": 2, "max_grade": 2, "seed": SEED, "run": RUN}
REFERENCES: dict[str, tuple[Any, Any]] = {
    "thompson": (lambda: Thompson(5, **FACTS), lambda: ThompsonReference(5, 2, 2)),
    "epsilon-greedy": (
        lambda: EpsilonGreedyRanker(5, scale=1.5, **FACTS),
        lambda: EpsilonGreedyReference(5, 2, 2),
    ),
    "cascade-ucb": (
        lambda: CascadeUCB(5, **FACTS),
        lambda: CascadeReference(5, 2, 2, kl=True),
    ),
    "cascade-ucb1": (
        lambda: CascadeUCB(5, bound="ucb1", **FACTS),
        lambda: CascadeReference(5, 2, 2, kl=False),
    ),
    "pege": (lambda: PEGE(5, **FACTS), lambda: PEGEReference(5, 2, 2)),
    "pege2": (lambda: PEGE2(5, **FACTS), lambda: PEGE2Reference(5, 2, 2)),
}


@pytest.mark.parametrize("name", REFERENCES)
def test_counting_rankers(name):
    make, make_reference = REFERENCES[name]
    ranker, reference = make(), make_reference()
    n_explored = same_play(ranker, reference, crowd(5, 3), 120, depth=2)
    reference.agrees_with(ranker.state)
    assert ranker.best() == descending(reference.means()).tolist()
    assert (0 < n_explored < 120) == (name in ("epsilon-greedy", "pege", "pege2"))


def test_pege2_explores_less_where_gaps_are_certain_and_as_pege_does_where_items_are_tied():
    def explored(ranker, means):
        """Return in how many of 700 rounds on top of what is known a list explores."""
        sums = 4000.0 * np.asarray(means)
        known = {"counts": np.full(4, 4000.0), "sums": sums}
        ranker.load_state_dict({**ranker.state_dict(), **known})
        return sum(ranker.rank(round=round).explored for round in range(700))

    apart, tied = [0.2, 0.4, 0.6, 0.8], [0.2, 0.2, 0.6, 0.6]
    all_slots = explored(PEGE(4), apart)
    assert all_slots == 4 * sum(range(1, 10))
    assert explored(PEGE2(4), apart) == 0
    assert explored(PEGE2(4), tied) == all_slots
    assert explored(PEGE2(4, measure="Precision@2"), tied) == 0


def test_pege2_passes_over_those_who_are_certain():
    """One item of five is, and the others are tied in pairs."""
    ranker, reference = PEGE2(5, **FACTS), PEGE2Reference(5, 2, 2)
    reference.seen = [[mean] * 4000 for mean in (0.5, 0.1, 0.9, 0.5, 0.1)]
    known = {"counts": np.full(5, 4000.0), "sums": np.array([sum(s) for s in reference.seen])}
    ranker.load_state_dict({**ranker.state_dict(), **known})
    assert reference.candidates(1) == {0, 1, 3, 4}
    for round in range(60):
        shown, (ranking, explored, _) = ranker.rank(round=round), reference.rank(round)
        assert shown.ranking.tolist() == ranking
        assert shown.explored == explored


@pytest.mark.parametrize(("round", "phase"), [(0, 1), (2 + 2, 2)])
@pytest.mark.parametrize(("factor", "explores"), [(0.999, True), (1.001, False)])
def test_pege2_is_certain_where_intervals_do_not_meet(round, phase, factor, explores):
    """Phase 2 begins after one pass of two lists and two greedy ones."""
    n = np.array([20.0, 30.0])
    radius = np.sqrt(math.log(2 * 2 * 4**phase) / (2 * n)) + 1 / (n + 2)
    means = 0.5 + factor * radius.sum() / 2 * np.array([1.0, -1.0])
    ranker = PEGE2(2)
    known = {"counts": n, "sums": means * (n + 2) - 1}
    ranker.load_state_dict({**ranker.state_dict(), **known})
    assert ranker.rank(round=round).explored == explores


# ------------------------------------------------------------------ learning

CROWD = np.random.default_rng(3).random((700, 6)) < np.array([0.1, 0.85, 0.1, 0.1, 0.1, 0.9])
"""Two items of six are liked, neither of them first in the list."""


def play_by_hand(ranker, tell):
    """Return the DCG of the last 300 of 700 lists, having told what is to be learnt."""
    scores = []
    for round, relevance in enumerate(CROWD.astype(float)):
        impression = ranker.rank(round=round)
        shown = relevance[impression.ranking]
        if tell is not None:
            values = np.full(6, math.nan)
            values[:2] = tell(shown[:2])
            ranker.update(impression, Feedback(values))
        scores.append(shown @ discount(6))
    return float(np.mean(scores[-300:]))


@pytest.mark.parametrize(
    "make",
    [Thompson, EpsilonGreedyRanker, CascadeUCB, TopRank, PEGE, PEGE2],
    ids=lambda m: m.__name__,
)
def test_only_what_learns_loses_little(make):
    """Less than a half of what random lists lose; those that do not learn lose more."""
    mean = CROWD[-300:].mean(axis=0)
    best, chance = np.sort(mean)[::-1] @ discount(6), mean.sum() * discount(6).mean()

    def learns(game):
        assert best - play_by_hand(*game) < 0.5 * (best - chance)

    def as_it_is(values):
        return values

    others = {
        "random": (Random(6, k=2), None),
        "fixed": (Fixed(6, k=2), None),
        "idle": (make(6, k=2), None),
        "contrary": (make(6, k=2), lambda values: 1.0 - values),
    }
    check_only_learners_pass(learns, (make(6, k=2), as_it_is), others)


# ------------------------------------------------------------------ lists and states


def one_in_four(value):
    return np.array([[0.0, value], [0.0, 0.0]])


def test_new_items_begin_unseen():
    ranker = EpsilonGreedyRanker(2, k=2, items=["ant", "bee"])
    ranker.update(ranker.rank(), [1, 1])
    ranker = ranker.with_items(["cow", "bee"])
    assert ranker.state.counts.tolist() == [0.0, 1.0]
    assert ranker.state.sums.tolist() == [0.0, 1.0]


@pytest.mark.parametrize(
    ("make", "change", "sentence"),
    [
        (Thompson, {"counts": np.array([1.0, -1.0])}, "`counts` of the state must be between 0"),
        (Thompson, {"counts": np.array([1.0, 1e300])}, "`counts` of the state must be between 0"),
        (Thompson, {"sums": np.array([0.0, 1.0])}, "`sums` of the state must be between 0 and"),
        (Thompson, {"sums": np.array([0.0, -1.0])}, "`sums` of the state must be between 0"),
        (TopRank, {"sizes": one_in_four(-1.0)}, "`sizes` of the state must be between 0"),
        (TopRank, {"sizes": one_in_four(1e300)}, "`sizes` of the state must be between 0"),
        (TopRank, {"differences": one_in_four(-1.0)}, "`differences` of the state must not"),
        (TopRank, {"beaten": one_in_four(0.5)}, "`beaten` of the state must be 0 or 1"),
    ],
)
def test_states_that_cannot_be_are_refused(make, change, sentence):
    ranker = make(2)
    with pytest.raises(InvalidInput, match=sentence):
        ranker.load_state_dict({**ranker.state_dict(), **change})


@pytest.mark.parametrize("make", [Thompson, TopRank])
def test_states_in_which_everything_was_as_good_as_can_be_are_taken_over(make):
    ranker = make(2)
    for _ in range(9):
        ranker.update(ranker.rank(), 1)
    again = make(2).load_state_dict(ranker.state_dict())
    assert all(np.array_equal(a, b) for a, b in zip(again.state, ranker.state, strict=True))


def test_settings_that_cannot_be_are_refused():
    with pytest.raises(InvalidInput, match="measure must have gains per item"):
        Thompson(3, measure="NDCG")
    with pytest.raises(InvalidInput, match="measure must have gains per item"):
        TopRank(3, measure="AP")
    assert Thompson.needs_gain_per_item
    assert TopRank.needs_gain_per_item
    with pytest.raises(InvalidInput, match="`scale` of EpsilonGreedy must be a number above 0"):
        EpsilonGreedyRanker(3, scale=0)
    with pytest.raises(UnknownName, match="`bound` of CascadeUCB must be one of kl, ucb1"):
        CascadeUCB(3, bound="hoeffding")
    with pytest.raises(InvalidInput, match="Every pair of 10000000 items"):
        TopRank(10_000_000)
    assert TopRank(2000).n_items == 2000  # 96 megabytes
