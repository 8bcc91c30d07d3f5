"""DBGD: a step towards a random candidate that has won against the current weights."""

import math
from typing import Annotated, Any, NamedTuple

import numpy as np

from keyhole.base.errors import check_number
from keyhole.contracts.arrays import (
    Array,
    ItemFlags,
    PerDocumentFeature,
    PerFeature,
    PerItem,
    SingleFeature,
    Sorting,
)
from keyhole.contracts.rows import DASHED, Look
from keyhole.kernels.compiled import kernel, rare_kernel
from keyhole.kernels.draw import scalar
from keyhole.kernels.laws import free_normals
from keyhole.kernels.vectors import linear_scores
from keyhole.rankers.lists.standardised import (
    StandardisedRanker,
    by_scores,
    sort_documents,
)

_DIRECTION, _COINS = 0, 1


class DBGDParams(NamedTuple):
    """How many documents are seen, how many are noted, how far candidates are, and the step."""

    n_features: int
    k: int
    n_noted: int
    distance: float
    rate: float


class DBGDState(NamedTuple):
    """The slopes."""

    slopes: PerFeature


class DBGDWork(NamedTuple):
    """Scratch memory: that of lists, both contenders' orders, and who placed what."""

    rows: PerDocumentFeature
    scores: PerItem
    keys: PerItem
    column: PerFeature
    rounded: SingleFeature
    sort: Sorting
    candidate: PerFeature
    orders: Annotated[Any, Array((2, "n_items"), np.int64)]
    is_placed: ItemFlags
    note: Annotated[Any, Array(("n_noted",))]


@rare_kernel
def _draw_direction(draw: Any, out: Any) -> None:
    """Fill ``out`` with a uniformly random direction of length 1."""
    free_normals(draw, _DIRECTION, out)
    length = 0.0
    for column in range(out.shape[0]):
        length += out[column] * out[column]
    length = math.sqrt(length)
    for column in range(out.shape[0]):
        out[column] /= length


@kernel
def _next_of(order: Any, place: int, is_placed: Any) -> int:
    """Return where the first document of an order, from a place on, is not placed yet."""
    while place < order.shape[0] and is_placed[order[place]]:
        place += 1
    return place


@rare_kernel
def _interleave(params: Any, draw: Any, out: Any, work: Any) -> None:
    """Let both contenders place their next document in turn: team-draft interleaving.

    ``work.note`` has 1 where the candidate placed one, -1 where the current weights did, and 0
    where both would have placed the same.
    """
    n_items = out.shape[0]
    current, candidate = work.orders[0, :n_items], work.orders[1, :n_items]
    for document in range(n_items):
        work.is_placed[document] = False
    position = at_current = at_candidate = 0
    turn_of_candidate = False
    while position < n_items:
        if position % 2 == 0:
            turn_of_candidate = scalar(draw, draw.round, _COINS, position) < 0.5
        else:
            turn_of_candidate = not turn_of_candidate
        at_current = _next_of(current, at_current, work.is_placed)
        at_candidate = _next_of(candidate, at_candidate, work.is_placed)
        mine, theirs = current[at_current], candidate[at_candidate]
        out[position] = theirs if turn_of_candidate else mine
        work.is_placed[out[position]] = True
        if position < params.n_noted:
            side = 1.0 if turn_of_candidate else -1.0
            work.note[position] = 0.0 if mine == theirs else side
        position += 1
    for later in range(n_items, params.n_noted):
        work.note[later] = 0.0


@kernel
def _rank(
    params: Any, state: Any, draw: Any, features: Any, out: Any, work: Any
) -> tuple[bool, float]:
    n_items = out.shape[0]
    _draw_direction(draw, work.candidate)
    for column in range(work.candidate.shape[0]):
        work.candidate[column] = state.slopes[column] + params.distance * work.candidate[column]
    keys, rows = work.keys[:n_items], work.rows[:n_items]
    linear_scores(rows, work.candidate, work.rounded, rows[:0], keys)
    sort_documents(work.scores, work.orders[0, :n_items], work.sort)
    sort_documents(keys, work.orders[1, :n_items], work.sort)
    _interleave(params, draw, out, work)
    return True, np.nan


@kernel
def _update(params: Any, state: Any, seen: Any, work: Any) -> None:
    lead = 0.0
    for position in range(min(params.k, seen.ranking.shape[0])):
        lead += seen.note[position] * seen.values[position]
    if lead > 0.0:
        _draw_direction(seen.draw, work.candidate)
        for column in range(state.slopes.shape[0]):
            state.slopes[column] += params.rate * work.candidate[column]


class DBGD(StandardisedRanker):
    """Dueling bandit gradient descent: step towards random candidates that win.

    Parameters
    ----------
    n_features, n_items, seed, run
        See :class:`~keyhole.rankers.lists.base.ContextualRanker`.
    k
        How many documents from the top are seen, all of which are learnt from.
    distance
        How far a candidate is from the current weights, delta of the paper.
    rate
        How far to go towards a candidate that has won, gamma of the paper.

    Notes
    -----
    Yue & Joachims (2009), "Interactively Optimizing Information Retrieval Systems as a Dueling
    Bandits Problem": every round compares the weights w to a candidate w + delta * u, u uniform on
    the sphere, and if the candidate wins, w becomes w + gamma * u. Regret is of order T^(3/4) for
    convex and smooth utilities, which rankings do not have.

    What differs: the paper is told who won. Here one list is shown in each round, interleaved by
    team draft (Radlinski, Kurup & Joachims 2008): in each pair of positions both contenders place
    one document, in random order. The candidate has won if its documents among the first k are
    worth more than those of the current weights. A document that both would have placed counts for
    neither, so that it adds no noise. With k = 1 one contender's document is seen, drawn by a coin:
    the candidate wins if it was its own and relevant, and never loses: a step is then a one-point
    estimate of the gradient. Weights are not projected onto a ball: only their direction matters
    to a list, and candidates come nearer as they grow. Features are standardised within each list.
    Who placed what travels with the impression. A round takes O(m d).

    Examples
    --------
    >>> from keyhole import Query
    >>> ranker = DBGD(1, 3, k=2)
    >>> query = Query(3, np.array([[10.0], [20.0], [90.0]]))
    >>> for _ in range(50):
    ...     shown = ranker.rank(query)
    ...     ranker.update(shown, (shown.ranking[:2] == 2).astype(float))
    >>> ranker.best(query)[0]
    2
    """

    label = "DBGD"
    look = Look("#AA4499", DASHED, "h")
    kernel = by_scores(DBGDState, DBGDWork, _rank, _update)

    def __init__(
        self,
        n_features: int,
        n_items: int,
        *,
        k: int = 1,
        distance: float = 1.0,
        rate: float = 0.05,
        seed: int = 0,
        run: int = 0,
    ) -> None:
        super().__init__(n_features, n_items, k, seed=seed, run=run)
        self.params = DBGDParams(
            self.n_features,
            self.k,
            min(self.k, self.n_items),
            check_number(distance, "`distance` of DBGD", above=0.0),
            check_number(rate, "`rate` of DBGD", above=0.0),
        )
