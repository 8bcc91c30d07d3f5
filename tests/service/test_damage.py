"""Damage of a log is found and told, and stops the ranker that it is in."""

import asyncio
import os
import random
import shutil
import subprocess
import sys
import threading
import time
from typing import Any

import apsw
import msgspec
import pytest
import structlog
from structlog.testing import capture_logs
from typer.testing import CliRunner

from bench import bit_flips
from bench.disks import FailingDisk
from keyhole.cli.app import app
from keyhole.service import group_commit as desk_module, log_check, shutdown, snapshots
from keyhole.service.engine import Engine
from keyhole.service.errors import (
    RankerDamaged,
    StoreDamaged,
    StoreFailed,
    StoreGone,
    StoreInUse,
)
from keyhole.service.events import Snapshot
from keyhole.service.group_commit import Desk
from keyhole.service.http.app import build
from keyhole.service.ranker_state import LiveRanker
from keyhole.service.replay import check_ranker
from keyhole.service.snapshots import kept_by
from keyhole.service.store import backup, open_store
from keyhole.service.store.file_lock import acknowledged
from keyhole.service.store.integrity import check_log
from keyhole.service.store.sqlite import SqliteStore
from keyhole.service.store.wal import Journal
from tests.service.addresses import DURABLE, address_of, forge
from tests.service.asking import Asked, problem
from tests.service.desks import answer, configure, engine_of, rank, state_of

RANKERS = ("animals", "others")
RANK = "/v1/rankers/animals/rank"


@pytest.fixture(autouse=True)
def usual_logs():
    """Forget where logs go: a test of a command lets them go where that test ends."""
    yield
    structlog.reset_defaults()


class Served(Asked):
    """A service whose log is in a file."""

    def __init__(self, path, *, store=None):
        self.loop = asyncio.new_event_loop()
        self.store = store or open_store(path)
        self.desk = Desk(self.store, reopen=lambda: open_store(path))
        self.app = build(self.desk)
        self.running = self.app.router.lifespan_context(self.app)
        self.loop.run_until_complete(self.running.__aenter__())
        self.headers = {}

    def pause(self, seconds):
        self.loop.run_until_complete(asyncio.sleep(seconds))

    def until(self, holds, seconds=5.0):
        ends = time.monotonic() + seconds
        while not holds():
            assert time.monotonic() < ends
            self.pause(0.02)

    def readiness(self):
        return self.ask("GET", "/readyz", faults=True)


@pytest.fixture
def path(tmp_path):
    """A file with a log of two rankers that have learnt, with lists that wait."""
    return fill(tmp_path / "log.db")


@pytest.fixture(params=DURABLE)
def log(request, tmp_path):
    """The address of such a log, in every kind of store."""
    return fill(address_of(request.param, tmp_path))


def fill(address):
    with open_store(address) as store:
        engine = Engine(store)
        for name in RANKERS:
            configure(engine, name)
            for round in range(20):
                shown = rank(engine, name, idem=f"{name} {round}")
                if round % 4:
                    answer(engine, shown.event_id, [1.0], name=name)
    return address


def flip_a_bit(log, ranker, seq, column="body"):
    """Flip the lowest bit of the last byte of what an event says."""
    which = "WHERE ranker = ? AND seq = ?"
    ((content,),) = forge(log, f"SELECT {column} FROM events {which}", ranker, seq)  # noqa: S608
    changed = bytes([*content[:-1], content[-1] ^ 1])
    forge(log, f"UPDATE events SET {column} = ? {which}", changed, ranker, seq)  # noqa: S608


def kind_of(log):
    """Return the class of the store at an address."""
    with open_store(log, read_only=True) as store:
        return type(store)


def last_of(store):
    """Return the last event of the ranker that is damaged."""
    return next(iter(store.events("animals", after=store.last("animals").seq - 1)))


def keep_snapshots(path):
    with open_store(path) as store:
        for live in Engine(store).rankers.values():
            store.put_snapshot(live.snapshot())


# ----------------------------------------------------------------------------- events


