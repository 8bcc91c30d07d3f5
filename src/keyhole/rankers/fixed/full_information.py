"""A5 and A8: the learners that see the relevance of every item."""

from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple, Unpack

import numpy as np

from keyhole.base.errors import IntArray, InvalidInput, check_choice, check_flag, check_number
from keyhole.bounds import choices, ftpl
from keyhole.contracts.arrays import Clock, PerItem, ranker_kernel
from keyhole.contracts.rows import ANY_CROWD, DOTTED, SOLID, Guarantee, Look, Question
from keyhole.kernels.compiled import assemble, kernel
from keyhole.kernels.sorting import sort_descending
from keyhole.rankers.fixed.base import (
    Epochs,
    FixedListRanker,
    GameFacts,
    Tuning,
    enter_epoch,
    epoch_of,
    epochs,
    gain_of,
)
from keyhole.rankers.fixed.subroutines import (
    SUBROUTINES,
    Proposal,
    TunedFor,
)


class FullInformationParams(NamedTuple):
    """Settings of a full-information learner."""

    epochs: Epochs
    exponential: bool


class FullInformationState(NamedTuple):
    """Total gain of each item in the epoch that ``clock`` names."""

    clock: Clock
    scores: PerItem


class FullInformationWork(NamedTuple):
    """Scratch memory."""

    zeros: PerItem
    proposal: Proposal


def _rank_by(propose: Any) -> Callable[..., tuple[bool, float]]:
    def rank(
        params: Any, state: Any, draw: Any, features: Any, out: Any, work: Any
    ) -> tuple[bool, float]:
        epoch = epoch_of(params.epochs, draw.round)
        scores = state.scores if epoch == state.clock[0] else work.zeros
        propose(params.epochs.rates[epoch], scores, draw, out, work.proposal)
        return False, np.nan

    return rank


@kernel
def _greedy(params: Any, state: Any, features: Any, out: Any, work: Any) -> None:
    sort_descending(state.scores, out, work.proposal.sort)


@kernel
def _update(params: Any, state: Any, seen: Any, work: Any) -> None:
    if not enter_epoch(params.epochs, seen.draw.round, state.clock, state.scores):
        return
    for position in range(seen.ranking.shape[0]):
        state.scores[seen.ranking[position]] += gain_of(seen.values[position], params.exponential)


class _FullInformation(FixedListRanker):
    needs_gain_per_item: ClassVar[bool] = True
    by_item: ClassVar[tuple[str, ...] | None] = ("scores",)

    def _set_up(
        self, subroutine: str, rate: float | None, eps_scale: float, spread: float, tight: bool
    ) -> None:
        name = type(self).__name__
        tight = check_flag(tight, f"`tight` of {name}")
        eps_scale = check_number(eps_scale, f"`eps_scale` of {name}", above=0.0)
        rate = None if rate is None else check_number(rate, f"`rate` of {name}", above=0.0)
        chosen = SUBROUTINES[subroutine]
        facts = TunedFor(
            self.n_items,
            self.n_items,
            1,
            ftpl.constants(self.measure, self.n_items, self.max_grade, tight=tight),
            ftpl.largest_gain(self.measure, self.max_grade),
            spread,
        )

        def tune(length: int) -> Tuning:
            best = chosen.rate(facts, length) if rate is None else rate
            return Tuning(rate=best / eps_scale)

        table = epochs(self.horizon, tune)
        self.rate = float(table.rates[0])
        rank = assemble(_rank_by, chosen.propose, inline=True)
        self.kernel = ranker_kernel(
            FullInformationState,
            FullInformationWork,
            rank,
            _update,
            _greedy,
        )
        self.params = FullInformationParams(table, self.measure.exponential_gain)

    @property
    def depth(self) -> int:
        return self.n_items


def _bound(question: Question, rounds: float) -> float:
    constants = ftpl.constants(question.measure, question.n_items, question.max_grade)
    return ftpl.full_information_bound(constants, rounds)


class FTPL(_FullInformation):
    """Follow the perturbed leader: sort total gains plus fresh uniform noise on [0, 1/epsilon].

    Parameters
    ----------
    n_items, game
        See :class:`~keyhole.rankers.fixed.base.GameFacts`; ``k`` is of no concern.
    rate
        epsilon. Default: sqrt(D / (R A T)).
    eps_scale
        Multiplies the perturbation.
    tight
        Tune with the tight constants of :func:`keyhole.bounds.ftpl.constants`.

    Notes
    -----
    The full-information baseline of [CT15] and [T16]; regret at most 2 sqrt(D R A T).

    Examples
    --------
    >>> round(FTPL(20, horizon=10_000).rate, 5)
    0.00224
    """

    label = "FTPL"
    look = Look("#000000", DOTTED, "D")
    guarantee = Guarantee(
        1 / 2, f"{ANY_CROWD}, seeing everything", "Chaudhuri & Tewari 2015", _bound
    )

    def __init__(
        self,
        n_items: int,
        *,
        rate: float | None = None,
        eps_scale: float = 1.0,
        tight: bool = False,
        **game: Unpack[GameFacts],
    ) -> None:
        super().__init__(n_items, **game)
        self._set_up("ftpl", rate, eps_scale, choices.spread(self.n_items), tight)


class OnlineRank(_FullInformation):
    """Sample a ranking so that u precedes v with probability sigmoid(w_u - w_v).

    Parameters
    ----------
    n_items, game
        See :class:`~keyhole.rankers.fixed.base.GameFacts`; ``k`` is of no concern.
    sampler
        ``plackett-luce``, ``quicksort`` or ``reverse-plackett-luce``: other laws of rankings
        with the same law of every pair.
    n_chosen
        Number of items chosen per round, if it is known; by default any binary values.
    rate
        eta. Default: n sqrt(log 2 / (T M)).
    eps_scale
        Divides eta, as it multiplies FTPL's perturbation.

    Notes
    -----
    Algorithm 1 of [Ai] with values r / max_grade (gains over the largest, for DCG): regret at
    most n sqrt(T M log 2) in the value-inversion loss (B9). Its guarantee is for losses over
    pairs (SumLoss, PairwiseLoss, InversionLoss); for DCG and Precision it is a heuristic.

    Examples
    --------
    >>> round(OnlineRank(5, horizon=20_000, n_chosen=1, measure="InversionLoss").rate, 5)
    0.01472
    """

    label = "OnlineRank"
    look = Look("#009E73", SOLID, "P")

    def __init__(
        self,
        n_items: int,
        *,
        sampler: str = "plackett-luce",
        n_chosen: int | None = None,
        rate: float | None = None,
        eps_scale: float = 1.0,
        **game: Unpack[GameFacts],
    ) -> None:
        super().__init__(n_items, **game)
        samplers = [name for name in SUBROUTINES if name != "ftpl"]
        check_choice(sampler, "`sampler` of OnlineRank", samplers)
        if n_chosen is not None and self.max_grade != 1.0:
            raise InvalidInput(
                "`n_chosen` of OnlineRank goes with max_grade=1: a choice is 0 or 1."
            )
        spread = choices.spread(self.n_items, n_chosen)
        self._set_up(sampler, rate, eps_scale, spread, tight=False)

    def settings_for(self, where: IntArray) -> dict[str, Any]:
        changed = super().settings_for(where)
        if self.settings["n_chosen"] is not None:
            changed["n_chosen"] = min(self.settings["n_chosen"], len(where))
        return changed
