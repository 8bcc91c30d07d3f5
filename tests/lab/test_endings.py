"""Exit codes by what went wrong, and keys that end by themselves."""

import io
import json
import re
import signal
import sys
import time

import pytest

from keyhole.__main__ import main
from keyhole.base.errors import (
    CannotWrite,
    FeedbackTooSmall,
    InvalidInput,
    KeyholeError,
    LibraryMissing,
    UnknownName,
)
from keyhole.cli import keys, standard_streams
from keyhole.cli.exit_codes import MEANINGS, ExitCode, VerdictIsNo, _ending_of, one_sentence
from keyhole.service.errors import StoreDamaged, StoreFailed, StoreFull
from tests.lab.running import run, said

FAULT = "This is a bug in Keyhole, not in the input: "


@pytest.mark.parametrize(
    ("error", "code", "sentence"),
    [
        (VerdictIsNo("It does not hold."), 1, "It does not hold."),
        (InvalidInput("It must be 1."), 2, "It must be 1."),
        (UnknownName("It must be a name."), 2, "It must be a name."),
        (FeedbackTooSmall("It needs more."), 2, "It needs more."),
        (LibraryMissing("This needs a", "all"), 2, None),
        (KeyholeError("Something."), 2, "Something."),
        (StoreDamaged("It is damaged."), 2, "It is damaged."),
        (CannotWrite("It cannot be written."), 3, "It cannot be written."),
        (StoreFull("It is full."), 3, "It is full."),
        (StoreFailed("It has failed."), 3, "It has failed."),
        (MemoryError(), 3, "There is not enough memory for this."),
        (OSError(28, "No space left", "a.txt"), 3, "a.txt cannot be used: No space left."),
        (BrokenPipeError(32, "Broken pipe"), 3, "Standard output cannot be used: Broken pipe."),
        (ValueError("It is odd."), 4, FAULT + "ValueError: It is odd; KEYHOLE_TRACEBACK=1 shows "
         "where."),
        (AssertionError(), 4, FAULT + "AssertionError; KEYHOLE_TRACEBACK=1 shows where."),
    ],
)  # fmt: skip
def test_every_error_has_its_exit_code(error, code, sentence, capfd):
    found = _ending_of(error)
    assert found[0] == code
    assert found[1] == sentence or sentence is None
    with pytest.raises(SystemExit) as ended, one_sentence():
        raise error
    assert ended.value.code == code
    told = " ".join(capfd.readouterr().err.split())
    assert told == f"Error: {found[1]}"


def test_an_interrupt_has_its_own_and_nothing_wrong_none(capfd):
    with pytest.raises(SystemExit) as ended, one_sentence("Interrupted here."):
        raise KeyboardInterrupt
    assert ended.value.code == 130
    assert "Interrupted here." in capfd.readouterr().err
    with one_sentence():
        pass
    assert [int(code) for code in ExitCode] == [0, 1, 2, 3, 4, 130]
    assert list(MEANINGS) == list(ExitCode)


def test_an_interrupt_before_there_is_anything_to_say_so_ends_as_any_other(monkeypatch, capsys):
    def interrupted():
        raise KeyboardInterrupt

    monkeypatch.setattr("keyhole.__main__._run", interrupted)
    monkeypatch.setattr(sys, "unraisablehook", sys.unraisablehook)
    heard = signal.getsignal(signal.SIGINT)
    try:
        with pytest.raises(SystemExit) as ended:
            main()
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN  # all that is left is to end
    finally:
        signal.signal(signal.SIGINT, heard)
    assert ended.value.code == 130
    assert capsys.readouterr().err == "Interrupted; nothing was written.\n"


@pytest.mark.parametrize(("error", "code"), [(StoreFailed, 3), (StoreFull, 3), (StoreDamaged, 2)])
def test_a_command_whose_store_fails_ends_as_the_store_did(error, code, monkeypatch, tmp_path):
    """A disk that fails is the machine's fault; the same command on one that does not is done."""
    given = ["keys", "list", "--db", tmp_path / "service.db"]
    run("keys", "create", "--scope", "rank", "--ranker", "shop", "--db", tmp_path / "service.db")

    def fails(_):
        raise error("The log is gone.")

    with monkeypatch.context() as patched:
        patched.setattr(keys, "_open", fails)
        assert said(run(*given, code=code)) == "Error: The log is gone."
    assert "Access keys" in run(*given).stdout


@pytest.mark.parametrize("days", [None, 1, 30, 36_500])
def test_a_key_ends_after_its_days(days, tmp_path):
    path = tmp_path / "service.db"
    given = [] if days is None else ["--expires-days", days]
    began = int(time.time() * 1000)
    text = run(
        "keys", "create", "--db", path, "--scope", "rank", "--scope", "read", "--ranker", "shop",
        "--ranker", "news", *given,
    ).stdout.strip()  # fmt: skip
    (key,) = json.loads(run("keys", "list", "--db", path, "--json").stdout)
    assert began <= key["created_at"] <= int(time.time() * 1000)
    lasts = None if days is None else key["expires_at"] - key["created_at"]
    assert lasts == (None if days is None else days * 24 * 60 * 60 * 1000)
    assert key["prefix"] == text.split("_")[1]
    assert (key["scopes"], key["rankers"]) == (["rank", "read"], ["news", "shop"])
    table = run("keys", "list", "--db", path).stdout

    def date(milliseconds):
        return time.strftime("%Y-%m-%d", time.gmtime(milliseconds / 1000))

    ends = "never" if days is None else date(key["expires_at"])
    cells = re.split(r"\s*│\s*", next(row for row in table.splitlines() if "rank," in row))
    assert cells[1:-1] == [
        key["prefix"], "-", "rank, read", "news, shop", date(key["created_at"]), ends, "never"
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("wrong", "mended"),
    [
        (["--expires-days", 0], ["--expires-days", 1]),
        (["--expires-days", 36_501], ["--expires-days", 36_500]),
        (["--scope", "write"], ["--scope", "admin"]),
    ],
)
def test_a_key_that_cannot_be_can_be_when_it_is_mended(wrong, mended, tmp_path):
    given = ["keys", "create", "--db", tmp_path / "a.db", "--scope", "rank", "--ranker", "*"]
    assert said(run(*given, *wrong, code=2)).startswith("Error: The ")
    assert run(*given, *mended).stdout.startswith("kh_")


@pytest.mark.parametrize(
    ("is_terminal", "around", "is_red"),
    [
        (True, {"TERM": "xterm"}, True),
        (True, {"TERM": "xterm", "NO_COLOR": ""}, True),
        (True, {"TERM": "xterm", "NO_COLOR": "1"}, False),
        (True, {"TERM": "dumb"}, False),
        (True, {"TERM": "unknown"}, False),
        (True, {}, False),
        (False, {"TERM": "xterm"}, False),
    ],
)
def test_what_comes_first_is_red_where_there_are_colours(is_terminal, around, is_red, monkeypatch):
    for name in ("TERM", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    for name, value in around.items():
        monkeypatch.setenv(name, value)

    class Stream(io.StringIO):
        def isatty(self):
            return is_terminal

    stream = Stream()
    monkeypatch.setattr(sys, "stderr", stream)
    standard_streams.tell("must be 1.", "Error:")
    first = "\x1b[1;31mError:\x1b[0m" if is_red else "Error:"
    assert stream.getvalue() == f"{first} must be 1.\n"
