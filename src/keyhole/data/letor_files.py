"""LETOR files as bytes: plain or gzipped, whole or block by block; and group files."""

import gzip
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from os import PathLike, fspath
from pathlib import Path
from typing import Any, Self

import numpy as np

from keyhole.errors import InvalidInput

Paths = str | PathLike[str] | Sequence[str | PathLike[str]]

_GZIP = b"\x1f\x8b"
_MARK = b"\xef\xbb\xbf"
_MAX_SIZE_DIGITS = 15


def as_paths(paths: Paths, name: str) -> tuple[Path, ...]:
    """Return one path or several as a tuple, or raise."""
    several = [paths] if isinstance(paths, str | PathLike) else paths
    try:
        found = tuple(Path(fspath(path)) for path in several)
    except TypeError:
        raise InvalidInput(f"{name} must be a path or a list of paths, got {paths!r}.") from None
    if not found:
        raise InvalidInput(f"{name} must name at least one file, got an empty list.")
    return found


@contextmanager
def readable(path: Path, kind: str = "LETOR") -> Iterator[None]:
    """Turn whatever goes wrong when a file is read into one sentence."""
    try:
        yield
    except (OSError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or str(error).rstrip(".")
        raise InvalidInput(f"{path} must be a readable {kind} file: {reason}.") from None


def raw_bytes(path: Path, kind: str = "LETOR") -> Any:
    """Return the bytes of a file as they are on disk, mapped into memory where possible."""
    with readable(path, kind):
        if path.is_file() and path.stat().st_size:
            return np.asarray(np.memmap(path, np.uint8, mode="r"))
        return np.frombuffer(path.read_bytes(), np.uint8)


def unpacked(path: Path, raw: Any, kind: str = "LETOR") -> Any:
    """Return the text in the bytes of a file, as bytes."""
    if raw[:2].tobytes() == _GZIP:
        with readable(path, kind):
            raw = np.frombuffer(gzip.decompress(memoryview(raw)), np.uint8)
    return raw[3:] if raw[:3].tobytes() == _MARK else raw


def _open(path: Path) -> Any:
    with path.open("rb") as file:
        packed = file.read(2) == _GZIP
    return gzip.open(path, "rb") if packed else path.open("rb")


@dataclass
class Blocks:
    """A file read in blocks of whole lines.

    ``next`` gives a block: what was kept of the last one and about ``block_bytes`` more.
    """

    path: Path
    block_bytes: int

    def __post_init__(self) -> None:
        self.ended = False
        with readable(self.path):
            self._file = _open(self.path)
        try:
            self._kept = self._read(len(_MARK)).removeprefix(_MARK)
        except InvalidInput:
            self._file.close()
            raise

    def next(self) -> Any:
        """Return the next block; :attr:`ended` tells whether it is the last."""
        # At least as much as was kept: a query longer than a block is parsed a few times only.
        block = self._kept + self._read(max(self.block_bytes, len(self._kept)))
        while not self.ended and b"\n" not in block:
            block += self._read(len(block))
        self._block = block
        end = len(block) if self.ended else block.rindex(b"\n") + 1
        self.keep(end)
        return np.frombuffer(block, np.uint8)[:end]

    def keep(self, begin: int) -> None:
        """Give what follows ``begin`` in the last block again, at the start of the next."""
        self._kept = self._block[begin:]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def _read(self, size: int) -> bytes:
        with readable(self.path):
            read = self._file.read(size)
        self.ended = len(read) < size
        return read


def group_sizes(path: Path, raw: Any) -> Any:
    """Return the numbers of a group file, one per line, as integers."""
    text = unpacked(path, raw, "group").tobytes()
    sizes = []
    for number, line in enumerate(text.split(b"\n"), 1):
        token = line.strip()
        if not token:
            continue
        if not token.isdigit() or len(token) > _MAX_SIZE_DIGITS or int(token) < 1:
            raise InvalidInput(
                f"{path}, line {number}: a group size must be an integer of at least 1, got "
                f"{quoted(token)}."
            )
        sizes.append(int(token))
    if not sizes:
        raise InvalidInput(f"{path} must have at least one group size.")
    return np.array(sizes, np.int64)


def quoted(token: bytes) -> str:
    """Return some bytes as they are quoted in an error."""
    text = token[:40].decode("ascii", "backslashreplace") + ("..." if len(token) > 40 else "")
    return "'" + "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in text) + "'"
