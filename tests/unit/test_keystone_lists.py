"""A keystone whose list changes, states that it takes over, and whose turn it is to be seen."""

import math

import numpy as np
import pytest
from scipy.optimize import brentq

from keyhole.base.errors import MAX_ROUND, InvalidInput
from keyhole.kernels.draw import Draw
from keyhole.rankers.fixed.audited import MOST_BUCKETS, Histograms, new_histograms, observe
from keyhole.rankers.fixed.exploration_value import next_look
from keyhole.rankers.fixed.keystone import Keystone
from tests.unit.references import descending, units

BY_ITEM = (*Histograms._fields, "waits", "estimates")
LIKED = {"a": 0.2, "b": 0.9, "c": 0.6, "d": 0.4}
CHANGED = ["d", "x", "b"]
WHERE, STAY, NEW = [3, 1], [0, 2], 1
"""Of the items of the changed list: where those that stay were, where they are, and who is new."""


@pytest.fixture(scope="module")
def experienced():
    """A keystone that has seen enough for all that it knows to differ between items."""
    numbers = np.random.default_rng(4)
    ranker = Keystone(4, k=2, items=list(LIKED))
    for _ in range(70):
        shown = ranker.rank()
        ranker.update(
            shown, [float(numbers.random() < LIKED[str(name)]) for name in shown.items[:2]]
        )
    assert len(set(ranker.state.mean)) == 4
    return ranker


def names_of(ranker, places):
    return [ranker.items[place] for place in places]


def sorted_by_mean(ranker, names):
    mean = dict(zip(ranker.items, ranker.state.mean.tolist(), strict=True))
    return sorted(names, key=lambda name: -mean[name])


def test_what_is_known_of_items_moves_with_them(experienced):
    changed = experienced.with_items(CHANGED)
    before, after = experienced.state_dict(), changed.state_dict()
    fresh = Keystone(3, k=2).state_dict()
    for name in BY_ITEM:
        np.testing.assert_array_equal(after[name][STAY], before[name][WHERE], err_msg=name)
        if name != "estimates":
            np.testing.assert_array_equal(after[name][NEW], fresh[name][NEW], err_msg=name)
    assert after["estimates"][NEW] == pytest.approx(before["estimates"][WHERE].mean())
    held = [name for name in names_of(experienced, before["held"]) if name in CHANGED]
    assert names_of(changed, after["held"]) == [*held, "x"]
    assert names_of(changed, after["order"]) == sorted_by_mean(changed, CHANGED)
    for name in ("clock", "numbers"):
        assert after[name].tolist() == before[name].tolist()


def test_a_list_of_new_items_begins_anew(experienced):
    changed = experienced.with_items(["x", "y"])
    for name, array in Keystone(2, k=2).state_dict().items():
        if name in (*BY_ITEM, "held", "order"):
            np.testing.assert_array_equal(changed.state_dict()[name], array, err_msg=name)


def test_late_feedback_on_a_list_of_before_counts_for_those_who_are_still_there(experienced):
    """As if the list had its old items again: of new ones nothing was seen."""
    shown = experienced.rank()
    changed = experienced.with_items(CHANGED)
    before = changed.state_dict()
    again = changed.with_items(list(LIKED))
    again.update(shown, [1, 0])
    changed.update(shown, [1, 0])
    expected, after = again.state_dict(), changed.state_dict()
    for name in BY_ITEM:
        np.testing.assert_array_equal(after[name][STAY], expected[name][WHERE], err_msg=name)
        if name != "estimates":
            np.testing.assert_array_equal(after[name][NEW], before[name][NEW], err_msg=name)
    assert after["estimates"][NEW] == before["estimates"][NEW] + before["mean"][NEW]
    for name in ("clock", "numbers"):
        assert after[name].tolist() == expected[name].tolist()
    assert names_of(changed, after["order"]) == sorted_by_mean(changed, CHANGED)
    held = [name for name in names_of(again, expected["held"]) if name in CHANGED]
    assert names_of(changed, after["held"]) == [*held, "x"]


def test_states_at_their_limits_are_taken_over():
    ranker = Keystone(3)
    sizes = [2.0**power for power in range(30, -1, -1) for _ in range(3)]
    counts = np.zeros((3, MOST_BUCKETS))
    counts[:, : len(sizes)] = sizes
    ends = {
        "n_buckets": np.full(3, len(sizes)),
        "counts": counts,
        "mean": np.array([0.0, 1.0, 1.0]),
        "spread": np.array([1e-12, 1.0, 1.0]),
        "suspect": np.ones(3, np.int64),
        "n": np.full(3, float(MAX_ROUND)),
        "numbers": np.array([0.0, -3.0, 0.0, 0.0]),
    }
    taken = ranker.load_state_dict({**ranker.state_dict(), **ends}).state_dict()
    for name, array in ends.items():
        assert taken[name].tolist() == array.tolist()


def sizes_from(*oldest, top=31):
    """Return buckets: some, and three of each power of two from one downwards."""
    return [*oldest, *(2.0**power for power in range(top, -1, -1) for _ in range(3))]


