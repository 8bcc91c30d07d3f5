"""Compiled code that comes with the package, for a baseline processor.

``make wheel`` packs it into one archive beside this file. It has the names, and so the stamps, of
the files in the cache: code of other sources, or of another version of Python, NumPy's or Numba's,
is not found in it. A host that lacks features of the baseline passes over it and compiles.
"""

import platform
import zipfile
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import llvmlite.binding as llvm
from numba.core import config as numba_config

from keyhole.base.errors import InvalidInput

config: Any = numba_config  # its settings are set when it is imported

ARCHIVE = Path(__file__).with_name("shipped.zip")


class Baseline(NamedTuple):
    """A processor by LLVM's name, and LLVM's names of what a host must have to run its code."""

    cpu: str
    needed: tuple[str, ...]

    @property
    def environment(self) -> dict[str, str]:
        """What makes Numba compile for it: with the name alone it keeps the host's features."""
        return {"NUMBA_CPU_NAME": self.cpu, "NUMBA_CPU_FEATURES": ""}


BASELINES = {
    "x86_64": Baseline(
        "x86-64-v3",
        (
            "avx", "avx2", "bmi", "bmi2", "cx16", "f16c", "fma", "lzcnt", "movbe", "popcnt", "sahf",
            "sse3", "sse4.1", "sse4.2", "ssse3", "xsave",
        ),
    ),
    "aarch64": Baseline("generic", ("neon",)),
}  # fmt: skip


def baseline_of_this_machine() -> Baseline:
    """Return the baseline that code for machines of this kind is compiled for, or raise."""
    machine = platform.machine()
    if machine not in BASELINES:
        raise InvalidInput(f"A baseline is known for {', '.join(BASELINES)}, not for {machine}.")
    return BASELINES[machine]


def host_features() -> dict[str, bool]:
    """Return what the processor at hand can do, by LLVM's names."""
    return dict(llvm.get_host_cpu_features())


@cache
def baseline_target(triple: str) -> tuple[str, str, str] | None:
    """Return what code for the baseline is compiled for, or None where it cannot be run.

    Whoever tells Numba what to compile for wants nothing else.
    """
    baseline = BASELINES.get(platform.machine())
    if baseline is None or config.CPU_NAME is not None or config.CPU_FEATURES is not None:
        return None
    features = host_features()
    if not all(features.get(each, False) for each in baseline.needed):
        return None
    return triple, baseline.cpu, ""


@cache
def _archive() -> Any:
    try:
        archive = zipfile.ZipFile(ARCHIVE)
    except (OSError, zipfile.BadZipFile):
        return None
    return archive, frozenset(archive.namelist())


def has_shipped(name: str) -> bool:
    """Return whether a code file comes with the package."""
    archive = _archive()
    return archive is not None and name in archive[1]


def read_shipped(name: str) -> bytes | None:
    """Return the content of a code file that comes with the package, or None."""
    if not has_shipped(name):
        return None
    try:
        return bytes(_archive()[0].read(name))
    except (OSError, zipfile.BadZipFile, zipfile.zlib.error):  # type: ignore[attr-defined]
        return None
