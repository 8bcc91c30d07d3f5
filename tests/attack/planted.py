"""Defects planted into the library within a worker of the fuzzer, one per judge."""

import ctypes
import os
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any
from unittest import mock

import numpy as np

import keyhole.__main__
from bench.fuzz.cases import Report, made
from bench.fuzz.scene import Attack, Scene
from keyhole.base.errors import InvalidInput
from keyhole.contracts.rankers import Ranker
from keyhole.rankers.fixed.full_information import FTPL


def nothing() -> None:
    """Stands for what compiles ahead: these cases do not need it."""


def _report(number: int, act: Callable[[Scene], Any]) -> Report:
    """Return the report on an attack of one's own, made as the fuzzer makes its own."""
    return made(number, "rounds", Attack("planted", act))


def sound(seed: int, number: int) -> Report:
    def act(scene: Scene) -> None:
        ranker = scene.watch(FTPL(3))
        scene.attempt("rank", ranker.rank, "good")
        scene.attempt("a round that is none", lambda: ranker.rank(round=-1), "bad")
        scene.command(["--version"], "good")
        scene.command(["--nonsense"], "bad")

    return _report(number, act)


def constructor_raises(seed: int, number: int) -> Report:
    with mock.patch.object(FTPL, "__init__", side_effect=TypeError("planted")):
        return _report(number, lambda scene: scene.attempt("make", lambda: FTPL(3)))


def update_writes_nan(seed: int, number: int) -> Report:
    def act(scene: Scene) -> None:
        ranker = scene.watch(FTPL(3), "ftpl")
        scene.attempt("update", lambda: ranker.state.scores.fill(np.nan), kind="planted")

    return _report(number, act)


def refusal_changes_the_state(seed: int, number: int) -> Report:
    def act(scene: Scene) -> None:
        ranker = scene.watch(FTPL(3), "ftpl")

        def update() -> None:
            ranker.state.scores[0] += 1.0
            raise InvalidInput("It is refused too late.")

        scene.attempt("update", update, kind="planted")

    return _report(number, act)


def refusal_is_no_sentence(seed: int, number: int) -> Report:
    def refuse() -> None:
        raise InvalidInput("one line\nand another")

    return _report(number, lambda scene: scene.attempt("x", refuse, kind="planted"))


def bad_state_is_taken(seed: int, number: int) -> Report:
    def act(scene: Scene) -> None:
        ranker = FTPL(3)
        with mock.patch.object(Ranker, "load_state_dict", lambda self, _: self):
            scene.attempt("load", lambda: ranker.load_state_dict({}), "bad", "planted")

    return _report(number, act)


def _command(code: int, out: str = "", err: str = ""):
    def main() -> None:
        sys.stdout.write(out)
        sys.stderr.write(err)
        sys.exit(code)

    return mock.patch.object(keyhole.__main__, "main", main)


def command_takes_bad_input(seed: int, number: int) -> Report:
    with _command(0):
        return _report(number, lambda scene: scene.command(["play", "--rounds", "0"], "bad"))


def command_has_a_fault(seed: int, number: int) -> Report:
    with _command(4, err="Error: a fault of Keyhole.\n"):
        return _report(number, lambda scene: scene.command(["play"]))


def command_prints_a_traceback(seed: int, number: int) -> Report:
    with _command(2, err="Error: x.\nTraceback (most recent call last):\n"):
        return _report(number, lambda scene: scene.command(["play"]))


def command_prints_no_json(seed: int, number: int) -> Report:
    with _command(0, out='{"score": NaN}'):
        return _report(number, lambda scene: scene.command(["list", "--json"]))


def command_refuses_without_a_word(seed: int, number: int) -> Report:
    with _command(2):
        return _report(number, lambda scene: scene.command(["play"]))


def file_is_half_written(seed: int, number: int) -> Report:
    def act(scene: Scene) -> None:
        (scene.folder / "model.npz").write_bytes(b"PK\x03\x04 half of it")

    return _report(number, act)


def temporary_file_is_left(seed: int, number: int) -> Report:
    def act(scene: Scene) -> None:
        (scene.folder / ".model.npz.x7").write_bytes(b"whole")

    return _report(number, act)


def hangs(seed: int, number: int) -> Report:
    return _report(number, lambda _: time.sleep(60) if number == 1 else None)


def starts_what_never_ends(seed: int, number: int) -> Report:
    endless = [sys.executable, "-c", "while True: pass"]
    return _report(number, lambda _: subprocess.run(endless, check=False) if number == 1 else None)


def is_given_little(seed: int, number: int) -> Report:
    """Take longer than the limit, as on a busy machine, and work all the while."""

    def act(_: Scene) -> None:
        for _turn in range(5):
            end = time.process_time() + 0.2
            while time.process_time() < end:
                pass
            time.sleep(0.3)

    return _report(number, act)


def crashes(seed: int, number: int) -> Report:
    return _report(number, lambda _: ctypes.string_at(0) if number == 1 else None)


def exits(seed: int, number: int) -> Report:
    return _report(number, lambda _: os._exit(7) if number == 1 else None)


def attack_is_wrong(seed: int, number: int) -> Report:
    def act(scene: Scene) -> None:
        raise LookupError("planted")

    return _report(number, act)


def no_areas(areas: list[str]) -> None:
    """Stands for what compiles ahead, area by area."""
