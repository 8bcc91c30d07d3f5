"""Descent on the AUC surrogate: one positive and one negative example per step.

The surrogate (S10) of an ad is the mean of ``loss(w.x+ - w.x-)`` over all pairs of a positive and
a negative example. A step draws one pair, so that it costs the same however many there are, and
however few of the examples are positive.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from keyhole.base.errors import (
    FloatArray,
    InvalidInput,
    check_choice,
    check_integer,
    check_number,
    check_seed,
)
from keyhole.kernels.compiled import kernel, rare_kernel
from keyhole.kernels.draw import Draw, start, to_unit, word

LOSSES = {"logistic": 0, "hinge": 1}
POLICY_STREAM = 3
"""Streams 0 to 2 belong to rankers, worlds and reveals."""
PAIR_USE, SAMPLE_USE, RESERVOIR_USE = 0, 1, 2
_DECAY = 3.0
"""Exponent of the polynomial-decay average (Shamir & Zhang 2013, who advise 3)."""


class PairState(NamedTuple):
    """What a descent knows: with these arrays it goes on where it stopped."""

    gradients: Any
    """Sum of all gradients so far."""
    average: Any
    """Average of the weights before soft thresholding."""
    cut: Any
    """One number: the average of the thresholds."""
    steps: Any
    """One number: the steps taken."""


class PairParams(NamedTuple):
    """Loss, penalties, and the curvature that sets the size of the first steps."""

    loss: int
    l1: float
    l2: float
    curvature: float


def init_pairs(n_features: int) -> PairState:
    """Return the state before the first step."""
    return PairState(np.zeros(n_features), np.zeros(n_features), np.zeros(1), np.zeros(1, np.int64))


@kernel
def _pull(loss: int, margin: float) -> float:
    """Return minus the derivative of the loss at a margin."""
    if loss == 1:
        return 1.0 if margin < 1.0 else 0.0
    small = math.exp(-abs(margin))
    return small / (1.0 + small) if margin >= 0.0 else 1.0 / (1.0 + small)


@kernel
def _divisor(params: PairParams, step: int) -> float:
    """Return what the sum of gradients is divided by after ``step`` steps."""
    if params.l2 > 0.0:
        return params.curvature + params.l2 * step
    return params.curvature * math.sqrt(step + 1.0)


@kernel
def _product(gradients: Any, cut: float, positive: Any, negative: Any) -> float:
    """Return the soft-thresholded gradients times the difference of the two examples."""
    sum_0 = sum_1 = sum_2 = sum_3 = 0.0  # one sum would wait for each of its additions
    n_whole = gradients.shape[0] - gradients.shape[0] % 4
    if cut == 0.0:
        for j in range(0, n_whole, 4):
            sum_0 += gradients[j] * (positive[j] - negative[j])
            sum_1 += gradients[j + 1] * (positive[j + 1] - negative[j + 1])
            sum_2 += gradients[j + 2] * (positive[j + 2] - negative[j + 2])
            sum_3 += gradients[j + 3] * (positive[j + 3] - negative[j + 3])
        for j in range(n_whole, gradients.shape[0]):
            sum_0 += gradients[j] * (positive[j] - negative[j])
    else:
        for j in range(gradients.shape[0]):
            kept = math.copysign(max(abs(gradients[j]) - cut, 0.0), gradients[j])
            sum_0 += kept * (positive[j] - negative[j])
    return (sum_0 + sum_2) + (sum_1 + sum_3)


@kernel
def descend_pair(params: PairParams, state: PairState, positive: Any, negative: Any) -> None:
    """Take one step along one pair of examples."""
    gradients, average = state.gradients, state.average
    step = state.steps[0]
    product = _product(gradients, params.l1 * step, positive, negative)
    pull = _pull(params.loss, -product / _divisor(params, step))
    if pull != 0.0:
        for j in range(gradients.shape[0]):
            gradients[j] -= pull * (positive[j] - negative[j])
    step += 1
    scale = 1.0 / _divisor(params, step)
    share = (_DECAY + 1.0) / (step + _DECAY)
    for j in range(gradients.shape[0]):
        average[j] += share * (-scale * gradients[j] - average[j])
    state.cut[0] += share * (params.l1 * step * scale - state.cut[0])
    state.steps[0] = step


@rare_kernel
def descend_pairs(
    params: PairParams, state: PairState, draw: Draw, positives: Any, negatives: Any, n_steps: int
) -> None:
    """Take steps along pairs drawn uniformly and independently."""
    begin = start(draw, draw.round, PAIR_USE)
    n_positives, n_negatives = positives.shape[0], negatives.shape[0]
    for _ in range(n_steps):
        index = 2 * state.steps[0]
        row = int(to_unit(word(begin, index)) * n_positives)
        other = int(to_unit(word(begin, index + 1)) * n_negatives)
        descend_pair(params, state, positives[row], negatives[other])


def thresholded(average: FloatArray, cut: float) -> FloatArray:
    """Return the weights of a descent: their average, moved towards 0 by ``cut``."""
    weights: FloatArray = np.copysign(np.maximum(np.abs(average) - cut, 0.0), average)
    return weights


def pair_params(loss: str, l1: float, l2: float, curvature: float) -> PairParams:
    """Return checked settings."""
    check_choice(loss, "`loss`", LOSSES)
    l1 = check_number(l1, "`l1`", at_least=0.0)
    l2 = check_number(l2, "`l2`", at_least=0.0)
    return PairParams(LOSSES[loss], l1, l2, curvature)


def _mean_squared_distance(positives: FloatArray, negatives: FloatArray) -> float:
    squares = (positives**2).sum(axis=1).mean() + (negatives**2).sum(axis=1).mean()
    return float(squares - 2.0 * positives.mean(axis=0) @ negatives.mean(axis=0))


def _examples(values: FloatArray, name: str) -> FloatArray:
    rows = np.ascontiguousarray(values, dtype=np.float64)
    if rows.ndim != 2 or not len(rows):
        raise InvalidInput(f"{name} must be a table with at least one row, got {rows.shape}.")
    if not np.isfinite(rows).all():
        raise InvalidInput(f"{name} must be finite, got {rows[~np.isfinite(rows)][0]}.")
    return rows


def fit_pairs(
    positives: FloatArray,
    negatives: FloatArray,
    *,
    loss: str = "logistic",
    l1: float = 0.0,
    l2: float = 0.01,
    n_steps: int = 1_000_000,
    seed: int = 0,
    ad: int = 0,
) -> FloatArray:
    """Return the weights that put positive examples above negative ones.

    Parameters
    ----------
    positives, negatives
        Examples by features.
    loss
        ``logistic``, log(1 + e^-margin), or ``hinge``, max(0, 1 - margin).
    l1, l2
        The objective is the mean loss over all pairs + l1 |w|_1 + l2/2 |w|^2.
    n_steps, seed
        Pairs to draw; they follow from the seed and from ``ad``.

    Notes
    -----
    S10 by regularised dual averaging (Xiao 2010): after t steps the weights are minus the sum of
    all gradients, soft-thresholded by l1 t, over c + l2 t (c sqrt(t + 1) without l2), where c is
    the mean squared distance between a positive and a negative example. With l1 = 0 that is
    stochastic gradient descent with steps 1 / (c + l2 t), and no step has to shrink the weights.
    What is returned is their polynomial-decay average (Shamir & Zhang 2013, whom the thesis
    cites); the averages are thresholded last, so that l1 gives exact zeros.

    Examples
    --------
    >>> import numpy as np
    >>> weights = fit_pairs(np.array([[2.0, 0.0]]), np.array([[0.0, 1.0], [0.0, -1.0]]))
    >>> bool(weights[0] > 1.0), bool(abs(weights[1]) < 0.01)
    (True, True)
    """
    positives, negatives = _examples(positives, "positives"), _examples(negatives, "negatives")
    n_steps = check_integer(n_steps, "`n_steps`", at_least=1)
    distance = _mean_squared_distance(positives, negatives)
    params = pair_params(loss, l1, l2, distance if distance > 0.0 else 1.0)
    state = init_pairs(positives.shape[1])
    draw = Draw(check_seed(seed), POLICY_STREAM, ad)
    descend_pairs(params, state, draw, positives, negatives, n_steps)
    return thresholded(state.average, state.cut[0])
