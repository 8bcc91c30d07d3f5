"""keyhole db, as a user meets it."""

import json
import stat
import sys

import apsw
import polars as pl
import pytest
from typer.testing import CliRunner

from bench.disks import FailingDisk
from keyhole.base.errors import LibraryMissing
from keyhole.cli.app import app
from keyhole.cli.exit_codes import needing
from keyhole.service.store import open_store
from keyhole.service.store.integrity import check_log
from tests.service.chains import more
from tests.service.make_first import FIXTURES, copy_first


def run(*arguments, code=0):
    given = ["db", *(str(argument) for argument in arguments)]
    result = CliRunner().invoke(app, given, env={"COLUMNS": "200"})
    assert result.exit_code == code, result.output + result.stderr
    return result


@pytest.fixture
def log(tmp_path):
    path = tmp_path / "log.db"
    copy_first(path)
    return path


def forge(path, statement):
    db = apsw.Connection(str(path))
    db.execute("DROP TRIGGER events_never_change")
    db.execute(statement)
    db.close()


def contents(path):
    with open_store(path, read_only=True) as store:
        return [event for ranker in store.rankers() for event in store.events(ranker)]


def test_a_whole_log_passes(log):
    expected = json.loads((FIXTURES / "first.json").read_text())
    text = run("check", log).stdout
    assert "PASS news: 41 events, 1 snapshot, state " in text
    assert f"{log} is intact." in text
    record = json.loads(run("check", log, "--json").stdout)
    assert record["problems"] == []
    for ranker in record["rankers"]:
        assert ranker["sha256"] == expected[ranker["ranker"]]["sha256"]


@pytest.mark.parametrize(
    ("forgery", "sentence"),
    [
        (
            "UPDATE events SET at = 0 WHERE ranker = 'shop' AND seq = 9",
            "must link to the hash of the event before it",
        ),
        (
            "UPDATE snapshots SET sha256 = 'x' WHERE ranker = 'news'",
            "does not match the replayed log",
        ),
        (
            "UPDATE snapshots SET seq = 10000 WHERE ranker = 'news'",
            "snapshot after event 10000, but",
        ),
    ],
)
def test_a_forged_log_fails_with_exit_code_1(log, forgery, sentence):
    forge(log, forgery)
    assert sentence in run("check", log, code=1).stdout
    record = json.loads(run("check", log, "--json", code=1).stdout)
    assert sentence in record["problems"][0]


def test_what_is_no_log_is_told_apart_from_what_is_damaged(log, tmp_path):
    assert "there is no file" in run("check", tmp_path / "none.db", code=2).stderr
    db = apsw.Connection(str(log))
    db.execute("PRAGMA user_version = 99")
    db.close()
    assert "a newer Keyhole wrote it" in run("check", log, code=2).stderr
    log.write_bytes(log.read_bytes()[:6_000])
    assert "Damaged: " in run("check", log, code=1).stdout


def test_backups_are_taken_beside_the_one_that_writes_and_restored(log, tmp_path):
    copy, back = tmp_path / "copy.db", tmp_path / "back.db"
    with open_store(log) as store:
        more(store, 5, ranker="extra")
        before = contents(log)
        assert "has been backed up to" in run("backup", log, copy).stdout
        more(store, 5, ranker="extra")
    assert contents(copy) == before
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600
    assert not [
        file for file in tmp_path.iterdir() if file.name.startswith((".keyhole", "copy.db-"))
    ]
    # What was appended means nothing to a ranker: what cannot be replayed is not restored.
    assert "cannot be replayed" in run("restore", copy, back, code=1).stderr
    assert not back.exists()


