"""Compiled code on disk: what is found again is what was asked for, or nothing.

Numba's own cache has traps that give wrong numbers without a word, and this one is built so that
each is impossible:

- *One symbol for two functions.* Numba numbers the functions a process compiles from one, and the
  number is all that tells apart two functions of one name, such as two loops made by one factory.
  Code that two processes cached under one symbol is merged when a third loads both, and the
  first body serves for all (numba issue 10486). Here a kernel that others call has a number made
  of all that it is made of, and the numbers of all others start at a random place in every
  process, so that no two functions ever share a symbol, whoever compiled them.
- *Code that is inlined.* The name of a file has a digest of all that its function is made of,
  which is more than its own source: :mod:`keyhole.kernels.stamps`.
- *Files that mix.* Every function, signature, version and compiler setting has a file of its own,
  written at once or not at all, and read only if its checksum is right. Whatever else is in the
  folder is passed over, and a folder that cannot be written costs only time.

Processes that want the same code at the same time wait for the one that compiles it.
"""

import hashlib
import itertools
import os
import pickle
import secrets
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import cache
from glob import escape
from pathlib import Path
from typing import IO, Any, NamedTuple

import llvmlite
import numba
from numba.core import config as numba_config
from numba.core.bytecode import FunctionIdentity
from numba.core.serialize import dumps

from keyhole.base.files import warn, write_atomically
from keyhole.kernels.shipped import has_shipped, read_shipped

try:
    import fcntl
except ImportError:  # pragma: no cover - Windows: processes may compile the same code twice
    fcntl = None  # type: ignore[assignment]

config: Any = numba_config  # its settings are set when it is imported
_function_identity: Any = FunctionIdentity
_PACKAGE = Path(__file__).parents[1]
_CHECKSUM_BYTES = hashlib.sha256().digest_size
_LONGEST_WAIT = 120.0
"""Seconds to wait for a process that compiles: after that it may be stopped, so do it oneself."""


class _Numbers:
    """The numbers by which Numba tells functions of one name apart: random ones, or as told."""

    def __init__(self) -> None:
        self._count = itertools.count(secrets.randbits(62))
        self.told: int | None = None

    def __next__(self) -> int:
        number, self.told = self.told, None
        return next(self._count) if number is None else number


def number_functions_apart() -> None:
    """Let Numba number what this process compiles from a place no other process starts at."""
    _function_identity._unique_ids = _Numbers()


class NotCompiled(Exception):
    """Code that would have to be compiled, where only what is on disk may be used."""


_may_compile: ContextVar[bool] = ContextVar("may_compile", default=True)


@contextmanager
def only_from_disk() -> Iterator[None]:
    """Raise :class:`NotCompiled` within, in this thread or task, instead of compiling anything.

    Where Numba compiles in its own way it has no effect.
    """
    token = _may_compile.set(False)
    try:
        yield
    finally:
        _may_compile.reset(token)


def check_may_compile(name: str) -> None:
    """Raise within :func:`only_from_disk`."""
    if not _may_compile.get():
        raise NotCompiled(f"There is no compiled code of {name} on disk.")


@cache
def compiler_stamp() -> str:
    """Return a digest of everything besides a function that its compiled code depends on."""
    settings = ("OPT", "BOUNDSCHECK", "LOOP_VECTORIZE", "SLP_VECTORIZE", "ENABLE_AVX")
    chosen = [str(getattr(config, name, None)) for name in settings]
    versions = [sys.implementation.cache_tag, numba.__version__, llvmlite.__version__]
    own = ("code_cache", "stamps", "whole_program")
    sources = [Path(__file__).with_name(f"{name}.py").read_bytes() for name in own]
    return hashlib.sha256(repr((versions, chosen, sources)).encode()).hexdigest()


@cache
def warn_once() -> None:
    """Say that code is not kept."""
    warn(
        "Compiled code cannot be kept on disk, so every process compiles anew: the environment "
        "variable NUMBA_CACHE_DIR must name a folder that can be written."
    )


def _candidates() -> Iterator[Path]:
    if config.CACHE_DIR:
        place = hashlib.sha256(str(_PACKAGE).encode()).hexdigest()[:16]
        yield Path(config.CACHE_DIR) / f"keyhole-{place}"
        return
    yield _PACKAGE / "__pycache__" / "code"
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    yield Path(home) / "keyhole" / "code"


@cache
def code_folder() -> Path | None:
    """Return the folder for compiled code, or None where nothing can be written."""
    for folder in _candidates():
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError:
            continue
        if os.access(folder, os.W_OK) or any(folder.iterdir()):  # reading is worth something too
            return folder
    return None


