"""What is true of logs in files of SQLite beyond the contract of stores."""

import os
import random
import shutil
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import apsw
import pytest

from bench.disks import PaperDisk, RecordingDisk
from keyhole.service.errors import (
    StoreDamaged,
    StoreError,
    StoreFailed,
    StoreInUse,
    StoreNewer,
)
from keyhole.service.events import Key
from keyhole.service.store import backup, sqlite, sqlite_file
from keyhole.service.store.integrity import check_log
from keyhole.service.store.sqlite import SqliteStore
from keyhole.service.store.sqlite_file import MIGRATIONS
from tests.service.chains import chain, more


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "log.db"


def change(path: Path, statement: str) -> None:
    """Do to a database what no store would do."""
    db = apsw.Connection(str(path))
    db.execute(statement)
    db.close()


def test_only_the_owner_may_read(path):
    before = os.umask(0)
    try:
        with SqliteStore(path) as store:
            more(store, 3)
            files = list(path.parent.iterdir())
            assert {file.name for file in files} == {
                "log.db",
                "log.db-shm",
                "log.db-wal",
                "log.db.lock",
            }
            assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}
    finally:
        os.umask(before)


def test_as_many_events_as_come_are_in_the_log_in_order(path):
    """Rows are inserted some at a time, and what is left over one by one."""
    written = []
    with SqliteStore(path) as store:
        for n_events in range(1, 2 * sqlite._ROWS + 2):
            written += more(store, n_events)
    with SqliteStore(path, read_only=True) as store:
        assert list(store.events("shop")) == written


def test_a_log_has_one_lock_under_all_its_names(path):
    link = path.with_name("other.db")
    link.symlink_to(path)
    with SqliteStore(path), pytest.raises(StoreInUse):
        SqliteStore(link)


def test_events_neither_change_nor_go(path):
    with SqliteStore(path) as store:
        events = more(store, 3)
    for statement in ("UPDATE events SET at = 0", "DELETE FROM events WHERE seq = 3"):
        with pytest.raises(apsw.ConstraintError, match="events are never"):
            change(path, statement)
    with SqliteStore(path) as store:
        assert list(store.events("shop")) == events


@pytest.mark.parametrize(
    ("forgery", "sentence"),
    [
        ("UPDATE events SET body = x'00' WHERE seq = 4", "The event after 3 .* must link to"),
        ("UPDATE events SET at = at + 1 WHERE seq = 1", "The event after 0 .* must link to"),
        ("DELETE FROM events WHERE seq = 4", "after 3 of ranker 'shop' must have seq 4, got 5"),
    ],
)
def test_forged_events_show(path, forgery, sentence):
    with SqliteStore(path) as store:
        more(store, 9)
    for trigger in ("events_never_change", "events_never_go"):
        change(path, f"DROP TRIGGER {trigger}")
    change(path, forgery)
    with SqliteStore(path) as store, pytest.raises(StoreDamaged, match=sentence):
        check_log(store)


# ----------------------------------------------------------------------------- forms


def test_a_newer_form_is_refused_and_left_alone(path):
    with SqliteStore(path) as store:
        events = more(store, 3)
    change(path, f"PRAGMA user_version = {len(MIGRATIONS) + 1}")
    content = path.read_bytes()
    for read_only in (False, True):
        with pytest.raises(StoreNewer, match=r"or lower, got \d+: a newer Keyhole wrote it"):
            SqliteStore(path, read_only=read_only)
    assert path.read_bytes() == content
    change(path, f"PRAGMA user_version = {len(MIGRATIONS)}")
    with SqliteStore(path) as store:
        assert list(store.events("shop")) == events


NEXT_FORM = (*MIGRATIONS, "CREATE TABLE extra (x); INSERT INTO extra VALUES (1), (2)")


def test_an_older_form_is_brought_up_by_the_one_that_writes(path):
    with SqliteStore(path) as store:
        events, secret = more(store, 3), store.secret()
    with pytest.raises(StoreError, match="must be opened by keyhole serve once"):
        SqliteStore(path, read_only=True, _migrations=NEXT_FORM)
    for _ in range(2):
        with SqliteStore(path, _migrations=NEXT_FORM) as store:
            assert list(store.events("shop")) == events
            assert store.secret() == secret
    with pytest.raises(StoreNewer):
        SqliteStore(path)


