"""Learning on query-document lists, described by names and numbers."""

import hashlib
import math
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from keyhole.base.errors import InvalidInput, check_choice, check_flag, check_integer
from keyhole.contracts.measures import Measure
from keyhole.contracts.registry import check_options
from keyhole.contracts.reveals import Reveal
from keyhole.contracts.worlds import World
from keyhole.data.letor.queries import QuerySet
from keyhole.data.letor.reader import read_letor
from keyhole.game.play import play
from keyhole.game.stream import LetorStream
from keyhole.lab.inputs import DATA_PREFIX, DataMissing, Description, data_folder
from keyhole.lab.results import Axes, Curve
from keyhole.measures import measure as named_measure
from keyhole.rankers import RANKERS
from keyhole.rankers.lists.base import ContextualRanker
from keyhole.reveals import least_reveal
from keyhole.reveals.noisy import Noisy
from keyhole.reveals.top import Top
from keyhole.surrogates import SURROGATES, surrogate as named_surrogate
from keyhole.surrogates.base import Surrogate
from keyhole.worlds.generated import Graded, Separable
from keyhole.worlds.queries import Queries

_MEASURED = 1000
"""Lists whose norms are measured where a world has no bound on them."""
_READING = ("groups", "raw", "keep_empty")
_SHOWING = ("shuffle", "document_seed", "permute_at")
"""Options of lists read from files: how they are read, and how they are shown."""


@dataclass(frozen=True)
class ListSpec(Description):
    """A ranker that learns on lists, by names: nothing that is not plain data.

    ``world`` is ``separable``, ``graded`` (with a ``shape`` among its options, or none),
    ``data:FOLDER`` or the paths of LETOR files, whose options are how they are read (``groups``,
    ``raw``, ``keep_empty``) and those of :class:`~keyhole.worlds.queries.Queries`. ``noise`` is the
    share of labels that rankers see at random; ``greedy`` draws the lists that would have been
    shown without exploring in place of those that were. Where single points are drawn, they are
    means of the lists ``since`` a round. A ``surrogate`` among the options of the
    ranker is a name, or a mapping of its ``name`` and its own options.
    """

    ranker: str = "contextual-rtopk"
    world: str | list[str] = "graded"
    measure: str = "NDCG@10"
    rounds: int = 100_000
    top: int | None = None
    noise: float = 0.0
    runs: int = 1
    seed: int = 0
    greedy: bool = False
    since: int = 0
    points: int = 200
    ranker_options: dict[str, Any] = field(default_factory=dict)
    world_options: dict[str, Any] = field(default_factory=dict)

    @property
    def work(self) -> int:
        """Number of lists to show, in all runs together."""
        return self.rounds * self.runs

    def on_files(self, files: list[Path]) -> "ListSpec":
        """Return the same on the lists of some files."""
        return replace(self, world=[str(path) for path in files], world_options={})


@dataclass(frozen=True)
class BuiltLists:
    """The objects that a description names; ``data`` tells one set of lists from another."""

    spec: ListSpec
    world: World
    measure: Measure
    reveal: Reveal
    data: str

    @property
    def key(self) -> dict[str, Any]:
        """All that the results depend on, as plain data."""
        return {**self.spec.as_dict(), "data": self.data}

    @property
    def ranker(self) -> ContextualRanker:
        """The ranker, whose settings every run has."""
        spec = self.spec
        return make_ranker(
            spec.ranker, self.world, spec.ranker_options, top=spec.top, seed=spec.seed
        )


def row_norm(world: World) -> float:
    """Return the largest norm of a document of a world of lists, as far as it is known."""
    if isinstance(world, Queries | LetorStream):
        return world.largest_norm
    return world.row_norm if isinstance(world, Graded) else world.largest_norm(_MEASURED)  # type: ignore[attr-defined]


def make_surrogate(given: str | dict[str, Any], world: World) -> Surrogate:
    """Return a surrogate for the lists of a world, told their top grade where it can be.

    ``given`` is its name, or a mapping of its ``name`` and its options.
    """
    options = {"name": given} if isinstance(given, str) else dict(given)
    name = options.pop("name")
    cls = SURROGATES.find(name)
    if "max_grade" in check_options(cls, options):
        options = {"max_grade": max(math.ceil(world.max_grade), 1), **options}
    return named_surrogate(name, **options)


def ranker_of_lists(name: str) -> Any:
    """Return the class of a ranker of query-document lists, or raise."""
    cls = RANKERS.find(name)
    if issubclass(cls, ContextualRanker):
        return cls
    near = {"rtopk": "contextual-rtopk", "random": "random-lists"}.get(name)
    hint = "" if near is None else f" Did you mean {near!r}?"
    raise InvalidInput(
        f"ranker must be one of query-document lists, got {name!r}, which ranks one fixed list."
        f"{hint}"
    )


def make_ranker(
    name: str,
    world: World,
    options: dict[str, Any],
    *,
    top: int | None = None,
    seed: int,
) -> ContextualRanker:
    """Return a ranker for the lists of a world, told their grades and norms where it can be.

    ``top`` documents are to be revealed of each list: it must be able to use them all.
    """
    cls = ranker_of_lists(name)
    known, options = check_options(cls, options), dict(options)
    if "surrogate" in known:
        options["surrogate"] = make_surrogate(options.get("surrogate", known["surrogate"]), world)
    if "max_grade" in known:
        options.setdefault("max_grade", max(world.max_grade, 1.0))
    if "row_norm" in known and "row_norm" not in options:
        options["row_norm"] = row_norm(world)
    if top is not None and "k" in known and options.setdefault("k", top) != top:
        raise InvalidInput(
            f"`k` of {cls.__name__} must be the top {top} shown, got {options['k']}."
        )
    ranker = cls(world.n_features, world.n_items, seed=seed, **options)
    if top is not None and "k" not in known:
        learns = "every document" if ranker.depth else "no document"
        raise InvalidInput(
            f"top must not be given for {cls.__name__}, which learns from the relevance of "
            f"{learns}, got {top}."
        )
    return ranker


