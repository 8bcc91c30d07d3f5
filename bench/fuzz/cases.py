"""Cases by number: which area one belongs to, what it tries, and what comes of it."""

import os
import random
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from bench.fuzz import commands, constructors, environments, files, logs, rounds, states
from bench.fuzz.scene import Attack, Failure, Scene, empty


@dataclass(frozen=True)
class Area:
    """Attacks of one kind: how they are drawn, and how many of a thousand cases they are."""

    draw: Callable[[random.Random], Attack]
    share: int
    warm: Callable[[], None] = lambda: None
    """Compiles what attacks use, which no limit of time should count."""


AREAS = {
    "commands": Area(commands.draw, 150, commands.warm),
    "constructors": Area(constructors.draw, 306),
    "rounds": Area(rounds.draw, 200, rounds.warm),
    "states": Area(states.draw, 120, rounds.warm),
    "files": Area(files.draw, 140, files.warm),
    "logs": Area(logs.draw, 80, logs.warm),
    "environments": Area(environments.draw, 4),
}


@dataclass(frozen=True)
class Report:
    """What came of a case."""

    number: int
    area: str
    what: str
    told: list[str]
    failures: list[Failure]
    n_worked: int
    n_refused: int
    seconds: float

    def as_dict(self) -> dict[str, Any]:
        """Return the report as plain data."""
        return asdict(self)


def area_of(seed: int, number: int) -> str:
    """Return the area that a case belongs to."""
    shares = [area.share for area in AREAS.values()]
    return random.Random(f"area {seed} {number}").choices([*AREAS], shares)[0]


def judge(seed: int, number: int) -> Report:
    """Make one attack, a function of seed and number alone, and report."""
    area = area_of(seed, number)
    return made(number, area, AREAS[area].draw(random.Random(f"case {seed} {number}")))


def made(number: int, area: str, attack: Attack) -> Report:
    """Make an attack in an empty folder, and report."""
    folder, before = _folder(), Path.cwd()
    scene, start = Scene(folder), time.perf_counter()
    os.chdir(folder)
    try:
        attack.act(scene)
        scene.check_files()
    finally:
        os.chdir(before)
        empty(folder)
    seconds = time.perf_counter() - start
    return Report(
        number, area, attack.what, scene.told, scene.failures, scene.n_worked, scene.n_refused,
        seconds,
    )  # fmt: skip


_folders: dict[int, Path] = {}


def _folder() -> Path:
    """Return the empty folder of this process."""
    if os.getpid() not in _folders:
        _folders[os.getpid()] = Path(tempfile.mkdtemp(prefix="fuzz-"))
    return _folders[os.getpid()]


def warm(areas: list[str]) -> None:
    """Compile what the attacks of some areas use."""
    for compile_all in dict.fromkeys(AREAS[area].warm for area in areas):
        compile_all()
