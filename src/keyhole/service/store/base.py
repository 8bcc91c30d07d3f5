"""What every store of the log must do; ``tests/service/test_stores.py`` holds each row to it."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from types import TracebackType
from typing import ClassVar, Self

from keyhole.service.events import Event, Key, Kind, Snapshot


class Store(ABC):
    """An append-only log of events, with snapshots and access keys beside it.

    One process writes: whoever opens a store for writing holds it until it is closed. Any thread
    may read at any time and sees what was committed. A store never interprets the body of an event.
    """

    is_durable: ClassVar[bool] = True
    """Whether it outlives the process."""

    @abstractmethod
    def append(self, events: Sequence[Event]) -> None:
        """Write events, all or none of them; they are on the disk when this returns.

        Each must follow the last event of its ranker: the next ``seq``, and a ``link`` made of the
        link before it; one whose link is empty is given it. One that does not follow raises
        :class:`Conflict` (another writer got there first), and so does a key or an idempotency key
        that is there already. :class:`StoreFull` says that nothing was kept and that appending may
        be tried again; :class:`StoreFailed`, that
        what is on the disk is not known until the store is opened anew.
        """

    def stage(self, events: Sequence[Event]) -> Callable[[], None]:
        """Begin to append events, and return what ends it: called in any thread, it syncs.

        It must be called before anything else is written. Both raise what :meth:`append` does.
        """
        return lambda: self.append(events)

    @abstractmethod
    def rankers(self) -> list[str]:
        """Return the names of all rankers with an event, sorted."""

    @abstractmethod
    def last(self, ranker: str) -> Event | None:
        """Return the last event of a ranker."""

    @abstractmethod
    def events(self, ranker: str, *, after: int = 0, limit: int | None = None) -> Iterator[Event]:
        """Yield the events of a ranker with a greater ``seq``, in order, read in pages."""

    @abstractmethod
    def event(self, ranker: str, seq: int) -> Event | None:
        """Return one event by its number."""

    @abstractmethod
    def find(self, ranker: str, key: str, kind: Kind) -> Event | None:
        """Return the event of a kind that is about an impression."""

    @abstractmethod
    def find_idem(self, ranker: str, idem: str) -> Event | None:
        """Return the event that came with an idempotency key."""

    @abstractmethod
    def put_snapshot(self, snapshot: Snapshot) -> None:
        """Keep a snapshot and the one before it, and forget older ones."""

    def put_snapshots(self, snapshots: Sequence[Snapshot]) -> None:
        """Keep many snapshots, at once where that is quicker."""
        for snapshot in snapshots:
            self.put_snapshot(snapshot)

    @abstractmethod
    def drop_snapshot(self, ranker: str, seq: int) -> None:
        """Forget a snapshot."""

    @abstractmethod
    def snapshots(self, ranker: str) -> list[Snapshot]:
        """Return the snapshots of a ranker, newest first."""

    @abstractmethod
    def secret(self) -> bytes:
        """Return the 32 random bytes of this log, which ids that cannot be guessed are made of."""

    @abstractmethod
    def keys(self) -> list[Key]:
        """Return all access keys, those added by other processes included."""

    @abstractmethod
    def add_key(self, key: Key) -> None:
        """Keep an access key."""

    @abstractmethod
    def note_key_use(self, prefix: str, at: int) -> None:
        """Remember when an access key was used last, if there is one."""

    @abstractmethod
    def remove_key(self, prefix: str) -> bool:
        """Forget an access key; return whether there was one."""

    def damage(self) -> Iterator[str]:
        """Yield what is wrong with where the log is kept, in words of that place."""
        yield from ()

    def gone(self) -> str | None:
        """Return what became of the place where the log is kept, if it is no longer there."""
        return None

    @abstractmethod
    def probe(self) -> None:
        """Write something that changes nothing, or raise what :meth:`append` does."""

    @abstractmethod
    def close(self) -> None:
        """Let go of the log."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
