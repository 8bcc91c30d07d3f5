"""Learning on query-document lists and measuring rankings, as ratios measured in one run.

``python -m bench.lists``; ``--quick`` for fewer rounds and turns; ``--peers`` also compares with
river and Vowpal Wabbit, which are installed into a virtual environment of their own under
bench/out. Every contender runs on one thread, timed by its CPU time, in turns, and a ratio is
the median over the turns. Lists have 100 documents of 136 features; there are 200 of them.

The bars are judged against a NumPy loop that does in a round what keyhole does in a round. One
that knows gains, best DCG and targets of every list beforehand is shown next to it, and so are
features of double precision, whose time is that of fetching them from memory, for both.
"""

import argparse
import json
import math
import os
import platform
import subprocess
import sys
import time
import tracemalloc
import venv
import warnings
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from importlib.metadata import version
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from bench.game import in_turns, ratio
from bench.memory import Growth, _peak_rss
from bench.report import Bar
from keyhole import measure
from keyhole.game.play import play
from keyhole.game.trace import Trace
from keyhole.rankers.lists.gradient import Descent
from keyhole.rankers.lists.top_k import ContextualRTopK
from keyhole.worlds.queries import Queries

N_LISTS, N_ITEMS, N_FEATURES = 200, 100, 136
MIX = 0.1
NUMPY_BAR, PEERS_BAR, MEASURES_BAR = 5.0, 50.0, 10.0
GROWTH_BAR = 1024.0  # KiB
SHORT, LONG = 10**4, 10**6
MEASURED_LISTS = 10_000
SAME, ALIKE, FEWEST = 1e-4, 0.05, 500  # rounds after which means of draws are alike
ONE_THREAD = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
ROOT = Path(__file__).parents[1]
OUT = Path(__file__).parent / "out"
PEERS = {"river": "river", "vowpalwabbit": "Vowpal Wabbit, pre-parsed"}


@dataclass(frozen=True)
class Lists:
    """The lists that every contender learns on, one after the other, over and over."""

    features: Any
    grades: Any

    @classmethod
    def drawn(cls, dtype: Any) -> "Lists":
        """Draw documents of norm about one whose grades follow a linear score and noise."""
        rng = np.random.default_rng(0)
        shape = (N_LISTS, N_ITEMS, N_FEATURES)
        features = (rng.normal(size=shape) / np.sqrt(N_FEATURES)).astype(np.float32)
        signal = features @ rng.normal(size=N_FEATURES) + 0.5 * rng.normal(size=shape[:2])
        grades = np.digitize(signal, [0.5, 1.0, 1.6, 2.2]).astype(np.float64)
        return cls(features.astype(dtype), grades)

    @property
    def world(self) -> Queries:
        starts = np.arange(0, N_LISTS * N_ITEMS + 1, N_ITEMS)
        rows = self.features.reshape(-1, N_FEATURES)
        return Queries(rows, self.grades.ravel(), starts, shuffle=False)


class Plain:
    """The same learners as NumPy loops over the rounds, as one would write them by hand.

    Either a round works out all that it needs, as keyhole's does, or whatever follows from the
    grades (gains, best DCG, ListNet's target) is ``known`` beforehand.
    """

    def __init__(self, lists: Lists, known: bool) -> None:
        self.features, self.grades = list(lists.features), list(lists.grades)
        self.discounts = 1.0 / np.log2(np.arange(2, 12))
        self.known = [self._of(grades) for grades in self.grades] if known else None
        self.targets = [self._target(grades) for grades in self.grades] if known else None

    def _of(self, grades: Any) -> tuple[Any, float]:
        gains = 2.0**grades - 1.0
        return gains, self.discounts @ np.sort(gains)[:-11:-1]

    def _target(self, grades: Any) -> Any:
        powers = np.exp(grades - grades.max())
        return (powers / powers.sum()).astype(self.features[0].dtype)

    def _ndcg(self, query: int, top: Any) -> float:
        gains, best = self.known[query] if self.known else self._of(self.grades[query])
        return self.discounts @ gains[top] / best

    def listnet(self, rounds: int) -> float:
        weights, total = np.zeros(N_FEATURES, self.features[0].dtype), 0.0
        for t in range(rounds):
            query = t % N_LISTS
            features = self.features[query]
            scores = features @ weights
            total += self._ndcg(query, (-scores).argsort()[:10])
            powers = np.exp(scores - scores.max())
            target = self.targets[query] if self.targets else self._target(self.grades[query])
            slopes = powers / powers.sum() - target
            weights -= 0.01 * (t + 1.0) ** -0.5 * (slopes @ features)
        return total / rounds

    def top_one(self, surrogate: str, rounds: int) -> float:
        weights, total = np.zeros(N_FEATURES, self.features[0].dtype), 0.0
        rng = np.random.default_rng(0)
        explores, tops = (rng.random(rounds) < MIX).tolist(), rng.integers(N_ITEMS, size=rounds)
        for t in range(rounds):
            query = t % N_LISTS
            features = self.features[query]
            scores = features @ weights
            ranking = (-scores).argsort()
            first = best = ranking[0]
            if explores[t] and tops[t] != best:
                first = tops[t]
                place = int((ranking == first).argmax())
                ranking[1 : place + 1] = ranking[:place].copy()
                ranking[0] = first
            chance = MIX / N_ITEMS + (1.0 - MIX if first == best else 0.0)
            total += self._ndcg(query, ranking[:10])
            grade, rate = self.grades[query][first], 0.003 * (t + 1.0) ** (-2 / 3)
            scores -= scores.mean()
            if surrogate == "kl":
                slopes = np.zeros_like(scores)
                gap = math.exp(min(max(scores[first], -30.0), 30.0)) - math.exp(grade)
                slopes[first] = gap / chance
            else:
                slopes = 2.0 * scores
                slopes[first] -= 2.0 * grade / chance
            weights -= rate * ((slopes - slopes.mean()) @ features)
        return total / rounds

    def player(self, name: str, rounds: int) -> Callable[[], float]:
        """Return the loop of one learner."""
        if name == "listnet":
            return partial(self.listnet, rounds)
        return partial(self.top_one, name, rounds)


