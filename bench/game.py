"""Rounds per second of the game, as ratios measured in one run.

Contenders take turns and every ratio is the median over the turns, so that a busy machine
slows all of them alike. One thread is timed by its CPU time; several by the clock.
"""

import argparse
import math
import sys
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from statistics import median
from typing import Any

import numpy as np
from rich.console import Console

from bench import memory
from bench.plain import play_plain
from bench.report import Report
from bench.setup import Setup
from bench.tight import Tight, tight_loop
from keyhole import FTPL, Flips, Forecaster, Hedge, Keystone, OnlineRank, Random, RTopK, play
from keyhole.base.threads import n_cores
from keyhole.contracts.rankers import Ranker
from keyhole.rankers.fixed.iw_onlinerank import IWOnlineRank
from keyhole.rankers.fixed.neighbourhood import NeighbourhoodWatch
from keyhole.rankers.fixed.semibandit import SemiBandit

SAME = 1e-9
ALIKE = 0.05
# Items, rounds, share of the tight loop, multiple of NumPy. The lengths keep the 200 sorts of
# the regret curve below a few per cent.
SCALING_BAR = 1.5
GROWTH_BAR = 1024.0  # KiB; a byte per round would be ten times as much
SPEED_UP_PER_CORE = 0.8


@dataclass(frozen=True)
class Sizes:
    """How long the games are, and the lists in them."""

    games: tuple[tuple[int, int, float, float], ...] = (
        (20, 100_000, 0.4, 30.0),
        (1000, 40_000, 0.6, 5.0),
    )
    lists: tuple[int, ...] = (10, 30, 100, 300, 1000, 3000, 10_000)
    scaling_from: int = 100
    work: int = 20_000_000  # items that are ranked in a game
    keystone: tuple[tuple[int, float], ...] = ((20, 4.0), (1000, 2.5))  # times a round of RTop-kF
    rounds: int = 100_000
    runs: int = 1000
    run_rounds: int = 10_000
    horizons: tuple[int, int] = (memory.SHORT, memory.LONG)
    turns: int = 9
    few_turns: int = 5


FULL = Sizes()
QUICK = replace(FULL, work=4_000_000, rounds=20_000, runs=250, turns=3, few_turns=3)
TINY = Sizes(
    ((5, 60, 0.0, 0.0),), (4, 5, 6), 5, 60, ((5, np.inf),), 8, 3, 20, (10, 20), 1, 1
)  # to see that all of it works: no figure of it means anything


def in_turns(
    contenders: Mapping[str, Callable[[], Any]], turns: int, clock: Callable[[], float]
) -> dict[str, list[float]]:
    """Time contenders in turns; the first of a turn is another one each time."""
    names, seconds = list(contenders), {name: list[float]() for name in contenders}
    for turn in range(turns):
        shift = turn % len(names)
        for name in names[shift:] + names[:shift]:
            began = clock()
            contenders[name]()
            seconds[name].append(clock() - began)
    return seconds


def ratio(slow: Sequence[float], fast: Sequence[float]) -> float:
    """Return the median over the turns of how many times faster ``fast`` is."""
    return median(s / f for s, f in zip(slow, fast, strict=True))


def check_same_work(tight: Tight, setup: Setup) -> float:
    """Return by how much the tight loop's curve differs; raise unless it plays the same game."""
    ours, theirs = setup.play(), tight.play(setup)
    gaps = [
        np.abs(mine[0] / other - 1.0).max()
        for mine, other in ((ours.scores, theirs.scores), (ours.best, theirs.best))
    ]
    if not max(gaps) <= SAME:
        raise SystemExit(
            f"{tight.name} must play keyhole's game: with {setup.n_items} items its curves differ "
            f"by {max(gaps):.1e} (relative), more than {SAME:g}. No speed was measured."
        )
    plain = play_plain(setup).scores[-1]
    if not abs(plain / ours.scores[0, -1] - 1.0) <= ALIKE:
        raise SystemExit(
            f"The NumPy loop must play keyhole's game: with {setup.n_items} items it scored "
            f"{plain:.0f}, keyhole {ours.scores[0, -1]:.0f}. No speed was measured."
        )
    return float(max(gaps))


