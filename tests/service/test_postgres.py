"""What is true of logs in PostgreSQL beyond the contract of stores."""

import threading
import time
from pathlib import Path
from typing import Any

import psycopg
import pytest
import structlog
from msgspec.structs import astuple
from psycopg.conninfo import conninfo_to_dict
from typer.testing import CliRunner

from keyhole.base.errors import InvalidInput, KeyholeError
from keyhole.cli.app import app
from keyhole.service import store as stores
from keyhole.service.errors import (
    ConflictingRequest,
    StoreDamaged,
    StoreError,
    StoreFailed,
    StoreFull,
    StoreGone,
    StoreInUse,
    StoreNewer,
)
from keyhole.service.events import Event, Snapshot
from keyhole.service.keys import new_key
from keyhole.service.replay import check_ranker
from keyhole.service.settings import Settings
from keyhole.service.startup import check_lock
from keyhole.service.store import (
    postgres,
    postgres_queries,
    postgres_schema,
    postgres_server,
    watch,
)
from keyhole.service.store.addresses import shown_address
from keyhole.service.store.chain import tip_of
from keyhole.service.store.integrity import check_log
from keyhole.service.store.postgres_schema import MIGRATIONS, migrate
from keyhole.service.store.postgres_server import connect
from tests.service.addresses import SERVING, address_of, as_owner, database
from tests.service.asking import problem
from tests.service.chains import chain, linked, more
from tests.service.proxies import Proxy
from tests.service.test_damage import Served

pytestmark = pytest.mark.interpreted


@pytest.fixture(autouse=True)
def usual_logs():
    """Forget where logs go: a test of a command lets them go where that test ends."""
    yield
    structlog.reset_defaults()


@pytest.fixture
def address(tmp_path):
    return address_of("postgresql", tmp_path)


@pytest.fixture
def proxy(address, tmp_path):
    made = Proxy(address, tmp_path)
    yield made
    made.close()


def open_store(address, **given) -> Any:
    return stores.open_store(address, **given)


def do(address, statement):
    """Do to a database, as its owner, what no store would do."""
    with psycopg.connect(as_owner(address), autocommit=True) as db:
        db.execute(statement.encode())


def end_sessions(address):
    """End all sessions of a service, as a lost network does."""
    do(
        address,
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "  # noqa: S608
        f"WHERE usename = '{SERVING}' AND datname = current_database()",
    )


def events_of(address):
    with open_store(address, read_only=True) as store:
        return list(store.events("shop"))


# ----------------------------------------------------------------------------- rights


@pytest.mark.parametrize("statement", [
    "UPDATE keyhole.events SET at = 0", "DELETE FROM keyhole.events WHERE seq = 3",
    "TRUNCATE keyhole.events", "UPDATE keyhole.writer SET epoch = 9",
    "UPDATE keyhole.once SET value = 'x'", "UPDATE keyhole.keys SET scopes = '{admin}'",
    "DROP TABLE keyhole.events", "ALTER TABLE keyhole.events DISABLE TRIGGER ALL",
])  # fmt: skip
def test_the_role_that_serves_neither_changes_nor_deletes_events(address, statement):
    with open_store(address) as store:
        events = more(store, 3)
    with psycopg.connect(address) as db, pytest.raises(psycopg.errors.InsufficientPrivilege):
        db.execute(statement.encode())
    assert events_of(address) == events


def test_nobody_changes_or_deletes_events_by_accident(address):
    with open_store(address) as store:
        events = more(store, 3)
    for statement in ("UPDATE keyhole.events SET at = 0", "DELETE FROM keyhole.events",
                      "TRUNCATE keyhole.events"):  # fmt: skip
        with pytest.raises(psycopg.errors.RaiseException, match="events are never changed or del"):
            do(address, statement)
    assert events_of(address) == events


def test_a_role_without_rights_is_told_so(address):
    do(address, f"REVOKE INSERT ON keyhole.events FROM {SERVING}")
    with open_store(address) as store:
        with pytest.raises(StoreError, match=r"denied for table events; .* migrate --grant"):
            more(store, 1)
        do(address, f"GRANT INSERT ON keyhole.events TO {SERVING}")
        more(store, 1)


# ----------------------------------------------------------------------------- the schema


