"""Descent of smooth functions: spectral projected gradients, then Newton's steps.

Spectral projected gradients (Birgin, Martínez and Raydan 2000) only ask for the projection onto
the set of points that are allowed.
"""

import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from keyhole.base.errors import FloatArray
from keyhole.batch.balls import Ball, Simplex

Objective = Callable[[FloatArray], tuple[float, FloatArray]]
"""Value and gradient at some weights."""

MOST_INNER = 2000
"""Evaluations of a quadratic that stands in for the objective."""
_MEMORY = 10
_DECREASE = 1e-4
_APART = 1e-6


@dataclass(frozen=True)
class Minimum:
    """Weights, the objective there, and by how much at most it is above the least (``gap``)."""

    weights: FloatArray
    value: float
    gap: float
    n_evaluations: int
    converged: bool


def descend(
    objective: Objective,
    weights: FloatArray,
    inside: Ball | Simplex,
    gap_at: Callable[[FloatArray, FloatArray], float] | None,
    tolerance: Callable[[float], float],
    max_evaluations: int,
) -> Minimum:
    """Return where an objective is least, by spectral projected gradients.

    ``gap_at`` bounds how far above the least a point is; without it (None) what is found is a point
    from which no gradient leads on.
    """
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
            return Minimum(weights, value, math.nan if gap_at is None else gap, used, done)
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


def newton(
    objective: Objective,
    found: Minimum,
    ball: Ball,
    gap_at: Callable[[FloatArray, FloatArray], float],
    tolerance: Callable[[float], float],
    max_evaluations: int,
) -> Minimum:
    """Go on where features that hardly differ make plain descent slow.

    Each step goes to where a quadratic is least in the ball. Its curvature comes from differences
    of gradients at points a little apart.
    """
    weights, used = found.weights, found.n_evaluations
    value, gradient = objective(weights)
    while used + len(weights) < max_evaluations:
        target = _least_quadratic(_curvature(objective, weights, gradient), weights, gradient, ball)
        used += len(weights)
        move, length = target - weights, 1.0
        slope = float(gradient @ move)
        while True:
            trial = weights + length * move
            next_value, next_gradient = objective(trial)
            used += 1
            if next_value <= value + _DECREASE * length * slope or length < 1e-8:
                break
            length *= 0.5
        if next_value >= value and gap_at(trial, next_gradient) >= found.gap:
            break  # as far as rounding allows
        weights, value, gradient = trial, next_value, next_gradient
        gap = gap_at(weights, gradient)
        if gap < found.gap:
            found = Minimum(weights, value, gap, used, gap <= tolerance(value))
        if found.converged:
            break
    return replace(found, n_evaluations=used)


def _curvature(objective: Objective, weights: FloatArray, gradient: FloatArray) -> FloatArray:
    apart = _APART * max(1.0, float(np.abs(weights).max()))
    rows = [objective(weights + apart * unit)[1] - gradient for unit in np.eye(len(weights))]
    half = np.array(rows) / (2.0 * apart)
    return half + half.T


def _least_quadratic(
    curvature: FloatArray, weights: FloatArray, gradient: FloatArray, ball: Ball
) -> FloatArray:
    """Return where the quadratic with this curvature, and this gradient at some weights, is least.

    Where the least of the plane lies outside the l2 ball, that inside is on the surface: a
    multiple of the identity is added to the curvature, found by bisection. In the l1 ball
    the quadratic is descended.
    """
    sizes, axes = np.linalg.eigh(curvature)
    sizes = np.maximum(sizes, 1e-14 * max(float(sizes[-1]), 1e-300))
    along = sizes * (axes.T @ weights) - axes.T @ gradient
    free = axes @ (along / sizes)
    if ball.holds(free):
        return free
    if ball.norm == "l2":
        low, high = 0.0, float(np.sqrt(along @ along)) / ball.radius
        for _ in range(200):
            middle = 0.5 * (low + high)
            inside = float(np.square(along / (sizes + middle)).sum()) <= ball.radius**2
            low, high = (low, middle) if inside else (middle, high)
        return ball.project(axes @ (along / (sizes + high)))

    def quadratic(point: FloatArray) -> tuple[float, FloatArray]:
        gap = axes.T @ (point - weights)
        slope = gradient + axes @ (sizes * gap)
        return float(0.5 * (slope + gradient) @ (point - weights)), slope

    def gap_at(point: FloatArray, slope: FloatArray) -> float:
        return float(slope @ point) - ball.lowest(slope, 0.0)

    enough = 0.01 * max(gap_at(weights, gradient), 0.0)
    return descend(quadratic, weights, ball, gap_at, lambda _: enough, MOST_INNER).weights
