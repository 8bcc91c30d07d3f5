"""Backup and restore of a log as one file of SQLite, also while a service writes to it."""

import os
import tempfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import apsw

from keyhole.base.errors import CannotWrite, InvalidInput
from keyhole.base.files import shortened
from keyhole.service.store.base import Store
from keyhole.service.store.sqlite import SqliteStore
from keyhole.service.store.sqlite_file import MIGRATIONS, Sentences, connect, version_of
from keyhole.service.store.transfer import transfer

_STEP = 1_000
"""Pages copied between two checks for an interrupt."""


def copy_log(source: Path, target: Path, check: Callable[[Path], object]) -> None:
    """Copy a consistent state of a log to a new file: see :func:`write_backup`."""
    source = Path(os.path.realpath(source))
    write_backup(lambda name: _copy_pages(source, name), target, check)


def copy_store(
    source: Store, target: Path, check: Callable[[Path], object], advance: Callable[[int], None]
) -> None:
    """Copy a log in another kind of store to a new file: see :func:`write_backup`."""

    def write(name: Path) -> None:
        try:
            with SqliteStore(name) as store:
                transfer(source, store, advance)
        finally:
            name.with_name(name.name + ".lock").unlink()
        with closing(connect(name)) as db:
            db.pragma("journal_mode", "DELETE")

    write_backup(write, target, check)


def write_backup(
    write: Callable[[Path], None], target: Path, check: Callable[[Path], object]
) -> None:
    """Write a log to a new file.

    It is a single file that only its owner may read. ``check`` verifies it before it is renamed to
    ``target``; it is synced to disk when this function returns.
    """
    target = Path(os.path.realpath(target))
    for end in ("", "-wal", "-journal"):  # SQLite would apply a stray journal to the copy
        if target.with_name(target.name + end).exists():
            raise InvalidInput(f"{shortened(target)}{end} must not exist: nothing is overwritten.")
    try:
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=".keyhole-", suffix=".db")
        os.close(handle)
        try:
            write(Path(name))
            check(Path(name))
            os.link(name, target)  # unlike rename, link never replaces a file
        finally:
            os.unlink(name)
        _sync_folder(target.parent)
    except (apsw.FullError, apsw.IOError, OSError) as error:
        why = getattr(error, "strerror", None) or error
        raise CannotWrite(f"{shortened(target)} cannot be written: {why}.") from None


def _copy_pages(source: Path, target: Path) -> None:
    """Copy a database and sync the copy."""
    with closing(connect(source, read_only=True)) as old, closing(connect(target)) as new:
        version_of(old, source, len(MIGRATIONS))
        with Sentences(source):
            # A read transaction sees one consistent state, whatever is appended meanwhile.
            old.execute("BEGIN")
            old.execute("SELECT count(*) FROM sqlite_schema").fetchall()
        with new.backup("main", old, "main") as backup:
            while not backup.done:
                backup.step(_STEP)
        new.pragma("journal_mode", "DELETE")  # a single file without a write-ahead log


def _sync_folder(folder: Path) -> None:
    """Sync a folder, so that the name of a new file survives a crash."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
