"""Which tests reach which functions, and how long each takes.

Numba's machine code cannot be traced, so every test runs once with kernels interpreted: for as long
as it likes if it is marked for that, and else for half a second. A test that does not pass so,
because it takes longer or is about compiled code, is run compiled against mutants, and reaches what
it had called by then.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from rich.console import Console

from bench.mutants.operators import Mutant
from bench.mutants.trees import Tree

INTERPRETED_LIMIT = 0.5  # seconds of processor time; tests that take longer are run compiled
COMPILED_SECONDS = 3.0  # what such a test is taken to need
FILE_SECONDS = 0.3  # what it takes to import a file of tests
FILES = ("tests/*/test_*.py", "src/**/*.py", "docs/*.md", "README.md")
LEFT_OUT = (
    "tests/papers",
    "tests/ecosystem",
    "tests/browser/test_browser.py",
    "tests/browser/test_site.py",
)
"""Which tests are not tried: those that play for minutes, or need other packages or a browser."""


@dataclass
class Tests:
    """The tests that may tell one mutant, in their order, with the seconds that each takes."""

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

    def __init__(self, trees: list[Tree], store: Path) -> None:
        self._trees, self._store = trees, store
        kept = json.loads(store.read_text()) if store.exists() else {}
        self._names: list[str] = kept.get("names", [])
        self._numbers = {name: number for number, name in enumerate(self._names)}
        self._files: dict[str, Any] = kept.get("files", {})
        self._chosen = set[str]()

    @cached_property
    def tests(self) -> dict[str, Any]:
        """Every test, with its seconds and the numbers of what it reaches."""
        files = [file for name, file in self._files.items() if name in self._chosen]
        return {test: entry for file in files for test, entry in file["tests"].items()}

    @cached_property
    def _by_name(self) -> dict[str, set[str]]:
        """The tests of every function, and of every file."""
        found: dict[str, set[str]] = {}
        for test, entry in self.tests.items():
            for number in entry["reached"]:
                name = self._names[number]
                found.setdefault(name, set()).add(test)
                found.setdefault(name.partition("::")[0], set()).add(test)
        return found

    def update(self, console: Console, wanted: Sequence[str] = ("*",)) -> None:
        """Run the files of tests that are new or changed, those of one folder of src together.

        With patterns, those alone that match one of them are run, and tried.
        """
        folder = self._trees[0].folder
        found = {path.relative_to(folder): path for glob in FILES for path in folder.glob(glob)}
        digests = {
            name.as_posix(): digest_of(path.read_bytes())
            for name, path in found.items()
            if not name.as_posix().startswith(LEFT_OUT)
            and any(name.match(pattern) for pattern in wanted)
        }
        self._chosen = set(digests)
        groups: dict[str, list[str]] = {}
        for name, digest in digests.items():
            if self._files.get(name, {}).get("digest") != digest:
                group = name if name.startswith("tests") else "/".join(name.split("/")[:3])
                groups.setdefault(group, []).append(name)
        free = SimpleQueue[Tree]()
        for tree in self._trees:
            free.put(tree)

        def collect(group: tuple[str, list[str]]) -> tuple[str, list[str], dict[str, Any]]:
            tree = free.get()
            try:
                _, tests = tree.pytest(group[1], interpreted=True, limit=INTERPRETED_LIMIT)
                return *group, tests
            finally:
                free.put(tree)

        with ThreadPoolExecutor(len(self._trees)) as pool:
            collected = pool.map(collect, groups.items())
            for number, (group, names, tests) in enumerate(collected, 1):
                self._keep(names, digests, tests)
                console.print(f"reach {number}/{len(groups)} {group}: {len(tests)} tests")
                if number % 20 == 0 or number == len(groups):
                    self._store.write_text(json.dumps({"names": self._names, "files": self._files}))

    def _keep(self, names: list[str], digests: dict[str, str], tests: dict[str, Any]) -> None:
        kept = {}
        for test, entry in tests.items():
            if "reached" not in entry:
                continue  # it waited for what never came, and its process was stopped
            if entry["outcome"] != "passed":
                if entry["outcome"] == "skipped" or entry.get("marked"):
                    continue  # interpreted is all that it is run
                entry |= {"seconds": COMPILED_SECONDS, "mode": "compiled"}
            kept[test] = {**entry, "reached": [self._number(name) for name in entry["reached"]]}
        for name in names:
            here = {test: entry for test, entry in kept.items() if file_of(test) == name}
            self._files[name] = {"digest": digests[name], "tests": here}

    def _number(self, name: str) -> int:
        if name not in self._numbers:
            self._numbers[name] = len(self._names)
            self._names.append(name)
        return self._numbers[name]

    def tests_for(self, mutant: Mutant, budget: float) -> Tests:
        """Return the tests of a mutant, those most likely to tell it first.

        That is a test that reaches little else, and takes no time. A test in the same file as one
        that reaches the function may see what that one left in a fixture or in a cache, so it is
        there too, after the others.
        """
        name = f"{mutant.path}::{mutant.function}" if mutant.function else mutant.path
        direct = self._by_name.get(name, set())
        counts = Counter(file_of(test) for test in direct)
        own = {file for file in counts if _is_own(file, mutant.path)}
        own = own or {file for file, _ in counts.most_common(1)}
        turns: dict[str, list[tuple[bool, float, str]]] = {"near": [], "far": [], "compiled": []}
        for file in counts:
            for test, entry in self._files[file]["tests"].items():
                near = "near" if file in own else "far"
                likely = (entry["seconds"] + 0.01) * (1 + len(entry["reached"]))
                turns[entry.get("mode", near)].append((test not in direct, likely, test))
        return Tests(**{turn: self._within(sorted(of), budget) for turn, of in turns.items()})

    def _within(
        self, ordered: Iterable[tuple[bool, float, str]], budget: float
    ) -> dict[str, float]:
        """Return what there is time for, the tests of a file one after the other."""
        chosen: dict[str, dict[str, float]] = {}
        for _, _, test in ordered:
            seconds, file = self.tests[test]["seconds"], file_of(test)
            cost = seconds + (0.0 if file in chosen else FILE_SECONDS)
            if cost <= budget:
                budget -= cost
                chosen.setdefault(file, {})[test] = seconds
        return {test: seconds for of in chosen.values() for test, seconds in of.items()}


def _is_own(test_file: str, path: str) -> bool:
    """Say whether a file of tests is named after a module or its package."""
    words = [part.rstrip("s") for part in Path(path).with_suffix("").parts[1:] if part[0] != "_"]
    return test_file.endswith(path) or any(word in Path(test_file).stem for word in words)
