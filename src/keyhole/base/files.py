"""Files: written whole or not at all, arrays in them, and plain data for JSON."""

import errno
import io
import math
import os
import stat
import tempfile
import warnings
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from keyhole.base.errors import CannotWrite, InvalidInput
from keyhole.base.limits import check_memory, inflation_limit, memory_limit

_LONGEST_REASON = 500
_PIECE = 2**20
_NAMED_WRONGLY = (errno.ENOTDIR, errno.EEXIST, errno.EISDIR, errno.ENAMETOOLONG, errno.ELOOP)
"""Errors that tell of the name of a file, and not of the disk that it is to be on."""
_KINDS = "biufU"
"""Kinds of NumPy's types that Keyhole writes: truth values, numbers and text."""
_DEFLATED = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
"""How NumPy packs arrays; these, unlike others, can be unpacked in steps of a known size."""


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


def shortened(text: Any, longest: int = 200) -> str:
    """Return text, or the name of a file, as a sentence has it: of what is very long, its ends."""
    whole, half = str(text), longest // 2
    if len(whole) <= longest:
        return whole
    return f"{whole[:half]}…{whole[-half:]} ({len(whole)} characters)"


def warn(sentence: str) -> None:
    """Warn in one line: where in the code it came up is of no use to those who can mend it."""
    warnings.warn_explicit(sentence, RuntimeWarning, "keyhole", 1)


def _reason(error: BaseException) -> str:
    """Return why something went wrong, on one line and without the dot at its end."""
    if isinstance(error, MemoryError):
        return "it does not fit into memory"
    if isinstance(error, RecursionError):
        return "it is nested too deeply"
    said = getattr(error, "strerror", None) or " ".join(str(error).split())
    return (said[:_LONGEST_REASON] or type(error).__name__).rstrip(".")


# --------------------------------------------------------------------------- writing


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    """Turn whatever goes wrong when a file is written into one sentence."""
    try:
        yield
    except CannotWrite:
        raise
    # A name with a null character or half a surrogate pair is a ValueError; pathlib makes the
    # folders above a file one within the other, and may have no room for all.
    except (OSError, ValueError, RecursionError) as error:
        raise CannotWrite(f"{shortened(path)} cannot be written: {_reason(error)}.") from None


def write_atomically(path: Path, content: bytes, *, lasting: bool = True) -> None:
    """Write a file whole or not at all, or raise :class:`CannotWrite`.

    Once this has returned, the file outlasts a crash of the machine, unless ``lasting`` is false:
    that is for caches, whose files have checksums. A pipe or a device such as a terminal is written
    to as it is.
    """
    with writing_atomically(path, lasting=lasting) as file:
        file.write(content)


@contextmanager
def writing_atomically(path: Path, *, lasting: bool = True) -> Iterator[IO[bytes]]:
    """Give a file to write to, which is there under its name once the block has ended well."""
    with _writing(path):
        if _is_stream(path):
            with _open_stream(path) as stream:
                yield stream
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".keyhole-")
        try:
            with os.fdopen(handle, "wb") as file:
                yield file
                if lasting:
                    file.flush()
                    os.fsync(file.fileno())
            os.chmod(temporary, 0o644)  # mkstemp's own mode is for secrets
            os.replace(temporary, path)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise
        if lasting:
            _keep_names(path.parent)


def _is_stream(path: Path) -> bool:
    """Return whether a path is a pipe or a device, which must not be replaced by a file."""
    try:
        mode = path.stat().st_mode
    except OSError:
        return False
    if stat.S_ISBLK(mode) or stat.S_ISSOCK(mode):
        raise OSError(errno.EINVAL, "it is a disk or a socket")
    return stat.S_ISCHR(mode) or stat.S_ISFIFO(mode)


def _open_stream(path: Path) -> IO[bytes]:
    # A pipe that nobody reads from is an error at once, instead of a wait.
    handle = os.open(path, os.O_WRONLY | os.O_NONBLOCK)
    os.set_blocking(handle, True)
    return os.fdopen(handle, "wb")


def _keep_names(folder: Path) -> None:
    """Let the names in a folder outlast a crash, where folders can be synced."""
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError:
        return
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise
    finally:
        os.close(handle)


@contextmanager
def _checking(path: Path, what: str) -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError, RecursionError) as error:
        if isinstance(error, OSError) and error.errno not in _NAMED_WRONGLY:
            raise CannotWrite(f"{shortened(path)} cannot be written: {_reason(error)}.") from None
        raise InvalidInput(f"{shortened(path)} must be {what}: {_reason(error)}.") from None


def check_folder(path: Path) -> Path:
    """Return a folder that can be written to, made if it is not there, or raise."""
    with _checking(path, "a folder to write to"):
        path.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=path):  # rights alone do not tell of a full disk
            pass
    return path


