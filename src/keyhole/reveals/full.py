"""Full information: every relevance is shown."""

from typing import Any, NamedTuple

from keyhole.contracts.reveals import Reveal, RevealKernel
from keyhole.kernels.compiled import kernel


class FullParams(NamedTuple):
    """Nothing to set, but compiled code wants a type of its own."""

    unused: int = 0


@kernel
def _reveal(params: Any, draw: Any, relevance: Any, ranking: Any, values: Any) -> None:
    for position in range(ranking.shape[0]):
        values[position] = relevance[ranking[position]]


class Full(Reveal):
    """The relevance of every item.

    Examples
    --------
    >>> Full()([0, 1, 2], [2, 0, 1]).values.tolist()
    [2.0, 0.0, 1.0]
    """

    kernel = RevealKernel(_reveal)
    params = FullParams()

    def depth(self, n_items: int) -> int:
        return n_items

    def __str__(self) -> str:
        return "full"
