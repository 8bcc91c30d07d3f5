"""Semi-bandit, neighbourhood watch and IW-OnlineRank play as plain references of their own do."""

import itertools
import math

import numpy as np
import pytest

from keyhole.bounds import iw_onlinerank, precision
from keyhole.rankers.fixed.iw_onlinerank import IWOnlineRank
from keyhole.rankers.fixed.neighbourhood import NeighbourhoodWatch
from keyhole.rankers.fixed.semibandit import SemiBandit
from tests.unit.references import descending, gumbels, units
from tests.unit.references_fixed import RUN, SEED, place_of
from tests.unit.test_iw_onlinerank import seen_exactly
from tests.unit.test_references_fixed import crowd, same_play
from tests.unit.test_semibandit import projected_slowly

pytestmark = pytest.mark.interpreted


class SemiBanditReference:
    """Dual averaging without a horizon, and systematic sampling; grades are at most 2."""

    def __init__(self, n_items, n_counted, k):
        self.m, self.n, self.k = n_items, n_counted, k
        self.losses = np.zeros(n_items)

    def rank(self, round):
        place, m, n, k = place_of(round), self.m, self.n, self.k
        rate = math.sqrt(k * math.log(m / n) / (m * (round + 1)))
        chosen = projected_slowly(self.losses, rate, n)
        order = descending(units(place, 0, m))
        ends = np.cumsum(chosen[order])
        start, turn = units(place, 1, 1)[0], units(place, 2, 1)[0]
        points_before = np.ceil(np.append(0.0, ends) - start).astype(int)  # of those from start on
        is_hit = np.diff(np.maximum(points_before, 0)) > 0
        hit, others = order[is_hit], order[~is_hit]
        if k < n:
            hit = np.roll(hit, -int(n * turn))
        if k > n:
            others = np.roll(others, -int((m - n) * turn))
        ranking = [*hit.tolist(), *others.tolist()]
        self.seen_with = precision.chances_of_sight(chosen, n, k)[ranking[:k]]
        return ranking, True, self.seen_with[0] if k == 1 else math.nan

    def update(self, ranking, values):
        gains = np.asarray(values[: self.k]) / 2
        self.losses[ranking[: self.k]] += (1 - gains) / self.seen_with


@pytest.mark.parametrize("k", [1, 2, 3, 4, 6])
def test_semibandit(k):
    ranker = SemiBandit(6, k=k, measure="Precision@3", max_grade=2, seed=SEED, run=RUN)
    reference = SemiBanditReference(6, 3, k)
    same_play(ranker, reference, crowd(6, 3), 120, depth=k)
    np.testing.assert_allclose(ranker.state.losses, reference.losses, rtol=1e-9)
    assert ranker.best() == descending(-reference.losses).tolist()


