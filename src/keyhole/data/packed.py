"""Files of text, plain or compressed; they are told by their first bytes, never by their names."""

import bz2
import lzma
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from keyhole.base.errors import InvalidInput
from keyhole.base.files import open_input, read_input, shortened
from keyhole.base.limits import check_memory, inflation_limit, memory_limit

MARK = b"\xef\xbb\xbf"
"""What some programs write before UTF-8 text."""

_PIECE = 2**16
_STEP = 2**20
"""Bytes that are unpacked at once, however many a few packed ones stand for."""
_GZIP_WINDOW = 31
# What unpacks: each has `decompress`, and when it has come to the end, `eof` and `unused_data`.
# Files of xz say themselves how much memory it takes to unpack them.
_PACKED: tuple[tuple[bytes, Callable[[], Any]], ...] = (
    (b"\x1f\x8b", lambda: zlib.decompressobj(_GZIP_WINDOW)),
    (b"BZh", bz2.BZ2Decompressor),
    (b"\xfd7zXZ\x00", lambda: lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=memory_limit())),
)
_UNPACK = "unpack it first"
_CONVERT = "write its table as text first"
# First bytes, what they mean and what helps.
_NO_TEXT = (
    (b"\x28\xb5\x2f\xfd", "a Zstandard file", "unpack it first, with zstd -d"),
    (b"\x04\x22\x4d\x18", "an LZ4 file", "unpack it first, with lz4 -d"),
    (b"\x1f\x9d", "a file of compress (.Z)", _UNPACK),
    (b"7z\xbc\xaf\x27\x1c", "a 7-Zip archive", _UNPACK),
    (b"Rar!\x1a\x07", "a RAR archive", _UNPACK),
    (b"PK\x03\x04", "a ZIP archive, as .zip, .npz and .xlsx files are", _UNPACK),
    (b"PK\x05\x06", "an empty ZIP archive", _UNPACK),
    (b"PAR1", "a Parquet file", _CONVERT),
    (b"ARROW1", "an Arrow file", _CONVERT),
    (b"\x93NUMPY", "a NumPy array", _CONVERT),
    (b"\x89HDF\r\n\x1a\n", "an HDF5 file", _CONVERT),
    (b"SQLite format 3\x00", "an SQLite database", _CONVERT),
    (b"%PDF-", "a PDF document", _CONVERT),
    (b"\xff\xfe", "UTF-16 text", "save it as UTF-8"),
    (b"\xfe\xff", "UTF-16 text", "save it as UTF-8"),
)
_TAR, _TAR_AT = b"ustar", 257
_HEAD = _TAR_AT + len(_TAR)


@contextmanager
def readable(path: Path, kind: str) -> Iterator[None]:
    """Turn whatever goes wrong when a file is read into one sentence."""
    try:
        yield
    except (OSError, EOFError, zlib.error, lzma.LZMAError) as error:
        reason = getattr(error, "strerror", None) or str(error).rstrip(".")
        raise InvalidInput(f"{shortened(path)} must be a readable {kind} file: {reason}.") from None


def _unpacker(head: bytes) -> Callable[[], Any] | None:
    return next((new for magic, new in _PACKED if head.startswith(magic)), None)


def _check_text(path: Path, kind: str, head: bytes) -> None:
    """Raise if some bytes, unpacked already, are the first ones of something else than text."""
    found = [(what, remedy) for magic, what, remedy in _NO_TEXT if head.startswith(magic)]
    if _unpacker(head) is not None:
        found = [("a file compressed twice", _UNPACK)]
    if head[_TAR_AT:_HEAD] == _TAR:
        found = [("a tar archive", _UNPACK)]
    if found:
        what, remedy = found[0]
        raise InvalidInput(f"{path} must be a {kind} file, got {what}: {remedy}.")


def _steps(unpacker: Any, packed: bytes | memoryview) -> Iterator[bytes]:
    """Unpack some bytes, never more than a step at once."""
    rest, is_full = packed, False
    while (len(rest) or is_full) and not unpacker.eof:
        text = unpacker.decompress(rest, _STEP)
        rest = getattr(unpacker, "unconsumed_tail", b"")  # zlib gives back what it has not used
        is_full = len(text) == _STEP
        yield text


def _pieces(new: Callable[[], Any], packed: Iterable[bytes | memoryview]) -> Iterator[bytes]:
    """Unpack pieces of a file, in which one compressed stream may follow the other."""
    unpacker = new()
    for piece in packed:
        rest = piece
        while len(rest):
            if unpacker.eof:
                rest = bytes(rest).lstrip(b"\0")  # tapes and disks are padded with zeros
                unpacker = new() if rest else unpacker
                continue
            yield from _steps(unpacker, rest)
            rest = unpacker.unused_data if unpacker.eof else b""
    if not unpacker.eof:
        raise EOFError("Compressed file ended before the end-of-stream marker was reached")


def _within(limit: int, pieces: Iterable[bytes], name: str) -> Iterator[bytes]:
    """Give pieces on, and raise as soon as they are more than the limit."""
    n_bytes = 0
    for piece in pieces:
        n_bytes += len(piece)
        check_memory(n_bytes, f"{name}, unpacked,", limit)
        yield piece


def unpack(path: Path, raw: Any, kind: str) -> Any:
    """Return the text in the bytes of a file: the very same bytes if they are not compressed."""
    new = _unpacker(bytes(raw[:_HEAD]))
    if new is not None:
        view = memoryview(raw)
        packed = (view[begin : begin + _PIECE] for begin in range(0, len(view), _PIECE))
        with readable(path, kind):
            limit = inflation_limit(len(view))
            raw = b"".join(_within(limit, _pieces(new, packed), shortened(path)))
    _check_text(path, kind, bytes(raw[:_HEAD]))
    return raw


def read_unpacked(path: Path, kind: str) -> bytes:
    """Return the text of a file, without the mark that may be before it."""
    with readable(path, kind):
        raw = read_input(path)
    return unpack(path, raw, kind).removeprefix(MARK)


def decoded(path: Path, raw: bytes, kind: str) -> str:
    """Return the text of a file as characters, or name the line that is no UTF-8."""
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise InvalidInput(
            f"{path} must be a readable {kind} file: line {line} is not UTF-8 text."
        ) from None


class TextFile:
    """A file whose text is read piece by piece, without the mark that may be before it."""

    def __init__(self, path: Path, kind: str) -> None:
        self._path, self._kind = path, kind
        with readable(path, kind):
            self._file = open_input(path)
        try:
            with readable(path, kind):
                head = self._file.peek(_HEAD)[:_HEAD]
            new = _unpacker(head)
            self._unpacked = None if new is None else _pieces(new, iter(self._piece, b""))
            self._held = b""
            start = head if new is None else self.read(_HEAD)
            _check_text(path, kind, start)
            if new is not None:
                self._held = start + self._held
            if start.startswith(MARK):
                self.read(len(MARK))
        except InvalidInput:
            self.close()
            raise

    def _piece(self) -> bytes:
        return self._file.read(_PIECE)

    def read(self, size: int) -> bytes:
        """Return so many bytes of text, fewer only at its end."""
        with readable(self._path, self._kind):
            if self._unpacked is None:
                return self._file.read(size)
            parts, n_bytes = [self._held], len(self._held)
            while n_bytes < size and (part := next(self._unpacked, None)) is not None:
                parts.append(part)
                n_bytes += len(part)
        text = b"".join(parts)
        self._held = text[size:]
        return text[:size]

    def close(self) -> None:
        """Close the file."""
        self._file.close()
