"""A world of files larger than memory: whole queries are read, shown and dropped."""

from collections.abc import Iterator
from itertools import count
from typing import Any, ClassVar

import numpy as np

from keyhole.base.errors import FloatArray, IntArray, InvalidInput
from keyhole.contracts.lists import Query
from keyhole.contracts.worlds import World, WorldKernel
from keyhole.data.letor.files import Paths
from keyhole.data.letor.queries import QuerySet
from keyhole.data.letor.reader import BLOCK_BYTES, iterate_letor, letor_columns
from keyhole.worlds.queries import Queries, largest_norm


class LetorStream(World):
    r"""The queries of LETOR or SVMLight files, a chunk at a time.

    The files are read twice to begin with: for the number of their columns, then for the
    facts below, by which rankers are tuned. They must not change afterwards. A game on it is one
    on all queries (:class:`~keyhole.worlds.queries.Queries`), except that a pass takes the chunks
    in the order of the files and shuffles within each of them.

    Parameters
    ----------
    paths, groups, dtype, missing_relevant, normalise
        See :func:`keyhole.read_letor`.
    block_bytes
        Text of a chunk. A chunk has whole queries of one file, one at least.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> path = Path(tempfile.mkdtemp()) / "train.txt"
    >>> _ = path.write_text("2 qid:7 1:3 2:4\n0 qid:7 2:3\n1 qid:8 1:0.25\n")
    >>> stream = LetorStream(path, block_bytes=16)
    >>> stream.n_queries, stream.n_items, stream.max_grade, stream.largest_norm
    (2, 2, 2.0, 5.0)
    """

    kernel: ClassVar[WorldKernel] = Queries.kernel

    def __init__(
        self,
        paths: Paths,
        *,
        groups: Paths | None = None,
        dtype: Any = np.float64,
        missing_relevant: str = "drop",
        normalise: str | None = None,
        block_bytes: int = BLOCK_BYTES,
    ) -> None:
        first_index, n_features = letor_columns(paths, block_bytes=block_bytes)

        def chunks() -> Iterator[QuerySet]:
            return iterate_letor(
                paths,
                groups=groups,
                dtype=dtype,
                n_features=n_features or None,  # none at all: the reader says so
                first_index=first_index,
                missing_relevant=missing_relevant,
                normalise=normalise,
                block_bytes=block_bytes,
            )

        self._chunks = chunks
        self.n_features = n_features
        self.n_queries = self.n_documents = self.n_dropped = self.n_items = 0
        self.max_grade = norm = 0.0
        self.is_binary = True
        for chunk in chunks():
            self.n_queries += chunk.n_queries
            self.n_documents += chunk.n_documents
            self.n_dropped += chunk.n_dropped
            self.n_items = max(self.n_items, chunk.largest)
            self.max_grade = max(self.max_grade, float(chunk.relevance.max()))
            self.is_binary &= bool(np.isin(chunk.relevance, (0.0, 1.0)).all())
            norm = max(norm, largest_norm(chunk.features))
        self.largest_norm = norm or 1.0

    def parts(self, first: int, end: int) -> Iterator[tuple[World, int, int]]:
        """Give the chunks as worlds, each to be shown once, pass after pass."""
        first_round = 0
        for lap in count():
            for chunk in self._chunks():
                last = first_round + chunk.n_queries
                if last > first:
                    part = Queries(chunk.features, chunk.relevance, chunk.starts).as_part(
                        first_round=first_round,
                        first_pass=lap,
                        n_items=self.n_items,
                        max_grade=self.max_grade,
                    )
                    yield part, max(first, first_round), min(last, end)
                first_round = last
                if first_round >= end:
                    return

    def query(self, round: int, *, seed: int = 0, run: int = 0) -> Query:
        part, *_ = next(self.parts(round, round + 1))
        return part.query(round, seed=seed, run=run)

    def relevance(self, round: int, *, seed: int = 0, run: int = 0) -> FloatArray:
        part, *_ = next(self.parts(round, round + 1))
        return part.relevance(round, seed=seed, run=run)

    def relabelled(self, labels: IntArray) -> World:
        raise InvalidInput("The documents of files cannot be relabelled.")
