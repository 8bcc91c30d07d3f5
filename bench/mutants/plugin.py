"""What pytest does for the mutants: run some tests in a given order, and note what each reaches.

The environment carries the orders, because each run is a process of its own:

``MUTANTS_TESTS``
    A file with ``{test id: seconds}``: only these tests run, in this order, each for at most that
    long. Without it all tests run.
``MUTANTS_LIMIT``
    Seconds of processor time that every test may take, where no such file says it.
``MUTANTS_REACH``
    The file that gets ``{test id: {outcome, seconds, reached}}``, with the names of the package's
    functions that each test called.
"""

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Generator
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import pytest

TIMED_OUT = "ran out of the time of a mutant"


class Tracer:
    """The functions below a folder that were called since :meth:`take`, each by its name."""

    def __init__(self, folder: Path) -> None:
        self._folder = f"{folder}{os.sep}"
        self._names: dict[CodeType, str | None] = {}
        self._called: set[CodeType] = set()

    def __call__(self, frame: FrameType, *_: object) -> None:
        # Calls alone are traced, never lines: interpreted kernels would take too long.
        self._called.add(frame.f_code)

    def take(self) -> list[str]:
        """Return what was called, and begin anew."""
        called, self._called = self._called, set()
        return sorted({name for name in map(self._name, called) if name is not None})

    def _name(self, code: CodeType) -> str | None:
        if not code.co_filename.startswith(self._folder):
            return None
        path = Path(code.co_filename[len(self._folder) :]).as_posix()
        return f"{path}::{code.co_qualname}"


class Plugin:
    """Hooks of one run of pytest."""

    def __init__(self, tests: dict[str, float] | None, limit: float, reach: Path | None) -> None:
        self._tests, self._limit, self._reach = tests, limit, reach
        self._tracer = Tracer(Path.cwd() / "src")
        self._found: dict[str, dict[str, Any]] = {}

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        if self._tests is not None:
            places = {test: place for place, test in enumerate(self._tests)}
            items[:] = [item for item in items if item.nodeid in places]
            items.sort(key=lambda item: places[item.nodeid])

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        limit = self._limit if self._tests is None else self._tests[item.nodeid]
        began = time.process_time()
        self._found[item.nodeid] = {"outcome": "passed"}
        signal.signal(signal.SIGPROF, _stop)
        signal.setitimer(signal.ITIMER_PROF, limit)
        if self._reach is not None:
            threading.settrace(self._tracer)
            sys.settrace(self._tracer)
        try:
            return (yield)
        finally:
            sys.settrace(None)
            signal.setitimer(signal.ITIMER_PROF, 0)
            seconds = round(time.process_time() - began, 4)
            self._found[item.nodeid] |= {"seconds": seconds, "reached": self._tracer.take()}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.outcome != "passed":
            self._found[report.nodeid]["outcome"] = report.outcome

    def pytest_sessionfinish(self) -> None:
        if self._reach is not None:
            self._reach.write_text(json.dumps(self._found))


def _stop(*_: object) -> None:
    pytest.fail(TIMED_OUT, pytrace=False)


def pytest_configure(config: pytest.Config) -> None:
    tests, reach = os.environ.get("MUTANTS_TESTS"), os.environ.get("MUTANTS_REACH")
    chosen = None if tests is None else json.loads(Path(tests).read_text())
    limit = float(os.environ.get("MUTANTS_LIMIT", "0"))
    config.pluginmanager.register(Plugin(chosen, limit, Path(reach) if reach else None))
