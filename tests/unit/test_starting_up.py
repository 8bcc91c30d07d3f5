"""What a user waits for before anything happens, beside what importing the compiler takes."""

import os
import subprocess
import sys

import keyhole
from keyhole import public

TRIES = 6
"""A busy machine makes things look slow, and none look fast: the least of some tries counts."""


def python(*arguments):
    """Run Python where modules are kept as bytecode, as they are where a package is installed."""
    kept = {"PYTHONDONTWRITEBYTECODE": ""}
    command = [sys.executable, *arguments]
    subprocess.run(command, env=os.environ | kept, check=True, stdout=subprocess.DEVNULL)


def cpu_seconds(*arguments):
    """Return the processor time that Python takes for some arguments."""
    before = os.times()
    python(*arguments)
    after = os.times()
    return sum(after[2:4]) - sum(before[2:4])


def is_quicker(arguments, share):
    """Return whether something takes less than a share of importing numba, at its best."""
    numba, own = [], []
    for _ in range(TRIES):
        own.append(cpu_seconds(*arguments))
        numba.append(cpu_seconds("-c", "import numba"))
        if min(own) < share * min(numba):
            return True
    return False


def test_importing_keyhole_takes_less_than_the_compiler():
    assert is_quicker(["-c", "import keyhole"], 1.2)


def test_the_help_comes_at_once():
    # A second of processor time where importing numba takes 0.3.
    assert is_quicker(["-m", "keyhole", "--help"], 3.3)


def test_nothing_heavy_is_imported_before_it_is_asked_for():
    python("-c", "import keyhole, sys; sys.exit('numba' in sys.modules or 'numpy' in sys.modules)")


def test_every_public_name_is_reachable():
    assert sorted(set(public.__all__)) == sorted(public.__all__)
    assert set(public.__all__) <= set(dir(keyhole))
    for name in public.__all__:
        assert getattr(keyhole, name) is getattr(public, name)