def test_a_restored_log_is_the_one_that_was_backed_up(log, tmp_path):
    copy, back = tmp_path / "copy.db", tmp_path / "back.db"
    run("backup", log, copy)
    run("restore", copy, back)
    assert contents(back) == contents(log)
    with open_store(back) as store, open_store(log) as old:
        assert (store.secret(), store.keys()) == (old.secret(), old.keys())
        assert [store.snapshots(name) for name in ("shop", "news")] == [
            old.snapshots(name) for name in ("shop", "news")
        ]
        check_log(store)
        more(store, 1, ranker="new")


def test_nothing_is_overwritten(log, tmp_path):
    other = tmp_path / "other.db"
    other.write_text("precious")
    for command in ("backup", "restore"):
        assert "must not exist: nothing is overwritten" in run(command, log, other, code=2).stderr
    assert other.read_text() == "precious"
    other.unlink()
    # A journal without its log would be taken for that of the new one.
    (tmp_path / "other.db-wal").write_text("stale")
    assert "other.db-wal must not exist" in run("restore", log, other, code=2).stderr
    assert not other.exists()


def test_a_damaged_log_makes_no_backup(log, tmp_path):
    forge(log, "UPDATE events SET at = 0 WHERE ranker = 'shop' AND seq = 9")
    assert "log.db is damaged: " in run("backup", log, tmp_path / "copy.db", code=1).stderr
    assert {file.name for file in tmp_path.iterdir()} <= {"log.db", "log.db-wal", "log.db-shm"}


def test_where_a_copy_cannot_be_written_it_says_so(log, tmp_path, monkeypatch):
    missing = tmp_path / "no" / "folder.db"
    assert "cannot be written: No such file" in run("backup", log, missing, code=3).stderr
    monkeypatch.setattr(sys, "unraisablehook", lambda _: None)
    disk = FailingDisk("write", 5, apsw.FullError, n_failures=10**6)
    opened = apsw.Connection
    monkeypatch.setattr(
        apsw, "Connection", lambda name, **kw: opened(name, **{**kw, "vfs": _full(disk, name)})
    )
    assert "copy.db cannot be written" in run("backup", log, tmp_path / "copy.db", code=3).stderr
    assert {file.name for file in tmp_path.iterdir()} <= {"log.db", "log.db-wal", "log.db-shm"}


def _full(disk, name):
    return disk.name if ".keyhole-" in name else None


def test_exports_are_lines_or_a_table(log, tmp_path):
    lines, table = tmp_path / "shop.ndjson", tmp_path / "shop.parquet"
    assert "82 events in" in run("export", log, "shop", "--out", lines).stdout
    assert [json.loads(line)["seq"] for line in lines.read_text().splitlines()] == [*range(1, 83)]
    run("export", log, "shop", "--out", lines, "--after", 80)
    assert len(lines.read_text().splitlines()) == 2
    assert "80 rows in" in run("export", log, "shop", "--out", table).stdout
    assert {"action", "position", "pscore", "reward"} <= set(pl.read_parquet(table).columns)


def test_exports_name_what_there_is(log, tmp_path):
    out = tmp_path / "x.ndjson"
    said = run("export", log, "shoop", "--out", out, code=2).stderr
    assert "must be one of news, shop, got 'shoop'. Did you mean 'shop'?" in said
    said = run("export", log, "shop", "--out", tmp_path / "x.csv", code=2).stderr
    assert "The ending of --out must be one of .ndjson, .parquet, got '.csv'" in said
    assert not out.exists()


def test_without_its_libraries_the_command_says_which(log, monkeypatch):
    for name in [name for name in sys.modules if name.startswith("keyhole.service.store.sqlite")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "apsw", None)
    said = run("check", log, code=2).stderr
    assert "needs apsw: pip install -e '.[service]'" in said
    with pytest.raises(LibraryMissing) as raised, needing("The service", "service"):
        raise ModuleNotFoundError(name="msgspec")
    assert "needs msgspec: pip install -e '.[service]'" in str(raised.value)
    with pytest.raises(ModuleNotFoundError), needing("The service", "service"):
        raise ModuleNotFoundError(name="keyhole.gone")
