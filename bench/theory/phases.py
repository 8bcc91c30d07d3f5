"""A crowd that goes through phases of any lengths and tastes: what an adversary chooses among."""

from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from keyhole.base.errors import IntArray, InvalidInput, check_integer, check_relevance
from keyhole.contracts.worlds import World, WorldKernel
from keyhole.kernels.compiled import kernel
from keyhole.kernels.draw import uniform

_OPINION = 0


class PhasesParams(NamedTuple):
    """Rounds after which each phase of a cycle is over, and how likely items are in each."""

    ends: Any
    chances: Any


@kernel
def _relevance(params: Any, draw: Any, out: Any) -> None:
    ends = params.ends
    within, phase = draw.round % ends[ends.shape[0] - 1], 0
    while within >= ends[phase]:
        phase += 1
    for item in range(out.shape[0]):
        out[item] = 1.0 if uniform(draw, _OPINION, item) < params.chances[phase, item] else 0.0


class Phases(World):
    """Phases that follow each other in a cycle; in each, items are relevant independently.

    Parameters
    ----------
    chances
        How likely each item (column) is to be relevant in each phase (row).
    lengths
        Rounds of each phase.

    Examples
    --------
    >>> crowd = Phases([[1, 0], [0, 1]], lengths=[2, 1])
    >>> [int(crowd.relevance(round=t)[0]) for t in range(6)]
    [1, 1, 0, 1, 1, 0]
    """

    kernel: ClassVar[WorldKernel] = WorldKernel(_relevance)
    max_grade = 1.0
    is_binary = True

    def __init__(self, chances: ArrayLike, *, lengths: ArrayLike = (1,)) -> None:
        table = check_relevance(chances, "`chances` of Phases")
        table = table.reshape(1, -1) if table.ndim == 1 else table
        if table.ndim != 2 or 0 in table.shape or table.max() > 1.0:
            raise InvalidInput("`chances` of Phases must be a table of numbers from 0 to 1.")
        whole = [check_integer(n, "`lengths` of Phases", at_least=1) for n in np.ravel(lengths)]
        if len(whole) != len(table):
            raise InvalidInput(
                f"`lengths` of Phases must be {len(table)}, one per phase, got {len(whole)}."
            )
        self.n_items = table.shape[1]
        self.lengths = tuple(whole)
        self.params = PhasesParams(np.cumsum(whole), np.ascontiguousarray(table))

    def relabelled(self, labels: IntArray) -> Self:
        return type(self)(self.params.chances[:, labels], lengths=self.lengths)
