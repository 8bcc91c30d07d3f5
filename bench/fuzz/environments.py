"""Commands in strange surroundings: terminals, encodings, streams, folders and limits."""

import os
import random
import resource
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench.fuzz import material
from bench.fuzz.processes import run_command
from bench.fuzz.scene import ANY, GOOD, Attack, Scene

LINES = (
    "--version",
    "--help",
    "list",
    "play --items 4 --rounds 30",
    "play --items 4 --rounds 30 --json",
    "learn train.txt --rounds 20 --model saved.npz --json",
    "rank train.txt --model model.npz",
    "evaluate log.csv --policy uniform",
    "classify NDCG --items 3 --top 1 --certificate new.json",
    "bound --surrogate listnet",
)

_NOT_A_FOLDER = os.path.join("train.txt", "folder")

SURROUNDINGS: tuple[dict[str, str | None], ...] = (
    {"COLUMNS": "0"}, {"COLUMNS": "1"}, {"COLUMNS": "20"}, {"COLUMNS": "-5"}, {"COLUMNS": "x"},
    {"COLUMNS": "99999999"}, {"LINES": "0"}, {"TERM": "dumb"}, {"TERM": ""}, {"TERM": None},
    {"LC_ALL": "C", "PYTHONUTF8": "0"}, {"LC_ALL": "POSIX", "LANG": None},
    {"LC_ALL": "nowhere.UTF-8"}, {"PYTHONIOENCODING": "ascii"}, {"PYTHONIOENCODING": "latin-1"},
    {"PYTHONIOENCODING": "cp1252"}, {"PYTHONIOENCODING": "ascii", "COLUMNS": "20"},
    {"NO_COLOR": "1"}, {"FORCE_COLOR": "1"}, {"HOME": None}, {"HOME": "missing"},
    {"HOME": _NOT_A_FOLDER, "NUMBA_CACHE_DIR": _NOT_A_FOLDER}, {"TMPDIR": "missing"},
    {"TMPDIR": _NOT_A_FOLDER}, {"MPLCONFIGDIR": _NOT_A_FOLDER}, {"PYTHONDONTWRITEBYTECODE": "1"},
    {"PYTHONHASHSEED": "7"}, {"KEYHOLE_MEMORY_LIMIT": "8G"},
)  # fmt: skip
"""Variables under which every good line must work."""

BAD_SURROUNDINGS: tuple[dict[str, str | None], ...] = (
    {"KEYHOLE_MEMORY_LIMIT": "0"}, {"KEYHOLE_MEMORY_LIMIT": "much"}, {"KEYHOLE_MEMORY_LIMIT": "-1"},
)  # fmt: skip


def _small_memory() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (700 * 2**20,) * 2)


def _small_files() -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))


_LIMITS: tuple[Callable[[], None], ...] = (_small_memory, _small_files)


def _closed() -> Any:
    """Return a stream that nobody reads."""
    reading, writing = os.pipe()
    os.close(reading)
    return os.fdopen(writing, "wb")


def _full() -> Any:
    """Return a stream on a full disk, where the system has one."""
    device = Path(os.devnull).with_name("full")
    return device.open("wb") if device.exists() else _closed()


def draw(chance: random.Random) -> Attack:
    """Return a good command line in surroundings that are not what it is used to."""
    words = shlex.split(chance.choice(LINES))
    attack = chance.random()
    label, told = GOOD, ""
    options: dict[str, Any] = {}
    stream: Callable[[], Any] | None = None
    if attack < 0.6:
        around = chance.choice(SURROUNDINGS)
        options, told = {"environment": around}, str(around)
    elif attack < 0.65:
        around = chance.choice(BAD_SURROUNDINGS)
        label, options, told = ANY, {"environment": around}, str(around)  # few lines ask for it
    elif attack < 0.9:
        stream, label = chance.choice((_closed, _full)), ANY
        told = f"standard output is {stream.__name__.strip('_')}"
    else:
        limit = chance.choice(_LIMITS)
        label, options, told = ANY, {"preexec_fn": limit}, limit.__name__.strip("_")

    def act(scene: Scene) -> None:
        for name in ("train.txt", "model.npz", "log.csv"):
            scene.write(name, material.good(name))
        if stream is None:
            run_command(scene, words, label, told, **options)
        else:
            with stream() as out:
                run_command(scene, words, label, told, stdout=out)

    return Attack(f"{shlex.join(words)} with {told}", act)
