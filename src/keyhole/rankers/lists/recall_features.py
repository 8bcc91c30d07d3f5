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
from keyhole.kernels.vectors import linear_scores

EXTRA = 4
"""Features besides the columns: the list's length, 1, the component, and an effect of the list."""
LENGTH, CONSTANT, COMPONENT, OF_LIST = 0, 1, 2, 3
REFERENCES = 32
"""Documents of a list, at most, by which the others are ranked."""
_LARGEST_PLAIN = 10.0
_USUAL_LOG_LENGTH = 3.0
_LEAST_VARIANCE = 1e-12
_DEVIATE = (1.25331414, -1.56982563, 0.37715055, -1.50769185, 0.52839424)


class FeatureWork(NamedTuple):
    """Scratch memory: of columns, of documents, and matrices of both."""

    low: Any
    high: Any
    inverse: Any
    varies: Any
    peak: Any
    mean: Any
    scale: Any
    counts: Any
    logged: Any
    any_logged: Any
    direction: Any
    deviates: Any
    rows: Any
    component: Any
    rounded: Any
    references: Any


def feature_work(n_features: int, n_items: int) -> FeatureWork:
    """Allocate the scratch memory for lists of up to ``n_items``."""
    low, high, inverse, varies, peak, mean, scale = np.empty((7, n_features))
    return FeatureWork(
        low,
        high,
        inverse,
        varies,
        peak,
        mean,
        scale,
        np.empty(n_features, np.int32),
        np.empty(n_features, np.bool_),
        np.zeros(1, np.bool_),
        np.empty(n_features),
        np.empty((n_items, n_features)),
        np.empty((n_items, n_features + EXTRA)),
        np.empty(n_items),
        np.empty(n_features + EXTRA, np.float32),
        np.empty(REFERENCES, np.int64),
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


@kernel
def _find_ranges(features: Any, peak: Any, work: Any) -> bool:
    """Find the range of every column, and return whether one of them needs its logarithm."""
    n_items, n_features = features.shape
    low, high = work.low, work.high
    for index in range(n_features):
        low[index] = high[index] = features[0, index]
    for item in range(1, n_items):
        row = features[item]
        for index in range(n_features):
            number = float(row[index])
            low[index] = number if number < low[index] else low[index]
            high[index] = number if number > high[index] else high[index]
    any_logged = False
    for index in range(n_features):
        work.peak[index] = max(peak[index], high[index], -low[index])
        work.logged[index] = work.peak[index] > _LARGEST_PLAIN
        if work.logged[index]:
            any_logged = True
            low[index], high[index] = _logarithm(low[index]), _logarithm(high[index])
        width = high[index] - low[index]
        inverse = 1.0 / width if width > 0.0 else 0.0
        work.inverse[index] = inverse if inverse < np.inf else 0.0
    return any_logged


@rare_kernel
def measure_columns(features: Any, hashes: Any, column: int, state: Any, work: Any) -> None:
    """Find range, mean and spread of every column, and the documents by which others are ranked.

    The column of ids, if there is one, counts as one in which all documents are alike.
    """
    n_items, n_features = features.shape
    any_logged = _find_ranges(features, state.peak, work)
    if column >= 0:
        work.inverse[column] = 0.0
    work.any_logged[0] = any_logged
    low, inverse, sums, squares = work.low, work.inverse, work.mean, work.scale
    for index in range(n_features):
        sums[index] = squares[index] = 0.0
    for item in range(n_items):
        row = features[item]
        if any_logged:
            _add_logarithms(row, work)
            continue
        for index in range(n_features):
            number = (row[index] - low[index]) * inverse[index]
            sums[index] += number
            squares[index] += number * number
    for index in range(n_features):
        work.varies[index] = 1.0 if inverse[index] > 0.0 else 0.0
        mean = sums[index] / n_items
        variance = squares[index] / n_items - mean * mean
        work.mean[index] = mean
        work.scale[index] = 1.0 / math.sqrt(variance) if variance > _LEAST_VARIANCE else 0.0
    _choose_references(hashes, n_items, work.references)
    norm = 0.0
    for index in range(n_features):
        norm += state.component[index] * state.component[index]
    for index in range(n_features):
        work.direction[index] = state.component[index] / math.sqrt(norm)


@kernel
def _add_logarithms(row: Any, work: Any) -> None:
    """Add a document to the sums of columns some of which need their logarithms."""
    for index in range(row.shape[0]):
        number = _logarithm(row[index]) if work.logged[index] else float(row[index])
        number = (number - work.low[index]) * work.inverse[index]
        work.mean[index] += number
        work.scale[index] += number * number


@kernel
def _choose_references(hashes: Any, n_items: int, references: Any) -> None:
    """Take the documents by which all are ranked: of a long list those of the largest hashes."""
    n_taken = 0
    for item in range(n_items):
        place = n_taken
        while place > 0 and hashes[references[place - 1]] < hashes[item]:
            place -= 1
        if place < REFERENCES:
            n_taken = min(n_taken + 1, REFERENCES)
            for other in range(n_taken - 1, place, -1):
                references[other] = references[other - 1]
            references[place] = item


@kernel
def _rank_in_columns(features: Any, item: int, work: Any) -> None:
    """Find the normal deviate of a document's rank in every column.

    Four others at a time, of which those that are missing are the document itself: it is neither
    above nor below.
    """
    n_features, n_references = features.shape[1], min(features.shape[0], REFERENCES)
    row, counts, ranks = features[item], work.counts, work.deviates[item]
    for index in range(n_features):
        counts[index] = 0
    for place in range(0, n_references, 4):
        first, second = _reference(place, item, n_references, features, work)
        third, fourth = _reference(place + 2, item, n_references, features, work)
        for index in range(n_features):
            own = row[index]
            counts[index] += (
                _sign(own, first[index])
                + _sign(own, second[index])
                + _sign(own, third[index])
                + _sign(own, fourth[index])
            )
    largest = 1.0 - 1.0 / n_references
    for index in range(n_features):
        share = counts[index] / n_references * work.varies[index]
        ranks[index] = _deviate(min(max(share, -largest), largest))


@kernel
def _sign(own: float, other: float) -> int:
    """Return whether a number is above another one, 1, or below, -1."""
    return (1 if own > other else 0) - (1 if own < other else 0)


@kernel
def _reference(place: int, item: int, end: int, features: Any, work: Any) -> tuple[Any, Any]:
    """Return two rows by which others are ranked; the item's own where there are no more."""
    one = work.references[place] if place < end else item
    other = work.references[place + 1] if place + 1 < end else item
    return features[one], features[other]


@rare_kernel
def describe(features: Any, first: int, end: int, state: Any, work: Any) -> None:
    """Fill ``rows`` with what a measured list shows of some of its documents.

    A row has the columns first, then the length of the list, 1, the component, and 0 for the
    effect of the list.
    """
    n_items, n_features = features.shape
    for item in range(first, end):
        _rank_in_columns(features, item, work)
    ranks = work.deviates[first:end]
    linear_scores(ranks, work.direction, work.rounded, ranks[:0], work.component[first:end])
    spread = math.sqrt(state.component_squares[0] / state.component_squares[1])
    length = math.log(float(n_items)) - _USUAL_LOG_LENGTH
    for item in range(first, end):
        own, row, ranks_of_item = features[item], work.rows[item], work.deviates[item]
        for index in range(n_features):
            row[index] = own[index]
        for index in range(n_features if work.any_logged[0] else 0):
            if work.logged[index]:
                row[index] = _logarithm(row[index])
        for index in range(n_features):
            number = (row[index] - work.low[index]) * work.inverse[index]
            z = (number - work.mean[index]) * work.scale[index]
            row[index] = 0.5 * (z + ranks_of_item[index])
        row[n_features + LENGTH] = length
        row[n_features + CONSTANT] = 1.0
        row[n_features + COMPONENT] = work.component[item] / spread
        row[n_features + OF_LIST] = 0.0


@rare_kernel
def learn_component(n_items: int, state: Any, work: Any) -> None:
    """Add a new list to the principal component, and remember how large numbers have been.

    One step of the power method with the ranks of this list, which :func:`describe` has found.
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
