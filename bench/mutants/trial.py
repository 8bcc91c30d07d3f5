"""One mutant against the tests that reach it."""

import json
import signal
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from bench.mutants.operators import Mutant
from bench.mutants.plugin import PAUSED, TIMED_OUT
from bench.mutants.reach import Tests, digest_of, file_of
from bench.mutants.trees import Tree

KILLED, LATE, SURVIVED, UNREACHED = "killed", TIMED_OUT, "survived", "unreached"
_FAILED = {"failed": KILLED, TIMED_OUT: LATE}
_SLOWER, _SECONDS = 10, 5.0  # a test may take so many times its time, and so many seconds more
_START = 60.0  # seconds until pytest has imported everything
_PAUSES = 5  # so often what fails in a run that was paused is run again
_COMPILING = 4.0  # seconds that a test waits for code that a mutant has made cold, on average
IMPORTS, WHOLE_TURN = "the imports", "the whole turn"


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


def key_of(mutant: Mutant, source: bytes, tests: Tests, by: str, folder: Path) -> str:
    """Return a digest of the source file, the mutant and the files that its fate hangs on.

    That is the file of the test that told it, or those of all its tests where none did.
    """
    names = {file_of(test) for test in [*tests.near, *tests.far, *tests.compiled]}
    if (folder / file_of(by)).is_file():
        names = {file_of(by)}
    parts = [digest_of((folder / name).read_bytes()) for name in sorted(names)]
    return digest_of(repr((asdict(mutant), digest_of(source), parts)).encode())


class Trials:
    """Mutants against tests, for so many seconds in each of three turns.

    A test that fails is run again without the mutant, once for all mutants: if it fails then as
    well it says nothing, and is left out from then on.
    """

    def __init__(self, budget: float) -> None:
        self._budget = budget
        self._is_sound: dict[tuple[str, bool], bool] = {}

    def try_mutant(self, mutant: Mutant, package: str, tests: Tests, tree: Tree) -> Fate:
        """Run the tests of a mutant, in three turns, until one fails."""
        path = Path("src") / mutant.path
        source = (tree.folder / path).read_bytes()
        fresh, compiled = b"keyhole.kernels.compiled" in source, tests.compiled
        if fresh:  # some compiled code is stale
            compiled = dict(list(compiled.items())[: int(self._budget / _COMPILING)])
        began, n_tests, outcome, by = time.perf_counter(), 0, UNREACHED, ""
        changed = mutant.apply(source)
        for turn, interpreted in ((tests.near, True), (tests.far, True), (compiled, False)):
            if turn and outcome in (UNREACHED, SURVIVED):
                n_tests += len(turn)
                outcome, by = self._turn(path, changed, turn, tree, interpreted, fresh)
        seconds = round(time.perf_counter() - began, 1)
        key = key_of(mutant, source, tests, by, tree.folder)
        about = (mutant.path, mutant.line, mutant.operator, mutant.difference(source))
        return Fate(key, package, *about, outcome, by, n_tests, seconds)

    def _turn(
        self,
        path: Path,
        changed: bytes,
        turn: dict[str, float],
        tree: Tree,
        interpreted: bool,
        fresh: bool,
    ) -> tuple[str, str]:
        """Return what became of a mutant in one turn, by a test that passes without it.

        A file of tests that cannot be imported any more tells as well.
        """
        left = {
            test: seconds
            for test, seconds in turn.items()
            if all(self._is_sound.get((by, interpreted), True) for by in (test, file_of(test)))
        }
        while left:
            with tree.changed(path, changed):
                outcome, by = _run(left, tree, interpreted, fresh=fresh and not interpreted)
            tellers = {t: s for t, s in left.items() if by in (t, file_of(t))}
            if not tellers or self._passes(by, tellers, tree, interpreted):
                return outcome, by
            left = {test: left[test] for test in left if test not in tellers}
        return SURVIVED, ""

    def _passes(self, by: str, tests: dict[str, float], tree: Tree, interpreted: bool) -> bool:
        """Return whether a test, or the first one of a file, passes without mutants."""
        known = (by, interpreted)
        if known not in self._is_sound:
            first = dict(list(tests.items())[:1])
            self._is_sound[known] = _run(first, tree, interpreted, fresh=False)[0] == SURVIVED
        return self._is_sound[known]


def _run(tests: dict[str, float], tree: Tree, interpreted: bool, fresh: bool) -> tuple[str, str]:
    """Return what became of a mutant, and the test that told it."""
    extra = _SECONDS if interpreted else _SECONDS + 10 * _COMPILING
    limits = {test: _SLOWER * seconds + extra for test, seconds in tests.items()}
    files = sorted({file_of(test) for test in tests})
    # Compiled code hears no signal, so that its limit is that of the whole turn.
    whole = _START + sum(limits.values())
    for _ in range(_PAUSES):
        code, found = tree.pytest(
            files, interpreted=interpreted, limits=limits, fresh=fresh, whole=whole
        )
        if all(seen["outcome"] != PAUSED for seen in found.values()):
            break
    failed = [(test, seen["outcome"]) for test, seen in found.items() if seen["outcome"] in _FAILED]
    if failed:
        by, outcome = failed[0]
        return _FAILED[outcome], by
    if code == -signal.SIGXCPU:
        return LATE, WHOLE_TURN
    # Too much memory is an exit code of 1 as well, but no test has failed.
    return (SURVIVED, "") if code in (0, 1, 5) else (KILLED, IMPORTS)