def test_a_log_is_made_by_its_owner_and_never_by_the_service(tmp_path):
    address = database(tmp_path, None)
    for create in (False, True):
        with pytest.raises(StoreGone, match=r"must hold a log .* keyhole db migrate"):
            open_store(address, create=create)
    with pytest.raises(StoreError, match="permission denied for database"):
        migrate(address)
    ran = CliRunner().invoke(app, ["db", "migrate", as_owner(address), "--grant", SERVING])
    assert (ran.exit_code, "has the newest schema" in ran.stdout) == (0, True), ran.output
    with open_store(address) as store:
        events, secret = more(store, 3), store.secret()
    migrate(as_owner(address))
    with open_store(address) as store:
        assert (list(store.events("shop")), store.secret()) == (events, secret)


def test_a_schema_of_another_is_left_alone(tmp_path):
    address = database(tmp_path, None)
    do(address, "CREATE SCHEMA keyhole")
    with pytest.raises(StoreDamaged, match="must be a log of Keyhole's service: it is another"):
        migrate(as_owner(address))


def test_a_newer_schema_is_refused_and_an_older_one_migrated(address, monkeypatch):
    next_one = "CREATE TABLE keyhole.extra (x int)"
    with open_store(address) as store:
        events = more(store, 3)
    with monkeypatch.context() as patch:
        patch.setattr(postgres_schema, "MIGRATIONS", (*MIGRATIONS, next_one, "CREATE TABLE (no"))
        with pytest.raises(StoreError, match="must be migrated by its owner"):
            open_store(address)
        with pytest.raises(StoreFailed, match="syntax error"):
            migrate(as_owner(address))
    open_store(address).close()  # all or none
    with monkeypatch.context() as patch:
        patch.setattr(postgres_schema, "MIGRATIONS", (*MIGRATIONS, next_one))
        migrate(as_owner(address))
        open_store(address).close()
    for read_only in (False, True):
        with pytest.raises(StoreNewer, match=r"version 1 or lower, got 2: a newer Keyhole"):
            open_store(address, read_only=read_only)
    with pytest.raises(StoreNewer):
        migrate(as_owner(address))
    do(address, "DELETE FROM keyhole.migrations WHERE version = 2")
    assert events_of(address) == events


# ----------------------------------------------------------------------------- settings


@pytest.mark.parametrize("level", ["off", "local", "remote_write"])
def test_commits_that_could_be_lost_are_refused(address, level):
    with pytest.raises(StoreError, match=f"must have synchronous_commit = on, got {level}"):
        open_store(f"{address}&options=-csynchronous_commit%3D{level}")
    open_store(f"{address}&options=-csynchronous_commit%3Dremote_apply").close()


def test_a_statement_takes_thirty_seconds_at_most_unless_told_otherwise(address):
    with connect(address) as db:
        assert db.execute("SHOW statement_timeout").fetchone() == ("30s",)
    with connect(f"{address}&options=-cstatement_timeout%3D50") as db:
        assert db.execute("SHOW statement_timeout").fetchone() == ("50ms",)
    with open_store(f"{address}&options=-cstatement_timeout%3D50") as store:
        more(store, 1)
        with psycopg.connect(as_owner(address)) as db:
            db.execute("LOCK TABLE keyhole.events")
            with pytest.raises(StoreFailed, match="canceling statement due to statement timeout"):
                more(store, 1)
        assert len(more(store, 1)) == 1


def test_a_pooler_is_refused(address, monkeypatch):
    monkeypatch.setattr(psycopg.ConnectionInfo, "backend_pid", 1)
    with pytest.raises(StoreError, match="without a pooler"):
        open_store(address)


SECRET = "s3cret"  # noqa: S105


@pytest.mark.parametrize("url", [
    "postgresql://shop:s3cret@localhost:1/log", "postgresql://shop:s3cret@nowhere.invalid/log",
    "postgresql://shop:x@s3cret@localhost/log", "postgresql://shop:x/s3cret@localhost/log",
    "postgresql://shop:x?s3cret@localhost/log", "postgresql://shop:x#s3cret@localhost/log",
    "postgresql://shop:x:s3cret@localhost:1/log", "postgresql://shop:s3cret@localhost:s3cret/log",
    "postgresql:shop:s3cret@localhost/log", "postgresql://localhost:1/log?password=s3cret",
    "postgresql://localhost:1/log?passwort=s3cret", "postgresql://localhost:1/log?s3cret",
    "postgresql://shop:%s3cret@localhost:1/log", "postgres://shop:s3cret@localhost/log",
])  # fmt: skip
def test_passwords_are_never_shown(url, capsys):
    for use in (open_store, migrate, lambda url: open_store(url, read_only=True)):
        with pytest.raises(KeyholeError) as raised:
            use(url)
        assert SECRET not in str(raised.value)
        assert raised.value.__cause__ is None
        assert raised.value.__suppress_context__ or raised.value.__context__ is None
    for arguments in (
        ["serve", "--db", url], ["keys", "list", "--db", url], ["db", "check", url],
        ["db", "migrate", url], ["db", "export", url, "x", "--out", "x.ndjson"],
    ):  # fmt: skip
        ran = CliRunner().invoke(app, arguments)
        assert ran.exit_code != 0
        assert SECRET not in ran.output + ran.stderr
    assert SECRET not in shown_address(url)