def test_a_power_cut_amid_a_new_form_leaves_the_old_or_the_new(path):
    with SqliteStore(path) as store:
        events = more(store, 30, size=500)
    disk, paper = RecordingDisk(), PaperDisk({"log.db": path.read_bytes()})
    with SqliteStore(path, _vfs=disk.name, _migrations=NEXT_FORM):
        pass
    disk.unregister()
    numbers, versions = random.Random(0), []
    for number, call in enumerate(disk.calls):
        paper.do(call)
        for repeat in range(3):
            folder = path.parent / f"{number}-{repeat}"
            folder.mkdir()
            for name, content in paper.image(numbers).items():
                (folder / name).write_bytes(content)
            image = apsw.Connection(str(folder / "log.db"))
            versions.append(image.pragma("user_version"))
            image.close()
            with SqliteStore(folder / "log.db", _synchronous="OFF", _migrations=NEXT_FORM) as store:
                assert check_log(store) == {"shop": 30}
                assert list(store.events("shop")) == events
    assert set(versions) == {len(MIGRATIONS), len(NEXT_FORM)}


# ----------------------------------------------------------------------------- damage


def test_what_is_no_log_is_refused_in_one_sentence(path):
    path.write_text("seq,ranker\n1,shop\n" * 100)
    for read_only in (False, True):
        with pytest.raises(StoreDamaged, match="must be a log of Keyhole's service: file is not a"):
            SqliteStore(path, read_only=read_only)
    path.unlink()
    change(path, "CREATE TABLE other (x)")
    with pytest.raises(StoreDamaged, match="it is another database"):
        SqliteStore(path)
    with pytest.raises(StoreError, match="cannot be opened"):
        SqliteStore(path.parent / "no" / "folder.db")
    path.unlink()
    path.mkdir()
    with pytest.raises(StoreError, match="cannot be opened: Is a directory"):
        SqliteStore(path)


def test_where_there_is_no_write_ahead_log_there_is_no_log(path):
    # As on a disk of a network: no memory can be shared, and readers would stop the writer.
    with pytest.raises(StoreFailed, match="cannot be given a write-ahead log"):
        SqliteStore(path, _vfs="unix-none")
    with SqliteStore(path) as store:
        more(store, 1)


def test_an_empty_file_becomes_a_log(path):
    path.touch()
    with SqliteStore(path) as store:
        more(store, 3)
    path.with_name("empty.db").touch()
    with pytest.raises(StoreError, match="must be opened by keyhole serve once"):
        SqliteStore(path.with_name("empty.db"), read_only=True)


def test_damage_anywhere_shows_or_does_no_harm(path):
    with SqliteStore(path) as store:
        events = more(store, 120, size=200)
    whole, numbers = path.read_bytes(), random.Random(3)
    n_found = 0
    for _ in range(60):
        content = bytearray(whole)
        start = numbers.randrange(len(content))
        content[start : start + 64] = numbers.randbytes(64)
        path.write_bytes(content)
        try:
            with SqliteStore(path) as store:
                check_log(store)
                assert list(store.events("shop")) == events
        except StoreError:
            n_found += 1
    assert n_found >= 25  # the others hit bytes that nothing is kept in
    for length in (len(whole) // 2, 5_000, 700, 50):
        path.write_bytes(whole[:length])
        with pytest.raises(StoreDamaged), SqliteStore(path) as store:
            check_log(store)


def test_what_a_killed_process_leaves_is_read_and_copied_as_it_is(path):
    left, copy = path.with_name("left.db"), path.with_name("copy.db")
    with SqliteStore(path) as store:
        events = more(store, 50)
        for end in ("", "-wal"):  # without the memory that the processes shared
            shutil.copy(f"{path}{end}", f"{left}{end}")
    with SqliteStore(left, read_only=True) as store:
        assert check_log(store) == {"shop": 50}
    backup.copy_log(left, copy, lambda _: None)
    for file in (copy, left):
        with SqliteStore(file) as store:
            assert list(store.events("shop")) == events


# ----------------------------------------------------------------------------- neighbours


def test_who_waits_too_long_is_told_and_may_try_again(path, monkeypatch):
    monkeypatch.setattr(sqlite_file, "PATIENCE_MS", 20)
    with SqliteStore(path) as store:
        more(store, 3)
        other = apsw.Connection(str(path))
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreInUse, match="is locked by another process"):
            more(store, 1)
        with pytest.raises(StoreInUse), SqliteStore(path, read_only=True) as beside:
            beside.add_key(Key("kh", b"", (), (), 0))
        other.execute("ROLLBACK")
        other.close()
        more(store, 1)


