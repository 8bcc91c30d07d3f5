"""One mutant against the tests that reach it."""

import json
import subprocess
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from bench.mutants.operators import Mutant
from bench.mutants.plugin import TIMED_OUT
from bench.mutants.reach import Tests, digest_of, file_of
from bench.mutants.trees import Tree

KILLED, LATE, SURVIVED, UNREACHED = "killed", TIMED_OUT, "survived", "unreached"
_FAILED = {"failed": KILLED, TIMED_OUT: LATE}
_SLOWER, _SECONDS = 10, 5.0  # a test may take so many times its time, and so many seconds more
_START = 60.0  # seconds until pytest has imported everything, on a busy machine
_COMPILING = 4.0  # seconds that a test waits for compiled code, on average, if none is cached


@dataclass(frozen=True)
class Fate:
    """What became of a mutant, and the first test that told it."""

    key: str
    package: str
    path: str
    line: int
    operator: str
    difference: str
    outcome: str
    by: str
    n_tests: int
    seconds: float

    @property
    def told(self) -> bool:
        """Whether the tests tell this mutant from the code."""
        return self.outcome in (KILLED, LATE)

    def line_of_json(self) -> str:
        """Return the fate as it is kept."""
        return json.dumps(asdict(self)) + "\n"


def key_of(mutant: Mutant, source: bytes, tests: Tests, folder: Path) -> str:
    """Return a digest of the source file, the mutant and the files of its tests."""
    names = {file_of(test) for test in [*tests.near, *tests.far, *tests.compiled]}
    parts = [digest_of((folder / name).read_bytes()) for name in sorted(names)]
    return digest_of(repr((asdict(mutant), digest_of(source), parts)).encode())


def try_mutant(mutant: Mutant, package: str, tests: Tests, budget: float, tree: Tree) -> Fate:
    """Run the tests of a mutant, in three turns, until one fails."""
    path = Path("src") / mutant.path
    source = (tree.folder / path).read_bytes()
    key = key_of(mutant, source, tests, tree.folder)
    fresh, compiled = b"keyhole.kernels.compiled" in source, tests.compiled
    if fresh:  # all compiled code is stale
        compiled = dict(list(compiled.items())[: int(budget / _COMPILING)])
    began, n_tests, outcome, by = time.perf_counter(), 0, UNREACHED, ""
    with tree.changed(path, mutant.apply(source)):
        for turn, interpreted in ((tests.near, True), (tests.far, True), (compiled, False)):
            if turn and outcome in (UNREACHED, SURVIVED):
                n_tests += len(turn)
                outcome, by = _run(turn, tree, interpreted, fresh=fresh and not interpreted)
    if by in compiled and _run({by: compiled[by]}, tree, False, fresh=False)[0] != SURVIVED:
        raise RuntimeError(f"{by} must pass without mutants, but it fails.")
    seconds = round(time.perf_counter() - began, 1)
    about = (mutant.path, mutant.line, mutant.operator, mutant.difference(source))
    return Fate(key, package, *about, outcome, by, n_tests, seconds)


def _run(tests: dict[str, float], tree: Tree, interpreted: bool, fresh: bool) -> tuple[str, str]:
    """Return what became of a mutant, and the test that told it."""
    extra = _SECONDS if interpreted else _SECONDS + 10 * _COMPILING
    limits = {test: _SLOWER * seconds + extra for test, seconds in tests.items()}
    files = sorted({file_of(test) for test in tests})
    # Compiled code hears no signal, so that its limit is that of the whole turn.
    timeout = _START + sum(limits.values())
    try:
        well, found = tree.pytest(
            files, interpreted=interpreted, limits=limits, fresh=fresh, timeout=timeout
        )
    except subprocess.TimeoutExpired:
        return LATE, "the whole turn"
    if well:
        return SURVIVED, ""
    failed = [(test, seen["outcome"]) for test, seen in found.items() if seen["outcome"] in _FAILED]
    by, outcome = failed[0] if failed else ("the imports", "failed")
    return _FAILED[outcome], by
