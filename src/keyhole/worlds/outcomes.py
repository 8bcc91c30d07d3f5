"""Relevance vectors drawn from a finite distribution; the hopeless pairs X3 and X4."""

import itertools
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from keyhole.base.errors import (
    FloatArray,
    IntArray,
    InvalidInput,
    check_choice,
    check_integer,
    check_relevance,
)
from keyhole.contracts.worlds import World, WorldKernel
from keyhole.kernels.compiled import kernel
from keyhole.kernels.draw import scalar

_OUTCOME = 0


class OutcomesParams(NamedTuple):
    """The vectors and their cumulative probabilities."""

    outcomes: Any
    cumulative: Any


@kernel
def _relevance(params: Any, draw: Any, out: Any) -> None:
    number = scalar(draw, draw.round, _OUTCOME, 0)
    low, high = 0, params.cumulative.shape[0] - 1
    while low < high:
        middle = (low + high) // 2
        if number < params.cumulative[middle]:
            high = middle
        else:
            low = middle + 1
    for item in range(out.shape[0]):
        out[item] = params.outcomes[low, item]


class Outcomes(World):
    """Each round one of finitely many relevance vectors, independently.

    Examples
    --------
    >>> world = Outcomes([[0, 1], [1, 0]], [1.0, 0.0])
    >>> world.relevance(round=7).tolist()
    [0.0, 1.0]
    """

    kernel: ClassVar[WorldKernel] = WorldKernel(_relevance)

    def __init__(self, outcomes: ArrayLike, probabilities: ArrayLike) -> None:
        self.outcomes = check_relevance(outcomes, "`outcomes`")
        self.probabilities = check_relevance(probabilities, "`probabilities`")
        if self.outcomes.ndim != 2 or 0 in self.outcomes.shape:
            raise InvalidInput(
                f"`outcomes` must be rows of at least one number, got shape {self.outcomes.shape}."
            )
        if self.probabilities.shape != self.outcomes.shape[:1]:
            raise InvalidInput("`probabilities` must hold one number per row of `outcomes`.")
        if abs(float(self.probabilities.sum()) - 1.0) > 1e-9:
            raise InvalidInput(
                f"`probabilities` must sum to 1, got {float(self.probabilities.sum())}."
            )
        possible = self.probabilities > 0.0
        self.params = OutcomesParams(
            np.ascontiguousarray(self.outcomes[possible]), np.cumsum(self.probabilities[possible])
        )
        self.n_items = self.outcomes.shape[1]
        self.max_grade = float(self.outcomes.max())
        self.is_binary = bool(np.isin(self.outcomes, (0.0, 1.0)).all())

    def relabelled(self, labels: IntArray) -> "Outcomes":
        return Outcomes(self.outcomes[:, labels], self.probabilities)


def _three_items(first: dict[str, float], second: dict[str, float]) -> tuple[FloatArray, ...]:
    keys = sorted({*first, *second})
    outcomes = np.array([[float(digit) for digit in key] for key in keys])
    sides = [np.array([side.get(key, 0.0) for key in keys]) for side in (first, second)]
    return outcomes, *sides


def _cube(n_items: int) -> FloatArray:
    return np.array(list(itertools.product((0.0, 1.0), repeat=n_items)))


def _swap(n_items: int) -> tuple[FloatArray, ...]:
    """X4: v(r) = sign(r_a - r_b) (-1)^(sum of the others), a and b the first two items."""
    cube = _cube(n_items)
    witness = np.sign(cube[:, 0] - cube[:, 1]) * (-1.0) ** cube[:, 2:].sum(axis=1)
    return cube, (1.0 + witness) / len(cube), (1.0 - witness) / len(cube)


def _parity(n_items: int) -> tuple[FloatArray, ...]:
    """X4: vectors of even weight against vectors of odd weight."""
    cube = _cube(n_items)
    odd = cube.sum(axis=1) % 2.0
    return cube, (1.0 - odd) * 2.0 / len(cube), odd * 2.0 / len(cube)


def _table_b1(n_items: int) -> tuple[FloatArray, ...]:
    """X3: the pair of Table B.1 of [T16]."""
    return _three_items(
        {"110": 0.1, "101": 0.15, "011": 0.05, "100": 0.2, "010": 0.3, "001": 0.2},
        {"110": 0.3, "100": 0.15, "010": 0.15, "001": 0.4},
    )


def _worst_three(n_items: int) -> tuple[FloatArray, ...]:
    """X3: the pair that forces the largest linear regret of NDCG on three items."""
    common, other = 0.0882, 0.4559
    return _three_items(
        {"010": common, "011": other, "100": other}, {"010": common, "001": other, "110": other}
    )


_PAIRS: dict[str, Callable[[int], tuple[FloatArray, ...]]] = {
    "table-b1": _table_b1,
    "worst-three": _worst_three,
    "swap": _swap,
    "parity": _parity,
}
_THREE_ITEMS = ("table-b1", "worst-three")


class Hopeless(Outcomes):
    """One of two distributions that top-k feedback cannot tell apart.

    Parameters
    ----------
    n_items
        3 for the pairs ``table-b1`` and ``worst-three``, 2 to 12 for the others.
    pair
        ``table-b1`` and ``worst-three`` (X3, k=1) or ``swap`` (X4, k up to m-2), which are
        hopeless for NDCG; ``parity`` (X4, k up to m-1), which is so for surrogates calibrated
        to it.
    side
        Which of the two distributions the world draws from: 0 or 1.

    Notes
    -----
    What is revealed has the same law on both sides, so no ranker can suit its rankings to the
    side it is on, and its regret is linear on at least one.

    Examples
    --------
    >>> first, second = Hopeless(side=0), Hopeless(side=1)
    >>> (first.probabilities @ first.outcomes).round(9).tolist()
    [0.45, 0.45, 0.4]
    >>> (second.probabilities @ second.outcomes).round(9).tolist()
    [0.45, 0.45, 0.4]
    """

    def __init__(self, n_items: int = 3, *, pair: str = "table-b1", side: int = 0) -> None:
        check_choice(pair, "`pair` of Hopeless", _PAIRS)
        low, high = (3, 3) if pair in _THREE_ITEMS else (2, 12)
        n_items = check_integer(
            n_items, f"`n_items` of Hopeless, pair {pair!r},", at_least=low, at_most=high
        )
        side = check_integer(side, "`side` of Hopeless", at_least=0, at_most=1)
        outcomes, *sides = _PAIRS[pair](n_items)
        super().__init__(outcomes, sides[side])
