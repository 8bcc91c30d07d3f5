"""Keystone beside every ranker that sees as little, on crowds that are made, in two halves.

    python -m bench.rivals --half choose                  # crowds to improve a ranker by
    python -m bench.rivals --half judge --runs 20         # those that judge it
    python -m bench.rivals --only keystone --kept out/rivals.json

80 crowds of 2 to 300 items: flips, pairs, even chances, Zipf, sparse and dense ones, ties, grades,
rare high grades, sets that alternate after any number of rounds, switches and drifts. What was
played is kept in a file, so that rivals are played once; ``--again`` plays those named anew.
"""

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np

from keyhole import play, ranker
from keyhole.base.errors import IntArray
from keyhole.contracts.worlds import World, WorldKernel
from keyhole.kernels.compiled import kernel
from keyhole.kernels.draw import uniform

RIVALS = (
    "keystone", "thompson", "epsilon-greedy", "pege", "pege2", "iw-onlinerank", "rtopk", "toprank"
)  # fmt: skip
HALVES = ("choose", "judge")
FACTOR, ERRORS = 1.05, 2.0


class PhasesParams(NamedTuple):
    """Rounds after which each phase of a cycle is over; chances of each grade or more, by item."""

    ends: Any
    chances: Any


@kernel
def _relevance(params: Any, draw: Any, out: Any) -> None:
    ends = params.ends
    within, phase = draw.round % ends[ends.shape[0] - 1], 0
    while within >= ends[phase]:
        phase += 1
    for item in range(out.shape[0]):
        number, grade = uniform(draw, 0, item), 0
        while grade < params.chances.shape[1] and number < params.chances[phase, grade, item]:
            grade += 1
        out[item] = float(grade)


class Made(World):
    """Phases in a cycle; in each, the grades of items are independent.

    Parameters
    ----------
    chances
        How likely each item (last axis) has each grade or a higher one, in each phase (first axis).
    lengths
        Rounds of each phase.
    """

    kernel: ClassVar[WorldKernel] = WorldKernel(_relevance)

    def __init__(self, chances: Any, lengths: Any = (10**9,)) -> None:
        table = np.array(chances, dtype=float)
        table = table.reshape(-1, 1, table.shape[-1]) if table.ndim < 3 else table
        self.n_items, self.max_grade = table.shape[2], float(table.shape[1])
        self.is_binary = table.shape[1] == 1
        ends = np.cumsum(np.array(lengths, dtype=np.int64))
        self.params = PhasesParams(ends, np.ascontiguousarray(table))

    def relabelled(self, labels: IntArray) -> "Made":
        return Made(self.params.chances[:, :, labels], np.diff(self.params.ends, prepend=0))


class Crowd(NamedTuple):
    """A crowd, its name, how long it stays and how many of its list are seen."""

    name: str
    world: Made
    rounds: int = 10_000
    k: int = 1


def _sets(m: int, n: int, flip: float, sets: int) -> Any:
    """Return chances in which sets of n items are relevant in turn."""
    table = np.full((sets, m), flip)
    for phase in range(sets):
        table[phase, phase * n : (phase + 1) * n] = 1.0 - flip
    return table


def _graded(numbers: Any, m: int, top: int, rare: bool) -> Any:
    """Return chances of grades up to ``top``, of people's tastes or of rare high ones."""
    if rare:
        high = numbers.uniform(0.0, 0.08, m)
        return np.array([[0.3 + 0.0 * high, *(high * (1 - g / top) for g in range(top - 1))]])
    taste = numbers.uniform(0.2, 0.8, m)
    grades = np.arange(1, top + 1)[:, None]
    return np.array([taste ** (grades * numbers.uniform(0.5, 1.0))])