def test_a_password_in_an_address_that_works_is_not_shown_either(address, proxy):
    assert f":{SERVING}@" in proxy.url
    with open_store(proxy.url) as store:
        assert f"{SERVING}:" not in repr(store) + store.name
        with pytest.raises(InvalidInput) as raised:
            check_lock(Settings(db=proxy.url, host="0.0.0.0"), store)  # noqa: S104
    assert f"{SERVING}@" in str(raised.value)
    assert f":{SERVING}" not in str(raised.value)


# ----------------------------------------------------------------------------- who writes


def test_a_process_that_was_paused_cannot_append_when_it_comes_back(address):
    paused = open_store(address)
    events = more(paused, 3)
    end_sessions(address)
    with open_store(address) as store:  # the lock went with the session
        events += more(store, 2)
        for what in (chain(4)[3:], chain(6)[5:]):  # as it knew the log, and as the log is
            with pytest.raises(StoreInUse, match="another process has taken it over"):
                paused.append(what)
        more(store, 1, ranker="news")
        with pytest.raises(StoreInUse):
            more(paused, 1, ranker="other")  # of which the new one has written nothing
        with pytest.raises(StoreInUse):
            paused.put_snapshot(Snapshot("shop", 1, "", b""))
        assert list(store.events("shop")) == events
        assert store.rankers() == ["news", "shop"]
    paused.close()


def test_an_append_names_the_epoch_even_if_its_session_was_never_lost(address):
    with open_store(address) as store:
        events = more(store, 3)
        do(address, "SELECT keyhole.take_over()")
        with pytest.raises(StoreInUse, match="another process writes to this log"):
            more(store, 1)
    assert events_of(address) == events
    with psycopg.connect(address) as db, pytest.raises(psycopg.errors.ObjectInUse):
        db.execute("INSERT INTO keyhole.events VALUES ('x', 1, 'config', null, null, 0, '', '')")


def test_a_take_over_waits_for_the_append_in_progress(address):
    """Else the new process could read a log that the old one still adds to."""
    with open_store(address) as store, psycopg.connect(address) as old:
        old.execute("SELECT set_config('keyhole_writer.epoch', %s, false)", (str(store._epoch),))
        event = chain(1)[0]
        old.execute(
            "INSERT INTO keyhole.events VALUES (%s, %s, %s, %s, %s, %s, %s, %s)",
            astuple(event),
        )
        ended = threading.Event()

        def take_over():
            do(address, "SELECT keyhole.take_over()")
            ended.set()

        thread = threading.Thread(target=take_over)
        thread.start()
        assert not ended.wait(0.2)
        old.commit()
        assert ended.wait(5.0)
        thread.join()
        assert events_of(address) == [event]


def test_a_session_that_is_lost_is_replaced(address, monkeypatch):
    with open_store(address) as store:
        events = more(store, 3)
        for _ in range(3):
            end_sessions(address)
            assert list(store.events("shop")) == events
            end_sessions(address)
            events += more(store, 2)
            end_sessions(address)
            store.put_snapshot(Snapshot("shop", 1, "", b"state"))
        with pytest.raises(StoreInUse):
            open_store(address)  # the new session has the lock again
        monkeypatch.setattr(postgres, "_PATIENCE", 0.1)
        end_sessions(address)
        with psycopg.connect(
            address
        ) as other:  # in place of a session that is not known to be lost
            other.execute("SELECT pg_advisory_lock(%s)", (postgres_schema.WRITER_LOCK,))
            with pytest.raises(StoreFailed, match="in use by a connection that was lost"):
                more(store, 1)
        monkeypatch.setattr(postgres, "_PATIENCE", 5.0)
        events += more(store, 1)
        assert list(store.events("shop")) == events


# ----------------------------------------------------------------------------- lost connections


@pytest.mark.parametrize("what", ["lose_the_answer", "lose_the_events"])
def test_a_commit_whose_answer_is_lost_is_there_once(proxy, what):
    with open_store(proxy.url) as store:
        events = more(store, 3)
        for number in range(1, 4):
            getattr(proxy, what)()
            events += more(store, 4)
            assert proxy.n_cut == number
        assert list(store.events("shop")) == events
        assert check_log(store) == {"shop": 15}


