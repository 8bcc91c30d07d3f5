"""Outputs taken apart: every number that a person sees in them, by the path that leads to it."""

import csv
import io
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Any, NamedTuple


class Output(NamedTuple):
    """What was put out once: its name in the list, its content, and what of it was asked for.

    ``echoes`` are values by path that were given and must come back as they were: one that all
    leaves of the path have, or a list of all leaves in order.
    """

    name: str
    content: Any
    echoes: Mapping[str, Any] = {}


def leaves(content: Any, named: tuple[str, ...] = (), path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield every number and every text with its path.

    Places in lists are ``[]``. Keys are themselves, unless they stand below a path of ``named``,
    which may be a pattern: there they are names, of items or rankers, and all of them are ``{}``.
    """
    if isinstance(content, bool) or content is None:
        return
    if isinstance(content, Mapping):
        are_names = any(fnmatchcase(path, pattern) for pattern in named)
        for key, value in content.items():
            step = "{}" if are_names else str(key)
            yield from leaves(value, named, f"{path}.{step}" if path else step)
    elif isinstance(content, list | tuple):
        for value in content:
            yield from leaves(value, named, f"{path}[]")
    else:
        yield path, content if isinstance(content, int | float) else str(content)


def rows_of(text: str, delimiter: str = ",") -> list[dict[str, Any]]:
    """Return the rows of a table as text, its cells as the numbers that they are."""
    rows = csv.DictReader(io.StringIO(text), delimiter=delimiter)
    return [{name: _cell(cell) for name, cell in row.items()} for row in rows]


def _cell(text: str) -> Any:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text or None
