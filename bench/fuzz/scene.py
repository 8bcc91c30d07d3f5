"""What happens in a case, watched: calls, commands, states and files, and what may not be so.

A :class:`Scene` makes calls for an attack and holds them to what every call promises: it works,
or it is refused by a :class:`~keyhole.base.errors.KeyholeError` of one sentence and leaves
everything as it was; no state ever holds a number that is not finite; no file is left half-written.
"""

import hashlib
import io
import json
import os
import shlex
import signal
import sys
import traceback
import zipfile
import zlib
from collections.abc import Callable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

import keyhole.__main__
from keyhole.base.errors import KeyholeError
from keyhole.contracts.rankers import Ranker

T = TypeVar("T")

GOOD, BAD, ANY = "good", "bad", "any"
"""Labels of a call: it must work, it must be refused, or it may do either."""

WORKED = (0, 1)
"""Exit codes of commands that have done their work: 1 is a verdict that says no."""
REFUSED = (2, 3)
_OF_TYPER = ("Usage:", "─ Error ─", "- Error -")
"""How lines begin that cannot be parsed: Typer draws a box around its sentence."""

_PACKAGE = Path(keyhole.__main__.__file__).parent


@dataclass(frozen=True)
class Attack:
    """One case: what is tried, in words, and how."""

    what: str
    act: "Callable[[Scene], None]"


@dataclass(frozen=True)
class Failure:
    """A promise that was not kept; failures of one class most likely have one cause."""

    kind: str
    detail: str


def where_raised(error: BaseException) -> str:
    """Return the last place within the package that an exception passed."""
    place = "outside of the package"
    for frame, _ in traceback.walk_tb(error.__traceback__):
        path = Path(frame.f_code.co_filename)
        if path.is_relative_to(_PACKAGE):
            place = f"{path.relative_to(_PACKAGE).as_posix()}:{frame.f_code.co_name}"
    return place


def fingerprint(ranker: Ranker) -> str:
    """Return a digest of all that a ranker has learnt."""
    digest = hashlib.sha256(str(ranker.next_round).encode())
    for name, array in ranker.state._asdict().items():
        digest.update(name.encode() + np.asarray(array).tobytes())
    return digest.hexdigest()


def non_finite(ranker: Ranker) -> list[str]:
    """Return the names of the state's arrays that hold a NaN or an infinity."""
    state = ranker.state._asdict().items()
    return [n for n, a in state if a.dtype.kind == "f" and not bool(np.isfinite(a).all())]


