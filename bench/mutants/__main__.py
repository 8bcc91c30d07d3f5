"""``python -m bench.mutants``: wrong changes of the code, and whether the tests notice them.

A sample of mutants, as many from every package, runs against the tests that reach it. Verdicts
are kept in ``.cache/mutants`` and found again while the source file and the tests stay
the same. docs/mutants.md explains all.
"""

import argparse
import json
import os
import random
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from queue import SimpleQueue

from rich.console import Console
from rich.table import Table

from bench.mutants.operators import Mutant, mutants_of
from bench.mutants.reach import Reach
from bench.mutants.trees import Tree
from bench.mutants.trial import LATE, Fate, key_of, try_mutant

ROOT = Path(__file__).parents[2]


def package_of(path: str) -> str:
    """Return the name under which a file below src is sampled."""
    parts = Path(path).with_suffix("").parts[1:]
    if parts[0] == "rankers":
        return "rankers/lists" if parts[1] == "lists" else "rankers/fixed"
    if len(parts) > 1:
        return parts[0]
    return "cli" if parts[0] == "__main__" else "core"


def all_mutants(source: Path) -> dict[str, list[Mutant]]:
    """Return all mutants of the files below a folder, by package."""
    found: dict[str, list[Mutant]] = {}
    for file in sorted(source.rglob("*.py")):
        path = file.relative_to(source).as_posix()
        found.setdefault(package_of(path), []).extend(mutants_of(file.read_bytes(), path))
    return found


def sample(mutants: dict[str, list[Mutant]], n: int, seed: int) -> list[tuple[str, Mutant]]:
    """Return ``n`` mutants, as many from every package as from any other, in mixed order."""
    shuffled = {
        package: random.Random(f"{seed} {package}").sample(of, len(of))
        for package, of in sorted(mutants.items())
    }

    def in_turns() -> Iterator[tuple[str, Mutant]]:
        for place in range(max(map(len, shuffled.values()), default=0)):
            for package, of in shuffled.items():
                if place < len(of):
                    yield package, of[place]

    return [chosen for chosen, _ in zip(in_turns(), range(n), strict=False)]


def report(console: Console, fates: list[Fate]) -> None:
    """Print the table of the packages, and who survived."""
    table = Table(title="Mutants")
    for name in ("package", "sampled", "killed", "timed out", "survived", "score"):
        table.add_column(name, justify="left" if name == "package" else "right")
    packages = sorted({fate.package for fate in fates})
    for package in [*packages, "all"]:
        here = [fate for fate in fates if package in (fate.package, "all")]
        told = sum(fate.told for fate in here)
        late = sum(fate.outcome == LATE for fate in here)
        counts = (len(here), told - late, late, len(here) - told)
        table.add_row(package, *map(str, counts), f"{told / max(1, len(here)):.1%}")
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
    parser.add_argument("--jobs", type=int, default=1, help="mutants tried at once")
    parser.add_argument("--budget", type=float, default=60.0, help="seconds of tests per turn")
    chosen = parser.parse_args(arguments)
    console, store = Console(), root / ".cache" / "mutants"
    trees = [Tree(root, store / f"tree{number}") for number in range(chosen.jobs)]
    reach = Reach(trees[0], store / "reach.json")
    reach.update(console)
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
    known = {fate.key: fate for fate in (Fate(**json.loads(line)) for line in lines)}
    free: SimpleQueue[Tree] = SimpleQueue()
    for tree in trees:
        free.put(tree)

    def judge(package: str, mutant: Mutant) -> Fate:
        tests = reach.tests_for(mutant, budget)
        tree = free.get()
        try:
            source = (tree.folder / "src" / mutant.path).read_bytes()
            key = key_of(mutant, source, tests, tree.folder)
            return known.get(key) or try_mutant(mutant, package, tests, budget, tree)
        finally:
            free.put(tree)

    fates = []
    with ThreadPoolExecutor(len(trees)) as pool, store.open("a") as out:
        futures = [pool.submit(judge, *pair) for pair in drawn]
        try:
            for done, future in enumerate(as_completed(futures), 1):
                fate = future.result()
                fates.append(fate)
                if fate.key not in known:
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
