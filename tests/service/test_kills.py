"""A service that is killed loses nothing that it has acknowledged."""

import subprocess
import sys
from pathlib import Path

import pytest

from bench import http_kills, service_kills
from keyhole.service.commands import Rank, RankRequest
from keyhole.service.group_commit import Desk
from keyhole.service.store import open_store
from keyhole.service.store.memory import MemoryStore

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(("store", "times"), [("sqlite", 200), ("postgresql", 40)])
def test_no_kill_loses_an_event(store, times):
    command = ["-m", "bench.service_kills", "--times", str(times), "--http", "2", "--store", store]
    ran = subprocess.run(
        [sys.executable, *command],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert f"{times} kills" in ran.stdout
    assert "0 lost" in ran.stdout
    was_killed = "times the processes of PostgreSQL were killed" in ran.stdout
    assert was_killed == (store == "postgresql")
    assert "2 of them of keyhole serve with " in ran.stdout


def test_what_is_lost_is_found_out():
    """What says 0 lost must be able to say otherwise."""
    desk = Desk(MemoryStore())
    desk.engine.execute(service_kills._CREATE)
    assert service_kills.what_is_wrong(desk, []) == ""
    assert "is lost" in service_kills.what_is_wrong(desk, ["feedback e1"])
    assert "is lost" in service_kills.what_is_wrong(desk, ["rank e1"])


def test_what_the_log_of_a_process_lacks_is_found_out(tmp_path):
    path = str(tmp_path / "log.db")
    with open_store(path) as store:
        desk = Desk(store)
        desk.engine.execute(service_kills._CREATE)
        shown = desk.engine.execute(Rank("animals", RankRequest()))
    line = f"rank {shown.event_id}"
    assert http_kills._missing(path, [line]) == ""
    lost = f"feedback {shown.event_id}"
    assert (
        http_kills._missing(path, [line, lost]) == f"{lost} was acknowledged and is there 0 times"
    )
