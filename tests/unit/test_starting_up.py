"""What a user waits for before anything happens, beside what importing the compiler takes."""

import ast
import os
import subprocess
import sys
from pathlib import Path

import keyhole

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


def test_a_public_name_imports_what_it_needs_alone():
    script = "import keyhole, sys; keyhole.BanditLog; sys.exit('keyhole.rankers' in sys.modules)"
    python("-c", script)


def test_every_public_name_is_reachable_and_known_to_type_checkers():
    names: list[str] = keyhole.__all__
    assert len(names) > 100
    assert sorted(set(names)) == sorted(names)
    assert set(names) <= set(dir(keyhole))
    told = {
        alias.asname: f"{node.module}.{alias.name}"
        for node in ast.walk(ast.parse(Path(keyhole.__file__).read_text("utf-8")))
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith("keyhole.")
        for alias in node.names
    }
    assert set(told) == set(names)
    for name in names:
        module, _, own = told[name].rpartition(".")
        assert getattr(keyhole, name) is getattr(sys.modules[module], own)
