"""A1, A2 and A3: perceptrons that learn from mistakes only."""

from collections.abc import Callable
from typing import Any, NamedTuple

from keyhole.base.errors import InvalidInput, check_flag, check_number, check_top_grade
from keyhole.contracts.measures import Measure, MeasureParams
from keyhole.contracts.rows import DASHED, SOLID, Look
from keyhole.kernels.compiled import assemble, kernel
from keyhole.kernels.vectors import chain
from keyhole.measures import measure as named_measure
from keyhole.rankers.lists.base import (
    EVERYTHING,
    ContextualRanker,
    linear_kernel,
)
from keyhole.rankers.lists.gradient import by_item, show_greedily
from keyhole.surrogates import surrogate as named_surrogate
from keyhole.surrogates.base import Surrogate
from keyhole.surrogates.slam import SLAM


class PerceptronParams(NamedTuple):
    """Settings of a perceptron."""

    n_features: int
    rate: float
    power: float
    by_loss: bool
    surrogate: Any
    measure: MeasureParams


class ClassifierParams(NamedTuple):
    """Settings of the classification perceptron."""

    n_features: int
    rate: float


def _update_by(gradient_of: Any, prepare: Any, score: Any) -> Callable[..., None]:
    def update(params: Any, state: Any, seen: Any, work: Any) -> None:
        n_items = seen.ranking.shape[0]
        scores, relevance = work.scores[:n_items], work.relevance[:n_items]
        gradient, gains = work.gradient[:n_items], work.keys[:n_items]
        by_item(seen.ranking, seen.values, relevance)
        offset, norm = prepare(params.measure, relevance, gains, work.surrogate)
        loss = score(params.measure, gains, offset, norm, seen.ranking)
        if loss == 0.0:
            return
        gradient_of(params.surrogate, scores, relevance, gradient, work.surrogate)
        chain(seen.features, gradient, work.descent)
        rate = params.rate * (seen.draw.round + 1.0) ** -params.power
        if params.by_loss:
            rate *= loss
        for column in range(state.weights.shape[0]):
            state.weights[column] -= rate * work.descent[column]

    return update


def induced_loss(name: str, measure: str | Measure) -> Measure:
    """Return the induced loss (M9) of NDCG, NDCG@n or AP."""
    given = named_measure(measure)
    if given.label == "AP":
        return named_measure("APLoss")
    if given.name == "NDCG":
        return named_measure(given.label.replace("NDCG", "NDCGLoss"))
    raise InvalidInput(f"`measure` of {name} must be NDCG, NDCG@n or AP, got {given.label}.")


class _Perceptron(ContextualRanker):
    def _set_up(
        self,
        measure: str | Measure,
        rate: float,
        chosen: Surrogate,
        power: float,
        by_loss: bool = False,
    ) -> None:
        name = type(self).__name__
        loss = induced_loss(name, measure)
        update = assemble(_update_by, chosen.kernel.gradient, *loss.kernel)
        self.kernel = linear_kernel(show_greedily, update)
        self.rate = check_number(rate, f"`rate` of {name}", above=0.0)
        self.params = PerceptronParams(
            self.n_features,
            self.rate,
            check_number(power, f"`power` of {name}", at_least=0.0),
            check_flag(by_loss, f"`by_loss` of {name}"),
            chosen.params(self.n_items),
            loss.params(self.n_items),
        )

    @property
    def depth(self) -> int:
        return EVERYTHING


