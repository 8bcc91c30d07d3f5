"""A digest of everything a compiled function is made of, down to the last constant it reads.

Numba's cache looks at the file of a function and not at what the function calls; a digest of all
sources makes everything cold at the change of a comment. Here a function has the digest of its
bytecode, of the constants, tuples and kernels that it names, and of what those are made of: two
equal digests are the same function, and a change makes cold what depends on it and nothing else.
"""

import dis
import hashlib
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import BuiltinFunctionType, CodeType, ModuleType
from typing import Any

import numpy as np
from numba.core.dispatcher import Dispatcher

_OF_THE_COMPILER = ("builtins", "math", "numpy", "numba", "cmath", "operator", "typing")
"""Packages whose versions are part of the name of every code file, or of Python's own."""


class Unstampable(Exception):
    """Something a function reads that may change without a trace."""


def stamp_of(function: Any, options: Any = None) -> str | None:
    """Return the digest of a function, or None if it reads what no digest can tell apart."""
    digest = hashlib.sha256(repr(sorted((options or {}).items(), key=str)).encode())
    try:
        for piece in _function(function, ()):
            digest.update(piece.encode() + b"\0")
    except Unstampable:
        return None
    return digest.hexdigest()


def _function(function: Any, above: tuple[Any, ...]) -> Iterator[str]:
    """Yield what a function is made of; ``above`` are the functions on the way to it."""
    yield f"function {function.__name__} {len(above)}"
    if function in above:  # it calls itself
        yield f"again {above.index(function)}"
        return
    above = (*above, function)
    yield from _code(function.__code__, function.__doc__, above)
    for value in function.__defaults__ or ():
        yield from _value(value, above)
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        yield f"cell {name}"
        yield from _value(cell.cell_contents, above)
    for name in _globals_of(function.__code__):
        if name in function.__globals__:  # else it is one of Python's own
            yield f"global {name}"
            yield from _value(function.__globals__[name], above)


@cache  # a kernel is part of many, and to read its instructions takes longest
def _globals_of(code: CodeType) -> tuple[str, ...]:
    names = {
        str(each.argval)
        for each in dis.get_instructions(code)
        if each.opname in ("LOAD_GLOBAL", "LOAD_NAME")
    }
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            names.update(_globals_of(constant))
    return tuple(sorted(names))


def _code(code: CodeType, doc: str | None, above: tuple[Any, ...]) -> Iterator[str]:
    yield code.co_code.hex()
    yield repr((code.co_names, code.co_varnames, code.co_freevars, code.co_argcount))
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _code(constant, None, above)
        elif constant is None or constant != doc:  # what a docstring says changes no code
            yield from _value(constant, above)


def _value(value: Any, above: tuple[Any, ...]) -> Iterator[str]:
    if value is None or isinstance(value, bool | int | float | complex | str | bytes):
        yield f"{type(value).__name__} {value!r}"
    elif isinstance(value, np.ndarray | np.generic):
        yield f"{value.dtype} {value.shape} {value.tobytes().hex()}"
    elif isinstance(value, tuple | frozenset):
        yield f"{type(value).__qualname__} {len(value)}"
        for each in value if isinstance(value, tuple) else sorted(value, key=repr):
            yield from _value(each, above)
    elif isinstance(value, Dispatcher):
        yield repr(sorted(value.targetoptions.items(), key=str))
        yield from _function(value.py_func, above)
    elif isinstance(value, type) and hasattr(value, "_fields"):
        yield f"{value.__module__}.{value.__qualname__} {value._fields!r}"
    else:
        yield _named(value)


def _named(value: Any) -> str:
    """Return the name of a module, class or function, with the source file of the package's own.

    A function that is not a kernel stands for code that its file gives Numba in its place.
    """
    value = getattr(value, "_defn", value)  # of one that writes its own LLVM code
    module = value.__name__ if isinstance(value, ModuleType) else getattr(value, "__module__", None)
    name = getattr(value, "__qualname__", getattr(value, "__name__", None))
    if isinstance(value, np.ufunc | np.dtype):
        return f"numpy {value}"
    if module is None or name is None:
        raise Unstampable(repr(value))
    if module.partition(".")[0] in _OF_THE_COMPILER or isinstance(value, BuiltinFunctionType):
        return f"{module}.{name}"
    file = getattr(sys.modules.get(module), "__file__", None)
    if file is None:
        raise Unstampable(repr(value))
    return f"{module}.{name} {hashlib.sha256(Path(file).read_bytes()).hexdigest()}"
