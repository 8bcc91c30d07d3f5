"""Connections to PostgreSQL: their settings, and its errors as sentences."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
from psycopg import errors as postgres
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from keyhole.base.errors import InvalidInput
from keyhole.service.errors import (
    StoreDamaged,
    StoreError,
    StoreFailed,
    StoreFull,
    StoreGone,
    StoreInUse,
)
from keyhole.service.store.addresses import check_url, shown_address

Database = psycopg.Connection[tuple[Any, ...]]

_SETTINGS = {
    "application_name": "keyhole",
    "connect_timeout": "5",
    "keepalives_idle": "5",
    "keepalives_interval": "2",
    "keepalives_count": "3",
    "tcp_user_timeout": "10000",
}
"""Settings of libpq, unless the address has others: a server that is gone is soon noticed."""
_OPTIONS = (
    "-c statement_timeout=30s",
    "-c lock_timeout=10s",
    "-c search_path=keyhole,pg_temp",
    "-c default_transaction_isolation=read\\ committed",
    # The server notices within half a minute that the machine of a service is gone.
    "-c tcp_keepalives_idle=10",
    "-c tcp_keepalives_interval=5",
    "-c tcp_keepalives_count=3",
)
"""Settings of the server, for sessions; ``options`` of the address come after them."""


@contextmanager
def sentences(name: str) -> Iterator[None]:
    """Translate errors of PostgreSQL into one sentence each."""
    try:
        yield
    except postgres.DiskFull:
        raise StoreFull(f"The disk of {name} is full; nothing was written.") from None
    except (postgres.DataCorrupted, postgres.IndexCorrupted) as error:
        raise StoreDamaged(f"{name} is damaged: {said_by(error)}.") from None
    except (postgres.UndefinedTable, postgres.InvalidSchemaName, postgres.UndefinedFunction):
        raise StoreGone(
            f"{name} must hold a log of Keyhole's service: its owner creates one with keyhole db "
            "migrate, or copies one to it with keyhole db copy."
        ) from None
    except postgres.InsufficientPrivilege as error:
        raise StoreError(
            f"{name} cannot be used by this role: {said_by(error)}; its owner may, and gives the "
            "role of a service its rights with keyhole db migrate --grant."
        ) from None
    except (postgres.ObjectInUse, postgres.LockNotAvailable) as error:
        raise StoreInUse(f"{name} is in use: {said_by(error)}.") from None
    except psycopg.Error as error:
        raise StoreFailed(f"{name} cannot be read or written: {said_by(error)}.") from None


def said_by(error: psycopg.Error) -> str:
    """Return what PostgreSQL or libpq says of an error, in one line; it holds no password."""
    said = error.diag.message_primary or str(error)
    return " ".join(said.split()).rstrip(".")


def is_lost(db: Database, error: psycopg.Error) -> bool:
    """Return whether an error ended the connection, so that the outcome is unknown."""
    shut_down = (postgres.AdminShutdown, postgres.CrashShutdown, postgres.CannotConnectNow)
    return db.closed or isinstance(error, shut_down)


def connect(url: str) -> Database:
    """Return a connection in which every statement is a transaction of its own."""
    name = shown_address(url)
    try:
        given = conninfo_to_dict(check_url(url))
    except psycopg.Error:
        raise InvalidInput(
            f"The settings in the address {name} must be those of libpq, and one is not."
        ) from None
    options = " ".join([*_OPTIONS, str(given.get("options", ""))])
    known = {name: str(value) for name, value in given.items()}
    settings = make_conninfo(**{**_SETTINGS, **known, "options": options})
    try:
        return psycopg.connect(settings, autocommit=True)
    except psycopg.Error as error:
        raise StoreFailed(f"{name} cannot be reached: {said_by(error)}.") from None


def check_durable(db: Database, name: str) -> None:
    """Raise if a commit that is acknowledged could be lost."""
    for setting, right in (("synchronous_commit", ("on", "remote_apply")), ("fsync", ("on",))):
        (found,) = one(db, f"SHOW {setting}")
        if found not in right:
            raise StoreError(
                f"{name} must have {setting} = on, got {found}: acknowledged events could be lost."
            )


def check_direct(db: Database, name: str) -> None:
    """Raise if a pooler changes sessions between statements: locks and epochs are of a session."""
    (process,) = one(db, "SELECT pg_backend_pid()")
    if process != db.info.backend_pid:
        raise StoreError(
            f"{name} must be reached without a pooler such as PgBouncer: the service holds a lock "
            "of its session."
        )


def one(db: Database, query: str, values: tuple[object, ...] = ()) -> Any:
    """Return the first row that a query finds, or None."""
    with db.cursor(binary=True) as cursor:
        return cursor.execute(query.encode(), values).fetchone()


def rows(db: Database, query: str, values: tuple[object, ...] = ()) -> list[Any]:
    """Return the rows that a query finds."""
    with db.cursor(binary=True) as cursor:
        return cursor.execute(query.encode(), values).fetchall()
