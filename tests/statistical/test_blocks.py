"""B7: the block estimate of RTop-kF is unbiased, by enumeration on the kernels that games run."""

# ruff: noqa: T201 (tests print the bounds they hold results against)

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from keyhole import RTopK, Top
from keyhole.bounds.blocks import expected_block_estimate, n_cells
from keyhole.contracts.lists import no_features
from keyhole.contracts.rankers import Seen
from keyhole.kernels.draw import Draw

FAILURE = 1e-6


class Table:
    """The kernels of a ranker with their arrays in the open."""

    def __init__(self, ranker: RTopK) -> None:
        self.params, self.kernel, self.m = ranker.params, ranker.kernel, ranker.n_items
        self.reveal = Top(ranker.k)
        self.work = self.kernel.work(self.params, self.m)
        self.ranking, self.values = np.empty(self.m, np.int64), np.empty(self.m)
        self.features = no_features(self.m)
        self.reset()

    def reset(self) -> None:
        self.state = self.kernel.init(self.params, self.m, 0)

    def rank(self, draw: Draw) -> tuple[bool, float]:
        return self.kernel.rank(
            self.params, self.state, draw, self.features, self.ranking, self.work
        )

    def round(self, draw: Draw, relevance) -> bool:
        explored, propensity = self.rank(draw)
        self.reveal.kernel.reveal(self.reveal.params, draw, relevance, self.ranking, self.values)
        seen = Seen(
            draw, self.features, self.ranking, explored, propensity, self.values, np.empty(0)
        )
        self.kernel.update(self.params, self.state, seen, self.work)
        return explored


def estimate(table: Table, relevance, times, cells, items):
    """Play a block by the given plan and return the estimate it leaves."""
    length = len(relevance)
    table.reset()
    plan = [0, 0, 0, length, 0, len(times)]
    table.work.header[:] = plan
    table.work.times[:], table.work.cells[:], table.work.items[:] = times, cells, items
    explored = [table.round(Draw(0, 0, t), relevance[t]) for t in range(length)]
    assert table.work.header.tolist() == plan  # no other plan was made
    assert np.flatnonzero(explored).tolist() == list(times)
    assert not table.state.scores.any()
    return table.state.pending.copy()


def every_plan(length: int, m: int, k: int, all_partitions: bool):
    q = n_cells(m, k)
    some = [tuple(range(m)), tuple(np.random.default_rng(0).permutation(m).tolist())]
    partitions = list(itertools.permutations(range(m))) if all_partitions else some
    yield from itertools.product(
        itertools.combinations(range(length), q), itertools.permutations(range(q)), partitions
    )


CASES = [(3, 2, 2, True), (3, 2, 5, True), (3, 1, 4, True), (4, 2, 5, True), (3, 3, 4, True),
         (5, 2, 3, True), (5, 2, 4, False), (5, 2, 6, False), (5, 4, 5, False)]  # fmt: skip


