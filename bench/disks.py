"""Disks between SQLite and the machine: one that records what reaches it, one that fails."""

import os
import random
from collections.abc import Callable, Mapping
from itertools import count, pairwise
from typing import Literal, NamedTuple

import apsw

SECTOR = 512
"""What a disk writes whole or not at all."""

_names = count()


def _path(name: "str | apsw.URIFilename | None") -> str:
    """Return what SQLite calls a file; nothing for one that has no name and lasts for a moment."""
    return (name.filename() if isinstance(name, apsw.URIFilename) else name) or ""


# ----------------------------------------------------------------------------- recording


class Call(NamedTuple):
    """Something that was asked of a disk."""

    kind: Literal["create", "write", "truncate", "sync", "delete"]
    file: str
    offset: int = 0
    """Of a write; the new length of a file that is truncated."""
    data: bytes = b""
    is_synced: bool = False
    """Whether the folder was synced after a file was deleted."""


class RecordingDisk(apsw.VFS):
    """What SQLite uses in place of the operating system: it notes all that changes a file.

    Syncs are noted and not done, which makes it fast: power is cut on paper only.
    """

    def __init__(self) -> None:
        self.name = f"recording-{next(_names)}"
        self.calls: list[Call] = []
        self._known: set[str] = set()
        super().__init__(self.name, "")

    def xOpen(self, name, flags):  # noqa: N802
        path = _path(name)
        file = os.path.basename(path)
        # The store itself makes the empty file that becomes the database.
        is_new = not os.path.exists(path) or os.path.getsize(path) == 0
        opened = _RecordedFile(self, name, flags)
        if file and is_new and file not in self._known:
            self.calls.append(Call("create", file))
            self._known.add(file)
        return opened

    def xDelete(self, filename, syncdir):  # noqa: N802
        super().xDelete(filename, syncdir)
        self.calls.append(Call("delete", os.path.basename(filename), is_synced=bool(syncdir)))
        self._known.discard(os.path.basename(filename))


class _RecordedFile(apsw.VFSFile):
    def __init__(self, disk: RecordingDisk, name, flags) -> None:
        self._disk, self._file = disk, os.path.basename(_path(name))
        super().__init__("", name, flags)

    def xWrite(self, data, offset):  # noqa: N802
        super().xWrite(data, offset)
        self._disk.calls.append(Call("write", self._file, offset, bytes(data)))

    def xTruncate(self, newsize):  # noqa: N802
        super().xTruncate(newsize)
        self._disk.calls.append(Call("truncate", self._file, newsize))

    def xSync(self, _flags):  # noqa: N802
        self._disk.calls.append(Call("sync", self._file))


# ----------------------------------------------------------------------------- power cuts


class _Inode:
    """A file: what a power cut leaves of it for certain, and what it may leave."""

    def __init__(self, content: bytes = b"") -> None:
        self.certain = bytearray(content)
        self.pending: list[Call] = []

    def sync(self) -> None:
        for call in self.pending:
            _apply(self.certain, call, call.data)
        self.pending = []

    def left(self, numbers: random.Random) -> bytes:
        """Return what a power cut leaves, one of all that it may."""
        content = bytearray(self.certain)
        for call, sectors in numbers.choice(_WHAT_IS_LEFT)(self.pending, numbers):
            if call.kind == "truncate":
                _apply(content, call, b"")
            for start, stop in sectors:
                _grow(content, call.offset + start, numbers)
                _apply(content, call._replace(offset=call.offset + start), call.data[start:stop])
        return bytes(content)


def _apply(content: bytearray, call: Call, data: bytes) -> None:
    if call.kind == "truncate":
        del content[call.offset :]
        content.extend(bytes(call.offset - len(content)))
        return
    content.extend(bytes(max(0, call.offset - len(content))))
    content[call.offset : call.offset + len(data)] = data


def _grow(content: bytearray, size: int, numbers: random.Random) -> None:
    """Lengthen a file whose earlier sectors were lost: by zeros, or by what the disk held there."""
    missing = max(0, size - len(content))
    content.extend(numbers.randbytes(missing) if numbers.random() < 0.5 else bytes(missing))