def crowds() -> Iterator[Crowd]:
    """Yield all crowds; those of even number are to choose by, those of odd number to judge by."""
    numbers = np.random.default_rng(28)
    for m, n, flip in (
        (3, 1, 0.1), (4, 2, 0.2), (8, 2, 0.05), (10, 3, 0.1), (20, 5, 0.1), (20, 4, 0.2),
        (50, 5, 0.1), (40, 8, 0.05), (100, 5, 0.1), (120, 4, 0.2), (300, 3, 0.1), (250, 4, 0.1),
        (300, 3, 0.01), (200, 2, 0.02),
    ):  # fmt: skip
        yield Crowd(f"flips {m}, {n}, {flip:g}", Made(_sets(m, n, flip, 1)))
    for a, b in ((0.1, 0.9), (0.2, 0.8), (0.4, 0.6), (0.45, 0.55), (0.9, 0.95), (0.02, 0.05)):
        yield Crowd(f"two items, {a:g} {b:g}", Made([a, b]))
    for m, low, high in (
        (5, 0.2, 0.8), (6, 0.4, 0.6), (10, 0.2, 0.8), (12, 0.1, 0.5), (20, 0.2, 0.8),
        (25, 0.5, 0.9), (60, 0.1, 0.9), (80, 0.2, 0.7),
    ):  # fmt: skip
        chances = numbers.permutation(np.linspace(low, high, m))
        yield Crowd(f"even {m}, {low:g} to {high:g}", Made(chances))
    for m, power in ((10, 1.0), (15, 0.5), (30, 1.0), (40, 0.7), (150, 1.0), (200, 0.6)):
        chances = numbers.permutation(0.9 / np.arange(1, m + 1) ** power)
        yield Crowd(f"Zipf {m}, {power:g}", Made(chances))
    for m, n in ((60, 1), (80, 2), (150, 3), (200, 2)):
        chances = numbers.uniform(0.0, 0.03, m)
        chances[:n] = numbers.uniform(0.3, 0.9, n)
        yield Crowd(f"sparse {m}, {n}", Made(numbers.permutation(chances)))
    for m, n in ((10, 2), (20, 4), (30, 3), (50, 10)):
        chances = numbers.uniform(0.8, 0.97, m)
        chances[:n] = numbers.uniform(0.1, 0.6, n)
        yield Crowd(f"dense {m}, {n}", Made(numbers.permutation(chances)))
    for m, levels in ((10, (0.5,)), (12, (0.3,)), (20, (0.2, 0.7)), (24, (0.1, 0.5, 0.9))):
        yield Crowd(f"ties {m}, {len(levels)}", Made(np.repeat(levels, m // len(levels))))
    for m, top in ((8, 4), (10, 3), (20, 4), (24, 4), (40, 4), (50, 3)):
        yield Crowd(f"grades {m}, {top}", Made(_graded(numbers, m, top, rare=False)), 30_000)
    for m, top in ((10, 4), (15, 3), (30, 4), (40, 4)):
        yield Crowd(f"rare grades {m}, {top}", Made(_graded(numbers, m, top, rare=True)), 30_000)
    for m, n, period in (
        (20, 5, 1), (10, 2, 2), (4, 1, 3), (6, 2, 5), (10, 3, 10), (20, 5, 10), (12, 3, 20),
        (20, 5, 37), (10, 3, 37), (6, 2, 75), (20, 5, 150), (10, 2, 400), (20, 5, 1000),
        (8, 2, 2500),
    ):  # fmt: skip
        world = Made(_sets(m, n, 0.1, 2), (period, period))
        yield Crowd(f"alternating {m}, {n}, {period}", world)
    for m, n in ((5, 2), (10, 3), (20, 4), (30, 8)):
        lengths = numbers.integers(300, 4000, n)
        yield Crowd(f"switches {m}, {n}", Made(numbers.beta(0.5, 0.8, (n, m)), lengths))
    for m in (5, 10, 20, 40):
        ends = numbers.beta(0.7, 0.9, (2, 1, m))
        share = np.linspace(0.0, 1.0, 40)[:, None]
        way = (ends[0] * (1.0 - share) + ends[1] * share)[:, None, :]
        yield Crowd(f"drift {m}", Made(way, np.full(40, 250)))
    yield Crowd("flips 20, 5, 0.1, top 3", Made(_sets(20, 5, 0.1, 1)), k=3)
    yield Crowd("even 20, top 3", Made(np.linspace(0.2, 0.8, 20)), k=3)


def half(name: str) -> list[Crowd]:
    """Return the crowds of a half."""
    return list(crowds())[HALVES.index(name) :: 2]


def regrets(name: str, crowd: Crowd, runs: int, seed: int) -> list[float]:
    """Return the average regret of each run."""
    made = ranker(
        name, n_items=crowd.world.n_items, horizon=crowd.rounds, k=crowd.k,
        max_grade=crowd.world.max_grade,
    )  # fmt: skip
    trace = play(made, crowd.world, rounds=crowd.rounds, runs=runs, seed=seed, n_points=2)
    return [float(value) for value in trace.regret[:, -1] / crowd.rounds]


def judged(own: Any, others: dict[str, Any]) -> tuple[str, float, float, bool]:
    """Return the best rival, its mean, by how many errors keystone is behind, and if it may be."""
    best = min(others, key=lambda name: float(np.mean(others[name])))
    apart = np.subtract(own, others[best])
    error = float(apart.std(ddof=1) / np.sqrt(len(apart)))
    mean = float(np.mean(others[best]))
    allowed = max(0.05 * abs(mean), ERRORS * error)
    return best, mean, float(apart.mean()) / error, bool(apart.mean() <= allowed)


def main(arguments: list[str] | None = None) -> int:
    """Play what is not kept yet, and print a line per crowd."""
    parser = argparse.ArgumentParser(prog="python -m bench.rivals", description=__doc__)
    parser.add_argument("--half", choices=HALVES, default="judge")
    parser.add_argument("--only", nargs="+", choices=RIVALS, default=list(RIVALS))
    parser.add_argument("--again", nargs="+", choices=RIVALS, default=[])
    parser.add_argument("--crowds", default="", help="only those whose names have this in them")
    parser.add_argument("--rounds", type=int, help="by default those of each crowd")
    parser.add_argument("--runs", type=int, default=8)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kept", type=Path, default=Path("out/rivals.json"))
    options = parser.parse_args(arguments)
    kept = json.loads(options.kept.read_text()) if options.kept.is_file() else {}
    n_good = n_all = 0
    for crowd in half(options.half):
        if options.crowds not in crowd.name:
            continue
        crowd = crowd._replace(rounds=options.rounds or crowd.rounds)
        found = {}
        for name in options.only:
            key = f"{name}; {crowd.name}; {crowd.rounds}; {options.runs}; {options.seed}"
            if name in options.again or key not in kept:
                kept[key] = regrets(name, crowd, options.runs, options.seed)
                options.kept.parent.mkdir(parents=True, exist_ok=True)
                options.kept.write_text(json.dumps(kept))
            found[name] = kept[key]
        own = found.pop("keystone")
        line = f"{crowd.name:26} {np.mean(own):9.4f}"
        if found:
            best, mean, errors, is_good = judged(own, found)
            n_good, n_all = n_good + is_good, n_all + 1
            line += f" {best:15} {mean:9.4f} {errors:7.1f} {'' if is_good else 'behind'}"
        print(line, flush=True)
    print(f"{n_good} of {n_all} within {FACTOR} of the best or two errors of it")
    return 0


if __name__ == "__main__":
    sys.exit(main())
