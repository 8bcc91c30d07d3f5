"""LETOR text to arrays, chunk by chunk on all cores.

Chunks end at line ends and know their rows beforehand, so that it makes no difference how many
there are and which thread reads which.
"""

import math
import re
from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from keyhole.base.errors import InvalidInput
from keyhole.base.limits import VARIABLE, check_memory
from keyhole.data.letor import kernels
from keyhole.data.letor.files import quoted

CHUNK_BYTES = 2**20
_SLOW_NUMBERS = 1024
_MAX_FEATURES = 2**24
_WORD = 8
# The smallest and largest numbers that keep all their digits. Half a step above the largest
# float32 is the first number that is rounded to infinity.
_LIMITS = {
    np.float64: (0.0, float(np.finfo(np.float64).max)),
    np.float32: (2.0**-126 - 2.0**-150, math.nextafter(2.0**128 - 2.0**103, 0.0)),
}


@dataclass(frozen=True)
class Options:
    """How files are read."""

    n_features: int | None
    first_index: int | None
    dtype: Any
    max_grade: float | None
    missing_relevant: str
    normalise: str | None

    @property
    def parsed(self) -> Any:
        """The type that values are parsed to: they are scaled before they are rounded."""
        return self.dtype if self.normalise is None else np.float64


class Chunk(NamedTuple):
    """A part of a text: ``text[begin:end]``, which is ``shift`` further on in the whole."""

    text: Any
    begin: int
    end: int
    shift: int


class Scan(NamedTuple):
    """What the first pass over a text finds."""

    chunks: list[Chunk]
    n_rows: list[int]
    lowest: int
    highest: int
    where: int


class Rows(NamedTuple):
    """Where the documents of a text go, and where in the text they are."""

    features: Any
    relevance: Any
    line_at: Any
    qid_at: Any
    qid_size: Any


@dataclass
class Place:
    """A text: its file and the number of lines before it."""

    path: Path
    text: Any
    n_lines: int = 0

    def error(self, position: int, sentence: str) -> InvalidInput:
        """Return an error that names the line of a position."""
        line = self.n_lines + kernels.count_lines(self.text, position) + 1
        return InvalidInput(f"{self.path}, line {line}: {sentence}")


def cut(text: Any) -> list[Chunk]:
    """Cut a text at line ends; behind every chunk there is a word's worth of memory."""
    chunks, begin, size = [], 0, text.shape[0]
    whole = kernels.line_start(text, max(size - _WORD, 0))
    while begin < whole:
        end = kernels.line_end(text, min(begin + CHUNK_BYTES, whole) - 1)
        chunks.append(Chunk(text, begin, end, 0))
        begin = end
    if whole < size:
        last = np.frombuffer(text[whole:].tobytes() + b"\n" + bytes(_WORD), np.uint8)
        chunks.append(Chunk(last, 0, last.shape[0] - _WORD, whole))
    return chunks


def _scan_chunk(chunk: Chunk) -> tuple[int, int, int, int]:
    n_rows, lowest, highest, where = kernels.scan_chunk(chunk.text, chunk.begin, chunk.end)
    return n_rows, lowest, highest, where + chunk.shift


def scan(text: Any, run: Any) -> Scan:
    """Count the documents of a text and find the span of its indices."""
    chunks = cut(text)
    found = run(_scan_chunk, chunks)
    _, _, highest, where = max(found, key=lambda f: f[2], default=(0, 0, -1, -1))
    lowest = min((f[1] for f in found), default=kernels.MAX_INDEX)
    return Scan(chunks, [f[0] for f in found], lowest, highest, where)


def new_rows(n_rows: int, n_features: int, dtype: Any, path: Path) -> Rows:
    """Allocate the rows of some documents; features start as zeros."""
    try:
        check_memory(float(n_rows) * n_features * np.dtype(dtype).itemsize, str(path))
        features = np.zeros((n_rows, n_features), dtype)
    except (MemoryError, ValueError):
        raise InvalidInput(
            f"{path} must fit into memory as a table of {n_rows} documents by {n_features} "
            f"features; iterate_letor reads it in blocks, {VARIABLE} raises the limit."
        ) from None
    integers = (np.empty(n_rows, np.int64) for _ in range(3))
    return Rows(features, np.empty(n_rows), *integers)


def check_width(place: Place, scanned: Scan) -> None:
    """Raise if an index is so high that it must be a mistake."""
    if scanned.highest > _MAX_FEATURES:
        raise place.error(
            scanned.where,
            f"a feature index must be at most {_MAX_FEATURES}, got "
            f"{quoted(_token(place.text, scanned.where))}.",
        )


