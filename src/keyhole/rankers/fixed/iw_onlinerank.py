"""A12: OnlineRank on importance-weighted totals of what the first k showed."""

import math
from functools import cache
from typing import Any, ClassVar, NamedTuple, Unpack

import numpy as np

from keyhole.base.errors import FloatArray, check_number
from keyhole.bounds import ftpl, iw_onlinerank as bounds
from keyhole.contracts.arrays import ItemIndices, PerItem, PerSeen, Sorting, ranker_kernel
from keyhole.contracts.lists import Impression
from keyhole.contracts.rows import ANY_CROWD, DASH_DOT, Guarantee, Look
from keyhole.kernels.compiled import kernel, rare_kernel
from keyhole.kernels.draw import gumbels, scalar
from keyhole.kernels.sorting import sort_descending
from keyhole.rankers.fixed.base import FixedListRanker, GameFacts, gain_of
from keyhole.rankers.fixed.promote import lift_any

_NOISE, _COIN, _LIFTED = 0, 1, 2
_N_NODES = 64
_LARGEST_EXPONENT = 700.0
_SMOOTHNESS = 4.0


class IWOnlineRankParams(NamedTuple):
    """Settings; ``nodes`` and ``node_weights`` integrate over (0, 1), nodes by their logarithm."""

    k: int
    exponential: bool
    largest_gain: float
    schedule: bounds.Schedule
    nodes: Any
    node_weights: Any


class IWOnlineRankState(NamedTuple):
    """Estimated total gain of each item."""

    totals: PerItem


class IWOnlineRankWork(NamedTuple):
    """Scratch memory, and the note of the last ranking."""

    keys: PerItem
    scores: PerItem
    by_score: ItemIndices
    counts: PerSeen
    note: PerSeen
    sort: Sorting


@rare_kernel
def _time_scale(scores: Any, by_score: Any, item: int, k: int) -> float:
    """Return the power of v at which the chances of an item are smooth in v, with u = v^power.

    Once the k - 1 strongest others are shown, the item competes with the rest: by then u is about
    as far from 1 as one over one plus their strength.
    """
    n_others, rest = 0, 0.0
    for position in range(by_score.shape[0]):
        other = by_score[position]
        if other != item:
            n_others += 1
            if n_others >= k:
                rest += math.exp(min(scores[other] - scores[item], _LARGEST_EXPONENT))
    return _SMOOTHNESS / (1.0 + rest)


@kernel
def chance_on_top(scores: Any, order: Any, item: int) -> float:
    """Return how likely an item is to be first: in proportion to e^w."""
    total = 0.0
    for position in range(order.shape[0]):
        total += math.exp(min(scores[order[position]] - scores[item], _LARGEST_EXPONENT))
    return 1.0 / total


@rare_kernel
def chance_among(params: Any, scores: Any, by_score: Any, item: int, k: int, counts: Any) -> float:
    """Return how likely an item is to be among the first k of a Plackett-Luce draw.

    An item with uniform number u is preceded by item j with probability 1 - u^(e^(w_j - w_i)),
    independently of the others: the number of those before it has a Poisson binomial law, whose
    first k probabilities ``counts`` holds for each node.
    """
    if k == 1:
        return chance_on_top(scores, by_score, item)
    power = _time_scale(scores, by_score, item, k)
    among = 0.0
    for node in range(params.nodes.shape[0]):
        counts[0] = 1.0
        for place in range(1, k):
            counts[place] = 0.0
        log_v = params.nodes[node]
        for position in range(by_score.shape[0]):
            other = by_score[position]
            if other == item:
                continue
            gap = min(scores[other] - scores[item], _LARGEST_EXPONENT)
            later = math.exp(log_v * power * math.exp(gap))
            for place in range(k - 1, 0, -1):
                counts[place] = later * counts[place] + (1.0 - later) * counts[place - 1]
            counts[0] *= later
        few = 0.0
        for place in range(k):
            few += counts[place]
        among += params.node_weights[node] * power * math.exp((power - 1.0) * log_v) * few
    return among


@kernel
def chance_of_sight(mix: float, k: int, n_items: int, among_k: float, among_fewer: float) -> float:
    """Return how likely an item is to be seen, lifts included.

    A lift shows what is above position k all the same, what is at k unless another item comes
    there from below, and what is below with one chance in m.
    """
    at_k = among_k - among_fewer
    return among_k - mix * (1.0 - k / n_items) * at_k + mix * (1.0 - among_k) / n_items


@kernel
def _note_chances(params: Any, mix: float, shown: Any, work: Any) -> None:
    """Note how likely each item that is seen was to be seen."""
    n_items, k = shown.shape[0], params.k
    if 1 < k < n_items:
        sort_descending(work.scores, work.by_score, work.sort)
    for position in range(k):
        item, among, fewer = shown[position], 1.0, 1.0  # as where everything is seen
        if k == 1:
            among, fewer = chance_on_top(work.scores, shown, item), 0.0
        elif k < n_items:
            among = chance_among(params, work.scores, work.by_score, item, k, work.counts)
            fewer = chance_among(params, work.scores, work.by_score, item, k - 1, work.counts)
        work.note[position] = chance_of_sight(mix, k, n_items, among, fewer)


