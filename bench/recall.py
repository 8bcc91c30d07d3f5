"""What a round of recall costs against a step of ListNet, and whether its memory is flat.

``python -m bench.recall``; ``--quick`` for fewer rounds and turns. Lists are drawn: 46 features as
MQ2008 has them (564 lists of 5 to 38 documents) and 136 (200 lists of 100). Both rankers play the
same lists on one thread, timed by their CPU time in turns; ratios are medians over the turns. The
promise is of lists that recur, as in the papers. A pass over lists that are all new, where every
document must be described and every list teaches something, is shown beside it.
"""

import argparse
import json
import subprocess
import sys
import time
import tracemalloc
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from rich.console import Console

from bench.game import in_turns, ratio
from bench.memory import Growth, _peak_rss
from bench.report import Report
from keyhole.game.play import play
from keyhole.game.trace import Trace
from keyhole.rankers.lists.gradient import Descent
from keyhole.rankers.lists.recall import Recall
from keyhole.worlds.queries import Queries

NEW_PASSES = 10
GROWTH_BAR = 1024.0  # KiB


class Sizes(NamedTuple):
    """How long the games are; ``horizons`` are those whose memory is compared."""

    shapes: tuple[tuple[int, int, tuple[int, int], int, float], ...]
    """Features, lists, their lengths, rounds, and how many steps of ListNet a round may take."""
    listnet: int
    horizons: tuple[int, int]
    turns: int


FULL = Sizes(
    ((46, 564, (5, 38), 100_000, 4.0), (136, 200, (100, 100), 20_000, 15.0)),
    10_000,
    (10**4, 10**6),
    5,
)
QUICK = Sizes(
    ((46, 564, (5, 38), 20_000, 4.0), (136, 200, (100, 100), 4_000, 15.0)),
    10_000,
    (10**4, 10**5),
    3,
)
TINY = Sizes(((3, 2, (2, 4), 6, np.inf),), 4, (4, 8), 1)


def drawn(n_features: int, n_lists: int, lengths: tuple[int, int]) -> Queries:
    """Return lists whose grades follow a linear score of the features, and noise."""
    numbers = np.random.default_rng(0)
    sizes = numbers.integers(lengths[0], lengths[1] + 1, n_lists)
    features = numbers.random((int(sizes.sum()), n_features), dtype=np.float32)
    signal = (features - 0.5) @ numbers.normal(size=n_features)
    signal = signal / signal.std() + 0.7 * numbers.normal(size=len(features))
    grades = np.digitize(signal, [1.0, 1.8]).astype(float)
    return Queries(features, grades, np.concatenate([[0], np.cumsum(sizes)]))


def games(world: Queries, ranker: Any, rounds: int, repeats: int = 1) -> list[Trace]:
    """Play a game, or several that all begin anew."""
    played = partial(play, ranker, world, rounds=rounds, greedy=False, n_points=2, n_threads=1)
    return [played(seed=seed) for seed in range(repeats)]


def contend(report: Report, console: Console, turns: int, size: Sizes) -> None:
    """Compare both rankers on lists that recur, and on lists that are all new."""
    for n_features, n_lists, lengths, rounds, bar in size.shapes:
        world = drawn(n_features, n_lists, lengths)
        sides = (n_features, world.n_items)
        recall, listnet = Recall(*sides), Descent(*sides, row_norm=world.largest_norm)
        contenders = {
            "listnet": partial(games, world, listnet, size.listnet),
            "recurring": partial(games, world, recall, rounds),
            "new": partial(games, world, recall, n_lists, NEW_PASSES),
        }
        counts = {"listnet": size.listnet, "recurring": rounds, "new": n_lists * NEW_PASSES}
        for one in (recall, listnet):
            games(world, one, 10)  # compile
        seconds = in_turns(contenders, turns, time.thread_time)
        each = {name: [s / counts[name] for s in spent] for name, spent in seconds.items()}
        times = {name: ratio(each[name], each["listnet"]) for name in ("recurring", "new")}
        micro = {name: 1e6 * min(spent) for name, spent in each.items()}
        console.print(
            f"{n_features} features: ListNet {micro['listnet']:.2f} us a step; recall "
            f"{micro['recurring']:.2f} us a round on lists that recur (x{times['recurring']:.1f}), "
            f"{micro['new']:.2f} us on new lists (x{times['new']:.1f})"
        )
        what = f"recall at {n_features} features, {rounds:,} rounds"
        report.at_most(what, "steps of ListNet", times["recurring"], bar)


def _measure_growth(size: Sizes) -> Growth:
    world = drawn(*size.shapes[0][:3])
    recall = Recall(size.shapes[0][0], world.n_items)
    short, long = size.horizons
    for _ in range(2):  # compiled, and the allocator warm
        games(world, recall, short)
    peaks = list[int]()
    for length in (short, long):
        before = _peak_rss()
        tracemalloc.start()
        games(world, recall, length)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    return Growth(peaks[0], peaks[1], _peak_rss() - before)


def main() -> int:
    """Measure both promises, and return 1 if one of them is broken."""
    parser = argparse.ArgumentParser(prog="python -m bench.recall", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer rounds and turns")
    parser.add_argument("--tiny", action="store_true", help="only to see that it works")
    parser.add_argument("--growth", action="store_true", help="print how memory grows, no more")
    given = parser.parse_args()
    size = TINY if given.tiny else QUICK if given.quick else FULL
    if given.growth:
        print(json.dumps(_measure_growth(size)))
        return 0
    console, report = Console(), Report(given.quick)
    contend(report, console, size.turns, size)
    short, long = size.horizons
    command = [sys.executable, "-m", "bench.recall", "--growth", *sys.argv[1:]]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    found = Growth(*json.loads(done.stdout))
    kib = max(found.peak_long - found.peak_short, found.rss_growth) / 1024
    report.at_most(
        f"recall: memory of {long:,} rounds", f"KiB more than of {short:,}", kib, GROWTH_BAR
    )
    report.print(console)
    return 0 if report.passed else 1


if __name__ == "__main__":
    sys.exit(main())
