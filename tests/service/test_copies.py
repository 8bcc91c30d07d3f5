"""Copies of a log from one kind of store to another: every event, key and hash as it was."""

import json
import stat

import polars as pl
import pytest
from typer.testing import CliRunner

from keyhole.cli.app import app
from keyhole.service.engine import Engine
from keyhole.service.errors import ConflictingRequest
from keyhole.service.events import Key
from keyhole.service.store import open_store, transfer as copying
from keyhole.service.store.integrity import check_log
from keyhole.service.store.transfer import n_missing, transfer
from tests.service.addresses import SERVING, address_of, as_owner, database, forge
from tests.service.chains import chain, more
from tests.service.desks import answer, configure, rank

pytestmark = pytest.mark.interpreted
WAYS = [("sqlite", "postgresql"), ("postgresql", "sqlite")]
KEY = Key("kh_abc", b"\1" * 32, ("rank", "read"), ("shop",), 1_000, None, "mine", 2_000)


def run(*arguments, code=0):
    ran = CliRunner().invoke(app, [*map(str, arguments)], env={"COLUMNS": "200"})
    assert ran.exit_code == code, ran.output + ran.stderr
    return ran.stdout + ran.stderr


@pytest.fixture(params=WAYS, ids=" to ".join)
def way(request, tmp_path):
    """The addresses of a log with rankers that have learnt, and of an empty one."""
    folders = [tmp_path / name for name in ("from", "to")]
    for folder in folders:
        folder.mkdir()
    source, target = map(address_of, request.param, folders)
    with open_store(source) as store:
        engine = Engine(store)
        for name in ("animals", "others"):
            configure(engine, name)
            for round in range(8):
                shown = rank(engine, name, idem=f"{name} {round}")
                if round % 4:
                    answer(engine, shown.event_id, [1.0], name=name)
            store.put_snapshot(engine.ranker(name).snapshot())
            rank(engine, name)
        store.add_key(KEY)
    return source, as_owner(target) if "://" in target else target


def contents(address):
    with open_store(address, read_only=True) as store:
        names = store.rankers()
        return {
            "secret": store.secret(),
            "keys": store.keys(),
            "events": {name: list(store.events(name)) for name in names},
            "snapshots": {name: store.snapshots(name) for name in names},
        }


def states(address):
    with open_store(address) as store:
        return {name: live.sha256() for name, live in Engine(store).rankers.items()}


def checked(address):
    record = json.loads(run("db", "check", address, "--json"))
    assert record["problems"] == []
    return record["rankers"]


def test_a_copy_has_every_event_key_and_hash(way):
    source, target = way
    assert "has been copied to" in run("db", "copy", source, target)
    assert contents(target) == contents(source)
    assert checked(target) == checked(source)
    assert states(target) == states(source)
    assert len(states(target)) == 2
    shown = []
    for address in way:  # the copy goes on as the log does
        with open_store(address) as store:
            shown.append(rank(Engine(store)))
    assert shown[0].ranking == shown[1].ranking
    assert shown[0].event_id == shown[1].event_id


def test_a_second_copy_adds_what_is_new(way):
    source, target = way
    run("db", "copy", source, target)
    with open_store(source) as store:
        engine = Engine(store)
        answer(engine, rank(engine).event_id, [0.0])
        configure(engine, "third")
        store.put_snapshot(engine.ranker("animals").snapshot())
        store.remove_key(KEY.prefix)
        store.add_key(Key("kh_new", b"\2" * 32, ("admin",), ("*",), 3_000))
        with open_store(target) as copy:
            assert n_missing(store, copy) == 3
    run("db", "copy", source, target)
    assert contents(target) == contents(source)
    before = contents(target)
    run("db", "copy", source, target)
    assert contents(target) == before


def test_a_copy_that_was_interrupted_goes_on(way, monkeypatch):
    source, target = way
    monkeypatch.setattr(copying, "_EVENTS", 4)
    done = []

    def interrupt(n_events):
        done.append(n_events)
        if len(done) == 2:
            raise KeyboardInterrupt

    with open_store(source, read_only=True) as store, open_store(target) as copy:
        with pytest.raises(KeyboardInterrupt):
            transfer(store, copy, interrupt)
        assert check_log(copy) == {"animals": 8}
    run("db", "copy", source, target)
    assert contents(target) == contents(source)


def test_a_copy_is_taken_beside_the_service(way, monkeypatch):
    source, target = way
    monkeypatch.setattr(copying, "_EVENTS", 4)
    with (
        open_store(source) as serving,
        open_store(source, read_only=True) as store,
        open_store(target) as copy,
    ):
        engine = Engine(serving)

        def go_on(n_events):
            last = serving.last("others")
            assert last is not None
            if last.seq < 30:
                rank(engine, "others")
                serving.put_snapshot(engine.ranker("others").snapshot())

        transfer(store, copy, go_on)
        assert check_log(copy)["others"] >= 16
        Engine(copy)  # which no snapshot is ahead of
        transfer(store, copy, lambda _: None)
        assert [copy.last(name) for name in copy.rankers()] == [
            serving.last(name) for name in serving.rankers()
        ]


