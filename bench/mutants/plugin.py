"""What pytest does for the mutants: run some tests in a given order, and note how each went.

``MUTANTS_OUT`` names the file for ``{test: {outcome, seconds, reached}}``, ``MUTANTS_TESTS`` one
with ``{test: seconds}``: these tests run in this order, each for at most that much processor
time, all of them for at most ``MUTANTS_WHOLE``. Without it all tests run, for at most
``MUTANTS_LIMIT``, and the functions of the package that they call are noted.

Limits are of processor time, so that a busy machine stops nothing. A test that waits for what never
comes needs none: it is stopped when nothing has worked for ``IDLE`` seconds. A run that was paused
itself has waited for nothing; clocks that tests look at went on, so that what fails in such a test
is noted as ``PAUSED`` and says nothing.
"""

import json
import os
import resource
import signal
import sys
import threading
import time
from collections.abc import Generator
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import pytest

TIMED_OUT, PAUSED = "timed out", "paused"
IDLE = 90.0  # seconds in which a test and what it started hardly use the processor
GAP = 15.0  # seconds without a turn for a thread that wants one each second: all was stopped
_HARDLY = 0.5  # seconds of the processor
_LONGER = 40  # times the limit for what is marked to run interpreted
_SOURCE = f"{Path.cwd() / 'src'}{os.sep}"


class Plugin:
    """Hooks of one run of pytest."""

    def __init__(self, out: Path, tests: dict[str, float] | None, limit: float) -> None:
        self._out, self._tests, self._limit = out, tests, limit
        self._found: dict[str, dict[str, Any]] = {}
        self._called: set[CodeType] = set()
        self._running: str | None = None
        self._ticked, self._was_paused = time.monotonic(), False
        threading.Thread(target=self._stop_what_waits, daemon=True).start()

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        if self._tests is not None:
            places = {test: place for place, test in enumerate(self._tests)}
            items[:] = [item for item in items if item.nodeid in places]
            items.sort(key=lambda item: places[item.nodeid])

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        self._found[item.nodeid] = {"outcome": "passed"}
        self._running = item.nodeid
        self._called.clear()
        self._was_paused = False
        began = time.process_time()
        limit = self._limit if self._tests is None else self._tests[item.nodeid]
        if item.get_closest_marker("interpreted") and not item.get_closest_marker("compiled"):
            self._found[item.nodeid]["marked"] = True
            limit *= _LONGER if self._tests is None else 1
        signal.signal(signal.SIGPROF, _stop)
        signal.setitimer(signal.ITIMER_PROF, limit)
        if self._tests is None:
            threading.settrace(self._trace)
            sys.settrace(self._trace)
        try:
            return (yield)
        finally:
            sys.settrace(None)
            signal.setitimer(signal.ITIMER_PROF, 0)
            self._running = None
            entry = self._found[item.nodeid]
            entry["seconds"] = round(time.process_time() - began, 4)
            entry["reached"] = sorted(filter(None, map(_name, self._called)))

    def _stop_what_waits(self) -> None:
        """End the run, as one whose test timed out, when it has done nothing for so long."""
        seen, since, test = 0.0, time.monotonic(), None
        while True:
            time.sleep(1.0)
            used, now, running = sum(os.times()[:4]), time.monotonic(), self._running
            paused = now - self._ticked > GAP
            self._was_paused |= paused
            self._ticked = now
            if running is None or running != test or used > seen + _HARDLY or paused:
                seen, since, test = used, now, running
            elif now - since > IDLE:
                self._found[running]["outcome"] = TIMED_OUT
                self._out.write_text(json.dumps(self._found))
                os._exit(1)

    def _trace(self, frame: FrameType, *_: object) -> None:
        # Calls alone are traced, never lines: interpreted kernels would take too long.
        self._called.add(frame.f_code)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Note a file that cannot be imported: pytest says no more of it than of a failed test."""
        if self._tests is not None and report.failed:
            self._found[report.nodeid] = {"outcome": "failed"}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.outcome != "passed":
            late = report.failed and TIMED_OUT in report.longreprtext
            self._found[report.nodeid]["outcome"] = TIMED_OUT if late else report.outcome
            # The thread that looks for pauses may have had no turn since the last one.
            if report.failed and (self._was_paused or time.monotonic() - self._ticked > GAP):
                self._found[report.nodeid]["outcome"] = PAUSED

    def pytest_sessionfinish(self) -> None:
        self._out.write_text(json.dumps(self._found))


def _name(code: CodeType) -> str | None:
    if not code.co_filename.startswith(_SOURCE):
        return None
    return f"{Path(code.co_filename.removeprefix(_SOURCE)).as_posix()}::{code.co_qualname}"


def _stop(*_: object) -> None:
    pytest.fail(TIMED_OUT, pytrace=False)


def pytest_configure(config: pytest.Config) -> None:
    wanted = os.environ.get("MUTANTS_TESTS")
    tests = None if wanted is None else json.loads(Path(wanted).read_text())
    limit = float(os.environ.get("MUTANTS_LIMIT", "0"))
    if "MUTANTS_WHOLE" in os.environ:  # compiled code hears no signal but one that ends it
        _, most = resource.getrlimit(resource.RLIMIT_CPU)
        resource.setrlimit(resource.RLIMIT_CPU, (int(os.environ["MUTANTS_WHOLE"]), most))
    config.pluginmanager.register(Plugin(Path(os.environ["MUTANTS_OUT"]), tests, limit))
