"""Files of every kind that is read: cut off, changed, inflated, or something else altogether."""

import io
import json
import os
import random
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from bench.fuzz import material, values
from bench.fuzz.scene import ANY, BAD, GOOD, Attack, Scene
from keyhole import LetorStream, Log, load
from keyhole.base.errors import InvalidInput
from keyhole.data.bandit.formats import read_bandit
from keyhole.data.letor.reader import read_letor
from keyhole.data.ratings import read_ratings
from keyhole.monitoring.verify import check_certificate
from keyhole.policies.files import load_policy
from keyhole.rankers.lists.models import load_model

Read = Callable[[Path], Any]


def _scores(path: Path) -> Any:
    """Score a document by a model."""
    model = load_model(path)
    scores = model.scores(np.full((2, min(3, model.n_features)), 0.5))
    if not bool(np.isfinite(scores).all()):
        raise ArithmeticError("a model gives scores that are not finite")
    return scores


def _act(path: Path) -> Any:
    chances = load_policy(path).probabilities([[0.5, 0.25]])
    if not bool(np.isfinite(chances).all()):
        raise ArithmeticError("a policy gives chances that are not finite")
    return chances


def _ranker(path: Path) -> Any:
    made = load(path)
    return made.rank() if made.n_items <= 8 and not made.n_features else None


def _proof(path: Path) -> Any:
    try:
        content = json.loads(path.read_text("utf-8"))
    except (ValueError, OSError) as error:
        raise InvalidInput(str(error).splitlines()[0]) from None  # it is read by its users
    return check_certificate(content)


def _stream(path: Path) -> Any:
    return LetorStream([path]).n_queries


READERS: dict[str, Read] = {
    "train.txt": read_letor,
    "train.txt.gz": read_letor,
    "train.txt.bz2": read_letor,
    "train.txt.xz": _stream,
    "ratings.csv": lambda path: read_ratings(path, threshold=3),
    "log.csv": read_bandit,
    "log.csv.gz": read_bandit,
    "log.parquet": read_bandit,
    "open.csv": read_bandit,
    "model.npz": _scores,
    "kernel.npz": _scores,
    "policy.npz": _act,
    "forest.npz": _act,
    "ranker.npz": _ranker,
    "log.npz": Log.load,
    "proof.json": _proof,
}

COMMANDS: dict[str, list[str]] = {
    "train.txt": ["learn", "train.txt", "--rounds", "20", "--json"],
    "train.txt.gz": ["rank", "train.txt.gz", "--model", "model.npz", "--json"],
    "bare.txt": ["rank", "bare.txt", "--groups", "groups.txt", "--model", "model.npz"],
    "groups.txt": ["rank", "bare.txt", "--groups", "groups.txt", "--model", "model.npz"],
    "ratings.csv": [
        "play",
        "--world",
        "ratings.csv",
        "--threshold",
        "3",
        "--rounds",
        "20",
        "--json",
    ],
    "log.csv": ["evaluate", "log.csv", "--policy", "uniform", "--json"],
    "log.parquet": ["evaluate", "log.parquet", "--policy", "best-fixed"],
    "open.csv": ["evaluate", "open.csv", "--policy", "uniform", "--json"],
    "policy.npz": ["evaluate", "log.csv", "--policy", "policy.npz", "--json"],
    "model.npz": ["rank", "train.txt", "--model", "model.npz"],
    "kernel.npz": ["rank", "train.txt", "--model", "kernel.npz", "--json"],
    "proof.json": ["classify", "--check", "proof.json", "--json"],
    "loss.csv": ["classify", "--loss", "loss.csv", "--feedback", "feedback.csv", "--json"],
    "feedback.csv": ["classify", "--loss", "loss.csv", "--feedback", "feedback.csv"],
}
"""How the command line reads each file; it has the others of the line beside it."""


def warm() -> None:
    """Make the good files, which compiles what is needed for them."""
    for name in material.NAMES:
        material.good(name)


def _good(name: str) -> bytes:
    if name != "log.npz":
        return material.good(name)
    log = Log.empty(0, 0, 4, 3)._replace(rankings=np.tile(np.arange(3), 4), values=np.ones(12))
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **log._asdict())
    return buffer.getvalue()


def _packed(name: str) -> bool:
    return name.endswith((".npz", ".gz", ".bz2", ".xz", ".parquet"))


