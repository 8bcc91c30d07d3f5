"""The command that diagnoses the installation.

Packages that may be missing or broken, such as Numba, are imported in functions, so that the
command can report them.
"""

import os
import platform
import re
import sys
import tempfile
import time
import warnings
from importlib import metadata
from pathlib import Path
from typing import Any

from keyhole.base.display import counted
from keyhole.base.threads import n_cores
from keyhole.base.version import __version__
from keyhole.cli.description_options import command
from keyhole.cli.exit_codes import ExitCode
from keyhole.cli.terminal import ERR, Json, print_json, say
from keyhole.experiment.inputs import data_folder

_CORE = ("numpy", "numba", "llvmlite")
_NOT_FOR_USERS = ("all", "dev")
_THREAD_SETTINGS = (
    "NUMBA_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS",
    "NUMBA_DISABLE_JIT",
)  # fmt: skip
KNOWN_REGRET = 0.07115620094888846
"""The average regret of the self-test's game."""
_TOLERANCE = 1e-6


@command()
def doctor_command(
    as_json: Json = False,
) -> None:
    """Diagnose the installation, with a self-test.

    Prints versions, missing extras with the command that installs them, cores, the folders of
    compiled code and data sets, and the result of a short game with a known regret. Exits with 1
    if the self-test fails.

        keyhole doctor
    """
    report = {
        "versions": _versions(),
        "extras": _extras(),
        "cores": _cores(),
        "cache": _cache(),
        "data": _data(),
        "self_test": _self_test(),
    }
    if as_json:
        print_json(report)
    else:
        _print(report)
    if not report["self_test"]["passed"]:
        say(f"The self-test failed: {report['self_test']['why']}.", console=ERR)
        raise SystemExit(ExitCode.NO)


