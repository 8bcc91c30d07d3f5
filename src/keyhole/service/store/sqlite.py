"""A log in an SQLite file: one process writes, any number read."""

import json
import os
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import apsw
from msgspec.structs import astuple

from keyhole.base.files import shortened
from keyhole.service.errors import Conflict, StoreDamaged, StoreError, StoreFailed, StoreFull
from keyhole.service.events import Event, Key, Kind, Snapshot
from keyhole.service.store.base import SECRET_SIZE, Store
from keyhole.service.store.chain import Tip, follow, tip_of
from keyhole.service.store.file_lock import Holding
from keyhole.service.store.sqlite_file import (
    MIGRATIONS,
    connect,
    prepare,
    sentences,
    transaction,
    version_of,
)
from keyhole.service.store.wal import Journal

_PAGE, _PAGE_BYTES = 256, 4 * 2**20
"""Events read per page, and the bytes of their bodies that end a page earlier."""

_CHECKPOINT_PAGES = 8_000
"""The size of the write-ahead log that triggers a checkpoint, in pages: 32 MB."""

_KEY_COLUMNS = "prefix, sha256, scopes, rankers, created_at, expires_at, name, used_at"
# The fields of Event, in order.
_COLUMNS = "ranker, seq, kind, key, idem, at, body, link"
_INSERT = f"INSERT INTO events ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"  # noqa: S608
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
        with sentences(self.path):
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
            db = until_written.enter_context(self._writing())
            self._tips.update(follow(events, self._tip))
            db.executemany(_INSERT, map(astuple, events))
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
    def _writing(self) -> Iterator[apsw.Connection]:
        """Provide the write connection for one transaction."""
        with self._write:
            self._check_open()
            if self.read_only:
                raise StoreError(f"{shortened(self.path)} was opened read-only.")
            if self._failed:
                raise StoreFailed(
                    f"{shortened(self.path)} must be reopened: an earlier write to it failed."
                )
            try:
                with self._known_tips(), sentences(self.path), transaction(self._writer):
                    yield self._writer
            except apsw.ConstraintError as error:
                if not str(error).startswith("UNIQUE"):
                    raise
                raise Conflict(
                    "A key or an idempotency key of these events is there already."
                ) from None
            except (StoreFailed, StoreDamaged):
                self._failed = True
                raise
            self._move_pages()

    @contextmanager
    def _known_tips(self) -> Iterator[None]:
        """Clear the cached tips on any error: the disk decides then."""
        try:
            yield
        except BaseException:
            self._tips.clear()
            raise

    def _tip(self, ranker: str) -> Tip:
        """Return the tip of a ranker from the cache; only this process changes it."""
        if ranker not in self._tips:
            self._tips[ranker] = tip_of(_one(self._writer, _LAST, (ranker,)))
        return self._tips[ranker]

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
            with sentences(self.path):
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

    def damage(self) -> Iterator[str]:
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

    @contextmanager
    def _reader(self) -> Iterator[apsw.Connection]:
        """Provide a read connection from the pool."""
        self._check_open()
        try:
            db = self._readers.pop()
        except IndexError:
            db = connect(self.path, read_only=True, vfs=self._vfs)
        try:
            with sentences(self.path):
                yield db
        except BaseException:
            db.close(True)
            raise
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
            raise Conflict(f"There is an access key {key.prefix} already.") from None

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
            with sentences(self.path), transaction(db):
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
