"""keyhole db outbox: every event is in one file, whatever happens on the way."""

import json
import re

import polars as pl
import pytest
from typer.testing import CliRunner

from keyhole.base.errors import CannotWrite
from keyhole.base.files import writing_atomically
from keyhole.cli import db as db_module
from keyhole.cli.app import app
from keyhole.service.events import Event, Expired, body_bytes
from keyhole.service.store import open_store, outbox
from keyhole.service.store.chain import tip_of
from keyhole.service.store.export import event_records
from keyhole.service.store.integrity import n_events as n_events_of
from tests.service.make_first import copy_first

pytestmark = pytest.mark.interpreted
HOUR = 3_600_000


@pytest.fixture
def log(tmp_path):
    path = tmp_path / "log.db"
    copy_first(path)
    return path


def run(*arguments, code=0):
    given = ["db", "outbox", *(str(argument) for argument in arguments)]
    result = CliRunner().invoke(app, given, env={"COLUMNS": "400"})
    assert result.exit_code == code, result.output + result.stderr
    return result


def expire(path, n_events, *, at):
    """Append events, an hour apart."""
    with open_store(path) as store:
        for number in range(n_events):
            tip = tip_of(store.last("shop"))
            body = body_bytes(Expired((tip.seq,)))
            moment = at + number * HOUR
            store.append([Event("shop", tip.seq + 1, "expire", None, None, moment, body, b"")])


def copied(folder):
    """Return what the folder says, as a reader of hive-partitioned Parquet sees it."""
    table = pl.scan_parquet(folder, hive_partitioning=True)
    return table.collect().sort("ranker", "seq").to_dicts()


def check_copy(path, folder):
    """Compare the copy with the log, event by event, and each file with its name."""
    with open_store(path, read_only=True) as store:
        expected = [
            (ranker, event, json.loads(json.dumps(record)))
            for ranker in store.rankers()
            for event, record in zip(
                store.events(ranker), event_records(store, ranker), strict=True
            )
        ]
    rows = copied(folder)
    assert len(rows) == len(expected) > 0
    for row, (ranker, event, record) in zip(rows, expected, strict=True):
        assert (row["ranker"], row["seq"], row["kind"]) == (ranker, event.seq, event.kind)
        assert (row["event_id"], row["idempotency_key"]) == (event.key, event.idem)
        assert row["link"] == event.link.hex()
        assert row["at"].timestamp() * 1_000 == pytest.approx(event.at, abs=0.5)
        assert str(row["day"]) == row["at"].date().isoformat()
        told = {**json.loads(row["body"]), **{key: record.get(key) for key in outbox._IN_COLUMNS}}
        assert {key: value for key, value in told.items() if value is not None} == record
    for file in folder.glob("*/*/*.parquet"):
        found = pl.read_parquet(file, hive_partitioning=False)["seq"].to_list()
        first, last = map(int, file.stem.split("-"))
        assert found == [*range(first, last + 1)]


def test_all_events_are_copied_and_later_the_new_ones(log, tmp_path):
    folder = tmp_path / "copy"
    with open_store(log, read_only=True) as store:
        n_events = sum(n_events_of(store).values())
    assert f"{n_events} new events in " in run(log, folder).stdout
    check_copy(log, folder)
    before = {file: file.read_bytes() for file in folder.glob("*/*/*.parquet")}
    assert "0 new events in " in run(log, folder).stdout
    expire(log, 30, at=40 * HOUR)
    assert "30 new events in " in run(log, folder).stdout
    check_copy(log, folder)
    days = {file.parent.name for file in folder.glob("ranker=shop/*/*.parquet")}
    assert days == {"day=1970-01-01", "day=1970-01-02", "day=1970-01-03"}
    assert all(file.read_bytes() == content for file, content in before.items())


@pytest.mark.parametrize(("name", "most"), [("_MOST_EVENTS", 7), ("_MOST_BYTES", 900)])
def test_files_end_at_a_size(log, tmp_path, monkeypatch, name, most):
    monkeypatch.setattr(outbox, name, most)
    run(log, tmp_path / "copy")
    check_copy(log, tmp_path / "copy")
    assert len([*tmp_path.glob("copy/ranker=shop/*/*.parquet")]) > 3


def test_a_copy_that_dies_anywhere_goes_on_without_gaps(log, tmp_path, monkeypatch):
    monkeypatch.setattr(outbox, "_MOST_EVENTS", 9)
    folder, writing, n_left = tmp_path / "copy", writing_atomically, 0

    def dies(path):
        nonlocal n_left
        n_left -= 1
        if n_left < 0:
            raise CannotWrite("The disk is full.")
        return writing(path)

    monkeypatch.setattr(outbox, "writing_atomically", dies)
    ends: list[int] = []
    while not ends or ends[-1]:
        n_left = len(ends) % 4
        ends.append(CliRunner().invoke(app, ["db", "outbox", str(log), str(folder)]).exit_code)
    assert len(ends) > 8
    check_copy(log, folder)


def test_what_is_no_copy_of_this_log_is_refused_and_accepted_once_mended(
    log, tmp_path, monkeypatch
):
    monkeypatch.setattr(outbox, "_MOST_EVENTS", 10)
    folder = tmp_path / "copy"
    run(log, folder)
    part = next(folder.glob("ranker=news/*/11-20.parquet"))
    away = part.rename(tmp_path / "away")
    told = run(log, folder, code=2).stderr
    assert re.search(
        r"21-30\.parquet must begin with event 11, the next after the files before", told
    )
    away.rename(part)
    assert "0 new events" in run(log, folder).stdout

    stray = part.with_name("yesterday.parquet")
    stray.write_bytes(b"")
    assert "must be named by its first and last event" in run(log, folder, code=2).stderr
    stray.unlink()
    last = max(
        folder.glob("ranker=shop/*/*.parquet"), key=lambda file: int(file.stem.split("-")[1])
    )
    content = last.read_bytes()
    last.write_bytes(b"no Parquet")
    assert "must be a file that keyhole db outbox wrote" in run(log, folder, code=2).stderr
    pl.read_parquet(part, hive_partitioning=False).write_parquet(last)
    assert "but it is of another one: choose another folder" in run(log, folder, code=2).stderr
    last.write_bytes(content)
    with outbox.held(folder):
        assert "is in use: another process copies" in run(log, folder, code=2).stderr
    assert "0 new events" in run(log, folder).stdout


def test_damage_is_not_copied(log, tmp_path):
    import apsw

    db = apsw.Connection(str(log))
    db.execute("DROP TRIGGER events_never_change")
    db.execute("UPDATE events SET at = at + 1 WHERE ranker = 'shop' AND seq = 5")
    db.close()
    assert "event 5 does not" in run(log, tmp_path / "copy", code=2).stderr
    assert not [*tmp_path.glob("copy/ranker=shop/*/*.parquet")]
    assert [*tmp_path.glob("copy/ranker=news/*/*.parquet")]


def test_it_goes_on_every_so_many_seconds(log, tmp_path, monkeypatch):
    waits = []

    def wait(seconds):
        waits.append(seconds)
        if len(waits) == 3:
            raise KeyboardInterrupt
        if len(waits) == 1:
            expire(log, 2, at=1)

    monkeypatch.setattr(db_module, "sleep", wait)
    told = run(log, tmp_path / "copy", "--every", "2.5", code=130).stdout
    assert waits == [2.5] * 3
    assert [*re.findall(r"(\d+) new events", told)] == ["123", "2"]
    check_copy(log, tmp_path / "copy")
    assert (
        "--every must be a number of at least 1.0"
        in run(log, tmp_path, "--every", "0.5", code=2).stderr
    )
