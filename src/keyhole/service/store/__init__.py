"""Stores of the log: one file and one row each."""

from pathlib import Path
from typing import NamedTuple

from keyhole.base.errors import LibraryMissing, check_choice
from keyhole.base.lazy import named
from keyhole.service.store.base import Store


class StoreRow(NamedTuple):
    """A kind of store: its class, imported when a store is opened."""

    scheme: str
    where: str
    extra: str = "service"
    """The extra of the package that brings its library."""

    @property
    def kind(self) -> type[Store]:
        """The class of the store."""
        try:
            kind: type[Store] = named(self.where)
        except ModuleNotFoundError as error:
            raise LibraryMissing(f"The log of the service needs {error.name}", self.extra) from None
        return kind


STORES: dict[str, StoreRow] = {
    row.scheme: row
    for row in (
        StoreRow("sqlite", "keyhole.service.store.sqlite:SqliteStore"),
        StoreRow("postgresql", "keyhole.service.store.postgres:PostgresStore", "postgres"),
        StoreRow("memory", "keyhole.service.store.memory:MemoryStore"),
    )
}


def open_store(address: Path | str, *, read_only: bool = False, create: bool = False) -> Store:
    """Return the log at an address: a file name, or a scheme of ``STORES``, a colon and the rest.

    A missing file is created; if there was a log at this address before, only with ``create``. A
    log in PostgreSQL is made by ``keyhole db migrate``, never by opening it. With
    ``read_only`` the log must exist: it can be read while another process writes it, and only
    access keys can be changed.

    Examples
    --------
    >>> with open_store("memory:") as store:
    ...     store.rankers()
    []
    >>> open_store("postgres://localhost")
    Traceback (most recent call last):
    ...
    keyhole.base.errors.UnknownName: ...
    """
    row, rest = _row_of(address)
    return row.kind(rest, read_only=read_only, create=create)


def open_for_keys(address: str) -> Store:
    """Return the log at an address to change its access keys, also while the service runs."""
    row, rest = _row_of(address)
    return row.kind(rest, read_only=row.kind.is_there(rest))


def migrate(address: str, role: str | None = None) -> None:
    """Create the log at an address, or bring it to the newest schema; it is not in use.

    In PostgreSQL its owner does that, and gives a role the rights to serve it.
    """
    row, rest = _row_of(address)
    row.kind.migrate(rest, role)


def file_of(address: str) -> Path | None:
    """Return the file of a log in one; None: it is elsewhere."""
    row, rest = _row_of(address)
    return Path(rest) if row.scheme == "sqlite" else None


def _row_of(address: Path | str) -> tuple[StoreRow, str]:
    """Return the kind of store at an address, and the address without its scheme."""
    scheme, colon, rest = str(address).partition(":")
    if colon and rest.startswith("//"):
        check_choice(scheme, "What the address of a log begins with", STORES)
    if not colon or scheme not in STORES:
        return STORES["sqlite"], str(address)
    return STORES[scheme], rest
