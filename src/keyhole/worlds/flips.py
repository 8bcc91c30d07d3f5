"""A true relevance vector whose entries flip independently (experiment E2)."""

from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from keyhole.base.errors import (
    FloatArray,
    IntArray,
    InvalidInput,
    check_integer,
    check_number,
    check_relevance,
    shown,
)
from keyhole.base.limits import check_length
from keyhole.contracts.worlds import World, WorldKernel
from keyhole.kernels.compiled import kernel
from keyhole.kernels.draw import uniforms

_FLIPS = 0


class FlipsParams(NamedTuple):
    """The true vector and the probability that an entry flips."""

    truth: Any
    flip: float


@kernel
def _relevance(params: Any, draw: Any, out: Any) -> None:
    uniforms(draw, _FLIPS, out)
    for item in range(out.shape[0]):
        out[item] = abs(params.truth[item] - (1.0 if out[item] < params.flip else 0.0))


def last_relevant(n_items: int, n_relevant: int) -> FloatArray:
    """Return a vector whose last entries are 1.

    The relevant items come last so that ties, which go to the lowest index, never
    flatter a ranker.
    """
    n_relevant = check_integer(
        n_relevant, "`n_relevant`", at_least=0, at_most=n_items, bound="n_items="
    )
    truth = np.zeros(n_items)
    truth[n_items - n_relevant :] = 1.0
    return truth


def a_quarter(n_items: int) -> int:
    """Return how many items are relevant where nobody says: a quarter, but at least one."""
    return max(1, n_items // 4)


def binary_truth(truth: ArrayLike | None, n_items: int, n_relevant: int) -> FloatArray:
    """Return the given binary vector, or one whose last ``n_relevant`` items are relevant."""
    if truth is None:
        return last_relevant(n_items, n_relevant)
    given = check_relevance(truth, "`truth`")
    if given.shape != (n_items,) or not bool(np.isin(given, (0.0, 1.0)).all()):
        raise InvalidInput(f"`truth` must be {n_items} zeros and ones, got {shown(truth)}.")
    return given


class Flips(World):
    """Users who share one taste, each of whose opinions is reversed with some probability.

    Parameters
    ----------
    n_items, n_relevant
        Size of the list and how many items (the last ones) are truly relevant; by default a
        quarter of them.
    flip
        Probability that an entry is flipped, independently for each item and round.
    truth
        The true binary vector, in place of ``n_relevant``.

    Notes
    -----
    Experiment of section 3.2.10 of [T16], which leaves the probability open (R40).

    Examples
    --------
    >>> Flips(4, n_relevant=1, flip=0.0).relevance(round=0).tolist()
    [0.0, 0.0, 0.0, 1.0]
    """

    kernel: ClassVar[WorldKernel] = WorldKernel(_relevance)
    max_grade = 1.0
    is_binary = True

    def __init__(
        self,
        n_items: int = 20,
        *,
        n_relevant: int | None = None,
        flip: float = 0.1,
        truth: ArrayLike | None = None,
    ) -> None:
        self.n_items = check_length(n_items, "`n_items` of Flips")
        self.flip = check_number(flip, "`flip` of Flips", at_least=0.0, at_most=1.0)
        n_relevant = a_quarter(self.n_items) if n_relevant is None else n_relevant
        self.truth = binary_truth(truth, self.n_items, n_relevant)
        self.params = FlipsParams(self.truth, self.flip)

    def relabelled(self, labels: IntArray) -> Self:
        return type(self)(self.n_items, flip=self.flip, truth=self.truth[labels])
