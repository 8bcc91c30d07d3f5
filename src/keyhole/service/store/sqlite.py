"""A log in an SQLite file: one process writes, any number read."""

import json
import os
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from itertools import chain
from pathlib import Path
from types import TracebackType
from typing import Any

import apsw
from msgspec.structs import astuple

from keyhole.base.files import shortened
from keyhole.service.errors import (
    ConflictingRequest,
    StoreDamaged,
    StoreError,
    StoreFailed,
    StoreFull,
)
from keyhole.service.events import Event, Key, Kind, Snapshot
from keyhole.service.store.base import SECRET_SIZE, Store
from keyhole.service.store.chain import Tip, follow, tip_of
from keyhole.service.store.file_lock import Holding, acknowledged
from keyhole.service.store.sqlite_file import (
    MIGRATIONS,
    Sentences,
    connect,
    prepare,
    transaction,
    version_of,
)
from keyhole.service.store.wal import Journal

_PAGE, _PAGE_BYTES = 256, 4 * 2**20
"""Events read per page, and the bytes of their bodies that end a page earlier."""

_CHECKPOINT_PAGES = 4_000
"""The size of the write-ahead log that triggers a checkpoint, in pages: 16 MB."""

_KEY_COLUMNS = "prefix, sha256, scopes, rankers, created_at, expires_at, name, used_at"
# The fields of Event, in order.
_COLUMNS = "ranker, seq, kind, key, idem, at, body, link"
_INSERT = f"INSERT INTO events ({_COLUMNS}) VALUES "  # noqa: S608
_VALUES = "(?, ?, ?, ?, ?, ?, ?, ?)"
_ROWS = 8
"""Events per INSERT: a statement per event takes a third longer, of more than that as well."""
_INSERT_ROWS = _INSERT + ", ".join([_VALUES] * _ROWS)
_SELECT = f"SELECT {_COLUMNS} FROM events WHERE ranker = ?"  # noqa: S608
_LAST = _SELECT + " ORDER BY seq DESC LIMIT 1"


def _one(db: apsw.Connection, query: str, values: tuple[str | int, ...]) -> Event | None:
    """Return the event of a query; fetching all rows ends the read transaction."""
    rows: list[Any] = db.execute(query, values).fetchall()
    return Event(*rows[0]) if rows else None


def _rows(
    db: apsw.Connection, query: str, values: tuple[str | int, ...]
) -> tuple[list[Event], bool]:
    """Return events that a query finds, and whether there may be more: large ones are left."""
    found: list[Event] = []
    cursor, n_bytes = db.cursor(), 0
    try:
        for row in cursor.execute(query, values):
            event = Event(*row)
            found.append(event)
            body: object = event.body  # of a damaged row it may be anything
            n_bytes += len(body) if isinstance(body, bytes) else 0
            if n_bytes >= _PAGE_BYTES:
                return found, True
    finally:
        cursor.close(True)
    return found, False


