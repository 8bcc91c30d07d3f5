"""A folder of parsed files, found again by what was in the text.

An entry is a folder of ``.npy`` files and a manifest with their sizes, shapes and checksums. It
is written under another name and renamed when complete. An entry that is not what its manifest
says is as good as none.
"""

import hashlib
import json
import os
import shutil
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from keyhole.base.files import shortened, warn
from keyhole.data.letor.parse import Options

FORMAT = 2
"""Changes whenever the same text would be stored as something else."""

_MANIFEST = "manifest.json"
_PIECE, _N_PIECES = 2**16, 16
_HASHED = 2**22


def key(texts: Sequence[Any], groups: Sequence[Any], options: Options, run: Any) -> str:
    """Return a name for the bytes of some files and how they are read.

    It is a digest of the digests of pieces, which ``run`` computes at the same time.
    """
    given = {**asdict(options), "dtype": np.dtype(options.dtype).name}
    sizes = [raw.shape[0] for raw in (*texts, *groups)]
    head = json.dumps([FORMAT, len(texts), sizes, given])
    digest = hashlib.blake2b(head.encode(), digest_size=16)
    for raw in (*texts, *groups):
        pieces = [raw[begin : begin + _HASHED] for begin in range(0, raw.shape[0], _HASHED)]
        digest.update(b"".join(run(_digest, pieces)))
    return digest.hexdigest()


def _digest(piece: Any) -> bytes:
    return hashlib.blake2b(piece).digest()


def _checksum(path: Path) -> str:
    """Return a digest of a file's size and of up to 16 pieces, its first and last among them."""
    size = path.stat().st_size
    digest = hashlib.blake2b(size.to_bytes(8, "little"), digest_size=16)
    with path.open("rb") as file:
        for piece in range(_N_PIECES):
            file.seek(max(size - _PIECE, 0) * piece // (_N_PIECES - 1))
            digest.update(file.read(_PIECE))
    return digest.hexdigest()


def load(folder: Path, name: str) -> tuple[dict[str, Any], int] | None:
    """Return the arrays of an entry, mapped into memory, and its count of dropped queries."""
    entry = folder / name
    try:
        digest, _, text = (entry / _MANIFEST).read_text("ascii").partition("\n")
        if digest != hashlib.blake2b(text.encode(), digest_size=16).hexdigest():
            return None
        manifest = json.loads(text)
        arrays = {}
        for part, (checksum, dtype, shape) in manifest["arrays"].items():
            path = entry / f"{part}.npy"
            if _checksum(path) != checksum:
                return None
            array = np.load(path, mmap_mode="r", allow_pickle=False)
            if array.dtype.str != dtype or list(array.shape) != shape:
                return None
            arrays[part] = np.asarray(array)
    except (OSError, ValueError, LookupError):
        return None
    return arrays, int(manifest["n_dropped"])


def store(folder: Path, name: str, arrays: Mapping[str, Any], n_dropped: int) -> None:
    """Write an entry, in place of a broken one if there is one; warn if that cannot be."""
    new = folder / f".new-{uuid.uuid4().hex}"
    try:
        new.mkdir(parents=True)
        written = {}
        for part, array in arrays.items():
            path = new / f"{part}.npy"
            with path.open("wb") as file:
                np.save(file, array, allow_pickle=False)
                file.flush()
                os.fsync(file.fileno())
            written[part] = _checksum(path), array.dtype.str, array.shape
        text = json.dumps({"arrays": written, "n_dropped": n_dropped})
        digest = hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
        with (new / _MANIFEST).open("w", encoding="ascii", newline="") as manifest:
            manifest.write(f"{digest}\n{text}")
            manifest.flush()
            os.fsync(manifest.fileno())
        _put(new, folder / name)
    except OSError as error:  # it costs time alone: the next process reads the files again
        warn(
            f"`cache` must be a folder that can be written, got {shortened(folder)!r}: "
            f"{error.strerror}."
        )
    finally:
        shutil.rmtree(new, ignore_errors=True)


def _put(new: Path, entry: Path) -> None:
    if entry.exists():
        old = entry.with_name(f".old-{uuid.uuid4().hex}")
        entry.rename(old)
        shutil.rmtree(old, ignore_errors=True)
    try:
        new.rename(entry)
    except OSError:
        if not entry.exists():  # otherwise another process was faster, with the same content
            raise
