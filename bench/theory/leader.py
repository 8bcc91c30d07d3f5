"""One who never looks twice: what an adversary must find out."""

from typing import Any, NamedTuple

import numpy as np

from keyhole.contracts.rankers import Ranker, RankerKernel
from keyhole.kernels.compiled import kernel
from keyhole.kernels.sorting import SortWork, sort_descending, sort_work


class _Seen(NamedTuple):
    """How often each item was seen first, and its gains then."""

    n: Any
    total: Any


class _Scratch(NamedTuple):
    """Memory to sort in."""

    keys: Any
    sort: SortWork


def _init(params: Any, n_items: int, n_features: int) -> _Seen:
    return _Seen(np.zeros(n_items), np.zeros(n_items))


def _work(params: Any, n_items: int) -> _Scratch:
    return _Scratch(np.zeros(n_items), sort_work(n_items))


@kernel
def _rank(
    params: Any, state: Any, draw: Any, features: Any, out: Any, work: Any
) -> tuple[bool, float]:
    for item in range(out.shape[0]):
        work.keys[item] = state.total[item] / max(state.n[item], 1.0)
        if state.n[item] == 0.0:
            work.keys[item] = 1.0
    sort_descending(work.keys, out, work.sort)
    return False, 1.0


@kernel
def _update(params: Any, state: Any, seen: Any, work: Any) -> None:
    state.n[seen.ranking[0]] += 1.0
    state.total[seen.ranking[0]] += seen.values[0]


class Leader(Ranker):
    """A ranker that looks at each item once, and then follows the leader of what it has seen.

    It shows the item with the largest mean first and sees no other, so one bad first impression is
    never mended.

    Examples
    --------
    >>> ranker = Leader(2)
    >>> for relevance in (1, 0, 0, 0):
    ...     ranker.update(ranker.rank(), relevance)
    >>> ranker.rank().ranking.tolist()
    [0, 1]
    """

    max_grade = 1.0
    kernel = RankerKernel(_init, _work, _rank, _update)
    params = ()

    @property
    def depth(self) -> int:
        return 1
