"""What several kinds of tests share."""

import os
import subprocess
import sys

import pytest


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
