"""Compiling in Numba's own way, for versions that lack what :mod:`whole_program` needs.

Numba's own cache is used, in a folder for each version of the sources, so that code that is inlined
is new whenever it has changed; names of assembled functions, which carry a digest, keep symbols
apart. It finds kernels again, but no assembled function: every process compiles those.
"""

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import numba
from numba.core import config
from numba.core.dispatcher import Dispatcher

from keyhole.kernels.code_cache import warn_once

_PACKAGE = Path(__file__).parents[1]


@cache
def source_stamp() -> str:
    """Return a digest of the sources of the package."""
    digest = hashlib.sha256()
    for path in sorted(_PACKAGE.rglob("*.py")):
        digest.update(str(path.relative_to(_PACKAGE)).encode() + path.read_bytes())
    return digest.hexdigest()


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


def compile_program(
    function: Callable[..., Any], identity: str | None, flags: dict[str, Any]
) -> Any:
    """Compile a function, which later processes find again if it has an identity."""
    compiled = numba.njit(**flags)(function)
    if identity is not None and isinstance(compiled, Dispatcher):
        try:
            with _folder_of_these_sources():
                compiled.enable_caching()
        except (RuntimeError, OSError):  # Numba knows no folder that can be written
            warn_once()
    return compiled
