"""The linear family (M11): weights by position times gains by item.

Its kernels serve every measure of the form (f(ranking) . g(relevance) + offset) / norm.
"""

from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from keyhole.base.errors import FloatArray, InvalidInput, check_choice
from keyhole.contracts.measures import Measure, MeasureKernel
from keyhole.kernels.compiled import kernel
from keyhole.measures.exact import Items, Sum, rational

_LARGEST_SHIFT = 52


@kernel
def copy_gains(params: Any, relevance: Any, gains: Any, work: Any) -> tuple[float, float]:
    """Use relevance itself as the gain."""
    for item in range(relevance.shape[0]):
        gains[item] = relevance[item]
    return 0.0, 1.0


@kernel
def fill_exponential(relevance: Any, gains: Any) -> bool:
    """Fill ``gains`` with 2^r - 1, exactly for whole grades; return whether all are."""
    whole = True
    for item in range(relevance.shape[0]):
        grade = relevance[item]
        whole = whole & (grade == np.floor(grade)) & (grade <= _LARGEST_SHIFT)
    if whole:  # a shift is exact, and vectorises
        for item in range(relevance.shape[0]):
            gains[item] = float((np.int64(1) << np.int64(relevance[item])) - 1)
    else:
        for item in range(relevance.shape[0]):
            gains[item] = 2.0 ** relevance[item] - 1.0
    return whole


@kernel
def exponential_gains(params: Any, relevance: Any, gains: Any, work: Any) -> tuple[float, float]:
    """Use 2^r - 1 as the gain."""
    fill_exponential(relevance, gains)
    return 0.0, 1.0


@kernel
def weighted_sum(params: Any, gains: Any, ranking: Any) -> float:
    """Return the weights by position times the gains in the order of the ranking."""
    # Four lanes, added up in a fixed order: a single one would wait for itself.
    weights, depth = params.weights, min(params.depth, ranking.shape[0])
    lane_0 = lane_1 = lane_2 = lane_3 = 0.0
    n_whole = depth - depth % 4
    for position in range(0, n_whole, 4):
        lane_0 += weights[position] * gains[ranking[position]]
        lane_1 += weights[position + 1] * gains[ranking[position + 1]]
        lane_2 += weights[position + 2] * gains[ranking[position + 2]]
        lane_3 += weights[position + 3] * gains[ranking[position + 3]]
    for position in range(n_whole, depth):
        lane_0 += weights[position] * gains[ranking[position]]
    return (lane_0 + lane_1) + (lane_2 + lane_3)


@kernel
def linear_score(params: Any, gains: Any, offset: float, norm: float, ranking: Any) -> float:
    """Return (weights . gains in the order of the ranking + offset) / norm."""
    return (weighted_sum(params, gains, ranking) + offset) / norm


def position_numbers(n_items: int) -> FloatArray:
    """Return 1, 2, ..., n_items."""
    return np.arange(1, n_items + 1, dtype=np.float64)


def log_discounts(n_items: int) -> FloatArray:
    """Return D(p) = 1 / log2(1 + p) for p = 1, ..., n_items."""
    return 1.0 / np.log2(position_numbers(n_items) + 1.0)


_GAINS = {"identity": copy_gains, "exponential": exponential_gains}


class LinearMeasure(Measure):
    """Any measure f(ranking) . g(relevance) with weights monotone in the position.

    Parameters
    ----------
    weights
        Weight of each position, never increasing (a gain) or never decreasing (a loss).
    gain
        ``identity`` (r) or ``exponential`` (2^r - 1).

    Examples
    --------
    >>> str(LinearMeasure([3, 1, 0], gain="identity"))
    'Linear (gain; item identity; position 3, 1, 0; no cutoff)'
    >>> LinearMeasure([3, 1, 0])([0, 0, 1], [1, 2, 0])
    1.0
    """

    name: ClassVar[str] = "Linear"
    gain_per_item: ClassVar[bool] = True

    def __init__(self, weights: ArrayLike, *, gain: str = "identity") -> None:
        super().__init__()
        try:
            self._weights = np.array(weights, dtype=np.float64)
            steps = np.diff(self._weights)
            usable = self._weights.ndim == 1 and bool(np.isfinite(self._weights).all())
        except (TypeError, ValueError):
            usable = False
        if not usable or not self._weights.size or bool((steps < 0).any() and (steps > 0).any()):
            raise InvalidInput(
                "`weights` of LinearMeasure must be finite numbers that never rise or never fall."
            )
        check_choice(gain, "`gain` of LinearMeasure", _GAINS)
        # An instance of this class is a measure of its own, so these vary with it.
        self.gain = gain  # type: ignore[misc]
        self.kernel = MeasureKernel(_GAINS[gain], linear_score)
        self.exponential_gain = gain == "exponential"  # type: ignore[misc]
        self.is_loss = bool((steps > 0).any())  # type: ignore[misc]
        self.discount = ", ".join(f"{w:g}" for w in self._weights)  # type: ignore[misc]

    def weights(self, n_items: int) -> FloatArray:
        if n_items != len(self._weights):
            raise InvalidInput(
                f"relevance must have {len(self._weights)} items, one per weight, got {n_items}."
            )
        return self._weights

    def is_linear(self, binary: bool) -> bool:
        return True

    def exact(self, relevance: Items, ranking: Items) -> Sum:
        weights = [Fraction(float(w)) for w in self.weights(len(relevance))]
        gains = [2**g - 1 if self.exponential_gain else g for g in relevance]
        return rational(sum((weights[p] * gains[i] for p, i in enumerate(ranking)), Fraction(0)))
