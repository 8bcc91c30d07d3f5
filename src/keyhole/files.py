"""Files: written whole or not at all, arrays in them, and plain data for JSON."""

import io
import math
import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from keyhole.errors import InvalidInput, KeyholeError


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


def write_arrays(path: Path | str, arrays: Mapping[str, ArrayLike]) -> None:
    """Write named arrays (.npz) under the very name given, whole or not at all."""
    buffer = io.BytesIO()
    given: dict[str, Any] = {name: np.asarray(array) for name, array in arrays.items()}
    np.savez_compressed(buffer, **given)
    write_atomically(Path(path), buffer.getvalue())


@contextmanager
def reading_arrays(path: Path | str, what: str) -> Iterator[dict[str, NDArray[Any]]]:
    """Give the named arrays of a file (.npz) to the block that makes something of them.

    Whatever is wrong with the file, and whatever the block misses or refuses in it, becomes one
    sentence: the file must be ``what``, and why it is not.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "model.npz"
    >>> write_arrays(path, {"weights": [0.5, 2.0]})
    >>> with reading_arrays(path, "a model") as arrays:
    ...     weights = arrays["weights"]
    >>> weights.tolist()
    [0.5, 2.0]
    """
    try:
        yield _named_arrays(Path(path))
    except (KeyError, TypeError, ValueError, KeyholeError) as error:
        why = f"{error} is missing" if type(error) is KeyError else str(error).rstrip(".")
        raise InvalidInput(f"{path} must be {what}: {why}.") from None


def _named_arrays(path: Path) -> dict[str, NDArray[Any]]:
    """Return the arrays of a file, or raise with the reason alone."""
    try:
        with path.open("rb") as file:
            found = np.load(file, allow_pickle=False)
            if isinstance(found, np.ndarray):
                raise InvalidInput("it holds one array without a name (.npy)")
            with found:
                arrays = {name: found[name] for name in found.files}
        if not all(isinstance(array, np.ndarray) for array in arrays.values()):
            raise InvalidInput("it holds other things than arrays")
        return arrays
    except InvalidInput:
        raise
    except OSError as error:
        raise InvalidInput(error.strerror or str(error)) from None
    except Exception as error:  # NumPy and zipfile have a dozen of their own for a broken file
        # NumPy takes a file that it does not know for pickled data, and advises to load it
        # unsafely: that is no reason to pass on.
        why = "it holds no arrays" if "pickle" in str(error) else str(error)
        raise InvalidInput(why or type(error).__name__) from None
