"""A ranker of query-document lists that does not learn."""

from typing import Any, NamedTuple

import numpy as np

from keyhole.contracts.arrays import ranker_kernel
from keyhole.contracts.rows import DOTTED, GREY, Look
from keyhole.kernels.compiled import kernel
from keyhole.kernels.draw import uniforms
from keyhole.kernels.sorting import sort_descending
from keyhole.rankers.fixed.base import NoState
from keyhole.rankers.lists.base import ContextualRanker, LinearWork

_DOCUMENTS = 1


class RandomListsParams(NamedTuple):
    """The number of features, which are not looked at."""

    n_features: int


def _init(params: Any, n_items: int, n_features: int) -> NoState:
    return NoState(np.zeros(0))


@kernel
def _rank(
    params: Any, state: Any, draw: Any, features: Any, out: Any, work: Any
) -> tuple[bool, float]:
    keys = work.keys[: out.shape[0]]
    uniforms(draw, _DOCUMENTS, keys)
    sort_descending(keys, out, work.surrogate.sort)
    return False, np.nan


@kernel
def _ignore(params: Any, state: Any, seen: Any, work: Any) -> None:
    pass


class RandomLists(ContextualRanker):
    """Every list in random order: what any learner must beat.

    Examples
    --------
    >>> RandomLists(5, 20).depth
    0
    """

    label = "Random order"
    look = Look(GREY, DOTTED, "X")
    kernel = ranker_kernel(_init, LinearWork, _rank, _ignore)

    def __init__(self, n_features: int, n_items: int, *, seed: int = 0, run: int = 0) -> None:
        super().__init__(n_features, n_items, seed=seed, run=run)
        self.params = RandomListsParams(self.n_features)

    @property
    def depth(self) -> int:
        return 0
