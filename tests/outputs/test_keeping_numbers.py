"""What the commands tell that look after an installation: logs, keys, code, checks."""

import json
import os
import re
import time
from typing import Any

import apsw
import numpy as np
import pytest

import keyhole
from keyhole import Flips, Top
from keyhole.checks.base import a_relabelling
from keyhole.cli import doctor, warm
from tests.lab.running import run
from tests.lab.test_own_files import FILES
from tests.service.make_first import copy_first
from tests.unit.references import RANKER, dcg, descending, units

pytestmark = pytest.mark.interpreted

BROKEN = FILES["greedy.py"].replace("state.totals[seen.ranking[0]] +=", "state.totals[0] +=")


def told(*arguments, code=0):
    return json.loads(run(*arguments, "--json", code=code).stdout)


@pytest.fixture
def log(tmp_path):
    path = tmp_path / "log.db"
    copy_first(path)
    return path


def test_a_log_has_the_rows_of_its_tables(log):
    found = {row["ranker"]: row for row in told("db", "check", log)["rankers"]}
    db = apsw.Connection(str(log), flags=apsw.SQLITE_OPEN_READONLY)
    counted = db.execute("SELECT ranker, count(*), max(seq) FROM events GROUP BY ranker").fetchall()
    snapshots: dict[Any, Any] = dict(
        db.execute("SELECT ranker, count(*) FROM snapshots GROUP BY ranker")
    )
    db.close()
    assert {name: (row["n_events"], row["seq"]) for name, row in found.items()} == {
        name: (n_events, last) for name, n_events, last in counted
    }
    for name, row in found.items():
        assert row["n_snapshots"] == snapshots.get(name, 0)
    assert len(found) >= 1


@pytest.mark.parametrize("days", [1, 30])
def test_keys_end_as_many_days_after_they_were_made(days, log):
    before = time.time() * 1000
    run("keys", "create", "--scope", "rank", "--ranker", "news", "--db", log)
    run("keys", "create", "--scope", "read", "--ranker", "*", "--db", log, "--expires-days", days)
    after = time.time() * 1000
    listed = [key for key in told("keys", "list", "--db", log) if key["created_at"] > 10_000]
    keys = {key["scopes"][0]: key for key in listed}  # the log has one of before
    for key in keys.values():
        assert before - 1 <= key["created_at"] <= after
    assert keys["rank"]["expires_at"] is None
    assert keys["read"]["expires_at"] == keys["read"]["created_at"] + days * 24 * 60 * 60 * 1000


def test_compiled_code_is_counted(tmp_path, monkeypatch):
    (tmp_path / "code" / "deep").mkdir(parents=True)
    sizes = {"a.code": 100, "deep/b.code": 2345, "other.txt": 7}
    for name, size in sizes.items():
        (tmp_path / "code" / name).write_bytes(b"x" * size)
    monkeypatch.setattr(doctor, "kept_in", lambda: tmp_path / "code")
    monkeypatch.setattr(doctor, "play_known_game", lambda: 0.5)
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    began = time.perf_counter()
    report = told("doctor", code=1)
    assert (report["cache"]["files"], report["cache"]["bytes"]) == (2, 2445)
    assert report["cores"]["there"] == os.cpu_count()
    assert report["cores"]["usable"] == len(os.sched_getaffinity(0))
    assert report["self_test"]["average_regret"] == 0.5
    assert 0.0 < report["self_test"]["seconds"] < time.perf_counter() - began


def test_the_known_game_is_added_up_by_hand():
    """The best ranking of DCG sorts by what was gained so far."""
    ranker, world, rounds = keyhole.ranker("epsilon-greedy", n_items=20, seed=0), Flips(20), 2000
    scored, totals = 0.0, np.zeros(20)
    for t in range(rounds):
        relevance, impression = world.relevance(t, seed=0), ranker.rank()
        ranker.update(impression, Top(1)(relevance, impression.ranking, round=t, seed=0))
        scored += dcg(relevance, impression.ranking)
        totals = totals + relevance
    discount = [dcg([1.0], [0])] + [
        dcg([0.0] * p + [1.0], list(range(p + 1))) for p in range(1, 20)
    ]
    best = sum(totals[item] * d for item, d in zip(descending(totals), discount, strict=True))
    assert pytest.approx((best - scored) / rounds, rel=1e-9) == doctor.KNOWN_REGRET


def test_what_is_compiled_ahead_is_counted(tmp_path, monkeypatch):
    def compiles(name):
        return lambda: (tmp_path / f"{name}.code").write_bytes(b"")

    cases = [("one", compiles("a")), ("two", compiles("a")), ("three", compiles("b"))]
    monkeypatch.setattr(warm, "code_folder", lambda: tmp_path)
    monkeypatch.setattr(warm, "_all_cases", lambda _: cases)
    (tmp_path / "before.code").write_bytes(b"")
    began = time.perf_counter()
    report = told("warm", "--jobs", 1)
    assert (report["cases"], report["new_files"]) == (3, 2)
    assert 0.0 <= report["seconds"] <= time.perf_counter() - began + 0.001


def test_a_check_that_fails_names_the_first_round_that_differs(tmp_path):
    """A ranker that gives all credit to item 0: relabelled, it has another list at once."""
    (tmp_path / "own.py").write_text(BROKEN)
    rows = told("check", "--ranker", f"{tmp_path / 'own.py'}:Greedy", "--items", 4, code=1)
    (why,) = (row["why"] for row in rows if "relabel" in row["check"])
    named = int(re.findall(r"; round (\d+) differs\.$", why)[0])
    assert named == first_that_differs()


def first_that_differs():
    """Return the first round in which it tells whether an item or its namesake has the credit.

    Items are sorted by their totals and a tenth of noise, which moves with the items.
    """
    totals, world = np.zeros((2, 4)), Flips(4, n_relevant=1)
    credited = [0, int(a_relabelling(4)[0])]
    for t in range(60):
        noise = units((0, 0, RANKER, t), 0, 4)
        one, other = (descending(row + 0.1 * noise) for row in totals)
        if one.tolist() != other.tolist():
            return t
        value = world.relevance(t)[one[0]]
        for row, item in zip(totals, credited, strict=True):
            row[item] += value
    return None
