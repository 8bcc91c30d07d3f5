"""A log in PostgreSQL: one process writes, any number read."""

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, TypeVar

import psycopg
from msgspec.structs import astuple
from psycopg import errors as postgres

from keyhole.service.errors import (
    ConflictingRequest,
    StoreDamaged,
    StoreError,
    StoreFailed,
    StoreInUse,
)
from keyhole.service.events import Event, Key, Kind, Snapshot
from keyhole.service.store import postgres_queries as sql
from keyhole.service.store.addresses import shown_address
from keyhole.service.store.base import SECRET_SIZE, Store
from keyhole.service.store.chain import Tip, follow, tip_of
from keyhole.service.store.postgres_schema import WRITER_LOCK, check_version, migrate
from keyhole.service.store.postgres_server import (
    Database,
    check_direct,
    check_durable,
    connect,
    is_lost,
    one,
    rows,
    sentences,
)
from keyhole.service.store.watch import Watch

_PAGE, _PAGE_BYTES = 256, 4 * 2**20
"""Events read per page, and the bytes of their bodies that end a page earlier."""
_PATIENCE = 2.0
"""Seconds in which a lost connection is restored before a commit fails."""
_LOCKED_FOR = 0.5
"""Seconds in which the session of a process that has just ended gives up its lock."""
_PAUSE, _PAUSE_AT_MOST = 0.01, 0.3
"""Seconds between two attempts, with exponential backoff."""

_PROBE_BYTES = 2**16
"""More than fits into the pages of a table: it goes to a file beside it, which has to grow."""
T = TypeVar("T")


