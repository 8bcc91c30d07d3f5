"""Who may write a log in a file: one process at a time, and only where there is to be a log."""

import fcntl
import os
import sys
from pathlib import Path

from keyhole.base.files import shortened
from keyhole.service.errors import StoreError, StoreGone, StoreInUse

_MARK = b"There is a log beside this file, which is the lock of whoever writes to it.\n"
_Inode = tuple[int, int]
_held: set[_Inode] = set()
"""Files that this process holds: to open and close one of them would undo the locks of SQLite."""


class Holding:
    """Holds a log for writing until it is closed or the process ends.

    Two files are locked: one beside the log, which has its name, and the log itself, which may have
    others, by hard links. The one beside it stays, and says from the first opening on that there is
    a log: one that is missing then is never made anew, unless ``create`` says so.
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
        """Raise where a log is to be made in the place of one that is missing."""
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
                f"{name} must be there and hold a log, as it did before ({name}.lock says so): put "
                "it back, make it of a backup with keyhole db restore, or begin an empty one with "
                "keyhole serve --create."
            )

    def mark(self) -> None:
        """Note that there is a log now."""
        if os.fstat(self._beside).st_size == 0:
            os.write(self._beside, _MARK)

    def gone(self) -> str | None:
        """Return what became of the file if it is no longer where it was."""
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
        """Let others write to the log; no connection to it may be open."""
        _held.discard(self._inode)
        os.close(self._log)
        os.close(self._beside)


def _locked(file: Path, path: Path) -> int:
    """Return a handle to a file of a log that no other process has; it is made if need be.

    Only its owner may read it. SQLite gives the files beside it the same rights, and syncs the
    folder when it makes them.
    """
    try:
        handle = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise StoreError(f"{shortened(path)} cannot be opened: {error.strerror}.") from None
    try:
        # SQLite has locks of another kind on the log, which on Linux know nothing of this one.
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
