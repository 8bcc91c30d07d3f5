"""The rankers of a fixed list once more: each algorithm as the theory states it, in plain NumPy."""

import math
from typing import Any

import numpy as np

from tests.unit.references import RANKER, all_lists, descending, gumbels, orders, units

SEED, RUN = 11, 3
NOISE, COINS = 16, 17
LOG_2 = math.log(2)


def epoch_of(round, horizon):
    """Return start and length: the first is as long as the horizon, each later one twice."""
    start, length = 0, horizon
    while round >= start + length:
        start, length = start + length, 2 * length
    return start, length


def place_of(round):
    return SEED, RUN, RANKER, round


def propose(sampler, rate, scores, round):
    """Return the ranking of a sampler: A5 and the three of A8."""
    n_items, place = len(scores), place_of(round)
    if sampler == "ftpl":
        return descending(rate * scores + units(place, NOISE, n_items))
    if sampler == "plackett-luce":
        return descending(rate * scores + gumbels(place, NOISE, n_items))
    if sampler == "reverse-plackett-luce":
        return descending(-rate * scores + gumbels(place, NOISE, n_items))[::-1]
    priority = units(place, NOISE, n_items)

    def quicksort(items, depth):
        if len(items) < 2:
            return items
        pivot = min(items, key=lambda item: priority[item])
        coins = units(place, COINS + depth, n_items)
        others = [item for item in items if item != pivot]
        ahead = {
            i: coins[i] < math.exp(rate * scores[i])
            / (math.exp(rate * scores[i]) + math.exp(rate * scores[pivot]))
            for i in others
        }  # fmt: skip
        left, right = ([i for i in others if ahead[i] == side] for side in (True, False))
        return [*quicksort(left, depth + 1), pivot, *quicksort(right, depth + 1)]

    return np.array(quicksort(list(range(n_items)), 0))


class FullInformation:
    """A5 and A8 where everything is seen."""

    def __init__(self, n_items, horizon, sampler, rate_of, gain):
        self.horizon, self.sampler, self.rate_of, self.gain = horizon, sampler, rate_of, gain
        self.start, self.learnt = 0, np.zeros(n_items)

    def rank(self, round):
        start, length = epoch_of(round, self.horizon)
        if start != self.start:
            self.start, self.learnt = start, np.zeros_like(self.learnt)
        return propose(self.sampler, self.rate_of(length), self.learnt, round), False, math.nan

    def update(self, ranking, values):
        self.learnt[ranking] += self.gain(values)


def linear(values):
    return np.asarray(values)


def exponential(values):
    return 2.0 ** np.asarray(values) - 1


def sample(chances, rankings, round):
    """Return the index of a ranking, drawn item by item from the top by Gumbel noise."""
    left, n_items = list(range(len(rankings))), len(rankings[0])
    for position in range(n_items):
        noise = gumbels(place_of(round), NOISE + position, n_items)
        totals: dict[int, float] = {}
        for index in left:
            item = rankings[index][position]
            totals[item] = totals.get(item, 0.0) + chances[index]
        chosen = max(totals, key=lambda item: math.log(totals[item]) + noise[item])
        left = [index for index in left if rankings[index][position] == chosen]
    return left[0]


class Weights:
    """A13: exponential weights over all rankings; and A9, which estimates their losses."""

    def __init__(self, n_items, horizon, rate_of, loss):
        self.rankings, self.horizon, self.rate_of, self.loss = (
            orders(n_items), horizon, rate_of, loss,
        )  # fmt: skip
        self.start, self.learnt = 0, np.zeros(len(self.rankings))

    def mixed(self, chances, _length):
        return chances

    def rank(self, round):
        start, length = epoch_of(round, self.horizon)
        if start != self.start:
            self.start, self.learnt = start, np.zeros_like(self.learnt)
        chances = np.exp(-self.rate_of(length) * (self.learnt - self.learnt.min()))
        self.chances = self.mixed(chances / chances.sum(), length)
        index = sample(self.chances, self.rankings, round)
        return np.array(self.rankings[index]), *self.explored(index)

    def explored(self, _index):
        return False, math.nan

    def update(self, ranking, values):
        relevance = np.empty(len(ranking))
        relevance[ranking] = values
        self.learnt += [self.loss(relevance, r) for r in self.rankings]