def test_a_ranker_with_a_flipped_bit_is_refused_by_event_and_others_are_served(log):
    flip_a_bit(log, "animals", 5)
    with Served(log) as service:
        (event_id,) = [e.key for e in service.store.events("animals", limit=2) if e.kind == "rank"]
        for method, what, body in (
            ("GET", "", None), ("GET", "/state", None), ("GET", "/events", None),
            ("GET", "/stream", None), ("POST", "/rank", {}), ("PUT", "", {"items": ["a", "b"]}),
            ("PUT", f"/events/{event_id}/feedback", {"relevance": [1]}),
            ("POST", f"/events/{event_id}/activate", {}), ("POST", "/evaluations", {}),
        ):  # fmt: skip
            path_of = f"/v1/rankers/animals{what}"
            told = service.ask(method, path_of, faults=True, json=body)
            said = problem(told, 503, "ranker-damaged")["detail"]
            assert "link to the hash of the event before it; event 5 does not" in said
            assert "keyhole db check" in said
            assert "keyhole db restore" in said
        assert service.rank("others").status_code == 201
        assert service.readiness().json() == {"status": "ready", "log": "damaged"}
        listed = service.ask("GET", "/v1/rankers").json()
        assert [each["name"] for each in listed["rankers"]] == ["others"]
        assert [(each["name"], each["detail"]) for each in listed["damaged"]] == [("animals", said)]
        page = service.ask("GET", "/", headers={"accept": "text/html"}).text
        assert "Damaged rankers, which are not served" in page
        assert "event 5 does not" in page
        shown = service.ask("GET", "/rankers/animals", faults=True)
        assert (shown.status_code, "event 5 does not" in shown.text) == (503, True)
    with open_store(log, read_only=True) as store:
        assert last_of(store).seq == 36  # nothing was appended


def test_no_ranker_takes_the_name_of_a_damaged_one(log):
    flip_a_bit(log, "animals", 5)
    with Served(log) as service:
        store = service.store
        told = service.ask("POST", "/v1/rankers/others/rename", faults=True, json={"to": "animals"})
        assert "event 5 does not" in problem(told, 503, "ranker-damaged")["detail"]
        assert service.rank("others").status_code == 201
        assert service.desk.store is store  # the log was not read again


@pytest.mark.parametrize("column", ["body", "link"])
def test_an_event_before_the_snapshot_is_checked_while_others_are_served(log, column, monkeypatch):
    keep_snapshots(log)
    flip_a_bit(log, "animals", 5, column)
    may_check = threading.Event()
    damage = kind_of(log).damage

    def wait_and_look(self):
        may_check.wait(10.0)
        return damage(self)

    monkeypatch.setattr(kind_of(log), "damage", wait_and_look)
    monkeypatch.setattr(desk_module, "_CHECKED_FIRST", 0.0)
    with capture_logs() as logs, Served(log) as service:
        assert service.readiness().json() == {"status": "ready", "log": "checking"}
        assert service.ask("GET", "/v1/rankers/animals").json()["log"] == "checking"
        assert service.rank().status_code == 201
        may_check.set()
        service.until(lambda: service.readiness().json()["log"] == "damaged")
        service.until(lambda: service.ask("GET", "/v1/rankers/others").json()["log"] == "checked")
        problem(service.ask("POST", RANK, faults=True, json={}), 503, "ranker-damaged")
        assert service.rank("others").status_code == 201
        assert last_of(service.store).seq == 37
        service.until(lambda: service.desk._checking.is_done)
    (told,) = [line for line in logs if line["event"].startswith("The log check has finished")]
    assert (told["rankers"], 0.0 <= told["seconds"] < 10.0) == (2, True)
    assert [line["ranker"] for line in logs if "is damaged" in line["event"]] == ["animals"]