def learners() -> dict[str, Any]:
    """Return the rankers that are measured, with full and with top-1 feedback."""
    size = (N_FEATURES, N_ITEMS)
    # The settings of the NumPy loops, whatever the defaults.
    setting: dict[str, Any] = {"mix": MIX, "mix_power": 0.0, "step": "power", "power": 2 / 3}
    return {
        "listnet": Descent(*size, step="power", rate=0.01, power=0.5),
        "squared": ContextualRTopK(*size, surrogate="squared", rate=0.003, **setting),
        "kl": ContextualRTopK(*size, surrogate="kl", rate=0.003, **setting),
    }


@dataclass
class Findings:
    """All findings of one run."""

    quick: bool
    bars: list[Bar] = field(default_factory=list)
    not_measured: list[str] = field(default_factory=list)
    contenders: list[dict[str, float | str]] = field(default_factory=list)

    def add(self, what: str, unit: str, seconds: dict[str, list[float]], counts: Any) -> None:
        """Add the times of contenders, keyhole's first."""
        mine = next(iter(seconds))
        rates = {name: [s / counts[name] for s in spent] for name, spent in seconds.items()}
        for name, spent in rates.items():
            row = {"what": what, "contender": name, "unit": unit, "ns": median(spent) * 1e9}
            self.contenders.append({**row, "keyhole": ratio(spent, rates[mine])})

    def times(self, what: str, contender: str) -> float:
        """Return how many times faster keyhole was than a contender."""
        rows = [r for r in self.contenders if (r["what"], r["contender"]) == (what, contender)]
        return float(rows[-1]["keyhole"])

    def judge(self, what: str, contender: str, bar: float) -> None:
        """Add the promise that keyhole is so many times faster than a contender."""
        figure = self.times(what, contender)
        promise, wanted = f"{what}: times {contender}", f"at least {bar:g}"
        self.bars.append(Bar(promise, "rounds or lists per second", figure, wanted, figure >= bar))

    def print(self, console: Console) -> None:
        table = Table(title="One thread, CPU time, contenders in turn, medians")
        for name in ("what", "contender", "ns", "per second", "keyhole is"):
            table.add_column(name, justify="left" if name in ("what", "contender") else "right")
        for row in self.contenders:
            cells = [str(row["what"]), str(row["contender"]), f"{row['ns']:,.0f}/{row['unit']}"]
            cells.append(f"{1e9 / float(row['ns']):,.0f}")
            table.add_row(*cells, f"{row['keyhole']:.2f} times as fast")
        console.print(table)
        for bar in self.bars:
            verdict = "[green]PASS[/]" if bar.passed else "[bold red]FAIL[/]"
            console.print(f"{verdict} {bar.promise}: {bar.figure:.2f} ({bar.bar})")
        for promise in self.not_measured:
            console.print(f"[yellow]not measured[/] {promise}")

    def save(self) -> None:
        machine = {name: version(name) for name in ("keyhole", "numpy", "numba", "ranx")}
        machine |= {"system": platform.platform(), "python": platform.python_version()}
        OUT.mkdir(exist_ok=True)
        text = json.dumps({"machine": machine, **asdict(self)}, indent=1)
        (OUT / "lists.json").write_text(text + "\n")


