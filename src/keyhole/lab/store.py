"""Finished work, kept on disk so that an interrupted command goes on where it was."""

import hashlib
import json
from functools import cache
from pathlib import Path
from typing import Any

import keyhole
from keyhole.files import plain, write_atomically


@cache
def package_stamp() -> str:
    """Return a digest of all code of the package: results of other code are not found again."""
    root = Path(keyhole.__file__).parent
    digest = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        digest.update(str(path.relative_to(root)).encode() + path.read_bytes())
    return digest.hexdigest()


class Store:
    """A folder of results as JSON, found again only where their key and the code are the same.

    Floats are written exactly; what is not finite is kept too.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def _path(self, key: Any) -> Path:
        text = json.dumps(plain([key, package_stamp()]), sort_keys=True)
        return self.folder / f"{hashlib.sha256(text.encode()).hexdigest()[:16]}.json"

    def load(self, key: Any) -> Any:
        """Return a result that was saved, or None; a file that is broken counts as none."""
        try:
            return json.loads(self._path(key).read_bytes())
        except (OSError, ValueError):
            return None

    def save(self, key: Any, result: Any) -> None:
        """Keep a result."""
        write_atomically(self._path(key), json.dumps(result).encode())
