"""Follow the perturbed leader with noise that answers to what was seen."""

import math
from typing import Annotated, Any, ClassVar, NamedTuple, Unpack

import numpy as np

from keyhole.base.errors import InvalidInput
from keyhole.bounds import adaptive_ftpl
from keyhole.contracts.arrays import Array, PerItem, ranker_kernel
from keyhole.contracts.rows import SOLID, Guarantee, Look, Question
from keyhole.kernels.compiled import kernel
from keyhole.kernels.sorting import sort_descending
from keyhole.rankers.fixed.base import Arrays, FixedListRanker, GameFacts
from keyhole.rankers.fixed.counting import Gains, gain_in_unit, gains_of
from keyhole.rankers.fixed.subroutines import Proposal, plackett_luce


class AdaptiveParams(NamedTuple):
    """How relevance becomes a gain, and c0, b and v0 of the theorem."""

    gains: Gains
    penalty: float
    slope: float
    first: float


class AdaptiveState(NamedTuple):
    """Total gain of each item, and what all rounds have moved."""

    scores: PerItem
    moved: Annotated[Any, Array((1,))]


class AdaptiveWork(NamedTuple):
    """Scratch memory."""

    proposal: Proposal


@kernel
def _rank(
    params: Any, state: Any, draw: Any, features: Any, out: Any, work: Any
) -> tuple[bool, float]:
    rate = math.sqrt(params.penalty / (2.0 * (params.first + state.moved[0])))
    plackett_luce(rate, state.scores, draw, out, work.proposal)
    return False, np.nan


@kernel
def _greedy(params: Any, state: Any, features: Any, out: Any, work: Any) -> None:
    sort_descending(state.scores, out, work.proposal.sort)


@kernel
def _update(params: Any, state: Any, seen: Any, work: Any) -> None:
    n_items = seen.ranking.shape[0]
    low, high, total, squares = 1.0, 0.0, 0.0, 0.0
    for position in range(n_items):
        gain = gain_in_unit(params.gains, seen.values[position])
        state.scores[seen.ranking[position]] += gain
        low, high = min(low, gain), max(high, gain)
        total += gain
        squares += gain * gain
    from_low = squares - 2.0 * low * total + n_items * low * low
    from_high = squares - 2.0 * high * total + n_items * high * high
    apart = max(min(from_low, from_high), 0.0)  # rounding could make it less
    state.moved[0] += min(params.first * (high - low) * (high - low), params.slope * apart)


def _bound(question: Question, rounds: float) -> float:
    constants = adaptive_ftpl.constants(question.measure, question.n_items, question.max_grade)
    return adaptive_ftpl.regret_bound(constants, rounds)


class AdaptiveFTPL(FixedListRanker):
    """Follow the perturbed leader with no more noise than what was seen asks for.

    Parameters
    ----------
    n_items, game
        See :class:`~keyhole.rankers.fixed.base.GameFacts`; horizon and ``k`` are of no concern. The
        measure must have gains per item: SumLoss, PairwiseLoss (two grades), InversionLoss, DCG or
        Precision.

    Notes
    -----
    A theorem of this project, proved in docs/adaptive-ftpl.md: items are sorted by total gain plus
    fresh Gumbel noise, divided by sqrt(c0 / (2 (v0 + V))), where V adds up how far the gains of
    each round were apart. Regret is at most 2 sqrt(2 c0 (v0 + V)), at every time and against any
    crowd, also one that reacts to what was shown.

    Examples
    --------
    >>> ranker = AdaptiveFTPL(3)
    >>> ranker.update(ranker.rank(), [1, 1, 1])
    >>> ranker.state.moved.tolist()
    [0.0]
    """

    label = "FTPL, adaptive"
    look = Look("#1B4F8F", SOLID, "d")
    guarantee = Guarantee(
        1 / 2,
        "against any crowd, also one that reacts, seeing everything, without knowing the horizon; "
        "less where gains are close to each other, rare, or rarely missing",
        "a theorem of this project",
        _bound,
    )
    needs_gain_per_item: ClassVar[bool] = True
    by_item: ClassVar[tuple[str, ...] | None] = ("scores",)
    kernel = ranker_kernel(AdaptiveState, AdaptiveWork, _rank, _update, _greedy)

    def __init__(self, n_items: int, **game: Unpack[GameFacts]) -> None:
        super().__init__(n_items, **game)
        c = adaptive_ftpl.constants(self.measure, self.n_items, self.max_grade)
        # Where all positions weigh the same, every list is as good, and no rate divides by 0.
        self.params = AdaptiveParams(gains_of(self), c.penalty, c.slope, max(c.first, 1e-9))

    @property
    def depth(self) -> int:
        return self.n_items

    def check_state(self, arrays: Arrays) -> None:
        if arrays["moved"][0] < 0.0:
            raise InvalidInput(
                f"`moved` of the state must be at least 0, got {arrays['moved'][0]}."
            )