class _Reader(Sentences):
    """A read connection within a ``with`` block, which goes back to the pool unless it failed."""

    __slots__ = ("_db", "_end")

    def __init__(self, path: Path, db: apsw.Connection, end: Callable[[apsw.Connection], None]):
        super().__init__(path)
        self._db, self._end = db, end

    def __enter__(self) -> apsw.Connection:
        """Return the connection."""
        return self._db

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Give the connection back, or close it and raise the sentence of the error."""
        if error is None:
            self._end(self._db)
            return
        self._db.close(True)
        super().__exit__(kind, error, trace)


class SqliteStore(Store):
    """An SQLite database in WAL mode, synced before :meth:`append` returns.

    With ``read_only`` it appends nothing and needs no lock, so it can be read while another process
    writes; access keys can still be added and removed.

    Notes
    -----
    After an I/O error other than a full disk the state of the disk is unknown, and a retried fsync
    may report success for lost pages. So nothing more is appended until the log is reopened, which
    reads it from the disk.
    Arguments that start with an underscore are for tests: SQLite's sync mode, its VFS, the
    migrations and the checkpoint size.
    """

    def __init__(
        self,
        path: Path | str,
        *,
        read_only: bool = False,
        create: bool = False,
        _synchronous: str = "FULL",
        _vfs: str | None = None,
        _migrations: Sequence[str] = MIGRATIONS,
        _checkpoint_pages: int = _CHECKPOINT_PAGES,
    ) -> None:
        self.path = Path(os.path.realpath(path))
        self.read_only = read_only
        self._vfs = _vfs
        self._checkpoint_pages = _checkpoint_pages
        self._lock = threading.RLock()
        self._write = threading.Lock()
        """Held during a transaction, whose commit may run in another thread."""
        self._readers: deque[apsw.Connection] = deque()
        self._tips: dict[str, Tip] = {}
        self._failed = False
        self._closed = False
        self._inspecting: apsw.Connection | None = None
        """The connection of an integrity check, which is interrupted on close."""
        self._n_pages = 0
        if read_only:
            with self._reader() as db:
                if version_of(db, self.path, len(_migrations)) < len(_migrations):
                    raise StoreError(
                        f"{shortened(path)} must be opened by keyhole serve once, which migrates "
                        "it: an older version wrote it."
                    )
            return
        self._holding = Holding(self.path, create=create)
        try:
            journal = Journal(self.path)
            self._writer = connect(self.path, vfs=_vfs, synchronous=_synchronous)
            try:
                self._check_journal(journal)
                prepare(self._writer, self.path, _migrations)
                self._holding.mark()
                if lost := self._lost():
                    raise StoreDamaged(f"{lost}.")
                self._writer.set_wal_hook(self._note_pages)
            except BaseException:
                with suppress(apsw.Error):
                    self._writer.close()
                raise
        except BaseException:
            self._holding.close()
            raise

    def _check_journal(self, journal: Journal) -> None:
        """Raise if the write-ahead log of a crashed process is cut short."""
        if not journal.frames:
            return
        with Sentences(self.path):
            n_read, _ = self._writer.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
        if journal.is_cut_short(n_read):
            # On a normal close SQLite would delete the evidence.
            self._writer.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
            raise StoreDamaged(
                f"{shortened(self.path)}-wal is damaged: the last acknowledged events cannot be "
                "read. Restore a backup; keyhole db backup saves the events that can be read."
            )

    # ----------------------------------------------------------------------- writing

    def append(self, events: Sequence[Event]) -> None:
        self.stage(events)()

    def stage(self, events: Sequence[Event]) -> Callable[[], None]:
        if not events:
            return lambda: None
        with ExitStack() as until_written:
            db = until_written.enter_context(self._writing(events[-1]))
            for ranker in {event.ranker for event in events}:
                self._know_tip(ranker)
            self._tips.update(follow(events, self._tips.__getitem__))
            n_even = len(events) - len(events) % _ROWS
            for first in range(0, n_even, _ROWS):
                rows = map(astuple, events[first : first + _ROWS])
                db.execute(_INSERT_ROWS, tuple(chain.from_iterable(rows)))
            db.executemany(_INSERT + _VALUES, map(astuple, events[n_even:]))
            # SQLite releases the GIL for every row, and getting it back from a busy thread takes
            # milliseconds: so insert rows here, and only commit in the other thread.
            return until_written.pop_all().close

    def put_snapshot(self, snapshot: Snapshot) -> None:
        self.put_snapshots([snapshot])

    def put_snapshots(self, snapshots: Sequence[Snapshot]) -> None:
        with self._writing() as db:
            for each in snapshots:
                db.execute(
                    "INSERT OR REPLACE INTO snapshots VALUES (?, ?, ?, ?)",
                    (each.ranker, each.seq, each.sha256, each.body),
                )
                db.execute(
                    "DELETE FROM snapshots WHERE ranker = ? AND seq NOT IN "
                    "(SELECT seq FROM snapshots WHERE ranker = ? ORDER BY seq DESC LIMIT 2)",
                    (each.ranker, each.ranker),
                )

    def drop_snapshot(self, ranker: str, seq: int) -> None:
        with self._writing() as db:
            db.execute("DELETE FROM snapshots WHERE ranker = ? AND seq = ?", (ranker, seq))

    def take_secret(self, secret: bytes) -> None:
        with self._writing() as db:
            db.execute("UPDATE once SET value = ? WHERE name = 'secret'", (secret,))

    def probe(self) -> None:
        with self._writing() as db:
            db.execute(f"PRAGMA user_version = {db.pragma('user_version')}")

    @contextmanager
    def _writing(self, last: Event | None = None) -> Iterator[apsw.Connection]:
        """Provide the write connection for one transaction, which may append events."""
        with self._write:
            self._check_open()
            if self.read_only:
                raise StoreError(f"{shortened(self.path)} was opened read-only.")
            if self._failed:
                raise StoreFailed(
                    f"{shortened(self.path)} must be reopened: an earlier write to it failed."
                )
            try:
                with self._known_tips(), Sentences(self.path), transaction(self._writer):
                    yield self._writer
            except apsw.ConstraintError as error:
                if not str(error).startswith("UNIQUE"):
                    raise
                raise ConflictingRequest(
                    "A key or an idempotency key of these events is there already."
                ) from None
            except (StoreFailed, StoreDamaged):
                self._failed = True
                raise
            if last is not None:
                self._holding.acknowledge(last)
            self._move_pages()

    @contextmanager
    def _known_tips(self) -> Iterator[None]:
        """Clear the cached tips on any error: the disk decides then."""
        try:
            yield
        except BaseException:
            self._tips.clear()
            raise

    def _know_tip(self, ranker: str) -> None:
        """Read the tip of a ranker once; only this process changes it."""
        if ranker not in self._tips:
            self._tips[ranker] = tip_of(_one(self._writer, _LAST, (ranker,)))

    def _note_pages(self, db: apsw.Connection, name: str, n_pages: int) -> int:
        self._n_pages = n_pages
        return apsw.SQLITE_OK

    def _move_pages(self) -> None:
        """Checkpoint the write-ahead log once it is large.

        Appended events are durable already. On a full disk the next commit retries.
        """
        if self._n_pages < self._checkpoint_pages:
            return
        try:
            with Sentences(self.path):
                self._writer.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
        except StoreFull:
            pass
        except StoreError:
            self._failed = True

    # ----------------------------------------------------------------------- reading

    def rankers(self) -> list[str]:
        # One index seek per ranker instead of a scan of all events.
        names = [""]
        query = "SELECT min(ranker) FROM events WHERE ranker > ?"
        with self._reader() as db:
            while (name := db.execute(query, (names[-1],)).get) is not None:
                if name <= names[-1]:
                    raise StoreDamaged(f"{shortened(self.path)} is damaged: its index is unsorted.")
                names.append(name)
        return names[1:]

    def last(self, ranker: str) -> Event | None:
        return self._one(_LAST, (ranker,))

    def events(self, ranker: str, *, after: int = 0, limit: int | None = None) -> Iterator[Event]:
        query = _SELECT + " AND seq > ? ORDER BY seq LIMIT ?"
        while limit is None or limit > 0:
            n_wanted = _PAGE if limit is None else min(limit, _PAGE)
            with self._reader() as db:
                page, is_cut = _rows(db, query, (ranker, after, n_wanted))
            yield from page
            if len(page) < n_wanted and not is_cut:
                return
            if page[-1].seq <= after:
                raise StoreDamaged(f"{shortened(self.path)} is damaged: its index is unsorted.")
            after = page[-1].seq
            limit = None if limit is None else limit - len(page)

    def event(self, ranker: str, seq: int) -> Event | None:
        return self._one(_SELECT + " AND seq = ?", (ranker, seq))

    def find(self, ranker: str, key: str, kind: Kind) -> Event | None:
        return self._one(_SELECT + " AND key = ? AND kind = ?", (ranker, key, kind))

    def find_idem(self, ranker: str, idem: str) -> Event | None:
        return self._one(_SELECT + " AND idem = ?", (ranker, idem))

    def snapshots(self, ranker: str) -> list[Snapshot]:
        query = "SELECT * FROM snapshots WHERE ranker = ? ORDER BY seq DESC"
        with self._reader() as db:
            return [Snapshot(*row) for row in db.execute(query, (ranker,))]

    def secret(self) -> bytes:
        with self._reader() as db:
            secret = db.execute("SELECT value FROM once WHERE name = 'secret'").get
        if type(secret) is not bytes or len(secret) != SECRET_SIZE:
            raise StoreDamaged(f"{shortened(self.path)} is damaged: it must have a secret.")
        return secret

    def _lost(self) -> str | None:
        """Return a sentence if the last acknowledged event is not in the log; else None."""
        told = acknowledged(self.path)
        if told is None:
            return None
        event = self.event(told.ranker, told.seq)
        if event is not None and event.link.hex() == told.link:
            return None
        return (
            f"{shortened(self.path)} must hold event {told.seq} of ranker {told.ranker!r}, which "
            "was acknowledged, as the file with the suffix .lock beside it says: put back the file "
            "with the suffix -wal that belongs to it, restore a backup with keyhole db restore, or "
            "delete the .lock file to go on without the lost events"
        )

    def damage(self) -> Iterator[str]:
        if lost := self._lost():
            yield lost
        with self._reader() as db:
            self._inspecting = db
            try:
                found = db.execute("PRAGMA integrity_check(10)").fetchall()
            finally:
                self._inspecting = None
        for (said,) in found:
            if said != "ok":
                yield " ".join(str(said).split())

    def gone(self) -> str | None:
        return None if self.read_only else self._holding.gone()

    def _one(self, query: str, values: tuple[str | int, ...]) -> Event | None:
        with self._reader() as db:
            return _one(db, query, values)

    def _reader(self) -> "_Reader":
        """Provide a read connection from the pool."""
        self._check_open()
        try:
            db = self._readers.pop()
        except IndexError:
            db = connect(self.path, read_only=True, vfs=self._vfs)
        return _Reader(self.path, db, self._end_reading)

    def _end_reading(self, db: apsw.Connection) -> None:
        with self._lock:
            if self._closed:
                db.close(True)
            else:
                self._readers.append(db)

    # ----------------------------------------------------------------------- access keys

    def keys(self) -> list[Key]:
        with self._reader() as db:
            rows: list[Any] = db.execute(
                f"SELECT {_KEY_COLUMNS} FROM keys ORDER BY prefix"  # noqa: S608
            ).fetchall()
        try:
            return [
                Key(prefix, sha256, tuple(json.loads(scopes)), tuple(json.loads(rankers)), *rest)
                for prefix, sha256, scopes, rankers, *rest in rows
            ]
        except (TypeError, ValueError):
            raise StoreDamaged(
                f"{shortened(self.path)} is damaged: a key cannot be read."
            ) from None

    def add_key(self, key: Key) -> None:
        row = (key.prefix, key.sha256, json.dumps(key.scopes), json.dumps(key.rankers))
        try:
            with self._changing_keys() as db:
                db.execute(
                    f"INSERT INTO keys ({_KEY_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",  # noqa: S608
                    (*row, key.created_at, key.expires_at, key.name, key.used_at),
                )
        except apsw.ConstraintError:
            raise ConflictingRequest(f"There is an access key {key.prefix} already.") from None

    def note_key_use(self, prefix: str, at: int) -> None:
        with self._changing_keys() as db:
            db.execute("UPDATE keys SET used_at = ? WHERE prefix = ?", (at, prefix))

    def remove_key(self, prefix: str) -> bool:
        with self._changing_keys() as db:
            db.execute("DELETE FROM keys WHERE prefix = ?", (prefix,))
            return db.changes() > 0

    @contextmanager
    def _changing_keys(self) -> Iterator[apsw.Connection]:
        """Provide a separate connection: keys change while another process writes events."""
        self._check_open()
        db = connect(self.path, vfs=self._vfs)
        try:
            with Sentences(self.path), transaction(db):
                yield db
        finally:
            db.close()

    # ----------------------------------------------------------------------- the end

    def _check_open(self) -> None:
        if self._closed:
            raise StoreError(f"{shortened(self.path)} has been closed.")

    def close(self) -> None:
        with self._write, self._lock:
            if self._closed:
                return
            self._closed = True
            if self._inspecting is not None:
                self._inspecting.interrupt()
            while self._readers:
                self._readers.pop().close(True)
            if self.read_only:
                return
            # Appended events are durable; the next opening retries the checkpoint.
            with suppress(apsw.Error):
                self._writer.close()
            self._holding.close()