def contend(report: Report, tight: Tight, console: Console, size: Sizes) -> None:
    """Compare keyhole with the tight loop and with NumPy."""
    for n_items, rounds, share, multiple in size.games:
        setup = Setup(n_items, rounds)
        gap = check_same_work(tight, setup)
        console.print(
            f"m={n_items}: {tight.name} plays the same game; its curves differ by {gap:.1e}."
        )
        contenders: dict[str, Callable[[], Any]] = {
            "keyhole": setup.play,
            tight.name: partial(tight.play, setup),
            "NumPy loop": partial(play_plain, setup),
        }
        seconds = in_turns(contenders, size.turns, time.thread_time)
        for name, spent in seconds.items():
            report.contenders.append(
                {
                    "items": n_items,
                    "rounds": setup.rounds,
                    "contender": name,
                    "ns": median(spent) / setup.rounds * 1e9,
                    "keyhole": ratio(spent, seconds["keyhole"]),
                }
            )
        mine, ns = (
            seconds["keyhole"],
            {n: median(s) / setup.rounds * 1e9 for n, s in seconds.items()},
        )
        report.at_least(
            f"share of the tight loop's rounds/s, m={n_items}",
            f"{ns['keyhole']:,.0f} against {ns[tight.name]:,.0f} ns/round",
            ratio(seconds[tight.name], mine),
            share,
        )
        report.at_least(
            f"times the NumPy loop, m={n_items}",
            f"{ns['keyhole']:,.0f} against {ns['NumPy loop']:,.0f} ns/round",
            ratio(seconds["NumPy loop"], mine),
            multiple,
        )