def _version_of(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _cpu() -> str:
    """Return the name of the processor, or else the architecture."""
    try:
        told = Path("/", "proc", "cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return platform.processor() or platform.machine()
    found = re.search(r"^model name\s*:\s*(.+)$", told, re.MULTILINE)
    return f"{found[1]} ({platform.machine()})" if found else platform.machine()


def _versions() -> dict[str, str | None]:
    return {
        "keyhole": __version__,
        "python": f"{platform.python_version()} ({platform.python_implementation()})",
        **{package: _version_of(package) for package in _CORE},
        "system": platform.platform(),
        "processor": _cpu(),
    }


def _extras() -> dict[str, Any]:
    """Return the libraries of each extra of the package, and the command that installs it."""
    try:
        needed = metadata.requires("keyhole") or []
    except metadata.PackageNotFoundError:  # run from source
        needed = []
    extras: dict[str, dict[str, str | None]] = {}
    for line in needed:
        library = re.match(r"[\w.-]+", line)
        extra = re.search(r"""extra == ['"]([\w-]+)['"]""", line)
        if library and extra and library[0] != "keyhole" and extra[1] not in _NOT_FOR_USERS:
            is_elsewhere = "sys_platform" in line and sys.platform == "win32"
            if not is_elsewhere:
                extras.setdefault(extra[1], {})[library[0]] = _version_of(library[0])
    return {
        extra: {
            "libraries": libraries,
            "missing": [name for name, version in libraries.items() if version is None],
            "install": f"pip install -e '.[{extra}]' in a checkout of Keyhole",
        }
        for extra, libraries in sorted(extras.items())
    }


def _cores() -> dict[str, Any]:
    settings = {name: os.environ[name] for name in _THREAD_SETTINGS if name in os.environ}
    return {"usable": n_cores(), "there": os.cpu_count(), "settings": settings}


def kept_in() -> Path | None:
    """Return the folder of compiled code, None without one."""
    try:
        from keyhole.kernels.code_cache import code_folder
    except Exception:  # Numba cannot be imported; the self-test reports why
        return None
    return code_folder()


def _is_writable(folder: Path) -> bool:
    """Return whether a folder, or its nearest existing parent, is writable."""
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    try:
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False


def _cache() -> dict[str, Any]:
    """Return the place and size of the cache of compiled code."""
    asked, kept = os.environ.get("NUMBA_CACHE_DIR"), kept_in()
    folder = Path(asked) if asked and kept and kept.is_relative_to(asked) else kept
    files = [] if folder is None else [path for path in folder.rglob("*.code") if path.is_file()]
    return {
        "folder": None if folder is None else str(folder),
        "asked_for": asked,
        "writable": kept is not None and _is_writable(kept),
        "files": len(files),
        "bytes": sum(path.stat().st_size for path in files),
    }


def _data() -> dict[str, Any]:
    folder = data_folder()
    is_there = folder.is_dir()
    sets = sorted(path.name for path in folder.iterdir() if path.is_dir()) if is_there else []
    return {"folder": str(folder), "there": is_there, "sets": sets}


def play_known_game() -> float:
    """Return the average regret of a short game with a known result.

    Its ranker compiles quickly and only counts and divides, which is exact on all machines.
    """
    from keyhole.game.play import play
    from keyhole.rankers.fixed.epsilon_greedy import EpsilonGreedyRanker
    from keyhole.worlds.flips import Flips

    trace = play(EpsilonGreedyRanker(20), Flips(20), rounds=2000, seed=0)
    return trace.average_regret.mean


def _self_test() -> dict[str, Any]:
    """Play the known game and compare its regret."""
    began = time.perf_counter()
    regret: float | None = None
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            regret = play_known_game()
        except Exception as error:  # report any failure
            why = f"{type(error).__name__}: {error}".rstrip(".")
        else:
            why = f"the average regret must be {KNOWN_REGRET:.9f}, got {regret:.9f}"
    passed = regret is not None and abs(regret - KNOWN_REGRET) <= _TOLERANCE
    return {
        "passed": passed,
        "average_regret": regret,
        "expected": KNOWN_REGRET,
        "why": None if passed else why,
        "seconds": time.perf_counter() - began,
        "warnings": list(dict.fromkeys(str(warning.message) for warning in caught)),
    }


def _print(report: dict[str, Any]) -> None:
    for name, version in report["versions"].items():
        say(f" {version or 'missing'}", name, "bold")
    cores = report["cores"]
    chosen = ", ".join(f"{name}={value}" for name, value in cores["settings"].items())
    say(
        f" {cores['usable']} of {cores['there']} usable{f'; {chosen}' * bool(chosen)}",
        "cores",
        "bold",
    )
    for extra, row in report["extras"].items():
        lacks = ", ".join(row["missing"])
        has = ", ".join(name for name, version in row["libraries"].items() if version)
        text = (
            f" installed: {has}" if not lacks else f" lacks {lacks}: install with {row['install']}"
        )
        say(text, f"extra {extra}", "bold")
    if not report["extras"]:
        say(" unknown: keyhole is not installed as a package", "extras", "bold")
    cache, data = report["cache"], report["data"]
    state = "writable" if cache["writable"] else "NOT writable: code is compiled again every time"
    where = f"{cache['folder'] or 'nowhere'}, {state}"
    if cache["asked_for"] and cache["folder"] != cache["asked_for"]:
        where = f"{where}; NUMBA_CACHE_DIR={cache['asked_for']} cannot be used"
    size = f"{counted(cache['files'], 'file')}, {cache['bytes'] / 2**20:.0f} MiB"
    say(f" {where}; {size}", "compiled code", "bold")
    sets = f": {', '.join(data['sets'])}" if data["sets"] else ""
    where = f"{data['folder']}{sets if data['there'] else ', which does not exist'}"
    if not data["there"] and not os.environ.get("KEYHOLE_DATA"):
        where = "none: set KEYHOLE_DATA to the folder of data sets"
    say(f" {where}", "data", "bold")
    test = report["self_test"]
    for warning in test["warnings"]:
        say(f"Warning: {warning}")
    if test["passed"]:
        say(
            f" passed in {test['seconds']:.1f} s: average regret {test['average_regret']:.6f}, as "
            f"it must be",
            "self-test",
            "bold",
        )