def described(of: Any) -> str:
    """Return a type as text that tells apart what Numba's own name of it may not."""
    if isinstance(of, tuple):
        return f"({', '.join(map(described, of))})"
    cls = getattr(of, "instance_class", None)
    if cls is not None:
        return f"{cls.__module__}.{cls.__qualname__}{cls._fields}{described(tuple(of.types))}"
    inside = getattr(of, "types", None)
    return str(of) if inside is None else f"tuple{described(tuple(inside))}"


def has_foreign_types(of: Any) -> bool:
    """Return whether tuples of a user's own are among the types of a signature.

    Their classes may be gone, or others, when a later process reads what was compiled for them.
    """
    cls = getattr(of, "instance_class", None)
    if cls is not None and not cls.__module__.startswith("keyhole."):
        return True
    inside = getattr(of, "types", ()) if not isinstance(of, tuple) else of
    return any(has_foreign_types(each) for each in inside)


class CodeKey(NamedTuple):
    """What tells the code of a function for some types of arguments apart from all other code."""

    name: str
    identity: str
    stamp: str
    args: str
    target: str

    @property
    def file_name(self) -> str:
        """One name for all versions of the function, then this version's."""
        same = (self.name, self.identity, self.args, self.target)
        version = (*self, compiler_stamp())
        first, second = (
            hashlib.sha256(repr(each).encode()).hexdigest() for each in (same, version)
        )
        return f"{self.name[-80:]}-{first[:24]}-{second[:24]}.code"


def number_next_function(key: CodeKey) -> None:
    """Give the function that is compiled next a number, and so a symbol, that is its key's.

    Kernels on disk name those they call by symbols: whoever compiles one of these again, because
    its file was damaged or gone, must give it the same.
    """
    digest = hashlib.sha256(repr(tuple(key)).encode()).hexdigest()
    _function_identity._unique_ids.told = int(digest[:15], 16)


def has_code(key: CodeKey) -> bool:
    """Return whether there is a file for a key, which may be damaged."""
    folder = code_folder()
    kept = folder is not None and (folder / key.file_name).exists()
    return kept or has_shipped(key.file_name)


def read_code(key: CodeKey) -> Any:
    """Return what was kept, or came with the package, for a key, or None."""
    folder, found = code_folder(), None
    if folder is not None:
        with suppress(OSError):
            found = unpacked((folder / key.file_name).read_bytes(), key)
    if found is None:
        content = read_shipped(key.file_name)
        found = None if content is None else unpacked(content, key)
    return found


def unpacked(content: bytes, key: CodeKey) -> Any:
    """Return what a code file holds, or None if it is damaged or another function's."""
    checksum, data = content[:_CHECKSUM_BYTES], content[_CHECKSUM_BYTES:]
    if hashlib.sha256(data).digest() != checksum:
        return None
    stored, payload = pickle.loads(data)  # noqa: S301 - compiled code is trusted as code is
    return payload if stored == tuple(key) else None


def write_code(key: CodeKey, payload: Any) -> None:
    """Keep code, and remove what was kept of older versions of the function."""
    folder = code_folder()
    if folder is None:
        warn_once()
        return
    content = dumps((tuple(key), payload))
    path = folder / key.file_name
    try:
        # Its checksum tells if it did not last.
        write_atomically(path, hashlib.sha256(content).digest() + content, lasting=False)
        same_function = path.name.rpartition("-")[0]
        for other in folder.glob(f"{escape(same_function)}-*.code"):
            if other != path:
                other.unlink(missing_ok=True)
    except OSError:
        warn_once()


class _Locks:
    """Locks on single bytes of one file, which the system releases when a process ends.

    Only what compiles asks for them, and Numba lets one thread at a time compile. A function is
    locked after those that call it, and no function calls its callers, so nobody waits in a circle.
    """

    def __init__(self) -> None:
        self._file: IO[bytes] | None = None
        self._depth = 0

    @contextmanager
    def held(self, key: CodeKey) -> Iterator[None]:
        """Hold the lock of one code file, or none where files cannot be locked."""
        folder = code_folder()
        if fcntl is None or folder is None:
            yield
            return
        try:
            if self._depth == 0:  # closing the file once would release all of its locks
                self._file = (folder / "locks").open("ab")
        except OSError:
            yield
            return
        self._depth += 1
        place = int(key.file_name.rpartition("-")[2].partition(".")[0][:15], 16)
        self._wait(place)
        try:
            yield
        finally:
            self._depth -= 1
            if self._file is not None:
                fcntl.lockf(self._file, fcntl.LOCK_UN, 1, place)
                if self._depth == 0:
                    self._file.close()
                    self._file = None

    def _wait(self, place: int) -> None:
        pause, until = 0.001, time.monotonic() + _LONGEST_WAIT
        while time.monotonic() < until:
            try:
                fcntl.lockf(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, place)  # type: ignore[arg-type]
            except BlockingIOError:
                time.sleep(pause)
                pause = min(2 * pause, 0.05)
            except OSError:  # a file system without locks
                return
            else:
                return


LOCKS = _Locks()
