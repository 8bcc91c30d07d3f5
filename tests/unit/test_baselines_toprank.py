"""TopRank plays, round by round, as a plain reference does; its verdicts, blocks and pairs."""

import math

import numpy as np
import pytest

from keyhole.rankers.fixed.toprank import TopRank
from tests.unit.references import units
from tests.unit.references_fixed import RUN, SEED, place_of
from tests.unit.test_references_fixed import crowd, same_play

TIES = 0


class TopRankReference:
    """Algorithm 1 of the paper, with sets and loops over pairs."""

    def __init__(self, n_items, k):
        self.n_items, self.k, self.round = n_items, k, 0
        self.s, self.n = np.zeros((2, n_items, n_items))
        self.worse: set[tuple[int, int]] = set()  # (worse, better)

    def rank(self, round):
        left, self.blocks, self.round = set(range(self.n_items)), [], round
        numbers = units(place_of(round), TIES, self.n_items)
        while left:
            block = {i for i in left if not any((i, j) in self.worse for j in left)}
            self.blocks.append(sorted(block, key=lambda i: -numbers[i]))
            left -= block
        return [item for block in self.blocks for item in block], True, math.nan

    def update(self, ranking, values):
        clicks = {item: 2.0 ** values[p] - 1 if p < self.k else 0 for p, item in enumerate(ranking)}
        c = 4 * math.sqrt(2 / math.pi) / math.erf(math.sqrt(2))
        for block in self.blocks:
            for i in block:
                for j in block:
                    u = clicks[i] - clicks[j]
                    self.s[i, j] += u
                    self.n[i, j] += abs(u)
                    n = self.n[i, j]
                    bound = math.sqrt(2 * n * math.log(c * (self.round + 1) * math.sqrt(max(n, 1))))
                    if u and self.s[i, j] >= bound:
                        self.worse.add((j, i))


def test_toprank():
    ranker = TopRank(5, k=2, seed=SEED, run=RUN)
    reference = TopRankReference(5, 2)
    same_play(ranker, reference, crowd(5, 2), 400, depth=2)
    assert set(zip(*map(np.ndarray.tolist, np.nonzero(ranker.state.beaten)), strict=True)) == (
        reference.worse
    )
    assert len(reference.blocks) > 1
    np.testing.assert_allclose(ranker.state.differences, reference.s)
    np.testing.assert_allclose(ranker.state.sizes, reference.n)
    totals = reference.s.sum(axis=1)
    assert ranker.best() == [
        i for block in reference.blocks for i in sorted(block, key=lambda i: (-totals[i], i))
    ]


def test_toprank_learns_late_by_the_blocks_of_then():
    """Items that have been told apart meanwhile were in one block when they were shown."""
    ranker = TopRank(3, k=1)
    waiting = ranker.rank(round=500)
    assert waiting.note.tolist() == [3.0]
    for round in range(200):
        impression = ranker.rank(round=round)
        ranker.update(impression, float(impression.ranking[0] == 0))
    assert ranker.rank().note.tolist() == [1.0]
    before = ranker.state.sizes.sum()
    ranker.update(waiting, 1)
    assert ranker.state.sizes.sum() == before + 4  # with each of two others, both ways round


def test_toprank_shows_all_items_of_a_circle():
    ranker = TopRank(3)
    circle = np.array([[0, 1, 0], [0, 0, 1], [1, 0, 0]], dtype=float)
    ranker.load_state_dict({**ranker.state_dict(), "beaten": circle})
    assert sorted(ranker.rank().ranking.tolist()) == [0, 1, 2]


@pytest.mark.parametrize("size", [20.0, 60.0])
@pytest.mark.parametrize(("factor", "is_worse"), [(0.999, False), (1.001, True)])
def test_toprank_knows_who_is_worse_where_differences_reach_their_bound(size, factor, is_worse):
    """Of the item shown first, whose next difference is 1; other verdicts stay as they are."""
    c = 4 * math.sqrt(2 / math.pi) / math.erf(math.sqrt(2))
    total = factor * math.sqrt(2 * size * math.log(c * (0 + 1) * math.sqrt(size)))
    for sign in (1.0, -1.0):
        ranker = TopRank(3)
        shown = ranker.rank(round=0)
        first, second, _ = shown.ranking
        differences = np.zeros((3, 3))
        differences[first, second] = sign * total - 1.0
        beaten = np.ones((3, 3))
        beaten[first, second] = beaten[second, first] = 0.0
        known = {
            "differences": differences - differences.T,
            "sizes": np.full((3, 3), size - 1.0),
            "beaten": beaten,
        }
        ranker.load_state_dict({**ranker.state_dict(), **known})
        ranker.update(shown, 1)
        worse, better = (second, first) if sign > 0 else (first, second)
        beaten[worse, better] = is_worse
        assert ranker.state.beaten.tolist() == beaten.tolist()


def test_toprank_shows_those_who_are_beaten_by_those_above_them_alone():
    ranker = TopRank(4, k=4)
    beaten = np.zeros((4, 4))
    beaten[0, [1, 2]] = beaten[1, 2] = beaten[3, 2] = 1.0  # 2 beats all, and 1 beats 0
    shown = ranker.load_state_dict({**ranker.state_dict(), "beaten": beaten}).rank()
    assert (shown.ranking[0], shown.ranking[3]) == (2, 0)
    assert shown.note.tolist() == [1.0, 3.0, 3.0, 4.0]


def test_toprank_sorts_a_block_by_all_differences():
    ranker = TopRank(3)
    differences = np.array([[0.0, -3.0, 1.0], [3.0, 0.0, -2.0], [-1.0, 2.0, 0.0]])
    known = {"differences": differences, "sizes": np.abs(differences)}
    assert ranker.load_state_dict({**ranker.state_dict(), **known}).best() == [1, 2, 0]


def test_what_is_known_of_pairs_stays_with_them():
    ranker = TopRank(3, items=["ant", "bee", "cow"])
    known = {"sizes": 20.0 + np.arange(9.0).reshape(3, 3)}
    known["differences"], known["beaten"] = known["sizes"] - 30.0, np.triu(np.ones((3, 3)))
    before = ranker.load_state_dict({**ranker.state_dict(), **known}).state_dict()
    after = ranker.with_items(["cow", "dog", "ant"]).state_dict()
    for name in known:
        expected = np.zeros((3, 3))
        expected[0, 0], expected[2, 2] = before[name][2, 2], before[name][0, 0]
        expected[0, 2], expected[2, 0] = before[name][2, 0], before[name][0, 2]
        assert after[name].tolist() == expected.tolist()
