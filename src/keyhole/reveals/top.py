"""Top-k feedback: the keyhole."""

from typing import Any, NamedTuple

import numpy as np

from keyhole.base.errors import check_integer
from keyhole.contracts.reveals import Reveal, RevealKernel
from keyhole.kernels.compiled import kernel


class TopParams(NamedTuple):
    """The number of positions shown."""

    k: int


@kernel
def _reveal(params: Any, draw: Any, relevance: Any, ranking: Any, values: Any) -> None:
    k = min(params.k, ranking.shape[0])
    for position in range(k):
        values[position] = relevance[ranking[position]]
    for position in range(k, ranking.shape[0]):
        values[position] = np.nan


class Top(Reveal):
    """The relevance of the first k items of the ranking, and nothing else.

    A list shorter than k is seen whole (R32); a game in which all are is refused.

    Examples
    --------
    >>> Top(1)([0, 1, 2], [2, 0, 1]).values.tolist()
    [2.0, nan, nan]
    """

    kernel = RevealKernel(_reveal)

    def __init__(self, k: int = 1) -> None:
        self.k = check_integer(k, "`k` of Top", at_least=1)
        self.params = TopParams(self.k)

    def depth(self, n_items: int) -> int:
        return check_integer(self.k, "`k` of Top", at_least=1, at_most=n_items, bound="n_items=")

    def __str__(self) -> str:
        return f"top({self.k})"