@pytest.mark.parametrize("error", [StoreFailed("It cannot be read."), RuntimeError("a fault")])
@pytest.mark.parametrize("method", ["damage", "events"])
def test_what_could_not_be_checked_is_tried_again(log, monkeypatch, method, error):
    """Until then the log is not said to be checked, and what is wrong with it is found later."""
    keep_snapshots(log)
    flip_a_bit(log, "animals", 5)
    may_read, reading = threading.Event(), getattr(kind_of(log), method)

    def fails(self, *args, **given):
        if threading.current_thread().name == "keyhole-check" and not may_read.is_set():
            raise error
        return reading(self, *args, **given)

    monkeypatch.setattr(kind_of(log), method, fails)
    monkeypatch.setattr(log_check, "_AGAIN", 0.01)
    with capture_logs() as logs, Served(log) as service:
        assert service.readiness().json() == {"status": "ready", "log": "checking"}
        service.pause(0.05)
        assert service.readiness().json() == {"status": "ready", "log": "checking"}
        assert not service.desk._checking.is_done
        may_read.set()
        service.until(lambda: service.readiness().json()["log"] == "damaged")
        assert service.ask("GET", "/v1/rankers/others").json()["log"] == "checked"
    failed = [line for line in logs if line["event"].startswith("The log could not be checked")]
    assert [line["error"] for line in failed] == [str(error)] * len(failed)
    assert [line["seconds"] for line in failed[:2]] == [0.01, 0.02]
    assert any(line["event"].startswith("The log check has finished") for line in logs)


def test_requests_on_their_way_when_damage_is_found_are_answered(log):
    keep_snapshots(log)
    with Served(log) as service:
        engine = service.desk.engine
        service.desk.on_commit = lambda *_: engine.refuse("animals", "Event 5 is another one.")
        assert service.rank().status_code == 201  # it is kept, and was decided before
        assert last_of(service.store).seq == 37
        assert list(engine.rankers) == ["others"]
        problem(service.ask("POST", RANK, faults=True, json={}), 503, "ranker-damaged")
        assert service.desk.is_ready
        assert service.rank("others").status_code == 201


def test_an_event_that_is_read_again_is_checked_again(log):
    """A list that waits is read from the log, where that may have changed since the start."""
    keep_snapshots(log)
    with Served(log) as service:
        live = service.desk.engine.ranker("animals")
        seq, waited = next(iter(live.waiting.items()))
        assert waited.body is None
        flip_a_bit(log, "animals", seq)
        told = service.ask(
            "PUT", f"/v1/rankers/animals/events/{waited.event_id}/feedback",
            faults=True, json={"relevance": [1]},
        )  # fmt: skip
        problem(told, 503, "ranker-damaged")
        problem(service.ask("POST", RANK, faults=True, json={}), 503, "ranker-damaged")
        assert last_of(service.store).seq == 36
        assert service.rank("others").status_code == 201


def test_an_index_that_leads_nowhere_stops_all(path):
    """A list could be shown twice under one idempotency key."""
    db = apsw.Connection(str(path))
    root: Any = db.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'events_by_idem'").get
    size: Any = db.pragma("page_size")
    db.close()
    content = bytearray(path.read_bytes())
    at = content.index(b"animals 7", (root - 1) * size)
    content[at + 8] ^= 1
    path.write_bytes(content)
    with Served(path) as service:
        told = problem(service.readiness(), 503, "not-ready")["detail"]
        assert "The file of the log is damaged" in told
        said = service.ask("POST", RANK, faults=True, headers={"idempotency-key": "animals 7"})
        assert problem(said, 503, "ranker-damaged")["detail"] == told
        new = service.ask("PUT", "/v1/rankers/new", faults=True, json={"items": ["a", "b"]})
        problem(new, 503, "ranker-damaged")
        assert "All rankers" in service.ask("GET", "/", headers={"accept": "text/html"}).text


# ----------------------------------------------------------------------------- snapshots


def _with(snapshot, **changes):
    """Return a snapshot whose content is another one, with the checksum of what was written."""
    kept = kept_by(snapshot)
    for name, value in changes.items():
        setattr(kept, name, value)
    content = msgspec.msgpack.encode(kept)
    return msgspec.structs.replace(snapshot, body=snapshot.body[: -len(content)] + content)


