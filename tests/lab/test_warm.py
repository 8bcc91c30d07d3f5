"""The command that compiles ahead."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from keyhole.cli import warm
from keyhole.lab.warming import cases
from keyhole.rankers import RANKERS
from tests.lab.running import run


def test_every_ranker_has_a_game_rounds_and_the_service():
    names = [name for name, _ in warm._all_cases([])]
    assert len(set(names)) == len(names)
    for ranker in RANKERS:
        own = [name for name in names if name.startswith(f"{ranker}, ")]
        assert f"{ranker}, round by round" in own
        assert f"{ranker}, in the service" in own
        assert len(own) >= 4
    assert next(name for name, _ in cases(["random"])) == "random, round by round"


def test_all_cases_can_be_played():
    """Interpreted: what is compiled is the same, and takes minutes."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "keyhole", "warm", "--jobs", "1", "--json"],
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["failed"] == []
    assert report["cases"] > 150


def _one():
    return os.getpid()


def _fails():
    raise ValueError("something is wrong")


def _dies():
    os._exit(9)


@pytest.mark.parametrize("jobs", [1, 2])
def test_what_fails_is_named_and_the_rest_is_done(jobs, monkeypatch):
    monkeypatch.setattr(warm, "_all_cases", lambda _: [("a", _one), ("b", _fails), ("c", _one)])
    done = run("warm", "--jobs", str(jobs), "--json", code=4)
    report = json.loads(done.stdout)
    assert report["failed"] == ["b: ValueError: something is wrong"]
    assert report["cases"] == 3


def test_a_process_that_dies_is_told(monkeypatch):
    monkeypatch.setattr(warm, "_all_cases", lambda _: [("a", _dies)])
    done = run("warm", "--jobs", "2", code=4)
    assert "Not compiled: a: BrokenProcessPool" in done.stderr


def test_unknown_names_are_refused():
    done = run("warm", "keyston", code=2)
    assert "Did you mean 'keystone'?" in done.stderr


SLEEPS = """
import sys, time
from keyhole.cli import warm
warm._CASES_OF_A_PROCESS = 1
def main():
    list(warm._run([("a", sleep), ("b", sleep)], 2, alone=False))
from time import sleep as _sleep
def sleep():
    print(__import__("os").getpid(), flush=True)
    _sleep(60)
if __name__ == "__main__":
    main()
"""


def test_a_command_that_is_killed_leaves_no_process(tmp_path):
    script = tmp_path / "sleeps.py"
    script.write_text(SLEEPS)
    command = subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, text=True)
    assert command.stdout is not None
    workers = [int(command.stdout.readline()) for _ in range(2)]
    command.send_signal(signal.SIGKILL)
    command.wait()
    command.stdout.close()
    until = time.monotonic() + 20
    while time.monotonic() < until:
        alive = [pid for pid in workers if _is_running(pid)]
        if not alive:
            return
        time.sleep(0.1)
    pytest.fail(f"{alive} are still there")


def _is_running(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
