"""Features of a document as its list shows them: of any scale, without being told which.

A column is replaced by its logarithm once it has held numbers above 10, and mapped onto 0 to 1
within the list. A document then has of each column the mean of two numbers: how many deviations it
is above the mean of its list, and the normal deviate of its rank there. What the ranks of all
columns have in common, their first principal component over all lists, is a feature of its own.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from keyhole.kernels.compiled import kernel, rare_kernel
from keyhole.kernels.sorting import SortWork, sort_descending, sort_work
from keyhole.kernels.vectors import linear_scores

EXTRA = 4
"""Features besides the columns: the list's length, 1, the component, and an effect of the list."""
LENGTH, CONSTANT, COMPONENT, OF_LIST = 0, 1, 2, 3
REFERENCES = 32
"""Documents of a list, at most, by which the others are ranked."""
_LARGEST_PLAIN = 10.0
_USUAL_LOG_LENGTH = 3.0
_DEVIATE = (1.25331414, -1.56982563, 0.37715055, -1.50769185, 0.52839424)


class FeatureWork(NamedTuple):
    """Scratch memory: of columns, of documents, and matrices of both."""

    low: Any
    high: Any
    peak: Any
    logged: Any
    mean: Any
    scale: Any
    deviates: Any
    rows: Any
    component: Any
    direction: Any
    rounded: Any
    keys: Any
    references: Any
    sort: SortWork


def feature_work(n_features: int, n_items: int) -> FeatureWork:
    """Allocate the scratch memory for lists of up to ``n_items``."""
    columns = [np.empty(n_features) for _ in range(3)]
    return FeatureWork(
        *columns,
        np.empty(n_features, np.bool_),
        np.empty(n_features),
        np.empty(n_features),
        np.empty((n_items, n_features)),
        np.empty((n_items, n_features + EXTRA)),
        np.empty(n_items),
        np.empty(n_features),
        np.empty(n_features + EXTRA, np.float32),
        np.empty(n_items),
        np.empty(n_items, np.int64),
        sort_work(n_items),
    )


@kernel
def _deviate(share: float) -> float:
    """Return about the normal deviate of a rank: ``share`` goes from -1, lowest, to 1."""
    square = share * share
    above = _DEVIATE[0] + square * (_DEVIATE[1] + square * _DEVIATE[2])
    return share * above / (1.0 + square * (_DEVIATE[3] + square * _DEVIATE[4]))


@kernel
def _logarithm(number: float) -> float:
    return math.copysign(math.log(1.0 + abs(number)), number)


@rare_kernel
def _find_ranges(features: Any, peak: Any, column: int, work: Any) -> bool:
    """Find the range of every column, and return whether one of them needs its logarithm."""
    n_items, n_features = features.shape
    for index in range(n_features):
        work.low[index] = work.high[index] = features[0, index]
    for item in range(1, n_items):
        for index in range(n_features):
            number = float(features[item, index])
            work.low[index] = number if number < work.low[index] else work.low[index]
            work.high[index] = number if number > work.high[index] else work.high[index]
    if column >= 0:  # an id is no feature
        work.low[column] = work.high[column] = 0.0
    any_logged = False
    for index in range(n_features):
        largest = max(work.high[index], -work.low[index])
        work.peak[index] = max(peak[index], largest)
        work.logged[index] = work.peak[index] > _LARGEST_PLAIN
        if work.logged[index]:
            any_logged = True
            work.low[index] = _logarithm(work.low[index])
            work.high[index] = _logarithm(work.high[index])
        width = work.high[index] - work.low[index]
        work.high[index] = 1.0 / width if width > 0.0 else 0.0
        if not work.high[index] < np.inf:
            work.high[index] = 0.0
    return any_logged


