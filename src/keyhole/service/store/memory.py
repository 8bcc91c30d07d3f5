"""A log in memory, lost at exit: for tests and trials."""

import secrets
import threading
from collections.abc import Iterator, Sequence
from typing import ClassVar

import msgspec

from keyhole.base.errors import InvalidInput
from keyhole.service.errors import ConflictingRequest
from keyhole.service.events import Event, Key, Kind, Snapshot
from keyhole.service.store.base import Store
from keyhole.service.store.chain import Tip, follow, tip_of


class MemoryStore(Store):
    """Lists of events, by ranker."""

    is_durable: ClassVar[bool] = False

    def __init__(self, address: str = "", *, read_only: bool = False, create: bool = False) -> None:
        if read_only:
            raise InvalidInput("A log in memory cannot be opened read-only.")
        self._lock = threading.RLock()
        self._events: dict[str, list[Event]] = {}
        self._by_key: dict[tuple[str, str, Kind], Event] = {}
        self._by_idem: dict[tuple[str, str], Event] = {}
        self._snapshots: dict[str, list[Snapshot]] = {}
        self._keys: dict[str, Key] = {}
        self._secret = secrets.token_bytes(32)

    def _tip(self, ranker: str) -> Tip:
        return tip_of(self.last(ranker))

    def append(self, events: Sequence[Event]) -> None:
        with self._lock:
            follow(events, self._tip)
            by_key = {(e.ranker, e.key, e.kind): e for e in events if e.key is not None}
            by_idem = {(e.ranker, e.idem): e for e in events if e.idem is not None}
            is_new = not (by_key.keys() & self._by_key.keys() or by_idem.keys() & self._by_idem)
            n_marked = sum((e.key is not None) + (e.idem is not None) for e in events)
            if not is_new or len(by_key) + len(by_idem) < n_marked:
                raise ConflictingRequest(
                    "A key or an idempotency key of these events is there already."
                )
            self._by_key.update(by_key)
            self._by_idem.update(by_idem)
            for event in events:
                self._events.setdefault(event.ranker, []).append(event)

    def rankers(self) -> list[str]:
        with self._lock:
            return sorted(self._events)

    def last(self, ranker: str) -> Event | None:
        with self._lock:
            events = self._events.get(ranker)
            return events[-1] if events else None

    def events(self, ranker: str, *, after: int = 0, limit: int | None = None) -> Iterator[Event]:
        with self._lock:
            page = self._events.get(ranker, [])[after : None if limit is None else after + limit]
        yield from page

    def event(self, ranker: str, seq: int) -> Event | None:
        with self._lock:
            events = self._events.get(ranker, [])
            return events[seq - 1] if 1 <= seq <= len(events) else None

    def find(self, ranker: str, key: str, kind: Kind) -> Event | None:
        with self._lock:
            return self._by_key.get((ranker, key, kind))

    def find_idem(self, ranker: str, idem: str) -> Event | None:
        with self._lock:
            return self._by_idem.get((ranker, idem))

    def put_snapshot(self, snapshot: Snapshot) -> None:
        with self._lock:
            kept = {each.seq: each for each in self._snapshots.get(snapshot.ranker, [])}
            kept[snapshot.seq] = snapshot
            self._snapshots[snapshot.ranker] = [kept[seq] for seq in sorted(kept)[::-1][:2]]

    def drop_snapshot(self, ranker: str, seq: int) -> None:
        with self._lock:
            kept = self._snapshots.get(ranker, [])
            self._snapshots[ranker] = [each for each in kept if each.seq != seq]

    def probe(self) -> None:
        """Return: memory can always be written."""

    def snapshots(self, ranker: str) -> list[Snapshot]:
        with self._lock:
            return list(self._snapshots.get(ranker, []))

    def secret(self) -> bytes:
        return self._secret

    def take_secret(self, secret: bytes) -> None:
        self._secret = secret

    def keys(self) -> list[Key]:
        with self._lock:
            return sorted(self._keys.values(), key=lambda key: key.prefix)

    def add_key(self, key: Key) -> None:
        with self._lock:
            if key.prefix in self._keys:
                raise ConflictingRequest(f"There is an access key {key.prefix} already.")
            self._keys[key.prefix] = key

    def note_key_use(self, prefix: str, at: int) -> None:
        with self._lock:
            if prefix in self._keys:
                self._keys[prefix] = msgspec.structs.replace(self._keys[prefix], used_at=at)

    def remove_key(self, prefix: str) -> bool:
        with self._lock:
            return self._keys.pop(prefix, None) is not None

    def close(self) -> None:
        """Do nothing: a closed store can still be read."""
