"""What the references share: the random numbers and the measures, in plain Python and NumPy.

Nothing here is taken from the package. Which numbers are drawn where is part of what a reference
pins: logs are replayed with them.
"""

import itertools
import math

import numpy as np

from tests.unit.test_draw import reference_start, reference_unit, reference_word

RANKER, WORLD, REVEAL = 0, 1, 2


def units(place, use, n_numbers):
    """Return the uniform numbers of a place: seed, run, role and round."""
    seed, run, role, round = place
    begin = reference_start(seed, 4 * run + role, round, use)
    return np.array([reference_unit(reference_word(begin, i)) for i in range(n_numbers)])


def gumbels(place, use, n_numbers):
    return -np.log(-np.log(units(place, use, n_numbers)))


def normals(place, use, n_numbers):
    numbers = units(place, use, 2 * n_numbers)
    return np.sqrt(-2 * np.log(numbers[::2])) * np.cos(2 * np.pi * numbers[1::2])


def descending(keys):
    """Return the order of the keys from the largest on, ties by lowest index."""
    return np.argsort(-np.asarray(keys), kind="stable")


def orders(n_items):
    return [list(order) for order in itertools.permutations(range(n_items))]


def discount(n_items):
    return 1 / np.log2(np.arange(n_items) + 2)


def dcg(relevance, ranking, cutoff=None):
    gains = 2.0 ** np.asarray(relevance)[ranking] - 1
    return float((gains * discount(len(gains)))[:cutoff].sum())


def ndcg(relevance, ranking, cutoff=None):
    best = dcg(relevance, descending(relevance), cutoff)
    return dcg(relevance, ranking, cutoff) / best if best > 0 else 1.0


def sum_loss(relevance, ranking):
    return float((np.asarray(relevance)[ranking] * np.arange(1, len(ranking) + 1)).sum())


def average_precision(relevance, ranking):
    hits = np.asarray(relevance)[ranking] > 0
    if not hits.any():
        return 1.0
    places = np.flatnonzero(hits) + 1
    return float(np.mean(np.arange(1, len(places) + 1) / places))


def auc_loss(relevance, ranking):
    shown = np.asarray(relevance)[ranking]
    n_pairs = (shown > 0).sum() * (shown == 0).sum()
    wrong = sum(shown[i] < shown[j] for i in range(len(shown)) for j in range(i + 1, len(shown)))
    return float(wrong / n_pairs) if n_pairs else 0.0


def all_lists(n_items, n_grades=2):
    return [np.array(r, float) for r in itertools.product(range(n_grades), repeat=n_items)]


def sigmoid(x):
    return 1 / (1 + math.exp(-x))
