"""Users who choose one item, or a few, by weight (bound B9)."""

import math
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from keyhole.base.errors import (
    FloatArray,
    IntArray,
    InvalidInput,
    check_array,
    check_integer,
    check_number,
)
from keyhole.base.limits import check_length
from keyhole.contracts.worlds import World, WorldKernel
from keyhole.kernels.compiled import kernel
from keyhole.kernels.draw import gumbels

_CHOICE = 0
_LARGEST_SPREAD = 600.0
"""Most by which the logarithms of weights differ: those of smaller numbers do not exist."""


class ChoicesParams(NamedTuple):
    """The logarithms of the weights and the number of items chosen."""

    log_weights: Any
    n_chosen: int


@kernel
def mark_largest(keys: Any, n_marked: int) -> None:
    """Replace the ``n_marked`` largest keys by 1 and the others by 0."""
    for _ in range(n_marked):
        best = 0
        for item in range(1, keys.shape[0]):
            if keys[item] > keys[best]:
                best = item
        keys[best] = -math.inf
    for item in range(keys.shape[0]):
        keys[item] = 1.0 if keys[item] == -math.inf else 0.0


@kernel
def _relevance(params: Any, draw: Any, out: Any) -> None:
    # The largest of log weight plus Gumbel noise is a draw in proportion to weight.
    gumbels(draw, _CHOICE, out)
    for item in range(out.shape[0]):
        out[item] += params.log_weights[item]
    mark_largest(out, params.n_chosen)


class Choices(World):
    """Users who pick ``n_chosen`` distinct items with probabilities in proportion to weights.

    Parameters
    ----------
    n_items, n_chosen
        Size of the list and how many items each user picks, one after another.
    weights
        A positive weight per item; by default item i weighs 1/(n_items - i)^skew, so
        ``skew=0`` gives uniform choices.

    Notes
    -----
    The single choice and k-choice settings of [Ai].

    Examples
    --------
    >>> Choices(5, n_chosen=2).relevance(round=0).sum()
    np.float64(2.0)
    """

    kernel: ClassVar[WorldKernel] = WorldKernel(_relevance)
    max_grade = 1.0
    is_binary = True

    def __init__(
        self,
        n_items: int = 10,
        *,
        n_chosen: int = 1,
        skew: float = 0.0,
        weights: ArrayLike | None = None,
    ) -> None:
        self.n_items = check_length(n_items, "`n_items` of Choices")
        self.n_chosen = check_integer(
            n_chosen, "`n_chosen` of Choices", at_least=1, at_most=self.n_items, bound="n_items="
        )
        self.weights = self._weights(weights, check_number(skew, "`skew` of Choices", at_least=0.0))
        self.params = ChoicesParams(np.log(self.weights), self.n_chosen)

    def _weights(self, weights: ArrayLike | None, skew: float) -> FloatArray:
        if weights is None:
            most = _LARGEST_SPREAD / math.log(max(self.n_items, 2))
            check_number(skew, "`skew` of Choices", at_least=0.0, at_most=most)
            return np.arange(self.n_items, 0, -1, dtype=np.float64) ** -skew
        given = check_array(weights, "`weights` of Choices", n_dims=1).copy()
        if given.shape != (self.n_items,) or not bool(((given > 0) & np.isfinite(given)).all()):
            raise InvalidInput(f"`weights` of Choices must be {self.n_items} positive numbers.")
        return given

    def relabelled(self, labels: IntArray) -> Self:
        return type(self)(self.n_items, n_chosen=self.n_chosen, weights=self.weights[labels])
