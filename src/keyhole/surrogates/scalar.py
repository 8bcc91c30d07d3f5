"""Exponentials that do not overflow."""

import math
from typing import Any

from keyhole.kernels.compiled import kernel

LARGEST_SCORE = 30.0
"""Beyond this, either way, exponentials of scores go on as straight lines (R18)."""


@kernel
def clipped_exp(score: float) -> float:
    """Return e^score of the score clipped to [-30, 30]: the slope of :func:`straight_exp`."""
    return math.exp(min(max(score, -LARGEST_SCORE), LARGEST_SCORE))


@kernel
def straight_exp(score: float) -> float:
    """Return e^score, continued by its tangents outside [-30, 30]."""
    clipped = min(max(score, -LARGEST_SCORE), LARGEST_SCORE)
    return math.exp(clipped) * (1.0 + (score - clipped))


@kernel
def sigmoid(score: float) -> float:
    """Return 1 / (1 + e^-score)."""
    small = math.exp(-abs(score))
    return 1.0 / (1.0 + small) if score >= 0.0 else small / (1.0 + small)


@kernel
def softplus(score: float) -> float:
    """Return log(1 + e^score)."""
    return max(score, 0.0) + math.log1p(math.exp(-abs(score)))


@kernel
def gain_of(grade: float) -> float:
    """Return 2^grade - 1."""
    return 2.0**grade - 1.0


@kernel
def softmax_norm(values: Any, scale: float) -> tuple[float, float]:
    """Return the largest value, and the sum of e^(scale (value - largest))."""
    largest = values[0]
    for item in range(1, values.shape[0]):
        largest = max(largest, values[item])
    total = 0.0
    for item in range(values.shape[0]):
        total += math.exp(scale * (values[item] - largest))
    return largest, total


@kernel
def fill_softmax(values: Any, scale: float, out: Any) -> None:
    """Fill ``out`` with the probabilities proportional to e^(scale value)."""
    largest, total = values[0], 0.0
    for item in range(values.shape[0]):
        largest = max(largest, values[item])
    for item in range(values.shape[0]):  # each exponential once: they are most of the work
        out[item] = math.exp(scale * (values[item] - largest))
        total += out[item]
    for item in range(values.shape[0]):
        out[item] /= total
