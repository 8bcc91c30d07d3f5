"""Steps down a gradient by weight."""

import math
from typing import Any, NamedTuple

from keyhole.kernels.compiled import kernel

FIXED, POWER, ADAGRAD = 0, 1, 2


class Step(NamedTuple):
    """How far to go: kind, scale, and exponent of the round for POWER; radius of the ball.

    ``centred``: features, and so scores, count less their mean over the list.
    """

    kind: int
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
def descend(step: Step, round: int, gradient: Any, weights: Any, squares: Any) -> None:
    """Take one step down, and project onto the ball."""
    if step.kind == ADAGRAD:
        for column in range(weights.shape[0]):
            squares[column] += gradient[column] * gradient[column]
            if squares[column] > 0.0:
                weights[column] -= step.scale * gradient[column] / math.sqrt(squares[column])
    else:
        scale = step.scale
        if step.kind == POWER:
            scale *= (round + 1.0) ** -step.power
        for column in range(weights.shape[0]):
            weights[column] -= scale * gradient[column]
    if step.radius < math.inf:
        norm = 0.0
        for column in range(weights.shape[0]):
            norm += weights[column] * weights[column]
        norm = math.sqrt(norm)
        if norm > step.radius:
            for column in range(weights.shape[0]):
                weights[column] *= step.radius / norm