class SLAMPerceptron(_Perceptron):
    """Step down the SLAM surrogate whenever the list shown is not perfect.

    Parameters
    ----------
    n_features, n_items, seed, run
        See :class:`~keyhole.rankers.lists.base.ContextualRanker`.
    measure
        What mistakes are counted in: NDCG, NDCG@n or AP.
    rate
        eta. Default: 1 / (4 kappa R^2 v_max), safe for documents of norm at most
        ``row_norm``, but slow; experiments try several.
    row_norm, max_grade
        R, and the top grade, for the default rate.
    power, margin, weighted_by
        Variants, without the guarantee B2: steps of rate * t^-power; the margin of a pair,
        ``unit`` (1) or ``grades`` (R_i - R_j); and the measure whose weights the surrogate has
        (default: ``measure``), such as NDCG for mistakes that are counted in NDCG@10.

    Notes
    -----
    Algorithm 2 of [T16] (A2), bound B2; kappa is the length of the longest list, or the cutoff.

    The own code of the author of [T16] has rate=1, power=0.5, margin="grades" and
    weighted_by="NDCG", and does better on noisy grades (docs/contextual.md). What is lost: B2 needs
    a fixed step, so with a power the number of mistakes has no bound, not even on lists that can
    be separated. Margins by grade leave the surrogate an upper bound on the loss if grades are
    whole, but a larger one, which B2 is then in terms of. The weights of another measure
    leave no upper bound on the loss that mistakes are counted in.

    Examples
    --------
    >>> SLAMPerceptron(5, 20, measure="AP").rate
    0.0125
    >>> SLAMPerceptron(5, 20, rate=1.0, power=0.5, margin="grades", weighted_by="NDCG").rate
    1.0
    """

    label = "SLAM perceptron"
    look = Look("#E69F00", SOLID, "^")

    def __init__(
        self,
        n_features: int,
        n_items: int,
        *,
        measure: str | Measure = "NDCG@10",
        rate: float | None = None,
        row_norm: float = 1.0,
        max_grade: float = 1.0,
        power: float = 0.0,
        margin: str = "unit",
        weighted_by: str | Measure | None = None,
        seed: int = 0,
        run: int = 0,
    ) -> None:
        super().__init__(n_features, n_items, seed=seed, run=run)
        given = named_measure(measure)
        row_norm = check_number(row_norm, "`row_norm` of SLAMPerceptron", above=0.0)
        max_grade = check_top_grade(
            max_grade, "`max_grade` of SLAMPerceptron", exponential=given.exponential_gain
        )
        weighted = given if weighted_by is None else named_measure(weighted_by)
        slam = SLAM(measure=weighted.label, margin=margin)
        best = 1.0 / (4.0 * row_norm**2 * slam.mistake_scale(self.n_items, max_grade=max_grade))
        self._set_up(given, best if rate is None else rate, slam, power)


class MaxViolationPerceptron(_Perceptron):
    """Step along the most violated pair whenever the list shown is not perfect.

    Parameters
    ----------
    n_features, n_items, seed, run
        See :class:`~keyhole.rankers.lists.base.ContextualRanker`.
    measure
        What mistakes are counted in: NDCG, NDCG@n or AP.
    rate
        eta; it scales the weights and changes no ranking.
    power, by_loss
        Variants, without the guarantee B3: steps of rate * t^-power, and steps multiplied by the
        loss of the list shown (1 - NDCG, 1 - NDCG@n or 1 - AP).

    Notes
    -----
    Algorithm 3 of [T16] (A3), bound B3. The own code of its author has power=0.5 and by_loss=True,
    which made little difference on noisy grades (docs/contextual.md). B3 adds up equal steps: with
    either the number of mistakes has no bound, not even on lists that can be separated.

    Examples
    --------
    >>> MaxViolationPerceptron(5, 20).rate
    1.0
    """

    label = "Max-violation perceptron"
    look = Look("#CC79A7", DASHED, "v")

    def __init__(
        self,
        n_features: int,
        n_items: int,
        *,
        measure: str | Measure = "NDCG@10",
        rate: float = 1.0,
        power: float = 0.0,
        by_loss: bool = False,
        seed: int = 0,
        run: int = 0,
    ) -> None:
        super().__init__(n_features, n_items, seed=seed, run=run)
        self._set_up(measure, rate, named_surrogate("max_violation"), power, by_loss)


@kernel
def _classify(params: Any, state: Any, seen: Any, work: Any) -> None:
    for position in range(seen.ranking.shape[0]):
        item = seen.ranking[position]
        sign = 1.0 if seen.values[position] > 0.0 else -1.0
        score = 0.0
        for column in range(state.weights.shape[0]):
            score += seen.features[item, column] * state.weights[column]
        if sign * score <= 0.0:
            for column in range(state.weights.shape[0]):
                state.weights[column] += params.rate * sign * seen.features[item, column]


class ClassificationPerceptron(ContextualRanker):
    """The perceptron on single documents, relevant against irrelevant, in the order shown.

    Parameters
    ----------
    n_features, n_items, seed, run
        See :class:`~keyhole.rankers.lists.base.ContextualRanker`.
    rate
        eta; it scales the weights and changes no ranking.

    Notes
    -----
    Algorithm 1 of [T16] (A1), bound B1.

    Examples
    --------
    >>> ClassificationPerceptron(5, 20).depth > 20
    True
    """

    label = "Perceptron"
    look = Look("#7A3B10", SOLID, "8")
    kernel = linear_kernel(show_greedily, _classify)

    def __init__(
        self, n_features: int, n_items: int, *, rate: float = 1.0, seed: int = 0, run: int = 0
    ) -> None:
        super().__init__(n_features, n_items, seed=seed, run=run)
        rate = check_number(rate, "`rate` of ClassificationPerceptron", above=0.0)
        self.params = ClassifierParams(self.n_features, rate)

    @property
    def depth(self) -> int:
        return EVERYTHING
