"""Documents to queries: whole files at once, or in blocks of whole queries."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from keyhole.base.display import Described, Description
from keyhole.base.errors import FloatArray, IntArray, InvalidInput, check_integer
from keyhole.base.threads import spread
from keyhole.data.letor import kernels
from keyhole.data.letor.files import (
    Blocks,
    Slices,
    group_sizes,
    hidden_character,
    quoted,
    raw_bytes,
    unpacked,
)
from keyhole.data.letor.parse import (
    CHUNK_BYTES,
    Options,
    Place,
    Rows,
    check_width,
    columns,
    fill,
    new_rows,
    scan,
)

_QUERIES_PER_TASK = 256
_BLOCKS_PER_FILE, _MAX_BLOCK = 16, 2**24


@dataclass(frozen=True, eq=False, repr=False)
class QuerySet(Described):
    """Queries, each with a list of documents. All arrays are read-only."""

    features: Any
    """Documents by features, in float64 or float32; the lists lie one after the other."""
    relevance: FloatArray
    """Label of every document."""
    starts: IntArray
    """The documents of query i are those from ``starts[i]`` up to ``starts[i + 1]``."""
    query_ids: tuple[str, ...]
    n_dropped: int
    """Queries left out because none of their documents is relevant."""

    def _described(self) -> Description:
        rows = [
            ("queries", f"{self.n_queries:,}"),
            ("documents", f"{self.n_documents:,}"),
            ("features", f"{self.n_features:,}"),
            ("longest list", f"{self.largest:,}"),
        ]
        if self.n_dropped:
            rows.append(("left out", f"{self.n_dropped:,} queries without a relevant document"))
        return Description("QuerySet", rows)

    @property
    def n_queries(self) -> int:
        """Number of queries."""
        return len(self.query_ids)

    @property
    def n_documents(self) -> int:
        """Number of documents of all queries."""
        return len(self.relevance)

    @property
    def n_features(self) -> int:
        """Number of features of a document."""
        return int(self.features.shape[1])

    @property
    def largest(self) -> int:
        """Documents in the longest list."""
        return int(np.diff(self.starts).max())

    def query(self, i: int) -> tuple[Any, FloatArray]:
        """Return features and relevance of query ``i``, counted from 0."""
        i = check_integer(i, "`i`", at_least=0, at_most=self.n_queries - 1, bound="n_queries-1=")
        documents = slice(int(self.starts[i]), int(self.starts[i + 1]))
        return self.features[documents], self.relevance[documents]


class Groups(NamedTuple):
    """The list lengths of a file without ``qid:``, and where they were read."""

    path: Path
    ends: Any

    def check_sum(self, path: Path, n_rows: int, more: str = "") -> None:
        """Raise unless the lengths add up to the number of documents."""
        if self.ends[-1] != n_rows:
            raise InvalidInput(
                f"{self.path} must have group sizes that sum to the {n_rows}{more} documents of "
                f"{path}, got {self.ends[-1]}."
            )


def _groups(paths: Sequence[Path], raw: Sequence[Any], n_files: int) -> list[Groups | None]:
    if not paths:
        return [None] * n_files
    sizes = [group_sizes(path, bytes_) for path, bytes_ in zip(paths, raw, strict=True)]
    return [Groups(path, np.cumsum(size)) for path, size in zip(paths, sizes, strict=True)]


def _by_qid(place: Place, rows: Rows) -> Any:
    """Return the first row of every query."""
    starts = np.empty(len(rows.relevance), np.int64)
    n_queries, without = kernels.find_queries(place.text, rows.qid_at, rows.qid_size, starts)
    if without >= 0:
        raise place.error(
            int(rows.qid_at[without]),
            "a document must have qid:ID after its label, as no group file is given.",
        )
    return starts[:n_queries]


def _check_no_qid(place: Place, rows: Rows, groups: Groups) -> None:
    named = np.flatnonzero(rows.qid_size)
    if len(named):
        raise place.error(
            int(rows.qid_at[named[0]]),
            f"a document must have no qid:ID when the group file {groups.path} is given.",
        )


def _identities(place: Place, rows: Rows, starts: Any, seen: set[str]) -> list[str]:
    """Return the identities of queries, none of which may have been seen before."""
    found, text = [], memoryview(place.text)
    places = zip(rows.qid_at[starts].tolist(), rows.qid_size[starts].tolist(), strict=True)
    for at, size in places:
        token = bytes(text[at : at + size])
        try:
            identity = token.decode()
        except UnicodeDecodeError:
            raise place.error(at, f"a qid must be UTF-8 text, got {quoted(token)}.") from None
        if ":" in identity or hidden_character(identity) is not None:
            raise place.error(
                at,
                f"a qid must end with a space or a tab and have neither white space nor a colon in "
                f"it, got {quoted(token)}.",
            )
        value = _by_value(identity)
        if value in seen:
            raise place.error(
                at, f"documents of a query must follow one another, got qid:{identity} again."
            )
        seen.add(value)
        found.append(identity)
    return found


def _by_value(identity: str) -> str:
    """Return the shortest spelling of an integer; any other identity as it is."""
    digits = identity.removeprefix("-" if identity.startswith("-") else "+")
    if not (digits.isascii() and digits.isdecimal()):
        return identity
    digits = digits.lstrip("0")
    return f"-{digits}" if digits and identity.startswith("-") else digits or "0"


def _numbers(first: int, end: int) -> list[str]:
    return [str(number) for number in range(first + 1, end + 1)]


def _finish(
    rows: Rows, starts: Any, ids: list[str], options: Options, run: Any
) -> tuple[QuerySet | None, int]:
    """Drop, normalise and round; return the queries left, if any, and how many were dropped."""
    features, relevance = rows.features, rows.relevance
    n_queries = len(ids)
    if options.missing_relevant == "drop":
        kept = np.empty(n_queries, np.int64)
        n_left = kernels.drop_irrelevant(features, relevance, starts, kept)
        ids = [ids[query] for query in kept[:n_left].tolist()]
        starts = starts[: n_left + 1]
        features, relevance = features[: starts[-1]], relevance[: starts[-1]]
    if options.normalise is not None:
        tasks = range(0, len(ids), _QUERIES_PER_TASK)
        run(partial(_scale, features, starts), list(tasks))
        features = features.astype(options.dtype, copy=False)
    for array in (features, relevance, starts):
        array.flags.writeable = False
    n_dropped = n_queries - len(ids)
    found = QuerySet(features, relevance, starts, tuple(ids), n_dropped) if ids else None
    return found, n_dropped


def _scale(features: Any, starts: Any, begin: int) -> None:
    low, high = np.empty((2, features.shape[1]))
    end = min(begin + _QUERIES_PER_TASK, len(starts) - 1)
    kernels.scale_queries(features, starts, begin, end, low, high)


def _none_relevant(paths: Sequence[Path]) -> InvalidInput:
    names = " and ".join(str(path) for path in paths)
    return InvalidInput(
        f"{names} must have at least one query with a relevant document; missing_relevant='keep' "
        f"reads the others too."
    )


def _no_documents(path: Path) -> InvalidInput:
    return InvalidInput(f"{path} must have at least one document.")


def read_whole(
    paths: Sequence[Path],
    raw: Sequence[Any],
    group_paths: Sequence[Path],
    raw_groups: Sequence[Any],
    options: Options,
    n_threads: int,
) -> QuerySet:
    """Read files, whose bytes are given, at once."""
    all_groups = _groups(group_paths, raw_groups, len(paths))
    places = [Place(path, unpacked(path, r)) for path, r in zip(paths, raw, strict=True)]
    with spread(n_threads) as run:
        scans = [scan(place.text, run) for place in places]
        counts = [sum(scanned.n_rows) for scanned in scans]
        for place, scanned, groups, n_rows in zip(places, scans, all_groups, counts, strict=True):
            if n_rows == 0:
                raise _no_documents(place.path)
            if options.n_features is None:
                check_width(place, scanned)
            if groups is not None:
                groups.check_sum(place.path, n_rows)
        lowest, highest = min(s.lowest for s in scans), max(s.highest for s in scans)
        first, n_features = columns(options, lowest, highest)
        if options.parsed != options.dtype:
            return _read_scaled(places, all_groups, sum(counts), (first, n_features), options, run)
        rows = new_rows(sum(counts), n_features, options.dtype, paths[0])
        ids: list[str] = []
        starts, begin = [], 0
        for place, scanned, groups, n_rows in zip(places, scans, all_groups, counts, strict=True):
            part = Rows(*(array[begin : begin + n_rows] for array in rows))
            fill(place, scanned, part, first, options, run)
            if groups is None:
                own = _by_qid(place, part)
                ids += _identities(place, part, own, set())
            else:
                _check_no_qid(place, part, groups)
                own = np.concatenate([[0], groups.ends[:-1]])
                ids += _numbers(0, len(own))
            starts.append(own + begin)
            begin += n_rows
        found, _ = _finish(rows, np.concatenate([*starts, [begin]]), ids, options, run)
    if found is None:
        raise _none_relevant(paths)
    return found


def _read_scaled(
    places: Sequence[Place],
    all_groups: Sequence[Groups | None],
    n_rows: int,
    shape: tuple[int, int],
    options: Options,
    run: Any,
) -> QuerySet:
    """Read whole files of which only a few queries at a time are held in double precision."""
    features, relevance, *_ = new_rows(n_rows, shape[1], options.dtype, places[0].path)
    starts, ids = [np.zeros(1, np.int64)], list[str]()
    end = n_dropped = 0
    for place, groups in zip(places, all_groups, strict=True):
        size = place.text.shape[0]
        blocks = Slices(place.text, min(max(size // _BLOCKS_PER_FILE, CHUNK_BYTES), _MAX_BLOCK))
        for rows, own, names in _parts(blocks, place.path, groups, shape, options, run):
            found, dropped = _finish(rows, own, names, options, run)
            n_dropped += dropped
            if found is not None:
                begin, end = end, end + found.n_documents
                features[begin:end], relevance[begin:end] = found.features, found.relevance
                starts.append(found.starts[1:] + begin)
                ids += found.query_ids
    if not ids:
        raise _none_relevant([place.path for place in places])
    whole = features[:end], relevance[:end], np.concatenate(starts)
    for array in whole:
        array.flags.writeable = False
    return QuerySet(*whole, tuple(ids), n_dropped)


def read_blocks(
    paths: Sequence[Path],
    group_paths: Sequence[Path],
    options: Options,
    block_bytes: int,
    n_threads: int,
) -> Iterator[QuerySet]:
    """Read files in blocks of whole queries."""
    raw_groups = [raw_bytes(path, "group") for path in group_paths]
    all_groups = _groups(group_paths, raw_groups, len(paths))
    held: QuerySet | None = None
    n_early = 0
    with spread(n_threads) as run:
        shape = find_columns(paths, options, block_bytes, run)
        for path, groups in zip(paths, all_groups, strict=True):
            with Blocks(path, block_bytes) as blocks:
                for rows, starts, ids in _parts(blocks, path, groups, shape, options, run):
                    found, n_dropped = _finish(rows, starts, ids, options, run)
                    # Held back until the next one is there: queries may be dropped after the last.
                    if found is not None:
                        if held is not None:
                            yield held
                        held, n_early = replace(found, n_dropped=n_dropped + n_early), 0
                    elif held is not None:
                        held = replace(held, n_dropped=held.n_dropped + n_dropped)
                    else:
                        n_early += n_dropped
    if held is None:
        raise _none_relevant(paths)
    yield held


def find_columns(
    paths: Sequence[Path], options: Options, block_bytes: int, run: Any
) -> tuple[int, int]:
    """Return the first index and the number of features, from the files unless both are given."""
    lowest, highest = kernels.MAX_INDEX, -1
    if options.n_features is not None and options.first_index is not None:
        return columns(options, lowest, highest)
    for path in paths:
        n_lines = 0
        with Blocks(path, block_bytes) as blocks:
            while not blocks.ended:
                place = Place(path, blocks.next(), n_lines)
                scanned = scan(place.text, run)
                if options.n_features is None:
                    check_width(place, scanned)
                lowest, highest = min(lowest, scanned.lowest), max(highest, scanned.highest)
                n_lines += kernels.count_lines(place.text, len(place.text))
    return columns(options, lowest, highest)


def _parts(
    blocks: Blocks | Slices,
    path: Path,
    groups: Groups | None,
    shape: tuple[int, int],
    options: Options,
    run: Any,
) -> Iterator[tuple[Rows, Any, list[str]]]:
    """Give the documents, starts and identities of one file's queries, block by block."""
    first, n_features = shape
    seen: set[str] = set()
    n_lines = n_rows_done = n_done = 0
    while not blocks.ended:
        place = Place(path, blocks.next(), n_lines)
        scanned = scan(place.text, run)
        rows = new_rows(sum(scanned.n_rows), n_features, options.parsed, path)
        fill(place, scanned, rows, first, options, run)
        n_rows = len(rows.relevance)
        if groups is None:
            starts = np.append(_by_qid(place, rows), n_rows)
            # The last query may go on in the next block.
            starts = starts if blocks.ended else starts[: max(len(starts) - 1, 1)]
            ids = _identities(place, rows, starts[:-1], seen)
        else:
            _check_no_qid(place, rows, groups)
            if blocks.ended or n_rows_done + n_rows > groups.ends[-1]:
                more = "" if blocks.ended else " or more"
                groups.check_sum(path, n_rows_done + n_rows, more)
            end = int(np.searchsorted(groups.ends, n_rows_done + n_rows, side="right"))
            starts = np.concatenate([[0], groups.ends[n_done:end] - n_rows_done])
            ids = _numbers(n_done, end)
            n_done = end
        taken = int(starts[-1])
        used = len(place.text) if taken == n_rows else int(rows.line_at[taken])
        blocks.keep(used)
        n_lines += kernels.count_lines(place.text, used)
        n_rows_done += taken
        if ids:
            yield Rows(*(array[:taken] for array in rows)), starts, ids
    if not n_rows_done:
        raise _no_documents(path)
