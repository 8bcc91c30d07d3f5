"""How the command line ends: exit codes, and one sentence for whatever went wrong."""

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
"""The environment variable that shows where in the code an error arose, if it is set."""

INTERRUPTED = "Interrupted; nothing was written."


LOST_INTERRUPTS: list[type[BaseException]] = []
"""Interrupts that Python has dropped, in a callback of the compiler above all."""


class ExitCode(IntEnum):
    """What the exit code of a command says."""

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
    ExitCode.FAULT: "a fault of Keyhole itself",
    ExitCode.INTERRUPTED: "interrupted",
}
"""The exit codes in words; the page on the command line has more of them."""


class VerdictIsNo(KeyholeError):
    """What was asked about does not hold, such as a certificate: a verdict, and no mistake."""


def _ending_of(error: BaseException) -> tuple[ExitCode, str]:
    """Return the exit code of an error, and a sentence about it."""
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
        f"This is a fault of Keyhole, not of what was given: {what}; {TRACEBACK}=1 shows where.",
    )


def end_with(
    error: BaseException,
    *,
    interrupted: str = INTERRUPTED,
    options: Mapping[str, str] = MappingProxyType({}),
) -> SystemExit:
    """Say in one sentence what went wrong, and return what ends the process.

    ``interrupted`` is said of an interrupt; ``options`` says by which option a parameter is given
    that a sentence may name.
    """
    with _deaf_to_interrupts(), suppress(OSError, ValueError):  # there may be nobody to tell
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
    """Let no interrupt come between an ending and its sentence."""
    try:
        before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    except ValueError:  # only the main thread hears of interrupts, and may say so
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _in_options(sentence: str, options: Mapping[str, str]) -> str:
    """Return a sentence that calls parameters what the command line calls them.

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
    """Say of a library that is not installed which extra of the package brings it."""
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
    """End the process as the exit codes say, with one sentence, whatever the block raises.

    Such blocks may be nested: what one has said, the others do not say again.
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
            raise end_with(pipe) from None  # rich ends the process by itself then, with 1
        raise
    except BaseException as error:
        before = error.__context__
        if isinstance(error, KeyboardInterrupt) and isinstance(before, SystemExit):
            raise before from None  # another interrupt, while the first one was dealt with
        raise end_with(error, interrupted=interrupted, options=options) from None
