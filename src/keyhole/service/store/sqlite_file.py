"""The SQLite file of a log: its schema, migrations and error messages."""

import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import resources
from pathlib import Path
from types import TracebackType
from typing import Any

import apsw

from keyhole.base.files import shortened
from keyhole.service.errors import (
    StoreDamaged,
    StoreError,
    StoreFailed,
    StoreFull,
    StoreInUse,
    StoreNewer,
)
from keyhole.service.store.base import SECRET_SIZE

APPLICATION = int.from_bytes(b"KEYH")
"""The application id in the header of the database."""

PATIENCE_MS = 10_000
"""Milliseconds to wait for another writer, mostly a command that adds a key."""

MIGRATIONS: tuple[str, ...] = tuple(
    file.read_text(encoding="utf-8")
    for file in sorted(
        resources.files("keyhole.service.store").joinpath("migrations").iterdir(),
        key=lambda file: file.name,
    )
    if file.name.endswith(".sql")
)
"""The migrations from version n - 1 to version n; they never change."""


_SENTENCES: tuple[tuple[tuple[type[BaseException], ...], type[StoreError], str], ...] = (
    ((apsw.FullError,), StoreFull, "The disk of {name} is full; nothing was written."),
    (  # SQLError: no such table
        (apsw.CorruptError, apsw.NotADBError, apsw.SQLError),
        StoreDamaged,
        "{name} must be a log of Keyhole's service: {error}.",
    ),
    ((UnicodeDecodeError,), StoreDamaged, "{name} is damaged: a text in it is not UTF-8."),
    ((apsw.InterruptError,), StoreError, "{name} has been closed."),
    (
        (apsw.BusyError, apsw.LockedError),
        StoreInUse,
        f"{{name}} is locked by another process since {PATIENCE_MS // 1000} seconds.",
    ),
    (
        (apsw.CantOpenError, apsw.ReadOnlyError, apsw.PermissionsError),
        StoreError,
        "{name} cannot be opened: {error}.",
    ),
    (
        (apsw.IOError, apsw.NoMemError, apsw.ProtocolError),
        StoreFailed,
        "{name} cannot be read or written: {error}.",
    ),
)
"""What errors of SQLite become, and in which words."""


class Sentences:
    """Translates errors of SQLite within a ``with`` block into one sentence each.

    A class, because every look-up passes it: a generator takes five times as long.
    """

    __slots__ = ("_path",)

    def __init__(self, path: Path) -> None:
        self._path = path

    def __enter__(self) -> Any:
        """Do nothing."""

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Raise the sentence of an error that has one."""
        if error is None:
            return
        for kinds, becomes, sentence in _SENTENCES:
            if isinstance(error, kinds):
                raise becomes(sentence.format(name=shortened(self._path), error=error)) from None


@contextmanager
def transaction(db: apsw.Connection) -> Iterator[None]:
    """Commit the block as a transaction, or roll it back."""
    db.execute("BEGIN IMMEDIATE")
    try:
        yield
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise


def connect(
    path: Path, *, read_only: bool = False, vfs: str | None = None, synchronous: str = "FULL"
) -> apsw.Connection:
    """Return a connection to an existing database that syncs on every commit."""
    if not path.is_file():
        raise StoreError(f"{shortened(path)} must be a log of Keyhole's service: there is no file.")
    flags = apsw.SQLITE_OPEN_READONLY if read_only else apsw.SQLITE_OPEN_READWRITE
    with Sentences(path):
        db = apsw.Connection(str(path), flags=flags, vfs=vfs)
        try:
            db.set_busy_timeout(PATIENCE_MS)
            db.execute("PRAGMA trusted_schema = OFF")
            db.execute(f"PRAGMA synchronous = {synchronous}")
            db.execute("PRAGMA fullfsync = ON")  # macOS: also flush the cache of the drive
        except BaseException:
            db.close()
            raise
    return db


def version_of(db: apsw.Connection, path: Path, newest: int) -> int:
    """Return the schema version of a log, 0 for an empty file; raise for other databases."""
    with Sentences(path):
        version, application = db.pragma("user_version"), db.pragma("application_id")
        is_empty = not db.execute("SELECT count(*) FROM sqlite_schema").get
    if application != APPLICATION and not (is_empty and version == application == 0):
        raise StoreDamaged(
            f"{shortened(path)} must be a log of Keyhole's service: it is another database."
        )
    if version > newest:
        raise StoreNewer(
            f"{shortened(path)} must have schema version {newest} or lower, got {version}: a newer "
            "Keyhole wrote it."
        )
    return int(version)


def prepare(db: apsw.Connection, path: Path, migrations: Sequence[str]) -> None:
    """Migrate a log to the newest schema; the caller holds the write lock."""
    version = version_of(db, path, len(migrations))
    with Sentences(path):
        if db.pragma("journal_mode", "WAL") != "wal":  # SQLite returns the mode instead of raising
            raise StoreFailed(f"{shortened(path)} cannot be given a write-ahead log.")
        db.execute("PRAGMA cache_size = -32768")
        for number, migration in enumerate(migrations[version:], version + 1):
            with transaction(db):
                db.execute(migration)
                db.execute(f"PRAGMA user_version = {number}")
                if number == 1:
                    secret = secrets.token_bytes(SECRET_SIZE)
                    db.execute("INSERT INTO once VALUES ('secret', ?)", (secret,))
