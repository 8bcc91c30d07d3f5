"""A proximal bundle method for convex functions that are not smooth (Kiwiel 1990).

The loss is at least the largest of its tangents so far. Each step goes to where that, plus a
squared distance, is least; a mean of tangents bounds the least loss from below.
"""

import math
from collections.abc import Callable

import numpy as np

from keyhole.base.errors import FloatArray
from keyhole.batch.balls import Ball, Simplex
from keyhole.batch.descent import MOST_INNER, Minimum, Objective, descend

_MOST_CUTS = 400
_MOST_CHANGES = 1000
_FARTHEST = 1e8


class _Model:
    """The largest of some tangents of a loss, and its proximal steps."""

    def __init__(self, ball: Ball, regularisation: float) -> None:
        self.ball, self.held = ball, regularisation
        self.slopes: list[FloatArray] = []
        self.offsets: list[float] = []
        self.shares = np.empty(0)

    def add(self, weights: FloatArray, value: float, gradient: FloatArray) -> None:
        if len(self.slopes) >= _MOST_CUTS:
            self._forget()
        self.slopes.append(gradient)
        self.offsets.append(value - float(gradient @ weights))
        self.shares = np.append(self.shares, 0.0 if self.shares.size else 1.0)

    def _forget(self) -> None:
        """Keep the tangents that the last step leant on, half of the room at most."""
        kept = np.sort(np.argsort(-self.shares, kind="stable")[: _MOST_CUTS // 2])
        self.slopes = [self.slopes[i] for i in kept]
        self.offsets = [self.offsets[i] for i in kept]
        self.shares = self.shares[kept] / self.shares[kept].sum()

    def step(self, centre: FloatArray, reach: float, accuracy: float) -> tuple[FloatArray, float]:
        """Return where the model plus |w - centre|^2 / (2 reach) is least, and a lower bound.

        The dual is a smooth concave function of shares of the tangents, and climbed like a smooth
        loss. For any shares, the shared tangent bounds the loss from below everywhere.
        """
        A, b = np.array(self.slopes), np.array(self.offsets)
        stiffness = self.held + 1.0 / reach

        def weights_at(shares: FloatArray) -> FloatArray:
            return self.ball.project((centre / reach - shares @ A) / stiffness)

        def dual(shares: FloatArray) -> tuple[float, FloatArray]:
            weights = weights_at(shares)
            heights, away = A @ weights + b, weights - centre
            near = 0.5 * self.held * float(weights @ weights) + 0.5 * float(away @ away) / reach
            return -float(shares @ heights) - near, -heights

        def gap(shares: FloatArray, slopes: FloatArray) -> float:
            return float(shares @ slopes - slopes.min())

        exact = _shares(A, A @ (centre / reach) / stiffness + b, stiffness, self.shares, accuracy)
        free = None if exact is None else (centre / reach - exact @ A) / stiffness
        if exact is not None and free is not None and self.ball.holds(free):
            self.shares = exact
        else:  # the ball bends the dual
            found = descend(dual, self.shares, Simplex(), gap, lambda _: accuracy, MOST_INNER)
            self.shares = found.weights
        below = float(b @ self.shares) + self.ball.lowest(self.shares @ A, self.held)
        return weights_at(self.shares), below

    def __call__(self, weights: FloatArray) -> float:
        return max(float(a @ weights) + b for a, b in zip(self.slopes, self.offsets, strict=True))


def _shares(
    slopes: FloatArray, heights: FloatArray, stiffness: float, begin: FloatArray, accuracy: float
) -> FloatArray | None:
    """Return the shares that make the dual largest where there is no ball, or None.

    An active-set method: on the tangents that have a share the dual is a quadratic, whose largest
    value is a linear system away; shares that would be negative are dropped on the way there, and
    the tangent that is highest there joins.
    """
    shares, used = begin.copy(), np.flatnonzero(begin > 0.0)
    for _ in range(_MOST_CHANGES):
        A, size = slopes[used], len(used)
        system = np.ones((size + 1, size + 1))
        system[:size, :size] = A @ A.T / stiffness
        scale = system[:size, :size].trace() / size
        system[range(size), range(size)] += 1e-13 * scale  # tangents may repeat
        system[size, size] = 0.0
        try:
            *target, level = np.linalg.solve(system, np.append(heights[used], 1.0))
        except np.linalg.LinAlgError:
            return None
        move = np.array(target) - shares[used]
        below = move < 0.0
        limits = shares[used][below] / -move[below]
        if limits.size and limits.min() < 1.0:
            shares[used] += limits.min() * move
            gone = used[below][limits == limits.min()]
            shares[gone] = 0.0
            used = used[~np.isin(used, gone)]
            continue
        shares[used] = target
        above = heights - slopes @ (shares @ slopes) / stiffness
        highest = int(above.argmax())
        if above[highest] - level <= accuracy or highest in used:
            return np.maximum(shares, 0.0) / np.maximum(shares, 0.0).sum()
        used = np.append(used, highest)
    return None


def bundle(
    loss: Objective,
    centre: FloatArray,
    ball: Ball,
    regularisation: float,
    tolerance: Callable[[float], float],
    max_evaluations: int,
) -> Minimum:
    """Return where a loss plus regularisation / 2 times a squared norm is least in a ball."""

    def held(weights: FloatArray) -> float:
        return 0.5 * regularisation * float(weights @ weights)

    model = _Model(ball, regularisation)
    raw, gradient = loss(centre)
    value, used, bound, nulls = raw + held(centre), 1, -math.inf, 0
    model.add(centre, raw, gradient)
    reach = max(1.0, abs(value)) / max(1e-300, float(gradient @ gradient))
    farthest = _FARTHEST * reach
    while True:
        reach = min(reach, farthest)
        accuracy = max(0.02 * tolerance(value), 0.01 * min(value - bound, abs(value)))
        weights, below = model.step(centre, reach, accuracy)
        bound = max(bound, below)
        gap = max(value - bound, 0.0)
        done = gap <= tolerance(value)
        if done or used >= max_evaluations:
            return Minimum(centre, value, gap, used, done)
        promised = value - model(weights) - held(weights)
        raw, gradient = loss(weights)
        found, used = raw + held(weights), used + 1
        model.add(weights, raw, gradient)
        if value - found >= 0.1 * promised > 0.0:
            reach *= 2.0 if value - found >= 0.5 * promised else 1.0
            centre, value, nulls = weights, found, 0
        else:
            nulls += 1
            if promised <= 0.1 * gap:  # steps too short to say anything about the least
                reach *= 2.0
            elif nulls % 10 == 0:
                reach *= 0.5