BESIDE = """
import sys
from keyhole.service.errors import StoreInUse
from keyhole.service.events import Key
from keyhole.service.store import open_store
try:
    open_store(sys.argv[1])
except StoreInUse:
    with open_store(sys.argv[1], read_only=True) as store:
        for number in range(20):
            store.add_key(Key(f"kh_{number:02d}", b"", (), (), 0))
        print(len(store.keys()), store.last("shop").seq)
"""


def test_another_process_adds_keys_and_cannot_write(path):
    with SqliteStore(path, _checkpoint_pages=5) as store:
        more(store, 1)
        other = subprocess.Popen(
            [sys.executable, "-c", BESIDE, str(path)], stdout=subprocess.PIPE, text=True
        )
        while other.poll() is None:
            more(store, 3)
        n_keys, seq = map(int, other.communicate()[0].split())
        assert (other.returncode, n_keys, len(store.keys())) == (0, 20, 20)
        assert check_log(store)["shop"] >= seq > 1


class Interrupted:
    """A connection, or a backup to it, between whose steps something is appended."""

    def __init__(self, real: Any, store: SqliteStore) -> None:
        self._real, self._store = real, store

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    def __enter__(self) -> "Interrupted":
        return self

    def __exit__(self, *error: object) -> None:
        self._real.__exit__(*error)

    def backup(self, *given: Any) -> "Interrupted":
        return Interrupted(self._real.backup(*given), self._store)

    def step(self, n_pages: int) -> None:
        self._real.step(n_pages)
        more(self._store, 1)
        assert check_log(self._store)["shop"] < 400, "A copy begins again and again."


def test_a_copy_is_of_one_moment_however_much_is_appended_meanwhile(path, monkeypatch):
    copy = path.with_name("copy.db")
    with SqliteStore(path) as store:
        events = more(store, 200, size=400)

        def connected(file: Path, *, read_only: bool = False) -> Any:
            db = sqlite_file.connect(file, read_only=read_only)
            return db if read_only else Interrupted(db, store)

        monkeypatch.setattr(backup, "_STEP", 1)
        monkeypatch.setattr(backup, "connect", connected)
        backup.copy_log(path, copy, lambda _: None)
        with SqliteStore(copy) as copied:
            assert list(copied.events("shop")) == events
        assert check_log(store)["shop"] > 220


def test_large_events_are_read_a_few_at_a_time(path, monkeypatch):
    """Pages of 256 events held gigabytes where each had megabytes of features."""
    monkeypatch.setattr(sqlite, "_PAGE_BYTES", 100)
    events = chain(40)
    with SqliteStore(path) as store:
        store.append(events)
        assert list(store.events("shop")) == events
        assert list(store.events("shop", after=3, limit=11)) == events[3:14]
        with store._reader() as db:
            found, is_cut = sqlite._rows(db, f"{sqlite._SELECT} ORDER BY seq", ("shop",))
    sizes = [len(event.body) for event in found]
    assert is_cut
    assert sum(sizes[:-1]) < 100 <= sum(sizes)


def test_the_write_ahead_log_does_not_grow_without_end(path):
    with SqliteStore(path, _checkpoint_pages=20) as store:
        store.append(chain(400))
        for _ in range(60):
            more(store, 4)
        assert path.with_name("log.db-wal").stat().st_size < 120 * 4_120
        assert path.stat().st_size > 20_000


def test_pages_that_cannot_be_moved_stop_what_follows(path, monkeypatch):
    """An error of the disk is not forgotten because the events themselves were kept."""
    with SqliteStore(path, _checkpoint_pages=1) as store:

        def fail(**_: object) -> None:
            raise apsw.IOError("disk I/O error")

        class Failing:
            """A connection whose checkpoints fail."""

            def __getattr__(self, name: str) -> object:
                return fail if name == "wal_checkpoint" else getattr(writer, name)

        writer = store._writer
        monkeypatch.setattr(store, "_writer", Failing())
        events = more(store, 3)
        assert list(store.events("shop")) == events
        with pytest.raises(StoreFailed, match="must be reopened"):
            more(store, 1)
    with SqliteStore(path) as store:
        assert list(store.events("shop")) == events


def test_an_interrupt_after_a_commit_leaves_nothing_wrong(path, monkeypatch):
    with SqliteStore(path) as store:
        more(store, 3)

        def interrupt() -> None:
            raise KeyboardInterrupt

        with monkeypatch.context() as patch:
            patch.setattr(store, "_move_pages", interrupt)
            with pytest.raises(KeyboardInterrupt):
                more(store, 3)
        more(store, 3)
        assert check_log(store) == {"shop": 9}