def data_files(world: str) -> list[Path]:
    """Return the LETOR files of ``data:FOLDER``, or the file of ``data:FOLDER/FILE``.

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


def _paths(names: Sequence[str]) -> list[Path]:
    """Return files by their paths, or by ``data:FOLDER/FILE``."""
    found = [data_files(n) if n.startswith(DATA_PREFIX) else [Path(n)] for n in names]
    return [path for paths in found for path in paths]


@lru_cache(maxsize=1)  # all curves of a study learn on the same lists
def _read(
    files: tuple[Path, ...],
    stamps: tuple[int, ...],
    groups: tuple[Path, ...],
    raw: bool,
    keep_empty: bool,
) -> tuple[QuerySet, str]:
    queries = read_letor(files, **how_to_read(groups, raw=raw, keep_empty=keep_empty))
    content = hashlib.sha256()
    for array in (queries.features, queries.relevance, queries.starts):
        content.update(np.ascontiguousarray(array).tobytes())
    return queries, content.hexdigest()


def build_world_of_lists(spec: ListSpec) -> tuple[World, str]:
    """Return the lists of a description, and what tells their data from other data."""
    options = dict(spec.world_options)
    if spec.world == "separable":
        check_options(Separable, options)
        return Separable(**options), ""
    if spec.world == "graded":
        shape = options.pop("shape", None)
        check_options(Graded, options)
        return Graded(**options) if shape is None else Graded.like(shape, **options), ""
    for name in options:
        check_choice(name, "An option of lists read from files", (*_READING, *_SHOWING))
    if isinstance(spec.world, list):
        files = _paths(spec.world)
    elif spec.world.startswith(DATA_PREFIX):
        files = data_files(spec.world)
    else:
        known = ["separable", "graded", f"{DATA_PREFIX}FOLDER"]
        check_choice(spec.world, "world of lists (or a list of LETOR files)", known)
    stamps = tuple(path.stat().st_mtime_ns if os.path.exists(path) else 0 for path in files)
    groups = tuple(_paths(options.get("groups", ())))
    raw, keep_empty = (
        check_flag(options.get(name, False), f"`{name}` of lists") for name in ("raw", "keep_empty")
    )
    queries, content = _read(tuple(files), stamps, groups, raw, keep_empty)
    shown = {name: value for name, value in options.items() if name in _SHOWING}
    return Queries(queries.features, queries.relevance, queries.starts, **shown), content


def feedback_of(reveal: Reveal, noise: float, world: World) -> Reveal:
    """Return a reveal of the lists of a world, or the same with a share of labels at random."""
    if not noise:
        return reveal
    return Noisy(reveal, noise=noise, max_grade=max(math.ceil(world.max_grade), 1))


def build_lists(spec: ListSpec) -> BuiltLists:
    """Return the objects that a description names, or raise with a sentence."""
    check_integer(spec.rounds, "rounds", at_least=1)
    check_integer(spec.runs, "runs", at_least=1)
    world, data = build_world_of_lists(spec)
    # What is wrong with the options of the ranker is said before anything is played.
    ranker = make_ranker(spec.ranker, world, spec.ranker_options, top=spec.top, seed=spec.seed)
    shown = least_reveal(ranker.depth, world.n_items) if spec.top is None else Top(spec.top)
    reveal = feedback_of(shown, spec.noise, world)
    return BuiltLists(spec, world, named_measure(spec.measure), reveal, data)


def play_lists(label: str, lists: BuiltLists, report: Callable[[int], None] | None = None) -> Curve:
    """Return the running mean of the lists shown, one run per row, played on all cores."""
    spec = lists.spec
    trace = play(
        lists.ranker, lists.world, measure=lists.measure, reveal=lists.reveal,
        rounds=spec.rounds, seed=spec.seed, runs=spec.runs, n_points=spec.points, progress=report,
    )  # fmt: skip
    totals = trace.greedy if spec.greedy else trace.scores
    return Curve(label, trace.rounds, totals / trace.rounds)


def play_lists_to_the_end(
    label: str, lists: BuiltLists, report: Callable[[int], None] | None = None
) -> Curve:
    """Return the mean of the lists from the round ``since`` on, one run per row."""
    whole = play_lists(label, lists, report)
    since, last = lists.spec.since, whole.index()
    totals = whole.totals[:, last]
    n_lists = int(whole.x[last])
    if since:
        first = whole.index(since)
        totals, n_lists = totals - whole.totals[:, first], n_lists - int(whole.x[first])
    return Curve(label, whole.x[last:], totals[:, np.newaxis] / n_lists)


def list_axes(measure: str) -> Axes:
    """Return the axes of running means of a measure."""
    better = "lower is better" if named_measure(measure).is_loss else "higher is better"
    return Axes("list t", "mean of the lists up to t", "round", "average_score", better, False)


def lists_end_axes(measure: str) -> Axes:
    """Return the axes of means over all lists."""
    better = list_axes(measure).better
    return Axes("", "mean of all lists", "round", "average_score", better, False)
