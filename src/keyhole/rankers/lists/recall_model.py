"""Relevance by features: least squares with three priors, and guesses to explore by.

Three vectors of weights begin with different beliefs: that the principal component of the features
is good, that more of any feature is good, or that nothing is known. Those that believe something
are held to it by a ridge that is five times that of the last one. Each is trusted by how well it
has foretold relevance that was seen for the first time. Four more vectors are drawn around them, as
wide as the weights are uncertain.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from keyhole.kernels.checking import all_finite
from keyhole.kernels.compiled import kernel, rare_kernel
from keyhole.kernels.draw import scalar
from keyhole.rankers.lists.recall_features import COMPONENT, CONSTANT, EXTRA, LENGTH, OF_LIST

N_GUESSES = 4
RESIDUALS, FIRST_SIGHTS, WITHIN, FREEDOM = 0, 1, 2, 3
"""Of numbers: squared errors at first sight and their count, the same of repeated sights."""
N_PRIORS = 3
_BY_COMPONENT, _BY_MEAN, _UNKNOWN = 0, 1, 2
_FIRST_TRUST = 3.0
_EVIDENCE = 4.0
_LEAST_TRUST = -30.0
_PRIOR_OF_COMPONENT = 0.25
_RIDGES = (5.0, 1.0)
_RIDGE_OF = (0, 0, 1)
_RIDGE_OF_COMPONENT = 10.0
_FIRST_WIDTH = 0.5
_LIST_EFFECT = 0.5
_MOST_NOISE = 0.95
_NEGLIGIBLE = 1e-3
_NOISE_OF_GUESSES, _NOISE_OF_LIST = 2, 3


class RecallModel(NamedTuple):
    """Weights by prior, guesses around them, their covariances, and how far each prior is trusted.

    There is a covariance of those that believe something, and one of that which does not.
    ``trust`` are logarithms; ``numbers`` are what the variances are worked out of.
    """

    weights_by_prior: Any
    guesses: Any
    covariances: Any
    trust: Any
    numbers: Any


def new_model(n_features: int) -> RecallModel:
    """Return the model that has seen nothing."""
    size = n_features + EXTRA
    variance = np.empty((2, size))
    variance[:, :n_features] = 1.0 / (np.array(_RIDGES)[:, np.newaxis] * n_features)
    variance[:, n_features + LENGTH] = variance[:, n_features + CONSTANT] = 1.0
    variance[:, n_features + COMPONENT] = 1.0 / _RIDGE_OF_COMPONENT
    variance[:, n_features + OF_LIST] = 0.0
    weights = np.zeros((N_PRIORS, size))
    weights[_BY_COMPONENT, n_features + COMPONENT] = _PRIOR_OF_COMPONENT
    weights[_BY_MEAN, :n_features] = 1.0 / n_features
    trust = np.full(N_PRIORS, -_FIRST_TRUST)
    trust[_BY_COMPONENT] = 0.0
    noise = np.random.default_rng(0).standard_normal((N_GUESSES, size))
    covariances, diagonal = np.zeros((2, size, size)), np.arange(size)
    covariances[:, diagonal, diagonal] = variance
    return RecallModel(
        weights,
        _FIRST_WIDTH * noise * np.sqrt(variance[0]),
        covariances,
        trust,
        np.array([1.0, 1.0, 0.0, 0.0]),
    )


@kernel
def variances(model: Any) -> tuple[float, float, float]:
    """Return the variance of relevance that features leave, and of it noise and what stays."""
    numbers = model.numbers
    total = numbers[RESIDUALS] / numbers[FIRST_SIGHTS]
    noise = min((numbers[WITHIN] + total) / (numbers[FREEDOM] + 2.0), _MOST_NOISE * total)
    return total, noise, total - noise


@kernel
def shares_of_trust(model: Any, out: Any) -> None:
    """Fill ``out`` with the share of each prior; the largest trust is 0."""
    total = 0.0
    for prior in range(N_PRIORS):
        out[prior] = math.exp(model.trust[prior])
        total += out[prior]
    for prior in range(N_PRIORS):
        out[prior] /= total


@kernel
def mix_weights(model: Any, shares: Any, out: Any) -> None:
    """Fill ``out`` with the weights of all priors by their shares."""
    shares_of_trust(model, shares)
    for index in range(out.shape[0]):
        out[index] = 0.0
    for prior in range(N_PRIORS):
        for index in range(out.shape[0]):
            out[index] += shares[prior] * model.weights_by_prior[prior, index]


@kernel
def _product(left: Any, right: Any) -> float:
    """Return a scalar product, in four sums that do not wait for each other."""
    n_whole = left.shape[0] - left.shape[0] % 4
    sum_0 = sum_1 = sum_2 = sum_3 = 0.0
    for index in range(0, n_whole, 4):
        sum_0 += left[index] * right[index]
        sum_1 += left[index + 1] * right[index + 1]
        sum_2 += left[index + 2] * right[index + 2]
        sum_3 += left[index + 3] * right[index + 3]
    for index in range(n_whole, left.shape[0]):
        sum_0 += left[index] * right[index]
    return (sum_0 + sum_1) + (sum_2 + sum_3)


@kernel
def normal(draw: Any, use: int, index: int) -> float:
    """Return a standard normal number that belongs to no item (Box-Muller)."""
    radius = math.sqrt(-2.0 * math.log(scalar(draw, draw.round, use, 2 * index)))
    return radius * math.cos(2.0 * math.pi * scalar(draw, draw.round, use, 2 * index + 1))


@rare_kernel
def begin_list(model: Any, draw: Any) -> None:
    """Forget the effect of the list before: what documents of one list have in common."""
    size = model.guesses.shape[1]
    effect = size - EXTRA + OF_LIST
    variance = _LIST_EFFECT / (1.0 + _LIST_EFFECT)
    for ridge in range(2):
        covariance = model.covariances[ridge]
        for index in range(size):
            covariance[index, effect] = covariance[effect, index] = 0.0
        covariance[effect, effect] = variance
    for prior in range(N_PRIORS):
        model.weights_by_prior[prior, effect] = 0.0
    for guess in range(N_GUESSES):
        model.guesses[guess, effect] = math.sqrt(variance) * normal(draw, _NOISE_OF_LIST, guess)


@kernel
def judge_priors(model: Any, row: Any, relevance: float) -> None:
    """Trust each prior by how far it was off a relevance that is seen for the first time."""
    numbers, trust = model.numbers, model.trust
    scale = _EVIDENCE * numbers[FIRST_SIGHTS] / (2.0 * numbers[RESIDUALS])
    best = -math.inf
    for prior in range(N_PRIORS):
        error = relevance - _product(row, model.weights_by_prior[prior])
        trust[prior] -= scale * error * error
        best = max(best, trust[prior])
    for prior in range(N_PRIORS):
        trust[prior] = max(trust[prior] - best, _LEAST_TRUST)


@kernel
def _gain_of(covariance: Any, row: Any, weight: float, gain: Any) -> float:
    """Fill ``gain`` with covariance times row, and return the share of an error to learn.

    Four lines of the covariance are added up at a time, so that sums stay in registers.
    """
    size = row.shape[0]
    n_whole = size - size % 4
    for index in range(size):
        gain[index] = 0.0
    for other in range(0, n_whole, 4):
        part_0, part_1, part_2, part_3 = row[other], row[other + 1], row[other + 2], row[other + 3]
        line_0, line_1 = covariance[other], covariance[other + 1]
        line_2, line_3 = covariance[other + 2], covariance[other + 3]
        for index in range(size):
            gain[index] += (part_0 * line_0[index] + part_1 * line_1[index]) + (
                part_2 * line_2[index] + part_3 * line_3[index]
            )
    for other in range(n_whole, size):
        for index in range(size):
            gain[index] += row[other] * covariance[other, index]
    return 1.0 / (1.0 + weight * max(_product(row, gain), 0.0))


@kernel
def _step_towards(
    moment: float, weight: float, row: Any, share: float, gain: Any, weights: Any
) -> None:
    step = share * (moment - weight * _product(row, weights))
    for index in range(weights.shape[0]):
        weights[index] += step * gain[index]


@rare_kernel
def learn_relevance(
    model: Any, draw: Any, place: int, row: Any, several: bool, weight: float, moment: float,
    gain: Any,
) -> None:  # fmt: skip
    """Add ``weight`` to what was seen of a row, and ``moment`` to its sum: least squares.

    ``gain`` is room for a row.
    """
    size = row.shape[0]
    if several:  # a part of the noise is the effect of the list
        row[size - EXTRA + OF_LIST] = 1.0
        weight, moment = weight * (1.0 + _LIST_EFFECT), moment * (1.0 + _LIST_EFFECT)
    for ridge in range(2):
        covariance = model.covariances[ridge]
        share = _gain_of(covariance, row, weight, gain)
        for prior in range(N_PRIORS):
            if _RIDGE_OF[prior] == ridge:
                _step_towards(moment, weight, row, share, gain, model.weights_by_prior[prior])
        if ridge == 0 and weight > 0.0:
            width = math.sqrt(weight * variances(model)[0])
            for guess in range(N_GUESSES):
                noise = width * normal(draw, _NOISE_OF_GUESSES, place * N_GUESSES + guess)
                _step_towards(noise, weight, row, share, gain, model.guesses[guess])
        for other in range(size):
            factor, line = share * weight * gain[other], covariance[other]
            for index in range(size):
                line[index] -= factor * gain[index]
    row[size - EXTRA + OF_LIST] = 0.0


@kernel
def is_negligible(weight: float, moment: float) -> bool:
    """Return whether there is too little to learn for the weights to be touched."""
    return weight < _NEGLIGIBLE and abs(moment) < _NEGLIGIBLE


@rare_kernel
def is_finite(model: Any) -> bool:
    """Return whether weights, guesses and covariances can be used."""
    weights, guesses = model.weights_by_prior.reshape(-1), model.guesses.reshape(-1)
    known = all_finite(model.trust) and all_finite(weights) and all_finite(guesses)
    return bool(known and all_finite(model.covariances.reshape(-1)))