def _wrong_snapshots(good):
    kept = kept_by(good)
    seq, event_id, *rest = kept.waiting[0]
    yield "waiting id", _with(good, waiting=[(seq, event_id[:-1] + "z", *rest), *kept.waiting[1:]])
    yield "link", _with(good, link=kept.link[:-1] + bytes([kept.link[-1] ^ 1]))
    kept.tally.ranks ^= 1
    yield "tally", _with(good, tally=kept.tally)
    yield "round", _with(good, round=kept.round ^ 1)


@pytest.mark.parametrize("what", ["waiting id", "link", "tally", "round"])
def test_a_snapshot_that_is_wrong_anywhere_is_dropped_and_the_log_replayed(log, what):
    keep_snapshots(log)
    with open_store(log) as store:
        whole = Engine(store).ranker("animals")
        (good,) = store.snapshots("animals")
        wrong = dict(_wrong_snapshots(good))[what]
        assert len(wrong.body) == len(good.body)
        store.put_snapshot(wrong)
        (problem_found,) = check_ranker(store, "animals").problems
        assert "the snapshot after event 36 does not match the replayed log" in problem_found
        with capture_logs() as logs:
            engine = Engine(store)
        (line,) = logs
        assert (line["log_level"], line["ranker"], line["seq"]) == ("warning", "animals", 36)
        assert engine.ranker("animals")._kept() == whole._kept()
        assert store.snapshots("animals") == []
        first = next(iter(whole.waiting.values())).event_id
        assert answer(engine, first, [1.0]).learned == "learned"
        assert check_ranker(store, "animals").problems == ()


def test_a_snapshot_of_another_log_is_dropped(log):
    """One that is whole, but follows from other events."""
    keep_snapshots(log)
    with open_store(log) as store:
        live = Engine(store).ranker("animals")
        live.link = bytes(16)
        store.put_snapshot(live.snapshot())
        assert state_of(Engine(store)) == state_of(Engine(store))
        engine = Engine(store)
        assert engine.ranker("animals").link == last_of(store).link
        rank(engine)  # which the store takes


def test_a_ranker_whose_last_events_are_gone_is_refused(log):
    keep_snapshots(log)
    forge(log, "DELETE FROM events WHERE ranker = 'animals' AND seq > 30")
    with open_store(log) as store:
        engine = Engine(store)
        with pytest.raises(RankerDamaged, match="Event 36 of ranker 'animals' is missing"):
            engine.ranker("animals")
        with pytest.raises(RankerDamaged):
            configure(engine)
        assert rank(engine, "others").k == 1
        assert len(store.snapshots("animals")) == 1  # which is evidence


def test_a_snapshot_of_the_first_versions_is_passed_over_and_replaced(log, monkeypatch):
    """It has no checksum: nobody knows whether it is what was written."""
    monkeypatch.setattr(shutdown, "_WORTH_A_SHARE", 10_000)  # one is taken of so few events
    monkeypatch.setattr(shutdown, "_LEFT_A_SHARE", 10_000)
    keep_snapshots(log)
    with open_store(log) as store:
        (good,) = store.snapshots("animals")
        live = LiveRanker.from_snapshot(good, store)
        store.put_snapshot(Snapshot("animals", good.seq, good.sha256, live.kept_bytes()))
        assert check_ranker(store, "animals").problems == ()
    with Served(log) as service:
        assert service.desk.engine.ranker("animals").snapshot_seq == 0
    with open_store(log) as store:
        assert store.snapshots("animals") == [good]


def test_db_check_reads_what_snapshots_hold():
    engine = engine_of()
    answer(engine, rank(engine).event_id, [1.0])
    live = engine.ranker("animals")
    content = live.kept_bytes()
    digest = snapshots._digest("animals", live.seq, live.sha256(), content[:-1])
    cut = snapshots._SEAL + digest + content[:-1]
    engine.store.put_snapshot(Snapshot("animals", live.seq, live.sha256(), cut))
    (told,) = check_ranker(engine.store, "animals").problems
    assert "the snapshot after event 3 does not match the replayed log" in told


# ----------------------------------------------------------------------------- the file


