"""Which mutants are tried: where people are hurt there are more of them."""

import itertools
import random
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TypeVar

from bench.mutants.aimed import AIMED
from bench.mutants.operators import Mutant, mutants_of

T = TypeVar("T")

TURNS = {"service": 3, "lab": 3, "cli": 3, "offline": 3, "figures": 3, "data": 2, "client": 2}
"""How many mutants of a package are drawn for one of any other: what stands between a formula and a
person has no independent reference unless a test has one."""


def package_of(path: str) -> str:
    """Return the name under which a file below src is sampled."""
    parts = Path(path).with_suffix("").parts[1:]
    if parts[0] == "rankers":
        return "rankers/lists" if parts[1] == "lists" else "rankers/fixed"
    if parts[:2] == ("lab", "figures"):
        return "figures"
    if len(parts) > 1:
        return parts[0]
    return "cli" if parts[0] == "__main__" else "base"


def all_mutants(source: Path) -> dict[str, list[Mutant]]:
    """Return all mutants of the packages in a folder: what lies beside them is of tests."""
    found: dict[str, list[Mutant]] = {}
    for file in sorted(source.glob("*/**/*.py")):
        path = file.relative_to(source).as_posix()
        found.setdefault(package_of(path), []).extend(mutants_of(file.read_bytes(), path))
    return found


def sample(mutants: dict[str, list[Mutant]], n: int, seed: int) -> list[tuple[str, Mutant]]:
    """Return ``n`` mutants in mixed order, in turns of ``TURNS`` for each package."""
    of = {
        package: mixed(found, random.Random(f"{seed} {package}"))
        for package, found in sorted(mutants.items())
    }

    def in_turns() -> Iterator[tuple[str, Mutant]]:
        while any(of.values()):
            for package, left in of.items():
                for _ in range(TURNS.get(package, 1)):
                    if left:
                        yield package, left.pop(0)

    return list(itertools.islice(in_turns(), n))


def mixed(mutants: list[Mutant], chance: random.Random) -> list[Mutant]:
    """Return mutants in random order: every other one is aimed, of each kind as many."""
    order = chance.sample(mutants, len(mutants))
    by_kind = [[mutant for mutant in order if mutant.operator == kind] for kind in AIMED]
    chance.shuffle(by_kind)
    others = [mutant for mutant in order if mutant.operator not in AIMED]
    return [*turns([turns(by_kind), others])]


def turns(lists: Iterable[Iterable[T]]) -> list[T]:
    """Return the first of every list, then the second, until all are used up."""
    missing = object()
    rows = itertools.zip_longest(*lists, fillvalue=missing)
    return [each for row in rows for each in row if each is not missing]  # type: ignore[misc]