def contend(found: Findings, dtype: Any, turns: int, rounds: int) -> None:
    """Compare keyhole with the NumPy loops."""
    lists = Lists.drawn(dtype)
    world, loops, fast = lists.world, Plain(lists, known=False), Plain(lists, known=True)
    for name, ranker in learners().items():
        what = f"{name}, {np.dtype(dtype)}"
        few = rounds // 4

        def ours(ranker: Any = ranker) -> Trace:
            return play(ranker, world, rounds=rounds)

        theirs = loops.player(name, few)
        check_alike(name, play(ranker, world, rounds=few).average_score.mean, theirs(), few)
        ours()
        contenders: dict[str, Callable[[], Any]] = {
            "keyhole": ours,
            "NumPy loop": theirs,
            "NumPy loop that knows the ideals": fast.player(name, few),
        }
        seconds = in_turns(contenders, turns, time.thread_time)
        counts = dict.fromkeys(contenders, few) | {"keyhole": rounds}
        found.add(what, "round", seconds, counts)
        if dtype is np.float32:
            found.judge(what, "NumPy loop", NUMPY_BAR)


def check_alike(name: str, ours: float, theirs: float, rounds: int) -> None:
    """Raise unless both played the same game; ListNet draws nothing, the others do."""
    alike = ALIKE * math.sqrt(max(1.0, FEWEST / rounds))
    if not abs(ours - theirs) <= (SAME if name == "listnet" else alike):
        raise SystemExit(f"{name}: NDCG@10 {ours:.4f} of keyhole, {theirs:.4f} of NumPy.")


