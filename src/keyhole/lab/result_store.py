"""Finished work, kept on disk so that an interrupted command goes on where it was."""

import hashlib
import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import keyhole
from keyhole.base.errors import CannotWrite
from keyhole.base.files import plain, read_input, warn, write_atomically

T = TypeVar("T")


@cache
def package_stamp() -> str:
    """Return a digest of all code of the package: results of other code are not found again."""
    root = Path(keyhole.__file__).parent
    digest = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        digest.update(str(path.relative_to(root)).encode() + path.read_bytes())
    return digest.hexdigest()


class ResultStore:
    """A folder of results as JSON, found again only where their key and the code are the same.

    Floats are written exactly; what is not finite is kept too. Every file has a digest of its
    result and of what it is the result of: one that was damaged is not believed.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def _path(self, key: Any) -> Path:
        return self.folder / f"{_digest(plain(key))[:16]}.json"

    def load(self, key: Any, read: Callable[[Any], T]) -> T | None:
        """Return what ``read`` makes of a result that was saved, or None if there is none.

        A file that is damaged, or that ``read`` raises on, is set aside with a warning and counts
        as none.
        """
        path = self._path(key)
        try:
            kept = json.loads(read_input(path))
            if kept["digest"] != _digest([plain(key), kept["result"]]):
                raise ValueError("its digest is that of something else")
            return read(kept["result"])
        except FileNotFoundError:
            return None
        except Exception:  # whatever may be in a file that is not what was written
            self._set_aside(path)
            return None

    def _set_aside(self, path: Path) -> None:
        aside = path.with_name(f"{path.name}.damaged")
        try:
            path.replace(aside)
        except OSError as error:
            raise CannotWrite(
                f"{path} is damaged and cannot be set aside: {error.strerror}."
            ) from None
        warn(
            f"{path} was damaged: it is kept as {aside.name}, and what it held is worked out anew."
        )

    def save(self, key: Any, result: Any) -> None:
        """Keep a result."""
        kept = {"digest": _digest([plain(key), result]), "result": result}
        write_atomically(self._path(key), json.dumps(kept).encode())


def _digest(of: Any) -> str:
    """Return a digest of plain data and of the code that made it."""
    text = json.dumps([of, package_stamp()], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()