class Scene:
    """Where an attack is made: a folder of its own, and all that is watched.

    Parameters
    ----------
    folder
        An empty folder, which is also the current one during the attack.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.failures: list[Failure] = []
        self.told: list[str] = []
        """What was tried and what came of it, for replays."""
        self.n_worked = self.n_refused = 0
        self._watched: dict[str, Ranker] = {}
        self._inputs: dict[str, bytes] = {}

    # ------------------------------------------------------------------- what is watched

    def watch(self, ranker: Ranker, name: str = "") -> Ranker:
        """Keep an eye on the state of a ranker."""
        self._watched[name or type(ranker).__name__] = ranker
        return ranker

    def write(self, name: str, content: bytes) -> Path:
        """Write a file for the attack to use."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        self._inputs[name] = content
        return path

    def fail(self, kind: str, detail: str = "") -> None:
        """Note a promise that was not kept."""
        self.failures.append(Failure(kind, detail))

    def note(self, text: str) -> None:
        """Tell replays what happens."""
        self.told.append(text)

    # ------------------------------------------------------------------- calls

    def attempt(
        self, what: str, call: Callable[[], T], label: str = ANY, kind: str = ""
    ) -> T | None:
        """Call the library and hold it to its promises; return what it gave, if anything.

        ``kind`` names what is wrong with the input, for the class of a failure.
        """
        before = {name: fingerprint(ranker) for name, ranker in self._watched.items()}
        result, kind = None, kind or what
        try:
            with np.errstate(all="ignore"):
                result = call()
        except KeyholeError as error:
            self._refused(what, str(error), label, kind)
            for name, ranker in self._watched.items():
                if fingerprint(ranker) != before[name]:
                    self.fail(f"a refused call changed the state of {name}: {kind}", str(error))
        except Exception as error:  # whatever else comes out of the library is a failure
            trace = "".join(traceback.format_exception(error))
            self.fail(f"{type(error).__name__} at {where_raised(error)}", trace)
            self.note(f"{what}: {type(error).__name__}")
        else:
            self.n_worked += 1
            self.note(f"{what}: worked")
            if label == BAD:
                self.fail(f"bad input was taken: {kind}", f"{what} gave {result!r:.300}")
        self._check_states(kind)
        return result

    def _refused(self, what: str, sentence: str, label: str, kind: str) -> None:
        self.n_refused += 1
        self.note(f"{what}: refused, {sentence[:300]}")
        if not sentence.strip() or "\n" in sentence.strip():
            self.fail(f"a refusal is not one sentence: {kind}", sentence)
        if label == GOOD:
            self.fail(f"good input was refused: {kind}", sentence)

    def _check_states(self, kind: str) -> None:
        for name, ranker in self._watched.items():
            if broken := non_finite(ranker):
                self.fail(f"state of {name} is not finite: {kind}", f"in {', '.join(broken)}")
        self._watched = {n: r for n, r in self._watched.items() if not non_finite(r)}

    # ------------------------------------------------------------------- commands

    def command(self, arguments: Sequence[str], label: str = ANY, kind: str = "") -> str | None:
        """Run the command line in this process; return what it printed if it has worked."""
        what = shlex.join(["keyhole", *arguments])
        with self._streams(arguments) as (out, err):
            code: Any
            heard, hook = signal.getsignal(signal.SIGINT), sys.unraisablehook
            try:
                keyhole.__main__.main()
                code = 0
            except SystemExit as stop:
                code = stop.code
            except BaseException as error:
                trace = "".join(traceback.format_exception(error))
                self.fail(f"{type(error).__name__} at {where_raised(error)}", f"{what}\n{trace}")
                return None
            finally:  # a command ends deaf to interrupts, and this process goes on
                signal.signal(signal.SIGINT, heard)
                sys.unraisablehook = hook
            printed, told = _content(out), _content(err)
        self.judge_command(what, code, printed, told, label, kind)
        return printed if code in WORKED else None

    def judge_command(
        self, what: str, code: Any, printed: str | None, told: str, label: str = ANY, kind: str = ""
    ) -> None:
        """Hold a command that has ended to its promises; ``printed`` is None if nobody read it."""
        kind = kind or " ".join(what.split(" ")[1:2])
        code = 0 if code is None else 1 if isinstance(code, str) else code
        self.note(f"{what}: exit code {code}\n{told[-2000:]}")
        if "Traceback (most recent call last)" in told + (printed or ""):
            self.fail(f"a traceback is printed: {kind}", f"{what}\n{told}")
        if code in WORKED:
            self.n_worked += 1
            if label == BAD:
                self.fail(
                    f"bad input was taken: {kind}", f"{what} exited with {code}\n{printed!s:.300}"
                )
            asks = "--json" in what.split(" ") and "--help" not in what
            if asks and printed is not None and (printed or code == 0):
                self._check_json(what, printed, kind)
        elif code in REFUSED:
            self.n_refused += 1
            if label == GOOD:
                self.fail(f"good input was refused: {kind}", f"{what}\n{told}")
            sentences = [line for line in told.splitlines() if line.startswith("Error: ")]
            if len(sentences) != 1 and not any(
                word in told + (printed or "") for word in _OF_TYPER
            ):
                self.fail(f"a refusal is not one sentence: {kind}", f"{what}\n{told}")
        else:
            self.fail(f"exit code {code}: {kind}", f"{what}\n{told}")

    def _check_json(self, what: str, printed: str, kind: str) -> None:
        def no_constant(text: str) -> None:
            raise ValueError(f"{text} is no JSON")

        try:
            json.loads(printed, parse_constant=no_constant)
        except ValueError as error:
            self.fail(f"what is printed is no JSON: {kind}", f"{what}\n{error}\n{printed:.300}")

    @contextmanager
    def _streams(self, arguments: Sequence[str]) -> Any:
        """Give the command line streams and arguments of its own."""
        kept = sys.stdin, sys.stdout, sys.stderr, sys.argv, list(sys.path)
        sys.stdin = io.TextIOWrapper(io.BytesIO())
        out = sys.stdout = io.TextIOWrapper(io.BytesIO(), "utf-8", "backslashreplace")
        err = sys.stderr = io.TextIOWrapper(io.BytesIO(), "utf-8", "backslashreplace")
        sys.argv = ["keyhole", *arguments]
        try:
            yield out, err
        finally:
            sys.stdin, sys.stdout, sys.stderr, sys.argv, sys.path = kept

    # ------------------------------------------------------------------- files

    def check_files(self) -> None:
        """Note every file in the folder that is half-written, or that nobody asked for."""
        for path in sorted(self.folder.rglob("*")):
            name = path.relative_to(self.folder).as_posix()
            if path.is_symlink() or not path.is_file():
                continue
            if any(part.startswith(".") for part in Path(name).parts):
                self.fail("a temporary file is left", name)
            elif self._inputs.get(name) != (content := path.read_bytes()) and (
                why := what_is_broken(path.name, content)
            ):
                self.fail(f"a file is half-written: {path.suffix}", f"{name}: {why}")


def _content(stream: Any) -> str:
    """Return what was printed to a stream in memory."""
    stream.flush()
    return stream.buffer.getvalue().decode("utf-8", "replace")


def what_is_broken(name: str, content: bytes) -> str | None:
    """Return why a file that a command has written is none of its kind, if it is not."""
    try:
        reader = _BY_BEGINNING.get(content[:1], _READERS.get(Path(name).suffix))
        if not content:
            return "it is empty"
        return reader(content) if reader else None
    except (ValueError, KeyError, OSError, EOFError, zlib.error, zipfile.BadZipFile) as error:
        return f"{type(error).__name__}: {error}"


def _arrays(content: bytes) -> str | None:
    with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
        _ = [arrays[name] for name in arrays.files]
    return None


def _json(content: bytes) -> str | None:
    json.loads(content)
    return None


def _ends_with(end: bytes) -> Callable[[bytes], str | None]:
    return lambda content: None if content.rstrip(b"\n").endswith(end) else f"no {end!r} at its end"


_READERS: dict[str, Callable[[bytes], str | None]] = {
    ".npz": _arrays,
    ".json": _json,
    ".png": _ends_with(b"IEND\xaeB`\x82"),
    ".svg": _ends_with(b"</svg>"),
    ".csv": lambda content: None if content.endswith(b"\n") else "its last line does not end",
}


_BY_BEGINNING = {b"P": _arrays, b"{": _json, b"[": _json}
"""Files that say what they are, whatever they are called."""


def empty(folder: Path) -> None:
    """Remove all that is in a folder."""
    for path in sorted(folder.rglob("*"), reverse=True):
        if path.is_dir() and not path.is_symlink():
            path.rmdir()
        else:
            os.unlink(path)
