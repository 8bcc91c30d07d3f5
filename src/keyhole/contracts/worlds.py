"""What a world must be."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Any, ClassVar, NamedTuple

import numpy as np

from keyhole.base.errors import (
    FloatArray,
    IntArray,
    check_integer,
    check_round,
    check_seed,
)
from keyhole.contracts.lists import Query, no_features
from keyhole.contracts.registry import Configured
from keyhole.kernels.compiled import kernel
from keyhole.kernels.draw import WORLD_STREAM, Draw, stream_of


@kernel
def whole_matrix(params: Any, draw: Any, matrix: Any) -> tuple[int, int]:
    """Ask for the same list every round."""
    return 0, matrix.shape[0]


@kernel
def nothing_upcoming(params: Any, draw: Any, matrix: Any) -> tuple[int, int]:
    """Name no list."""
    return 0, 0


class WorldKernel(NamedTuple):
    """The compiled half of a world.

    ``relevance(params, draw, out)``, drawn item by item; and where lists change with the round,
    ``query(params, draw, matrix) -> (first, end)``: the rows of the matrix that are the
    features of the round's list (which it may write there). ``upcoming``, of the same form, names
    a list that will come without writing anything, so that it can be fetched early.
    """

    relevance: Callable[..., None]
    query: Callable[..., tuple[int, int]] = whole_matrix
    upcoming: Callable[..., tuple[int, int]] = nothing_upcoming


class World(Configured, ABC):
    """Where relevance comes from."""

    kernel: ClassVar[WorldKernel]
    params: Any
    n_items: int
    """Length of the list, or of the longest one."""
    n_features: int = 0
    max_grade: float
    """The largest relevance that can occur."""
    is_binary: bool
    """Whether every relevance is 0 or 1."""
    length: int | None = None
    """The number of rounds that exist, or None if there is no end."""
    item_names: tuple[str, ...] | None = None

    def matrix(self) -> FloatArray:
        """Return the features that lists are rows of; a world that draws them, a new buffer."""
        return no_features(self.n_items)

    def query(self, round: int, *, seed: int = 0, run: int = 0) -> Query:
        """Return the list of one round, with its features if it has any."""
        matrix = self.matrix()
        first, end = self.kernel.query(self.params, self._draw(round, seed, run), matrix)
        features = matrix[first:end]
        return Query(end - first, features if features.shape[1] else None, self.item_names)

    def parts(self, first: int, end: int) -> Iterator[tuple["World", int, int]]:
        """Give worlds that hold the rounds ``first`` to ``end``, and which of them each holds.

        That is the world itself, unless there is more of it than fits into memory.
        """
        yield self, first, end

    def _draw(self, round: int, seed: int, run: int) -> Draw:
        if self.length is not None:
            check_integer(round, "`round`", at_least=0, at_most=self.length - 1)
        return Draw(check_seed(seed), stream_of(WORLD_STREAM, run), check_round(round))

    def relevance(self, round: int, *, seed: int = 0, run: int = 0) -> FloatArray:
        """Return the relevance by item in one round."""
        out = np.empty(self.query(round, seed=seed, run=run).n_items)
        self.kernel.relevance(self.params, self._draw(round, seed, run), out)
        return out

    @abstractmethod
    def relabelled(self, labels: IntArray) -> "World":
        """Return the world in which item ``i`` is the old item ``labels[i]``."""
