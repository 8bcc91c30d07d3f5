"""Discrete choice: which item, or which set of items, the user picked."""

from typing import Any, NamedTuple

from keyhole.base.errors import check_choice
from keyhole.contracts.reveals import Reveal, RevealKernel
from keyhole.kernels.compiled import kernel
from keyhole.kernels.draw import uniform

_TIES = 0


class ChoiceParams(NamedTuple):
    """Whether one item is named, or all that are relevant."""

    single: bool


@kernel
def _reveal(params: Any, draw: Any, relevance: Any, ranking: Any, values: Any) -> None:
    n_items = ranking.shape[0]
    if not params.single:
        for position in range(n_items):
            values[position] = 1.0 if relevance[ranking[position]] > 0.0 else 0.0
        return
    chosen = -1
    best = tie = 0.0
    for position in range(n_items):
        values[position] = 0.0
        item = ranking[position]
        if relevance[item] > 0.0 and relevance[item] >= best:
            number = uniform(draw, _TIES, item)
            if relevance[item] > best or number > tie:
                best, tie, chosen = relevance[item], number, position
    if chosen >= 0:
        values[chosen] = 1.0


class Choice(Reveal):
    """1 for what the user chose, 0 for everything else.

    Parameters
    ----------
    which
        ``set``: every item of positive relevance is chosen. ``single``: the most
        relevant item is, ties at random. Nothing is chosen if nothing is relevant.

    Notes
    -----
    The feedback of [Ai]. An item that is not chosen is known not to be: as far as
    choices go this is full information.

    Examples
    --------
    >>> Choice("single")([0, 1, 2], [2, 0, 1]).values.tolist()
    [1.0, 0.0, 0.0]
    """

    kernel = RevealKernel(_reveal)

    def __init__(self, which: str = "set") -> None:
        self.which = check_choice(which, "`which` of Choice", ("single", "set"))
        self.params = ChoiceParams(which == "single")

    def depth(self, n_items: int) -> int:
        return n_items

    def __str__(self) -> str:
        return f"choice({self.which})"