def contend_with_peers(found: Findings, turns: int, rounds: int) -> None:
    """Compare keyhole with river and Vowpal Wabbit, which run in a process of their own."""
    python = OUT / "peers-venv" / "bin" / "python"
    OUT.mkdir(exist_ok=True)
    if not python.exists():
        venv.create(OUT / "peers-venv", with_pip=True)
    install = [str(python), "-m", "pip", "install", "--quiet", "numpy", *PEERS]
    subprocess.run(install, check=True, stderr=subprocess.DEVNULL)
    lists, few = Lists.drawn(np.float32), max(rounds // 200, 20)
    np.savez(OUT / "lists.npz", features=lists.features[:20], grades=lists.grades[:20])
    # As a module: the folder of a script comes first on the path, where numbers.py is not Python's.
    script = [str(python), "-m", "bench.peers", str(OUT / "lists.npz")]
    with subprocess.Popen(
        script, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT
    ) as process:
        assert process.stdin is not None  # noqa: S101
        assert process.stdout is not None  # noqa: S101

        def seconds_of(peer: str, feedback: str) -> float:
            print(peer, feedback, few, file=process.stdin, flush=True)
            answer: tuple[float, float] = json.loads(process.stdout.readline())  # type: ignore[union-attr]
            return answer[0]

        world = lists.world
        for name, ranker in learners().items():
            feedback = "full" if name == "listnet" else "top"
            seconds: dict[str, list[float]] = {
                "keyhole": [],
                **{label: [] for label in PEERS.values()},
            }
            for turn in range(turns + 1):
                began = time.thread_time()
                play(ranker, world, rounds=rounds)
                mine = time.thread_time() - began
                peers = {label: seconds_of(peer, feedback) for peer, label in PEERS.items()}
                for label, spent in {"keyhole": mine, **peers}.items():
                    if turn:  # the first compiles
                        seconds[label].append(spent)
            what = f"{name}, float32, {feedback} feedback"
            found.add(what, "round", seconds, dict.fromkeys(seconds, few) | {"keyhole": rounds})
            for label in PEERS.values():
                found.judge(what, label, PEERS_BAR)
        process.stdin.close()


def contend_measures(found: Findings, turns: int, n_lists: int) -> None:
    """Compare measures of many lists with ranx and pytrec_eval, whose objects are built before."""
    import pytrec_eval
    import ranx

    rng, shape = np.random.default_rng(0), (n_lists, N_ITEMS)
    grades = rng.choice(5, size=shape, p=[0.6, 0.2, 0.1, 0.06, 0.04])
    scores = rng.random(shape)
    rankings = np.argsort(-scores, axis=1)
    documents = [f"d{item}" for item in range(N_ITEMS)]
    judged = {
        f"q{q:05}": dict(zip(documents, row, strict=True)) for q, row in enumerate(grades.tolist())
    }
    run = {
        f"q{q:05}": dict(zip(documents, row, strict=True)) for q, row in enumerate(scores.tolist())
    }
    qrels, ranx_run = ranx.Qrels(judged), ranx.Run(run)
    for label, ranx_name, trec_name in (
        ("NDCG@10", "ndcg_burges@10", "ndcg_cut.10"),
        ("AP", "map", "map"),
    ):
        evaluator = pytrec_eval.RelevanceEvaluator(judged, {trec_name})
        contenders: dict[str, Callable[[], Any]] = {
            "keyhole": partial(measure(label).many, grades, rankings),
            "ranx": partial(ranx.evaluate, qrels, ranx_run, ranx_name, return_mean=False),
            "pytrec_eval": partial(evaluator.evaluate, run),
        }
        ours, theirs = contenders["keyhole"](), contenders["ranx"]()
        gap = float(np.abs(ours - theirs).max())
        if not gap <= SAME:
            raise SystemExit(f"{label}: ranx differs from keyhole by {gap:.1e}.")
        contenders["pytrec_eval"]()
        seconds = in_turns(contenders, turns, time.process_time)
        what = f"{label}, {n_lists:,} x {N_ITEMS}"
        found.add(what, "list", seconds, dict.fromkeys(contenders, n_lists))
        for peer in ("ranx", "pytrec_eval"):
            found.judge(what, peer, MEASURES_BAR)


def grow(short: int, long: int) -> Growth:
    """Measure how memory grows with the number of rounds, in a process that did nothing else."""
    lists = Lists.drawn(np.float32)
    world, ranker = lists.world, learners()["kl"]

    def peak(rounds: int) -> int:
        tracemalloc.start()
        play(ranker, world, rounds=rounds)
        found = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return found

    for _ in range(2):  # compiled, and the allocator warm
        play(ranker, world, rounds=short)
    peaks = [peak(short), peak(short)]
    before = _peak_rss()
    play(ranker, world, rounds=long)
    growth = _peak_rss() - before
    return Growth(peaks[1], peak(long), growth)


def remember(found: Findings, short: int, long: int) -> None:
    """Add the promises about memory."""
    command = [sys.executable, "-m", "bench.lists", "--grow", str(short), str(long)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    growth = Growth(*json.loads(done.stdout))
    more = {"heap": growth.peak_long - growth.peak_short, "RSS": growth.rss_growth}
    for kind, size in more.items():
        promise = f"memory is independent of the rounds: {kind}, KiB, T={short:,} to {long:,}"
        wanted = f"at most {GROWTH_BAR:g}"
        passed = size / 1024 <= GROWTH_BAR
        found.bars.append(Bar(promise, "KiB more at the peak", size / 1024, wanted, passed))


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.lists", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer rounds, fewer turns")
    parser.add_argument("--peers", action="store_true", help="install and run river and VW")
    parser.add_argument("--rounds", type=int, help="rounds of a game (20,000; 2,000 if quick)")
    parser.add_argument("--turns", type=int, help="turns (9; 3 if quick)")
    parser.add_argument("--measured", type=int, default=MEASURED_LISTS, help="lists to measure")
    parser.add_argument("--grow", type=int, nargs=2, help=argparse.SUPPRESS)
    chosen = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    if chosen.grow:
        print(json.dumps(grow(*chosen.grow)))
        return 0
    if any(os.environ.get(name) != "1" for name in ONE_THREAD):  # read when NumPy is imported
        command = [sys.executable, "-m", "bench.lists", *(arguments or sys.argv[1:])]
        environment = {**os.environ, **dict.fromkeys(ONE_THREAD, "1")}
        return subprocess.run(command, check=False, env=environment).returncode
    turns, rounds = (3, 2_000) if chosen.quick else (9, 20_000)
    turns, rounds = chosen.turns or turns, chosen.rounds or rounds
    console, found = Console(), Findings(chosen.quick)
    for dtype in (np.float32, np.float64):
        contend(found, dtype, turns, rounds)
    contend_measures(found, min(turns, 5), chosen.measured)
    if chosen.peers:
        contend_with_peers(found, min(turns, 5), rounds)
    else:
        found.not_measured += [f"{PEERS_BAR:g} times {label}" for label in PEERS.values()]
    remember(found, *((rounds, 2 * rounds) if chosen.rounds else (SHORT, LONG)))
    found.print(console)
    found.save()
    kept = sum(bar.passed for bar in found.bars)
    console.print(f"{kept} of {len(found.bars)} promises kept; details in bench/out/lists.json.")
    return 0 if kept == len(found.bars) else 1


if __name__ == "__main__":
    sys.exit(main())
