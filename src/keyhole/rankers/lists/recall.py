"""RECALL: what was seen of a document, what its features say of it, and looks by their value."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from keyhole.base.errors import InvalidInput, check_integer
from keyhole.base.limits import check_memory
from keyhole.contracts.rankers import RankerKernel
from keyhole.contracts.rows import SOLID, Guarantee, Look
from keyhole.kernels.checking import all_finite
from keyhole.kernels.compiled import kernel
from keyhole.kernels.draw import scalar, uniforms
from keyhole.kernels.sorting import sort_descending
from keyhole.rankers.fixed.exploration_value import value_table
from keyhole.rankers.lists.base import ContextualRanker
from keyhole.rankers.lists.recall_features import EXTRA, describe, learn_component
from keyhole.rankers.lists.recall_lists import (
    LEARNT,
    NEW,
    RecallParams,
    measure_once,
    new_state,
    new_work,
    prepare,
    scores_by,
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
    multipliers,
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
    shares_of_trust,
    variances,
)
from keyhole.rankers.lists.recall_value import choose_looks, drops, put_on_top

_TIES, _GUESS = 0, 1
_TIE = 1e-9
_CURIOSITY = 0.2
_LEAST_RATE = 0.05


@kernel
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
    scores_by(work.weights, 0, n_items, work, work.values)
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
        if work.header[NEW] == 1:
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
            measure_once(params, state, seen.features, work)
            describe(seen.features, item, item + 1, state, work.features)
        work.header[LEARNT] = 1
        row = work.features.rows[item]
        if count == 1.0:
            judge_priors(state, row, relevance)
        learn_relevance(state, seen.draw, position, row, several, more, change, work.gain)
        weight, moment = weight + more, moment + change
    known[0], known[1 + MEAN], known[1 + WEIGHT], known[1 + MOMENT] = count, mean, weight, moment


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
    if work.header[NEW] == 1:
        usable = usable and all_finite(state.component)
    if work.header[LEARNT] == 1:
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
    if work.header[NEW] == 1:
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
    >>> from keyhole import Query
    >>> ranker = Recall(2, 3)
    >>> documents = Query(3, [[0.1, 5.0], [0.7, 3.0], [0.2, 4.0]])
    >>> impression = ranker.rank(documents)
    >>> ranker.update(impression, 1)
    >>> ranker.best(documents)[0] == impression.items[0]
    True
    """

    label = "Recall"
    look = Look("#D55E00", SOLID, "o")
    guarantee = Guarantee(
        None,
        "remembers documents and learns from features; no rate against an adversary, on lists "
        "that recur ahead of ListNet that is shown all labels, and behind recall that is",
        "measured, not proved",
    )
    kernel = RankerKernel(new_state, new_work, _rank, _update, _greedy, prepare)

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