def test_nothing_is_copied_over_another_log(way):
    source, target = way
    with open_store(target) as store:
        more(store, 3, ranker="animals")
    before = contents(target)
    said = run("db", "copy", source, target, code=2)
    assert "empty or an earlier copy of this log; event 3 of ranker 'animals' differs" in said
    assert contents(target) == before


def test_a_copy_that_has_gone_on_by_itself_is_left_alone(way):
    source, target = way
    run("db", "copy", source, target)
    with open_store(target) as store:
        rank(Engine(store))
    before = contents(target)
    assert "earlier copy" in run("db", "copy", source, target, code=2)
    assert contents(target) == before


def test_a_damaged_event_is_not_copied(way):
    source, target = way
    forge(source, "UPDATE events SET at = at + 1 WHERE ranker = 'animals' AND seq = 5")
    with open_store(source, read_only=True) as store, open_store(target) as copy:
        with pytest.raises(ConflictingRequest, match="event 5 does not"):
            transfer(store, copy, lambda _: None)
        assert copy.rankers() == []
    assert "event 5 does not" in run("db", "copy", source, target, code=2)


def test_large_events_are_copied_a_few_at_a_time(monkeypatch):
    monkeypatch.setattr(copying, "_BYTES", 100)
    sizes = [[len(event.body) for event in batch] for batch in copying._batches(chain(9))]
    assert sum(map(len, sizes)) == 9
    assert all(sum(batch[:-1]) <= 100 for batch in sizes)
    assert all(sum(batch) > 100 for batch in sizes[:-1])


# ----------------------------------------------------------------------------- commands


@pytest.fixture
def address(tmp_path):
    """A log in PostgreSQL, of its owner."""
    (tmp_path / "from").mkdir()
    address = address_of("postgresql", tmp_path / "from")
    with open_store(address) as store:
        engine = Engine(store)
        configure(engine, "shop")
        for _ in range(4):
            answer(engine, rank(engine, "shop").event_id, [1.0], name="shop")
        store.put_snapshot(engine.ranker("shop").snapshot())
        store.add_key(KEY)
    return as_owner(address)


def test_a_backup_of_a_database_is_one_file_which_is_restored_anywhere(address, tmp_path):
    backup, file = tmp_path / "monday.db", tmp_path / "back.db"
    assert "has been backed up to" in run("db", "backup", address, backup)
    assert {each.name for each in tmp_path.iterdir()} == {"from", "monday.db"}
    assert stat.S_IMODE(backup.stat().st_mode) == 0o600
    assert contents(backup) == contents(address)
    assert "must not exist: nothing is overwritten" in run("db", "backup", address, backup, code=2)
    run("db", "restore", backup, file)
    assert contents(file) == contents(address)
    empty = as_owner(database(tmp_path / "empty", None))
    assert "has been restored from" in run("db", "restore", backup, empty)
    assert contents(empty) == contents(address)
    assert checked(empty) == checked(address)
    assert "must be empty: nothing is overwritten" in run("db", "restore", backup, empty, code=2)


def test_a_damaged_backup_is_not_restored(address, tmp_path):
    backup = tmp_path / "monday.db"
    run("db", "backup", address, backup)
    forge(str(backup), "UPDATE events SET at = 0 WHERE seq = 3")
    empty = as_owner(database(tmp_path / "empty", None))
    assert "monday.db is damaged" in run("db", "restore", backup, empty, code=1)
    with open_store(empty) as store:
        assert store.rankers() == []


def test_a_damaged_database_makes_no_backup(address, tmp_path):
    forge(address, "UPDATE events SET at = 0 WHERE seq = 3")
    run("db", "backup", address, tmp_path / "monday.db", code=2)
    assert [each.name for each in tmp_path.iterdir()] == ["from"]
    assert "must link to the hash" in run("db", "check", address, code=1)


def test_the_role_that_serves_copies_nothing_into_a_log(address, tmp_path):
    """The secret of a log is its owner's to set."""
    other = database(tmp_path / "other", None)
    run("db", "migrate", as_owner(other), "--grant", SERVING)
    said = run("db", "copy", address, other, code=2)
    assert "permission denied for table once; its owner may" in said
    run("db", "copy", address, as_owner(other))
    assert contents(other) == contents(address)


def test_exports_and_keys_are_as_of_a_file(address, tmp_path):
    serving = address.replace(address.split("//")[1].split("@")[0], f"{SERVING}:{SERVING}")
    lines, table = tmp_path / "shop.ndjson", tmp_path / "shop.parquet"
    assert "9 events in" in run("db", "export", serving, "shop", "--out", lines)
    assert [json.loads(line)["seq"] for line in lines.read_text().splitlines()] == [*range(1, 10)]
    run("db", "export", serving, "shop", "--out", table)
    assert len(pl.read_parquet(table)) == 4
    with open_store(serving):  # beside a service
        made = run("keys", "create", "--db", serving, "--scope", "read", "--ranker", "*").strip()
        prefix = made.split("_")[1]
        listed = json.loads(run("keys", "list", "--db", serving, "--json"))
        assert {each["prefix"] for each in listed} == {KEY.prefix, prefix}
        run("keys", "remove", "--db", serving, prefix)
        assert len(json.loads(run("keys", "list", "--db", serving, "--json"))) == 1
