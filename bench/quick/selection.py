"""Which tests a change can break, the closest ones first."""

import re
import subprocess
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from bench.quick.imports import Graph, module_of

TABLES = ("rankers", "worlds", "reveals", "measures", "surrogates", "policies")
CONTRACT = (
    "tests/contract/test_digests.py",
    "tests/contract/test_exchangeable.py",
    "tests/contract/test_contracts.py",
    "tests/contract/test_contextual.py",
    "tests/contract/test_surrogates_policies.py",
)
"""What every row of a table must do: of these, the tests that name a changed row."""
PAGES = ("start", "tutorials", "concepts")


@dataclass(frozen=True)
class Chosen:
    """Files with tests, the closest first; of those in ``words`` only tests that name a word."""

    files: tuple[str, ...]
    words: dict[str, tuple[str, ...]]
    unknown: tuple[str, ...]


def changed_files(root: Path) -> list[Path]:
    """Return what differs from the last commit, and what is new."""
    lines = []
    for command in ("diff --name-only HEAD", "ls-files --others --exclude-standard"):
        ran = subprocess.run(
            ["git", *command.split()], cwd=root, capture_output=True, text=True, check=True
        )
        lines += ran.stdout.splitlines()
    return [Path(line) for line in dict.fromkeys(lines)]


def row_of(module: str) -> str | None:
    """Return what a table may call what a module defines: ``keyhole.rankers.fixed.pege``."""
    parts = module.split(".")
    if len(parts) < 3 or parts[0] != "keyhole" or parts[1] not in TABLES:
        return None
    return parts[-1].replace("_", "-")


def _is_test(path: Path) -> bool:
    return path.name.startswith("test_") and path.parts[0] == "tests"


def choose(root: Path, changed: Iterable[Path], graph: Graph | None = None) -> Chosen:
    """Return the tests that some changed files can break."""
    graph = graph or Graph.of(root)
    rank: dict[str, int] = {}
    words: dict[str, tuple[str, ...]] = {}
    unknown, modules = [], set()

    def take(path: str, distance: int) -> None:
        if (root / path).exists() and "tests/ecosystem" not in path:
            rank[path] = min(distance, rank.get(path, distance))

    for path in changed:
        module = module_of(path)
        if module is not None:
            modules.add(module)
            if path.parts[0] == "src":
                take(str(path), 1)  # its own examples
        elif path.suffix == ".md":
            _take_page(path, take, words)
        elif path.suffix not in ("", ".lock"):
            unknown.append(str(path))
    distances = graph.distances(modules)
    for module, distance in distances.items():
        if _is_test(graph.files[module]):
            take(str(graph.files[module]), distance)
    rows = tuple(sorted({row for row in map(row_of, modules) if row is not None}))
    for test in _naming(root, rows):
        take(test, 1)
    if any(module.startswith("keyhole.") for module in modules):
        _take_contract(rows, rank, words, {str(path) for path in changed})
    files = sorted(rank, key=lambda path: (rank[path], path.startswith("tests/statistical"), path))
    return Chosen(tuple(files), words, tuple(unknown))


def _take_page(
    path: Path, take: Callable[[str, int], None], words: dict[str, tuple[str, ...]]
) -> None:
    if path.parts[0] != "docs" and path.name != "README.md":
        return
    if len(path.parts) > 2 and path.parts[1] in PAGES:
        take("tests/unit/test_pages.py", 0)
        words["tests/unit/test_pages.py"] = (path.stem,)
    else:
        take(str(path), 0)
    take("tests/unit/test_docs.py", 1)


def _take_contract(
    rows: tuple[str, ...],
    rank: dict[str, int],
    words: dict[str, tuple[str, ...]],
    changed: set[str],
) -> None:
    """Of rows, take the tests that name them; of what rows share, the games of all come first."""
    for path in CONTRACT:
        if path in changed:
            continue
        if rows:
            rank[path], words[path] = 1, rows
        else:
            rank[path] = 2 if path == CONTRACT[0] else 3


def _naming(root: Path, rows: tuple[str, ...]) -> list[str]:
    """Return the tests that name a row in quotes."""
    if not rows:
        return []
    quoted = re.compile("|".join(f"[\"']{re.escape(row)}[\"']" for row in rows))
    return [
        str(path.relative_to(root))
        for path in sorted((root / "tests").rglob("test_*.py"))
        if quoted.search(path.read_text())
    ]
