"""Copies of a log in a file of SQLite, taken while a service writes to it, and put back."""

import os
import tempfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import apsw

from keyhole.base.errors import CannotWrite, InvalidInput
from keyhole.base.files import shortened
from keyhole.service.store.sqlite_file import MIGRATIONS, connect, sentences, version_of

_STEP = 1_000
"""Pages that are copied between two looks for an interrupt."""


def copy_log(source: Path, target: Path, check: Callable[[Path], object]) -> None:
    """Copy a log as it is at one moment to a file that is not there yet.

    The copy is a single file that only its owner may read. It is ``check``-ed before it gets its
    name, and outlasts a crash of the machine once this has returned.
    """
    source, target = Path(os.path.realpath(source)), Path(os.path.realpath(target))
    for end in ("", "-wal", "-journal"):  # a journal would be taken for that of the copy
        if target.with_name(target.name + end).exists():
            raise InvalidInput(f"{shortened(target)}{end} must not exist: nothing is overwritten.")
    try:
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=".keyhole-", suffix=".db")
        os.close(handle)
        try:
            _copy_pages(source, Path(name))
            check(Path(name))
            os.link(name, target)  # which replaces no file, unlike a change of the name
        finally:
            os.unlink(name)
        _sync_folder(target.parent)
    except (apsw.FullError, apsw.IOError, OSError) as error:
        why = getattr(error, "strerror", None) or error
        raise CannotWrite(f"{shortened(target)} cannot be written: {why}.") from None


def _copy_pages(source: Path, target: Path) -> None:
    """Copy a database and sync the copy; what goes wrong with the copy is an error of SQLite."""
    with closing(connect(source, read_only=True)) as old, closing(connect(target)) as new:
        version_of(old, source, len(MIGRATIONS))
        with sentences(source):
            # As long as a transaction reads, it sees the log of one moment, whatever is appended.
            old.execute("BEGIN")
            old.execute("SELECT count(*) FROM sqlite_schema").fetchall()
        with new.backup("main", old, "main") as backup:
            while not backup.done:
                backup.step(_STEP)
        new.pragma("journal_mode", "DELETE")  # one file, which can be read anywhere


def _sync_folder(folder: Path) -> None:
    """Let the name of a new file outlast a crash."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
