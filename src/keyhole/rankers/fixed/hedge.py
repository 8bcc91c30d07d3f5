"""A13: multiplicative weights over all m! rankings."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple, Unpack

import numpy as np

from keyhole.base.errors import check_integer, check_number
from keyhole.contracts.measures import MeasureParams, MeasureWork, measure_work
from keyhole.contracts.rankers import RankerKernel
from keyhole.contracts.rows import ANY_CROWD, DASHED, Guarantee, Look
from keyhole.kernels.compiled import assemble, kernel
from keyhole.rankers.fixed.base import (
    Epochs,
    GameFacts,
    Tuning,
    enter_epoch,
    epoch_of,
    epochs,
)
from keyhole.rankers.fixed.enumerated import (
    LARGEST_LIST,
    EnumeratedRanker,
    all_rankings,
    exponential_weights,
    largest_range,
    sample_ranking,
    show_least_loss,
)
from keyhole.rankers.fixed.subroutines import NOISE


class HedgeParams(NamedTuple):
    """Settings, all rankings, and what the measure's kernels read."""

    epochs: Epochs
    rankings: Any
    sign: float
    measure: MeasureParams


class HedgeState(NamedTuple):
    """Total loss of each ranking in the epoch that ``clock`` names."""

    clock: Any
    losses: Any


class HedgeWork(NamedTuple):
    """Scratch memory."""

    zeros: Any
    probabilities: Any
    relevance: Any
    gains: Any
    measure: MeasureWork


def _init(params: Any, n_items: int, n_features: int) -> HedgeState:
    return HedgeState(np.zeros(1, np.int64), np.zeros(params.rankings.shape[0]))


def _work(params: Any, n_items: int) -> HedgeWork:
    n_rankings = params.rankings.shape[0]
    return HedgeWork(
        np.zeros(n_rankings),
        np.empty(n_rankings),
        np.empty(n_items),
        np.empty(n_items),
        measure_work(n_items),
    )


@kernel
def _rank(
    params: Any, state: Any, draw: Any, features: Any, out: Any, work: Any
) -> tuple[bool, float]:
    epoch = epoch_of(params.epochs, draw.round)
    losses = state.losses if epoch == state.clock[0] else work.zeros
    exponential_weights(params.epochs.rates[epoch], losses, work.probabilities)
    sample_ranking(work.probabilities, params.rankings, draw, NOISE, out)
    return False, np.nan


def _update_by(prepare: Any, score: Any) -> Callable[..., None]:
    def update(params: Any, state: Any, seen: Any, work: Any) -> None:
        if not enter_epoch(params.epochs, seen.draw.round, state.clock, state.losses):
            return
        for position in range(seen.ranking.shape[0]):
            work.relevance[seen.ranking[position]] = seen.values[position]
        offset, norm = prepare(params.measure, work.relevance, work.gains, work.measure)
        for action in range(state.losses.shape[0]):
            state.losses[action] += params.sign * score(
                params.measure, work.gains, offset, norm, params.rankings[action]
            )

    return update


class Hedge(EnumeratedRanker):
    """Multiplicative weights over all rankings, for any measure, up to 7 items.

    Parameters
    ----------
    n_items, game
        See :class:`~keyhole.rankers.fixed.base.GameFacts`; ``k`` is of no concern.
    rate
        eta. Default: sqrt(8 log(m!) / T) over the largest range of the measure in a round,
        found by trying all lists of whole grades.

    Notes
    -----
    The textbook exponentially weighted forecaster: regret at most range * sqrt(T log(m!) / 2).
    It costs m! per round and is here to compare with (section 4 of [Ai]).

    Examples
    --------
    >>> Hedge(3, horizon=100, measure="AP").params.rankings.shape
    (6, 3)
    """

    label = "Hedge"
    look = Look("#44AA99", DASHED, "h")
    guarantee = Guarantee(
        1 / 2, f"{ANY_CROWD}, any measure, seeing everything", "exponential weights"
    )

    def __init__(
        self, n_items: int, *, rate: float | None = None, **game: Unpack[GameFacts]
    ) -> None:
        super().__init__(n_items, **game)
        check_integer(self.n_items, "`n_items` of Hedge", at_least=1, at_most=LARGEST_LIST)
        rate = None if rate is None else check_number(rate, "`rate` of Hedge", above=0.0)
        rankings = all_rankings(self.n_items)
        spread = largest_range(self.measure, self.n_items, self.max_grade)
        log_actions = math.log(max(len(rankings), 2))

        def tune(length: int) -> Tuning:
            best = math.sqrt(8.0 * log_actions / length) / spread
            return Tuning(rate=best if rate is None else rate)

        table = epochs(self.horizon, tune)
        self.rate = float(table.rates[0])
        update = assemble(_update_by, *self.measure.kernel)
        self.kernel = RankerKernel(_init, _work, _rank, update, show_least_loss)
        self.params = HedgeParams(
            table,
            rankings,
            1.0 if self.measure.is_loss else -1.0,
            self.measure.params(self.n_items),
        )

    @property
    def depth(self) -> int:
        return self.n_items
