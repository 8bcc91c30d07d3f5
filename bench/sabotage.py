"""Keystone with its adaptive half replaced by the worst there is, on crowds of all gaps.

    python -m bench.sabotage [--rounds N] [--runs N] [--crowds NAME ...]

The adaptive half shows the worst fixed list of the crowd and estimates means as wrong as they can
be, or shows its own list reversed and believes the opposite of what it saw. Prints the regret per
round and the log-log slope of the regret from a hundredth of the rounds on, crowd by crowd, and for
the hardest crowd of each horizon: a crowd whose gaps are too small to be learnt in the given rounds
has slope 1 until they are. Last comes the same without a safe half. Exits with 1 if the slope of
the hardest crowd is above .72, or if that of the last one is not.
"""

import argparse
import sys

import numpy as np
from rich.console import Console
from rich.progress import track

from bench.theory.phases import Phases
from bench.theory.sabotage import Sabotaged
from keyhole.game.play import play
from keyhole.game.trace import interval_over_runs
from keyhole.rankers.fixed.keystone import Keystone

N_ITEMS = 20
LARGEST_SLOPE = 0.72
CROWDS = {
    "flips": np.where(np.arange(N_ITEMS) < N_ITEMS // 4, 0.9, 0.1),
    ".8 to .2": np.linspace(0.8, 0.2, N_ITEMS),
    ".7 to .3": np.linspace(0.7, 0.3, N_ITEMS),
    ".6 to .4": np.linspace(0.6, 0.4, N_ITEMS),
    ".55 to .45": np.linspace(0.55, 0.45, N_ITEMS),
}
"""How likely each item is to be relevant."""


def worst_means(chances):
    """Return means as far from the truth as they can be, in the opposite order of the items."""
    return np.where(chances > np.median(chances), 0.0, 0.999) + 1e-3 * (1.0 - chances)


def ruined(chances):
    """Return keystones by what their adaptive half does; the last must fail."""
    wrong = worst_means(chances)
    return {
        "worst list": Sabotaged(Keystone(N_ITEMS), means=wrong),
        "reversed": Sabotaged(Keystone(N_ITEMS)),
        "no safe half": Sabotaged(Keystone(N_ITEMS), means=wrong, safe=False),
    }


def slope(ends):
    """Return the log-log slope between a hundredth of the rounds and all of them."""
    return float(np.log(ends[-1] / ends[0]) / np.log(100.0))


def regrets(ranker, chances, rounds, runs):
    """Return regret by run (row) at a hundredth and a tenth of the rounds, and at their end."""
    found, trace = [], None
    for part in (rounds // 100, rounds // 10 - rounds // 100, rounds - rounds // 10):
        world = Phases(chances)
        trace = play(
            ranker, world, rounds=part, runs=runs, seed=13, n_points=2, start=trace, n_threads=1
        )
        found.append(trace.regret[:, -1])
    return np.array(found).T


def line(name, table, rounds):
    ends = table.mean(axis=0)
    low, high = interval_over_runs(slope, table)
    points = (rounds // 100, rounds // 10, rounds)
    averages = " / ".join(f"{r / n:.4f}" for r, n in zip(ends, points, strict=True))
    return f"| {name} | {averages} | {slope(ends):.3f} ({low:.3f} to {high:.3f}) |"


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.sabotage", description=__doc__)
    parser.add_argument("--rounds", type=int, default=1_000_000)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--crowds", nargs="+", choices=CROWDS, default=list(CROWDS))
    chosen = parser.parse_args(arguments)
    rounds, hardest = chosen.rounds, {}
    crowds = {name: CROWDS[name] for name in chosen.crowds}
    points = " / ".join(f"{n:,}" for n in (rounds // 100, rounds // 10, rounds))
    print(
        f"| adaptive half, crowd | regret per round after {points} | slope (95 %) |\n|---|---|---|"
    )
    for kind in ruined(CROWDS["flips"]):
        tables = {
            crowd: regrets(ruined(chances)[kind], chances, rounds, chosen.runs)
            for crowd, chances in track(crowds.items(), kind, console=Console(stderr=True))
        }
        for crowd, table in tables.items():
            print(line(f"{kind}, {crowd}", table, rounds))
        largest = np.max([table.mean(axis=0) for table in tables.values()], axis=0)
        hardest[kind] = slope(largest)
        print(f"| **{kind}, the hardest of each** | | **{hardest[kind]:.3f}** |", flush=True)
    *safe, unsafe = hardest.values()
    return 0 if max(safe) <= LARGEST_SLOPE < unsafe else 1


if __name__ == "__main__":
    sys.exit(main())
