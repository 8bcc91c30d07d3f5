"""Keyhole: learn to rank a whole list while seeing only its top.

The public names are those of :mod:`keyhole.public`; docs/ explains them, ``keyhole --help`` the
command line. They are imported when the first of them is asked for: compilers take a second to
load, in which the command line must already know how to end, and which many programs never need.
"""

import importlib
import importlib.util
from typing import TYPE_CHECKING, Any

from keyhole.base.version import __version__ as __version__

if TYPE_CHECKING:
    from keyhole.public import *  # noqa: F403


def __getattr__(name: str) -> Any:
    """Return a public name, or a module of the package, imported now."""
    if not name.startswith("__") and importlib.util.find_spec(f"keyhole.{name}") is not None:
        return importlib.import_module(f"keyhole.{name}")
    public = importlib.import_module("keyhole.public")
    if name == "__all__" or name in public.__all__:
        return getattr(public, name)
    raise AttributeError(f"module 'keyhole' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *importlib.import_module("keyhole.public").__all__})