def scale(report: Report, size: Sizes) -> None:
    """Measure how the cost of a round grows with the list."""
    setups = {m: Setup(m, max(size.work // m, m)) for m in size.lists}
    players = {str(m): s.play for m, s in setups.items()}
    seconds = in_turns(players, size.few_turns, time.thread_time)
    cost = {m: median(seconds[str(m)]) / s.rounds * 1e9 for m, s in setups.items()}
    for m, ns in cost.items():
        row = {"items": m, "rounds": setups[m].rounds, "ns": ns}
        report.scaling.append({**row, "per_m_log_m": ns / (m * math.log2(m))})
    large, small = size.lists[-1], size.scaling_from
    growth = cost[large] / cost[small] * (small * math.log2(small)) / (large * math.log2(large))
    report.at_most(
        "cost of a round grows like m log m",
        f"cost/(m log2 m) at m={large:,} over that at m={small}",
        growth,
        SCALING_BAR,
    )


def keystone(report: Report, size: Sizes) -> None:
    """Measure what a keystone costs beside RTop-kF, and how that grows with the list."""
    large, small = size.lists[-1], size.scaling_from
    lists = sorted({small, large, *(m for m, _ in size.keystone)})
    work = size.work // 2 if report.quick else size.work
    rounds = {m: max(work // m, 2 * m) for m in lists}
    contenders: dict[str, Callable[[], Any]] = {}
    for m, T in rounds.items():
        for name, ranker in (("keystone", Keystone(m)), ("rtopk", RTopK(m, horizon=T))):
            contenders[f"{name}, {m}"] = partial(play, ranker, Flips(m), rounds=T, n_threads=1)
    for contender in contenders.values():
        contender()  # compiles
    seconds = in_turns(contenders, size.few_turns, time.thread_time)
    cost = {
        name: median(spent) / rounds[int(name.split()[1])] * 1e9 for name, spent in seconds.items()
    }
    for m, bar in size.keystone:
        report.at_most(
            f"a round of keystone in rounds of RTop-kF, m={m}",
            f"{cost[f'keystone, {m}']:,.0f} against {cost[f'rtopk, {m}']:,.0f} ns/round",
            ratio(seconds[f"keystone, {m}"], seconds[f"rtopk, {m}"]),
            bar,
        )
    growth = (cost[f"keystone, {large}"] / cost[f"keystone, {small}"]) * (
        small * math.log2(small) / (large * math.log2(large))
    )
    report.at_most(
        "a round of keystone grows like m log m",
        f"cost/(m log2 m) at m={large:,} over that at m={small}",
        growth,
        SCALING_BAR,
    )


def remember(report: Report, size: Sizes) -> None:
    """Measure how memory grows with the horizon."""
    short, long = size.horizons
    found = memory.growth(20, short, long)
    horizons = f"from T={short:,} to {long:,}, fresh process"
    report.at_most(
        "memory is independent of the horizon: heap",
        f"KiB more at the peak of tracemalloc, {horizons}",
        (found.peak_long - found.peak_short) / 1024,
        GROWTH_BAR,
    )
    report.at_most(
        "memory is independent of the horizon: RSS",
        f"KiB more at the peak of getrusage, {horizons}",
        found.rss_growth / 1024,
        GROWTH_BAR,
    )


def spread(report: Report, size: Sizes) -> None:
    """Play many runs on one core and on all."""
    runs, cores = size.runs, n_cores()
    setup, seen, scores = Setup(20, size.run_rounds), dict[int, int](), dict[int, Any]()

    def play_on(n_threads: int) -> None:
        told: list[int] = []
        trace = play(
            setup.ranker,
            setup.world,
            rounds=setup.rounds,
            runs=runs,
            n_threads=n_threads,
            progress=told.append,
        )
        seen[n_threads], scores[n_threads] = sum(told), trace.scores

    contenders = {"1": lambda: play_on(1), "all": lambda: play_on(cores)}
    seconds = in_turns(contenders, size.few_turns, time.perf_counter)
    if cores > 1:
        report.at_least(
            f"{runs} runs use all {cores} cores",
            f"{min(seconds['1']):.2f} s on one thread, {min(seconds['all']):.2f} s on {cores}",
            min(seconds["1"]) / min(seconds["all"]),
            SPEED_UP_PER_CORE * cores,
        )
    report.at_least(
        "progress tells of every round",
        f"rounds told on 1 and {cores} threads, over rounds played",
        min(seen.values()) / (runs * setup.rounds),
        1.0,
    )
    report.at_least(
        "the number of threads changes no result",
        "share of equal scores",
        float((scores[1] == scores[cores]).mean()),
        1.0,
    )


def every_ranker(report: Report, size: Sizes) -> None:
    """Measure every ranker and subroutine."""
    T = size.rounds
    rankers: dict[str, Ranker] = {
        f"rtopk {name}": RTopK(20, horizon=T, subroutine=name)
        for name in ("ftpl", "plackett-luce", "quicksort", "reverse-plackett-luce")
    }
    rankers["keystone"] = Keystone(20)
    rankers["ftpl"] = FTPL(20, horizon=T)
    rankers["onlinerank"] = OnlineRank(20, horizon=T)
    rankers["iw-onlinerank"] = IWOnlineRank(20, horizon=T)
    rankers["iw-onlinerank, top 2"] = IWOnlineRank(20, horizon=T, k=2)
    rankers["semibandit"] = SemiBandit(20, horizon=T, measure="Precision@5")
    rankers["neighbourhood"] = NeighbourhoodWatch(4, horizon=T, measure="Precision@2")
    rankers["hedge"] = Hedge(5, horizon=T)
    rankers["forecaster"] = Forecaster(4, horizon=T)
    rankers["random"] = Random(20)

    def player(ranker: Ranker) -> Callable[[], Any]:
        world = Flips(ranker.n_items, n_relevant=max(1, ranker.n_items // 4))
        return lambda: play(ranker, world, rounds=T, n_threads=1)

    players = {name: player(ranker) for name, ranker in rankers.items()}
    in_turns(players, 1, time.thread_time)  # compiles
    seconds = in_turns(players, size.few_turns, time.thread_time)
    for name, spent in seconds.items():
        ns = median(spent) / T * 1e9
        report.rankers.append({"ranker": name, "items": rankers[name].n_items, "ns": ns})


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.game", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="shorter games, fewer turns")
    parser.add_argument("--fused", action="store_true", help="pretend that there is no compiler")
    parser.add_argument("--tiny", action="store_true", help="only to see that it works")
    chosen = parser.parse_args(arguments)
    console, report = Console(), Report(chosen.quick or chosen.tiny)
    warnings.simplefilter("ignore", UserWarning)  # short horizons are on purpose
    size = TINY if chosen.tiny else QUICK if chosen.quick else FULL
    tight = tight_loop(compile=not chosen.fused)
    console.print(f"The opponent: {tight.name}.")
    contend(report, tight, console, size)
    for part in (scale, keystone, every_ranker, spread, remember):
        part(report, size)
    report.print(console)
    report.save()
    kept = sum(bar.passed for bar in report.bars)
    console.print(f"{kept} of {len(report.bars)} promises kept; details in bench/out/bench.json.")
    return 0 if report.passed else 1


if __name__ == "__main__":
    sys.exit(main())
