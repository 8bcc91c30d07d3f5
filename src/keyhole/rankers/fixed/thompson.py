"""Thompson sampling, item by item."""

from typing import Any, Unpack

import numpy as np

from keyhole.contracts.rows import DASHED, Look
from keyhole.kernels.compiled import kernel
from keyhole.kernels.laws import beta
from keyhole.kernels.sorting import sort_descending
from keyhole.rankers.fixed.base import GameFacts
from keyhole.rankers.fixed.counting import (
    CountingParams,
    CountingRanker,
    counting_kernel,
)

_SAMPLES = 1


@kernel
def _rank(
    params: Any, state: Any, draw: Any, features: Any, out: Any, work: Any
) -> tuple[bool, float]:
    for item in range(out.shape[0]):
        gained = state.sums[item]
        lost = max(state.counts[item] - gained, 0.0)  # rounding could make it less
        work.keys[item] = beta(draw, _SAMPLES, item, 1.0 + gained, 1.0 + lost)
    sort_descending(work.keys, out, work.sort)
    return True, np.nan


class Thompson(CountingRanker):
    """Sort items by a draw from the posterior of each: Thompson sampling.

    Parameters
    ----------
    n_items, game
        See :class:`~keyhole.rankers.fixed.base.GameFacts`; the horizon is of no concern. The
        measure must have gains per item.

    Notes
    -----
    Thompson (1933), with the Beta(1, 1) prior of Agrawal & Goyal (2012). Each item is an arm and
    its gain, divided by the largest one, a reward. An item that was seen n times with gains that
    sum up to S has the posterior Beta(1 + S, 1 + n - S). The list is sorted by one draw from each.

    What differs: a gain between 0 and 1 is counted as such, where Agrawal & Goyal flip a coin of
    that probability and count the outcome. One item is played there and seen; here all are
    ranked, and the first k are seen. Their bound, of order log T for the best item, is therefore
    about what is on top. Below position k an order that is wrong is noticed only where a draw
    lifts the item, so that for measures that look deeper there is no guarantee.

    Examples
    --------
    >>> ranker = Thompson(5, k=2)
    >>> impression = ranker.rank()
    >>> ranker.update(impression, [1, 0])
    >>> ranker.best()[0] == impression.items[0]
    True
    """

    label = "Thompson sampling"
    look = Look("#E69F00", DASHED, "*")
    kernel = counting_kernel(_rank)

    def __init__(self, n_items: int, **game: Unpack[GameFacts]) -> None:
        super().__init__(n_items, **game)
        self.params = CountingParams(self.k, self.gains)