@pytest.mark.parametrize(("m", "k", "length", "all_partitions"), CASES)
@pytest.mark.parametrize(("measure", "grade"), [("SumLoss", 1), ("DCG", 4)])
def test_mean_over_all_plans_is_the_mean_of_the_gains(m, k, length, all_partitions, measure, grade):
    rng = np.random.default_rng(m + 10 * k + 100 * length)
    relevance = rng.integers(0, grade + 1, (length, m)).astype(np.float64)
    gains = 2.0**relevance - 1.0 if measure == "DCG" else relevance
    ranker = RTopK(m, k=k, horizon=length, n_blocks=1, measure=measure, max_grade=grade)
    table = Table(ranker)
    total, n_plans = np.zeros(m), 0
    for times, cells, items in every_plan(length, m, k, all_partitions):
        seen = estimate(table, relevance, times, cells, items)
        when = {item: times[cells.index(place // k)] for place, item in enumerate(items)}
        assert seen.tolist() == [gains[when[item], item] for item in range(m)]
        total += seen
        n_plans += 1
    q = n_cells(m, k)
    partitions = math.factorial(m) if all_partitions else 2
    assert n_plans == math.perm(length, q) * partitions
    np.testing.assert_allclose(total / n_plans, gains.mean(axis=0), rtol=0, atol=1e-12)
    np.testing.assert_allclose(
        expected_block_estimate(gains, k), gains.mean(axis=0), rtol=0, atol=1e-12
    )


def test_random_rest_leaves_the_estimate_unbiased():
    m, k, length = 3, 2, 4
    relevance = np.random.default_rng(5).integers(0, 2, (length, m)).astype(np.float64)
    table = Table(RTopK(m, k=k, horizon=length, n_blocks=1, rest="random"))
    seen = [estimate(table, relevance, *plan) for plan in every_plan(length, m, k, True)]
    np.testing.assert_allclose(np.mean(seen, axis=0), relevance.mean(axis=0), rtol=0, atol=1e-12)


# ------------------------------------------------------------------ the plans that are drawn


@pytest.fixture(scope="module")
def drawn():
    """Return times, cells and items of 20,000 blocks of five rounds (m=5, k=2)."""
    m, k, length, n_blocks = 5, 2, 5, 2000
    table = Table(RTopK(m, k=k, horizon=length * n_blocks, n_blocks=n_blocks))
    plans = []
    for seed in range(10):
        for block in range(n_blocks):
            table.rank(Draw(seed, 0, block * length))
            assert table.work.header[2:].tolist() == [block * length, (block + 1) * length, 0, 3]
            plans.append([*table.work.times, *table.work.cells, *table.work.items])
    return np.array(plans)


def p_value(rows, n_outcomes: int) -> float:
    """Return the chi-square p-value of rows being uniform over so many outcomes."""
    _, counts = np.unique(rows, axis=0, return_counts=True)
    assert len(counts) == n_outcomes
    return float(stats.chisquare(counts).pvalue)


def test_plans_are_uniform(drawn):
    """Sets of times, order of cells, order of items: each and all pairs of them jointly."""
    times, cells, items = drawn[:, :3], drawn[:, 3:6], drawn[:, 6:]
    values = {
        "times": p_value(times, 10),
        "cells": p_value(cells, 6),
        "items": p_value(items, 120),
        "times, cells": p_value(np.hstack([times, cells]), 60),
        "cells, items": p_value(np.hstack([cells, items]), 720),
        "times, items": p_value(np.hstack([times, items]), 1200),
    }
    print({name: f"{value:.4f}" for name, value in values.items()}, f"at least {FAILURE}")
    assert min(values.values()) > FAILURE


def test_each_item_is_seen_at_a_uniform_time(drawn):
    times, cells, items = drawn[:, :3], drawn[:, 3:6], drawn[:, 6:]
    order = np.argsort(cells, axis=1)  # at which of the times a cell is shown
    place = np.argsort(items, axis=1)
    when = np.take_along_axis(times, np.take_along_axis(order, place // 2, axis=1), axis=1)
    for item in range(5):
        assert stats.chisquare(np.bincount(when[:, item], minlength=5)).pvalue > FAILURE
    # Two of the ten pairs of items share a cell; the times of others are any two distinct ones.
    apart = when[when[:, 0] != when[:, 1]]
    expected = 1.0 - 2 / 10
    slack = math.sqrt(math.log(2 / FAILURE) / (2 * len(when)))
    print(f"apart {len(apart) / len(when):.4f}, expected {expected} within {slack:.4f}")
    assert abs(len(apart) / len(when) - expected) <= slack
    assert p_value(apart[:, :2], 20) > FAILURE


def test_fixed_partition_keeps_the_items_in_order():
    table = Table(RTopK(5, k=2, horizon=50, partition="fixed"))
    table.rank(Draw(3, 0, 0))
    assert table.work.items.tolist() == [0, 1, 2, 3, 4]


# ------------------------------------------------------------------ blocks and epochs


def blocks_of(ranker: RTopK, n_rounds: int) -> list[tuple[int, int]]:
    """Return first round and end of the block of every round."""
    table = Table(ranker)
    found = []
    for t in range(n_rounds):
        table.rank(Draw(0, 0, t))
        found.append((int(table.work.header[2]), int(table.work.header[3])))
    return found


@pytest.mark.parametrize(("horizon", "n_blocks"), [(103, 10), (100, 10), (7, 3), (50, 1), (41, 20)])
def test_blocks_cover_the_horizon_and_differ_by_one_round(horizon, n_blocks):
    found = blocks_of(RTopK(4, k=2, horizon=horizon, n_blocks=n_blocks), horizon)
    assert all(first <= t < end for t, (first, end) in enumerate(found))
    blocks = sorted(set(found))
    assert len(blocks) == n_blocks
    assert [first for first, _ in blocks] == [0, *(end for _, end in blocks[:-1])]
    assert blocks[-1][1] == horizon
    lengths = [end - first for first, end in blocks]
    assert max(lengths) - min(lengths) <= 1
    assert min(lengths) >= 2


@pytest.mark.parametrize(("m", "k"), [(4, 2), (5, 2), (6, 1), (3, 3), (7, 3)])
def test_every_block_explores_each_item_once(m, k):
    """With relevance 1 everywhere the estimate counts how often an item was used."""
    q = n_cells(m, k)
    horizon, n_blocks = 12 * q + 5, 7
    ranker = RTopK(m, k=k, horizon=horizon, n_blocks=n_blocks)
    found = blocks_of(ranker, horizon)
    table = Table(ranker)
    n_explored = 0
    for t, (first, end) in enumerate(found):
        explored = table.round(Draw(0, 0, t), np.ones(m))
        n_explored += explored
        if explored:
            assert table.rank(Draw(0, 0, t)) == (True, 1.0 / (end - first))
        if t + 1 == end:
            done = 1 + sorted(set(found)).index((first, end))
            assert n_explored == q * done
            assert (table.state.scores + table.state.pending).tolist() == [done] * m
            assert table.state.pending.tolist() == [1.0] * m


def test_blocks_are_never_shorter_than_an_exploration():
    """R8: K is at most T / q."""
    ranker = RTopK(10, k=1, horizon=25, measure="Precision@3")
    assert ranker.n_blocks == 2
    with pytest.warns(UserWarning, match="shorter than one exploration"):
        short = RTopK(10, k=1, horizon=9)
    table = Table(short)
    assert not any(table.round(Draw(0, 0, t), np.ones(10)) for t in range(9))
    assert not table.state.pending.any()


def test_doubling_epochs_start_anew():
    m, horizon = 4, 40
    ranker = RTopK(m, k=1, horizon=horizon, n_blocks=4, rate=1e9)
    assert ranker.params.epochs.starts[:4].tolist() == [0, 40, 120, 280]
    assert ranker.params.epochs.n_blocks[:3].tolist() == [4, 8, 16]
    table = Table(ranker)
    best = np.array([0.0, 0.0, 0.0, 1.0])
    tops: dict[int, set[int]] = {}
    for t in range(120):
        if not table.round(Draw(0, 0, t), best):
            tops.setdefault(t // 10, set()).add(int(table.ranking[0]))
        if t == 39:
            assert (table.state.scores + table.state.pending).tolist() == [0, 0, 0, 4]
            assert table.state.clock.tolist() == [0, 30]
        if t == 49:
            assert table.state.scores.tolist() == [0, 0, 0, 0]
            assert table.state.pending.tolist() == [0, 0, 0, 1]
            assert table.state.clock.tolist() == [1, 40]
    # Without noise the best item leads, but for the first block of each epoch.
    assert all(tops[block] == {3} for block in (1, 2, 3, 5, 6, 7, 8, 9, 10, 11))
    assert tops[0] != {3}
    assert tops[4] != {3}