def test_a_file_that_was_moved_is_missed_and_found_again(path):
    away = path.with_name("away.db")
    with Served(path) as service:
        assert service.readiness().status_code == 200
        path.rename(away)
        service.until(lambda: service.readiness().status_code == 503, 1.5)
        assert "it was moved or deleted" in problem(service.readiness(), 503, "not-ready")["detail"]
        refused = service.ask("POST", RANK, faults=True, json={})
        assert "put it back, or stop" in problem(refused, 503, "store-gone")["detail"]
        assert service.ask("GET", "/v1/rankers/animals/state").json()["seq"] == 36
        assert not path.exists()
        away.rename(path)
        service.until(lambda: service.readiness().status_code == 200, 1.5)
        assert service.rank().status_code == 201
    with open_store(path) as store:
        assert last_of(store).seq == 37


def test_a_file_in_its_place_is_another_log(path):
    away = path.with_name("away.db")
    with Served(path) as service:
        path.rename(away)
        bit_flips.make(path.with_name("new.db"), n_rounds=2)
        path.with_name("new.db").rename(path)
        service.until(lambda: service.readiness().status_code == 503, 1.5)
        assert "another file has taken its place" in service.readiness().json()["detail"]
        # Nor is it taken for the log after a failure.
        with pytest.raises(StoreGone):
            service.desk._read_again()
        assert "animals" in service.desk.engine.rankers
        path.unlink()
        away.rename(path)


def test_no_log_is_made_where_there_was_one(path):
    away = path.with_name("away.db")
    path.rename(away)
    with pytest.raises(StoreGone, match="must exist and hold a log, as it did before"):
        open_store(path)
    assert not path.exists()
    path.touch()
    with pytest.raises(StoreGone):
        open_store(path)
    path.unlink()
    with open_store(path, create=True) as store:
        assert store.rankers() == []
    path.unlink()
    away.rename(path)
    with open_store(path) as store:
        assert store.rankers() == [*RANKERS]
    path.with_name("log.db.lock").unlink()
    path.unlink()
    journal = path.with_name("log.db-wal")
    journal.write_bytes(b"x" * 100)
    with pytest.raises(StoreGone, match="as its write-ahead log"):
        open_store(path, create=True)


@pytest.mark.parametrize("command", [("serve", "--port", "0"), ("keys", "list")])
def test_commands_say_how_to_go_on_without_the_log(path, command):
    path.rename(path.with_name("away.db"))
    told = CliRunner().invoke(app, [*command, "--db", str(path)], env={"COLUMNS": "300"})
    assert told.exit_code == 2
    assert "must exist and hold a log, as it did before" in told.stderr
    assert "start an empty log with keyhole serve --create" in told.stderr
    assert not path.exists()


def test_a_start_that_never_came_to_a_log_may_be_tried_again(path, monkeypatch):
    new = path.with_name("new.db")
    with monkeypatch.context() as patch:
        patch.setattr("keyhole.service.store.sqlite.prepare", _fails)
        with pytest.raises(StoreFailed):
            open_store(new)
    assert new.exists()
    with open_store(new) as store:
        assert store.rankers() == []


def _fails(*_):
    raise StoreFailed("The power was cut.")


SECOND = """
import sys
from keyhole.service.errors import StoreInUse
from keyhole.service.store import open_store
try:
    open_store(sys.argv[1]).close()
except StoreInUse as error:
    print(error)
"""


def second(path):
    """Return what a second process is told that wants to write to a log."""
    ran = subprocess.run(
        [sys.executable, "-c", SECOND, str(path)], capture_output=True, text=True, check=True
    )
    return ran.stdout


@pytest.mark.parametrize("way", ["hard link", "deleted lock"])
def test_no_second_process_writes_by_any_way(path, way):
    other = path
    with open_store(path) as store:
        if way == "hard link":
            other = path.with_name("other.db")
            os.link(path, other)
        else:
            path.with_name("log.db.lock").unlink()
        assert "is in use: another process writes to it" in second(other)
        with pytest.raises(StoreInUse):
            open_store(other)
        # The attempts have undone no lock.
        assert "is in use" in second(other)
        rank(Engine(store))
    assert second(other) == ""


