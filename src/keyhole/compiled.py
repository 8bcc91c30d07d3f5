"""The one place where functions are compiled.

:func:`kernel` and :func:`rare_kernel` compile a function; :func:`assemble` compiles one that
is put together from kernels, such as the loop of a game. The flags that the bit-for-bit
promise rests on, no ``fastmath`` above all, are set here once, and so is the cache.
"""

import hashlib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
from numba.core.caching import FunctionCache, IndexDataCacheFile
from numba.core.dispatcher import Dispatcher

F = TypeVar("F", bound=Callable[..., Any])

# Kernels never allocate: their memory is handed to them. Without Numba's runtime there is
# then no reference counting either, which would cost more than the work of a short list.
_FLAGS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "_nrt": False}


@cache
def source_stamp() -> str:
    """Return a digest of every source file of the package that compiles something.

    Constants that kernels read belong in such a file too.
    """
    root = Path(__file__).parent
    digest = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        source = path.read_bytes()
        if b"keyhole.compiled" in source or path.samefile(__file__):
            digest.update(str(path.relative_to(root)).encode() + source)
    return digest.hexdigest()


class _PackageCache(FunctionCache):
    """Numba's cache, with three of its traps removed.

    A cached function is recompiled when any file with kernels changes, not only its own: code
    it calls is inlined in it. A function assembled from kernels is found again
    by their names: Numba would look for their identities, which no two processes share. Each
    signature has an index file of its own, so that processes that compile at the same time
    cannot mix up two of them.
    """

    def __init__(self, function: Callable[..., Any], parts: tuple[str, ...]) -> None:
        super().__init__(function)
        self._parts = parts

    def _index_key(self, sig: Any, codegen: Any) -> Any:
        return sig, codegen.magic_tuple(), self._parts

    def _use_own_file(self, sig: Any, codegen: Any) -> None:
        key = repr((str(sig), codegen.magic_tuple(), self._parts))
        digest = hashlib.sha256(key.encode()).hexdigest()[:16]
        self._cache_file = IndexDataCacheFile(
            self._cache_path, f"{self._impl.filename_base}-{digest}", source_stamp()
        )

    def _load_overload(self, sig: Any, target_context: Any) -> Any:
        self._use_own_file(sig, target_context.codegen())
        return super()._load_overload(sig, target_context)

    def _save_overload(self, sig: Any, data: Any) -> None:
        self._use_own_file(sig, data.codegen)
        super()._save_overload(sig, data)


_assembled: dict[Callable[..., Any], str] = {}


def _lasting_name(function: Callable[..., Any]) -> str | None:
    """Return a name that means the same function in every process, if there is one.

    Functions made inside others share one name, unless they are assembled; and those outside
    the package may change without a trace.
    """
    if function in _assembled:
        return _assembled[function]
    name = f"{function.__module__}.{function.__qualname__}"
    return name if name.startswith("keyhole.") and "<locals>" not in name else None


def _own(function: Callable[..., Any]) -> tuple[str, ...] | None:
    """Return the parts of a kernel: none, or None if it is not the package's and not cached."""
    return None if _lasting_name(function) is None else ()


def _compile(function: F, parts: tuple[str, ...] | None, **flags: Any) -> F:
    compiled: Any = numba.njit(**_FLAGS, **flags)(function)
    if parts is not None and isinstance(compiled, Dispatcher):  # it is not with NUMBA_DISABLE_JIT
        compiled._cache = _PackageCache(function, parts)  # type: ignore[attr-defined]
    return cast(F, compiled)


def kernel(function: F) -> F:
    """Compile a kernel that every round calls.

    It is inlined wherever it is called: handing over a few dozen arrays takes longer than
    ranking a short list.
    """
    return _compile(function, _own(function), forceinline=True)


def rare_kernel(function: F) -> F:
    """Compile a kernel that few rounds call, or that works long; it is not inlined."""
    return _compile(function, _own(function))


@cache
def assemble(factory: Callable[..., F], *kernels: Callable[..., Any]) -> F:
    """Compile the function that ``factory`` makes of some kernels.

    It is cached on disk if all of them have names that last, as the package's own have.
    """
    names = tuple(_lasting_name(part) for part in (factory, *kernels))
    lasting = tuple(name for name in names if name is not None)
    if len(lasting) < len(names):
        return _compile(factory(*kernels), None)
    compiled = _compile(factory(*kernels), lasting)
    _assembled[compiled] = f"{lasting[0]}({', '.join(lasting[1:])})"
    return compiled
