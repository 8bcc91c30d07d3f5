"""LETOR files as bytes, whole or block by block; and group files."""

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike, fspath
from pathlib import Path
from typing import Any, Self

import numpy as np

from keyhole.base.errors import InvalidInput, shown
from keyhole.base.files import read_input, shortened
from keyhole.base.limits import check_memory
from keyhole.data.letor import kernels
from keyhole.data.packed import MARK, TextFile, readable, unpack

Paths = str | PathLike[str] | Sequence[str | PathLike[str]]

_MAX_SIZE_DIGITS = 15
_ZERO_WIDTH = "\u200b\u2060\ufeff"


def as_paths(paths: Paths, name: str) -> tuple[Path, ...]:
    """Return one path or several as a tuple, or raise."""
    several = [paths] if isinstance(paths, str | PathLike) else paths
    try:
        found = tuple(Path(fspath(path)) for path in several)
    except TypeError:
        raise InvalidInput(
            f"{name} must be a path or a list of paths, got {shown(paths)}."
        ) from None
    if not found:
        raise InvalidInput(f"{name} must name at least one file, got an empty list.")
    return found


def raw_bytes(path: Path, kind: str = "LETOR") -> Any:
    """Return the bytes of a file as they are on disk, mapped into memory where possible."""
    with readable(path, kind):
        if path.is_file() and path.stat().st_size:
            return np.asarray(np.memmap(path, np.uint8, mode="r"))
        return np.frombuffer(read_input(path), np.uint8)


def unpacked(path: Path, raw: Any, kind: str = "LETOR") -> Any:
    """Return the text in the bytes of a file, as bytes."""
    text = unpack(path, raw, kind)
    text = text if text is raw else np.frombuffer(text, np.uint8)
    return text[len(MARK) :] if text[: len(MARK)].tobytes() == MARK else text


@dataclass
class Slices:
    """A text in memory, in blocks of whole lines as :class:`Blocks` gives them."""

    text: Any
    block_bytes: int

    def __post_init__(self) -> None:
        self._begin = self._end = 0
        self.ended = False

    def next(self) -> Any:
        """Return the next block; :attr:`ended` tells whether it is the last."""
        more, size = max(self.block_bytes, self._end - self._begin), self.text.shape[0]
        self._end = kernels.line_end(self.text, min(self._end + more, size) - 1)
        self.ended = self._end == size
        return self.text[self._begin : self._end]

    def keep(self, begin: int) -> None:
        """Give what follows ``begin`` in the last block again, at the start of the next."""
        self._begin += begin


@dataclass
class Blocks:
    """A file read in blocks of whole lines.

    ``next`` gives a block: what was kept of the last one and about ``block_bytes`` more.
    """

    path: Path
    block_bytes: int

    def __post_init__(self) -> None:
        self.ended = False
        self._file = TextFile(self.path, "LETOR")
        self._kept = b""

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
        check_memory(size, f"The longest query of {shortened(self.path)}")
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
    """Return some bytes as they are quoted in an error, with the name of what cannot be seen."""
    text = token[:40].decode("ascii", "backslashreplace") + ("..." if len(token) > 40 else "")
    shown = "'" + "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in text) + "'"
    hidden = hidden_character(token.decode("utf-8", "ignore"))
    if hidden is None:
        return shown
    name = unicodedata.name(hidden, "a control character")
    return f"{shown} with U+{ord(hidden):04X} ({name.lower()}) in it"


def hidden_character(text: str) -> str | None:
    """Return the first character of a text that is white space or shows nothing, if any."""
    return next((c for c in text if c in _ZERO_WIDTH or c.isspace() or _is_control(c)), None)


def _is_control(character: str) -> bool:
    return unicodedata.category(character) == "Cc"
