"""PDGD: steps along pairs of documents, each weighted by how likely it was to be shown reversed."""

import math
from typing import Annotated, Any, NamedTuple

import numpy as np

from keyhole.base.errors import check_number
from keyhole.contracts.arrays import (
    Array,
    PerDocumentFeature,
    PerFeature,
    PerItem,
    SingleFeature,
    Sorting,
)
from keyhole.contracts.rows import SOLID, Look
from keyhole.kernels.compiled import kernel, rare_kernel
from keyhole.kernels.draw import gumbels
from keyhole.kernels.vectors import chain
from keyhole.rankers.lists.standardised import (
    StandardisedRanker,
    by_scores,
    sort_documents,
)

_NOISE = 0
_SEEN, _TOTAL = 0, 1
_LEAST = -500.0
"""The least exponent: what is less likely than its power is as good as never shown."""


class PDGDParams(NamedTuple):
    """How many documents are seen, how many of the first a pair may be of, and the step."""

    n_features: int
    k: int
    n_compared: int
    rate: float

    @property
    def n_noted(self) -> int:
        """How many numbers travel with an impression."""
        return 2 * self.n_compared


class PDGDState(NamedTuple):
    """The slopes; and how many documents were seen, with the sum of their relevance."""

    slopes: PerFeature
    seen: Annotated[Any, Array((2,))]


class PDGDWork(NamedTuple):
    """Scratch memory: that of lists, the note of the last ranking, and slopes by score."""

    rows: PerDocumentFeature
    scores: PerItem
    keys: PerItem
    column: PerFeature
    rounded: SingleFeature
    sort: Sorting
    note: Annotated[Any, Array(("n_noted",))]
    gradient: PerItem
    relevance: Annotated[Any, Array(("n_compared",))]


@kernel
def _rank(
    params: Any, state: Any, draw: Any, features: Any, out: Any, work: Any
) -> tuple[bool, float]:
    n_items, n_compared = out.shape[0], params.n_compared
    keys, scores = work.keys[:n_items], work.scores
    gumbels(draw, _NOISE, keys)
    highest = scores[0]
    for document in range(n_items):
        keys[document] += scores[document]
        highest = max(highest, scores[document])
    sort_documents(keys, out, work.sort)
    left = 0.0
    for position in range(n_items - 1, -1, -1):
        chance = math.exp(max(scores[out[position]] - highest, _LEAST))
        left += chance
        if position < n_compared:
            work.note[position] = chance
            work.note[n_compared + position] = left
    for position in range(n_items, n_compared):
        work.note[position] = work.note[n_compared + position] = 1.0
    return True, np.nan


@kernel
def _reversed_weight(note: Any, n_compared: int, high: int, low: int) -> float:
    """Return the probability of the list with a pair reversed, among that and the list shown.

    Between the two positions, what is left to draw from has the one in place of the other.
    """
    ratio = 1.0
    for position in range(high + 1, low + 1):
        left = note[n_compared + position]
        ratio *= left / (left - note[low] + note[high])
    return ratio / (1.0 + ratio)


@rare_kernel
def _add_pairs(
    ranking: Any, relevance: Any, scores: Any, note: Any, n_compared: int, gradient: Any
) -> None:
    """Fill the gradient by score with what the pairs of the first documents say."""
    for document in range(gradient.shape[0]):
        gradient[document] = 0.0
    for high in range(min(n_compared, gradient.shape[0])):
        for low in range(high + 1, min(n_compared, gradient.shape[0])):
            one, other = ranking[high], ranking[low]
            odds = math.exp(-abs(scores[one] - scores[other]))
            slope = odds / ((1.0 + odds) * (1.0 + odds)) * (relevance[high] - relevance[low])
            slope *= _reversed_weight(note, n_compared, high, low)
            gradient[one] += slope
            gradient[other] -= slope


@kernel
def _update(params: Any, state: Any, seen: Any, work: Any) -> None:
    n_items = seen.ranking.shape[0]
    n_seen, n_compared = min(params.k, n_items), min(params.n_compared, n_items)
    gradient, relevance = work.gradient[:n_items], work.relevance
    for position in range(n_seen):
        state.seen[_SEEN] += 1.0
        state.seen[_TOTAL] += seen.values[position]
        relevance[position] = seen.values[position]
    for position in range(n_seen, n_compared):
        relevance[position] = state.seen[_TOTAL] / state.seen[_SEEN]
    _add_pairs(seen.ranking, relevance, work.scores, seen.note, params.n_compared, gradient)
    chain(work.rows[:n_items], gradient, work.column)
    for column in range(state.slopes.shape[0]):
        state.slopes[column] += params.rate * work.column[column]


class PDGD(StandardisedRanker):
    """Pairwise differentiable gradient descent on lists drawn from a Plackett-Luce model.

    Parameters
    ----------
    n_features, n_items, seed, run
        See :class:`~keyhole.rankers.lists.base.ContextualRanker`.
    k
        How many documents from the top are seen, all of which are learnt from.
    rate
        Length of a step.

    Notes
    -----
    Oosterhuis & de Rijke (2018), "Differentiable Unbiased Online Learning to Rank", with a linear
    score f. Lists are drawn from the Plackett-Luce model of f. A document that is preferred to
    another moves the weights along rho * d/dw P(first before second), where rho is the probability
    of the list with the two reversed, divided by that of both lists: what is shown in one order far
    more often than in the other counts less.

    What differs: the paper infers preferences from clicks, of a clicked document over those above
    it and the first one below that were not clicked. Here the relevance of the first k is seen: the
    more relevant of two is preferred, by the difference of their grades. The first document below
    them takes part as well, as the paper's does; nothing is seen of it, so that it is taken to have
    the mean relevance of all documents that were seen so far. With k = 1 that is the only pair.
    Features are standardised within each list. rho is that of the time of ranking, which travels
    with the impression. The paper claims unbiasedness of preferences, and no regret bound. A
    round takes O(m d + k^3).

    Examples
    --------
    >>> from keyhole import Query
    >>> ranker = PDGD(1, 3, k=2)
    >>> query = Query(3, np.array([[10.0], [20.0], [90.0]]))
    >>> for _ in range(50):
    ...     shown = ranker.rank(query)
    ...     ranker.update(shown, (shown.ranking[:2] == 2).astype(float))
    >>> ranker.best(query)[0]
    2
    """

    label = "PDGD"
    look = Look("#44AA99", SOLID, "P")
    kernel = by_scores(PDGDState, PDGDWork, _rank, _update)

    def __init__(
        self,
        n_features: int,
        n_items: int,
        *,
        k: int = 1,
        rate: float = 0.3,
        seed: int = 0,
        run: int = 0,
    ) -> None:
        super().__init__(n_features, n_items, k, seed=seed, run=run)
        self.params = PDGDParams(
            self.n_features,
            self.k,
            min(self.k + 1, self.n_items),
            check_number(rate, "`rate` of PDGD", above=0.0),
        )
