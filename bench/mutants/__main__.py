"""``python -m bench.mutants``: wrong changes of the code, and whether the tests notice them.

A sample of mutants, most of them where people are hurt, runs against the tests that reach it.
Verdicts are kept in ``.cache/mutants`` and found again while the source file and the tests that
told them stay the same. docs/mutants.md explains all.
"""

import argparse
import json
import os
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from queue import SimpleQueue

from rich.console import Console
from rich.table import Table

from bench.mutants.operators import Mutant
from bench.mutants.reach import Reach
from bench.mutants.sampling import all_mutants, sample
from bench.mutants.trees import Tree
from bench.mutants.trial import LATE, Fate, Trials, key_of
from keyhole.base.threads import n_cores

ROOT = Path(__file__).parents[2]


def report(console: Console, fates: list[Fate]) -> None:
    """Print how many were told, by package and by operator, and who survived."""
    for title in ("package", "operator"):
        table = Table(title="Mutants")
        for name in (title, "sampled", "killed", "timed out", "survived", "score"):
            table.add_column(name, justify="left" if name == title else "right")
        for group in [*sorted({getattr(fate, title) for fate in fates}), "all"]:
            here = [fate for fate in fates if group in (getattr(fate, title), "all")]
            told = sum(fate.told for fate in here)
            late = sum(fate.outcome == LATE for fate in here)
            counts = (len(here), told - late, late, len(here) - told)
            table.add_row(group, *map(str, counts), f"{told / max(1, len(here)):.1%}")
        console.print(table)
    survivors = [fate for fate in fates if not fate.told]
    for fate in sorted(survivors, key=lambda fate: (fate.path, fate.line)):
        place = f"{fate.path}:{fate.line}"
        tests = f"{fate.n_tests} tests" if fate.n_tests else "no test"
        line = f"{place} [{fate.operator}, {tests}] {fate.difference}"
        console.print(line, markup=False, highlight=False, soft_wrap=True)


def main(arguments: Sequence[str] | None = None, root: Path = ROOT) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.mutants", description=__doc__)
    parser.add_argument("--sample", type=int, default=240, help="how many mutants")
    parser.add_argument("--seed", type=int, default=0, help="another seed samples others")
    parser.add_argument("--package", action="append", help="only of this package")
    parser.add_argument("--only", metavar="FILE:LINE", action="append", help="only of this line")
    parser.add_argument("--tests", metavar="GLOB", action="append", help="only by these files")
    parser.add_argument("--jobs", type=int, default=n_cores(), help="processes at once")
    parser.add_argument("--budget", type=float, default=60.0, help="seconds of tests per turn")
    chosen = parser.parse_args(arguments)
    console, store = Console(), root / ".cache" / "mutants"
    trees = [Tree(root, store / f"tree{number}") for number in range(chosen.jobs)]
    reach = Reach(trees, store / "reach.json")
    reach.update(console, chosen.tests or ["*"])
    mutants = all_mutants(root / "src")
    if chosen.package:
        mutants = {name: of for name, of in mutants.items() if name in chosen.package}
    if chosen.only:
        places = [only.rpartition(":") for only in chosen.only]
        wanted = {(file.removeprefix("src/"), int(line)) for file, _, line in places}
        mutants = {
            name: [mutant for mutant in of if (mutant.path, mutant.line) in wanted]
            for name, of in mutants.items()
        }
    drawn = sample(mutants, chosen.sample, chosen.seed)
    fates = _try_all(console, drawn, reach, trees, store / "verdicts.jsonl", chosen.budget)
    report(console, fates)
    return 0


def _try_all(
    console: Console,
    drawn: list[tuple[str, Mutant]],
    reach: Reach,
    trees: list[Tree],
    store: Path,
    budget: float,
) -> list[Fate]:
    lines = store.read_text().splitlines() if store.exists() else []
    known = [Fate(**json.loads(line)) for line in lines]
    by_key = {fate.key: fate for fate in known}
    trials, free = Trials(budget), SimpleQueue[Tree]()
    for tree in trees:
        free.put(tree)

    def judge(package: str, mutant: Mutant) -> Fate:
        tests = reach.tests_for(mutant, budget)
        tree = free.get()
        try:
            source = (tree.folder / "src" / mutant.path).read_bytes()
            here = {
                fate.by for fate in known if (fate.path, fate.line) == (mutant.path, mutant.line)
            }
            keys = (key_of(mutant, source, tests, by, tree.folder) for by in ("", *sorted(here)))
            kept = next((by_key[key] for key in keys if key in by_key), None)
            return kept or trials.try_mutant(mutant, package, tests, tree)
        finally:
            free.put(tree)

    fates = []
    with ThreadPoolExecutor(len(trees)) as pool, store.open("a") as out:
        futures = [pool.submit(judge, *pair) for pair in drawn]
        try:
            for done, future in enumerate(as_completed(futures), 1):
                fate = future.result()
                fates.append(fate)
                if fate.key not in by_key:
                    out.write(fate.line_of_json())
                    out.flush()
                told = f"{fate.path}:{fate.line} {fate.outcome} in {fate.seconds:g} s"
                line = f"{done}/{len(drawn)} {told}: {fate.difference}"
                console.print(line, markup=False, highlight=False, soft_wrap=True)
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    return fates


if __name__ == "__main__":
    if hasattr(os, "nice"):
        os.nice(1)
    sys.exit(main())
