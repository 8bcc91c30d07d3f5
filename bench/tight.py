"""The tight loop: C++ compiled on the fly, or Numba where there is no compiler."""

import ctypes
import platform
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from bench.setup import Setup
from keyhole.base.errors import FloatArray, IntArray

_SOURCE = Path(__file__).parent / "tight.cpp"
# No fused multiply-add: it would round keys otherwise than keyhole does.
_FLAGS = ["-O3", "-march=native", "-ffp-contract=off", "-fopenmp-simd"]
_FLAGS += ["-fno-math-errno", "-ffinite-math-only", "-fno-signed-zeros"]
_X86_FLAGS = ["-mprefer-vector-width=512"]


class Curves(NamedTuple):
    """Total scores at the checkpoints: of the ranker, and of the best fixed ranking."""

    scores: FloatArray
    best: FloatArray


class Tight(NamedTuple):
    """A tight loop and what it is."""

    name: str
    play: Callable[[Setup], Curves]


def _pointer(array: FloatArray | IntArray) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.ctypes.data)


def _compile(compiler: str) -> ctypes.CDLL:
    is_x86 = platform.machine() in ("x86_64", "AMD64")
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder) / "tight.so"
        flags = [*_FLAGS, *(_X86_FLAGS if is_x86 else []), "-std=c++17", "-shared", "-fPIC"]
        subprocess.run([compiler, *flags, str(_SOURCE), "-o", str(library)], check=True)
        return ctypes.CDLL(str(library))


def _cpp(library: ctypes.CDLL) -> Callable[[Setup], Curves]:
    def play(setup: Setup) -> Curves:
        n_points = len(setup.checkpoints)
        curves = Curves(np.empty(n_points), np.empty(n_points))
        truth, weights = setup.world.truth, setup.weights
        library.tight_play(
            ctypes.c_int(setup.n_items),
            ctypes.c_int64(setup.rounds),
            ctypes.c_uint64(setup.seed),
            ctypes.c_uint64(0),
            ctypes.c_int64(setup.ranker.n_blocks),
            ctypes.c_double(setup.ranker.rate),
            ctypes.c_double(setup.world.flip),
            _pointer(truth),
            _pointer(weights),
            _pointer(setup.checkpoints),
            _pointer(curves.scores),
            _pointer(curves.best),
        )
        return curves

    return play


def tight_loop(compile: bool = True) -> Tight:
    """Return the tight loop of this machine."""
    compiler = shutil.which("g++") if compile else None
    if compiler is not None:
        return Tight("tight C++ loop", _cpp(_compile(compiler)))
    from bench.fused import play_fused

    return Tight("fused Numba loop (for want of g++)", play_fused)
