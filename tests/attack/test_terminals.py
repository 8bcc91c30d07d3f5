"""Streams as they may be, and interrupts: the command line in processes of its own."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

import keyhole
from keyhole.cli.app import app

FULL = Path(os.devnull).with_name("full")
"""The device that takes nothing, next to the one that takes everything."""


def environment(**changed):
    source = str(Path(keyhole.__file__).parents[1])
    kept = {k: v for k, v in os.environ.items() if k not in ("COLUMNS", "PYTHONIOENCODING")}
    return {**kept, "PYTHONPATH": source, **changed}


def run(*arguments, **how):
    """Run a command in a process of its own, as bytes."""
    changed = how.pop("env", {})
    how = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **how}
    return subprocess.run(
        [sys.executable, "-m", "keyhole", *arguments],
        env=environment(**changed),
        check=False,
        **how,
    )


ASCII_ONLY = [
    {"PYTHONIOENCODING": "ascii"},
    {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
]


@pytest.mark.parametrize("env", ASCII_ONLY, ids=["io", "locale"])
def test_ascii_streams_take_help_tables_and_json(env):
    taught = run("play", "--help", env=env)
    assert taught.returncode == 0, taught.stderr
    assert b"plackett-luce, ..." in taught.stdout
    listed = run("list", "--json", env=env)
    assert listed.returncode == 0, listed.stderr
    assert listed.stdout.isascii()
    assert json.loads(listed.stdout) == json.loads(run("list", "--json").stdout)
    classified = run("classify", "NDCG", "--items", "9", "--top", "1", env=env)
    assert b"Bartok et al." in b" ".join(classified.stdout.split())
    refused = run("play", "--ranker", "é…", env=env)
    assert (refused.returncode, refused.stderr.count(b"\n")) == (2, 1)


@pytest.mark.parametrize("columns", ["0", "1", "20", "wide", "-5", "9" * 5000])
def test_any_width_can_be_read(columns):
    told = CliRunner().invoke(app, ["bound"], env={"COLUMNS": columns, "TERM": "dumb"})
    assert told.exit_code == 0, told.stderr
    words = " ".join(told.stdout.split())
    assert "listnet: excess risk on new lists after 10,000 lists" in words
    assert "Smallest:" in words


def test_a_width_that_is_no_number_is_not_used_while_modules_are_imported():
    told = run("--help", env={"COLUMNS": "²", "TERMINAL_WIDTH": "wide"})
    assert told.returncode == 0, told.stderr


def with_closed(which, *arguments):
    """Run a command with some of its streams closed."""
    close = "import os, sys; [os.close(int(n)) for n in sys.argv[1].split(',')]; "
    start = close + "os.execv(sys.executable, [sys.executable, '-m', 'keyhole', *sys.argv[2:]])"
    return subprocess.run(
        [sys.executable, "-c", start, which, *arguments],
        env=environment(), capture_output=True, check=False,
    )  # fmt: skip


@pytest.mark.parametrize(("which", "code"), [("1", 3), ("2", 0), ("0,1,2", 3)])
def test_closed_streams_are_no_fault(which, code):
    ended = with_closed(which, "bound", "--json")
    assert ended.returncode == code, ended.stderr
    if "2" not in which.split(","):
        assert ended.stderr.count(b"\n") == (code == 3)
    assert b"Traceback" not in ended.stderr


@pytest.mark.skipif(not FULL.exists(), reason="there is no device that is always full")
@pytest.mark.parametrize("arguments", [["--help"], ["bound", "--json"]])
def test_a_full_standard_output_is_one_sentence(arguments):
    with FULL.open("wb") as full:
        ended = run(*arguments, stdout=full)
    assert ended.returncode == 3
    assert ended.stderr.decode() == (
        "Error: Standard output cannot be used: No space left on device.\n"
    )


@pytest.mark.parametrize("arguments", [["--help"], ["list"], ["bound", "--json"]])
def test_a_pipe_that_is_closed_is_one_sentence(arguments):
    reading, writing = os.pipe()
    os.close(reading)
    ended = run(*arguments, stdout=writing)
    os.close(writing)
    assert ended.returncode == 3
    assert ended.stderr == b"Error: Standard output cannot be used: Broken pipe.\n"


# --------------------------------------------------------------------------- interrupts


@pytest.fixture(scope="module")
def compiled():
    """Compile the games that are interrupted: from an empty cache that takes most of the time."""
    for options in ([], ["--ranker", "fixed"]):
        ended = run("play", "--rounds", "30", "--runs", "2", *options)
        assert ended.returncode == 0, ended.stderr


def interrupted(arguments, *, after, again=()):
    """Return how a command ends that is interrupted, once or several times."""
    script = (  # a process in the background of a shell would ignore interrupts
        "import os, signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler); "
        "os.execv(sys.executable, [sys.executable, '-m', 'keyhole', *sys.argv[1:]])"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script, *arguments], env=environment(), start_new_session=True,
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
    ) as process:  # fmt: skip
        for pause in (after, *again):
            time.sleep(pause)
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGINT)
        try:
            errors = process.communicate(timeout=30)[1]
        except subprocess.TimeoutExpired:
            process.kill()
            raise
    return process.returncode, errors.decode()


def test_an_interrupt_within_code_that_is_run_from_a_string_has_the_exit_code_of_any(tmp_path):
    """As where a named tuple is made: Python would die of the signal after the sentence."""
    (tmp_path / "interrupted.py").write_text(
        "import keyhole.__main__ as main\n"
        "main._run = lambda: exec('raise KeyboardInterrupt')\n"
        "main.main()\n"
    )
    command = [sys.executable, "-m", "interrupted"]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stderr) == (130, "Interrupted; nothing was written.\n")


@pytest.mark.parametrize("after", [0.25, 0.75])
def test_an_interrupt_while_modules_are_imported_is_one_sentence(after):
    code, errors = interrupted(["play", "--rounds", "100000000000000"], after=after)
    assert (code, errors) == (130, "Interrupted; nothing was written.\n")


@pytest.mark.usefixtures("compiled")
def test_a_game_without_end_ends_when_interrupted():
    endless = ["play", "--rounds", "100000000000000", "--ranker", "fixed"]
    code, errors = interrupted(endless, after=4.0)
    assert (code, errors) == (130, "Interrupted; nothing was written.\n")


@pytest.mark.usefixtures("compiled")
@pytest.mark.parametrize("again", [(0.0, 0.0), (0.001, 0.01, 0.1)])
def test_more_interrupts_change_nothing(again):
    code, errors = interrupted(
        ["play", "--rounds", "100000000000000", "--runs", "2"], after=3.0, again=again
    )
    assert (code, errors) == (130, "Interrupted; nothing was written.\n")


@pytest.mark.parametrize("after", [1.5, 3.0])
def test_the_processes_of_an_atlas_say_nothing_of_interrupts(tmp_path, after):
    wide = ["atlas", "--out", str(tmp_path), "--items", "2-5"]
    code, errors = interrupted(wide, after=after)
    assert code == 130
    assert errors.count("\n") == 1
    assert errors.startswith("Interrupted; ")
