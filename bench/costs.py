"""What a round of every ranker costs: the column "cost" of docs/compare.md.

    python -m bench.costs
    python -m bench.costs --only keystone rtopk --rounds 10000

One list: 20 items on flips, or as many as a ranker can take. Query-document lists: 600 lists of 20
documents with 46 features, which come five times each. World and measure are included. It is the
CPU time of one run on one core, the fastest of some, without what compiling takes.
"""

import argparse
import sys
import time
import warnings
from typing import Any

import numpy as np

from keyhole import play
from keyhole.contracts.worlds import World
from keyhole.rankers import RANKERS
from keyhole.rankers.fixed.base import FixedListRanker
from keyhole.reveals import least_reveal
from keyhole.worlds.choices import Choices
from keyhole.worlds.flips import Flips
from keyhole.worlds.queries import Queries

N_ITEMS, N_FEATURES, N_LISTS, PASSES = 20, 46, 600, 5
FEWER = {"neighbourhood": 6, "forecaster": 4, "hedge": 7}
"""Items of those that go through all rankings, or through pairs of pairs."""
MEASURES = {"semibandit": "Precision@3", "neighbourhood": "Precision@2"}
REPEATS = 3


def on_one_list(name: str, rounds: int) -> tuple[Any, World, int, str]:
    """Return a ranker of a fixed list, its crowd, rounds and measure."""
    n_items, measure = FEWER.get(name, N_ITEMS), MEASURES.get(name, "DCG")
    facts = {"horizon": rounds, "k": 1, "measure": measure}
    world = Choices(n_items) if name == "onlinerank" else Flips(n_items, n_relevant=2)
    return RANKERS.make(name, n_items=n_items, **facts), world, rounds, measure


def on_lists(name: str) -> tuple[Any, World, int, str]:
    """Return a ranker of query-document lists, lists, rounds and measure."""
    numbers, n_rows = np.random.default_rng(0), N_LISTS * N_ITEMS
    features = numbers.random((n_rows, N_FEATURES)).astype(np.float32)
    grades = np.floor(3.0 * features[:, :2].mean(axis=1)).astype(np.float64)
    world = Queries(features, grades, np.arange(0, n_rows + 1, N_ITEMS))
    facts = {"row_norm": world.largest_norm} if name == "contextual-rtopk" else {}
    ranker = RANKERS.make(name, n_features=N_FEATURES, n_items=N_ITEMS, **facts)
    return ranker, world, N_LISTS * PASSES, "NDCG@10"


def cost(name: str, rounds: int) -> float:
    """Return the nanoseconds of CPU time that a round takes."""
    is_fixed = issubclass(RANKERS[name], FixedListRanker)
    ranker, world, n_rounds, measure = on_one_list(name, rounds) if is_fixed else on_lists(name)
    reveal = least_reveal(ranker.depth, ranker.n_items)
    taken = []
    for _ in range(1 + REPEATS):  # the first one compiles
        began = time.process_time()
        play(ranker.fresh(), world, rounds=n_rounds, measure=measure, reveal=reveal)
        taken.append(time.process_time() - began)
    return 1e9 * min(taken[1:]) / n_rounds


def main(arguments: list[str] | None = None) -> int:
    """Print a row for each ranker."""
    parser = argparse.ArgumentParser(prog="python -m bench.costs", description=__doc__)
    parser.add_argument("--only", nargs="+", choices=list(RANKERS), default=list(RANKERS))
    parser.add_argument("--rounds", type=int, default=100_000, help="of games on one list")
    options = parser.parse_args(arguments)
    warnings.simplefilter("ignore")  # of horizons too short
    for name in options.only:
        found = cost(name, options.rounds)
        print(f"{name:22} {found:12,.0f} ns", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
