"""The schema of a log in PostgreSQL: its migrations, and the rights of the role that serves."""

import secrets
from importlib import resources

from psycopg import sql

from keyhole.service.errors import StoreDamaged, StoreError, StoreNewer
from keyhole.service.store.addresses import shown_address
from keyhole.service.store.base import SECRET_SIZE
from keyhole.service.store.postgres_server import Database, connect, one, sentences

_FILES = resources.files("keyhole.service.store").joinpath("postgres_migrations")
MIGRATIONS: tuple[str, ...] = tuple(
    file.read_text(encoding="utf-8")
    for file in sorted(_FILES.iterdir(), key=lambda file: file.name)
    if file.name[0].isdigit()
)
"""The migrations from version n - 1 to version n; they never change."""
_GRANTS = _FILES.joinpath("grants.sql").read_text(encoding="utf-8")
_LOCK = int.from_bytes(b"KEYH")
"""The advisory lock of migrations; that of the writer is one more."""
WRITER_LOCK = _LOCK + 1


def migrate(url: str, role: str | None = None) -> None:
    """Create or migrate a log as its owner.

    The role gets the rights of a running service, and no others.
    """
    with connect(url) as db, sentences(shown_address(url)), db.transaction():
        db.execute("SET LOCAL statement_timeout = 0")
        db.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
        version = _version(db)
        _check_known(url, version)
        for number, migration in enumerate(MIGRATIONS[version:], version + 1):
            db.execute(migration.encode())
            db.execute("INSERT INTO migrations VALUES (%s)", (number,))
            if number == 1:
                secret = secrets.token_bytes(SECRET_SIZE)
                db.execute("INSERT INTO once VALUES ('secret', %s)", (secret,))
        if role is not None:
            name = sql.Identifier(role).as_bytes(db)
            db.execute(_GRANTS.encode().replace(b":role", name))


def check_version(db: Database, name: str) -> None:
    """Raise unless a log has the newest schema."""
    with sentences(name):
        version = one(db, "SELECT max(version) FROM migrations")[0] or 0
    _check_known(name, version)
    if version < len(MIGRATIONS):
        raise StoreError(
            f"{name} must be migrated by its owner with keyhole db migrate: an older version of "
            "Keyhole wrote it."
        )


def _version(db: Database) -> int:
    """Return the schema version, 0 if there is no log; raise if the schema is another's."""
    (is_there, is_ours) = one(
        db, "SELECT to_regnamespace('keyhole') IS NOT NULL, to_regclass('migrations') IS "
        "NOT NULL",
    )  # fmt: skip
    if is_there and not is_ours:
        raise StoreDamaged("The schema keyhole must be a log of Keyhole's service: it is another.")
    return int(one(db, "SELECT max(version) FROM migrations")[0]) if is_ours else 0


def _check_known(url: str, version: int) -> None:
    if version > len(MIGRATIONS):
        raise StoreNewer(
            f"{shown_address(url)} must have schema version {len(MIGRATIONS)} or lower, got "
            f"{version}: a newer Keyhole wrote it."
        )
