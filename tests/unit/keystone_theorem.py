"""What the proof of keystone's theorem speaks of, written out once more and exactly.

Lists are tuples of items. A round is enumerated: coin times floor. The safe half draws its list by
sorting scores plus Gumbel noise, so everything about it is known in closed form: the mean of the
largest key of a set of items is the logarithm of the sum of their exponentials, and order
statistics follow from the largest keys of all sets.
"""

import itertools
import math
from functools import cache

import numpy as np

EULER = 0.5772156649015329

WEIGHTS = {
    "DCG": lambda m: 1.0 / np.log2(np.arange(2, m + 2)),
    "SumLoss": lambda m: np.arange(m, 0, -1.0),
    "top one": lambda m: (np.arange(m) < 1).astype(float),
    "top half": lambda m: (np.arange(m) < (m + 1) // 2).astype(float),
}
"""Position weights, largest first."""


def by_item(weights, order):
    """Return the weight that a list gives to each item."""
    given = np.empty(len(order))
    given[list(order)] = weights
    return given


def lifted(order, place, k):
    """Return a list whose item at some place has been moved up to position k."""
    order = list(order)
    order.insert(k - 1, order.pop(place))
    return tuple(order)


def rounds_of(safe, other, trust, floor, k):
    """Yield every list that a round may show and how likely it is."""
    m = len(safe)
    for order, of_coin in ((safe, trust), (other, 1.0 - trust)):
        yield order, of_coin * (1.0 - floor)
        for place in range(m):
            yield (lifted(order, place, k) if place >= k else order), of_coin * floor / m


def chance_in(order, floor, k):
    """Return how likely each item is to be seen where one list is played: phi."""
    m = len(order)
    by_place = [1.0 if p < k - 1 else floor / m for p in range(m)]
    by_place[k - 1] = 1.0 - floor * (1.0 - k / m)
    return by_item(by_place, order)


def chances(safe, other, trust, floor, k):
    """Return how likely each item is to be seen, given both lists: p."""
    return trust * chance_in(safe, floor, k) + (1.0 - trust) * chance_in(other, floor, k)


def corrections(shown, k, gains, means, seen_with):
    """Return c: what is added to the means of the items that are seen."""
    found = np.zeros(len(shown))
    top = list(shown[:k])
    found[top] = (gains[top] - means[top]) / seen_with[top]
    return found


@cache
def _sets(m):
    return np.array(list(itertools.product((False, True), repeat=m))[1:])


def _set_weights(weights):
    """Return by which weight the largest key of each set enters the value of the best list."""
    m = len(weights)
    of_size = np.zeros(m + 1)
    for place, weight in enumerate(weights):  # the p-th largest key, p = place + 1
        for size in range(m - place, m + 1):
            sign = (-1) ** (size - m + place)
            of_size[size] += weight * sign * math.comb(size - 1, m - place - 1)
    return of_size[_sets(m).sum(axis=1)]


def _masked(scores):
    sets = _sets(len(scores))
    largest = np.where(sets, scores, -np.inf).max(axis=1)
    powers = np.where(sets, np.exp(scores - largest[:, None]), 0.0)
    return largest, powers


def potential(weights, scores, rate=1.0):
    """Return Phi: the mean value of the best list for totals plus centred noise over the rate."""
    scores = rate * np.asarray(scores, float)
    largest, powers = _masked(scores)
    return float(_set_weights(weights) @ (largest + np.log(powers.sum(axis=1)))) / rate


def mean_weights(weights, scores):
    """Return x: the mean weight that the safe half gives to each item, its scores given."""
    _, powers = _masked(np.asarray(scores, float))
    return _set_weights(weights) @ (powers / powers.sum(axis=1, keepdims=True))


def slopes(weights, scores):
    """Return H: by how much each mean weight rises with each score."""
    _, powers = _masked(np.asarray(scores, float))
    shares = powers / powers.sum(axis=1, keepdims=True)
    heavy = _set_weights(weights)
    return np.diag(heavy @ shares) - np.einsum("s,si,sj->ij", heavy, shares, shares)


def list_chances(scores):
    """Yield every list that the safe half may draw and how likely it is."""
    powers = np.exp(np.asarray(scores, float) - np.max(scores))
    for order in itertools.permutations(range(len(powers))):
        rest = np.cumsum(powers[list(order)][::-1])[::-1]
        yield order, float(np.prod(powers[list(order)] / rest))


def bregman(weights, totals, step, rate):
    """Return by how much the potential rises beyond its tangent."""
    tangent = mean_weights(weights, rate * totals) @ step
    return potential(weights, totals + step, rate) - potential(weights, totals, rate) - tangent


def drift_of(weights, block):
    """Return kappa."""
    m, total = len(weights), float((weights - weights[-1]).sum())
    spread = weights[0] - weights[-1]
    return (block + 1) * total / 4.0 + (block - 1) * m * spread / (2.0 * math.e)


def correction_weight(weights, k):
    """Return a."""
    return (weights[0] - weights[-1]) / math.e / (2.0 if k == 1 else 1.0)