def left_by_a_kill(path):
    """Return a copy of a log that nobody has closed, and how many frames its journal has."""
    left = path.with_name("left.db")
    with open_store(path) as store:
        for number in range(8):
            rank(Engine(store), event_id=f"after {number}".replace(" ", "-"))
        for end in ("", "-wal", ".lock"):
            shutil.copy(f"{path}{end}", f"{left}{end}")
    return left


def test_a_journal_that_lost_what_was_acknowledged_is_noticed(path):
    left = left_by_a_kill(path)
    journal = left.with_name("left.db-wal")
    whole, database = journal.read_bytes(), left.read_bytes()
    frames = Journal(left).frames
    ends = [number for number, frame in enumerate(frames) if frame and frame.n_pages]
    assert len(ends) == 8
    numbers, n_found = random.Random(5), 0
    for at in (0, 3, 9, 17, 24, *(numbers.randrange(len(whole)) for _ in range(60))):
        frame = (at - 32) // 4_120  # the head is before the first
        changed = bytearray(whole)
        changed[at] ^= 1 << numbers.randrange(8)
        left.write_bytes(database)
        journal.write_bytes(changed)
        left.with_name("left.db-shm").unlink(missing_ok=True)
        is_last = frame > ends[-2]
        what = "event 44 .* acknowledged" if is_last else "-wal is damaged: the last acknowledged"
        for _ in range(2):  # nor is it forgotten at the second start
            with pytest.raises(StoreDamaged, match=what):
                open_store(left)
        n_found += 1
    assert n_found > 30
    copy = left.with_name("copy.db")
    backup.copy_log(left, copy, lambda _: None)
    with open_store(copy) as store:
        assert 36 <= last_of(store).seq < 44


def test_a_log_that_ends_before_the_last_acknowledged_event_is_noticed(path):
    left, earlier = left_by_a_kill(path), path.with_name("earlier.db")
    with open_store(left, read_only=True) as store:
        last_link = last_of(store).link.hex()
    lock = left.with_name("left.db.lock")
    assert acknowledged(left) == ("animals", 44, last_link)
    backup.copy_log(left, earlier, lambda _: None)
    with open_store(left) as store:
        rank(Engine(store), event_id="the-last")
    last = acknowledged(left)
    assert last is not None
    assert last.seq == 45
    told = lock.read_bytes()
    shutil.copy(earlier, left)  # by hand: the log of yesterday, and no word about the event since
    lost = pytest.raises(
        StoreDamaged, match=r"event 45 of ranker 'animals', which was acknowledged"
    )
    for is_reader in (False, True):
        with lost, open_store(left, read_only=is_reader) as store:
            check_log(store)
    assert lock.read_bytes() == told
    lock.write_bytes(told[:-2_000] + b"?" + told[-1_999:])  # a torn record says nothing
    assert acknowledged(left) is None
    open_store(left).close()
    lock.write_bytes(told)
    lock.unlink()
    with open_store(left) as store:
        assert last_of(store).seq == 44


def test_a_restored_log_and_a_new_one_owe_nothing_to_the_one_before(path):
    monday = path.with_name("monday.db")
    backup.copy_log(path, monday, lambda _: None)
    with open_store(path) as store:
        rank(Engine(store), event_id="tuesday")
    path.unlink()
    told = CliRunner().invoke(app, ["db", "restore", str(monday), str(path)])
    assert told.exit_code == 0
    with open_store(path) as store:
        assert last_of(store).seq == 36
        rank(Engine(store), event_id="wednesday")
    path.unlink()
    with open_store(path, create=True) as store:
        assert store.rankers() == []
        assert acknowledged(path) is None


def test_a_journal_with_frames_of_one_before_is_whole(path):
    left = path.with_name("left.db")
    with SqliteStore(path, _checkpoint_pages=1) as store:
        for number in range(12):
            rank(Engine(store), event_id=f"after-{number}")
            for end in ("", "-wal"):
                shutil.copy(f"{path}{end}", f"{left}{end}")
            with open_store(left) as copy:
                assert last_of(copy).seq == 37 + number


