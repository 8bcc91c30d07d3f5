"""RECALL: what was seen of a document, what its features say of it, and looks by their value."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from keyhole.contracts import RankerKernel
from keyhole.errors import InvalidInput, check_integer
from keyhole.kernels.checking import all_finite
from keyhole.kernels.compiled import kernel, rare_kernel
from keyhole.kernels.draw import scalar, uniforms
from keyhole.kernels.sorting import SortWork, sort_descending, sort_work
from keyhole.kernels.vectors import linear_scores
from keyhole.limits import check_memory
from keyhole.rankers.fixed.lifting import value_table
from keyhole.rankers.lists.base import ContextualRanker
from keyhole.rankers.lists.recall_features import (
    EXTRA,
    FeatureWork,
    describe,
    feature_work,
    learn_component,
    measure_columns,
)
from keyhole.rankers.lists.recall_memory import (
    LAST,
    LISTED,
    MEAN,
    MOMENT,
    PRIOR,
    SEEN,
    WEIGHT,
    Memory,
    check_memory_of,
    find,
    find_or_forget,
    hash_row,
    multipliers,
    new_memory,
)
from keyhole.rankers.lists.recall_model import (
    FIRST_SIGHTS,
    FREEDOM,
    N_GUESSES,
    N_PRIORS,
    RESIDUALS,
    WITHIN,
    begin_list,
    is_finite,
    is_negligible,
    judge_priors,
    learn_relevance,
    mix_weights,
    new_model,
    shares_of_trust,
    variances,
)
from keyhole.rankers.lists.recall_value import choose_looks, drops, put_on_top

_TIES, _GUESS = 0, 1
_DUE, _NEW, _MEASURED, _LEARNT = 0, 1, 2, 3
_TIE = 1e-9
_CURIOSITY = 0.2
_LEAST_RATE = 0.05


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
    are a :class:`Model`; ``peak`` is the largest number of each column, ``component`` the
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


def _init(params: Any, n_items: int, n_features: int) -> RecallState:
    start = np.full(n_features, 1.0 / math.sqrt(n_features))
    return RecallState(
        *new_memory(params.capacity),
        *new_model(n_features),
        np.zeros(n_features),
        start,
        np.ones(2),
        np.zeros(1, np.int64),
    )


def _work(params: Any, n_items: int) -> RecallWork:
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
    work.header[_NEW] = 1 if 2 * n_new >= n_items else 0
    if work.header[_NEW] == 1:  # all of a new list is looked at
        n_due = n_items
        for item in range(n_items):
            work.is_due[item] = True
    work.header[_DUE] = n_due
    work.header[_MEASURED] = work.header[_LEARNT] = 0


@kernel
def _measure(params: Any, state: Any, features: Any, work: Any) -> None:
    """Measure the columns of a list, once."""
    if work.header[_MEASURED] == 0:
        measure_columns(features, work.hashes, params.id_column, state, work.features)
        work.header[_MEASURED] = 1


@rare_kernel
def _score_features(params: Any, state: Any, features: Any, work: Any) -> None:
    """Score the documents that are due by their features, left in the scratch memory."""
    n_items = features.shape[0]
    _measure(params, state, features, work)
    mix_weights(state, work.shares, work.weights)
    if work.header[_DUE] == n_items:
        describe(features, 0, n_items, state, work.features)
        _scores_by(work.weights, 0, n_items, work, work.by_features)
        return
    for item in range(n_items):
        if work.is_due[item]:
            describe(features, item, item + 1, state, work.features)
            _scores_by(work.weights, item, item + 1, work, work.by_features)


@kernel
def _scores_by(weights: Any, first: int, end: int, work: Any, out: Any) -> None:
    rows = work.features.rows[first:end]
    linear_scores(rows, weights, work.features.rounded, rows[:0], out[first:end])


@kernel
def _prepare(params: Any, state: Any, features: Any, upcoming: Any, work: Any) -> None:
    _look_up(params, state, features, work)
    if work.header[_DUE] > 0:
        _score_features(params, state, features, work)
    _, noise, lasting = variances(state)
    ratio = noise / lasting
    for item in range(features.shape[0]):
        seen, score = work.seen[item], work.by_features[item]
        work.scores[item] = score + seen / (seen + ratio) * (work.means[item] - score)


@rare_kernel
def _guess_best(params: Any, state: Any, draw: Any, order: Any, work: Any) -> int:
    """Return the position, k or below, of the document that a guess at the weights prefers.

    The guess is around the weights of one prior, drawn by trust.
    """
    n_items = order.shape[0]
    guess = min(int(scalar(draw, draw.round, _GUESS, 0) * N_GUESSES), N_GUESSES - 1)
    left, prior = scalar(draw, draw.round, _GUESS, 1), 0
    shares_of_trust(state, work.shares)
    while prior < N_PRIORS - 1 and left > work.shares[prior]:
        left -= work.shares[prior]
        prior += 1
    for index in range(work.weights.shape[0]):
        own = state.weights_by_prior[prior, index]
        work.weights[index] = own + _CURIOSITY * state.guesses[guess, index]
    _scores_by(work.weights, 0, n_items, work, work.values)
    best = params.k - 1
    for position in range(params.k, n_items):
        if work.values[order[position]] > work.values[order[best]]:
            best = position
    return best


@kernel
def _rank(
    params: Any, state: Any, draw: Any, features: Any, out: Any, work: Any
) -> tuple[bool, float]:
    n_items = out.shape[0]
    keys, order = work.keys[:n_items], work.order[:n_items]
    uniforms(draw, _TIES, keys)
    for item in range(n_items):
        keys[item] = work.scores[item] + _TIE * keys[item]
    sort_descending(keys, order, work.sort)
    n_chosen = 0
    if n_items > params.k:
        if work.header[_NEW] == 1:
            position = _guess_best(params, state, draw, order, work)
            if position >= params.k:
                work.chosen[0], n_chosen = position, 1
        else:
            n_chosen = choose_looks(params, variances(state), order, work)
    put_on_top(params.k, n_chosen, order, out, work)
    return n_chosen > 0, np.nan


@kernel
def _greedy(params: Any, state: Any, features: Any, out: Any, work: Any) -> None:
    sort_descending(work.scores[: out.shape[0]], out, work.sort)


@kernel
def _learn_one(params: Any, state: Any, seen: Any, position: int, several: bool, work: Any) -> None:
    """Learn the relevance of one document; what to remember of it is left in ``learnt``."""
    item, numbers = seen.ranking[position], state.numbers
    relevance = math.sqrt(seen.values[position])
    _, noise, lasting = variances(state)
    ratio, known = noise / lasting, work.learnt[position]
    count, mean = work.seen[item] + 1.0, work.means[item]
    if count == 1.0:
        error = relevance - work.by_features[item]
        numbers[RESIDUALS] += error * error
        numbers[FIRST_SIGHTS] += 1.0
    else:
        error = relevance - mean
        numbers[WITHIN] += error * error * (count - 1.0) / count
        numbers[FREEDOM] += 1.0
    mean += (relevance - mean) * max(1.0 / count, _LEAST_RATE)
    place = find(state, work.hashes[item])
    weight = moment = 0.0
    if place >= 0:
        weight, moment = state.values[place, WEIGHT], state.values[place, MOMENT]
    more = max(count * (1.0 + ratio) / (count + ratio) - weight, 0.0)
    change = (weight + more) * mean - moment
    if not is_negligible(more, change):
        if not work.is_due[item]:
            _measure(params, state, seen.features, work)
            describe(seen.features, item, item + 1, state, work.features)
        work.header[_LEARNT] = 1
        row = work.features.rows[item]
        if count == 1.0:
            judge_priors(state, row, relevance)
        learn_relevance(state, seen.draw, position, row, several, more, change, work.gain)
        weight, moment = weight + more, moment + change
    known[SEEN], known[MEAN + 1], known[WEIGHT + 1], known[MOMENT + 1] = count, mean, weight, moment


@kernel
def _remember(state: Any, seen: Any, k: int, work: Any) -> None:
    """Write down that documents were listed, and what was seen of the first k."""
    clock = state.clock[0]
    for item in range(seen.ranking.shape[0]):
        place = find_or_forget(state, work.hashes[item])
        if state.counts[place, LAST] != clock:  # a list may hold a document twice
            state.counts[place, LISTED] += 1
            state.counts[place, LAST] = clock
        state.values[place, PRIOR] = work.by_features[item]
    for position in range(k):
        place = find(state, work.hashes[seen.ranking[position]])
        if place >= 0:  # a list longer than the memory has forgotten its own documents
            known = work.learnt[position]
            state.counts[place, SEEN] = int(known[0])
            for index in range(3):
                state.values[place, MEAN + index] = known[1 + index]


@kernel
def _is_usable(state: Any, n_items: int, k: int, work: Any) -> bool:
    """Return whether all that was learnt from a list is finite."""
    usable = all_finite(work.by_features[:n_items]) and all_finite(state.numbers)
    for position in range(k):
        usable = usable and all_finite(work.learnt[position])
    if work.header[_NEW] == 1:
        usable = usable and all_finite(state.component)
    if work.header[_LEARNT] == 1:
        usable = usable and is_finite(state)
    return usable


@kernel
def _update(params: Any, state: Any, seen: Any, work: Any) -> None:
    n_items = seen.ranking.shape[0]
    k = min(params.k, n_items)
    state.clock[0] += 1
    if k > 1:  # one document cannot tell the effect of its list from noise
        begin_list(state, seen.draw)
    for position in range(k):
        _learn_one(params, state, seen, position, k > 1, work)
    if work.header[_NEW] == 1:
        learn_component(n_items, state, work.features)
    if _is_usable(state, n_items, k, work):
        _remember(state, seen, k, work)
    else:  # so that the update is refused, which must leave no trace in the memory
        state.numbers[RESIDUALS] = np.inf


class Recall(ContextualRanker):
    """RECALL: remembers documents, learns from features what it has not seen, looks by value.

    Parameters
    ----------
    n_features, n_items, seed, run
        See :class:`~keyhole.rankers.lists.base.ContextualRanker`.
    k
        How many documents from the top are seen.
    capacity
        How many documents are remembered, rounded up to a multiple of 8. A document that finds the
        eight places of its hash taken takes that of the one listed longest ago.
    id_column
        The column that holds the ids of documents, and no feature. Default: none, and a document
        is known by its whole row, so that the same document with other features is another one.

    Notes
    -----
    The relevance r of a document is taken to be sqrt(r) = features * weights + an effect of the
    document + noise. Means of what was seen are shrunk towards what features say, by the variances
    of the last two. A document below the first k is lifted there where the value of knowing it
    better, over as many lists as have held it, is more than what showing it is expected to cost,
    both for the discounts of DCG@10. Where half of a list was never listed before, what a guess at
    the weights prefers is lifted instead. docs/recall.md has the recipe, what each part is worth
    and what is forgotten when.

    It has no theorem. Nothing of the time of ranking is needed when feedback comes late, and a list
    whose feedback is lost counts as not listed.

    Examples
    --------
    >>> from keyhole.contracts import Query
    >>> ranker = Recall(2, 3)
    >>> documents = Query(3, [[0.1, 5.0], [0.7, 3.0], [0.2, 4.0]])
    >>> impression = ranker.rank(documents)
    >>> ranker.update(impression, 1)
    >>> ranker.best(documents)[0] == impression.items[0]
    True
    """

    kernel = RankerKernel(_init, _work, _rank, _update, _greedy, _prepare)

    def __init__(
        self,
        n_features: int,
        n_items: int,
        *,
        k: int = 1,
        capacity: int = 2**15,
        id_column: int | None = None,
        seed: int = 0,
        run: int = 0,
    ) -> None:
        super().__init__(n_features, n_items, seed=seed, run=run)
        size = self.n_features + EXTRA
        check_memory(16.0 * size * size, f"The covariances of {self.n_features} features")
        capacity = check_integer(capacity, "`capacity` of Recall", at_least=1)
        check_memory(64.0 * capacity, f"A memory of {capacity} documents")
        column = -1
        if id_column is not None:
            column = check_integer(
                id_column, "`id_column` of Recall", at_least=0, at_most=self.n_features - 1
            )
        self.params = RecallParams(
            self.n_features,
            check_integer(k, "`k` of Recall", at_least=1),
            capacity,
            column,
            multipliers(self.n_features),
            drops(),
            value_table(),
        )

    @property
    def depth(self) -> int:
        return self.params.k

    def written_by_update(self, n_items: int) -> Sequence[NDArray[Any]]:
        """Return all but the memory, which is written to only if the rest is finite."""
        parts: Sequence[NDArray[Any]] = self.state[len(Memory._fields) :]
        return parts

    def check_state(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        check_memory_of(arrays)
        sums = np.concatenate([arrays["numbers"], arrays["component_squares"]])
        if sums.min() < 0.0 or sums[[RESIDUALS, FIRST_SIGHTS, -2, -1]].min() <= 0.0:
            raise InvalidInput(
                f"`numbers` and `component_squares` of the state must be sums of squares and "
                f"their counts, got {sums.min()}."
            )
        for name, most in (("peak", np.inf), ("trust", 0.0)):
            low, high = arrays[name].min(), arrays[name].max()
            if high > most or (name == "peak" and low < 0.0):
                raise InvalidInput(
                    f"`{name}` of the state must be that of a Recall, got {low} to {high}."
                )
