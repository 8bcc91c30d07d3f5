"""Means, and a random item lifted now and then."""

from typing import Any, NamedTuple, Unpack

import numpy as np

from keyhole.base.errors import FloatArray, check_number
from keyhole.contracts.lists import Impression
from keyhole.contracts.rows import SOLID, Look
from keyhole.kernels.compiled import kernel
from keyhole.kernels.draw import scalar
from keyhole.rankers.fixed.base import GameFacts
from keyhole.rankers.fixed.counting import (
    CountingRanker,
    Gains,
    counting_kernel,
    sort_by_means,
)
from keyhole.rankers.fixed.promote import lift, place_of_any

_COIN, _ITEM = 1, 2


class EpsilonGreedyParams(NamedTuple):
    """How many positions are seen, what relevance is worth, and how often to explore."""

    k: int
    gains: Gains
    scale: float


@kernel
def exploration(scale: float, round: int) -> float:
    """Return how often a round lifts an item."""
    return min(1.0, scale * (round + 1.0) ** (-1.0 / 3.0))


@kernel
def _rank(
    params: Any, state: Any, draw: Any, features: Any, out: Any, work: Any
) -> tuple[bool, float]:
    n_items, k = out.shape[0], params.k
    sort_by_means(state, draw, out, work)
    epsilon = exploration(params.scale, draw.round)
    if scalar(draw, draw.round, _COIN, 0) < epsilon:
        place = place_of_any(draw, _ITEM, out)
        if place >= k:
            lift(out, place, k)
            return True, epsilon / n_items
    return False, 1.0 - epsilon * (1.0 - k / n_items)


class EpsilonGreedyRanker(CountingRanker):
    """Sort items by their means; in few rounds lift a random one to where it is seen.

    Parameters
    ----------
    n_items, game
        See :class:`~keyhole.rankers.fixed.base.GameFacts`; the horizon is of no concern. The
        measure must have gains per item.
    scale
        Round t lifts a uniformly random item to position k with probability
        min(1, scale * t^(-1/3)).

    Notes
    -----
    The epsilon-greedy policy of Auer, Cesa-Bianchi & Fischer (2002) with the rate of Langford &
    Zhang (2008), which needs no gap: for crowds that do not change, every item is seen of order
    T^(2/3) / m times, and expected regret is of order T^(2/3) sqrt(log T) for measures with gains
    per item. Crowds that change can make it linear: means never forget.

    What differs: arms are items, of which k are seen in every round; a lifted item leaves the
    others in their order, so that only those between lose a position. Means are those of a
    Beta(1, 1) posterior, which for an item that was never seen is one half. The propensity is that
    of the set of the first k, given how ties between means fall.

    Examples
    --------
    >>> ranker = EpsilonGreedyRanker(5)
    >>> ranker.update(ranker.rank(), 1)
    >>> ranker.state.counts.sum(), ranker.state.sums.sum()
    (np.float64(1.0), np.float64(1.0))
    """

    label = "ε-greedy"
    look = Look("#56B4E9", SOLID, "p")
    kernel = counting_kernel(_rank)

    def __init__(self, n_items: int, *, scale: float = 1.0, **game: Unpack[GameFacts]) -> None:
        super().__init__(n_items, **game)
        self.params = EpsilonGreedyParams(
            self.k, self.gains, check_number(scale, "`scale` of EpsilonGreedy", above=0.0)
        )

    def chances(self, impression: Impression) -> FloatArray | None:
        """Return the propensity where one item is seen: that of a set says less than its items'."""
        return np.full(1, impression.propensity) if self.k == 1 else None

    def least_chance(self, impression: Impression) -> float | None:
        return exploration(self.params.scale, impression.round) / self.n_items