FULL = {
    "three of each size": sizes_from(),
    "merged once before": sizes_from(2.0**32, 2.0**31, 2.0**31, top=30),
    "merged often before": sizes_from(41 * 2.0**31, 2.0**31, 2.0**31, top=30),
}


def remembering(sizes, n_items=3):
    """Return what a keystone remembers that saw gains of one half alone, the second item long."""
    memory = new_histograms(n_items)
    memory.n_buckets[1] = len(sizes)
    memory.counts[1, : len(sizes)] = sizes
    for array, factor in ((memory.sums, 0.5), (memory.squares, 0.25)):
        array[1] = factor * memory.counts[1]
    memory.n[1] = memory.all_n[1] = sum(sizes)
    memory.total[1] = memory.all_total[1] = 0.5 * sum(sizes)
    memory.total_square[1] = 0.25 * sum(sizes)
    return memory


@pytest.mark.parametrize("case", FULL)
def test_where_all_buckets_are_in_use_the_two_oldest_become_one(case):
    """After 10^10 observations; the next item of the array is not written to."""
    sizes = list(FULL[case])
    assert len(sizes) == MOST_BUCKETS
    memory = remembering(sizes)
    assert observe(memory, 1, 0.5, 10**11, 0.0, 0.0) == 0
    expected = [sizes[0] + sizes[1], *sizes[2:], 1.0]
    while any(expected[-p - 4] == expected[-p - 1] for p in range(len(expected) - 3)):
        first = next(p for p in range(len(expected) - 3) if expected[p] == expected[p + 3])
        expected[first : first + 2] = [2.0 * expected[first]]
    used = int(memory.n_buckets[1])
    assert memory.counts[1, :used].tolist() == expected
    assert memory.sums[1, :used].tolist() == [0.5 * size for size in expected]
    assert memory.squares[1, :used].tolist() == [0.25 * size for size in expected]
    assert sum(expected) == memory.n[1] == sum(FULL[case]) + 1.0
    for other in (0, 2):
        assert memory.n_buckets[other] == 0
        assert not memory.counts[other].any()


@pytest.mark.parametrize("case", FULL)
def test_a_state_whose_buckets_are_all_in_use_is_taken_over_and_goes_on(case):
    ranker = Keystone(3, measure="SumLoss")
    full = remembering(FULL[case])._asdict()
    state = {**ranker.state_dict(), **full}
    ranker.load_state_dict(state)
    before = int(ranker.state.n[1])
    while ranker.state.n[1] == before:  # until the second item is seen
        ranker.update(ranker.rank(), [0.5])
    later = ranker.state_dict()
    assert 60 < later["n_buckets"][1] < MOST_BUCKETS
    assert Keystone(3, measure="SumLoss").load_state_dict(later).state.n[1] == before + 1
    state["counts"] = full["counts"].copy()
    state["counts"][1, 0] += 1.0  # which no buckets add up to
    with pytest.raises(InvalidInput, match="`counts` of the state must halve"):
        Keystone(3, measure="SumLoss").load_state_dict(state)


def test_every_sweep_looks_at_all_items_in_an_order_of_its_own():
    """However looks of several games and sweeps follow one another, and whatever lay in memory."""
    for seed, stream, sweep in [(1, 4, 1), (1, 4, 2), (2, 4, 2), (2, 8, 2), (1, 1, 1), (0, 0, 0)]:
        draw = Draw(seed, stream, 77)
        fresh, used = (Keystone(5).kernel.work(Keystone(5).params, 5) for _ in range(2))
        fresh.sweep[:] = -7
        for other in (
            (seed, stream, sweep + 1),
            (seed, stream + 4, sweep),
            (seed + 1, stream, sweep),
        ):
            next_look(Draw(other[0], other[1], 77), 5 * other[2], used)
            found = [next_look(draw, 5 * sweep + place, used) for place in range(5)]
            assert found == [next_look(draw, 5 * sweep + place, fresh) for place in range(5)]
            assert used.header.tolist() == [seed, stream, sweep]  # it is not drawn again
        if stream % 4 == 0:
            numbers = units((seed, stream // 4, 0, sweep), 1, 5)
            assert found == descending(numbers).tolist()


@pytest.mark.parametrize("round", [1, 2, 3])
def test_the_limit_of_an_alarm_is_where_it_is_said_to_be(round):
    """For two 0 and two 1, which have 4 log 2, as a function of the alarms that there were."""

    def lacks(alarms):
        length = (round + 1) / (1 + alarms / 5)
        patience = 1 + alarms / (4 * (round + 1) ** (1 / 3))
        return 4 * math.log(2) - 1.5 * math.log(length + 1) * patience

    limit = brentq(lacks, 0.0, 100.0)
    for alarms in (0.999 * limit, 1.001 * limit):
        memory = new_histograms(1)
        for gain in (0.0, 0.0, 1.0):
            observe(memory, 0, gain, 10**9, 0.0, 0.0)
        assert observe(memory, 0, 1.0, round, alarms, 0.0) == (lacks(alarms) > 0.0)
