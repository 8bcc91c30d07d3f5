"""One ranker, many threads."""

import copy
import pickle
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from typing import Any, NamedTuple

import numpy as np
import pytest

from keyhole import FTPL, Flips, Hedge, OnlineRank, RTopK
from keyhole.checks.attacks import check_threads_take_turns
from keyhole.contracts.rankers import Ranker, RankerKernel

THREADS = 8
CALLS = 400
LONG = 3_000  # long enough that threads meet inside compiled code, where nothing holds them apart


@pytest.mark.parametrize(
    "ranker",
    [RTopK(LONG, horizon=LONG), OnlineRank(LONG), Hedge(7)],
    ids=lambda ranker: type(ranker).__name__,
)
def test_threads_see_what_one_thread_sees(ranker):
    alone = [ranker.rank(round=t).ranking.tolist() for t in range(CALLS)]
    with ThreadPoolExecutor(THREADS) as pool:
        together = pool.map(lambda t: ranker.rank(round=t).ranking.tolist(), range(CALLS))
        assert list(together) == alone


def test_no_round_is_given_to_two_threads():
    ranker = FTPL(5)
    with ThreadPoolExecutor(THREADS) as pool:
        rounds = list(pool.map(lambda _: ranker.rank().round, range(CALLS)))
    assert sorted(rounds) == list(range(CALLS))


class State(NamedTuple):
    sums: Any


class Slow(Ranker):
    """A ranker whose kernels let other threads run in the middle of what they write."""

    params = None

    @property
    def depth(self):
        return 1


def _rank(params, state, draw, features, out, work):
    for item in range(len(out)):
        work[item] = state.sums[item] + (draw.round * (item + 1)) % len(out)
        time.sleep(0)
    out[:] = np.argsort(-work, kind="stable")
    return False, 1.0


def _update(params, state, seen, work):
    before = state.sums.copy()
    time.sleep(0)
    state.sums[:] = before
    state.sums[seen.ranking[0]] += 0.5 * seen.values[0]


def _init(params, n_items, n_features):
    return State(np.zeros(n_items))


def _work(params, n_items):
    return np.zeros(n_items)


Slow.kernel = RankerKernel(_init, _work, _rank, _update)


class Unlocked(Slow):
    def __init__(self, n_items: int, *, seed: int = 0, run: int = 0) -> None:
        super().__init__(n_items, seed=seed, run=run)
        self.lock = nullcontext()  # type: ignore[assignment]


def test_the_check_sees_a_ranker_without_a_lock():
    world = Flips(5, n_relevant=2)
    check_threads_take_turns(Slow(5), world, 100)
    with pytest.raises(AssertionError, match="must be"):
        check_threads_take_turns(Unlocked(5), world, 100)


@pytest.mark.parametrize(
    "again",
    [copy.copy, copy.deepcopy, lambda ranker: pickle.loads(pickle.dumps(ranker))],  # noqa: S301
)
def test_copies_share_nothing(again):
    ranker = FTPL(4, max_grade=3)
    ranker.update(ranker.rank(), [3, 0, 1, 0])
    other = again(ranker)
    learnt = ranker.state.scores.tolist()
    assert other.state.scores.tolist() == learnt
    other.update(other.rank(), [1, 1, 1, 1])
    assert ranker.state.scores.tolist() == learnt != other.state.scores.tolist()
    assert other.lock is not ranker.lock
