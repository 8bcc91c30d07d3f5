"""Streams of query-document lists, from data and from generators."""

import copy
from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from keyhole.base.errors import (
    MAX_ROUND,
    FloatArray,
    IntArray,
    InvalidInput,
    check_flag,
    check_integer,
    check_relevance,
    check_seed,
)
from keyhole.contracts.lists import read_only
from keyhole.contracts.worlds import World, WorldKernel
from keyhole.kernels.compiled import kernel
from keyhole.kernels.draw import shuffled

_ORDER, _LABELS = 0, 1


class QueriesParams(NamedTuple):
    """Relevance of all documents, where each query's begin, and whether passes are shuffled.

    ``first_round`` begins pass ``first_pass``; from round ``permute_at`` on, the documents of a
    list have each other's relevance.
    """

    relevance: Any
    starts: Any
    shuffle: bool
    first_round: int = 0
    first_pass: int = 0
    permute_at: int = MAX_ROUND


@kernel
def _query_of(params: Any, draw: Any) -> int:
    n_queries = params.starts.shape[0] - 1
    since = draw.round - params.first_round
    index = since % n_queries
    if not params.shuffle:
        return index
    lap = params.first_pass + since // n_queries
    return shuffled(draw, lap, _ORDER, index, n_queries)


@kernel
def _query(params: Any, draw: Any, matrix: Any) -> tuple[int, int]:
    query = _query_of(params, draw)
    return params.starts[query], params.starts[query + 1]


@kernel
def _relevance(params: Any, draw: Any, out: Any) -> None:
    query, n_items = _query_of(params, draw), out.shape[0]
    first = params.starts[query]
    for item in range(n_items):
        labelled = item
        if draw.round >= params.permute_at:
            labelled = shuffled(draw, query, _LABELS, item, n_items)
        out[item] = params.relevance[first + labelled]


def largest_norm(features: FloatArray) -> float:
    """Return the largest Euclidean norm of a document."""
    squares = np.einsum("ij,ij->i", features, features, dtype=np.float64)
    return float(np.sqrt(squares.max()))


def _checked_features(features: ArrayLike) -> FloatArray:
    """Return features in the precision they are given in, or raise."""
    try:
        rows: FloatArray = np.ascontiguousarray(features)
        usable = rows.ndim == 2 and bool(np.isfinite(rows).all())
    except (TypeError, ValueError):
        usable = False
    if not usable or not np.isrealobj(rows):
        raise InvalidInput("`features` of Queries must be rows of finite numbers.")
    return rows


def _checked_starts(starts: ArrayLike) -> IntArray:
    """Return where lists begin as whole numbers, or raise."""
    try:
        offsets = np.ascontiguousarray(starts, dtype=np.int64)
        whole = bool(np.all(offsets == np.asarray(starts)))
    except (TypeError, ValueError, OverflowError):
        whole = False
    if not whole:
        raise InvalidInput("`starts` of Queries must be a list of whole numbers.")
    return offsets


def _within_lists(offsets: IntArray, seed: int) -> IntArray:
    """Return a random order of all documents in which every list keeps its place."""
    draws = np.random.default_rng(seed).random(offsets[-1])
    return np.lexsort((draws, np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))))


class Queries(World):
    """Query-document lists in passes over a data set, each pass in another order.

    Parameters
    ----------
    features
        One row per document.
    relevance
        One grade per document.
    starts
        Where each query's documents begin, and the number of all: lists are consecutive rows.
    shuffle
        Another random order of the queries in each pass; otherwise theirs.
    document_seed
        Seed of a random order of the documents within each list; by default they keep theirs.
        Ties go to the first document, so a file that is sorted by label tells labels.
    permute_at
        The round from which on the documents of each list have each other's labels, in a random
        order that every run draws once; by default never.

    Examples
    --------
    >>> world = Queries([[0.1], [0.9], [0.5]], [0, 1, 2], [0, 2, 3], shuffle=False)
    >>> world.query(round=0).n_items, world.relevance(round=0).tolist()
    (2, [0.0, 1.0])
    >>> world.query(round=3).features.tolist()
    [[0.5]]
    """

    kernel: ClassVar[WorldKernel] = WorldKernel(_relevance, _query, _query)

    def __init__(
        self,
        features: ArrayLike,
        relevance: ArrayLike,
        starts: ArrayLike,
        *,
        shuffle: bool = True,
        document_seed: int | None = None,
        permute_at: int | None = None,
    ) -> None:
        rows = _checked_features(features)
        grades = check_relevance(relevance)
        offsets = _checked_starts(starts)
        fits = offsets.ndim == 1 and len(offsets) > 1 and offsets[0] == 0
        if not fits or offsets[-1] != len(rows) or bool((np.diff(offsets) < 1).any()):
            raise InvalidInput(
                f"`starts` of Queries must rise from 0 to the {len(rows)} documents."
            )
        if grades.shape != (len(rows),):
            raise InvalidInput(
                f"`relevance` of Queries must have one grade per document "
                f"({len(rows)}), got shape {grades.shape}."
            )
        if document_seed is not None:
            order = _within_lists(offsets, check_seed(document_seed))
            rows, grades = rows[order], grades[order]
        if permute_at is not None:
            permute_at = check_integer(permute_at, "`permute_at` of Queries", at_least=0)
        self.features = read_only(rows)
        self.params = QueriesParams(
            read_only(grades), read_only(offsets), check_flag(shuffle, "`shuffle` of Queries"),
            permute_at=MAX_ROUND if permute_at is None else permute_at,
        )  # fmt: skip
        self.n_items = int(np.diff(offsets).max())
        self.n_features = self.features.shape[1]
        self.max_grade = float(grades.max())
        self.is_binary = bool(((grades == 0.0) | (grades == 1.0)).all())

    @property
    def n_queries(self) -> int:
        """Number of queries in a pass."""
        return len(self.params.starts) - 1

    @property
    def largest_norm(self) -> float:
        """The largest Euclidean norm of a document, 1 if all are 0."""
        return largest_norm(self.features) or 1.0

    def matrix(self) -> FloatArray:
        return self.features

    def as_part(self, *, first_round: int, first_pass: int, n_items: int, max_grade: float) -> Self:
        """Return these queries as a part of a larger set, shown from ``first_round`` on.

        ``first_pass`` counts the passes over the larger set, whose longest list and largest
        grade are ``n_items`` and ``max_grade``.
        """
        for name, own, whole in (
            ("n_items", self.n_items, n_items), ("max_grade", self.max_grade, max_grade)
        ):  # fmt: skip
            if own > whole:
                raise InvalidInput(
                    f"`{name}` of a larger set must be at least {own:g}, as in its part, got "
                    f"{whole:g}."
                )
        part = copy.copy(self)
        part.n_items, part.max_grade = n_items, max_grade
        part.params = self.params._replace(first_round=first_round, first_pass=first_pass)
        return part

    def relabelled(self, labels: IntArray) -> Self:
        rows: Sequence[IntArray] = [
            first + labels[labels < end - first]
            for first, end in zip(self.params.starts, self.params.starts[1:], strict=False)
        ]
        order = np.concatenate(rows)
        other = copy.copy(self)
        other.features = read_only(self.features[order])
        other.params = self.params._replace(relevance=read_only(self.params.relevance[order]))
        return other
