"""The one place where functions are compiled.

:func:`kernel` and :func:`rare_kernel` compile a function; :func:`assemble` compiles one that
is put together from kernels, such as the loop of a game. The flags that the bit-for-bit
promise rests on, no ``fastmath`` above all, are set here once.
"""

import hashlib
import importlib
import re
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
# What is not set here Numba takes from whoever compiles a kernel first: `fastmath` of a function
# outside the package, `forceinline` of one kernel among many. Code that is kept has one meaning.
_FLAGS: dict[str, Any] = {
    "nogil": True,
    "error_model": "numpy",
    "_nrt": False,
    "fastmath": False,
    "forceinline": False,
}


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
    mark = "!" if inline else ""
    function, identity = factory(*kernels), f"{lasting[0]}{mark}({', '.join(lasting[1:])})"
    function.__name__ += _mark(identity)
    function.__qualname__ += _mark(identity)
    compiled = _compile(function, identity, **flags)
    _assembled[compiled] = identity
    return compiled


def _function_named(name: str) -> Any:
    module, _, attribute = name.rpartition(".")
    return getattr(importlib.import_module(module), attribute)


def function_of(identity: str) -> Any:
    """Return the compiled function of an identity, in a process that may never have made it."""
    tokens = re.findall(r"[^(),! ]+|[(!)]", identity)

    def parse(place: int) -> tuple[Any, int]:
        function = _function_named(tokens[place])
        place += 1
        inline = place < len(tokens) and tokens[place] == "!"
        place += inline
        if place == len(tokens) or tokens[place] != "(":
            return function, place
        parts, place = [], place + 1
        while tokens[place] != ")":
            part, place = parse(place)
            parts.append(part)
        how = {"inline": True} if inline else {}  # as who assembled it first wrote it
        return assemble(function, *parts, **how), place + 1

    return parse(0)[0]
