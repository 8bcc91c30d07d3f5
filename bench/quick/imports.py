"""Which module imports which, read from the sources: nothing is run."""

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

PLACES = {"src/keyhole": "keyhole", "tests": "tests", "bench": "bench"}


def module_of(path: Path) -> str | None:
    """Return the name of the module in a file, given from the repository's root."""
    if path.suffix != ".py":
        return None
    for place, package in PLACES.items():
        if path.is_relative_to(place):
            inside = path.relative_to(place).with_suffix("").parts
            parts = inside[:-1] if inside[-1] == "__init__" else inside
            return ".".join((package, *parts))
    return None


def _imports(tree: ast.AST) -> Iterator[tuple[str, str | None]]:
    """Yield modules with the names that are imported of them, None for the module itself."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, None
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for alias in node.names:
                yield node.module, alias.name


@dataclass(frozen=True)
class Graph:
    """The modules of a repository.

    ``files`` are the modules' files, ``imports`` what each imports as (module, name).
    """

    files: Mapping[str, Path]
    imports: Mapping[str, tuple[tuple[str, str | None], ...]]

    @classmethod
    def of(cls, root: Path) -> "Graph":
        """Read all modules of a repository."""
        files, imports = {}, {}
        for place in PLACES:
            for path in sorted((root / place).rglob("*.py")):
                relative = path.relative_to(root)
                name = module_of(relative)
                if name is not None:
                    files[name] = relative
                    imports[name] = tuple(_imports(ast.parse(path.read_bytes())))
        return cls(files, imports)

    def is_package(self, module: str) -> bool:
        return module in self.files and self.files[module].name == "__init__.py"

    def source_of(self, module: str, name: str | None) -> str | None:
        """Return the module that a name comes from: packages hand on names of their modules."""
        seen = set()
        while module in self.files and (module, name) not in seen:
            seen.add((module, name))
            if name is None:
                return module
            if f"{module}.{name}" in self.files:
                return f"{module}.{name}"
            handed = {of for of, one in self.imports[module] if one == name}
            if not self.is_package(module) or not handed:
                return module
            module = handed.pop()
        return None

    @cached_property
    def importers(self) -> dict[str, set[str]]:
        """Modules by what they import."""
        found: dict[str, set[str]] = {name: set() for name in self.files}
        for module, imported in self.imports.items():
            for of, name in imported:
                source = self.source_of(of, name)
                if source is not None and source != module:
                    found[source].add(module)
        return found

    def distances(self, changed: set[str]) -> dict[str, int]:
        """Return how many imports lie between a module and the nearest changed one.

        Packages are not passed through: a table of all rankers would make everything depend on
        each of them. What a row of a table must do is for the contract suite to say.
        """
        distance = dict.fromkeys(changed & set(self.files), 0)
        waiting = list(distance)
        while waiting:
            module = waiting.pop(0)
            if self.is_package(module) and distance[module] > 0:
                continue
            for other in sorted(self.importers[module]):
                if other not in distance:
                    distance[other] = distance[module] + 1
                    waiting.append(other)
        return distance