def hurt(chance: random.Random, name: str, content: bytes) -> tuple[str, str, bytes]:
    """Return a label, a kind, and a file that is not what it was."""
    attack = chance.random()
    if attack < 0.08:
        return GOOD, "a good file", content
    if attack < 0.1:
        return BAD, "an empty file", b""
    if attack < 0.22 and _packed(name):
        return BAD, "a packed file cut off", content[: chance.randrange(1, len(content) - 4)]
    if name.endswith(".npz") and attack < 0.75:
        return _hurt_arrays(chance, content)
    if attack < 0.24 and name.rpartition(".")[2] in ("gz", "bz2", "xz", "npz"):
        return (
            BAD,
            "a file that inflates to a hundred times",
            material.bomb(name.rpartition(".")[2]),
        )
    if not _packed(name) and attack < 0.55:
        return ANY, "other digits in a file", values.renumbered(chance, content)
    if not _packed(name) and attack < 0.85:
        text = content.decode("utf-8", "replace")
        return (
            ANY,
            "other words in a file",
            values.reworded(chance, text).encode("utf-8", "replace"),
        )
    if attack < 0.88:
        other = chance.choice(material.NAMES)
        return ANY, "another file", material.good(other)
    return ANY, "other bytes in a file", values.flipped(chance, content)


def _hurt_arrays(chance: random.Random, content: bytes) -> tuple[str, str, bytes]:
    """Return an archive of arrays that are not what they were."""
    parts = material.members(content)
    name = chance.choice([*parts])
    bare = name.removesuffix(".npy")
    array = np.load(io.BytesIO(parts[name]), allow_pickle=False)
    match chance.randrange(14):
        case 11 | 12 | 13 if array.dtype.kind == "f":
            scale = chance.choice((0.5, 2.0, -1.0, 1e-300, 1e9, 1e150, 0.0))
            return ANY, "other numbers in a file", material.with_array(content, bare, array * scale)
        case 0:
            return (
                BAD,
                "an array is missing",
                material.archive_of({n: c for n, c in parts.items() if n != name}),
            )
        case 1:
            header = (
                np.lib.format.magic(1, 0)
                + b"v\x00"
                + (b"{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000,), }").ljust(
                    117
                )
                + b"\n"
            )
            return (
                BAD,
                "an array that claims a terabyte",
                material.archive_of({**parts, name: header}),
            )
        case 2:
            pickled = np.array([{"a": 1}, None], dtype=object)
            return BAD, "pickled objects", material.with_array(content, bare, pickled)
        case 3 if array.dtype.kind == "f" and array.size:
            changed = array.copy()
            changed.flat[chance.randrange(array.size)] = chance.choice(values.NOT_FINITE)
            return ANY, "not finite numbers in a file", material.with_array(content, bare, changed)
        case 4 | 5 | 6:
            changed = chance.choice(
                (array[..., None], array.astype("U9"), np.asarray(values.real(chance)), np.zeros(0),
                 np.full(array.shape, values.whole(chance) % 2**63), values.array(chance),
                 np.zeros((3, 3)), array.astype("c16") if array.dtype.kind in "fib" else array)
            )  # fmt: skip
            if changed.dtype.kind == "O":
                changed = np.zeros(2)
            return ANY, "another array in a file", material.with_array(content, bare, changed)
        case 7:
            locked = bytearray(content)
            for mark, place in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
                start = locked.find(mark)
                locked[start + place] |= 1
            return BAD, "an encrypted archive", bytes(locked)
        case 8:
            return BAD, "an array without a name", parts[name]
        case 9:
            return (
                ANY,
                "bytes of an array",
                material.archive_of(
                    {**parts, name: values.flipped(chance, parts[name])},
                    chance.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_LZMA)),
                ),
            )
        case _:
            return ANY, "other bytes in an archive", values.flipped(chance, content)


def _instead(chance: random.Random, path: Path) -> tuple[str, str]:
    """Put something in a file's place that is no file; return it, in words."""
    match chance.randrange(4):
        case 0:
            path.mkdir()
            return str(path.name), "a folder"
        case 1:
            path.symlink_to(path)
            return str(path.name), "a link to itself"
        case 2:
            return os.devnull, "the null device"
        case _:
            return "missing/" + path.name, "nothing"


def draw(chance: random.Random) -> Attack:
    """Return the reading of a broken file, by the library or the command line."""
    by_command = chance.random() < 0.35
    name = chance.choice([*COMMANDS] if by_command else [*READERS])
    replaced = chance.random() < 0.04
    label, kind, content = hurt(chance, name, _good(name))
    what = f"{name}: {kind}" if not replaced else f"{name}: replaced"

    def act(scene: Scene) -> None:
        line, place, wanted, of_what = list(COMMANDS.get(name, [])), name, label, kind
        if replaced:
            place, of_what = _instead(chance, scene.folder / name)
            wanted, line = BAD, [place if part == name else part for part in line]
        else:
            scene.write(name, content)
            scene.note(f"{name} is {content[:2000]!r}")
        for other in line:
            if other in material.NAMES and other != name:
                scene.write(other, material.good(other))
        of_what = f"{of_what}, {name}"
        if by_command:
            scene.command(line, wanted, of_what)
        else:
            read = READERS[name]
            scene.attempt(f"read {place}", lambda: read(Path(place)), wanted, of_what)

    return Attack(what, act)
