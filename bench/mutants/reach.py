"""Which tests reach which functions, and how long each takes.

Numba's machine code cannot be traced, so every test runs once with kernels interpreted, for half a
second. A test that does not pass so, because it takes longer or is about compiled code, is run
compiled against mutants, and reaches what it had called by then.
"""

import hashlib
import json
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console

from bench.mutants.operators import Mutant
from bench.mutants.plugin import TIMED_OUT
from bench.mutants.trees import Tree

INTERPRETED_LIMIT = 0.5  # seconds of processor time; tests that take longer are run compiled
COMPILED_SECONDS = 3.0  # what such a test is taken to need
FILES = (
    "tests/unit/test_*.py",
    "src/**/*.py",
    "docs/*.md",
    "README.md",
    "tests/[!p]*/test_*.py",
    "tests/property/test_*.py",
)
"""Which tests are tried: all but those of the papers, which play for minutes."""


@dataclass
class Tests:
    """The tests that may tell one mutant, with the seconds that each takes."""

    near: dict[str, float] = field(default_factory=dict)  # interpreted, in files named after it
    far: dict[str, float] = field(default_factory=dict)  # interpreted, elsewhere
    compiled: dict[str, float] = field(default_factory=dict)  # too slow interpreted, or failing


def file_of(test: str) -> str:
    """Return the file that a test is in."""
    return test.partition("::")[0]


def digest_of(content: bytes) -> str:
    """Return a short digest."""
    return hashlib.sha256(content).hexdigest()[:16]


class Reach:
    """What was collected, kept in a file; what has changed since is collected again."""

    def __init__(self, tree: Tree, store: Path) -> None:
        self._tree, self._store = tree, store
        self._files: dict[str, Any] = json.loads(store.read_text()) if store.exists() else {}

    @property
    def tests(self) -> dict[str, Any]:
        """Every test, with its seconds and what it reaches."""
        return {test: e for file in self._files.values() for test, e in file["tests"].items()}

    def update(self, console: Console) -> None:
        """Run the files of tests that are new or changed, those of one folder of src together."""
        folder = self._tree.folder
        found = {path.relative_to(folder): path for glob in FILES for path in folder.glob(glob)}
        digests = {name.as_posix(): digest_of(path.read_bytes()) for name, path in found.items()}
        self._files = {name: file for name, file in self._files.items() if name in digests}
        groups: dict[str, list[str]] = {}
        for name, digest in digests.items():
            if self._files.get(name, {}).get("digest") != digest:
                group = name if name.startswith("tests") else name.partition("/")[0]
                groups.setdefault(group, []).append(name)
        for number, (group, names) in enumerate(groups.items(), 1):
            tests = self._collect(names)
            for name in names:
                here = {test: entry for test, entry in tests.items() if file_of(test) == name}
                self._files[name] = {"digest": digests[name], "tests": here}
            self._store.write_text(json.dumps(self._files))
            console.print(f"reach {number}/{len(groups)} {group}: {len(tests)} tests")

    def _collect(self, files: list[str]) -> dict[str, Any]:
        _, tests = self._tree.pytest(files, interpreted=True, limit=INTERPRETED_LIMIT)
        for entry in tests.values():
            if entry["outcome"] in ("failed", TIMED_OUT):
                entry |= {"seconds": COMPILED_SECONDS, "mode": "compiled"}
        return {test: entry for test, entry in tests.items() if entry["outcome"] != "skipped"}

    def tests_for(self, mutant: Mutant, budget: float) -> Tests:
        """Return the tests of a mutant, those most likely to tell it first.

        A test in the same file as one that reaches the function may see what that one left in a
        fixture or in a cache, so it is there too, after the others.
        """
        tests = self.tests
        direct = {test for test, entry in tests.items() if _reaches(entry["reached"], mutant)}
        counts = Counter(file_of(test) for test in direct)
        own = {name for name in counts if _is_own(name, mutant.path)}
        own = own or {name for name, _ in counts.most_common(1)}
        turns: dict[str, list[tuple[bool, float, str]]] = {"near": [], "far": [], "compiled": []}
        for test, entry in tests.items():
            if file_of(test) in counts:
                near = "near" if file_of(test) in own else "far"
                turns[entry.get("mode", near)].append((test not in direct, entry["seconds"], test))
        return Tests(**{turn: _within(sorted(of), budget) for turn, of in turns.items()})


def _within(ordered: list[tuple[bool, float, str]], budget: float) -> dict[str, float]:
    chosen: dict[str, float] = {}
    for _, seconds, test in ordered:
        budget -= seconds
        if budget > 0:
            chosen[test] = seconds
    return chosen


def _reaches(reached: list[str], mutant: Mutant) -> bool:
    """Say whether the function is reached; what no function holds, all users of the file reach."""
    if mutant.function:
        return f"{mutant.path}::{mutant.function}" in reached
    return any(name.startswith(f"{mutant.path}::") for name in reached)


def _is_own(test_file: str, path: str) -> bool:
    """Say whether a file of tests is named after a module or its package."""
    words = [part.rstrip("s") for part in Path(path).with_suffix("").parts[1:] if part[0] != "_"]
    return test_file.endswith(path) or any(word in Path(test_file).stem for word in words)