def test_a_conflict_is_one_also_if_the_connection_is_lost(proxy):
    with open_store(proxy.url) as store:
        events = more(store, 10)
        after = tip_of(events[-1])
        first, again = (
            linked(after, Event("shop", 11, "rank", key, "the same", 0, body, b""))
            for key, body in (("one", b"1"), ("two", b"2"))
        )
        store.append([first])
        store._tips["shop"] = after  # as of a process that has not seen the first
        proxy.lose_the_events()
        with pytest.raises(ConflictingRequest):
            store.append([again])
        assert proxy.n_cut == 1
        assert list(store.events("shop")) == [*events, first]


def test_a_server_that_is_down_is_said_to_be_and_comes_back(proxy, monkeypatch):
    monkeypatch.setattr(postgres, "_PATIENCE", 0.1)
    monkeypatch.setattr(watch, "_EVERY", 0.02)
    with open_store(proxy.url) as store:
        events = more(store, 3)
        assert store.gone() is None
        proxy.go_down()
        with pytest.raises(StoreFailed, match="cannot be reached: "):
            more(store, 1)
        with pytest.raises(StoreFailed, match="cannot be reached: "):
            store.last("shop")
        until(lambda: "cannot be reached" in (store.gone() or ""))
        monkeypatch.setattr(postgres, "_PATIENCE", 5.0)
        proxy.come_back()
        until(lambda: store.gone() is None)
        events += more(store, 2)
        assert list(store.events("shop")) == events


def until(holds, seconds=5.0):
    ends_at = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < ends_at
        time.sleep(0.01)


def test_another_log_in_its_place_is_noticed(address, monkeypatch):
    monkeypatch.setattr(watch, "_EVERY", 0.02)
    with open_store(address) as store:
        more(store, 1)
        do(address, "UPDATE keyhole.once SET value = sha256('another')")
        until(lambda: "the service began with, and holds another" in (store.gone() or ""))
        do(address, "DROP SCHEMA keyhole CASCADE")
        until(lambda: "must hold a log" in (store.gone() or ""))
        with pytest.raises(StoreGone):
            more(store, 1)
    assert store.gone() is None  # as of a file, nobody looks any longer


# ----------------------------------------------------------------------------- damage


FULL = """
CREATE FUNCTION keyhole.fail() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN RAISE EXCEPTION 'could not extend file' USING ERRCODE = 'disk_full'; END $$;
CREATE TRIGGER full_events BEFORE INSERT ON keyhole.events EXECUTE FUNCTION keyhole.fail();
CREATE TRIGGER full_snapshots BEFORE INSERT ON keyhole.snapshots EXECUTE FUNCTION keyhole.fail();
"""
ROOM = """
DROP TRIGGER full_events ON keyhole.events; DROP TRIGGER full_snapshots ON keyhole.snapshots;
DROP FUNCTION keyhole.fail();
"""


def test_a_full_disk_writes_nothing_and_may_be_tried_again(address):
    with open_store(address) as store:
        events = more(store, 3)
        store.probe()
        assert store.snapshots("") == []
        do(address, FULL)
        for attempt in (lambda: more(store, 1), store.probe):
            with pytest.raises(StoreFull, match="is full; nothing was written"):
                attempt()
        do(address, ROOM)
        store.probe()
        events += more(store, 1)
        assert list(store.events("shop")) == events


@pytest.mark.parametrize(("forgery", "sentence"), [
    ("UPDATE keyhole.events SET body = '\\x00' WHERE seq = 4", "The event after 3 .* must link to"),
    ("UPDATE keyhole.events SET at = at + 1 WHERE seq = 1", "The event after 0 .* must link to"),
    ("DELETE FROM keyhole.events WHERE seq = 4", "'shop' must have 9 events, its table has 8"),
])  # fmt: skip
def test_forged_events_show(address, forgery, sentence):
    with open_store(address) as store:
        more(store, 9)
    do(address, f"ALTER TABLE keyhole.events DISABLE TRIGGER USER; {forgery}")
    with open_store(address) as store, pytest.raises(StoreDamaged, match=sentence):
        check_log(store)


def test_large_events_are_read_a_few_at_a_time(address, monkeypatch):
    monkeypatch.setattr(postgres, "_PAGE_BYTES", 100)
    events = chain(40)
    with open_store(address) as store:
        store.append(events)
        assert list(store.events("shop")) == events
        assert list(store.events("shop", after=3, limit=11)) == events[3:14]
        query = postgres_queries.PAGE_OF_EVENTS
        found = store._read(lambda db: postgres_server.rows(db, query, ("shop", 0, 40, 100)))
    sizes = [len(row[6]) for row in found]
    assert sum(sizes[:-1]) < 100 <= sum(sizes)


