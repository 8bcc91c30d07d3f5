"""Worlds by name: simulated ones, files of people by items, and files of query-document lists."""

import hashlib
import inspect
import math
import os
import re
from collections.abc import Mapping, Sequence
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from keyhole.base.errors import InvalidInput, check_choice, check_flag
from keyhole.contracts.registry import all_settings, check_options
from keyhole.contracts.worlds import World, whole_matrix
from keyhole.data.letor.queries import QuerySet
from keyhole.data.letor.reader import read_letor
from keyhole.data.people import PEOPLE_ORDERS, people_in_order
from keyhole.data.ratings import read_ratings
from keyhole.experiment.inputs import DATA_PREFIX, DataMissing, data_folder
from keyhole.game.stream import LetorStream
from keyhole.worlds import WORLDS
from keyhole.worlds.generated import Graded
from keyhole.worlds.queries import Queries
from keyhole.worlds.table import Ratings, Recorded, Shuffled

_PEOPLE_OPTIONS = (
    "threshold", "grades", "n_chosen", "scale", "columns", "missing", "delimiter", "decimal",
    "header", "index", "ids", "order",
)  # fmt: skip
_READING = ("groups", "raw", "keep_empty", "stream")
_SHOWING = ("shuffle", "document_seed", "permute_at")
"""Options of lists read from files: how they are read, and how they are shown."""
_MEASURED = 1000
"""Lists whose norms are measured where a world has no bound on them."""

Named = str | list[str]
"""A world: its name, a file of people by items, ``data:`` and a data set, or LETOR files."""


def changes_lists(cls: type[World]) -> bool:
    """Return whether the lists of a world come with queries."""
    return cls.kernel.query is not whole_matrix


def has_queries(world: Named) -> bool:
    """Return whether a world is one of query-document lists, and not of one fixed list."""
    if isinstance(world, list):
        return True
    if world.startswith(DATA_PREFIX):
        return not _is_of_people(world)
    return world in WORLDS and changes_lists(WORLDS[world])


def check_fixed(world: Named) -> None:
    """Raise unless a world is one of one fixed list."""
    if has_queries(world):
        raise InvalidInput(
            f"world must be one fixed list, got {world!r}, whose lists change with the query: "
            f"keyhole learn is for those."
        )


def _is_of_people(world: str) -> bool:
    return re.search(r"\.([ct]sv(\.\w+)?|npz)$", world) is not None


def make_world(
    world: Named, items: int | None, options: Mapping[str, Any]
) -> tuple[World, list[str], "Lists | None"]:
    """Return a world, notes on it, and the lists that were read for it, if they were."""
    if items is not None and has_queries(world):
        raise InvalidInput(f"`items` is for fixed lists alone, got {items} with {world}.")
    if isinstance(world, list) or (world.startswith(DATA_PREFIX) and not _is_of_people(world)):
        lists = read_lists(world if isinstance(world, list) else [world], options)
        made: World = lists.shown(options)
        notes: list[str] = []
    elif _is_of_people(world):
        (made, notes), lists = _people(world, options), None
    else:
        return _generated(world, items, options), [], None
    if items is not None and items != made.n_items:
        raise InvalidInput(f"items must be {made.n_items}, the columns of {world}, got {items}.")
    return made, notes, lists


def _generated(world: str, items: int | None, options: Mapping[str, Any]) -> World:
    if ":" not in world:
        known = [name for name, row in WORLDS.items() if _is_made_of_numbers(row)]
        check_choice(world, "world (a name, or a .csv file of people by items)", known)
    cls: Any = WORLDS.find(world)
    given = dict(options)
    shape = given.pop("shape", None) if cls is Graded else None
    check_options(cls, given)
    if items is not None:
        given = {"n_items": items, **given}
    return cls(**given) if shape is None else Graded.like(shape, **given)


def _is_made_of_numbers(cls: type[World]) -> bool:
    """Return whether a world can be named: others need arrays, in Python or from a file."""
    return inspect.Parameter.empty not in all_settings(cls).values()


