"""What a ranker does under its lock: all that reads or writes what it has learnt.

Whether a lock is held is asked from another thread, which would have to wait for it.
"""

import copy
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
import pytest

from keyhole import FTPL, Flips
from keyhole.checks.attacks import check_calls_hold_the_lock
from keyhole.contracts import rankers, states
from keyhole.contracts.rankers import Ranker, RankerKernel
from keyhole.game.batched import learn_many, rank_many

pytestmark = pytest.mark.interpreted

WORLD = Flips(4, n_relevant=2)


def is_held(lock):
    """Return whether another thread would have to wait for a lock."""

    def attempt():
        taken = lock.acquire(blocking=False)
        if taken:
            lock.release()
        return not taken

    with ThreadPoolExecutor(1) as pool:
        return pool.submit(attempt).result()


class State(NamedTuple):
    sums: Any


class Params(NamedTuple):
    seen: Any


def init(params, n_items, n_features):
    params.seen.append("init")
    return State(np.zeros(n_items))


def work(params, n_items):
    params.seen.append("work")
    return np.zeros(n_items)


def rank(params, state, draw, features, out, work):
    params.seen.append("rank")
    out[:] = np.argsort(-state.sums, kind="stable")
    return False, 1.0


def greedy(params, state, features, out, work):
    params.seen.append("greedy")
    out[:] = np.argsort(-state.sums, kind="stable")


def prepare(params, state, features, upcoming, work):
    params.seen.append("prepare")


def note(params, work, out):
    params.seen.append("note")
    out[:] = 0.5


def update(params, state, seen, work):
    params.seen.append("update")
    state.sums[seen.ranking[0]] += 1.0


class Watched(Ranker):
    """A ranker whose kernels take down their names, and whether its lock is held."""

    kernel = RankerKernel(init, work, rank, update, greedy, prepare, note, lambda _: 1)

    def __init__(self, n_items: int, *, seed: int = 0, run: int = 0) -> None:
        super().__init__(n_items, seed=seed, run=run)
        self.told: list[tuple[str, bool]] = []
        self.params = Params(self)

    def append(self, name):
        self.told.append((name, is_held(self.lock)))

    def __getstate__(self):
        return {**super().__getstate__(), "told": [], "params": None}

    @property
    def depth(self):
        return 1


class Unlocked(Watched):
    """One whose calls take their lock when what counts is done."""

    def rank(self, query=None, *, round=None):
        lock, self.lock = self.lock, NOBODY
        shown = super().rank(query, round=round)
        self.lock = lock
        return shown

    def update(self, impression, feedback):
        lock, self.lock = self.lock, NOBODY
        super().update(impression, feedback)
        self.lock = lock


class Anything:
    """A lock that keeps nobody out."""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def acquire(self, **_):
        return True

    def release(self):
        pass


NOBODY: Any = Anything()


def many(ranker):
    shown = rank_many(ranker, 3, 2)
    notes = np.array([one.note for one in shown])
    rankings = np.array([one.ranking for one in shown])
    return learn_many(
        ranker, [3, 4], rankings, [False] * 2, [1.0] * 2, np.ones((2, ranker.n_items)), notes
    )


CALLS = {
    "rank": (lambda ranker: ranker.rank(), {"init", "work", "prepare", "rank", "note"}),
    "best": (lambda ranker: ranker.best(), {"init", "work", "prepare", "greedy"}),
    "update": (
        lambda ranker: ranker.update(Watched(4).rank(), 1),
        {"init", "work", "prepare", "update"},
    ),
    "state": (lambda ranker: ranker.state, {"init"}),
    "many": (many, {"init", "work", "prepare", "rank", "note", "update"}),
}


@pytest.mark.parametrize("name", CALLS)
def test_kernels_are_called_under_the_lock(name):
    call, kernels = CALLS[name]
    ranker = Watched(4)
    call(ranker)
    assert {name for name, _ in ranker.told} == kernels
    assert all(held for _, held in ranker.told), ranker.told
    assert not is_held(ranker.lock)


def test_it_is_seen_where_the_lock_is_not_held():
    ranker = Unlocked(4)
    impression = ranker.rank()
    ranker.update(impression, 1)
    called = dict(ranker.told)
    assert called["rank"] is called["update"] is False


def test_states_are_copied_under_the_lock(monkeypatch):
    ranker, told = Watched(4), []

    def arrays(*given):
        told.append(is_held(ranker.lock))
        return rankers_arrays(*given)

    rankers_arrays = states.state_arrays
    monkeypatch.setattr(rankers, "state_arrays", arrays)
    assert set(ranker.state_dict()) == {"sums", "next_round", "spec"}
    assert told == [True]


class Telling:
    """An array of a state that tells whether the lock is held when it is copied or written."""

    def __init__(self, ranker, array):
        self.ranker, self.array, self.told = ranker, array, []
        self.shape, self.dtype = array.shape, array.dtype

    def copy(self):
        self.told.append(is_held(self.ranker.lock))
        return self.array.copy()

    def __setitem__(self, where, values):
        self.told.append(is_held(self.ranker.lock))
        self.array[where] = values


def test_states_are_taken_over_and_copied_with_the_ranker_under_the_lock():
    ranker = Watched(4)
    ranker.update(ranker.rank(), 1)
    arrays = {**Watched(4).state_dict(), "sums": np.arange(4.0)}
    part = Telling(ranker, ranker.state.sums)
    ranker._state = State(part)
    ranker.load_state_dict(arrays)
    assert part.array.tolist() == [0.0, 1.0, 2.0, 3.0]
    again = copy.copy(ranker)
    assert again.state.sums.tolist() == [0.0, 1.0, 2.0, 3.0]
    assert part.told == [True, True]


# ------------------------------------------------------------------ the check that is shipped


def without_lock(*names):
    """Return a ranker that makes some of its calls without its lock."""

    def freely(call):
        def made(self, *given, **options):
            lock, self.lock = self.lock, Anything()
            found = call(self, *given, **options)
            self.lock = lock
            return found

        return made

    changed = {name: freely(getattr(FTPL, name)) for name in names}
    return type("Changed", (FTPL,), changed)(4)


@pytest.mark.parametrize("name", ["rank", "update", "load_state_dict"])
def test_the_check_sees_calls_without_the_lock(name):
    check_calls_hold_the_lock(without_lock(), WORLD, 12)
    with pytest.raises(AssertionError, match=f"`{name}` of Changed must change the ranker"):
        check_calls_hold_the_lock(without_lock(name), WORLD, 12)


@pytest.mark.parametrize("when", ["before", "after", "between"])
def test_the_check_sees_what_is_changed_beside_the_lock(when):
    class Hasty(FTPL):
        def update(self, impression, feedback):
            if when == "before":
                self.state.scores[0] += 1.0
            if when == "between":
                super().update(impression, feedback)
                self.state.scores[0] += 1.0
            super().update(impression, feedback)
            if when == "after":
                self.state.scores[0] += 1.0

    with pytest.raises(AssertionError, match="`update` of Hasty must change the ranker"):
        check_calls_hold_the_lock(Hasty(4), WORLD, 12)
