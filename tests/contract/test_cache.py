"""Compiled code from the cache is the code that was asked for, whoever filled the cache and how."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from keyhole.kernels.by_numba import source_stamp

ROOT = Path(__file__).parents[2]
SMALL = ("measure AP", "measure AUC", "measure RR", "measure DCG", "risk kl", "risk listnet")
"""Cases that compile within a second."""


def start(command, *names, cache, code="", **environment):
    """Start a process on cases; some code may come before."""
    script = f"{code}\nimport runpy, sys\nsys.argv = {['', command, *names]!r}\n"
    script += "runpy.run_module('tests.contract.cache_cases', run_name='__main__')"
    return subprocess.Popen(
        [sys.executable, "-W", "default", "-c", script],
        cwd=ROOT,
        env={**os.environ, "NUMBA_CACHE_DIR": str(cache), **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def digests(process):
    out, error = process.communicate()
    assert process.returncode == 0, error
    return json.loads(out)


def files_in(cache):
    return sorted(path for path in cache.rglob("*.code"))


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """A cache filled by a process for each small case, and their digests."""
    cache = tmp_path_factory.mktemp("small")
    return cache, digests(start("fill", *SMALL, cache=cache))


def test_whatever_fills_the_cache_all_is_played_from_it_in_any_order(tmp_path, pytestconfig):
    """A sixteenth of all cases, others for each version of the kernels; --every-case takes all."""
    command = "fill" if pytestconfig.getoption("every_case") else "fill some"
    fresh = digests(start(command, cache=tmp_path))
    assert len(set(fresh.values())) > 0.8 * len(fresh)  # most cases differ from all others
    before = files_in(tmp_path)
    for names in (list(fresh), list(fresh)[::-1]):
        found = digests(start("play", *names, cache=tmp_path))
        wrong = [name for name in names if found[name] != fresh[name]]
        assert not wrong
    assert files_in(tmp_path) == before  # nothing had to be compiled again


FORGETFUL = """
import hashlib, pickle
from keyhole.kernels import code_cache, compiled
compiled._mark = lambda _: ""
alike = lambda key: hashlib.sha256(repr((key.name, key.args, key.target)).encode()).hexdigest()
code_cache.CodeKey.file_name = property(lambda key: f"{alike(key)}-{alike(key)}.code")
code_cache.unpacked = lambda content, key: pickle.loads(content[32:])[1]
"""
"""Files named by what a function is called and takes, not by what it is made of."""


def test_mixed_up_code_is_noticed(tmp_path, small):
    names = SMALL[:4]
    fresh = digests(start("fill", *names, cache=tmp_path, code=FORGETFUL))
    assert fresh == {name: small[1][name] for name in names}
    mixed = digests(start("play", *names, cache=tmp_path, code=FORGETFUL))
    assert len(set(mixed.values())) < len(names)


def test_processes_that_compile_at_the_same_time(tmp_path, small):
    names = SMALL[:2]
    crowd = [start("play", *names[::step], cache=tmp_path) for step in (1, -1, 1)]
    for process in crowd:
        found = digests(process)
        assert found == {name: small[1][name] for name in found}
    assert digests(start("play", *SMALL[1::-1], cache=tmp_path)) == {
        name: small[1][name] for name in names
    }


def _truncate(path, numbers):
    os.truncate(path, numbers.integers(path.stat().st_size))


def _flip(path, numbers):
    content = bytearray(path.read_bytes())
    content[numbers.integers(len(content))] ^= 1 << numbers.integers(8)
    path.write_bytes(content)


def _empty(path, numbers):
    path.write_bytes(b"")


def _swap(path, numbers):
    """Put the code of another function in its place."""
    others = [other for other in path.parent.glob("*.code") if other != path]
    if others:
        path.write_bytes(others[numbers.integers(len(others))].read_bytes())


@pytest.mark.parametrize("damage", [_truncate, _flip, _empty, _swap])
def test_damaged_files_are_compiled_again(damage, tmp_path, small):
    cache, fresh = small
    numbers = np.random.default_rng(5)
    for path in files_in(cache):
        copy = tmp_path / path.relative_to(cache)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(path.read_bytes())
        damage(copy, numbers)
        copy.with_name(".draft.tmp").write_bytes(b"left behind by a process that was killed")
    names = SMALL[0], SMALL[-1]  # a measure and a risk
    found = digests(start("play", *names, cache=tmp_path))
    assert found == {name: fresh[name] for name in names}


UNWRITABLE = """
import errno, tempfile
def refuse(*args, **kwargs):
    raise OSError(errno.EROFS, "Read-only file system")
tempfile.mkstemp = refuse
"""
NOWHERE = """
from pathlib import Path
def refuse(*args, **kwargs):
    raise OSError("There is no room for a folder")
Path.mkdir = refuse
"""


@pytest.mark.parametrize("code", [UNWRITABLE, NOWHERE], ids=["read-only", "no folder at all"])
def test_without_a_folder_that_can_be_written_it_only_takes_longer(code, tmp_path, small):
    process = start("play", *SMALL[-2:], cache=tmp_path, code=code)
    out, error = process.communicate()
    assert process.returncode == 0, error
    assert json.loads(out) == {name: small[1][name] for name in SMALL[-2:]}
    assert error.count("NUMBA_CACHE_DIR must name a folder that can be written") == 1
    assert files_in(tmp_path) == []


def test_a_read_only_cache_is_still_read(small):
    cache, fresh = small
    before = {path: path.stat().st_mtime_ns for path in files_in(cache)}
    process = start("play", *SMALL, cache=cache, code=UNWRITABLE)
    out, error = process.communicate()
    assert json.loads(out) == fresh
    assert "NUMBA_CACHE_DIR" not in error
    assert {path: path.stat().st_mtime_ns for path in files_in(cache)} == before


WITHOUT_PRIVATE_CLASSES = """
import numba.core.codegen as codegen
del codegen.JITCodeLibrary
from keyhole.kernels import compiled
from keyhole.measures import measure
assert compiled.compile_program.__module__ == "keyhole.kernels.by_numba"
rankings = [[2, 0, 1], [0, 1, 2]]
print([measure(name).many([[0, 1, 2], [1, 1, 0]], rankings) for name in ("SumLoss", "DCG")])
"""
WITH_THEM = WITHOUT_PRIVATE_CLASSES.replace("del codegen", "codegen").replace(
    "by_numba", "whole_program"
)


def test_without_numbas_private_classes_its_own_cache_serves(tmp_path):
    """The numbers are the same, and a second process finds the code of the first."""

    def run(script):
        done = subprocess.run(
            [sys.executable, "-c", script],
            env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)},
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout

    def kept():
        """Return the kernels in Numba's own cache, which has a folder for these sources."""
        found = (tmp_path / source_stamp()[:24]).rglob("*.nb?")
        return {path: path.stat().st_mtime_ns for path in found if ".locals." not in path.name}

    totals = run(WITHOUT_PRIVATE_CLASSES)
    found = kept()
    assert found
    assert run(WITHOUT_PRIVATE_CLASSES) == totals
    assert kept() == found
    assert run(WITH_THEM) == totals
