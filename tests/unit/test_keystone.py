"""The parts of a keystone by hand, and what it learns where others cannot."""

import math

import numpy as np
import pytest

from keyhole import FTPL, Flips, RTopK, play
from keyhole.base.errors import InvalidInput
from keyhole.rankers.fixed.audited import new_histograms, observe
from keyhole.rankers.fixed.exploration_value import (
    _shrinkage,
    _value,
    is_worth_its_price,
    price_of_lift,
)
from keyhole.rankers.fixed.keystone import Keystone
from keyhole.worlds.table import Recorded

pytestmark = pytest.mark.interpreted


def two_crowds(rounds, numbers, n_items=20, flip=0.1):
    """Return relevance by round: five items are good at first, five others from a third on."""
    good = np.zeros((rounds, n_items), dtype=bool)
    good[: rounds // 3, :5] = good[rounds // 3 :, 5:10] = True
    return (good != (numbers.random(good.shape) < flip)).astype(float)


def test_histograms_hold_everything_in_few_buckets():
    memory, numbers = new_histograms(2), np.random.default_rng(0)
    gains = (numbers.random(500) < 0.4).astype(float)
    for round, gain in enumerate(gains):
        assert not observe(memory, 1, gain, 10**6 + round, 0.0, 0.0)  # never surprised
        used = memory.n_buckets[1]
        sizes = memory.counts[1, :used].tolist()
        assert sizes == sorted(sizes, reverse=True)
        assert max(sizes.count(size) for size in sizes) <= 3
        assert sum(sizes) == memory.n[1] == memory.all_n[1] == round + 1
        assert memory.sums[1, :used].sum() == memory.total[1] == gains[: round + 1].sum()
    assert memory.mean[1] == pytest.approx((gains.sum() + 0.5) / 501)
    assert memory.n.tolist() == [0.0, 500.0]


def test_a_change_drops_the_past_and_noise_does_not():
    memory, numbers = new_histograms(1), np.random.default_rng(1)
    for round in range(400):
        assert not observe(memory, 0, float(numbers.random() < 0.9), round, 0.0, 0.0)
    alarms = [
        observe(memory, 0, float(numbers.random() < 0.1), 400 + i, 0.0, 0.0) for i in range(60)
    ]
    assert 0 < sum(alarms) <= 2
    assert alarms.index(True) < 20
    assert memory.n[0] < 100
    assert memory.all_n[0] == 460
    assert memory.mean[0] < 0.3


def test_one_observation_is_no_past_to_be_contradicted():
    """Of the gains 0, 1 and 1 nothing is dropped: the older part of a split has two at least."""
    memory = new_histograms(1)
    surprises = [observe(memory, 0, gain, 0, 0.0, 0.0) for gain in (0.0, 1.0, 1.0)]
    assert surprises == [False, False, False]
    assert memory.n[0] == 3


@pytest.mark.parametrize(
    ("round", "alarms", "surprised"), [(4, 0, True), (5, 0, False), (3, 1, True), (4, 5, False)]
)
def test_an_alarm_needs_more_certainty_the_longer_the_crowd_has_stayed(round, alarms, surprised):
    """Two 0 and two 1 have 4 log 2; the limit is 1.5 log(h + 1), and more after alarms."""
    memory = new_histograms(1)
    for gain in (0.0, 0.0, 1.0):
        observe(memory, 0, gain, 10**9, 0.0, 0.0)
    length = (round + 1) / (1 + alarms / 5)
    limit = 1.5 * np.log(length + 1) * (1 + alarms / (4 * (round + 1) ** (1 / 3)))
    assert bool(4 * np.log(2) > limit) == surprised
    assert observe(memory, 0, 1.0, round, float(alarms), 0.0) == surprised
    assert memory.n[0] == (2 if surprised else 4)


@pytest.mark.parametrize(("round", "budget"), [(999, 500.0), (7999, 2600.0), (10**6 - 1, 3e5)])
def test_a_look_is_worth_a_share_of_the_future(round, budget):
    """It is min(h / 2, max(6.5 h^(2/3), .3 h)): each of the three at its time."""
    ranker = Keystone(3)
    state, params, order = ranker.state, ranker.params, np.arange(3)
    state.mean[:], state.spread[:] = (0.6, 0.5, 0.4), 0.1
    price = price_of_lift(state, order, 2, 1, params.weights)
    value = _value(state, order, 2, params.weights, params.table)
    for share, is_worth in ((0.99, True), (1.01, False)):
        state.n[2] = share * budget * value / price
        assert is_worth_its_price(params, state, order, 2, round, 0.0) == is_worth
        state.n[2] -= 5.0
        assert is_worth_its_price(params, state, order, 2, round, 5.0) == is_worth


@pytest.mark.compiled
def test_every_item_is_seen_as_often_as_the_note_says():
    """One over the noted chance, where an item was seen, has mean one for each item."""
    ranker = Keystone(4, k=2)
    for relevance in ([1, 0], [0, 1], [1, 1], [0, 0]):
        ranker.update(ranker.rank(), relevance)
    weights = np.zeros((20_000, 4))
    for round in range(len(weights)):
        shown = ranker.rank(round=round)
        weights[round, shown.ranking[:2]] = 1.0 / shown.note[:2]
        assert shown.propensity == shown.note[1]
    errors = weights.std(axis=0) / np.sqrt(len(weights))
    assert (np.abs(weights.mean(axis=0) - 1.0) < 5.0 * errors).all()
    assert (errors < 0.2).all()


@pytest.mark.compiled
def test_one_item_seen_is_enough_to_be_ahead_of_those_who_see_all():
    seen_one = play(Keystone(20), Flips(20), rounds=6_000, runs=6, seed=5).average_regret
    seen_all = play(FTPL(20, horizon=6_000), Flips(20), rounds=6_000, runs=6, seed=5)
    assert seen_one.mean + 2 * seen_one.error < seen_all.average_regret.mean


def test_a_crowd_that_changes_is_followed():
    """Better than any fixed ranking, which who never forgets cannot be."""
    crowd = Recorded(two_crowds(6_000, np.random.default_rng(2)))
    assert play(Keystone(20), crowd, rounds=6_000).average_regret.mean < -0.25
    stubborn = RTopK(20, horizon=6_000)
    assert play(stubborn, crowd, rounds=6_000).average_regret.mean > 0.1


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"held": np.zeros(3, np.int64)}, "`held` of the state must hold each of the items"),
        ({"n_buckets": np.array([0, 97, 0])}, "`n_buckets` of the state must be at most 96"),
        ({"mean": np.full(3, 2.0)}, "`mean` of the state must be between 0 and 1"),
        ({"spread": np.zeros(3)}, "`spread` and `numbers` of the state"),
        ({"numbers": np.array([0.0, 1.0, -1.0, 0.0])}, "`spread` and `numbers` of the state"),
    ],
)
def test_states_that_kernels_cannot_index_by_are_refused(change, sentence):
    ranker = Keystone(3)
    with pytest.raises(InvalidInput, match=sentence):
        ranker.load_state_dict({**ranker.state_dict(), **change})


