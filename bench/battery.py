"""Feed the random words of :mod:`keyhole.kernels.draw` to dieharder, in the orders games use them.

``python -m bench.battery`` runs every test of ``dieharder -a`` on three orders of the words;
``--quick`` runs a handful of them. dieharder reads all 64 bits of a word as two numbers of 32
bits; games use the top 52. A test that does not pass is run again with other seeds: chance
does not repeat itself, a defect does.
"""

import argparse
import contextlib
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any, cast

import numba
import numpy as np
from rich.console import Console
from rich.table import Table

from keyhole.base.threads import n_cores
from keyhole.kernels.draw import RANKER_STREAM, WORLD_STREAM, Draw, start, word

OUT = Path(__file__).parent / "out" / "battery.json"
N_ITEMS = 20
N_STREAMS = 8
_CHUNK = 20_000  # a multiple of both; a buffer stays in the cache
_ROUND_OF_STREAMS = 0
_NOISE = 16
_SECOND_SEED = 1_000_003


@numba.njit(nogil=True)
def _items_inner(seed: int, begin: int, out: Any) -> None:
    """All items of a round, then the next round: how a world or a perturbed leader draws."""
    stream = WORLD_STREAM
    for block in range(out.shape[0] // N_ITEMS):
        t = begin // N_ITEMS + block
        first = start(Draw(seed, stream, t), t, 0)
        for item in range(N_ITEMS):
            out[block * N_ITEMS + item] = word(first, item)


@numba.njit(nogil=True)
def _rounds_inner(seed: int, begin: int, out: Any) -> None:
    """One item, round after round: the noise that one item meets in a game."""
    stream = RANKER_STREAM
    for index in range(out.shape[0]):
        t = begin + index
        out[index] = word(start(Draw(seed, stream, t), t, _NOISE), 7)


@numba.njit(nogil=True)
def _seeds_inner(seed: int, begin: int, out: Any) -> None:
    """The first word of every stream, then of the next seed: runs side by side."""
    for block in range(out.shape[0] // N_STREAMS):
        of = seed + begin // N_STREAMS + block
        for stream in range(N_STREAMS):
            draw = Draw(of, stream, _ROUND_OF_STREAMS)
            out[block * N_STREAMS + stream] = word(start(draw, _ROUND_OF_STREAMS, _NOISE), 0)


def _philox(seed: int, begin: int, out: Any) -> None:
    """NumPy's Philox: how many weak p-values a generator beyond doubt has."""
    out[:] = np.random.Philox(key=seed, counter=begin // 4).random_raw(out.shape[0])


ORDERS: dict[str, Callable[[int, int, Any], None]] = {
    "items": _items_inner,
    "rounds": _rounds_inner,
    "seeds": _seeds_inner,
}
CONTROL = "philox"
SOURCES = {**ORDERS, CONTROL: _philox}

Test = tuple[int, int | None]  # dieharder's number, and n where the test takes one

# What ``dieharder -a`` runs, the short tests first.
ALL_TESTS: tuple[Test, ...] = (
    *((number, None) for number in (0, 3, 8, 9, 10, 11, 12, 14, 15, 16, 100, 101, 102)),
    *((200, n) for n in range(1, 13)),
    *((number, None) for number in (1, 2, 4, 5, 6, 7, 13, 17, 204, 205, 206, 207, 208)),
    *((202, n) for n in range(2, 6)),
    (209, 12),
    *((201, n) for n in range(2, 6)),
    *((203, n) for n in range(33)),
)
QUICK_TESTS: tuple[Test, ...] = (
    *((number, None) for number in (0, 3, 8, 9, 10, 15, 100, 101, 102)),
    (200, 6),
    (202, 5),
    (203, 0),
)


@dataclass(frozen=True)
class Row:
    """One p-value."""

    order: str
    test: str
    n: int
    p: float
    assessment: str
    seed: int
    again: bool


def run_test(order: str, test: Test, seed: int, again: bool = False) -> list[Row]:
    """Run one test of dieharder on one order of the words of a seed."""
    number, n = test
    command = ["dieharder", "-g", "200", "-d", str(number)]
    command += [] if n is None else ["-n", str(n)]
    for column in ("test_name", "ntuple", "pvalues", "assessment"):
        command += ["-D", column]
    fill, buffer, begin = SOURCES[order], np.empty(_CHUNK, np.uint64), 0
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        sink, source = cast(IO[bytes], process.stdin), cast(IO[bytes], process.stdout)
        with contextlib.suppress(BrokenPipeError):  # dieharder has read enough
            while True:
                fill(seed, begin, buffer)
                begin += _CHUNK
                left = memoryview(cast(Any, buffer)).cast("B")
                while left:
                    left = left[os.write(sink.fileno(), left) :]
        printed = source.read().decode()
    rows = []
    for line in printed.splitlines():
        cells = [cell.strip() for cell in line.split("|")]
        if len(cells) == 4 and cells[3] in ("PASSED", "WEAK", "FAILED"):
            found = Row(order, cells[0], int(cells[1]), float(cells[2]), cells[3], seed, again)
            rows.append(found)
    if not rows:
        raise RuntimeError(f"dieharder printed no p-value for test {number}: {printed!r}")
    return rows


def _run(order: str, test: Test, seed: int) -> list[Row]:
    rows = run_test(order, test, seed)
    if any(row.assessment != "PASSED" for row in rows):
        rows += run_test(order, test, seed + _SECOND_SEED, again=True)
    return rows


def _save(rows: list[Row], n_tests: int, seconds: float) -> None:
    OUT.parent.mkdir(exist_ok=True)
    report = {
        "summary": _summary(rows),
        "tests_per_order": n_tests,
        "seconds": round(seconds, 1),
        "rows": [asdict(row) for row in rows],
    }
    OUT.write_text(json.dumps(report, indent=1) + "\n")


def _saved() -> list[Row]:
    return [Row(**row) for row in json.loads(OUT.read_text())["rows"]] if OUT.exists() else []


def _summary(rows: list[Row]) -> dict[str, dict[str, int]]:
    summary = {}
    for order in sorted({row.order for row in rows}, key=list(SOURCES).index):
        here = [row for row in rows if row.order == order]
        first = [row for row in here if not row.again]
        counts = {
            kind: sum(row.assessment == kind for row in first)
            for kind in ("PASSED", "WEAK", "FAILED")
        }
        failed = [
            {(r.test, r.n) for r in here if r.again == again and r.assessment == "FAILED"}
            for again in (False, True)
        ]
        twice = len(failed[0] & failed[1])
        summary[order] = {"p-values": len(first), **counts, "FAILED twice": twice}
    return summary


def _tell(console: Console, counter: str, rows: list[Row]) -> None:
    odd = [row for row in rows if row.assessment != "PASSED"]
    notes = [f"{'again ' * row.again}{row.assessment} p={row.p:.6f}" for row in odd] or ["passed"]
    name = f"{rows[0].order} {rows[0].test} {rows[0].n}"
    console.print(f"{counter} {name}: {', '.join(notes)}", highlight=False, soft_wrap=True)


def _cell(rows: list[Row]) -> str:
    """Show the p-values of one test and, if one is not good, those of its repetition."""
    shown = [row for row in rows if not row.again]
    if any(row.assessment != "PASSED" for row in shown):
        shown += [row for row in rows if row.again]
    return " ".join(
        f"{'again ' * row.again}{_MARKS[row.assessment]}{row.p:.4f}[/]" for row in shown
    )


def _print(console: Console, rows: list[Row]) -> None:
    table = Table(title="p-values (again: the same test with other seeds)")
    table.add_column("test", no_wrap=True)
    table.add_column("n", justify="right")
    summary = _summary(rows)
    for order in summary:
        table.add_column(order, justify="right")
    for test, n in sorted({(row.test, row.n) for row in rows}):
        of_test = [row for row in rows if (row.test, row.n) == (test, n)]
        cells = [_cell([row for row in of_test if row.order == order]) for order in summary]
        table.add_row(test, str(n), *cells)
    console.print(table)
    counts = Table(title="Outcome")
    for name in ("order (inner)", "p-values", "passed", "weak", "failed", "failed twice"):
        counts.add_column(name, justify="left" if name.startswith("order") else "right")
    for order, found in summary.items():
        counts.add_row(order, *(str(value) for value in found.values()))
    console.print(counts)
    console.print("Of a hundred p-values of a perfect source one is weak on average.")


_MARKS = {"PASSED": "[default]", "WEAK": "[yellow]weak ", "FAILED": "[bold red]FAILED "}


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.battery", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a handful of tests, two minutes")
    parser.add_argument("--orders", nargs="+", choices=list(SOURCES), default=list(ORDERS))
    parser.add_argument("--resume", action="store_true", help="keep what bench/out has")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=n_cores(), help="tests run at once")
    chosen = parser.parse_args(arguments)
    console = Console()
    if shutil.which("dieharder") is None:
        console.print("dieharder is not installed (on Debian: apt-get install dieharder).")
        return 2
    if hasattr(os, "nice"):
        os.nice(19)
    tests = QUICK_TESTS if chosen.quick else ALL_TESTS
    for fill in SOURCES.values():
        fill(0, 0, np.empty(_CHUNK, np.uint64))
    began, rows = time.perf_counter(), _saved() if chosen.resume else []
    known = {(row.order, row.seed) for row in rows}
    # Every test reads words of its own: other seeds, far apart.
    wanted = [
        (order, test, chosen.seed + (index << 40))
        for index, test in enumerate(tests)
        for order in chosen.orders
    ]
    with ThreadPoolExecutor(chosen.jobs) as pool:
        futures = [pool.submit(_run, *task) for task in wanted if (task[0], task[2]) not in known]
        try:
            for done, future in enumerate(as_completed(futures), 1):
                rows += future.result()
                _save(rows, len(tests), time.perf_counter() - began)
                _tell(console, f"{done}/{len(futures)}", future.result())
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    _print(console, rows)
    return 1 if any(found["FAILED twice"] for found in _summary(rows).values()) else 0


if __name__ == "__main__":
    sys.exit(main())