class PostgresStore(Store):
    """A database of PostgreSQL, which ``keyhole db migrate`` has made ready.

    With ``read_only`` it appends nothing, so it can be read while another process writes; access
    keys can still be added and removed.

    Notes
    -----
    The session that writes holds an advisory lock, which tells other processes that the log is in
    use. What keeps a log whole is not the lock, which is lost with its connection, but the epoch: a
    process that opens the log for writing begins a new one, and the database refuses every append
    that names another. A process that was paused cannot append when it comes back.

    If the connection is lost during a commit, the events are sent again over a new one. The primary
    key decides: if they were written, they are found there with the same links.
    """

    def __init__(self, rest: str, *, read_only: bool = False, create: bool = False) -> None:
        self._url = f"postgresql:{rest}"
        self.name = shown_address(self._url)
        self.read_only = read_only
        self._lock = threading.RLock()
        self._write = threading.Lock()
        self._readers: deque[Database] = deque()
        self._tips: dict[str, Tip] = {}
        self._known_keys: list[Key] | None = None
        self._closed = False
        self._inspecting: Database | None = None
        """The connection of an inspection, which is cancelled on close."""
        self._watch: Watch | None = None
        if read_only:
            self._read(lambda db: check_version(db, self.name))
            return
        self._writer = connect(self._url)
        try:
            self._begin_epoch()
            self._secret = self.secret()
            self._watch = Watch(self._look)
        except BaseException:
            self.close()
            raise

    @classmethod
    def migrate(cls, address: str, role: str | None = None) -> None:
        migrate(f"postgresql:{address}", role)

    @classmethod
    def is_there(cls, address: str) -> bool:  # noqa: ARG003
        return True  # only its owner makes one

    # ----------------------------------------------------------------------- writing

    def _begin_epoch(self) -> None:
        """Take over the log: from now on no other process can append to it."""
        db = self._writer
        with sentences(self.name):
            self._check_session(db)
            if not self._is_locked_by(db, _LOCKED_FOR):
                raise StoreInUse(f"{self.name} is in use: another process writes to it.")
            (self._epoch,) = one(db, "SELECT take_over()")
            self._tell_epoch(db)

    def _check_session(self, db: Database) -> None:
        check_version(db, self.name)
        check_durable(db, self.name)
        check_direct(db, self.name)

    def _is_locked_by(self, db: Database, seconds: float) -> bool:
        """Return whether a session has got the lock of the writer within some seconds."""
        ends_at, pause = time.monotonic() + seconds, _PAUSE
        while not one(db, "SELECT pg_try_advisory_lock(%s)", (WRITER_LOCK,))[0]:
            if time.monotonic() > ends_at:
                return False
            time.sleep(pause)
            pause = min(2.0 * pause, _PAUSE_AT_MOST)
        return True

    def _tell_epoch(self, db: Database) -> None:
        one(db, "SELECT set_config('keyhole_writer.epoch', %s, false)", (str(self._epoch),))

    def _connected(self) -> Database:
        """Return the connection that writes; a lost one is replaced if the log is still ours."""
        if not self._writer.closed:
            return self._writer
        db = connect(self._url)
        try:
            with sentences(self.name):
                self._check_session(db)
                if one(db, "SELECT epoch FROM writer")[0] != self._epoch:
                    raise StoreInUse(f"{self.name} is in use: another process has taken it over.")
                if not self._is_locked_by(db, 0.0):  # the server has not noticed the loss yet
                    raise StoreFailed(f"{self.name} is in use by a connection that was lost.")
                self._tell_epoch(db)
        except BaseException:
            db.close()
            raise
        self._writer = db
        return db

    def append(self, events: Sequence[Event]) -> None:
        def send(db: Database, is_repeated: bool) -> None:
            try:
                with db.cursor() as cursor, cursor.copy(sql.COPY) as copy:
                    copy.set_types(sql.TYPES)
                    for event in events:
                        copy.write_row(astuple(event))
            except postgres.UniqueViolation:
                if is_repeated and _are_there(db, events):
                    return
                raise ConflictingRequest(
                    "A key or an idempotency key of these events is there already."
                ) from None

        with self._write, self._known_tips():
            self._check_writable()
            if events:
                after = follow(events, self._tip)
                self._send(send)
                self._tips.update(after)

    def _send(self, work: Callable[[Database, bool], None]) -> None:
        """Do some work over the connection that writes, again over a new one if it is lost.

        The work hears whether an attempt before may have been done.
        """
        ends_at, pause, is_repeated = time.monotonic() + _PATIENCE, _PAUSE, False
        with sentences(self.name):
            while True:
                try:
                    db = self._connected()
                    try:
                        return work(db, is_repeated)
                    except psycopg.Error as error:
                        if not is_lost(db, error):
                            raise
                        db.close()
                        if time.monotonic() > ends_at:
                            raise
                except StoreFailed:  # the connection could not be replaced
                    if time.monotonic() > ends_at:
                        raise
                is_repeated = True
                time.sleep(pause)
                pause = min(2.0 * pause, _PAUSE_AT_MOST)

    def put_snapshot(self, snapshot: Snapshot) -> None:
        self.put_snapshots([snapshot])

    def put_snapshots(self, snapshots: Sequence[Snapshot]) -> None:
        def put(db: Database) -> None:
            for each in snapshots:
                db.execute(
                    sql.PUT_SNAPSHOT.encode(), (each.ranker, each.seq, each.sha256, each.body)
                )
                db.execute(sql.DROP_OLDER.encode(), (each.ranker, each.ranker))

        self._transact(put)

    def drop_snapshot(self, ranker: str, seq: int) -> None:
        query = "DELETE FROM snapshots WHERE ranker = %s AND seq = %s"
        self._transact(lambda db: db.execute(query, (ranker, seq)))

    def take_secret(self, secret: bytes) -> None:
        query = "UPDATE once SET value = %b WHERE name = 'secret'"
        self._transact(lambda db: db.execute(query, (secret,)))
        self._secret = secret

    def probe(self) -> None:
        def fill(db: Database) -> None:
            # A file must grow for it, as for events; nothing of it remains.
            room = bytes(_PROBE_BYTES)
            db.execute("INSERT INTO snapshots VALUES ('', 0, '', %b)", (room,))
            raise psycopg.Rollback

        self._transact(fill)

    def _transact(self, work: Callable[[Database], object]) -> None:
        """Do some work in a transaction, which may be done twice."""

        def send(db: Database, is_repeated: bool) -> None:
            with db.transaction():
                work(db)

        with self._write:
            self._check_writable()
            self._send(send)

    def _check_writable(self) -> None:
        self._check_open()
        if self.read_only:
            raise StoreError(f"{self.name} was opened read-only.")

    @contextmanager
    def _known_tips(self) -> Iterator[None]:
        """Clear the cached tips on any error: the log decides then."""
        try:
            yield
        except BaseException:
            self._tips.clear()
            raise

    def _tip(self, ranker: str) -> Tip:
        """Return the tip of a ranker from the cache; only this process changes it."""
        if ranker not in self._tips:
            self._tips[ranker] = tip_of(self.last(ranker))
        return self._tips[ranker]

    # ----------------------------------------------------------------------- reading

    def rankers(self) -> list[str]:
        return [name for (name,) in self._read(lambda db: rows(db, sql.RANKERS))]

    def last(self, ranker: str) -> Event | None:
        return self._read(lambda db: _event(db, sql.LAST, (ranker,)))

    def events(self, ranker: str, *, after: int = 0, limit: int | None = None) -> Iterator[Event]:
        while limit is None or limit > 0:
            n_wanted = _PAGE if limit is None else min(limit, _PAGE)
            values = (ranker, after, n_wanted, _PAGE_BYTES)
            found = self._read(partial(rows, query=sql.PAGE_OF_EVENTS, values=values))
            page = [Event(*row) for row in found]
            yield from page
            if not page:
                return
            if page[-1].seq <= after:
                raise StoreDamaged(f"{self.name} is damaged: its index is unsorted.")
            after = page[-1].seq
            limit = None if limit is None else limit - len(page)

    def event(self, ranker: str, seq: int) -> Event | None:
        return self._read(lambda db: _event(db, sql.SELECT + " AND seq = %s", (ranker, seq)))

    def find(self, ranker: str, key: str, kind: Kind) -> Event | None:
        query = sql.SELECT + " AND key = %s AND kind = %s"
        return self._read(lambda db: _event(db, query, (ranker, key, kind)))

    def find_idem(self, ranker: str, idem: str) -> Event | None:
        return self._read(lambda db: _event(db, sql.SELECT + " AND idem = %s", (ranker, idem)))

    def snapshots(self, ranker: str) -> list[Snapshot]:
        found = self._read(lambda db: rows(db, sql.SNAPSHOTS, (ranker,)))
        return [Snapshot(*row) for row in found]

    def secret(self) -> bytes:
        found = self._read(lambda db: one(db, sql.FIND_SECRET))
        if found is None or len(found[0]) != SECRET_SIZE:
            raise StoreDamaged(f"{self.name} is damaged: it must have a secret.")
        return bytes(found[0])

    def damage(self) -> Iterator[str]:
        """Read the whole table without its indexes, and compare what they must agree on."""
        found = self._read(self._inspected)
        for ranker, n_events, last in found:
            yield f"ranker {ranker!r} must have {last} events, its table has {n_events}"

    def _inspected(self, db: Database) -> list[Any]:
        self._inspecting = db
        try:
            with db.transaction():
                for scan in ("indexscan", "indexonlyscan", "bitmapscan"):
                    db.execute(f"SET LOCAL enable_{scan} = off".encode())
                db.execute("SET LOCAL statement_timeout = 0")
                return rows(db, sql.MISSING)
        finally:
            self._inspecting = None

    def gone(self) -> str | None:
        return None if self._watch is None or self._closed else self._watch.said

    def _look(self) -> str | None:
        """Return a sentence if the server cannot be reached, or has another log than before."""
        try:
            if self.secret() == self._secret:
                return None
        except StoreError as error:
            return None if self._closed else str(error)
        return f"{self.name} must hold the log that the service began with, and holds another."

    def _read(self, what: Callable[[Database], T]) -> T:
        """Return what a function reads with a connection of the pool, if need be with a new one."""
        self._check_open()
        with sentences(self.name):
            while True:
                db = self._from_pool()
                is_new = db is None
                if db is None:
                    db = connect(self._url)
                try:
                    found = what(db)
                except BaseException as error:
                    was_lost = isinstance(error, psycopg.Error) and is_lost(db, error)
                    db.close()
                    self._check_open()
                    if is_new or not was_lost:
                        raise
                    continue  # all of the pool are lost when the server restarts
                with self._lock:
                    if self._closed:
                        db.close()
                    else:
                        self._readers.append(db)
                return found

    def _from_pool(self) -> Database | None:
        with suppress(IndexError):
            return self._readers.pop()
        return None

    # ----------------------------------------------------------------------- access keys

    def keys(self) -> list[Key]:
        if self._known_keys is not None and self.gone() is not None:
            return self._known_keys  # what needs no log is served while the server is down
        self._known_keys = [
            Key(prefix, sha256, tuple(scopes), tuple(rankers), *rest)
            for prefix, sha256, scopes, rankers, *rest in self._read(lambda db: rows(db, sql.KEYS))
        ]
        return self._known_keys

    def add_key(self, key: Key) -> None:
        values = (key.prefix, key.sha256, list(key.scopes), list(key.rankers))
        rest = (key.created_at, key.expires_at, key.name, key.used_at)
        if not self._changed(sql.ADD_KEY, (*values, *rest)):
            raise ConflictingRequest(f"There is an access key {key.prefix} already.")

    def note_key_use(self, prefix: str, at: int) -> None:
        self._changed("UPDATE keys SET used_at = %s WHERE prefix = %s", (at, prefix))

    def remove_key(self, prefix: str) -> bool:
        return self._changed("DELETE FROM keys WHERE prefix = %s", (prefix,)) > 0

    def _changed(self, query: str, values: tuple[object, ...]) -> int:
        """Return how many keys a statement has changed."""
        return self._read(lambda db: db.execute(query.encode(), values).rowcount)

    # ----------------------------------------------------------------------- the end

    def _check_open(self) -> None:
        if self._closed:
            raise StoreError(f"{self.name} has been closed.")

    def close(self) -> None:
        with self._write, self._lock:
            if self._closed:
                return
            self._closed = True
            inspecting = self._inspecting
            if inspecting is not None:
                with suppress(psycopg.Error):
                    inspecting.cancel_safe(timeout=1.0)
            while self._readers:
                self._readers.pop().close()
            if not self.read_only:
                self._writer.close()
        if self._watch is not None:
            self._watch.stop()


def _event(db: Database, query: str, values: tuple[object, ...]) -> Event | None:
    row = one(db, query, values)
    return None if row is None else Event(*row)


def _are_there(db: Database, events: Sequence[Event]) -> bool:
    """Return whether a commit whose answer was lost had written its events: all, or none."""
    first = _event(db, sql.SELECT + " AND seq = %s", (events[0].ranker, events[0].seq))
    return first is not None and first.link == events[0].link
