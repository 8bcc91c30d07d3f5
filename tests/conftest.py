"""What several kinds of tests share."""

import os
import signal
import subprocess
import sys

import pytest

# These tests need the packages that `make test-ecosystem` installs, which runs them.
collect_ignore = ["ecosystem"]


def pytest_addoption(parser):
    """Let one test take all of its cases, which takes ten minutes: ``make cachecases``."""
    parser.addoption("--every-case", action="store_true", dest="every_case")


def pytest_configure():
    """Hear interrupts: shells let background jobs ignore them, and so would what these start."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items):
    """Begin with the longest test, so that no worker is left alone with it at the end."""
    items.sort(key=lambda item: "whatever_fills_the_cache" not in item.name)


@pytest.fixture
def digest_of():
    """Return what a script prints, a digest, in a process of its own with some environment."""

    def run(script, **environment):
        ran = subprocess.run(
            [sys.executable, "-c", script],
            env={**os.environ, **environment},
            capture_output=True,
            text=True,
            check=False,
        )
        assert ran.returncode == 0, ran.stderr
        digest = ran.stdout.strip()
        assert len(digest) == 64
        return digest

    return run
