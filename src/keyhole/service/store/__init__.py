"""Stores of the log: one file and one row each."""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from keyhole.base.errors import LibraryMissing, check_choice
from keyhole.base.lazy import named
from keyhole.service.store.base import Store


class StoreRow(NamedTuple):
    """A kind of store: what its addresses begin with, and its class, imported when it is opened."""

    scheme: str
    where: str

    def open(self, address: str, *, read_only: bool = False, create: bool = False) -> Store:
        """Return the log at an address, less its scheme."""
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
    """Return the log at an address: a file, or a scheme of ``STORES``, a colon and the rest.

    A log that is not there yet is made, but not where there was one before, unless ``create`` says
    so. With ``read_only`` it must be there: it is then read beside
    the process that writes it, and of all that a store keeps only access keys can change.

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
