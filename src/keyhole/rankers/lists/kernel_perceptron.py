"""A16: perceptrons A2 and A3 with a kernel, which keep a budget of support vectors."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from keyhole.base.errors import check_integer, check_number, check_top_grade
from keyhole.base.limits import check_memory
from keyhole.contracts.measures import Measure, MeasureParams
from keyhole.contracts.rankers import RankerKernel
from keyhole.contracts.rows import DASH_DOT, DOTTED, Look
from keyhole.kernels.compiled import assemble, kernel
from keyhole.measures import measure as named_measure
from keyhole.rankers.lists.base import EVERYTHING, ContextualRanker, rank_greedily
from keyhole.rankers.lists.gradient import by_item, show_greedily
from keyhole.rankers.lists.perceptron import induced_loss
from keyhole.rankers.lists.similarity import (
    SimilarityParams,
    SimilarityWork,
    copy_norm,
    scores_kernel,
    similarity_of,
    similarity_work,
)
from keyhole.surrogates import surrogate as named_surrogate
from keyhole.surrogates.base import Surrogate, SurrogateWork, surrogate_work
from keyhole.surrogates.slam import SLAM

_BUDGET = 1_000


class KernelParams(NamedTuple):
    """Settings of a kernelised perceptron."""

    n_features: int
    budget: int
    rate: float
    similarity: SimilarityParams
    surrogate: Any
    measure: MeasureParams


class SupportState(NamedTuple):
    """A ring of support vectors, their coefficients and squared norms, and how many ever came."""

    support: Any
    coefficients: Any
    norms: Any
    added: Any


class SupportWork(NamedTuple):
    """Scratch memory."""

    scores: Any
    gradient: Any
    relevance: Any
    gains: Any
    surrogate: SurrogateWork
    similarity: SimilarityWork


def _init(params: Any, n_items: int, n_features: int) -> SupportState:
    budget = params.budget
    return SupportState(
        np.zeros((budget, n_features)), np.zeros(budget), np.zeros(budget), np.zeros(1, np.int64)
    )


def _work(params: Any, n_items: int) -> SupportWork:
    return SupportWork(
        np.empty(n_items),
        np.empty(n_items),
        np.empty(n_items),
        np.empty(n_items),
        surrogate_work(n_items),
        similarity_work(params.n_features, n_items),
    )


def _score_by(similarity_scores: Any) -> Callable[..., None]:
    def score_list(params: Any, state: Any, features: Any, upcoming: Any, work: Any) -> None:
        count = min(state.added[0], params.budget)
        similarity_scores(
            params.similarity,
            state.support[:count],
            state.coefficients[:count],
            state.norms[:count],
            features,
            work.scores[: features.shape[0]],
            work.similarity,
        )

    return score_list


@kernel
def _add(params: Any, state: Any, features: Any, item: int, coefficient: float, work: Any) -> None:
    """Add a support vector, in the place of the oldest one if there is no other."""
    slot = state.added[0] % params.budget
    copy_norm(features, item, state.support[slot], work.rounded, work.norms)
    state.norms[slot] = work.norms[item]
    state.coefficients[slot] = coefficient
    state.added[0] += 1


def _update_by(gradient_of: Any, prepare: Any, score: Any) -> Callable[..., None]:
    def update(params: Any, state: Any, seen: Any, work: Any) -> None:
        n_items = seen.ranking.shape[0]
        scores, relevance = work.scores[:n_items], work.relevance[:n_items]
        gradient, gains = work.gradient[:n_items], work.gains[:n_items]
        by_item(seen.ranking, seen.values, relevance)
        offset, norm = prepare(params.measure, relevance, gains, work.surrogate)
        if score(params.measure, gains, offset, norm, seen.ranking) == 0.0:
            return
        gradient_of(params.surrogate, scores, relevance, gradient, work.surrogate)
        # By position, so that what is removed later does not depend on how items are numbered.
        for position in range(n_items):
            item = seen.ranking[position]
            if gradient[item] != 0.0:
                coefficient = -params.rate * gradient[item]
                _add(params, state, seen.features, item, coefficient, work.similarity)

    return update


class _KernelPerceptron(ContextualRanker):
    """A perceptron whose score of x is the sum of alpha_j K(x_j, x) over its support vectors."""

    def _set_up(
        self,
        measure: str | Measure,
        rate: float,
        chosen: Surrogate,
        similarity: tuple[str, SimilarityParams],
        budget: int | None,
        per_mistake: int,
    ) -> None:
        name = type(self).__name__
        loss = induced_loss(name, measure)
        update = assemble(_update_by, chosen.kernel.gradient, *loss.kernel)
        self.similarity, of_documents = similarity
        score_list = assemble(_score_by, scores_kernel(self.similarity))
        self.kernel = RankerKernel(_init, _work, show_greedily, update, rank_greedily, score_list)
        self.rate = rate
        self.budget = check_integer(
            max(_BUDGET, per_mistake) if budget is None else budget,
            f"`budget` of {name}, which adds up to {per_mistake} support vectors at a time,",
            at_least=per_mistake,
        )
        check_memory(8.0 * self.budget * (self.n_features + 2), f"`budget` of {self.budget}")
        self.params = KernelParams(
            self.n_features,
            self.budget,
            rate,
            of_documents,
            chosen.params(self.n_items),
            loss.params(self.n_items),
        )

    @property
    def depth(self) -> int:
        return EVERYTHING

    def written_by_update(self, n_items: int) -> Sequence[NDArray[Any]]:
        """Return the next places of the ring, or all where it begins again."""
        support, coefficients, norms, added = self.state
        first = int(added[0]) % self.budget
        end = first + n_items
        ring = slice(first, end) if end <= self.budget else slice(None)
        return support[ring], coefficients[ring], norms[ring], added


class KernelSLAMPerceptron(_KernelPerceptron):
    """The SLAM perceptron with a kernel: scores that are no linear function of the features.

    Parameters
    ----------
    n_features, n_items, seed, run
        See :class:`~keyhole.rankers.lists.base.ContextualRanker`.
    similarity, gamma, degree
        K(x, y): ``rbf`` exp(-gamma |x - y|^2), ``polynomial`` (1 + gamma x.y)^degree, or
        ``linear`` x.y, of documents divided by ``row_norm``. The smaller gamma, the
        further a document's relevance tells of others.
    budget
        Most support vectors to keep. Default: 1,000, or the longest list if that is longer.
    measure
        What mistakes are counted in: NDCG, NDCG@n or AP.
    rate
        eta. Default: 1 / (4 kappa R^2 v_max), R^2 being the largest K(x, x): safe but slow.
    row_norm, max_grade
        The largest norm of a document; and the top grade, for the default rate.

    Notes
    -----
    Algorithm 2 of [T16] in the space of the kernel (A16): whenever the list shown is not perfect,
    each document with a non-zero slope of the surrogate becomes a support vector, whose
    coefficient is -eta times the slope. A document that comes again is added again. Where the
    kernel separates the grades, B2 (with K(x, x) for the squared norm) bounds the mistakes, and
    so the support vectors: none comes after the last mistake.

    A full budget makes room by removing the oldest vector, as the Forgetron (Dekel,
    Shalev-Shwartz & Singer 2008) does, without its shrinking: that needs no search and no draw,
    forgets what a changing crowd has left behind, and treats all coefficients alike, which
    for A3 are all +-1. A removal moves the scorer by |alpha_j| sqrt(K(x_j, x_j)), and
    may raise its norm, so B2 holds up to the first removal only. The norm never exceeds the
    sum of these terms over the budget.

    Examples
    --------
    >>> KernelSLAMPerceptron(5, 20, measure="AP", similarity="polynomial").budget
    1000
    >>> KernelSLAMPerceptron(5, 20, budget=8)
    Traceback (most recent call last):
    ...
    keyhole.base.errors.InvalidInput: `budget` of KernelSLAMPerceptron, which adds up to 20 \
