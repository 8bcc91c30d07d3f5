"""Disks that are full or fail, at every call: nothing is promised that is not kept."""

import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import apsw
import pytest

from bench.disks import FailingDisk, io_error
from keyhole.service.errors import StoreFailed, StoreFull
from keyhole.service.events import Event, Snapshot
from keyhole.service.store.chain import tip_of
from keyhole.service.store.integrity import check_log
from keyhole.service.store.sqlite import SqliteStore
from tests.service.chains import chain, more


class Fault(NamedTuple):
    of: str
    error: Callable[[], Exception]
    is_full: bool = False


FAULTS = {
    "full": Fault("write", apsw.FullError, is_full=True),
    "write": Fault("write", io_error(apsw.SQLITE_IOERR_WRITE)),
    "read": Fault("read", io_error(apsw.SQLITE_IOERR_READ)),
    "sync": Fault("sync", io_error(apsw.SQLITE_IOERR_FSYNC)),
    "truncate": Fault("truncate", io_error(apsw.SQLITE_IOERR_TRUNCATE)),
}
BATCHES = (3, 1, 4, 1, 5, 2)


class Trial:
    """A service that appends batches on a disk that fails, and notes what it was promised."""

    def __init__(self, path: Path, disk: FailingDisk, fault: Fault, *, lasts: bool) -> None:
        self.path, self.disk, self.fault, self.lasts = path, disk, fault, lasts
        self.promised: list[Event] = []
        self.n_troubles = 0

    def open(self) -> SqliteStore:
        # Pages are moved all the time, so that writes to the database fail as well.
        return SqliteStore(self.path, _vfs=self.disk.name, _checkpoint_pages=4)

    def run(self) -> None:
        store = self._opened()
        for batch, size in enumerate(BATCHES):
            store = self._append(store, size)
            if batch == 2:
                store = self._snapshot(store)
        store.close()
        self.disk.mend()
        with self.open() as store:
            assert list(store.events("shop")) == self.promised
            assert check_log(store) == {"shop": sum(BATCHES)}
            more(store, 2)

    def _opened(self) -> SqliteStore:
        try:
            store = self.open()
        except (StoreFull, StoreFailed):
            self._trouble()
            store = self.open()
        assert store._writer.pragma("journal_mode") == "wal"  # or readers would stop the writer
        return store

    def _append(self, store: SqliteStore, size: int) -> SqliteStore:
        events = chain(size, tip=tip_of(self.promised[-1] if self.promised else None))
        try:
            store.append(events)
        except StoreFull:
            assert self.fault.is_full
            assert list(store.events("shop")) == self.promised
            assert self._left_by_a_crash() == self.promised
            if self.lasts:  # as long as there is no room
                with pytest.raises(StoreFull):
                    store.append(events)
            self._trouble()
            store.append(events)  # and by the same store once there is
        except StoreFailed:
            assert not self.fault.is_full
            self._trouble()
            store = self._reopened(store)
            kept = list(store.events("shop"))
            # Whether the batch was kept nobody could tell; but it was kept whole or not at all.
            assert kept in (self.promised, self.promised + events)
            if kept == self.promised:
                store.append(events)
        self.promised += events
        return store

    def _left_by_a_crash(self) -> list[Event]:
        """Return the events of a log whose process ends here: what was refused stays refused."""
        left = self.path.with_name("left.db")
        for end in ("", "-wal"):
            shutil.copy(f"{self.path}{end}", f"{left}{end}")
        with SqliteStore(left, _synchronous="OFF") as store:
            return list(store.events("shop"))

    def _snapshot(self, store: SqliteStore) -> SqliteStore:
        try:
            store.put_snapshot(Snapshot("shop", 1, "", bytes(5_000)))
        except StoreFull:
            self._trouble()
        except StoreFailed:
            self._trouble()
            store = self._reopened(store)
        return store

    def _reopened(self, store: SqliteStore) -> SqliteStore:
        with pytest.raises(StoreFailed, match="must be reopened"):
            more(store, 1)
        store.close()
        return self.open()

    def _trouble(self) -> None:
        self.n_troubles += 1
        self.disk.mend()


@pytest.mark.parametrize("lasts", [True, False])
@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_at_every_call_keeps_every_promise(tmp_path, monkeypatch, name, lasts):
    # SQLite copes with some faults and tells nobody of them; apsw then tells Python's own hook.
    monkeypatch.setattr(sys, "unraisablehook", lambda _: None)
    fault, n_noticed, at = FAULTS[name], 0, 0
    while True:
        folder = tmp_path / str(at)
        folder.mkdir()
        disk = FailingDisk(fault.of, at, fault.error, n_failures=10**6 if lasts else 1)
        trial = Trial(folder / "log.db", disk, fault, lasts=lasts)
        trial.run()
        n_noticed += trial.n_troubles > 0
        disk.unregister()
        if disk.n_calls <= at:
            break
        at += 1
    # What SQLite asks of a disk differs by version, but there is no workload without these.
    assert at >= {"read": 20, "write": 40, "sync": 10, "truncate": 1}[fault.of]
    assert n_noticed >= at // 3
