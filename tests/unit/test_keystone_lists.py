"""A keystone whose list changes, states that it takes over, and whose turn it is to be seen."""

import math

import numpy as np
import pytest
from scipy.optimize import brentq

from keyhole.errors import MAX_ROUND
from keyhole.kernels.draw import Draw
from keyhole.rankers import Keystone
from keyhole.rankers.fixed.audited import MOST_BUCKETS, Histograms, new_histograms, observe
from keyhole.rankers.fixed.lifting import next_look
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