def test_a_note_belongs_to_its_ranker():
    ranker = Keystone(3)
    shown = ranker.rank()
    assert len(shown.note) == 7
    assert len(Keystone(3, k=2).rank().note) == 10
    with pytest.raises(InvalidInput, match="note of the impression must be the 7 finite numbers"):
        ranker.update(RTopK(3, horizon=9).rank(), 1)
    with pytest.raises(InvalidInput, match="note of the impression must be the 0 finite numbers"):
        RTopK(3, horizon=9).update(shown, 1)


def alike(count, spread=0.1):
    """Return a keystone that knows two good items, and some that are all the same."""
    ranker = Keystone(count + 2)
    state = ranker.state
    state.mean[:2], state.mean[2:], state.spread[:] = 0.9, 0.1, spread
    return ranker, state, np.arange(count + 2)


@pytest.mark.parametrize("count", [5, 17, 18, 60])
def test_many_items_that_look_alike_are_taken_to_be_alike(count):
    """A tenth of the noise is taken to be real, and 30 / n^2 of it where that is less."""
    _, state, order = alike(count)
    real = min(0.1, 30.0 / count**2)
    share, first, last = _shrinkage(state, order, count // 2 + 2)
    assert share == pytest.approx(real / (real + 1.0))
    assert [first, last] == [2, count + 1]
    share, first, last = _shrinkage(state, order, 0)
    assert share == pytest.approx(1.0 / 11.0)
    assert [first, last] == [0, 1]


def test_only_distances_from_what_looks_alike_are_shrunk():
    """psi(z) s for each item that may be passed: z = .8 / s, or 0 with s sqrt(share) in a tie."""
    count, spread = 30, 0.25
    ranker, state, order = alike(count, spread)
    state.spread[:2] = 0.02  # of the good ones much was seen
    weights, place, root = ranker.params.weights, 20, math.sqrt(1.0 / 31.0)  # a share of 1 / 31
    z = int(64 * 0.8 / spread) / 64  # psi is tabulated by 1 / 64
    psi = math.exp(-z * z / 2) / math.sqrt(2 * math.pi) - z * 0.5 * math.erfc(z / math.sqrt(2))
    far = (weights[0] - weights[2]) * psi * spread
    near = (weights[2] - weights[-1]) / math.sqrt(2 * math.pi) * spread * root
    found = _value(state, order, place, weights, ranker.params.table)
    real = 30.0 / count**2
    assert real / (real + 1.0) == pytest.approx(root**2)
    assert found == pytest.approx(far + near, rel=1e-9)
    assert far > 0.001 * near
