"""Steps down a gradient by weight."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from keyhole.kernels.compiled import kernel


class Step(NamedTuple):
    """How far to go: scale, and exponent of the round for a power step; radius of the ball.

    ``centred``: features, and so scores, count less their mean over the list.
    """

    scale: float
    power: float
    radius: float
    centred: bool


@kernel
def centre(given: Any, out: Any) -> None:
    """Fill ``out`` with scores, or slopes by score, less their mean."""
    total = 0.0
    for item in range(given.shape[0]):
        total += given[item]
    mean = total / given.shape[0]
    for item in range(given.shape[0]):
        out[item] = given[item] - mean


@kernel
def _go_down(scale: float, gradient: Any, weights: Any) -> None:
    for column in range(weights.shape[0]):
        weights[column] -= scale * gradient[column]


@kernel
def fixed_step(step: Step, round: int, gradient: Any, weights: Any, squares: Any) -> None:
    """Go down by the same multiple of the gradient in every round."""
    _go_down(step.scale, gradient, weights)


@kernel
def power_step(step: Step, round: int, gradient: Any, weights: Any, squares: Any) -> None:
    """Go down by a multiple of the gradient that falls with a power of the round."""
    _go_down(step.scale * (round + 1.0) ** -step.power, gradient, weights)


@kernel
def adagrad_step(step: Step, round: int, gradient: Any, weights: Any, squares: Any) -> None:
    """Go down in every column by what the root of the sum of its squared slopes allows."""
    for column in range(weights.shape[0]):
        squares[column] += gradient[column] * gradient[column]
        if squares[column] > 0.0:
            weights[column] -= step.scale * gradient[column] / math.sqrt(squares[column])


@kernel
def project(radius: float, weights: Any) -> None:
    """Take weights that have left the ball to the nearest point of it."""
    if radius < math.inf:
        norm = 0.0
        for column in range(weights.shape[0]):
            norm += weights[column] * weights[column]
        norm = math.sqrt(norm)
        if norm > radius:
            for column in range(weights.shape[0]):
                weights[column] *= radius / norm


STEPS: dict[str, Callable[..., None]] = {
    "fixed": fixed_step,
    "power": power_step,
    "adagrad": adagrad_step,
}
