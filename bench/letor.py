"""Reading LETOR text, as ratios to scikit-learn's reader measured in one run.

``python -m bench.letor`` writes 200 MB of text with 136 features into a temporary folder, reads
it with both readers in turn and compares every bit; ``--quick`` writes 20 MB. The clock of two
threads says little on a busy machine, so one thread is judged too, by its CPU time.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table
from sklearn.datasets import load_svmlight_file

from bench.game import ratio
from keyhole.base.threads import n_cores
from keyhole.data.letor.queries import QuerySet
from keyhole.data.letor.reader import iterate_letor, read_letor

N_FEATURES = 136
ROWS, QUICK_ROWS = 120_000, 12_000
DIFFERENT_ROWS = 6_000
TURNS, QUICK_TURNS = 3, 7
BAR = 20.0
BLOCK_BYTES = 2**24


def write(path: Path, n_rows: int) -> None:
    """Write documents in lists of 1 to 200; six decimals, as LETOR has them."""
    rng = np.random.default_rng(0)
    scales = 10.0 ** rng.integers(0, 4, N_FEATURES)
    values = rng.random((min(n_rows, DIFFERENT_ROWS), N_FEATURES)) * scales
    bodies = [
        " ".join([f"{i}:{value:.6f}" for i, value in enumerate(row, 1)]) for row in values.tolist()
    ]
    queries = np.repeat(np.arange(n_rows), rng.integers(1, 201, n_rows))[:n_rows].tolist()
    labels = rng.integers(0, 5, n_rows).tolist()
    with path.open("w") as file:
        for row, (query, label) in enumerate(zip(queries, labels, strict=True)):
            file.write(f"{label} qid:{query} {bodies[row % len(bodies)]}\n")


def in_turns(
    reads: dict[str, Callable[[], Any]], turns: int
) -> tuple[dict[str, list[float]], dict[str, list[float]]]:
    """Return what the second of two readings took, by the clock and of the processor."""
    seconds, used = ({name: list[float]() for name in reads} for _ in range(2))
    for _ in range(turns):
        for name, read in reads.items():
            read()  # memory that another reader gave back is slow to get again
            began = time.perf_counter(), time.process_time()
            read()
            seconds[name].append(time.perf_counter() - began[0])
            used[name].append(time.process_time() - began[1])
    return seconds, used


def same_bits(ours: QuerySet, theirs: Any) -> bool:
    """Return whether both readers found the same bits and the same queries."""
    matrix, labels, queries = theirs
    ids = np.repeat(np.array(ours.query_ids, np.int64), np.diff(ours.starts))
    dense = matrix.toarray()
    return (
        dense.shape == ours.features.shape
        and np.array_equal(dense.view(np.int64), ours.features.view(np.int64))
        and np.array_equal(labels.view(np.int64), ours.relevance.view(np.int64))
        and np.array_equal(ids, queries)
    )


def main() -> int:
    """Measure, print, and return 1 if a promise is broken."""
    parser = argparse.ArgumentParser(prog="python -m bench.letor", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a small file")
    parser.add_argument("--rows", type=int, help="documents in the file (120,000; quick: 12,000)")
    parser.add_argument("--turns", type=int, help="turns (3; quick: 7)")
    given = parser.parse_args()
    rows = given.rows or (QUICK_ROWS if given.quick else ROWS)
    turns = given.turns or (QUICK_TURNS if given.quick else TURNS)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "letor.txt"
        write(path, rows)
        return measure(path, Path(folder) / "cache", turns, Console())


def measure(path: Path, cache: Path, turns: int, console: Console) -> int:
    """Time every way to read the file and print the verdicts."""
    size, cores = path.stat().st_size / 1e6, n_cores()

    def ours(**options: Any) -> QuerySet:
        return read_letor(path, missing_relevant="keep", **options)

    def theirs() -> Any:
        return load_svmlight_file(str(path), query_id=True)

    def blocks() -> int:
        read = iterate_letor(path, missing_relevant="keep", block_bytes=BLOCK_BYTES)
        return sum(part.n_documents for part in read)

    identical = same_bits(ours(cache=cache), theirs())  # compiles, and fills caches
    whole, one = f"read_letor, {cores} threads", "read_letor, 1 thread"
    reads: dict[str, Callable[[], Any]] = {
        "scikit-learn": theirs,
        whole: ours,
        one: partial(ours, n_threads=1),
    }
    reads |= {"iterate_letor": blocks, "read_letor, cached": partial(ours, cache=cache)}
    seconds, used = in_turns(reads, turns)

    table = Table(title=f"{size:.0f} MB of LETOR text, {N_FEATURES} features, medians")
    for name in ("reader", "seconds", "MB/s", "times scikit-learn", "CPU seconds", "times"):
        table.add_column(name, justify="left" if name == "reader" else "right")
    for name in reads:
        cells = []
        for measured in (seconds, used):
            gain = ratio(measured["scikit-learn"], measured[name])
            cells += [f"{median(measured[name]):.3f}", f"{gain:.1f}"]
        table.add_row(name, cells[0], f"{size / median(seconds[name]):,.0f}", *cells[1:])
    console.print(table)
    gain = ratio(seconds["scikit-learn"], seconds[whole])
    alone = ratio(used["scikit-learn"], used[one])
    bar = f"at least {BAR:g}"
    verdicts = [
        (f"times scikit-learn, {cores} threads, clock", f"{gain:.1f}", bar, gain >= BAR),
        ("times scikit-learn, 1 thread, CPU time", f"{alone:.1f}", bar, alone >= BAR),
        ("every bit as scikit-learn reads it", str(identical), "True", identical),
    ]
    table = Table(title="Promises")
    for name in ("promise", "figure", "bar", "verdict"):
        table.add_column(name)
    for promise, figure, bar, passed in verdicts:
        table.add_row(promise, figure, bar, "[green]PASS[/]" if passed else "[bold red]FAIL[/]")
    console.print(table)
    return 0 if all(passed for *_, passed in verdicts) else 1


if __name__ == "__main__":
    sys.exit(main())
