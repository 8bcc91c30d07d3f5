"""Linear Thompson sampling on documents."""

from typing import Any

import numpy as np

from keyhole.contracts.rows import DASH_DOT, Look
from keyhole.kernels.compiled import kernel
from keyhole.kernels.laws import free_normals
from keyhole.kernels.vectors import linear_scores
from keyhole.rankers.lists.ridge import (
    RidgeRanker,
    RidgeWork,
    deviation,
    learn_seen,
    ridge_init,
)
from keyhole.rankers.lists.standardised import (
    by_scores,
    sort_documents,
)

_SAMPLE = 0


@kernel
def _rank(
    params: Any, state: Any, draw: Any, features: Any, out: Any, work: Any
) -> tuple[bool, float]:
    width = params.width * deviation(state.errors)
    free_normals(draw, _SAMPLE, work.column)
    linear_scores(state.root, work.column, work.rounded, state.root[:0], work.gain)
    for column in range(work.gain.shape[0]):
        work.gain[column] = state.slopes[column] + width * work.gain[column]
    keys, rows = work.keys[: out.shape[0]], work.rows[: out.shape[0]]
    linear_scores(rows, work.gain, work.rounded, rows[:0], keys)
    sort_documents(keys, out, work.sort)
    return True, np.nan


class LinearThompson(RidgeRanker):
    """Sort documents by a linear score whose weights are drawn from their posterior.

    Parameters
    ----------
    n_features, n_items, seed, run
        See :class:`~keyhole.rankers.lists.base.ContextualRanker`.
    k
        How many documents from the top are seen, all of which are learnt from.
    width
        Multiplies the standard deviation of the draw, v of the paper.
    penalty
        Of the squared weights: the precision of the prior.

    Notes
    -----
    Agrawal & Goyal (2013), "Thompson Sampling for Contextual Bandits with Linear Payoffs": weights
    are drawn from N(w, v^2 P), w by ridge regression and P the inverse of its covariance matrix.

    What differs: all documents are ranked by one draw, and the first k are seen, of which each is
    a step of the regression; the paper plays one and sees it. Features are standardised within each
    list, with a constant beside them, so that their scale is of no concern. v is ``width`` times
    how wrong predictions have been, far less than the paper's theorem asks for. So its bound (of
    order d^(3/2) sqrt(T) for the document on top, where relevance is linear in the features) is not
    claimed, and for what is below position k there is none. A list takes O(d^2 + m d).

    Examples
    --------
    >>> from keyhole import Query
    >>> ranker = LinearThompson(1, 3)
    >>> query = Query(3, np.array([[10.0], [20.0], [90.0]]))
    >>> for _ in range(20):
    ...     shown = ranker.rank(query)
    ...     ranker.update(shown, float(shown.ranking[0] == 2))
    >>> ranker.best(query)[0]
    2
    """

    label = "Linear Thompson sampling"
    look = Look("#56B4E9", DASH_DOT, "*")
    kernel = by_scores(ridge_init, RidgeWork, _rank, learn_seen)

    def __init__(
        self,
        n_features: int,
        n_items: int,
        *,
        k: int = 1,
        width: float = 0.3,
        penalty: float = 1.0,
        seed: int = 0,
        run: int = 0,
    ) -> None:
        super().__init__(n_features, n_items, k=k, width=width, penalty=penalty, seed=seed, run=run)
