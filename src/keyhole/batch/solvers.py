"""Least mean loss over a ball, with a certificate of how far from the least it can be.

Smooth losses are descended by spectral projected gradients (Birgin, Martínez and Raydan 2000),
others by a proximal bundle method (Kiwiel 1990): both only ask for the projection onto the ball.
"""

import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from keyhole.errors import FloatArray, InvalidInput, check_choice, check_integer, check_number

Objective = Callable[[FloatArray], tuple[float, FloatArray]]

_MEMORY = 10
_DECREASE = 1e-4
_MOST_CUTS = 400
_MOST_DUAL = 2000


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
        falling = np.sort(sizes)[::-1]
        over = (np.cumsum(falling) - self.radius) / np.arange(1, len(sizes) + 1)
        cut = over[np.flatnonzero(falling > over)[-1]]
        return np.sign(weights) * np.maximum(sizes - cut, 0.0)

    def lowest(self, slope: FloatArray, curvature: float) -> float:
        """Return the least of slope . w + curvature / 2 |w|^2 inside; -inf if there is none."""
        if curvature > 0.0:
            weights = self.project(-slope / curvature)
            return float(slope @ weights + 0.5 * curvature * (weights @ weights))
        dual = np.abs(slope).max() if self.norm == "l1" else math.sqrt(float(slope @ slope))
        return -self.radius * float(dual) if dual > 0.0 else 0.0


@dataclass(frozen=True)
class Solution:
    """Weights, the objective there, and by how much at most it is above the least (``gap``)."""

    weights: FloatArray
    value: float
    gap: float
    n_evaluations: int
    converged: bool


def minimise(
    loss: Objective,
    n_features: int,
    *,
    ball: Ball,
    regularisation: float = 0.0,
    smooth: bool = True,
    convex: bool = True,
    tolerance: float = 1e-6,
    max_evaluations: int = 20_000,
    start: FloatArray | None = None,
) -> Solution:
    """Return the least of a loss plus regularisation / 2 times the squared norm of the weights.

    Parameters
    ----------
    loss
        Value and (sub)gradient at some weights.
    n_features, ball, regularisation
        Number of weights, where they may lie, and how strongly they are held back. Without a
        radius the regularisation must be above 0: there may be no least otherwise.
    smooth, convex
        What is known of the loss. If it is not convex, the solution is a stationary point and its
        gap NaN.
    tolerance
        The gap to stop at, relative to the value where that is above 1.
    max_evaluations, start
        When to give up, and where to begin (default: at 0).

    Examples
    --------
    >>> found = minimise(lambda w: (float((w - 3) @ (w - 3)), 2 * (w - 3)), 1, ball=Ball("l2", 2))
    >>> found.weights.tolist(), found.converged
    ([2.0], True)
    """
    regularisation = check_number(regularisation, "`regularisation`", at_least=0.0)
    tolerance = check_number(tolerance, "`tolerance`", above=0.0)
    max_evaluations = check_integer(max_evaluations, "`max_evaluations`", at_least=1)
    if ball.radius == math.inf and regularisation == 0.0:
        raise InvalidInput("`radius` must be given, or `regularisation` be above 0, got neither.")
    if not (smooth or convex):
        raise InvalidInput("A loss must be smooth or convex to be minimised.")

    def relative(value: float) -> float:
        return tolerance * max(1.0, abs(value))

    begin = ball.project(np.zeros(n_features) if start is None else np.array(start, dtype=float))
    if not smooth:
        return _bundle(loss, begin, ball, regularisation, relative, max_evaluations)

    def objective(weights: FloatArray) -> tuple[float, FloatArray]:
        value, gradient = loss(weights)
        held = regularisation * weights
        return value + 0.5 * float(held @ weights), gradient + held

    def gap(weights: FloatArray, gradient: FloatArray) -> float:
        # f is at least its tangent, and by strong convexity more: the least of that bounds f
        slope = gradient - regularisation * weights
        here = float(slope @ weights) + 0.5 * regularisation * float(weights @ weights)
        return here - ball.lowest(slope, regularisation)

    return _descend(
        objective, begin, ball, gap if convex else None, relative, max_evaluations
    )  # fmt: skip


def _descend(
    objective: Objective,
    weights: FloatArray,
    inside: "Ball | _Simplex",
    gap_at: Callable[[FloatArray, FloatArray], float] | None,
    tolerance: Callable[[float], float],
    max_evaluations: int,
) -> Solution:
    value, gradient = objective(weights)
    recent = deque([value], maxlen=_MEMORY)
    best, used = (math.inf, weights, value), 1
    step = 1.0 / max(1e-10, float(np.abs(inside.project(weights - gradient) - weights).max()))
    while True:
        move = inside.project(weights - gradient) - weights
        gap = float(np.abs(move).max()) if gap_at is None else gap_at(weights, gradient)
        best = min(best, (gap, weights, value), key=lambda found: found[0])
        done = gap <= tolerance(value)
        if done or used >= max_evaluations:
            gap, weights, value = best
            return Solution(weights, value, math.nan if gap_at is None else gap, used, done)
        move = inside.project(weights - step * gradient) - weights
        slope = float(gradient @ move)
        length, limit = 1.0, max(recent)
        while True:
            next_weights = weights + length * move
            next_value, next_gradient = objective(next_weights)
            used += 1
            if next_value <= limit + _DECREASE * length * slope or length < 1e-10:
                break
            curve = 2.0 * (next_value - value - length * slope)
            trial = -slope * length**2 / curve if curve > 0.0 else 0.0
            length = min(max(trial, 0.1 * length), 0.9 * length)
        moved, turned = next_weights - weights, next_gradient - gradient
        bend = float(moved @ turned)
        step = min(max(float(moved @ moved) / bend, 1e-10), 1e10) if bend > 0.0 else 1e10
        weights, value, gradient = next_weights, next_value, next_gradient
        recent.append(value)


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

        found = _descend(dual, self.shares, _Simplex(), gap, lambda _: accuracy, _MOST_DUAL)
        self.shares = found.weights
        below = float(b @ self.shares) + self.ball.lowest(self.shares @ A, self.held)
        return weights_at(self.shares), below

    def __call__(self, weights: FloatArray) -> float:
        return max(float(a @ weights) + b for a, b in zip(self.slopes, self.offsets, strict=True))


class _Simplex:
    """Shares of at least 0 that add up to 1."""

    def project(self, point: FloatArray) -> FloatArray:
        falling = np.sort(point)[::-1]
        over = (np.cumsum(falling) - 1.0) / np.arange(1, len(point) + 1)
        return np.maximum(point - over[np.flatnonzero(falling > over)[-1]], 0.0)


def _bundle(
    loss: Objective,
    centre: FloatArray,
    ball: Ball,
    regularisation: float,
    tolerance: Callable[[float], float],
    max_evaluations: int,
) -> Solution:
    def held(weights: FloatArray) -> float:
        return 0.5 * regularisation * float(weights @ weights)

    model = _Model(ball, regularisation)
    raw, gradient = loss(centre)
    value, used, bound, nulls = raw + held(centre), 1, -math.inf, 0
    model.add(centre, raw, gradient)
    reach = max(1.0, abs(value)) / max(1e-300, float(gradient @ gradient))
    while True:
        accuracy = max(0.02 * tolerance(value), 0.01 * min(value - bound, abs(value)))
        weights, below = model.step(centre, reach, accuracy)
        bound = max(bound, below)
        gap = max(value - bound, 0.0)
        done = gap <= tolerance(value)
        if done or used >= max_evaluations:
            return Solution(centre, value, gap, used, done)
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
