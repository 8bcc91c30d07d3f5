"""Exit codes, and errors as one sentence."""

import os
import re
import signal
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from enum import IntEnum
from types import MappingProxyType

from keyhole.base.errors import CannotWrite, KeyholeError, LibraryMissing
from keyhole.cli.standard_streams import flush_streams, fold_middle, prepare_streams, tell
from keyhole.service.errors import StoreFailed, StoreFull

TRACEBACK = "KEYHOLE_TRACEBACK"
"""The environment variable that enables tracebacks."""

INTERRUPTED = "Interrupted; nothing was written."


LOST_INTERRUPTS: list[type[BaseException]] = []
"""Interrupts that Python dropped, mostly in callbacks of Numba."""


class ExitCode(IntEnum):
    """The exit code of a command."""

    DONE = 0
    NO = 1
    BAD_INPUT = 2
    MACHINE_FAILED = 3
    FAULT = 4
    INTERRUPTED = 130


MEANINGS = {
    ExitCode.DONE: "done",
    ExitCode.NO: "the verdict is no",
    ExitCode.BAD_INPUT: "the input cannot be used",
    ExitCode.MACHINE_FAILED: "a file or standard output cannot be written, or memory is out",
    ExitCode.FAULT: "a bug in Keyhole",
    ExitCode.INTERRUPTED: "interrupted",
}
"""Short descriptions of the exit codes; docs/command-line.md has longer ones."""


class VerdictIsNo(KeyholeError):
    """A negative verdict, such as an invalid certificate, which is no error."""


def _ending_of(error: BaseException) -> tuple[ExitCode, str]:
    """Return the exit code and the message of an error."""
    if isinstance(error, VerdictIsNo):
        return ExitCode.NO, str(error)
    if isinstance(error, CannotWrite | StoreFull | StoreFailed):
        return ExitCode.MACHINE_FAILED, str(error)
    if isinstance(error, KeyholeError):
        return ExitCode.BAD_INPUT, str(error)
    if isinstance(error, MemoryError):
        return ExitCode.MACHINE_FAILED, "There is not enough memory for this."
    if isinstance(error, OSError):
        why = error.strerror or str(error) or type(error).__name__
        named = error.filename if isinstance(error.filename, str | bytes) else None
        where = "Standard output" if named is None else os.fsdecode(named)
        return ExitCode.MACHINE_FAILED, f"{where} cannot be used: {why}."
    what = f"{type(error).__name__}: {error}".removesuffix(": ").rstrip(".")
    return (
        ExitCode.FAULT,
        f"This is a bug in Keyhole, not in the input: {what}; {TRACEBACK}=1 shows where.",
    )


def end_with(
    error: BaseException,
    *,
    interrupted: str = INTERRUPTED,
    options: Mapping[str, str] = MappingProxyType({}),
) -> SystemExit:
    """Print an error as one sentence, and return the exception that exits the process.

    ``interrupted`` is printed on Ctrl-C; ``options`` maps parameters in messages to options.
    """
    with _deaf_to_interrupts(), suppress(OSError, ValueError):  # standard error may be closed
        if os.environ.get(TRACEBACK):
            tell("".join(traceback.format_exception(error)))
        if isinstance(error, KeyboardInterrupt) or LOST_INTERRUPTS:
            tell(interrupted)
            return SystemExit(int(ExitCode.INTERRUPTED))
        code, sentence = _ending_of(error)
        in_a_line = " ".join(_in_options(sentence, options).splitlines())
        tell(fold_middle(in_a_line), first="Error:")
        return SystemExit(int(code))
    return SystemExit(int(_ending_of(error)[0]))


@contextmanager
def _deaf_to_interrupts() -> Iterator[None]:
    """Ignore interrupts while an error is printed."""
    try:
        before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    except ValueError:  # not in the main thread
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _in_options(sentence: str, options: Mapping[str, str]) -> str:
    """Replace parameters in a sentence by their command-line options.

    Examples
    --------
    >>> _in_options("`eps` of SmoothDCG must be positive.", {"eps": "--epsilon"})
    '--epsilon must be positive.'
    >>> _in_options("missing='drop' leaves them out.", {"missing": "--missing"})
    '--missing drop leaves them out.'
    """
    for name, option in options.items():
        sentence = re.sub(rf"`{name}`( of [A-Z]\w*)?", option, sentence)
        sentence = re.sub(rf"\b{name}='(\w+)'", rf"{option} \1", sentence)
    return sentence


@contextmanager
def needing(what: str, extra: str) -> Iterator[None]:
    """Raise an error that names the extra of a missing library."""
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name and error.name.startswith("keyhole"):
            raise
        raise LibraryMissing(f"{what} needs {error.name}", extra) from None


@contextmanager
def one_sentence(
    interrupted: str = INTERRUPTED, options: Mapping[str, str] = MappingProxyType({})
) -> Iterator[None]:
    """Exit with one sentence and the right exit code on any exception of the block.

    Blocks may be nested: an error is printed only once.
    """
    prepare_streams()
    try:
        try:
            yield
        finally:
            flush_streams()
    except SystemExit as ended:
        pipe = ended.__context__
        if isinstance(pipe, BrokenPipeError) and ended.code != ExitCode.MACHINE_FAILED:
            raise end_with(pipe) from None  # rich would exit with 1
        raise
    except BaseException as error:
        before = error.__context__
        if isinstance(error, KeyboardInterrupt) and isinstance(before, SystemExit):
            raise before from None  # a second interrupt, while handling the first
        raise end_with(error, interrupted=interrupted, options=options) from None