# ----------------------------------------------------------------------------- idempotency


def test_a_key_that_came_with_a_known_event_belongs_to_that_request():
    with Asked() as service:
        service.put()
        first = service.rank(event_id="e1", headers={"idempotency-key": "one"})
        again = service.rank(event_id="e1", headers={"idempotency-key": "two"})
        assert again.json() == first.json()
        for _ in range(2):
            for key in ("one", "two"):
                other = service.rank(event_id="e2", headers={"idempotency-key": key})
                problem(other, 422, "key-reused")
                assert service.rank(event_id="e1", headers={"idempotency-key": key}).json() == (
                    first.json()
                )
        kinds = [event.kind for event in service.desk.store.events("animals")]
        assert kinds == ["config", "rank", "repeat"]
        page = service.ask("GET", "/rankers/animals/events", headers={"accept": "text/html"}).text
        assert "A repeated request was answered with the list of event 2" in page
        assert check_ranker(service.desk.store, "animals").problems == ()


def test_a_repeat_is_told_the_time_that_it_was_told_first():
    with Asked() as service:
        service.put(wait_seconds=60.0)
        first = service.rank(event_id="e1").json()
        service.put(wait_seconds=7_200.0)
        second = service.rank(event_id="e2").json()
        assert service.rank(event_id="e1").json() == first
        service.put(wait_seconds=60.0)
        assert service.rank(event_id="e2").json() == second
        live = service.desk.engine.ranker("animals")
        store = service.desk.store
        store.put_snapshot(live.snapshot())
        engine = Engine(store)
        assert engine.ranker("animals").waits == [(1, 60.0), (3, 7_200.0), (5, 60.0)]
        assert rank(engine, event_id="e2").feedback_by == second["feedback_by"]
        assert rank(engine, event_id="e1").feedback_by == first["feedback_by"]


# ----------------------------------------------------------------------------- a full disk


def test_a_full_disk_is_not_ready_and_gets_ready_by_itself(path, monkeypatch):
    monkeypatch.setattr(sys, "unraisablehook", lambda _: None)
    monkeypatch.setattr(desk_module, "_PROBE", 0.1)
    disk = FailingDisk("write", 0, apsw.FullError, n_failures=10**9)
    disk.mend()
    service = Served(path, store=SqliteStore(path, _vfs=disk.name))
    with service:
        disk.break_at(0)
        problem(service.ask("POST", RANK, faults=True, json={}), 507, "store-full")
        told = problem(service.readiness(), 503, "not-ready")["detail"]
        assert "The disk is full" in told
        service.pause(1.0)  # in which it has tried
        assert service.readiness().status_code == 503
        problem(service.ask("POST", RANK, faults=True, json={}), 507, "store-full")
        assert service.ask("GET", "/v1/rankers/animals").status_code == 200
        disk.mend()
        service.until(lambda: service.readiness().status_code == 200)
        assert service.rank().status_code == 201
    disk.unregister()


# ----------------------------------------------------------------------------- bits


def test_bits_that_flip_anywhere_are_found_or_healed_or_do_no_harm():
    """bench/bit_flips.py flips more."""
    counts = bit_flips.flip(80, seed=1, n_rounds=90)
    assert counts["WRONG"] == 0
    assert min(counts[each] for each in ("found", "harmless", "healed")) > 0


def test_a_flip_that_nobody_is_told_of_is_noticed(tmp_path):
    """What says that nothing went wrong must be able to say otherwise."""
    path = tmp_path / "log.db"
    bit_flips.make(path, n_rounds=12)
    expected = bit_flips.look(path)
    assert expected["shop"]["waiting"]
    for entry, key in (("shop", "waiting"), ("news", "sha256"), ("drinks", "tally")):
        other = {**expected, entry: {**expected[entry], key: None}}
        with pytest.raises(bit_flips.Wrong, match=key):
            bit_flips.verdict(path, other)
