"""Learning from files larger than memory: whole queries are read, learnt on and dropped."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import count
from typing import Any

import numpy as np

from keyhole.contracts import Measure, Ranker, Reveal
from keyhole.data import BLOCK_BYTES, QuerySet, iterate_letor, letor_columns
from keyhole.data.letor.files import Paths
from keyhole.errors import IntArray, check_integer
from keyhole.game.learn import Learning, learn
from keyhole.game.play import checkpoints_of
from keyhole.worlds.queries import Queries, largest_norm


class LetorStream:
    r"""The queries of LETOR or SVMLight files, a chunk at a time.

    The files are read twice to begin with: for the number of their columns, then for the
    facts below, by which rankers are tuned. They must not change afterwards.

    Parameters
    ----------
    paths, groups, dtype, missing_relevant, normalise
        See :func:`keyhole.data.read_letor`.
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
        for chunk in chunks():
            self.n_queries += chunk.n_queries
            self.n_documents += chunk.n_documents
            self.n_dropped += chunk.n_dropped
            self.n_items = max(self.n_items, chunk.largest)
            self.max_grade = max(self.max_grade, float(chunk.relevance.max()))
            norm = max(norm, largest_norm(chunk.features))
        self.largest_norm = norm or 1.0

    def parts(self) -> Iterator[Queries]:
        """Give the chunks as worlds, each to be shown once; pass after pass, for ever."""
        first_round = 0
        for lap in count():
            for chunk in self._chunks():
                yield Queries(chunk.features, chunk.relevance, chunk.starts).as_part(
                    first_round=first_round,
                    first_pass=lap,
                    n_items=self.n_items,
                    max_grade=self.max_grade,
                )
                first_round += chunk.n_queries


def learn_stream(
    ranker: Ranker,
    stream: LetorStream,
    *,
    measure: str | Measure = "NDCG@10",
    reveal: Reveal | None = None,
    rounds: int,
    seed: int = 0,
    n_points: int | None = 200,
    progress: Callable[[int], None] | None = None,
) -> Learning:
    """Let a ranker learn on files of any size, in the memory of a few chunks.

    It is :func:`keyhole.game.learn.learn` on all queries, except that a pass takes the chunks in
    the order of the files and shuffles within each of them. With a single chunk it gives the same
    bits.
    """
    rounds = check_integer(rounds, "`rounds`", at_least=1)
    parts = stream.parts()
    result: Learning | None = None
    done = 0
    while True:
        world = next(parts)
        n_rounds = min(world.n_queries, rounds - done)
        result = learn(
            ranker, world, measure=measure, reveal=reveal, rounds=n_rounds, seed=seed,
            n_points=n_points, progress=progress, start=result, horizon=rounds,
        )  # fmt: skip
        done += n_rounds
        if done == rounds:
            return _at(checkpoints_of(rounds, n_points), result)


def _at(points: IntArray, result: Learning) -> Learning:
    """Return only these points of a curve: every call of ``learn`` has added its last round."""
    kept = np.isin(result.rounds, points)
    return replace(
        result, rounds=result.rounds[kept], shown=result.shown[kept], greedy=result.greedy[kept]
    )
