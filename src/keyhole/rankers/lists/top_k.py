"""A6: RTop-kF on query-document lists, a gradient estimated from the first documents."""

from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

from keyhole.base.errors import NotObservable, check_choice, check_integer, check_number
from keyhole.contracts.rankers import RankerKernel
from keyhole.contracts.rows import DASHED, Guarantee, Look
from keyhole.kernels.compiled import assemble, kernel
from keyhole.kernels.draw import scalar, uniforms
from keyhole.kernels.sorting import sort_descending
from keyhole.rankers.lists.base import (
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
from keyhole.surrogates.estimators import top_one_kernel, top_two_kernel
from keyhole.surrogates.inclusion import inclusion_kernel
from keyhole.surrogates.propensities import set_propensity

_EXPLORE, _DOCUMENTS, _PLACES = 0, 1, 2


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
def _mix(params: Any, round: int) -> float:
    """Return the probability with which a round explores."""
    return params.mix * (round + 1.0) ** -params.mix_power


@kernel
def _shuffle_documents(draw: Any, greedy: Any, out: Any, work: Any) -> None:
    """Fill ``out`` with the documents in random order."""
    keys = work.keys[: out.shape[0]]
    uniforms(draw, _DOCUMENTS, keys)
    sort_descending(keys, out, work.surrogate.sort)


@kernel
def _random_places(draw: Any, out: Any, work: Any) -> None:
    """Fill ``out`` with the places of a list in the random order of a round."""
    keys = work.keys[: out.shape[0]]
    for place in range(out.shape[0]):
        keys[place] = scalar(draw, draw.round, _PLACES, place)
    sort_descending(keys, out, work.surrogate.sort)


@kernel
def _shuffle_places(draw: Any, greedy: Any, out: Any, work: Any) -> None:
    """Fill ``out`` with the documents in random order, by drawing from places of ``greedy``.

    Which of them were at the top of ``greedy`` then follows from the draws of the round alone,
    even when the scores that it was sorted by are forgotten.
    """
    places = work.surrogate.order[: out.shape[0]]
    _random_places(draw, places, work)
    for position in range(out.shape[0]):
        out[position] = greedy[places[position]]


def _rank_by(shuffle: Any) -> Callable[..., tuple[bool, float]]:
    def rank(
        params: Any, state: Any, draw: Any, features: Any, out: Any, work: Any
    ) -> tuple[bool, float]:
        mix = _mix(params, draw.round)
        explored = scalar(draw, draw.round, _EXPLORE, 0) < mix
        greedy = work.order[: out.shape[0]] if explored else out
        rank_greedily(params, state, features, greedy, work)
        if explored:
            shuffle(draw, greedy, out, work)
            if params.lifted:
                _lift(params, out, greedy, work.in_top)
        return explored, set_propensity(greedy, out, params.depth, mix, params.mismatch_scale)

    return rank


def _estimate_by_propensity(estimate: Any) -> Callable[..., None]:
    def estimate_gradient(params: Any, scores: Any, seen: Any, out: Any, work: Any) -> None:
        estimate(
            params.surrogate, scores, seen.ranking, seen.values, seen.propensity, out,
            work.surrogate,
        )  # fmt: skip

    return estimate_gradient


def _estimate_by_places(estimate: Any) -> Callable[..., None]:
    def estimate_gradient(params: Any, scores: Any, seen: Any, out: Any, work: Any) -> None:
        places = work.order[: seen.ranking.shape[0]]
        if seen.explored:
            _random_places(seen.draw, places, work)
        else:
            for place in range(places.shape[0]):
                places[place] = place
        estimate(
            params.surrogate, scores, seen.ranking, seen.values, places, params.depth,
            _mix(params, seen.draw.round), params.mismatch_scale, out, work.surrogate,
        )  # fmt: skip

    return estimate_gradient


def _update_by(estimate: Any, step_down: Any) -> Callable[..., None]:
    def update(params: Any, state: Any, seen: Any, work: Any) -> None:
        n_items = seen.ranking.shape[0]
        scores, gradient = work.scores[:n_items], work.gradient[:n_items]
        if params.step.centred:
            scores = work.centred[:n_items]
            centre(work.scores[:n_items], scores)
        estimate(params, scores, seen, gradient, work)
        step_down(params, state, seen, gradient, work)

    return update


def _kernel_for(surrogate: Surrogate, k: int, step_down: Callable[..., None]) -> RankerKernel:
    """Return the kernel of a ranker that sees the first k documents."""
    if k == surrogate.order:  # what was shown is one term: its propensity is the impression's
        make = top_one_kernel if k == 1 else top_two_kernel
        shuffle: Any = _shuffle_documents
        estimate = assemble(_estimate_by_propensity, make(surrogate))
    else:
        shuffle = _shuffle_places
        estimate = assemble(_estimate_by_places, inclusion_kernel(surrogate))
    rank, update = assemble(_rank_by, shuffle), assemble(_update_by, estimate, step_down)
    return linear_kernel(rank, update)


class ContextualRTopK(ContextualRanker):
    """Gradient descent on a surrogate estimated from the first documents of a list.

    Parameters
    ----------
    n_features, n_items, seed, run
        See :class:`~keyhole.rankers.lists.base.ContextualRanker`.
    surrogate
        A name of SURROGATES whose gradient falls apart into terms of one document (order 1) or
        two (order 2): ``squared``, ``kl``, ``smooth_dcg``, ``ranksvm``, ...
    k
        How many documents from the top are seen, all of which are used. Default: the order of
        the surrogate, the fewest that do.
    mix, mix_power
        A round explores with probability mix * t^-mix_power.
    exploration
        ``lifted``: a random top, the others by score. ``uniform``: a random ranking, as in
        the papers: the same propensities, and a worse list.
    mismatch_scale
        Multiplies the propensity of tops that are not greedy: less variance, some bias (R21).
    step, rate, power, row_norm, radius, centred
        See :class:`~keyhole.rankers.lists.gradient.Descent`. With the defaults every surrogate
        was better than random lists on all data tried, which docs/contextual.md names; the papers'
        (E5) are step="power", rate=0.01, mix_power=1/3, centred=False.

    Notes
    -----
    Algorithm 5 of [T16], whose regret is of order T^(2/3) (B8). Estimates are unbiased
    (Lemma 25). Feedback that comes late is used at the scores of the time it comes: unbiased
    as well, because the propensity is that of the impression. That is the probability of the
    set of the first k documents, whatever k. Centred, it is Algorithm 5 on lists whose documents
    have mean zero, so B8 holds with R_D the norms of those, at most twice ``row_norm``.

    With k above the order each term of the gradient is divided by its own probability of being
    seen (:func:`~keyhole.surrogates.inclusion.inclusion_kernel`), which for a document is
    1 - gamma + gamma k / m or gamma k / m, as it was in the greedy top or not. A list explored
    is drawn from places of the greedy list, so that ``update`` can tell which from the draws of the
    round alone; it must therefore be given lists of a ranker with the same seed and run, as a
    log is. Lists that are no longer than k are seen whole (R32), and their gradients are exact.

    Examples
    --------
    >>> ContextualRTopK(136, 100, surrogate="ranksvm").depth
    2
    >>> ContextualRTopK(136, 100, surrogate="ranksvm", k=5).depth
    5
    >>> ContextualRTopK(136, 100, surrogate="listnet")
    Traceback (most recent call last):
    ...
    keyhole.base.errors.NotObservable: `surrogate` of ContextualRTopK must have a gradient of \
terms of one or two documents; that of listnet needs the relevance of all.
    """

    label = "Contextual RTop-kF"
    look = Look("#0072B2", DASHED, "s")
    guarantee = Guarantee(
        2 / 3,
        "in the surrogate loss that it descends, against the best linear scorer: not in the "
        "measure itself",
        "Algorithm 5 of Chaudhuri's thesis",
    )
    kernel: RankerKernel
    exploration_kinds: ClassVar[tuple[str, ...]] = ("uniform", "lifted")

    def __init__(
        self,
        n_features: int,
        n_items: int,
        *,
        surrogate: str | Surrogate = "kl",
        k: int | None = None,
        mix: float = 0.1,
        mix_power: float = 0.0,
        exploration: str = "lifted",
        mismatch_scale: float = 1.0,
        step: str = "adagrad",
        rate: float = 0.3,
        power: float = 2 / 3,
        row_norm: float = 1.0,
        radius: float | None = None,
        centred: bool = True,
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
        centred = centres(name, centred, self.surrogate)
        check_choice(exploration, f"`exploration` of {name}", self.exploration_kinds)
        order = self.surrogate.order
        where = f"`k` of {name} with the surrogate {self.surrogate.name}"
        k = order if k is None else check_integer(k, where, at_least=order)
        self.kernel = _kernel_for(self.surrogate, k, step_kernel(name, step))
        self.params = TopKParams(
            self.n_features,
            k,
            check_number(mix, f"`mix` of {name}", above=0.0, at_most=1.0),
            check_number(mix_power, f"`mix_power` of {name}", at_least=0.0),
            check_number(mismatch_scale, f"`mismatch_scale` of {name}", above=0.0),
            exploration == "lifted",
            step_of(name, step, rate, power, row_norm, radius, centred),
            self.surrogate.params(self.n_items),
        )

    @property
    def depth(self) -> int:
        return self.params.depth