class Estimated(Weights):
    """A9: eta and gamma of the theory, and losses written in what the top k show."""

    def __init__(self, n_items, horizon, k, n_grades, loss):
        super().__init__(n_items, horizon, self.eta, loss)
        self.gamma_of = self.gamma
        self.k, self.sets = k, sorted({frozenset(r[:k]) for r in self.rankings}, key=sorted)
        self.patterns: dict[Any, int] = {}
        for items in self.sets:
            for outcome in all_lists(n_items, n_grades):
                self.patterns.setdefault(self.pattern(items, outcome), len(self.patterns))
        lists = all_lists(n_items, n_grades)
        losses = np.array([[loss(r, ranking) for ranking in self.rankings] for r in lists])
        losses -= losses.mean(axis=1, keepdims=True)
        seen = np.zeros((len(lists), len(self.patterns)))
        for row, outcome in enumerate(lists):
            for items in self.sets:
                seen[row, self.patterns[self.pattern(items, outcome)]] = 1.0
        self.parts = np.linalg.pinv(seen) @ losses  # the shortest of all solutions
        self.scale = np.abs(self.parts).max() * len(self.sets)

    def pattern(self, items, outcome):
        return (tuple(sorted(items)), tuple(outcome[sorted(items)]))

    def eta(self, length):
        log_n = math.log(len(self.rankings))
        return log_n ** (2 / 3) * (self.scale * length) ** (-2 / 3)

    def gamma(self, length):
        return min(1.0, (self.scale**2 * math.log(len(self.rankings)) / length) ** (1 / 3))

    def mixed(self, chances, length):
        gamma = self.gamma_of(length)
        return (1 - gamma) * chances + gamma / len(chances)

    def explored(self, index):
        top = frozenset(self.rankings[index][: self.k])
        same = [frozenset(r[: self.k]) == top for r in self.rankings]
        self.propensity = self.chances[same].sum()
        return True, self.propensity

    def update(self, ranking, values):
        relevance = np.full(len(ranking), np.nan)
        relevance[ranking[: self.k]] = values[: self.k]
        seen = self.pattern(frozenset(ranking[: self.k].tolist()), relevance)
        self.learnt += self.parts[self.patterns[seen]] / self.propensity


class Blocks:
    """A4: in each block one round for each cell, the learner's own ranking otherwise."""

    def __init__(self, n_items, horizon, k, sampler, tune, gain, *, partition="random", rest="own"):
        self.k, self.horizon, self.sampler, self.tune, self.gain = k, horizon, sampler, tune, gain
        self.partition, self.rest, self.n_cells = partition, rest, -(-n_items // k)
        self.block, self.learnt, self.pending = None, np.zeros(n_items), np.zeros(n_items)
        self.start = 0

    def plan(self, round):
        """Return first round and length of a block, its cells by time, and the rate."""
        n_items, (start, length) = len(self.learnt), epoch_of(round, self.horizon)
        n_blocks, rate = self.tune(length)
        sizes = [length // n_blocks + (b < length % n_blocks) for b in range(n_blocks)]
        ends = start + np.cumsum(sizes)
        b = int(np.searchsorted(ends, round, side="right"))
        size, first = sizes[b], int(ends[b]) - sizes[b]
        times: list[int] = []
        numbers = units(place_of(first), 0, size)
        for time in range(size):
            if numbers[time] * (size - time) < self.n_cells - len(times):
                times.append(time)
        cells, swaps = list(range(self.n_cells)), units(place_of(first), 1, self.n_cells)
        for last in reversed(range(1, self.n_cells)):
            other = int(swaps[last] * (last + 1))
            cells[last], cells[other] = cells[other], cells[last]
        items = np.arange(n_items)
        if self.partition == "random":
            items = descending(units(place_of(first), 2, n_items))
        parts = [set(items[c * self.k : (c + 1) * self.k].tolist()) for c in range(self.n_cells)]
        return start, first, size, {t: parts[c] for t, c in zip(times, cells, strict=True)}, rate

    def rank(self, round):
        start, first, size, cells, rate = self.plan(round)
        if start != self.start:
            self.learnt, self.pending = np.zeros_like(self.learnt), np.zeros_like(self.learnt)
        elif first != self.block:
            self.learnt, self.pending = self.learnt + self.pending, np.zeros_like(self.learnt)
        self.start, self.block = start, first
        ranking = propose(self.sampler, rate, self.learnt, round)
        self.cell = cells.get(round - first)
        if self.cell is None:
            return ranking, False, math.nan
        if self.rest == "random":
            ranking = descending(units(place_of(round), 3, len(ranking)))
        top = [item for item in ranking if item in self.cell]
        below = [item for item in ranking if item not in self.cell]
        return np.array([*top, *below]), True, 1 / size

    def update(self, ranking, values):
        if self.cell is not None:
            n_seen = len(self.cell)
            self.pending[ranking[:n_seen]] += self.gain(values[:n_seen])
