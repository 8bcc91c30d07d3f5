"""Where weights may lie, and the nearest points there."""

import math
from dataclasses import dataclass

import numpy as np

from keyhole.base.errors import FloatArray, check_choice, check_number


@dataclass(frozen=True)
class Ball:
    """Where weights may lie: an l1 or l2 ball, or anywhere if the radius is infinite.

    Examples
    --------
    >>> Ball("l1", 1.0).project(np.array([2.0, 1.0])).tolist()
    [1.0, 0.0]
    """

    norm: str = "l2"
    radius: float = math.inf

    def __post_init__(self) -> None:
        check_choice(self.norm, "norm of a ball", ("l1", "l2"))
        if self.radius != math.inf:
            check_number(self.radius, "`radius`", above=0.0)

    def project(self, weights: FloatArray) -> FloatArray:
        """Return the nearest weights inside."""
        if self.radius == math.inf:
            return weights
        if self.norm == "l2":
            length = math.sqrt(float(weights @ weights))
            return weights if length <= self.radius else weights * (self.radius / length)
        sizes = np.abs(weights)
        if sizes.sum() <= self.radius:
            return weights
        return np.sign(weights) * onto_simplex(sizes, self.radius)

    def holds(self, weights: FloatArray) -> bool:
        """Return whether some weights are inside."""
        return self.project(weights) is weights

    def lowest(self, slope: FloatArray, curvature: float) -> float:
        """Return the least of slope . w + curvature / 2 |w|^2 inside; -inf if there is none."""
        if curvature > 0.0:
            weights = self.project(-slope / curvature)
            return float(slope @ weights + 0.5 * curvature * (weights @ weights))
        dual = np.abs(slope).max() if self.norm == "l1" else math.sqrt(float(slope @ slope))
        return -self.radius * float(dual) if dual > 0.0 else 0.0


class Simplex:
    """Shares of at least 0 that add up to 1."""

    def project(self, point: FloatArray) -> FloatArray:
        return onto_simplex(point, 1.0)


def onto_simplex(point: FloatArray, total: float) -> FloatArray:
    """Return the nearest point without negative entries that adds up to a total."""
    falling = np.sort(point)[::-1]
    over = (np.cumsum(falling) - total) / np.arange(1, len(point) + 1)
    left = np.flatnonzero(falling > over)
    cut = over[left[-1] if left.size else 0]  # beside huge entries the total is lost in rounding
    return np.maximum(point - cut, 0.0)