def check_file(path: Path, what: str) -> Path:
    """Return a file that can be written later on, or raise before the work that it is for.

    Examples
    --------
    >>> check_file(Path(""), "--model")
    Traceback (most recent call last):
    ...
    keyhole.base.errors.InvalidInput: --model must be a file, got the folder ...
    """
    with _checking(path, f"a file to write ({what})"):
        if _is_stream(path):
            return path
        with suppress(FileNotFoundError):
            path.lstat()  # which no name that is too long passes
    if path.is_dir():
        raise InvalidInput(f"{what} must be a file, got the folder {shortened(path)}.")
    check_folder(path.parent)
    return path


def write_arrays(path: Path | str, arrays: Mapping[str, ArrayLike]) -> None:
    """Write named arrays (.npz) under the very name given, whole or not at all."""
    buffer = io.BytesIO()
    given: dict[str, Any] = {name: np.asarray(array) for name, array in arrays.items()}
    np.savez_compressed(buffer, **given)
    content = buffer.getvalue()
    if sum(array.nbytes for array in given.values()) > inflation_limit(len(content)):
        # Packed so tightly, many zeros would be taken for a file made to fill a memory.
        buffer = io.BytesIO()
        np.savez(buffer, **given)
        content = buffer.getvalue()
    write_atomically(Path(path), content)


# --------------------------------------------------------------------------- reading


def open_input(path: Path) -> io.BufferedReader:
    """Open a file or pipe to read from; a device, which may have no end, is an OSError."""
    try:
        file = path.open("rb")
    except ValueError as error:  # a name with a null character
        raise OSError(errno.EINVAL, _reason(error)) from None
    mode = os.fstat(file.fileno()).st_mode
    if not (stat.S_ISREG(mode) or stat.S_ISFIFO(mode)):
        file.close()
        raise OSError(errno.EINVAL, "It is no file but a device")
    return file


def read_input(path: Path) -> bytes:
    """Return the bytes of a file or pipe, of no more than fit the limit of one input."""
    limit, n_bytes, pieces = memory_limit(), 0, []
    with open_input(path) as file:
        check_memory(os.fstat(file.fileno()).st_size, shortened(path), limit)
        while piece := file.read(_PIECE):
            n_bytes += len(piece)
            check_memory(n_bytes, shortened(path), limit)
            pieces.append(piece)
    return b"".join(pieces)


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
    # Python, NumPy and zipfile have a score of errors for what a file may claim and not hold.
    except Exception as error:
        why = f"{error} is missing" if type(error) is KeyError else _reason(error)
        raise InvalidInput(f"{shortened(path)} must be {what}: {why}.") from None


def _named_arrays(path: Path) -> dict[str, NDArray[Any]]:
    """Return the arrays of a file, or raise with the reason alone."""
    with open_input(path) as file:
        head = file.peek(6)[:6]
        if not head:
            raise InvalidInput("it is empty")
        if head.startswith(b"\x93NUMPY"):
            raise InvalidInput("it holds one array without a name (.npy)")
        if not head.startswith(b"PK"):
            raise InvalidInput("it holds no arrays")
        n_packed = os.fstat(file.fileno()).st_size
        with zipfile.ZipFile(file) as archive:
            entries = archive.infolist()
            names = [entry.filename for entry in entries]
            if not all(name.endswith(".npy") for name in names):
                raise InvalidInput("it holds other things than arrays")
            if len(set(names)) < len(names):
                raise InvalidInput("it holds two arrays of one name")
            if any(entry.compress_type not in _DEFLATED for entry in entries):
                raise InvalidInput("its compression is not NumPy's")
            # What an entry says of its size is a limit to what is read of it.
            total = sum(entry.file_size for entry in entries)
            check_memory(total, "all that it holds", inflation_limit(n_packed))
            return {entry.filename[:-4]: _array_of(archive, entry) for entry in entries}


def _array_of(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> NDArray[Any]:
    """Return the array of a file within an archive, as this machine keeps arrays."""
    with archive.open(entry) as member:  # all at once it may unpack more than the entry says
        content = member.read(entry.file_size + 1)
    file = io.BytesIO(content)
    try:
        array = np.lib.format.read_array(file, allow_pickle=False)
    except ValueError as error:
        # NumPy takes what it does not know for pickled data, and advises to load it unsafely: that
        # is no reason to pass on.
        why = "it holds no arrays" if "pickle" in str(error) else _reason(error)
        raise InvalidInput(why) from None
    if array.dtype.kind not in _KINDS or array.dtype.itemsize == 0:
        raise InvalidInput(f"an array must hold numbers or text, got {array.dtype}")
    if file.tell() < len(content):
        raise InvalidInput("an array is followed by something else")
    return np.asarray(array, dtype=array.dtype.newbyteorder("="), order="C")
