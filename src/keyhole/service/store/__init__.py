"""Stores of the log: one file and one row each."""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from keyhole.base.errors import LibraryMissing, check_choice
from keyhole.base.lazy import named
from keyhole.service.store.base import Store


class StoreRow(NamedTuple):
    """A kind of store: its class, imported when a store is opened."""

    scheme: str
    where: str

    def open(self, address: str, *, read_only: bool = False, create: bool = False) -> Store:
        """Return the log at an address, given without its scheme."""
        try:
            kind: Callable[..., Store] = named(self.where)
        except ModuleNotFoundError as error:
            raise LibraryMissing(f"The log of the service needs {error.name}", "service") from None
        return kind(address, read_only=read_only, create=create)


STORES: dict[str, StoreRow] = {
    row.scheme: row
    for row in (
        StoreRow("sqlite", "keyhole.service.store.sqlite:SqliteStore"),
        StoreRow("memory", "keyhole.service.store.memory:MemoryStore"),
    )
}


def open_store(address: Path | str, *, read_only: bool = False, create: bool = False) -> Store:
    """Return the log at an address: a file name, or a scheme of ``STORES``, a colon and the rest.

    A missing log is created; if there was a log at this address before, only with ``create``. With
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
    scheme, colon, rest = str(address).partition(":")
    if colon and rest.startswith("//"):
        check_choice(scheme, "What the address of a log begins with", STORES)
    if not colon or scheme not in STORES:
        scheme, rest = "sqlite", str(address)
    return STORES[scheme].open(rest, read_only=read_only, create=create)
