"""Input that claims more than it is: packed zeros, devices without an end, one huge number."""

import bz2
import gzip
import lzma
import os
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from keyhole.base.errors import InvalidInput
from keyhole.base.limits import VARIABLE
from keyhole.data.bandit import tables
from keyhole.data.bandit.formats import read_bandit
from keyhole.data.bandit.log import BanditLog
from keyhole.data.letor.reader import read_letor
from keyhole.data.packed import TextFile, unpack
from keyhole.data.ratings import read_ratings
from keyhole.offline.evaluation import best_fixed_action

MEGABYTE = 2**20
PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "bzip2": bz2.compress,
    "xz": lzma.compress,
}
READERS: dict[str, Callable[..., Any]] = {
    "LETOR": read_letor,
    "ratings": read_ratings,
    "log": read_bandit,
}


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setattr("keyhole.base.limits._ALWAYS_ALLOWED", MEGABYTE)  # smaller files will do


@pytest.mark.parametrize("packer", PACKERS)
@pytest.mark.parametrize("reader", READERS)
def test_a_file_that_inflates_is_refused_before_it_does(reader, packer, tmp_path):
    path = tmp_path / "input"
    path.write_bytes(PACKERS[packer](b"a" + bytes(16 * MEGABYTE)))
    tracemalloc.start()
    with pytest.raises(InvalidInput, match=f"unpacked, would take .*{VARIABLE} raises it"):
        READERS[reader](path)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 12 * MEGABYTE


@pytest.mark.parametrize("packer", PACKERS)
@pytest.mark.parametrize("size", [0, 1, 999, 1000, 1001, 2000, 200_000])
def test_what_is_unpacked_in_steps_is_whole(packer, size, tmp_path, monkeypatch):
    monkeypatch.setattr("keyhole.data.packed._STEP", 1000)
    text = np.random.default_rng(size).integers(97, 100, size, np.uint8).tobytes() + b"a" * size
    packed = PACKERS[packer](text) + PACKERS[packer](b"more") + bytes(2)
    assert unpack(Path("input"), packed, "CSV") == text + b"more"
    path = tmp_path / "input"
    path.write_bytes(packed)
    file = TextFile(path, "CSV")
    assert file.read(10 * MEGABYTE) == text + b"more"
    file.close()


@pytest.mark.parametrize("reader", READERS)
def test_devices_and_folders_are_no_input(reader, tmp_path):
    for name in ("zero", "null", "urandom"):
        with pytest.raises(InvalidInput, match=r"must be a readable \w+ file: It is no file but"):
            READERS[reader](Path(os.devnull).with_name(name))
    with pytest.raises(InvalidInput, match="Is a directory"):
        READERS[reader](tmp_path)
    with pytest.raises(InvalidInput, match="File name too long"):
        READERS[reader](Path("a" * 40_000))
    with pytest.raises(InvalidInput, match="null byte"):
        READERS[reader](Path("a\0b"))


def test_a_pipe_is_read_and_bounded(tmp_path, monkeypatch):
    monkeypatch.setenv(VARIABLE, "1M")
    for n_rows, why in ((3, ""), (10**6, "more than the limit of 1.0 MiB")):
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(reader)
            with os.fdopen(writer, "wb") as file:
                try:
                    file.write(b"a,b\n" + b"1,2\n" * n_rows)
                    file.flush()
                finally:
                    os._exit(0)
        os.close(writer)
        path = Path(os.devnull).with_name("fd") / str(reader)
        if why:
            with pytest.raises(InvalidInput, match=why):
                read_ratings(path)
        else:
            assert read_ratings(path).values.shape == (n_rows, 2)
        os.close(reader)
        os.waitpid(child, 0)


def log_of(path, action="1", propensity="0.5", reward="1", feature="2"):
    rows = [f"{i % 2},0.5,{i % 2},1" for i in range(9)]
    rows += [f"{action},{propensity},{reward},{feature}"]
    path.write_text("\n".join(["action,propensity,reward,x_a", *rows]) + "\n")
    return read_bandit(path)


@pytest.mark.parametrize(
    ("cells", "why"),
    [
        ({"action": "30000000"}, "line 11: an action of 30000000 means 30000001 actions, far"),
        ({"action": "1e308"}, "line 11, column 'action': a whole number is needed"),
        ({"propensity": "5e-324"}, "line 11: a propensity must be above 0"),
        ({"reward": "1e308"}, "line 11: a reward must be a finite number of a size up to"),
        ({"feature": "-1e308"}, "line 11: a number of a context must be a finite number of a"),
        ({"feature": "1" * 200_000}, "readable as CSV: field larger than field limit"),
    ],
)
def test_one_cell_does_not_claim_a_memory(cells, why, tmp_path):
    assert log_of(tmp_path / "log.csv").n_actions == 2
    with pytest.raises(InvalidInput, match=why):
        log_of(tmp_path / "log.csv", **cells)


def test_lines_that_end_with_a_carriage_return_alone(tmp_path):
    path = tmp_path / "log.csv"
    log = log_of(path)
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r"))
    assert (read_bandit(path).contexts == log.contexts).all()


def test_many_actions_that_were_never_taken_change_nothing():
    actions = np.array([3, 5, 5, 3, 9, 9])
    log = BanditLog.of(np.zeros((6, 0)), actions, [1, 0, 1, 1, 0, 0], np.full(6, 0.5))
    many = BanditLog.of(
        np.zeros((6, 0)), actions, [1, 0, 1, 1, 0, 0], np.full(6, 0.5), n_actions=5000
    )
    assert best_fixed_action(log) == best_fixed_action(many) == 3
    bad = BanditLog.of(np.zeros((6, 0)), actions, -log.rewards - 1, np.full(6, 0.5), n_actions=5000)
    assert best_fixed_action(bad) == 0  # never taken, and so worth 0, more than all others


@pytest.mark.parametrize("options", [{}, {"grades": 3}, {"threshold": 2.0}, {"n_chosen": 1}])
def test_ratings_beyond_arithmetic(options, tmp_path):
    path = tmp_path / "ratings.csv"
    path.write_text("a,b\n1e308,-1e308\n3,4\n")
    with pytest.raises(InvalidInput, match="line 2, column 'a': a rating must be a number, got"):
        read_ratings(path, **options)


def test_a_parquet_file_that_inflates(tmp_path):
    pl = pytest.importorskip("polars")
    path, n_rows = tmp_path / "log.parquet", 1_000_000
    names = ("action", "propensity", "reward")
    columns = {name: pl.repeat(1, n_rows, eager=True, dtype=pl.Int8) for name in names}
    pl.DataFrame(columns).write_parquet(path)
    with pytest.raises(InvalidInput, match=r"unpacked, would take 22\.9 MiB"):
        read_bandit(path)


def test_a_table_of_features_that_one_index_claims(tmp_path, monkeypatch):
    monkeypatch.setenv(VARIABLE, "100M")
    path = tmp_path / "train.txt"
    path.write_text("".join(f"{i % 2} qid:1 1:1 16000000:1\n" for i in range(60)))
    with pytest.raises(InvalidInput, match=f"must fit into memory as a table.*{VARIABLE}"):
        read_letor(path)


def test_polars_is_not_asked_where_there_is_no_memory(monkeypatch, tmp_path):
    """It would end the process; looking before is a MemoryError, which is a sentence."""
    path = tmp_path / "log.csv"
    path.write_text("context_0,action,reward,propensity\n0.5,1,0,0.5\n")
    monkeypatch.setattr(tables, "_ROOM", 2**60)
    with pytest.raises(MemoryError):
        tables.read_parquet(path)