support vectors at a time, must be an integer of at least 20, got 8.
    """

    label = "Kernel SLAM perceptron"
    look = Look("#8A6A00", DASH_DOT, "^")

    def __init__(
        self,
        n_features: int,
        n_items: int,
        *,
        similarity: str = "rbf",
        gamma: float = 4.0,
        degree: int = 2,
        budget: int | None = None,
        measure: str | Measure = "NDCG@10",
        rate: float | None = None,
        row_norm: float = 1.0,
        max_grade: float = 1.0,
        seed: int = 0,
        run: int = 0,
    ) -> None:
        super().__init__(n_features, n_items, seed=seed, run=run)
        name = type(self).__name__
        given = named_measure(measure)
        form, largest = similarity_of(name, similarity, gamma, degree, row_norm)
        max_grade = check_top_grade(
            max_grade, f"`max_grade` of {name}", exponential=given.exponential_gain
        )
        slam = SLAM(measure=given.label)
        best = 1.0 / (4.0 * largest * slam.mistake_scale(self.n_items, max_grade=max_grade))
        rate = best if rate is None else check_number(rate, f"`rate` of {name}", above=0.0)
        self._set_up(given, rate, slam, (similarity, form), budget, per_mistake=self.n_items)


class KernelMaxViolationPerceptron(_KernelPerceptron):
    """The max-violation perceptron with a kernel: two support vectors per mistake.

    Parameters
    ----------
    n_features, n_items, seed, run
        See :class:`~keyhole.rankers.lists.base.ContextualRanker`.
    similarity, gamma, degree, row_norm, budget
        See :class:`KernelSLAMPerceptron`.
    measure
        What mistakes are counted in: NDCG, NDCG@n or AP.

    Notes
    -----
    Algorithm 3 of [T16] in the space of the kernel (A16), bound B3 with K(x, x) for the squared
    norm. Both documents of the most violated pair become support vectors, with coefficients 1
    and -1; another rate would scale all scores and change no ranking. A full budget
    removes the oldest, as in :class:`KernelSLAMPerceptron`.

    Examples
    --------
    >>> import numpy as np
    >>> from keyhole import Feedback, Query
    >>> ranker = KernelMaxViolationPerceptron(1, 3, similarity="rbf", budget=10)
    >>> query = Query(3, np.array([[-1.0], [0.0], [1.0]]))    # the one in the middle is relevant
    >>> for _ in range(3):
    ...     impression = ranker.rank(query)
    ...     ranker.update(impression, Feedback((impression.ranking == 1).astype(float)))
    >>> ranker.rank(query).ranking[0]
    np.int64(1)
    """

    label = "Kernel max-violation perceptron"
    look = Look("#882255", DOTTED, "v")

    def __init__(
        self,
        n_features: int,
        n_items: int,
        *,
        similarity: str = "rbf",
        gamma: float = 4.0,
        degree: int = 2,
        budget: int | None = None,
        measure: str | Measure = "NDCG@10",
        row_norm: float = 1.0,
        seed: int = 0,
        run: int = 0,
    ) -> None:
        super().__init__(n_features, n_items, seed=seed, run=run)
        form, _ = similarity_of(type(self).__name__, similarity, gamma, degree, row_norm)
        violated = named_surrogate("max_violation")
        self._set_up(measure, 1.0, violated, (similarity, form), budget, per_mistake=2)