# ----------------------------------------------------------------------------- the service


def rank_or_fail(service):
    return service.ask("POST", "/v1/rankers/animals/rank", faults=True, json={})


def test_callers_are_told_of_a_full_disk_and_served_when_there_is_room(address):
    with Served(address) as service:
        service.put()
        do(address, FULL)
        assert "is full" in problem(rank_or_fail(service), 507, "store-full")["detail"]
        assert service.readiness().status_code == 503
        do(address, ROOM)
        service.until(lambda: service.readiness().status_code == 200)
        assert service.rank().status_code == 201


def test_callers_are_told_of_a_server_that_is_down_and_served_when_it_is_back(proxy, monkeypatch):
    monkeypatch.setattr(postgres, "_PATIENCE", 0.1)
    monkeypatch.setattr(watch, "_EVERY", 0.02)
    with Served(proxy.url) as service:
        service.put()
        shown = service.rank().json()
        proxy.go_down()
        assert rank_or_fail(service).status_code == 503
        service.until(lambda: service.readiness().status_code == 503)
        assert rank_or_fail(service).status_code == 503
        monkeypatch.setattr(postgres, "_PATIENCE", 5.0)
        proxy.come_back()
        service.until(lambda: service.readiness().status_code == 200)
        assert service.feedback(shown["event_id"]).status_code == 201
        assert service.rank().status_code == 201
        checked = check_ranker(service.desk.store, "animals")
        assert (checked.problems, checked.n_events) == ((), 4)
        assert checked.sha256 == service.desk.engine.ranker("animals").sha256()


def test_what_needs_no_log_is_served_while_the_server_is_down(proxy, monkeypatch):
    monkeypatch.setattr(watch, "_EVERY", 0.02)
    text, key = new_key(["admin"], ["*"])
    with Served(proxy.url) as service:
        service.desk.store.add_key(key)
        service.headers["authorization"] = f"Bearer {text}"
        service.put()
        proxy.go_down()
        service.until(lambda: service.readiness().status_code == 503)
        service.app.service.keyring.forget()
        assert service.ask("GET", "/v1/rankers/animals/state").json()["seq"] == 1
        told = problem(rank_or_fail(service), 503, "store-gone")["detail"]
        assert "cannot be reached" in told
        assert SERVING + ":" not in told
        service.headers["authorization"] = "Bearer kh_00000000_x"
        state = service.ask("GET", "/v1/rankers/animals/state", faults=True)
        assert state.status_code == 401
        proxy.come_back()


def test_a_lost_connection_is_no_failure_to_callers(proxy):
    with Served(proxy.url) as service:
        service.put()
        for what in (proxy.lose_the_answer, proxy.lose_the_events, proxy.cut):
            what()
            assert service.rank().status_code == 201
        assert service.desk.store.last("animals").seq == 4


def test_a_service_whose_log_was_taken_over_answers_with_503_until_it_may_take_over(address):
    with Served(address) as service:
        service.put()
        end_sessions(address)
        with open_store(address) as other:
            assert rank_or_fail(service).status_code == 503
            service.pause(0.1)
            assert service.readiness().status_code == 503
            assert other.last("animals").seq == 1
        service.until(lambda: service.readiness().status_code == 200, seconds=10.0)
        assert service.rank().status_code == 201


def test_damaged_pages_are_told(address, tmp_path):
    """Files are copied as they are, so that a copy has the damage that the original got."""
    with open_store(address) as store:
        more(store, 60, size=400)
    with psycopg.connect(as_owner(address), autocommit=True) as db:
        db.execute("CHECKPOINT")
        found = db.execute(
            "SELECT current_setting('data_directory'), current_setting('data_checksums'), "
            "pg_relation_filepath('keyhole.events')"
        ).fetchone()
    assert found is not None
    file = Path(found[0]) / found[2]
    assert found[1] == "on"
    content = bytearray(file.read_bytes())
    content[8_192 + 5_000] ^= 1
    file.write_bytes(content)
    damaged = database(tmp_path / "damaged", conninfo_to_dict(address)["dbname"])
    with open_store(damaged) as store:
        with pytest.raises(StoreDamaged, match="invalid page in block 1"):
            check_log(store)
        with pytest.raises(StoreDamaged, match="invalid page in block 1"):
            list(store.events("shop"))
    ran = CliRunner().invoke(app, ["db", "check", damaged])
    assert (ran.exit_code, "Damaged: " in ran.stdout) == (1, True), ran.output
