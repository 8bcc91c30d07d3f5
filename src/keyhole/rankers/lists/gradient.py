"""Gradient descent on a surrogate where every relevance is seen (A13: online ListNet)."""

from collections.abc import Callable
from typing import Any, NamedTuple

from keyhole.contracts.rows import DASH_DOT, Look
from keyhole.kernels.compiled import assemble, kernel
from keyhole.rankers.lists.base import (
    EVERYTHING,
    ContextualRanker,
    centres,
    linear_kernel,
    rank_greedily,
    step_kernel,
    step_of,
)
from keyhole.rankers.lists.steps import Step, centre
from keyhole.surrogates import surrogate as named_surrogate
from keyhole.surrogates.base import Surrogate


class DescentParams(NamedTuple):
    """Settings of gradient descent."""

    n_features: int
    step: Step
    surrogate: Any


@kernel
def show_greedily(
    params: Any, state: Any, draw: Any, features: Any, out: Any, work: Any
) -> tuple[bool, float]:
    """Show the documents in the order of their scores."""
    rank_greedily(params, state, features, out, work)
    return False, 1.0


@kernel
def by_item(ranking: Any, values: Any, out: Any) -> None:
    """Fill ``out`` with the values by item that are given by position."""
    for position in range(ranking.shape[0]):
        out[ranking[position]] = values[position]


def _update_by(gradient_of: Any, step_down: Any) -> Callable[..., None]:
    def update(params: Any, state: Any, seen: Any, work: Any) -> None:
        n_items = seen.ranking.shape[0]
        scores, relevance = work.scores[:n_items], work.relevance[:n_items]
        gradient = work.gradient[:n_items]
        if params.step.centred:
            scores = work.centred[:n_items]
            centre(work.scores[:n_items], scores)
        by_item(seen.ranking, seen.values, relevance)
        gradient_of(params.surrogate, scores, relevance, gradient, work.surrogate)
        step_down(params, state, seen, gradient, work)

    return update


class Descent(ContextualRanker):
    """Online gradient descent on a surrogate, with the relevance of every document.

    Parameters
    ----------
    n_features, n_items, seed, run
        See :class:`~keyhole.rankers.lists.base.ContextualRanker`.
    surrogate
        A name of SURROGATES; ``listnet`` by default.
    step, rate, power
        ``adagrad`` (default, as in RTop-kF); ``power``: rate * t^-power (the papers' is
        rate=0.01, power=0.5 for documents of norm 1); or ``fixed``.
    row_norm
        The largest norm of a document: steps are made smaller by it (AdaGrad's) or its square, so
        that a rate means the same whatever the scale of the features.
    radius
        Project the weights onto the ball of this radius. None: do not.
    centred
        Learn from the features of a document less their mean over its list (default). That
        changes no ranking, for all scores of a list shift alike, but a surrogate that judges
        documents one by one (``hinge``, ``poisson``, ``kl``, ``squared``, ...) does not shift with
        them. Without it a list of mostly irrelevant documents lowers the weight of whatever
        documents have in common, and what is learnt first may be worse than random lists
        (docs/contextual.md). ``False``: as in the papers.

    Notes
    -----
    The full-feedback baseline of section 3.3 of [T16]. Centred, it is the same algorithm on
    lists whose documents have mean zero and norms of at most twice ``row_norm``.

    Examples
    --------
    >>> ranker = Descent(2, 3, rate=1.0)
    >>> import numpy as np
    >>> from keyhole import Feedback, Query
    >>> impression = ranker.rank(Query(3, np.array([[0.0, 1.0], [1.0, 0.0], [0.0, 0.0]])))
    >>> ranker.update(impression, Feedback(np.array([0.0, 1.0, 0.0])))
    >>> ranker.state.weights.argmax()
    np.int64(0)
    """

    label = "ListNet"
    look = Look("#009E73", DASH_DOT, "D")

    def __init__(
        self,
        n_features: int,
        n_items: int,
        *,
        surrogate: str | Surrogate = "listnet",
        step: str = "adagrad",
        rate: float = 0.3,
        power: float = 0.5,
        row_norm: float = 1.0,
        radius: float | None = None,
        centred: bool = True,
        seed: int = 0,
        run: int = 0,
    ) -> None:
        super().__init__(n_features, n_items, seed=seed, run=run)
        name = type(self).__name__
        self.surrogate = named_surrogate(surrogate)
        centred = centres(name, centred, self.surrogate)
        self.max_grade = self.surrogate.max_grade
        update = assemble(_update_by, self.surrogate.kernel.gradient, step_kernel(name, step))
        self.kernel = linear_kernel(show_greedily, update)
        self.params = DescentParams(
            self.n_features,
            step_of(name, step, rate, power, row_norm, radius, centred),
            self.surrogate.params(self.n_items),
        )

    @property
    def depth(self) -> int:
        return EVERYTHING