def _sectors(call: Call) -> list[tuple[int, int]]:
    """Return the parts of a write that reach the disk whole or not at all."""
    end = call.offset + len(call.data)
    cuts = [call.offset, *range((call.offset // SECTOR + 1) * SECTOR, end, SECTOR), end]
    return [
        (start - call.offset, stop - call.offset) for start, stop in pairwise(cuts) if start < stop
    ]


_Left = list[tuple[Call, list[tuple[int, int]]]]


def _none(_pending: list[Call], _numbers: random.Random) -> _Left:
    return []


def _all(pending: list[Call], _numbers: random.Random) -> _Left:
    return [(call, _sectors(call)) for call in pending]


def _first_ones(pending: list[Call], numbers: random.Random) -> _Left:
    """Keep what came first, the last call of it torn."""
    kept = _all(pending[: numbers.randint(0, len(pending))], numbers)
    if kept:
        call, sectors = kept[-1]
        kept[-1] = (call, sectors[: numbers.randint(0, len(sectors))])
    return kept


def _last_one(pending: list[Call], numbers: random.Random) -> _Left:
    return _all(pending[-1:], numbers)


def _any_sectors(pending: list[Call], numbers: random.Random) -> _Left:
    """Keep any sectors of any calls, in any order."""
    chance = numbers.random()
    kept = [
        (call, [sector for sector in _sectors(call) if numbers.random() < chance])
        for call in pending
        if call.kind == "write" or numbers.random() < chance
    ]
    numbers.shuffle(kept)
    return kept


_WHAT_IS_LEFT: tuple[Callable[[list[Call], random.Random], _Left], ...] = (
    _none,
    _all,
    _first_ones,
    _last_one,
    _any_sectors,
    _any_sectors,
)


class PaperDisk:
    """The files that calls have made, with all that a power cut may leave of them.

    What was synced is there. Of other writes any sectors are, in any order. Names in the folder
    appear and go in their order; they are certain once the folder was synced, which SQLite does
    when it first syncs a file that it has made.
    """

    def __init__(self, files: Mapping[str, bytes] | None = None) -> None:
        self._certain = {name: _Inode(content) for name, content in (files or {}).items()}
        self._now = dict(self._certain)
        self._pending: list[tuple[str, _Inode | None]] = []

    def do(self, call: Call) -> None:
        """Do what was asked of the disk."""
        if call.kind == "create":
            self._now[call.file] = _Inode()
            self._pending.append((call.file, self._now[call.file]))
        elif call.kind == "delete":
            self._now.pop(call.file, None)
            self._pending.append((call.file, None))
            if call.is_synced:
                self._sync_names()
        elif call.kind == "sync":
            self._now[call.file].sync()
            if any(inode is self._now[call.file] for _, inode in self._pending):
                self._sync_names()
        else:
            self._now[call.file].pending.append(call)

    def _sync_names(self) -> None:
        self._certain, self._pending = dict(self._now), []

    def image(self, numbers: random.Random) -> dict[str, bytes]:
        """Return the files that a power cut leaves now, one of all that it may."""
        names = dict(self._certain)
        for name, inode in self._pending[: numbers.randint(0, len(self._pending))]:
            if inode is None:
                names.pop(name, None)
            else:
                names[name] = inode
        return {name: inode.left(numbers) for name, inode in names.items()}


# ----------------------------------------------------------------------------- faults


class FailingDisk(apsw.VFS):
    """What SQLite uses in place of the operating system: calls fail from the ``at``-th one on.

    Only calls of the kind ``of`` are counted: read, write, sync or truncate. :meth:`mend` ends it.
    """

    def __init__(
        self, of: str, at: int, error: Callable[[], Exception], *, n_failures: int
    ) -> None:
        self.name = f"failing-{next(_names)}"
        self.n_calls = 0
        self._of, self._at, self._error, self._left = of, at, error, n_failures
        super().__init__(self.name, "")

    def break_at(self, at: int) -> None:
        """Count from now on, and let all calls fail after so many."""
        self.n_calls, self._at, self._left = 0, at, 10**9

    def mend(self) -> None:
        """Let no more calls fail."""
        self._left = 0

    def xOpen(self, name, flags):  # noqa: N802
        return _FailingFile(self, name, flags)

    def meet(self, kind: str) -> None:
        """Count a call, and fail if it is its turn."""
        if kind != self._of:
            return
        self.n_calls += 1
        if self.n_calls > self._at and self._left > 0:
            self._left -= 1
            raise self._error()


class _FailingFile(apsw.VFSFile):
    def __init__(self, disk: FailingDisk, name, flags) -> None:
        self._disk = disk
        super().__init__("", name, flags)

    def xWrite(self, data, offset):  # noqa: N802
        try:
            self._disk.meet("write")
        except apsw.Error:
            # A disk that fills up in the middle of a write has taken the first part of it.
            super().xWrite(bytes(data)[: len(data) // 2], offset)
            raise
        super().xWrite(data, offset)

    def xRead(self, amount, offset):  # noqa: N802
        self._disk.meet("read")
        return super().xRead(amount, offset)

    def xTruncate(self, newsize):  # noqa: N802
        self._disk.meet("truncate")
        super().xTruncate(newsize)

    def xSync(self, _flags):  # noqa: N802
        self._disk.meet("sync")


def io_error(code: int) -> Callable[[], Exception]:
    """Return what makes an error of the disk with one of SQLite's codes."""

    def make() -> Exception:
        error = apsw.IOError()
        error.extendedresult = code  # type: ignore[attr-defined]
        return error

    return make