def columns(options: Options, lowest: int, highest: int) -> tuple[int, int]:
    """Return the first index and the number of features."""
    first = options.first_index
    if first is None:
        first = 0 if lowest == 0 else 1
    return first, options.n_features or max(highest + 1 - first, 0)


def fill(place: Place, scanned: Scan, rows: Rows, first: int, options: Options, run: Any) -> None:
    """Read all documents of a text into their rows, or raise the first error of the text."""
    begins = list(accumulate(scanned.n_rows, initial=0))[:-1]
    read = partial(_fill_chunk, rows=rows, first=first, options=options)
    for error in run(read, list(zip(scanned.chunks, begins, strict=True))):
        if error is not None:
            raise place.error(*error)
    if rows.features.size == 0 and len(rows.relevance):
        raise InvalidInput(f"{place.path} must have at least one feature.")


def _fill_chunk(
    part: tuple[Chunk, int], rows: Rows, first: int, options: Options
) -> tuple[int, str] | None:
    """Read one chunk; return its first error, as position and sentence."""
    chunk, row = part
    max_grade = math.inf if options.max_grade is None else options.max_grade
    smallest, largest = limits = _LIMITS[options.parsed]
    slow = np.empty((max(_SLOW_NUMBERS, rows.features.shape[1] + 2), 4), np.int64)
    p, ended = chunk.begin, kernels.FULL
    while ended == kernels.FULL:
        ended, where, p, row, n_slow = kernels.parse_chunk(
            chunk.text,
            p,
            chunk.end,
            chunk.shift,
            row,
            first,
            options.n_features is not None,
            max_grade,
            limits,
            *rows,
            slow,
        )
        for document, column, begin, end in slow[:n_slow].tolist():
            token = chunk.text[begin:end].tobytes()
            value = _number(token)
            if column == kernels.LABEL_COLUMN:
                if not 0 <= value <= max_grade or math.isinf(value):
                    return begin + chunk.shift, _label_sentence(token, options)
                rows.relevance[document] = value
            elif not abs(value) <= largest or (abs(value) < smallest and _is_not_zero(token)):
                return begin + chunk.shift, _value_sentence(token, options)
            elif column < rows.features.shape[1]:
                rows.features[document, column] = value
    if ended == kernels.FINE:
        return None
    return where + chunk.shift, _sentence(ended, _token(chunk.text, where), first, options)


def _number(token: bytes) -> float:
    """Return what Python reads, NaN if it is no number."""
    try:
        return math.nan if b"_" in token or min(token) <= ord(" ") else float(token)
    except ValueError:
        return math.nan


def _is_not_zero(token: bytes) -> bool:
    """Return whether the text of a number is not that of 0, which it may yet be rounded to."""
    return any(digit in b"123456789" for digit in token.lower().split(b"e")[0])


def _token(text: Any, begin: int) -> bytes:
    """Return the token at a position, which may be a line end, for an error."""
    return re.split(rb"[ \t\r\n#]", text[begin : begin + 200].tobytes(), maxsplit=1)[0]


def _label_sentence(token: bytes, options: Options) -> str:
    top = "" if options.max_grade is None else f" and at most max_grade={options.max_grade:g}"
    return f"a label must be a finite number of at least 0{top}, got {quoted(token)}."


def _value_sentence(token: bytes, options: Options) -> str:
    value = _number(token)
    if options.parsed == np.float32 and math.isfinite(value):
        return (
            f"a value must be 0 or fit float32 with all its digits (1.2e-38 to 3.4e38), got "
            f"{quoted(token)}; normalise='minmax' (keyhole without --raw) or dtype='float64' "
            f"reads it."
        )
    return f"a value must be a finite number, got {quoted(token)}."


def _sentence(ended: int, raw: bytes, first: int, options: Options) -> str:
    token = quoted(raw)
    return {
        kernels.NO_PAIR: f"a feature must be index:value, got {token}.",
        kernels.NO_VALUE: f"a feature must be index:value, got {token} without a value.",
        kernels.ORDER: f"feature indices must ascend within a line, got {token} after an index as "
        f"high.",
        kernels.TOO_LOW: f"a feature index must be at least first_index={first}, got {token}.",
        kernels.TOO_HIGH: f"a feature index must be at most {(options.n_features or 0) + first - 1}"
        f" with n_features={options.n_features} and first_index={first}, got {token}.",
        kernels.NO_QID: f"a query must be qid:ID, got {token}.",
        kernels.LABEL: _label_sentence(raw, options),
        kernels.RANGE: _value_sentence(raw, options),
        kernels.RETURN: "a line must end with a line feed, got a carriage return (\\r) alone.",
    }[ended]
