"""The contract of a store; ``tests/service/test_stores.py`` checks every row against it."""

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from types import TracebackType
from typing import ClassVar, Self

from keyhole.base.errors import InvalidInput
from keyhole.service.events import Event, Key, Kind, Snapshot

SECRET_SIZE = 32
"""The number of random bytes of a log that make event ids unguessable."""


class Store(ABC):
    """An append-only log of events, with snapshots and access keys beside it.

    One process writes: opening a store for writing locks it until it is closed. Any thread may read
    at any time and sees committed events. A store never interprets the body of an event.
    """

    is_durable: ClassVar[bool] = True
    """Whether the log survives the process."""

    @abstractmethod
    def __init__(self, address: str, *, read_only: bool = False, create: bool = False) -> None:
        """Open the log at an address, given without its scheme."""

    @classmethod
    def migrate(cls, address: str, role: str | None = None) -> None:
        """Create a log, or bring it to the newest schema, and give a role the rights to serve it.

        Opening a file for writing does that.
        """
        if role is not None:
            raise InvalidInput("--grant must be left out for a log in a file: it has no roles.")
        cls(address).close()

    @classmethod
    def is_there(cls, address: str) -> bool:
        """Return whether keys can be changed without making a log first."""
        return os.path.exists(address)

    @abstractmethod
    def append(self, events: Sequence[Event]) -> None:
        """Append events atomically; they are durable when this returns.

        Each must follow the last event of its ranker: the next ``seq``, and a ``link`` that chains
        to the link before it; an empty link is filled in.
        :class:`ConflictingRequest` is raised if one does not follow (another writer was first) or
        if its key or idempotency key exists.
        :class:`StoreFull`: nothing was written and the append may be retried.
        :class:`StoreFailed`: the state of the disk is unknown until the store is reopened.
        """

    def stage(self, events: Sequence[Event]) -> Callable[[], None]:
        """Write events, and return a function that commits and syncs them, in any thread.

        It must be called before the next write. Both raise the errors of :meth:`append`.
        """
        return lambda: self.append(events)

    @abstractmethod
    def rankers(self) -> list[str]:
        """Return the sorted names of all rankers with an event."""

    @abstractmethod
    def last(self, ranker: str) -> Event | None:
        """Return the last event of a ranker."""

    @abstractmethod
    def events(self, ranker: str, *, after: int = 0, limit: int | None = None) -> Iterator[Event]:
        """Yield the events of a ranker with a greater ``seq``, in order, read in pages."""

    @abstractmethod
    def event(self, ranker: str, seq: int) -> Event | None:
        """Return an event by its seq."""

    @abstractmethod
    def find(self, ranker: str, key: str, kind: Kind) -> Event | None:
        """Return the event of a kind on an impression."""

    @abstractmethod
    def find_idem(self, ranker: str, idem: str) -> Event | None:
        """Return the event that came with an idempotency key."""

    @abstractmethod
    def put_snapshot(self, snapshot: Snapshot) -> None:
        """Store a snapshot; keep the previous one and delete older ones."""

    def put_snapshots(self, snapshots: Sequence[Snapshot]) -> None:
        """Store many snapshots, in one transaction if that is faster."""
        for snapshot in snapshots:
            self.put_snapshot(snapshot)

    @abstractmethod
    def drop_snapshot(self, ranker: str, seq: int) -> None:
        """Delete a snapshot."""

    @abstractmethod
    def snapshots(self, ranker: str) -> list[Snapshot]:
        """Return the snapshots of a ranker, newest first."""

    @abstractmethod
    def secret(self) -> bytes:
        """Return the 32 random bytes of this log that make event ids unguessable."""

    @abstractmethod
    def take_secret(self, secret: bytes) -> None:
        """Replace the secret of an empty log, which becomes a copy of another."""

    @abstractmethod
    def keys(self) -> list[Key]:
        """Return all access keys, including those added by other processes."""

    @abstractmethod
    def add_key(self, key: Key) -> None:
        """Add an access key."""

    @abstractmethod
    def note_key_use(self, prefix: str, at: int) -> None:
        """Store the time of the last use of an access key, if it exists."""

    @abstractmethod
    def remove_key(self, prefix: str) -> bool:
        """Remove an access key; return whether it existed."""

    def damage(self) -> Iterator[str]:
        """Yield integrity errors of the underlying storage, in its own words."""
        yield from ()

    def gone(self) -> str | None:
        """Return a sentence if the log is no longer at its place, for instance moved; else None."""
        return None

    @abstractmethod
    def probe(self) -> None:
        """Test whether the log can be written; raise the errors of :meth:`append`."""

    @abstractmethod
    def close(self) -> None:
        """Close the log and release its lock."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
