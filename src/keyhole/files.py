"""Files: written whole or not at all, and plain data for JSON."""

import math
import os
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from keyhole.errors import InvalidInput


def plain(value: Any) -> Any:
    """Return a value as JSON can hold it: arrays as lists, what is not finite as null."""
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        os.chmod(temporary, 0o644)  # mkstemp's own mode is for secrets
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def check_folder(path: Path) -> Path:
    """Return a folder that can be written to, made if it is not there, or raise."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidInput(f"{path} must be a folder to write to: {error.strerror}.") from None
    if not os.access(path, os.W_OK):
        raise InvalidInput(f"{path} must be a folder to write to: permission denied.")
    return path
