"""Kernels of linear scorers: scores of documents, and steps down a gradient."""

import math
from typing import Any, NamedTuple

from keyhole.compiled import kernel

FIXED, POWER, ADAGRAD = 0, 1, 2


class Step(NamedTuple):
    """How far to go: kind, scale, and exponent of the round for POWER; radius of the ball."""

    kind: int
    scale: float
    power: float
    radius: float


@kernel
def linear_scores(features: Any, weights: Any, out: Any) -> None:
    """Fill ``out`` with features times weights, four documents side by side."""
    n_items, n_features = features.shape
    n_whole = n_items - n_items % 4
    for item in range(0, n_whole, 4):
        score_0 = score_1 = score_2 = score_3 = 0.0
        for column in range(n_features):
            weight = weights[column]
            score_0 += features[item, column] * weight
            score_1 += features[item + 1, column] * weight
            score_2 += features[item + 2, column] * weight
            score_3 += features[item + 3, column] * weight
        out[item], out[item + 1] = score_0, score_1
        out[item + 2], out[item + 3] = score_2, score_3
    for item in range(n_whole, n_items):
        score = 0.0
        for column in range(n_features):
            score += features[item, column] * weights[column]
        out[item] = score


@kernel
def chain(features: Any, gradient: Any, out: Any) -> None:
    """Fill ``out`` with the gradient by weight: the transposed features times that by score."""
    for column in range(out.shape[0]):
        out[column] = 0.0
    for item in range(features.shape[0]):
        slope = gradient[item]
        if slope != 0.0:
            for column in range(out.shape[0]):
                out[column] += slope * features[item, column]


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
