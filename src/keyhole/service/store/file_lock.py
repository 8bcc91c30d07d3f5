"""The write lock of a log file: one writing process, no accidental new log, no lost tail."""

import fcntl
import os
import sys
import zlib
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import msgspec

from keyhole.base.files import shortened
from keyhole.service.errors import StoreError, StoreGone, StoreInUse
from keyhole.service.events import Event

_MARK = b"There is a log beside this file, which is the lock of whoever writes to it.\n"
_RECORD = 2_048
"""The bytes after the mark: the last acknowledged event, its checksum, and spaces."""

_Inode = tuple[int, int]
_held: set[_Inode] = set()
"""Files locked by this process: closing another handle to one would drop SQLite's POSIX locks."""


class Acknowledged(NamedTuple):
    """The last event that a client was told to be durable."""

    ranker: str
    seq: int
    link: str


def acknowledged(path: Path) -> Acknowledged | None:
    """Return the last acknowledged event of a log, or None if the lock file does not say it."""
    with suppress(OSError, ValueError), path.with_name(path.name + ".lock").open("rb") as file:
        file.seek(len(_MARK))
        checksum, _, told = file.read(_RECORD).rstrip().partition(b" ")
        if told and int(checksum, 16) == zlib.crc32(told):
            return msgspec.json.decode(told, type=Acknowledged)
    return None


def forget_acknowledged(path: Path) -> None:
    """Forget the last acknowledged event: another log is to stand here."""
    with suppress(FileNotFoundError), path.with_name(path.name + ".lock").open("rb+") as file:
        file.truncate(min(len(_MARK), os.fstat(file.fileno()).st_size))


class Holding:
    """Locks a log for writing until it is closed or the process ends.

    It locks two files: the log, which may have other names through hard links, and a lock file
    beside it. The lock file stays: it proves that the log existed, so that a missing log is
    recreated only with ``create``, and it names the last acknowledged event, so that a log that
    ends before it is noticed.
    """

    def __init__(self, path: Path, *, create: bool = False) -> None:
        self._path = path
        self._beside = _locked(path.with_name(path.name + ".lock"), path)
        try:
            self._check_expected(create)
            if os.path.exists(path) and _inode(os.stat(path)) in _held:
                raise _in_use(path)
            self._log = _locked(path, path)
            self._inode = _inode(os.fstat(self._log))
            _held.add(self._inode)
        except BaseException:
            os.close(self._beside)
            raise

    def _check_expected(self, create: bool) -> None:
        """Raise if a new log would replace a missing one."""
        path, name = self._path, shortened(self._path)
        if os.path.exists(path) and os.path.getsize(path) > 0:
            return
        journal = path.with_name(path.name + "-wal")
        if not os.path.exists(path) and os.path.exists(journal) and os.path.getsize(journal) > 0:
            raise StoreGone(
                f"{name} must be there, as its write-ahead log {name}-wal is: put it back."
            )
        if os.fstat(self._beside).st_size > 0 and not create:
            raise StoreGone(
                f"{name} must exist and hold a log, as it did before ({name}.lock says so): put it "
                "back, restore a backup with keyhole db restore, or start an empty log with "
                "keyhole serve --create."
            )
        forget_acknowledged(path)

    def mark(self) -> None:
        """Mark the lock file: from now on the log exists."""
        if os.fstat(self._beside).st_size == 0:
            os.write(self._beside, _MARK)

    def acknowledge(self, event: Event) -> None:
        """Write down that this event is durable, before a client is told so.

        It is not synced: after a power cut an earlier event may stand there, which says less but
        nothing wrong. Where it cannot be written, the event is durable all the same.
        """
        told = msgspec.json.encode(Acknowledged(event.ranker, event.seq, event.link.hex()))
        record = b"%08x %s" % (zlib.crc32(told), told)
        with suppress(OSError):
            os.pwrite(self._beside, record.ljust(_RECORD), len(_MARK))

    def gone(self) -> str | None:
        """Return a sentence if the file was moved, deleted or replaced; else None."""
        try:
            is_there = _inode(os.stat(self._path)) == self._inode
            what = "another file has taken its place"
        except OSError:
            is_there, what = False, "it was moved or deleted"
        if is_there:
            return None
        return (
            f"{shortened(self._path)} must stay where it is while the service runs, but {what}: "
            "put it back, or stop the service."
        )

    def close(self) -> None:
        """Release the locks; no connection to the log may be open."""
        _held.discard(self._inode)
        os.close(self._log)
        os.close(self._beside)


def _locked(file: Path, path: Path) -> int:
    """Return an exclusively locked handle to a file; create it if it is missing.

    Only its owner may read it. SQLite gives its own files the same permissions, and syncs the
    folder when it creates them.
    """
    try:
        handle = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise StoreError(f"{shortened(path)} cannot be opened: {error.strerror}.") from None
    try:
        # SQLite uses POSIX locks, which on Linux are independent of flock.
        if file != path or sys.platform == "linux":
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(handle)
        raise _in_use(path) from None
    return handle


def _in_use(path: Path) -> StoreInUse:
    return StoreInUse(f"{shortened(path)} is in use: another process writes to it.")


def _inode(found: os.stat_result) -> _Inode:
    return found.st_dev, found.st_ino
