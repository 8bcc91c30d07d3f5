"""``python -m bench.fuzz``: attacks on the library and the command line, by number.

A case is a function of the seed and its number alone: ``--case 1234`` makes one again and tells
all of it. What fails is kept in ``out/fuzz``. docs/hardening.md explains all.
"""

import argparse
import itertools
import json
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from rich.console import Console
from rich.table import Table

from bench.fuzz.cases import AREAS, Report, area_of, judge, warm
from bench.fuzz.workers import LIMIT, Workers

OUT = Path("out") / "fuzz"


def numbers_of(seed: int, n_cases: int, areas: Sequence[str]) -> Iterator[int]:
    """Return the numbers of the first cases of some areas."""
    mine = (number for number in itertools.count() if area_of(seed, number) in areas)
    return itertools.islice(mine, n_cases)


def table_of(reports: Sequence[Report]) -> Table:
    """Return the areas with what came of their cases."""
    table = Table(title="Cases by area")
    for name in ("area", "cases", "something worked", "all refused", "failed", "slowest"):
        table.add_column(name, justify="left" if name == "area" else "right")
    for area in [*AREAS, "all"]:
        here = [report for report in reports if area in (report.area, "all")]
        if not here:
            continue
        worked = sum(report.n_worked > 0 for report in here)
        refused = sum(report.n_worked == 0 < report.n_refused for report in here)
        failed = sum(bool(report.failures) for report in here)
        slowest = max(here, key=lambda report: report.seconds)
        table.add_row(
            area, f"{len(here):,}", f"{worked / len(here):.0%}", f"{refused / len(here):.0%}",
            f"{failed:,}", f"{slowest.seconds:.1f} s (case {slowest.number})",
        )  # fmt: skip
    return table


def classes_of(reports: Sequence[Report]) -> list[tuple[str, str, int, int]]:
    """Return area, class, number of cases and the first case of all that failed, most first."""
    found = [(r.area, kind) for r in reports for kind in {f.kind for f in r.failures}]
    first: dict[tuple[str, str], int] = {}
    for report in reports:
        for failure in report.failures:
            key = (report.area, failure.kind)
            first[key] = min(report.number, first.get(key, report.number))
    return [(*key, count, first[key]) for key, count in Counter(found).most_common()]


def replayed(console: Console, report: Report) -> None:
    """Print everything about a case."""
    console.print(f"{report.area}: {report.what}", markup=False, highlight=False, soft_wrap=True)
    for line in report.told:
        console.print(f"- {line}", markup=False, highlight=False, soft_wrap=True)
    for failure in report.failures:
        text = f"FAILED {failure.kind}\n{failure.detail}"
        console.print(text, markup=False, highlight=False, soft_wrap=True)
    console.print(f"{report.seconds:.3f} s, {'failed' if report.failures else 'held'}")


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.fuzz", description=__doc__)
    parser.add_argument("--cases", type=int, default=20_000, help="how many cases")
    parser.add_argument("--seed", type=int, default=1, help="another seed makes others")
    parser.add_argument("--only", default=",".join(AREAS), help="areas, such as files,logs")
    parser.add_argument("--case", type=int, help="make one case again and tell all of it")
    parser.add_argument("--jobs", type=int, default=2, help="processes at once")
    parser.add_argument("--limit", type=float, default=LIMIT, help="seconds that a case may take")
    parser.add_argument("--out", type=Path, default=OUT, help="folder for what fails")
    chosen = parser.parse_args(arguments)
    areas = chosen.only.split(",")
    if unknown := set(areas) - set(AREAS):
        parser.error(f"areas are {', '.join(AREAS)}, not {', '.join(sorted(unknown))}")
    console = Console()
    numbers = numbers_of(chosen.seed, chosen.cases, areas) if chosen.case is None else [chosen.case]
    if chosen.case is not None:
        areas = [area_of(chosen.seed, chosen.case)]
    jobs = chosen.jobs if chosen.case is None else 1
    workers = Workers(judge, partial(warm, areas), jobs=jobs, limit=chosen.limit)
    if chosen.case is not None:
        report = next(workers.run(chosen.seed, [chosen.case]))
        replayed(console, report)
        return int(bool(report.failures))
    reports, start = [], time.monotonic()
    chosen.out.mkdir(parents=True, exist_ok=True)
    with (chosen.out / f"failures-{chosen.seed}.jsonl").open("w") as out:
        for report in workers.run(chosen.seed, numbers):
            reports.append(report)
            if report.failures:
                out.write(json.dumps({"seed": chosen.seed, **report.as_dict()}) + "\n")
                out.flush()
            if len(reports) % 500 == 0:
                n_failed = sum(bool(each.failures) for each in reports)
                rate = len(reports) / (time.monotonic() - start) * 60
                console.print(f"{len(reports):,} cases, {n_failed:,} failed, {rate:,.0f} a minute")
    _summarise(console, reports, chosen.seed)
    return int(any(report.failures for report in reports))


def _summarise(console: Console, reports: Sequence[Report], seed: int) -> None:
    console.print(table_of(reports))
    for area, kind, count, first in classes_of(reports):
        text = f"{count:6,} {area}: {kind} (--seed {seed} --case {first})"
        console.print(text, markup=False, highlight=False, soft_wrap=True)


if __name__ == "__main__":
    sys.exit(main())
