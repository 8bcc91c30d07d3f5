"""The one place where functions are compiled.

:func:`kernel` and :func:`rare_kernel` compile a function; :func:`assemble` compiles one that
is put together from kernels, such as the loop of a game. The flags that the bit-for-bit
promise rests on, no ``fastmath`` above all, are set here once.
"""

import hashlib
from collections.abc import Callable
from functools import cache
from typing import Any, TypeVar, cast

try:
    from keyhole.kernels.whole_program import compile_program
except ImportError:  # this version of Numba has not what it needs
    from keyhole.kernels.by_numba import compile_program

F = TypeVar("F", bound=Callable[..., Any])

# Kernels never allocate: their memory is handed to them. Without Numba's runtime there is
# then no reference counting either, which would cost more than the work of a short list.
_FLAGS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "_nrt": False}


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


def _compile(function: F, identity: str | None, **flags: Any) -> F:
    return cast(F, compile_program(function, identity, {**_FLAGS, **flags}))


def kernel(function: F) -> F:
    """Compile a kernel that every round calls.

    It is inlined wherever it is called: handing over a few dozen arrays takes longer than
    ranking a short list.
    """
    return _compile(function, _lasting_name(function), forceinline=True)


def rare_kernel(function: F) -> F:
    """Compile a kernel that few rounds call, or that works long; it is not inlined."""
    return _compile(function, _lasting_name(function))


def _mark(identity: str) -> str:
    """Return what makes the name, and so the symbol, of an assembled function its own."""
    return f"_{hashlib.sha256(identity.encode()).hexdigest()[:16]}"


@cache
def assemble(factory: Callable[..., F], *kernels: Callable[..., Any], inline: bool = False) -> F:
    """Compile the function that ``factory`` makes of some kernels.

    It is cached on disk if all of them have names that last, as the package's own have.
    ``inline``: it is a kernel that every round calls, to be inlined as those of :func:`kernel` are.
    """
    flags = {"forceinline": True} if inline else {}
    names = tuple(_lasting_name(part) for part in (factory, *kernels))
    lasting = tuple(name for name in names if name is not None)
    if len(lasting) < len(names):
        return _compile(factory(*kernels), None, **flags)
    function, identity = factory(*kernels), f"{lasting[0]}({', '.join(lasting[1:])})"
    function.__name__ += _mark(identity)
    function.__qualname__ += _mark(identity)
    compiled = _compile(function, identity, **flags)
    _assembled[compiled] = identity
    return compiled
