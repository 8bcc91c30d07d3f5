"""Good files of every kind that the library reads, made once, to be broken by attacks."""

import bz2
import gzip
import io
import json
import lzma
import random
import tempfile
import zipfile
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from bench.fuzz.rounds import cast, play_some
from keyhole.data.bandit.files import write_bandit_csv, write_bandit_parquet
from keyhole.data.bandit.formats import write_open_bandit
from keyhole.data.bandit.log import BanditLog
from keyhole.monitoring.classification import classify
from keyhole.policies.base import EpsilonGreedy, Greedy
from keyhole.policies.files import save_policy
from keyhole.policies.forest import ForestScorer
from keyhole.policies.linear import LinearScorer
from keyhole.rankers.lists.models import save_model

BOMB = 100 * 2**20
"""Bytes that a bomb inflates to: more than the limit that workers set."""


def _written(name: str, write: Callable[[Path], Any]) -> bytes:
    """Return what a function writes to a file of some name."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        write(path)
        return path.read_bytes()


def _letor() -> bytes:
    chance, lines = random.Random(0), []
    for query in range(6):
        for _ in range(chance.randint(2, 5)):
            features = " ".join(f"{index}:{chance.random():.3f}" for index in (1, 2, 3))
            lines.append(f"{chance.randint(0, 2)} qid:{query} {features} # document")
        lines.append(f"1 qid:{query} 1:0.5 3:0.25")
    return ("\n".join(lines) + "\n").encode()


def _ratings() -> bytes:
    return b"tea,coffee,milk,water\n" + b"5,1,3,2\n4,2,1,5\n5,4,1,3\n1,1,5,4\n" * 4


def _bandit() -> BanditLog:
    numbers = np.random.default_rng(0)
    n = 40
    return BanditLog.of(
        numbers.random((n, 2)), actions=np.arange(n) % 2, rewards=(np.arange(n) % 3 == 0) * 1.0,
        propensities=np.full(n, 0.5),
    )  # fmt: skip


def _open_bandit() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        return write_open_bandit(_bandit(), folder).read_bytes()


def _model(name: str) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        made = cast(name)
        play_some(made, random.Random(0), 6)
        save_model(path, made, made.state._asdict(), minmax=True)

    return write


def _ranker(path: Path) -> None:
    made = cast("rtopk")
    play_some(made, random.Random(0), 6)
    made.save(path)


_FOREST = ([0, -1, -1, -1], [0.5, 0, 0, 0], [1, -1, -1, -1], [2, -1, -1, -1], [0, 0.5, 0.2, 0.1],
           [0, 3, 4], [0, 1, 2])  # fmt: skip


def _proof() -> bytes:
    return json.dumps(classify("NDCG", 3, 1, 2).certificate(), default=str).encode()


_MAKERS: dict[str, Callable[[], bytes]] = {
    "train.txt": _letor,
    "train.txt.gz": lambda: gzip.compress(_letor(), mtime=0),
    "train.txt.bz2": lambda: bz2.compress(_letor()),
    "train.txt.xz": lambda: lzma.compress(_letor()),
    "groups.txt": lambda: b"2\n3\n",
    "bare.txt": lambda: b"".join(b"%d 1:0.%d 2:1\n" % (i % 2, i) for i in range(5)),
    "ratings.csv": _ratings,
    "log.csv": lambda: _written("log.csv", lambda path: write_bandit_csv(_bandit(), path)),
    "log.csv.gz": lambda: _written("log.csv.gz", lambda path: write_bandit_csv(_bandit(), path)),
    "log.parquet": lambda: _written("l.parquet", partial(write_bandit_parquet, _bandit())),
    "open.csv": _open_bandit,
    "model.npz": lambda: _written("m.npz", _model("contextual-rtopk")),
    "kernel.npz": lambda: _written("k.npz", _model("kernel-slam")),
    "policy.npz": lambda: _written("p.npz", lambda path: save_policy(
        EpsilonGreedy(LinearScorer([[1.0, 0.5], [0.25, 2.0]], [0.0, 0.5]), 0.2), path)),
    "forest.npz": lambda: _written("f.npz", lambda path: save_policy(
        Greedy(ForestScorer(_FOREST, 2)), path)),
    "ranker.npz": lambda: _written("r.npz", _ranker),
    "proof.json": _proof,
    "loss.csv": lambda: b"0,1,1/2\n1,0,0.25\n0.5,1/3,0\n",
    "feedback.csv": lambda: b"a,b,b\nc,c,d\ne,f,g\n",
}  # fmt: skip


@cache
def good(name: str) -> bytes:
    """Return a good file by its name."""
    return _MAKERS[name]()


NAMES = tuple(_MAKERS)


@cache
def bomb(kind: str) -> bytes:
    """Return a small file that inflates to a large one: gz, bz2, xz, or npz."""
    nothing = bytes(BOMB)
    if kind != "npz":
        pack: Any = {"gz": lambda data: gzip.compress(data, 1, mtime=0), "bz2": bz2.compress,
                     "xz": lambda data: lzma.compress(data, preset=0)}[kind]  # fmt: skip
        return pack(nothing)
    buffer, header = io.BytesIO(), io.BytesIO()
    np.lib.format.write_array_header_1_0(
        header, {"descr": "<f8", "fortran_order": False, "shape": (BOMB // 8,)}
    )
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        archive.writestr("weights.npy", header.getvalue() + nothing)
        archive.writestr("minmax.npy", _npy(np.array(True)))
    return buffer.getvalue()


def _npy(array: Any) -> bytes:
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, np.asarray(array), allow_pickle=True)
    return buffer.getvalue()


def members(content: bytes) -> dict[str, bytes]:
    """Return the arrays of an archive as the bytes of their files."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def archive_of(parts: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    """Return an archive of some files."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as archive:
        for name, content in parts.items():
            archive.writestr(zipfile.ZipInfo(name), content, method)
    return buffer.getvalue()


def with_array(content: bytes, name: str, array: Any) -> bytes:
    """Return an archive of arrays in which one has become another."""
    return archive_of({**members(content), f"{name}.npy": _npy(array)})
