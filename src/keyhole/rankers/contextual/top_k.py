"""A6: RTop-kF on query-document lists, a gradient estimated from the first documents."""

from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

from keyhole.compiled import assemble, kernel
from keyhole.contracts import RankerKernel
from keyhole.draw import scalar, uniforms
from keyhole.errors import NotObservable, check_choice, check_integer, check_number
from keyhole.rankers.contextual.base import (
    ContextualRanker,
    linear_init,
    linear_work,
    rank_greedily,
    score_list,
    step_of,
)
from keyhole.rankers.contextual.linear import Step, descend
from keyhole.rankers.contextual.vectors import chain
from keyhole.sorting import sort_descending
from keyhole.surrogates import Surrogate
from keyhole.surrogates import surrogate as named_surrogate
from keyhole.surrogates.estimators import top_one_kernel, top_two_kernel
from keyhole.surrogates.propensities import set_propensity

_EXPLORE, _DOCUMENTS = 0, 1


class TopKParams(NamedTuple):
    """Settings of contextual RTop-kF."""

    n_features: int
    depth: int
    mix: float
    mix_power: float
    mismatch_scale: float
    lifted: bool
    step: Step
    surrogate: Any


@kernel
def _lift(params: Any, shown: Any, greedy: Any, in_top: Any) -> None:
    """Keep the top of ``shown`` and put the others in the order of ``greedy`` below it."""
    k = min(params.depth, shown.shape[0])
    for position in range(k):
        in_top[shown[position]] = True
    place = k
    for position in range(shown.shape[0]):
        if not in_top[greedy[position]]:
            shown[place] = greedy[position]
            place += 1
    for position in range(k):
        in_top[shown[position]] = False


@kernel
def _rank(
    params: Any, state: Any, draw: Any, features: Any, out: Any, work: Any
) -> tuple[bool, float]:
    n_items = out.shape[0]
    mix = params.mix * (draw.round + 1.0) ** -params.mix_power
    explored = scalar(draw, draw.round, _EXPLORE, 0) < mix
    greedy = work.order[:n_items] if explored else out
    rank_greedily(params, state, features, greedy, work)
    if explored:
        keys = work.keys[:n_items]
        uniforms(draw, _DOCUMENTS, keys)
        sort_descending(keys, out, work.surrogate.sort)
        if params.lifted:
            _lift(params, out, greedy, work.in_top)
    return explored, set_propensity(greedy, out, params.depth, mix, params.mismatch_scale)


def _update_by(estimate: Any) -> Callable[..., None]:
    def update(
        params: Any,
        state: Any,
        draw: Any,
        features: Any,
        ranking: Any,
        explored: bool,
        propensity: float,
        values: Any,
        work: Any,
    ) -> None:
        n_items = ranking.shape[0]
        scores, gradient = work.scores[:n_items], work.gradient[:n_items]
        estimate(params.surrogate, scores, ranking, values, propensity, gradient, work.surrogate)
        chain(features, gradient, work.descent)
        descend(params.step, draw.round, work.descent, state.weights, state.squares)

    return update


class ContextualRTopK(ContextualRanker):
    """Gradient descent on a surrogate estimated from the first one or two documents.

    Parameters
    ----------
    n_features, n_items, seed, run
        See :class:`~keyhole.rankers.contextual.base.ContextualRanker`.
    surrogate
        A name of SURROGATES whose gradient falls apart into terms of one document (k = 1) or
        two (k = 2): ``squared``, ``kl``, ``smooth_dcg``, ``ranksvm``, ...
    mix, mix_power
        A round explores with probability mix * t^-mix_power.
    exploration
        ``lifted``: a random top, the others by score. ``uniform``: a random ranking, as in
        the papers: the same propensities, and a worse list.
    mismatch_scale
        Multiplies the propensity of tops that are not greedy: less variance, some bias (R21).
    step, rate, power, row_norm, radius
        See :class:`~keyhole.rankers.contextual.gradient.Descent`. The defaults do well with every
        surrogate on all data tried (docs/contextual.md); the papers' (E5) are step="power",
        rate=0.01, mix_power=1/3.

    Notes
    -----
    Algorithm 5 of [T16], whose regret is of order T^(2/3) (B8). Estimates are unbiased
    (Lemma 25). Feedback that comes late is used at the scores of the time it comes: unbiased
    as well, because the propensity is that of the impression.

    Examples
    --------
    >>> ContextualRTopK(136, 100, surrogate="ranksvm").depth
    2
    >>> ContextualRTopK(136, 100, surrogate="listnet")
    Traceback (most recent call last):
    ...
    keyhole.errors.NotObservable: `surrogate` of ContextualRTopK must have a gradient of terms of \
one or two documents; that of listnet needs the relevance of all.
    """

    kernel: RankerKernel
    exploration_kinds: ClassVar[tuple[str, ...]] = ("uniform", "lifted")

    def __init__(
        self,
        n_features: int,
        n_items: int,
        *,
        surrogate: str | Surrogate = "kl",
        mix: float = 0.1,
        mix_power: float = 0.0,
        exploration: str = "lifted",
        mismatch_scale: float = 1.0,
        step: str = "adagrad",
        rate: float = 0.3,
        power: float = 2 / 3,
        row_norm: float = 1.0,
        radius: float | None = None,
        seed: int = 0,
        run: int = 0,
    ) -> None:
        super().__init__(n_features, n_items, seed=seed, run=run)
        name = type(self).__name__
        self.surrogate = named_surrogate(surrogate)
        if self.surrogate.order is None:
            raise NotObservable(
                f"`surrogate` of {name} must have a gradient of terms of one or two documents; "
                f"that of {self.surrogate.name} needs the relevance of all."
            )
        self.max_grade = self.surrogate.max_grade
        check_choice(exploration, f"`exploration` of {name}", self.exploration_kinds)
        make = top_one_kernel if self.surrogate.order == 1 else top_two_kernel
        update = assemble(_update_by, make(self.surrogate))
        self.kernel = RankerKernel(
            linear_init, linear_work, _rank, update, rank_greedily, score_list
        )
        self.params = TopKParams(
            self.n_features,
            check_integer(self.surrogate.order, "order", at_least=1),
            check_number(mix, f"`mix` of {name}", above=0.0, at_most=1.0),
            check_number(mix_power, f"`mix_power` of {name}", at_least=0.0),
            check_number(mismatch_scale, f"`mismatch_scale` of {name}", above=0.0),
            exploration == "lifted",
            step_of(name, step, rate, power, row_norm, radius),
            self.surrogate.params(self.n_items),
        )

    @property
    def depth(self) -> int:
        return self.params.depth
