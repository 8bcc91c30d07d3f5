"""The SQLite file of a log: its schema, migrations and error messages."""

import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import resources
from pathlib import Path

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


@contextmanager
def sentences(path: Path) -> Iterator[None]:
    """Translate errors of SQLite into one sentence each."""
    name = shortened(path)
    try:
        yield
    except apsw.FullError:
        raise StoreFull(f"The disk of {name} is full; nothing was written.") from None
    except (apsw.CorruptError, apsw.NotADBError, apsw.SQLError) as error:  # SQLError: no such table
        raise StoreDamaged(f"{name} must be a log of Keyhole's service: {error}.") from None
    except UnicodeDecodeError:
        raise StoreDamaged(f"{name} is damaged: a text in it is not UTF-8.") from None
    except apsw.InterruptError:
        raise StoreError(f"{name} has been closed.") from None
    except (apsw.BusyError, apsw.LockedError):
        seconds = PATIENCE_MS // 1000
        raise StoreInUse(f"{name} is locked by another process since {seconds} seconds.") from None
    except (apsw.CantOpenError, apsw.ReadOnlyError, apsw.PermissionsError) as error:
        raise StoreError(f"{name} cannot be opened: {error}.") from None
    except (apsw.IOError, apsw.NoMemError, apsw.ProtocolError) as error:
        raise StoreFailed(f"{name} cannot be read or written: {error}.") from None


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
    with sentences(path):
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
    with sentences(path):
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
    with sentences(path):
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
