"""The bars of the stack: few lines, and no name that other packages keep to themselves."""

import ast
import importlib
import inspect
from pathlib import Path

import pytest

from keyhole.service import http
from keyhole.service.http.connection import Connection, Flow

FOLDER = Path(http.__file__).parent
FILES = sorted(FOLDER.glob("*.py"))
PACKAGES = ("uvicorn", "starlette", "httptools", "uvloop")
MOST_LINES = 1_900


def is_private(name):
    return name.startswith("_") and not name.endswith("__")


def imported(tree):
    """Return all names that are imported from the packages, as a whole path each."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [each.name for each in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{each.name}" for each in node.names]
        else:
            continue
        yield from (name for name in names if name.partition(".")[0] in PACKAGES)


def private_imports(tree):
    return {name for name in imported(tree) if any(map(is_private, name.split(".")))}


def private_uses(tree):
    """Return the private names that are asked of anything but an object itself, or its class."""
    return {
        ast.unparse(node)
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute)
        and is_private(node.attr)
        and not (isinstance(node.value, ast.Name) and node.value.id in ("self", "cls"))
    }


def names_of(cls):
    """Return the private names of a class: what its body has, and what its methods set."""
    tree = ast.parse(inspect.cleandoc("\n" + inspect.getsource(cls)))
    own = {name for name in vars(cls) if is_private(name)}
    return own | {
        node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)
        and is_private(node.attr) and isinstance(node.value, ast.Name) and node.value.id == "self"
    }  # fmt: skip


def clashes(cls):
    """Return the private names that a class shares with those of the packages that it is made of.

    A name that is set or called on `self` is the base's own where the base has it, whoever meant
    what by it.
    """
    taken = set()
    for base in cls.__mro__[1:]:
        if base.__module__.partition(".")[0] in PACKAGES:
            taken |= names_of(base)
    return names_of(cls) & taken


def classes():
    """Return all classes of the stack that are made of those of the packages."""
    for file in FILES:
        module = importlib.import_module(f"{http.__name__}.{file.stem}")
        for cls in vars(module).values():
            if inspect.isclass(cls) and cls.__module__ == module.__name__:
                bases = {base.__module__.partition(".")[0] for base in cls.__mro__}
                if bases & set(PACKAGES):
                    yield cls


def test_the_stack_is_small():
    assert sum(len(file.read_text().splitlines()) for file in FILES) <= MOST_LINES


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_no_private_name_of_the_packages_is_imported_or_used(file):
    tree = ast.parse(file.read_text())
    assert not private_imports(tree)
    assert not private_uses(tree)


def test_no_class_touches_the_private_names_of_its_base():
    found = list(classes())
    assert {"Connection", "Flow", "Server", "Application"} <= {cls.__name__ for cls in found}
    assert {cls.__name__: clashes(cls) for cls in found if clashes(cls)} == {}


def test_what_is_looked_for_would_be_found():
    lines = "import uvicorn._types\nfrom starlette import _utils\nflow._transport.close()"
    assert private_imports(ast.parse(lines)) == {"uvicorn._types", "starlette._utils"}
    assert private_uses(ast.parse(lines)) == {"flow._transport"}

    class Starts(Connection):
        def on_message_complete(self):
            self._unset_keepalive_if_required()

    class Overrides(Connection):
        def _start_asgi_task(self, cycle: object, app: object) -> None:
            pass

    class Sets(Flow):
        def resume_reading(self):
            self._transport.close()

    assert clashes(Starts) == {"_unset_keepalive_if_required"}
    assert clashes(Overrides) == {"_start_asgi_task"}
    assert clashes(Sets) == {"_transport"}
