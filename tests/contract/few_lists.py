"""Lists that rankers of query-document lists are tried on: few, of one length or of many."""

import numpy as np

from keyhole.worlds.queries import Queries

NUMBERS = np.random.default_rng(8)
N_FEATURES, N_ITEMS = 4, 6


def _world(lengths):
    starts = np.concatenate([[0], np.cumsum(lengths)])
    features = NUMBERS.random((starts[-1], N_FEATURES))
    grades = np.floor(3 * features[:, 0] * NUMBERS.random(starts[-1]) * 1.5)
    return Queries(features, np.minimum(grades, 2), starts)


EQUAL = _world([N_ITEMS] * 40)
VARIED = _world([1, N_ITEMS, 2, 3, 1, 5, 4, 2] * 5)
SINGLE = Queries(EQUAL.features.astype(np.float32), EQUAL.params.relevance, EQUAL.params.starts)
