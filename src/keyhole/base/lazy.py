"""Names that are imported when they are used: ``module:name``."""

from importlib import import_module
from typing import Any


def named(where: str) -> Any:
    """Return what ``module:name`` names; its module is imported now.

    Tables name their rows so, and results name how they are drawn: what takes long to import, or
    lies in a higher layer, is not needed before.

    Examples
    --------
    >>> named("keyhole.base.lazy:named") is named
    True
    """
    module, _, name = where.partition(":")
    return getattr(import_module(module), name)
