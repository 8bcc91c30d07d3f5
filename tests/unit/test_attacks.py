"""What the attacks that are shipped must refuse, one thing each, and what is accepted without it.

Rankers here are plain Python. Each shows other lists than the order of its updates gives, or breaks
when it is misused, and keeps the contract otherwise.
"""

import threading
from typing import Any, NamedTuple

import numpy as np
import pytest

from keyhole import Flips
from keyhole.base.errors import InvalidInput
from keyhole.checks.attacks import check_nothing_breaks_the_state, check_threads_take_turns
from keyhole.contracts.rankers import Ranker, RankerKernel

pytestmark = pytest.mark.interpreted

N_ITEMS = 40
WORLD = Flips(N_ITEMS, n_relevant=2)
ROUNDS = 60


class State(NamedTuple):
    sums: Any


def init(params, n_items, n_features):
    return State(np.zeros(n_items))


def work(params, n_items):
    return np.zeros(n_items)


def rank(params, state, draw, features, out, work):
    out[:] = np.argsort(-state.sums, kind="stable")
    return False, 1.0


def by_round(params, state, seen, work):
    """Put an item on top that the round says: every update changes the list."""
    state.sums[:] *= 0.5
    state.sums[seen.draw.round % N_ITEMS] += 1.0


class Fine(Ranker):
    """Shows what its updates say."""

    kernel = RankerKernel(init, work, rank, by_round)
    params = None

    @property
    def depth(self):
        return 1


def is_alone():
    return threading.current_thread() is threading.main_thread()


class OutOfDate(Fine):
    """Shows many threads what the state was some updates ago, and one thread what it is."""

    age = 1

    def __init__(self, n_items: int, *, seed: int = 0, run: int = 0) -> None:
        super().__init__(n_items, seed=seed, run=run)
        self.before: list[Any] = []

    def update(self, impression, feedback):
        with self.lock:
            self.before.append(self.state.sums.copy())
            super().update(impression, feedback)

    def rank(self, query=None, *, round=None):
        with self.lock:
            now = self.state.sums.copy()
            if not is_alone() and self.before and self.age:
                self.state.sums[:] = self.before[max(0, len(self.before) - self.age)]
            shown = super().rank(query, round=round)
            self.state.sums[:] = now
            return shown


class OneArray(Fine):
    """Shows many threads one array: what was shown becomes what later calls write to it."""

    own = False

    def rank(self, query=None, *, round=None):
        with self.lock:
            shown = super().rank(query, round=round)
            if is_alone() or self.own:
                return shown
            if not hasattr(self, "shared"):
                self.shared = shown.ranking
            self.shared[:] = shown.ranking
            object.__setattr__(shown, "ranking", self.shared)
            return shown


@pytest.mark.parametrize("age", [1, 2, 10**9], ids=["one update", "two updates", "from the start"])
def test_lists_of_yesterday_are_refused(age):
    stale = type("Stale", (OutOfDate,), {"age": age})
    current = type("Current", (OutOfDate,), {"age": 0})
    check_threads_take_turns(current(N_ITEMS), WORLD, ROUNDS)
    with pytest.raises(AssertionError, match="What Stale shows to many threads must be"):
        check_threads_take_turns(stale(N_ITEMS), WORLD, ROUNDS)


def test_lists_of_tomorrow_are_refused():
    check_threads_take_turns(type("Own", (OneArray,), {"own": True})(N_ITEMS), WORLD, ROUNDS)
    with pytest.raises(AssertionError, match="What OneArray shows to many threads must be"):
        check_threads_take_turns(OneArray(N_ITEMS), WORLD, ROUNDS)


@pytest.mark.parametrize("forgets", [False, True])
def test_updates_that_are_lost_are_refused(forgets):
    """The lists are right up to the last update, which many threads lose."""

    class Forgetful(Fine):
        made = 0

        def update(self, impression, feedback):
            self.made += 1
            if is_alone() or not forgets or self.made < ROUNDS:
                super().update(impression, feedback)

    if not forgets:
        check_threads_take_turns(Forgetful(N_ITEMS), WORLD, ROUNDS)
        return
    with pytest.raises(AssertionError, match="The state of Forgetful must be that of its updates"):
        check_threads_take_turns(Forgetful(N_ITEMS), WORLD, ROUNDS)


# ------------------------------------------------------------------ misuse


class Spoilt(Fine):
    """A ranker to which something happens when an update is refused, or a state is given."""

    def refused(self):
        """Be told that an update was refused."""

    def update(self, impression, feedback):
        try:
            super().update(impression, feedback)
        except InvalidInput:
            self.refused()
            raise


class Traced(Spoilt):
    def refused(self):
        self.state.sums[3] += 1.0


class Counting(Spoilt):
    def refused(self):
        self.next_round += 1


class Confused(Spoilt):
    is_confused = False

    def refused(self):
        self.is_confused = True

    def rank(self, query=None, *, round=None):
        shown = super().rank(query, round=round)
        if self.is_confused:
            shown.ranking[0] = shown.ranking[1]
        return shown


class Gullible(Spoilt):
    def load_state_dict(self, arrays):
        if "sums" in arrays and np.shape(arrays["sums"]) == self.state.sums.shape:
            self.state.sums[:] = arrays["sums"]
        return self


class Endless(Spoilt):
    """Learns from relevance that has no end, as if it were a number."""

    def update(self, impression, feedback):
        if isinstance(feedback, np.ndarray) and np.isinf(feedback).any():
            self.state.sums[0] = np.inf
            return
        super().update(impression, feedback)


@pytest.mark.parametrize(
    ("kind", "sentence"),
    [
        (Traced, "What Traced refuses must leave its state as it was"),
        (Counting, "What Counting refuses must leave its state as it was"),
        (Confused, "Confused must show each item once whatever it was given before"),
        (Gullible, "`sums` of the state of Gullible must be finite whatever it is given"),
        (Endless, "`sums` of the state of Endless must be finite whatever it is given"),
    ],
)
def test_misuse_leaves_a_trace(kind, sentence):
    check_nothing_breaks_the_state(Spoilt(N_ITEMS), WORLD, 12)
    with pytest.raises(AssertionError, match=sentence):
        check_nothing_breaks_the_state(kind(N_ITEMS), WORLD, 12)
