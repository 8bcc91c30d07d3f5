"""Compiled code on disk: what is found again is what was asked for, or nothing.

Numba's own cache has traps that give wrong numbers without a word, and this one is built so that
each is impossible:

- *One symbol for two functions.* Numba numbers the functions a process compiles from one, and the
  number is all that tells apart two functions of one name, such as two loops made by one factory.
  Code that two processes cached under one symbol is merged when a third loads both, and the
  first body serves for all (numba issue 10486). Here the numbers of every process start at a
  random place, so that no two functions ever share a symbol, whoever compiled them.
- *Code that is inlined.* A cached function is compiled anew when any file with kernels changes,
  not only its own.
- *Files that mix.* Every function, signature, source version and compiler setting has a file of its
  own, written at once or not at all, and read only if its checksum is right. Whatever else is in
  the folder is passed over, and a folder that cannot be written costs only time.

All of this rests on classes that Numba keeps to itself. Where a version of Numba has them no
longer, its own cache is used, in a folder for each version of the sources, so that code that is
inlined is new whenever it has changed; names of assembled functions, which carry a digest, keep
symbols apart. It finds kernels again, but no assembled function: every process compiles those.
"""

import hashlib
import itertools
import os
import pickle
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from glob import escape
from pathlib import Path
from typing import Any

import llvmlite
import numba
from numba.core import config

from keyhole.files import warn, write_atomically

try:
    from numba.core.bytecode import FunctionIdentity
    from numba.core.caching import FunctionCache
    from numba.core.serialize import dumps

    _HAS_PRIVATE_CLASSES = hasattr(FunctionIdentity, "_unique_ids") and all(
        hasattr(FunctionCache, name) for name in ("_load_overload", "_save_overload", "_impl_class")
    )
except ImportError:
    FunctionCache: Any = object  # type: ignore[no-redef]
    _HAS_PRIVATE_CLASSES = False

_PACKAGE = Path(__file__).parents[1]
_CHECKSUM_BYTES = hashlib.sha256().digest_size


def _number_functions_apart() -> None:
    """Let Numba number what this process compiles from a place no other process starts at."""
    if _HAS_PRIVATE_CLASSES:
        FunctionIdentity._unique_ids = itertools.count(secrets.randbits(62))


_number_functions_apart()
if hasattr(os, "register_at_fork"):  # a forked process would go on with its parent's numbers
    os.register_at_fork(after_in_child=_number_functions_apart)


def stamped_files() -> list[Path]:
    """Return every source file of the package that compiles something, or is used to."""
    names = (b"keyhole.kernels.compiled", b"keyhole.kernels.code_cache")
    files = sorted(_PACKAGE.rglob("*.py"))
    own = Path(__file__)
    return [path for path in files if path == own or any(n in path.read_bytes() for n in names)]


@cache
def source_stamp() -> str:
    """Return a digest of the files that compile something.

    Constants that kernels read belong in such a file too, and a test sees to it.
    """
    digest = hashlib.sha256()
    for path in stamped_files():
        digest.update(str(path.relative_to(_PACKAGE)).encode() + path.read_bytes())
    return digest.hexdigest()


def _compiler() -> tuple[Any, ...]:
    """Return everything besides the sources that compiled code depends on."""
    settings = ("OPT", "BOUNDSCHECK", "LOOP_VECTORIZE", "SLP_VECTORIZE", "ENABLE_AVX")
    chosen = tuple(str(getattr(config, name, None)) for name in settings)
    return (numba.__version__, llvmlite.__version__, *chosen)


@cache
def _warn_once() -> None:
    warn(
        "Compiled code cannot be kept on disk, so every process compiles anew: the environment "
        "variable NUMBA_CACHE_DIR must name a folder that can be written."
    )


def _has_foreign_types(of: Any) -> bool:
    """Return whether tuples of a user's own are among the types of a signature.

    Their classes may be gone, or others, when a later process reads what was compiled for them.
    """
    cls = getattr(of, "instance_class", None)
    if cls is not None and not cls.__module__.startswith("keyhole."):
        return True
    inside = getattr(of, "types", ()) if not isinstance(of, tuple) else of
    return any(_has_foreign_types(each) for each in inside)


class CodeCache(FunctionCache):
    """The cache of one function; ``parts`` names what it is assembled from."""

    def __init__(self, function: Callable[..., Any], parts: tuple[str, ...]) -> None:
        super().__init__(function)
        self._identity = (function.__module__, function.__qualname__, *parts)

    def _key(self, sig: Any, codegen: Any) -> tuple[Any, ...]:
        return sig, codegen.magic_tuple(), self._identity, _compiler()

    def _path(self, key: tuple[Any, ...]) -> Path:
        """Return the file for a key: one name for all source versions, then this version's."""
        sig, *rest = key
        digest = hashlib.sha256(repr((str(sig), *rest)).encode()).hexdigest()[:24]
        name = f"{self._impl.filename_base}-{digest}-{source_stamp()[:24]}.code"
        return Path(self._cache_path) / name

    def _load_overload(self, sig: Any, target_context: Any) -> Any:
        if _has_foreign_types(sig):
            return None
        key = self._key(sig, target_context.codegen())
        try:
            content = self._path(key).read_bytes()
        except OSError:
            return None
        checksum, data = content[:_CHECKSUM_BYTES], content[_CHECKSUM_BYTES:]
        if hashlib.sha256(data).digest() != checksum:
            return None
        stored, payload = pickle.loads(data)  # noqa: S301 - compiled code is trusted as code is
        return self._impl.rebuild(target_context, payload) if stored == key else None

    def _save_overload(self, sig: Any, data: Any) -> None:
        if _has_foreign_types(sig) or not self._impl.check_cachable(data):
            return
        key = self._key(sig, data.codegen)
        content = dumps((key, self._impl.reduce(data)))
        try:
            self._write(self._path(key), hashlib.sha256(content).digest() + content)
        except OSError:
            _warn_once()

    def _write(self, path: Path, content: bytes) -> None:
        write_atomically(path, content, lasting=False)  # its checksum tells if it did not last
        same_function = path.name.rpartition("-")[0]
        for other in path.parent.glob(f"{escape(same_function)}-*.code"):
            if other != path:  # the code of an older version of the sources
                other.unlink(missing_ok=True)


@contextmanager
def _folder_of_these_sources() -> Iterator[None]:
    """Let Numba's own cache choose a folder that other versions of the sources do not use."""
    settings: Any = config
    before = settings.CACHE_DIR
    settings.CACHE_DIR = str(Path(before or _PACKAGE / "__pycache__") / source_stamp()[:24])
    try:
        yield
    finally:
        settings.CACHE_DIR = before


def keep_code(dispatcher: Any, function: Callable[..., Any], parts: tuple[str, ...]) -> None:
    """Let a compiled function be found again by later processes, where there is room for it."""
    try:
        if _HAS_PRIVATE_CLASSES:
            dispatcher._cache = CodeCache(function, parts)
        else:
            with _folder_of_these_sources():
                dispatcher.enable_caching()
    except (RuntimeError, OSError):  # Numba knows no folder that can be written
        _warn_once()