def _people(world: str, options: Mapping[str, Any]) -> tuple[World, list[str]]:
    """Return the people of a file, who come in some order, and notes on what was read."""
    given = dict(options)
    order = given.pop("order", "drawn")
    check_choice(order, "`order` of a world read from a file", PEOPLE_ORDERS)
    for name in given:
        check_choice(name, "An option of a world read from a file", _PEOPLE_OPTIONS)
    path = data_files(world)[0] if world.startswith(DATA_PREFIX) else Path(world)
    table = read_ratings(path, **given)
    kind = {"drawn": Ratings, "shuffled": Shuffled}.get(order, Recorded)
    made = kind(people_in_order(table.values, order), item_names=table.item_names)
    notes = [f"{len(table.values)} people, {made.n_items} items from {world}"]
    if table.has_index:
        named = "the first column" if "ids" not in given else f"the column {given['ids']!r}"
        notes.append(f"{named} names the people and is no item")
    if table.n_dropped:
        notes.append(f"{table.n_dropped} people left out: a rating is missing")
    return made, notes


# --------------------------------------------------------------------- query-document lists


def data_files(world: str) -> list[Path]:
    """Return the file of ``data:FOLDER/FILE``, or the LETOR files of ``data:FOLDER``.

    Raises where the data is not on this machine.
    """
    name = world.removeprefix(DATA_PREFIX)
    where = data_folder() / name
    files = [where] if where.is_file() else sorted(where.glob("*.txt.gz"))
    if not files:
        raise DataMissing(f"{name} is not in {data_folder()}.")
    return files


def how_to_read(
    groups: Sequence[Path] | None = None, *, raw: bool = False, keep_empty: bool = False
) -> dict[str, Any]:
    """Return how files of lists are read: by default features are minmax-scaled in each list."""
    return {
        "groups": list(groups) if groups else None,
        "dtype": np.float32,
        "normalise": None if raw else "minmax",
        "missing_relevant": "keep" if keep_empty else "drop",
    }


class Lists:
    """Query-document lists of files, read once however many learn from them."""

    def __init__(self, read: QuerySet | LetorStream) -> None:
        self.read = read

    @cached_property
    def digest(self) -> str:
        """What tells them from other lists: a digest of all that was read."""
        if isinstance(self.read, LetorStream):
            return ""
        content = hashlib.sha256()
        for array in (self.read.features, self.read.relevance, self.read.starts):
            content.update(np.ascontiguousarray(array).tobytes())
        return content.hexdigest()

    def shown(self, options: Mapping[str, Any]) -> LetorStream | Queries:
        """Return them as a world."""
        if isinstance(self.read, LetorStream):
            return self.read
        how = {name: value for name, value in options.items() if name in _SHOWING}
        return Queries(self.read.features, self.read.relevance, self.read.starts, **how)


def read_lists(files: Sequence[str], options: Mapping[str, Any]) -> Lists:
    """Read LETOR files, by their paths or as ``data:FOLDER``, as some options say."""
    for name in options:
        check_choice(name, "An option of lists read from files", (*_READING, *_SHOWING))
    paths = _paths(files)
    stamps = tuple(path.stat().st_mtime_ns if os.path.exists(path) else 0 for path in paths)
    flags = (
        check_flag(options.get(name, False), f"`{name}` of lists")
        for name in ("raw", "keep_empty", "stream")
    )
    return _read(paths, stamps, _paths(options.get("groups", ())), *flags)


def _paths(names: Sequence[str]) -> tuple[Path, ...]:
    found = [data_files(n) if n.startswith(DATA_PREFIX) else [Path(n)] for n in map(str, names)]
    return tuple(path for paths in found for path in paths)


@lru_cache(maxsize=1)  # all curves of a study learn on the same lists
def _read(
    files: tuple[Path, ...],
    stamps: tuple[int, ...],
    groups: tuple[Path, ...],
    raw: bool,
    keep_empty: bool,
    stream: bool,
) -> Lists:
    how = how_to_read(groups, raw=raw, keep_empty=keep_empty)
    return Lists(LetorStream(files, **how) if stream else read_letor(files, **how))


def row_norm(world: World) -> float:
    """Return the largest norm of a document of a world of lists, as far as it is known."""
    if isinstance(world, Queries | LetorStream):
        return world.largest_norm
    return world.row_norm if isinstance(world, Graded) else world.largest_norm(_MEASURED)  # type: ignore[attr-defined]


def top_grade(world: World) -> int:
    """Return the largest grade of a world as a whole number, 1 at least."""
    return max(math.ceil(world.max_grade), 1)
