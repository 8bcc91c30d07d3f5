"""Many threads on one ranker: what they see, and what being safe for them costs.

``python -m bench.threads``: a million calls by eight threads on a ranker of each kind, compared
with the same updates made by one thread in the order of the log; then the cost of a round by one
thread, with the lock and without. ``--calls``, ``--rounds`` and ``--turns`` make it shorter.
"""

import argparse
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from statistics import median
from typing import Any

import numpy as np
from rich.console import Console

from bench.report import Report
from keyhole.checks.attacks import check_threads_take_turns
from keyhole.contracts.lists import Feedback
from keyhole.contracts.rankers import Ranker
from keyhole.contracts.worlds import World
from keyhole.rankers import RANKERS
from keyhole.rankers.fixed.base import FixedListRanker
from keyhole.worlds.flips import Flips
from keyhole.worlds.queries import Queries

CALLS = 1_000_000
CALLS_PER_ROUND = 2  # a ranking and an update
ROUNDS_AT_ONCE = 2_000
MOST_EXTRA = 1.05
N_FEATURES = 20
SIZES = {"hedge": 5, "forecaster": 4, "neighbourhood": 20}  # those that try all rankings, or sets
MEASURES = {"forecaster": "SumLoss"}  # others are for what they are for unless told otherwise
LONG = 100


def contenders() -> Iterator[tuple[str, Ranker, World]]:
    """Give a ranker of each row of the table with a world that it can play in."""
    numbers = np.random.default_rng(0)
    features = numbers.random((40 * LONG, N_FEATURES))
    lists = Queries(features, (features[:, 0] > 0.7) * 1.0, np.arange(0, 40 * LONG + 1, LONG))
    for name, cls in RANKERS.items():
        make: Any = cls
        if issubclass(cls, FixedListRanker):
            n_items = SIZES.get(name, LONG)
            options: dict[str, Any] = {"measure": MEASURES[name]} if name in MEASURES else {}
            if name == "fixed":
                options["ranking"] = list(range(n_items))
            yield name, make(n_items, **options), Flips(n_items)
        else:
            yield name, make(N_FEATURES, LONG), lists


@contextmanager
def without_lock(ranker: Ranker) -> Iterator[None]:
    """Let a ranker go on as if nobody else used it."""
    lock, unguarded = ranker.lock, nullcontext()
    ranker.lock = unguarded  # type: ignore[assignment]
    try:
        yield
    finally:
        ranker.lock = lock


def seconds_per_round(ranker: Ranker, world: World, rounds: int) -> float:
    """Return the CPU time of a round by one thread through the per-round methods."""
    query = world.query(0)
    feedback = Feedback(np.zeros(query.n_items))
    began = time.thread_time()
    for _ in range(rounds):
        ranker.update(ranker.rank(query), feedback)
    return (time.thread_time() - began) / rounds


def price(ranker: Ranker, world: World, turns: int, rounds: int) -> float:
    """Return how many times as long a round takes with the lock."""
    seconds_per_round(ranker, world, 10)  # compile
    ratios = []
    for _ in range(turns):
        guarded = seconds_per_round(ranker, world, rounds)
        with without_lock(ranker):
            ratios.append(guarded / seconds_per_round(ranker, world, rounds))
    return median(ratios)


def main(arguments: Sequence[str] | None = None) -> int:
    """Attack every ranker, measure the price, and return 1 if a promise is broken."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=CALLS, help="calls in all")
    parser.add_argument("--quick", action="store_true", help="a hundredth of the calls")
    parser.add_argument("--rounds", type=int, default=400, help="rounds of a turn for the price")
    parser.add_argument("--turns", type=int, default=15, help="turns for the price")
    given = parser.parse_args(arguments)
    calls = given.calls // 100 if given.quick else given.calls
    console, report = Console(), Report(given.quick)
    rows = list(contenders())
    for name, ranker, world in rows:
        left, began = calls // (CALLS_PER_ROUND * len(rows)), time.perf_counter()
        while left > 0:
            check_threads_take_turns(ranker, world, min(left, ROUNDS_AT_ONCE))
            left -= ROUNDS_AT_ONCE
        extra = price(ranker, world, given.turns, given.rounds)
        seconds = time.perf_counter() - began
        console.print(f"{name}: as one thread in {seconds:.1f} s; the lock costs x{extra:.3f}")
        report.at_most(f"{name} is safe for threads", "cost of a round", extra, MOST_EXTRA)
    report.print(console)
    return 0 if report.passed else 1


if __name__ == "__main__":
    sys.exit(main())