@kernel
def _rank(
    params: Any, state: Any, draw: Any, features: Any, out: Any, work: Any
) -> tuple[bool, float]:
    n_items, k = out.shape[0], params.k
    mix, rate = bounds.mix_and_rate(params.schedule, draw.round)
    gumbels(draw, _NOISE, work.keys)
    for item in range(n_items):
        work.scores[item] = rate * state.totals[item]
        work.keys[item] += work.scores[item]
    sort_descending(work.keys, out, work.sort)
    lifts = scalar(draw, draw.round, _COIN, 0) < mix
    if lifts:
        lift_any(draw, _LIFTED, out, k)
    _note_chances(params, mix, out, work)
    return lifts, work.note[0] if k == 1 else np.nan


@kernel
def _update(params: Any, state: Any, seen: Any, work: Any) -> None:
    for position in range(params.k):
        gain = gain_of(seen.values[position], params.exponential) / params.largest_gain
        state.totals[seen.ranking[position]] += gain / seen.note[position]


@kernel
def _greedy(params: Any, state: Any, features: Any, out: Any, work: Any) -> None:
    """Sort by estimated total gain."""
    sort_descending(state.totals, out, work.sort)


@cache  # eigenvalues take longer than all else that a ranker is made of
def nodes_of_the_unit() -> tuple[FloatArray, FloatArray]:
    """Return logarithms of 64 Gauss-Legendre nodes of (0, 1), and their weights."""
    places, weights = np.polynomial.legendre.leggauss(_N_NODES)
    return np.log((places + 1.0) / 2.0), weights / 2.0


class IWOnlineRank(FixedListRanker):
    """Sort totals of gains over chances to be seen, with Gumbel noise, and lift an item at times.

    Parameters
    ----------
    n_items, game
        See :class:`~keyhole.rankers.fixed.base.GameFacts`. The measure must have gains per item:
        SumLoss, PairwiseLoss (two grades), InversionLoss, DCG or Precision. With a horizon rate and
        lifts are tuned for it; without, and past it, they fall as t^(-2/3) and t^(-1/3).
    rate_scale, mix_scale
        Multiply the theory's eta, and its share gamma of rounds in which a uniform item is lifted
        to position k. On crowds that do not change, more of the first and less of the second is
        better: 5 and 0.15.

    Notes
    -----
    A12. Rankings are Plackett-Luce draws for eta times the totals; what is seen is divided by the
    exact marginal chance to be seen, in closed form for k = 1, by 64-node Gauss-Legendre
    integration over a Poisson binomial law for more: right to 1e-6 of itself, however far scores
    are apart, because the time scale of the integral is that of the item. Regret is at most
    C T^(2/3) + O(T^(1/3)) for any weights of positions that do not rise, DCG's among them, with
    C = 3 (c0 a m(m-k) f)^(1/3), and a factor 1.31 more without a horizon
    (docs/iw-onlinerank, :mod:`keyhole.bounds.iw_onlinerank`).

    Deviations: lifts end at position k, not on top, which costs less for k > 1 (and is the same
    for k = 1); rates are those of the proof by the Gumbel potential, whose second-order term is
    smaller by a factor of e than that of Ailon's argument.

    Examples
    --------
    >>> ranker = IWOnlineRank(20, horizon=10_000)
    >>> round(ranker.mix, 3), round(ranker.rate, 5)
    (0.338, 0.00154)
    """

    label = "IW-OnlineRank"
    look = Look("#CC79A7", DASH_DOT, "^")
    guarantee = Guarantee(
        2 / 3,
        f"{ANY_CROWD}, with the smallest constant that is proved here",
        "a theorem of this project",
    )
    needs_gain_per_item: ClassVar[bool] = True
    unknown_horizon = 0
    by_item: ClassVar[tuple[str, ...] | None] = ("totals",)
    kernel = ranker_kernel(IWOnlineRankState, IWOnlineRankWork, _rank, _update, _greedy)

    def __init__(
        self,
        n_items: int,
        *,
        rate_scale: float = 1.0,
        mix_scale: float = 1.0,
        **game: Unpack[GameFacts],
    ) -> None:
        super().__init__(n_items, **game)
        weights = bounds.falling_weights(self.measure, self.n_items, self.max_grade)
        schedule = bounds.best_schedule(
            bounds.constants(weights, self.k),
            self.horizon,
            mix_scale=check_number(mix_scale, "`mix_scale` of IWOnlineRank", above=0.0),
            rate_scale=check_number(rate_scale, "`rate_scale` of IWOnlineRank", above=0.0),
        )
        self.mix, self.rate = bounds.mix_and_rate(schedule, 0)
        self.params = IWOnlineRankParams(
            self.k,
            self.measure.exponential_gain,
            ftpl.largest_gain(self.measure, self.max_grade),
            schedule,
            *nodes_of_the_unit(),
        )

    @property
    def depth(self) -> int:
        return self.k

    def chances(self, impression: Impression) -> FloatArray | None:
        return impression.note[: self.k]
