"""LinUCB on documents."""

import math
from typing import Any

import numpy as np

from keyhole.contracts.rows import DASHED, Look
from keyhole.kernels.compiled import kernel
from keyhole.rankers.lists.ridge import (
    RidgeRanker,
    RidgeWork,
    deviation,
    learn_seen,
    ridge_init,
    turn,
)
from keyhole.rankers.lists.standardised import (
    by_scores,
    sort_documents,
)


@kernel
def _rank(
    params: Any, state: Any, draw: Any, features: Any, out: Any, work: Any
) -> tuple[bool, float]:
    width = params.width * deviation(state.errors)
    for document in range(out.shape[0]):
        variance = turn(state, work.rows[document], work)
        work.keys[document] = work.scores[document] + width * math.sqrt(variance)
    sort_documents(work.keys, out, work.sort)
    return True, np.nan


class LinUCB(RidgeRanker):
    """Sort documents by the upper confidence bounds of a linear regression.

    Parameters
    ----------
    n_features, n_items, seed, run
        See :class:`~keyhole.rankers.lists.base.ContextualRanker`.
    k
        How many documents from the top are seen, all of which are learnt from.
    width
        Standard deviations above the predicted relevance, alpha of the paper.
    penalty
        Of the squared weights.

    Notes
    -----
    LinUCB of Li, Chu, Langford & Schapire (2010), with one weight vector for all documents: score
    x'w + alpha sqrt(x' P x), w by ridge regression, P the inverse of its covariance matrix.

    What differs: all documents are ranked, by their bounds, and the first k are seen, of which
    each is a step of the regression; the paper plays one and sees it. Features are standardised
    within each list, with a constant beside them, so that their scale is of no concern. The
    bounds are multiplied by how wrong predictions have been, for grades of any size. The regret
    bound of the linear model (order sqrt(T) for the document on top, where relevance is linear in
    the features) is not claimed for lists: below position k there is none.

    A step takes O(d^2) for each document that is seen, and a list O(m d^2), because every
    document has a bound of its own.

    Examples
    --------
    >>> from keyhole import Query
    >>> ranker = LinUCB(1, 3)
    >>> query = Query(3, np.array([[10.0], [20.0], [90.0]]))
    >>> for _ in range(20):
    ...     shown = ranker.rank(query)
    ...     ranker.update(shown, float(shown.ranking[0] == 2))
    >>> ranker.best(query)[0]
    2
    """

    label = "LinUCB"
    look = Look("#332288", DASHED, ">")
    kernel = by_scores(ridge_init, RidgeWork, _rank, learn_seen)
