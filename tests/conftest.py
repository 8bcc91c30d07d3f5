"""What several kinds of tests share."""

import ctypes
import gc
import os
import signal
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from keyhole.base.threads import n_cores

# These tests need the packages that `make test-ecosystem` installs, which runs them.
collect_ignore = ["ecosystem"]


def pytest_addoption(parser):
    """Let one test take all of its cases, which takes ten minutes: ``make cachecases``."""
    parser.addoption("--every-case", action="store_true", dest="every_case")


SOURCE = Path(__file__).parents[1] / "src" / "keyhole"
COMPILED_EXAMPLES = ("batch/", "data/", "offline/", "policies/", "worlds/queries.py")
"""Docstrings with more work than code, or that show numbers as compiled code returns them."""

MEGABYTES = 2000
"""What a process that runs tests may take at most, and all that it compiled is in it."""

_most = pytest.StashKey[dict[str, int]]()


def pytest_configure(config):
    """Hear interrupts: shells let background jobs ignore them, and so would what these start."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if os.environ.get("NUMBA_DISABLE_JIT", "0") != "0":
        # Draws wrap around and what overflows is refused: compiled numbers say no word about it.
        config.addinivalue_line(
            "filterwarnings",
            "ignore:(overflow|invalid value) encountered in scalar:RuntimeWarning:keyhole",
        )
    config.stash[_most] = {}
    gc.disable()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers():
    """Have one process more than there are cores: many tests wait for servers and clocks."""
    return n_cores() + 1


def pytest_collection_finish():
    """Look for garbage from here on, and not among what was imported: it would be a third of it.

    The compiler makes much that is soon freed without: to look less often takes a tenth off it.
    """
    gc.freeze()
    gc.set_threshold(20_000, 20, 50)
    gc.enable()


def _megabytes():
    try:
        import resource
    except ImportError:  # pragma: no cover - Windows
        return 0
    unit = 2**20 if sys.platform == "darwin" else 2**10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // unit


@cache
def _trim():
    """Return what gives free memory back to the system, where there is such a thing."""
    try:
        return ctypes.CDLL("libc.so.6").malloc_trim
    except (OSError, AttributeError):
        return lambda _: None


def pytest_runtest_teardown(item, nextitem):
    """Give back at the end of a file what the compiler has freed: a third of all memory."""
    if nextitem is None or nextitem.path != item.path:
        _trim()(0)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node):
    """Take down how much memory a worker of pytest-xdist has needed."""
    used = getattr(node, "workeroutput", {}).get("megabytes", 0)
    node.config.stash[_most][node.gateway.id] = used


def pytest_sessionfinish(session):
    """Fail if what ran the tests took too much memory."""
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["megabytes"] = _megabytes()
        return
    most = session.config.stash[_most]
    most["this process"] = _megabytes()
    if max(most.values()) > MEGABYTES and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter, config):
    """Say how much memory was needed."""
    most = config.stash[_most]
    told = ", ".join(f"{name} {used:,} MB" for name, used in most.items())
    verdict = "TOO MUCH MEMORY" if max(most.values(), default=0) > MEGABYTES else "Memory at most"
    terminalreporter.write_line(f"{verdict}: {told} (limit {MEGABYTES:,} MB)")


@pytest.hookimpl(tryfirst=True)  # before tests are chosen by their markers
def pytest_collection_modifyitems(items):
    """Begin with the longest test, so that no worker is left alone with it at the end.

    The examples in docstrings are short, so that most are run interpreted.
    """
    for item in items:
        if isinstance(item, pytest.DoctestItem) and SOURCE in item.path.parents:
            name = item.path.relative_to(SOURCE).as_posix()
            is_short = not name.startswith(COMPILED_EXAMPLES)
            item.add_marker(pytest.mark.interpreted if is_short else pytest.mark.compiled)
    items.sort(key=lambda item: "whatever_fills_the_cache" not in item.name)


@pytest.fixture
def digest_of():
    """Return what a script prints, a digest, in a process of its own with some environment."""

    def run(script, **environment):
        ran = subprocess.run(
            [sys.executable, "-c", script],
            env={**os.environ, **environment},
            cwd=Path(__file__).parents[1],
            capture_output=True,
            text=True,
            check=False,
        )
        assert ran.returncode == 0, ran.stderr
        digest = ran.stdout.strip()
        assert len(digest) == 64
        return digest

    return run