class NeighbourhoodReference:
    """Sets as sets, the stationary distribution by least squares, all within a known horizon."""

    def __init__(self, n_items, n_counted, horizon):
        self.m, self.n = n_items, n_counted
        self.sets = [frozenset(s) for s in itertools.combinations(range(n_items), n_counted)]
        n_actions = n_counted * len(self.sets)
        self.eta = math.sqrt(math.log(n_actions * horizon) / (horizon * n_actions))
        self.mix = min(n_actions * self.eta, 1.0)
        self.worse = {
            (index, leaves, joins): 0.0
            for index, items in enumerate(self.sets)
            for leaves in sorted(items)
            for joins in range(n_items)
            if joins not in items
        }

    def other(self, index, leaves, joins):
        return self.sets.index(self.sets[index] - {leaves} | {joins})

    def settled(self):
        size = len(self.sets)
        moves = np.eye(size)
        for (index, leaves, joins), total in self.worse.items():
            moves[index, self.other(index, leaves, joins)] = math.exp(-self.eta * total)
        moves /= moves.sum(axis=1, keepdims=True)
        equations = np.vstack([moves.T - np.eye(size), np.ones(size)])
        return np.linalg.lstsq(equations, np.append(np.zeros(size), 1.0), rcond=None)[0]

    def rank(self, round):
        place = place_of(round)
        self.p = self.settled()
        self.shown_with = ((1 - self.mix) * self.p + self.mix / len(self.sets)) / self.n
        held: list[int] = []
        propensity = 1.0
        for position in range(self.n):
            noise = -np.log(-np.log(units(place, 1 + position, self.m)))
            chances = {
                item: sum(
                    chance
                    for items, chance in zip(self.sets, self.shown_with, strict=True)
                    if items >= {*held, item}
                )
                for item in range(self.m)
                if item not in held
            }
            held.append(max(chances, key=lambda item: math.log(chances[item]) + noise[item]))
            propensity = chances[held[0]] if position == 0 else propensity
        rest = descending(units(place, 0, self.m)).tolist()
        return [*held, *(item for item in rest if item not in held)], True, propensity

    def update(self, ranking, values):
        shown, top = frozenset(ranking[: self.n]), ranking[0]
        for index, leaves, joins in self.worse:
            other = self.other(index, leaves, joins)
            own, theirs, p = self.shown_with[index], self.shown_with[other], self.p[index]
            estimate = 0.0
            if self.sets[index] == shown and leaves == top:
                estimate = p * values[0] / own
            if self.sets[other] == shown and joins == top:
                estimate = -p * values[0] / theirs
            self.worse[index, leaves, joins] += estimate - self.eta * p * p * (1 / own + 1 / theirs)


@pytest.mark.parametrize("n_counted", [1, 2, 3])
def test_neighbourhood(n_counted):
    ranker = NeighbourhoodWatch(
        4, measure=f"Precision@{n_counted}", horizon=3000, seed=SEED, run=RUN
    )
    reference = NeighbourhoodReference(4, n_counted, 3000)
    same_play(ranker, reference, crowd(4, 2), 100, depth=1)
    np.testing.assert_allclose(ranker.state.totals, list(reference.worse.values()), rtol=1e-7)
    settled = reference.settled()
    by_item = [
        sum(p for items, p in zip(reference.sets, settled, strict=True) if item in items)
        for item in range(4)
    ]
    assert ranker.best() == descending(by_item).tolist()


class IWOnlineRankReference:
    """Chances to be seen by enumeration of all rankings; grades are at most 2."""

    def __init__(self, n_items, k):
        self.m, self.k, self.totals = n_items, k, np.zeros(n_items)
        weights = iw_onlinerank.falling_weights("DCG", n_items, 2)
        self.given = iw_onlinerank.constants(weights, k)

    def rank(self, round):
        place, k = place_of(round), self.k
        schedule = iw_onlinerank.best_schedule(self.given, 0)
        mix, rate = iw_onlinerank.mix_and_rate(schedule, round)
        ranking = descending(rate * self.totals + gumbels(place, 0, self.m)).tolist()
        lifts = units(place, 1, 1)[0] < mix
        lifted = int(np.argmax(units(place, 2, self.m)))
        if lifts and lifted not in ranking[:k]:
            ranking.remove(lifted)
            ranking.insert(k - 1, lifted)
        self.seen_with = seen_exactly(rate * self.totals, k, mix)[ranking[:k]]
        return ranking, lifts, self.seen_with[0] if k == 1 else math.nan

    def update(self, ranking, values):
        gains = (2.0 ** np.asarray(values[: self.k]) - 1) / 3
        self.totals[ranking[: self.k]] += gains / self.seen_with


@pytest.mark.parametrize("k", [1, 2, 4])
def test_iw_onlinerank(k):
    ranker = IWOnlineRank(4, k=k, max_grade=2, seed=SEED, run=RUN)
    reference = IWOnlineRankReference(4, k)
    n_lifted = same_play(ranker, reference, crowd(4, 3), 60, depth=k)
    assert n_lifted > 0
    np.testing.assert_allclose(ranker.state.totals, reference.totals, rtol=1e-6)
    assert ranker.best() == descending(reference.totals).tolist()
