"""What recall knows of a list before it ranks: what is remembered, and what features say."""

import math
from typing import Any, NamedTuple

import numpy as np

from keyhole.kernels.compiled import kernel, rare_kernel
from keyhole.kernels.sorting import SortWork, sort_work
from keyhole.kernels.vectors import linear_scores
from keyhole.rankers.lists.recall_features import (
    EXTRA,
    FeatureWork,
    describe,
    feature_work,
    measure_columns,
)
from keyhole.rankers.lists.recall_memory import (
    LISTED,
    MEAN,
    PRIOR,
    SEEN,
    find,
    hash_row,
    new_memory,
)
from keyhole.rankers.lists.recall_model import N_PRIORS, mix_weights, new_model, variances

DUE, NEW, MEASURED, LEARNT = 0, 1, 2, 3
"""Of a header: how many scores are due; whether a list is new, measured, and was learnt from."""


class RecallParams(NamedTuple):
    """Settings, and tables that follow from them."""

    n_features: int
    k: int
    capacity: int
    id_column: int
    factors: Any
    drops: Any
    table: Any


class RecallState(NamedTuple):
    """What is remembered of documents, and what is known of features.

    ``keys``, ``counts`` and ``values`` are a :class:`Memory`; ``weights_by_prior`` to ``numbers``
    are a :class:`RecallModel`; ``peak`` is the largest number of each column, ``component`` the
    principal component with the squares of its scores and their count; ``clock`` counts lists.
    """

    keys: Any
    counts: Any
    values: Any
    weights_by_prior: Any
    guesses: Any
    covariances: Any
    trust: Any
    numbers: Any
    peak: Any
    component: Any
    component_squares: Any
    clock: Any


class RecallWork(NamedTuple):
    """Scratch memory: by document, by position seen, and by feature."""

    header: Any
    hashes: Any
    seen: Any
    listed: Any
    means: Any
    scores: Any
    by_features: Any
    keys: Any
    ordered: Any
    values: Any
    learnt: Any
    order: Any
    chosen: Any
    is_chosen: Any
    is_due: Any
    row: Any
    bits: Any
    weights: Any
    gain: Any
    shares: Any
    features: FeatureWork
    sort: SortWork


def new_state(params: Any, n_items: int, n_features: int) -> RecallState:
    """Return the state that has seen nothing."""
    start = np.full(n_features, 1.0 / math.sqrt(n_features))
    return RecallState(
        *new_memory(params.capacity),
        *new_model(n_features),
        np.zeros(n_features),
        start,
        np.ones(2),
        np.zeros(1, np.int64),
    )


def new_work(params: Any, n_items: int) -> RecallWork:
    """Allocate the scratch memory for lists of up to ``n_items``."""
    row, size = np.zeros(params.n_features), params.n_features + EXTRA
    return RecallWork(
        np.zeros(4, np.int64),
        np.zeros(n_items, np.uint64),
        np.empty(n_items),
        np.empty(n_items),
        np.empty(n_items),
        np.empty(n_items),
        np.empty(n_items),
        np.empty(n_items),
        np.empty(n_items),
        np.empty(n_items),
        np.zeros((min(params.k, n_items), 4)),
        np.empty(n_items, np.int64),
        np.empty(n_items, np.int64),
        np.zeros(n_items, np.bool_),
        np.zeros(n_items, np.bool_),
        row,
        row.view(np.uint64),
        np.empty(size),
        np.empty(size),
        np.empty(N_PRIORS),
        feature_work(params.n_features, n_items),
        sort_work(n_items),
    )


@kernel
def _look_up(params: Any, state: Any, features: Any, work: Any) -> None:
    """Find what is remembered of the documents of a list, and whose scores are due.

    Scores by features are worked out anew whenever a document was listed twice as often.
    """
    n_items, n_new, n_due = features.shape[0], 0, 0
    for item in range(n_items):
        hashed = hash_row(features[item], params.id_column, params.factors, work.row, work.bits)
        work.hashes[item] = hashed
        place = find(state, hashed)
        times = 0
        if place >= 0:
            times = state.counts[place, LISTED]
            work.seen[item], work.listed[item] = state.counts[place, SEEN], times
            work.means[item] = state.values[place, MEAN]
            work.by_features[item] = state.values[place, PRIOR]
        else:
            work.seen[item] = work.listed[item] = work.means[item] = 0.0
            n_new += 1
        work.is_due[item] = (times & (times + 1)) == 0
        n_due += 1 if work.is_due[item] else 0
    work.header[NEW] = 1 if 2 * n_new >= n_items else 0
    if work.header[NEW] == 1:  # all of a new list is looked at
        n_due = n_items
        for item in range(n_items):
            work.is_due[item] = True
    work.header[DUE] = n_due
    work.header[MEASURED] = work.header[LEARNT] = 0


@kernel
def measure_once(params: Any, state: Any, features: Any, work: Any) -> None:
    """Measure the columns of a list, once."""
    if work.header[MEASURED] == 0:
        measure_columns(features, work.hashes, params.id_column, state, work.features)
        work.header[MEASURED] = 1


@rare_kernel
def _score_features(params: Any, state: Any, features: Any, work: Any) -> None:
    """Score the documents that are due by their features, left in the scratch memory."""
    n_items = features.shape[0]
    measure_once(params, state, features, work)
    mix_weights(state, work.shares, work.weights)
    if work.header[DUE] == n_items:
        describe(features, 0, n_items, state, work.features)
        scores_by(work.weights, 0, n_items, work, work.by_features)
        return
    for item in range(n_items):
        if work.is_due[item]:
            describe(features, item, item + 1, state, work.features)
            scores_by(work.weights, item, item + 1, work, work.by_features)


@kernel
def scores_by(weights: Any, first: int, end: int, work: Any, out: Any) -> None:
    """Fill ``out`` with the scores of some described documents."""
    rows = work.features.rows[first:end]
    linear_scores(rows, weights, work.features.rounded, rows[:0], out[first:end])


@kernel
def prepare(params: Any, state: Any, features: Any, upcoming: Any, work: Any) -> None:
    """Score a list: what was seen of its documents, shrunk towards what features say."""
    _look_up(params, state, features, work)
    if work.header[DUE] > 0:
        _score_features(params, state, features, work)
    _, noise, lasting = variances(state)
    ratio = noise / lasting
    for item in range(features.shape[0]):
        seen, score = work.seen[item], work.by_features[item]
        work.scores[item] = score + seen / (seen + ratio) * (work.means[item] - score)
