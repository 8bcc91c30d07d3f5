"""Queries with their documents, from LETOR and SVMLight files to arrays."""

from collections.abc import Iterator
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from keyhole.base.errors import InvalidInput, check_choice, check_integer, check_number, shown
from keyhole.base.threads import n_cores, spread
from keyhole.data.letor import cache as letor_cache
from keyhole.data.letor.files import Paths, as_paths, raw_bytes
from keyhole.data.letor.parse import Options
from keyhole.data.letor.queries import QuerySet, find_columns, read_blocks, read_whole

MISSING_RELEVANT = ("drop", "keep")
NORMALISERS = ("minmax",)
BLOCK_BYTES = 2**26


def read_letor(
    paths: Paths,
    *,
    groups: Paths | None = None,
    n_features: int | None = None,
    first_index: int | None = None,
    dtype: Any = np.float64,
    max_grade: float | None = None,
    missing_relevant: str = "drop",
    normalise: str | None = None,
    cache: str | PathLike[str] | None = None,
    n_threads: int | None = None,
) -> QuerySet:
    r"""Read queries with graded documents from LETOR or SVMLight files.

    A line is a document, ``label qid:ID index:value … # comment``. Features that a line does not
    name are 0. Every number is the one that Python's ``float`` reads, to the bit. Files may be
    compressed with gzip, bzip2 or xz.

    Parameters
    ----------
    paths
        One file or several; the same ``qid`` in two files means two queries. Integers are equal
        by value: 007 is 7.
    groups
        For files without ``qid:``, one group file each: the length of a list per line.
    n_features
        Columns of the table; by default as many as the highest index asks for.
    first_index
        Index of the first feature, 0 or 1; by default 1 unless an index 0 occurs.
    dtype
        float64 or float32 for the features. For float32, values that would become infinite or
        lose digits are refused; after ``minmax`` they are rounded, once.
    max_grade
        Highest label to accept; by default any.
    missing_relevant
        What to do about queries without a document of positive label: ``drop`` or ``keep`` them.
    normalise
        ``minmax`` maps each feature of each query onto 0 to 1, constant ones to 0.
    cache
        A folder for the parsed arrays, found again by the content of the files.
    n_threads
        Threads to parse with, by default one per core; the result does not depend on it.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "train.txt"
    >>> _ = path.write_text("2 qid:7 1:0.5 2:1\n0 qid:7 2:3\n1 qid:8 1:0.25\n")
    >>> queries = read_letor(path)
    >>> queries.query_ids, queries.starts.tolist(), queries.largest
    (('7', '8'), [0, 2, 3], 2)
    >>> features, relevance = queries.query(0)
    >>> features.tolist(), relevance.tolist()
    ([[0.5, 1.0], [0.0, 3.0]], [2.0, 0.0])
    """
    files, sizes_in = _files(paths, groups)
    options = _options(n_features, first_index, dtype, max_grade, missing_relevant, normalise)
    n_threads = _threads(n_threads)
    raw = [raw_bytes(path) for path in files]
    raw_sizes = [raw_bytes(path, "group") for path in sizes_in]
    if cache is None:
        return read_whole(files, raw, sizes_in, raw_sizes, options, n_threads)
    with spread(n_threads) as run:
        name = letor_cache.key(raw, raw_sizes, options, run)
    folder = Path(cache)
    stored = letor_cache.load(folder, name)
    if stored is not None:
        arrays, n_dropped = stored
        ids = tuple(arrays["query_ids"].tobytes().decode().split("\n"))
        return QuerySet(arrays["features"], arrays["relevance"], arrays["starts"], ids, n_dropped)
    read = read_whole(files, raw, sizes_in, raw_sizes, options, n_threads)
    arrays = {
        "features": read.features,
        "relevance": read.relevance,
        "starts": read.starts,
        "query_ids": np.frombuffer("\n".join(read.query_ids).encode(), np.uint8),
    }
    letor_cache.store(folder, name, arrays, read.n_dropped)
    return read


def iterate_letor(
    paths: Paths,
    *,
    groups: Paths | None = None,
    n_features: int | None = None,
    first_index: int | None = None,
    dtype: Any = np.float64,
    max_grade: float | None = None,
    missing_relevant: str = "drop",
    normalise: str | None = None,
    block_bytes: int = BLOCK_BYTES,
    n_threads: int | None = None,
) -> Iterator[QuerySet]:
    """Read files of any size, one :class:`QuerySet` of whole queries after the other.

    What :func:`read_letor` reads, in pieces: memory is that of ``block_bytes`` of text, or of the
    longest query if that is more. Without ``n_features`` and ``first_index`` the files are read
    once more beforehand to find them.
    """
    files, sizes_in = _files(paths, groups)
    options = _options(n_features, first_index, dtype, max_grade, missing_relevant, normalise)
    block_bytes = check_integer(block_bytes, "`block_bytes`", at_least=1)
    return read_blocks(files, sizes_in, options, block_bytes, _threads(n_threads))


def letor_columns(paths: Paths, *, block_bytes: int = BLOCK_BYTES) -> tuple[int, int]:
    """Return ``first_index`` and ``n_features`` of files of any size, for :func:`iterate_letor`."""
    files, _ = _files(paths, None)
    options = _options(None, None, np.float64, None, "keep", None)
    block_bytes = check_integer(block_bytes, "`block_bytes`", at_least=1)
    with spread(_threads(None)) as run:
        return find_columns(files, options, block_bytes, run)


def _files(paths: Paths, groups: Paths | None) -> tuple[tuple[Path, ...], tuple[Path, ...]]:
    files = as_paths(paths, "`paths`")
    sizes_in = () if groups is None else as_paths(groups, "`groups`")
    if groups is not None and len(sizes_in) != len(files):
        raise InvalidInput(
            f"`groups` must name one group file for each of the {len(files)} files of `paths`, got "
            f"{len(sizes_in)}."
        )
    return files, sizes_in


def _options(
    n_features: int | None,
    first_index: int | None,
    dtype: Any,
    max_grade: float | None,
    missing_relevant: str,
    normalise: str | None,
) -> Options:
    if n_features is not None:
        n_features = check_integer(n_features, "`n_features`", at_least=1)
    if first_index is not None:
        first_index = check_integer(first_index, "`first_index`", at_least=0, at_most=1)
    try:
        kind = np.dtype(dtype)
    except TypeError:
        kind = np.dtype(object)
    if kind not in (np.dtype(np.float64), np.dtype(np.float32)):
        raise InvalidInput(f"`dtype` must be float64 or float32, got {shown(dtype)}.")
    if max_grade is not None:
        max_grade = check_number(max_grade, "`max_grade`", at_least=0)
    check_choice(missing_relevant, "`missing_relevant`", MISSING_RELEVANT)
    if normalise is not None:
        check_choice(normalise, "`normalise`", NORMALISERS)
    return Options(n_features, first_index, kind.type, max_grade, missing_relevant, normalise)


def _threads(n_threads: int | None) -> int:
    return n_cores() if n_threads is None else check_integer(n_threads, "`n_threads`", at_least=1)