@rare_kernel
def _scale_columns(features: Any, any_logged: bool, column: int, work: Any) -> None:
    """Map columns onto 0 to 1, and find mean and spread of each."""
    n_items, n_features = features.shape
    for index in range(n_features):
        work.mean[index] = work.scale[index] = 0.0
    for item in range(n_items):
        row = work.rows[item]
        for index in range(n_features):
            row[index] = features[item, index]
        if any_logged:
            for index in range(n_features):
                if work.logged[index]:
                    row[index] = _logarithm(row[index])
        if column >= 0:
            row[column] = 0.0
        for index in range(n_features):
            row[index] = (row[index] - work.low[index]) * work.high[index]
            work.mean[index] += row[index]
            work.scale[index] += row[index] * row[index]
    for index in range(n_features):
        work.mean[index] /= n_items
        variance = work.scale[index] / n_items - work.mean[index] * work.mean[index]
        work.scale[index] = 1.0 / math.sqrt(variance) if variance > 1e-12 else 0.0


@kernel
def _choose_references(hashes: Any, n_items: int, work: Any) -> int:
    """Take the documents by which all are ranked: of a long list those of the largest hashes."""
    references = work.references[:n_items]
    if n_items <= REFERENCES:
        for item in range(n_items):
            references[item] = item
        return n_items
    keys = work.keys[:n_items]
    for item in range(n_items):
        keys[item] = float(hashes[item])
    sort_descending(keys, references, work.sort)
    return REFERENCES


@rare_kernel
def _rank_columns(hashes: Any, n_items: int, work: Any) -> None:
    """Find the normal deviate of every document's rank in every column."""
    n_references = _choose_references(hashes, n_items, work)
    n_features = work.low.shape[0]
    largest = 1.0 - 1.0 / n_references
    for item in range(n_items):
        row, ranks = work.rows[item], work.deviates[item]
        for index in range(n_features):
            ranks[index] = 0.0
        for place in range(n_references):
            other = work.rows[work.references[place]]
            for index in range(n_features):
                ranks[index] += (1.0 if row[index] > other[index] else 0.0) - (
                    1.0 if row[index] < other[index] else 0.0
                )
        for index in range(n_features):
            share = ranks[index] / n_references
            share = min(max(share, -largest), largest)
            ranks[index] = _deviate(share)


@rare_kernel
def build(features: Any, hashes: Any, column: int, state: Any, work: Any) -> None:
    """Fill ``rows`` with what a list shows of its documents, and ``component`` with their scores.

    ``rows`` have the columns first, then the length of the list, 1, the component, and 0 for the
    effect of the list.
    """
    n_items, n_features = features.shape
    any_logged = _find_ranges(features, state.peak, column, work)
    _scale_columns(features, any_logged, column, work)
    _rank_columns(hashes, n_items, work)
    norm = 0.0
    for index in range(n_features):
        norm += state.component[index] * state.component[index]
    norm = math.sqrt(norm)
    for index in range(n_features):
        work.direction[index] = state.component[index] / norm
    linear_scores(
        work.deviates[:n_items], work.direction, work.rounded, work.deviates[:0], work.component
    )
    spread = math.sqrt(state.component_squares[0] / state.component_squares[1])
    length = math.log(float(n_items)) - _USUAL_LOG_LENGTH
    for item in range(n_items):
        row, ranks = work.rows[item], work.deviates[item]
        for index in range(n_features):
            z = (row[index] - work.mean[index]) * work.scale[index]
            row[index] = 0.5 * (z + ranks[index])
        row[n_features + LENGTH] = length
        row[n_features + CONSTANT] = 1.0
        row[n_features + COMPONENT] = work.component[item] / spread
        row[n_features + OF_LIST] = 0.0


@rare_kernel
def learn_component(n_items: int, state: Any, work: Any) -> None:
    """Add a new list to the principal component, and remember how large numbers have been.

    One step of the power method with the ranks of this list, which :func:`build` has found.
    """
    n_features = work.low.shape[0]
    squares = 0.0
    for item in range(n_items):
        score, ranks = work.component[item], work.deviates[item]
        squares += score * score
        share = score / (n_items * n_features)
        for index in range(n_features):
            state.component[index] += ranks[index] * share
    state.component_squares[0] += squares / n_items
    state.component_squares[1] += 1.0
    for index in range(n_features):
        state.peak[index] = work.peak[index]
