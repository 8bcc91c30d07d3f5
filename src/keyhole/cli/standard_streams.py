"""Handles standard output and error that are closed, full, narrow or ASCII.

It imports only the standard library, so that errors can be printed at any time.
"""

import codecs
import errno
import io
import os
import sys
import unicodedata
from contextlib import suppress
from typing import Any

_STAND_INS = {
    "±": "+-", "…": "...", "≤": "<=", "≥": ">=", "→": "->", "∞": "inf", "·": "*", "•": "*",
    "×": "x", "–": "-", "—": "-", "−": "-", "‘": "'", "’": "'", "“": '"', "”": '"',  # noqa: RUF001
    "│": "|", "─": "-", "━": "-", "╸": "-", "╺": "-", "╭": "+", "╮": "+", "╰": "+", "╯": "+",
}  # fmt: skip
"""Replacements of characters that an encoding lacks."""

_HANDLER = "keyhole-stand-ins"
_NARROWEST = 40
_DIGITS = 7
_LONGEST_SENTENCE = 2000


def _stand_in(character: str) -> str:
    if character in _STAND_INS:
        return _STAND_INS[character]
    parts = unicodedata.normalize("NFKD", character).encode("ascii", "ignore").decode()
    return parts or "?"


def _replace(error: UnicodeError) -> tuple[str, int]:
    """Handle an encoding error by replacing characters."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return "".join(map(_stand_in, error.object[error.start : error.end])), error.end


codecs.register_error(_HANDLER, _replace)


class _Closed(io.TextIOBase):
    """Standard output that was closed when the process started: every write fails."""

    encoding = "utf-8"

    def writable(self) -> bool:
        return True

    def write(self, text: str, /) -> int:
        raise OSError(errno.EBADF, "standard output is closed")


def prepare_streams() -> None:
    """Make standard output and error accept any character, and limit the help width."""
    for name in ("COLUMNS", "TERMINAL_WIDTH"):
        if name in os.environ:
            width = _width(os.environ.pop(name))
            if width:  # default: the width of the terminal, or 80
                os.environ[name] = str(width)
    if sys.stdout is None:
        sys.stdout = _Closed()
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 - it outlives this
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            with suppress(OSError, ValueError):  # a closed stream raises on write
                stream.reconfigure(errors=_HANDLER)


def _width(text: str) -> int:
    """Parse a number of columns, at least 40; 0 if the text is no number.

    Examples
    --------
    >>> [_width(text) for text in ("80", "20", "0", "wide", "\u00b2", "9" * 5000)]
    [80, 40, 0, 0, 0, 0]
    """
    is_number = text.isascii() and text.isdigit() and len(text) < _DIGITS
    return max(int(text), _NARROWEST) if is_number and int(text) else 0


def flush_streams() -> None:
    """Flush the streams; on failure, discard their buffers and raise."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            _forget(stream)
            if stream is sys.stdout:
                raise


def _forget(stream: Any) -> None:
    """Discard the buffer of a stream: Python would fail again at exit."""
    with suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)


def fold_middle(sentence: str, longest: int = _LONGEST_SENTENCE) -> str:
    """Return a sentence with its middle cut out if it is too long, for instance by a path."""
    half = longest // 2
    return sentence if len(sentence) <= longest else f"{sentence[:half]} … {sentence[-half:]}"


def tell(text: str, first: str = "") -> None:
    """Write a line to standard error; ``first`` is red on colour terminals."""
    is_plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") in (None, "dumb", "unknown")
    shown = first if is_plain or not sys.stderr.isatty() else f"\x1b[1;31m{first}\x1b[0m"
    sys.stderr.write(f"{shown} {text}\n" if first else f"{text}\n")
    sys.stderr.flush()


def can_hold(text: str, encoding: str | None = None) -> bool:
    """Return whether an encoding, by default that of standard output, has every character."""
    try:
        text.encode(encoding or getattr(sys.stdout, "encoding", None) or "utf-8")
    except UnicodeEncodeError:
        return False
    return True
