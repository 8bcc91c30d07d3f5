"""Follow the leader: no noise at all."""

from typing import Any, ClassVar, NamedTuple, Unpack

import numpy as np

from keyhole.contracts.arrays import PerItem, ranker_kernel
from keyhole.contracts.rows import DASHED, Look
from keyhole.kernels.compiled import kernel
from keyhole.kernels.sorting import sort_descending
from keyhole.rankers.fixed.base import FixedListRanker, GameFacts
from keyhole.rankers.fixed.counting import (
    CountingWork,
    Gains,
    begin_ties,
    gain_in_unit,
    gains_of,
)


class LeaderParams(NamedTuple):
    """How relevance becomes a gain."""

    gains: Gains


class LeaderState(NamedTuple):
    """Total gain of each item."""

    scores: PerItem


@kernel
def _rank(
    params: Any, state: Any, draw: Any, features: Any, out: Any, work: Any
) -> tuple[bool, float]:
    begin_ties(draw, work.keys)
    for item in range(out.shape[0]):
        work.keys[item] += state.scores[item]
    sort_descending(work.keys, out, work.sort)
    return False, np.nan


@kernel
def _greedy(params: Any, state: Any, features: Any, out: Any, work: Any) -> None:
    sort_descending(state.scores, out, work.sort)


@kernel
def _update(params: Any, state: Any, seen: Any, work: Any) -> None:
    for position in range(seen.ranking.shape[0]):
        gain = gain_in_unit(params.gains, seen.values[position])
        state.scores[seen.ranking[position]] += gain


class Leader(FixedListRanker):
    """Follow the leader: sort items by their total gains, equal ones at random.

    Parameters
    ----------
    n_items, game
        See :class:`~keyhole.rankers.fixed.base.GameFacts`; horizon and ``k`` are of no concern. The
        measure must have gains per item.

    Notes
    -----
    What full information is worth where the crowd is kind. A crowd that knows it makes it lose in
    every round: when the item that leads by one is liked least, the order is always a round late.

    Examples
    --------
    >>> ranker = Leader(3)
    >>> ranker.update(ranker.rank(), [0, 0, 0])
    >>> sorted(ranker.rank().ranking.tolist())
    [0, 1, 2]
    """

    label = "Follow the leader"
    look = Look("#7B5EA7", DASHED, "X")
    needs_gain_per_item: ClassVar[bool] = True
    by_item: ClassVar[tuple[str, ...] | None] = ("scores",)
    kernel = ranker_kernel(LeaderState, CountingWork, _rank, _update, _greedy)

    def __init__(self, n_items: int, **game: Unpack[GameFacts]) -> None:
        super().__init__(n_items, **game)
        self.params = LeaderParams(gains_of(self))

    @property
    def depth(self) -> int:
        return self.n_items
