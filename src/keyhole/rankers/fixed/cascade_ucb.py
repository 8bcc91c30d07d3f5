"""Upper confidence bounds, item by item."""

import math
from collections.abc import Callable
from typing import Any, Unpack

import numpy as np

from keyhole.base.errors import check_choice
from keyhole.contracts.rows import DASH_DOT, Look
from keyhole.kernels.compiled import assemble, kernel
from keyhole.kernels.sorting import sort_descending
from keyhole.rankers.fixed.base import GameFacts
from keyhole.rankers.fixed.counting import (
    CountingParams,
    CountingRanker,
    begin_ties,
    counting_kernel,
)

_UNSEEN = 100.0
_WIDTH = 1.5
_HALVINGS = 20


@kernel
def _ucb1(mean: float, count: float, time: float) -> float:
    """Return the mean plus sqrt(1.5 ln t / n)."""
    return mean + math.sqrt(_WIDTH * math.log(time) / count)


@kernel
def _kl_ucb(mean: float, count: float, time: float) -> float:
    """Return the largest q with n kl(mean, q) <= ln t + 3 ln ln t, to a millionth."""
    log_time = math.log(time)
    budget = (log_time + 3.0 * math.log(max(log_time, 1.0))) / count
    entropy = mean * math.log(max(mean, 1e-300))
    entropy += (1.0 - mean) * math.log(max(1.0 - mean, 1e-300))
    low, high = mean, 1.0
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        distance = entropy - mean * math.log(max(middle, 1e-300))
        distance -= (1.0 - mean) * math.log(max(1.0 - middle, 1e-300))
        if distance <= budget:
            low = middle
        else:
            high = middle
    return low


BOUNDS: dict[str, Callable[..., float]] = {"kl": _kl_ucb, "ucb1": _ucb1}


def _rank_by(bound: Any) -> Callable[..., tuple[bool, float]]:
    def rank(
        params: Any, state: Any, draw: Any, features: Any, out: Any, work: Any
    ) -> tuple[bool, float]:
        begin_ties(draw, work.keys)
        for item in range(out.shape[0]):
            count = state.counts[item]
            if count == 0.0:
                work.keys[item] += _UNSEEN
            else:
                mean = min(state.sums[item] / count, 1.0)
                work.keys[item] += bound(mean, count, draw.round + 1.0)
        sort_descending(work.keys, out, work.sort)
        return True, np.nan

    return rank


class CascadeUCB(CountingRanker):
    """Sort items by upper confidence bounds of their means: CascadeUCB1 and CascadeKL-UCB.

    Parameters
    ----------
    n_items, game
        See :class:`~keyhole.rankers.fixed.base.GameFacts`; the horizon is of no concern. The
        measure must have gains per item.
    bound
        ``kl`` (default): the largest q with n kl(mean, q) <= ln t + 3 ln ln t. ``ucb1``: the mean
        plus sqrt(1.5 ln t / n).

    Notes
    -----
    Kveton, Szepesvari, Wen & Ashkan (2015), "Cascading Bandits: Learning to Rank in the Cascade
    Model". There a user looks from the top until the first click, which tells the learner of all
    items down to that one; items that are better at any of the first K positions are all that
    matters, and regret is of order log T by the gaps between items in and out of the best K.

    What differs: no user stops. All of the first k are seen in every round, never less, and with
    their relevance instead of clicks. The others are ranked too, by the same bounds, where the
    paper shows K items only. The guarantee is therefore about which items are among the first k.
    Measures that look deeper, or at the order within the first k, have none: an item that is
    rarely seen has a large bound whatever it is worth.

    Examples
    --------
    >>> ranker = CascadeUCB(3)
    >>> seen = []
    >>> for _ in range(3):
    ...     impression = ranker.rank()
    ...     seen.append(impression.items[0])
    ...     ranker.update(impression, 1)
    >>> sorted(seen)
    [0, 1, 2]
    """

    label = "CascadeUCB"
    look = Look("#332288", DASH_DOT, ">")

    def __init__(self, n_items: int, *, bound: str = "kl", **game: Unpack[GameFacts]) -> None:
        super().__init__(n_items, **game)
        chosen = BOUNDS[check_choice(bound, "`bound` of CascadeUCB", BOUNDS)]
        rank = assemble(_rank_by, chosen, inline=True)
        self.kernel = counting_kernel(rank)
        self.params = CountingParams(self.k, self.gains)
