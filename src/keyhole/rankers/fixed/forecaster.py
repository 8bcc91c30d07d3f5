"""A9: the forecaster for any game whose losses can be written in what is seen."""

import itertools
import math
from typing import Any, NamedTuple, Unpack

import numpy as np

from keyhole.base.errors import (
    FloatArray,
    IntArray,
    InvalidInput,
    NotObservable,
    check_integer,
    check_number,
)
from keyhole.contracts.measures import Measure
from keyhole.contracts.rankers import RankerKernel
from keyhole.contracts.rows import ANY_CROWD, DASH_DOT, Guarantee, Look
from keyhole.kernels.compiled import kernel
from keyhole.rankers.fixed.base import (
    Epochs,
    GameFacts,
    Tuning,
    enter_epoch,
    epoch_of,
    epochs,
)
from keyhole.rankers.fixed.enumerated import (
    EnumeratedRanker,
    all_rankings,
    exponential_weights,
    grades_up_to,
    sample_ranking,
    show_least_loss,
)
from keyhole.rankers.fixed.subroutines import NOISE

_LARGEST_LIST = 5
_LARGEST_GAME = 2**16
_RESIDUAL = 1e-9


class ForecasterParams(NamedTuple):
    """``coefficients[ranking, set, pattern]`` writes a ranking's loss in what the top-k sets show.

    Ranking ``i`` shows set ``set_of[i]``; its pattern is read off ``sets[set]`` in base
    ``n_grades``.
    """

    epochs: Epochs
    rankings: Any
    set_of: Any
    sets: Any
    coefficients: Any
    n_grades: int


class ForecasterState(NamedTuple):
    """Estimated total loss of each ranking in the epoch that ``clock`` names."""

    clock: Any
    losses: Any


class ForecasterWork(NamedTuple):
    """Scratch memory."""

    zeros: Any
    probabilities: Any
    relevance: Any


def _init(params: Any, n_items: int, n_features: int) -> ForecasterState:
    return ForecasterState(np.zeros(1, np.int64), np.zeros(params.rankings.shape[0]))


def _work(params: Any, n_items: int) -> ForecasterWork:
    n_rankings = params.rankings.shape[0]
    return ForecasterWork(np.zeros(n_rankings), np.empty(n_rankings), np.empty(n_items))


@kernel
def _rank(
    params: Any, state: Any, draw: Any, features: Any, out: Any, work: Any
) -> tuple[bool, float]:
    epoch = epoch_of(params.epochs, draw.round)
    losses = state.losses if epoch == state.clock[0] else work.zeros
    exponential_weights(params.epochs.rates[epoch], losses, work.probabilities)
    mix = params.epochs.mixes[epoch]
    for action in range(losses.shape[0]):
        work.probabilities[action] *= 1.0 - mix
        work.probabilities[action] += mix / losses.shape[0]
    played = sample_ranking(work.probabilities, params.rankings, draw, NOISE, out)
    propensity = 0.0
    for action in range(losses.shape[0]):
        if params.set_of[action] == params.set_of[played]:
            propensity += work.probabilities[action]
    return True, propensity


@kernel
def _find_set(params: Any, ranking: Any) -> int:
    """Return the index of the set of the first k items of a ranking."""
    k = params.sets.shape[1]
    for index in range(params.sets.shape[0]):
        n_found = 0
        for place in range(k):
            for position in range(k):
                n_found += 1 if ranking[position] == params.sets[index, place] else 0
        if n_found == k:
            return index
    return -1


@kernel
def _update(params: Any, state: Any, seen: Any, work: Any) -> None:
    if not enter_epoch(params.epochs, seen.draw.round, state.clock, state.losses):
        return
    k = params.sets.shape[1]
    for position in range(k):
        work.relevance[seen.ranking[position]] = seen.values[position]
    shown = _find_set(params, seen.ranking)
    pattern = 0
    for place in range(k):
        grade = int(work.relevance[params.sets[shown, place]])
        pattern = pattern * params.n_grades + min(grade, params.n_grades - 1)
    for action in range(state.losses.shape[0]):
        state.losses[action] += params.coefficients[action, shown, pattern] / seen.propensity


def loss_coefficients(
    measure: Measure, rankings: IntArray, sets: IntArray, n_grades: int
) -> FloatArray:
    """Solve for the coefficients that write each ranking's loss in what the sets show.

    The loss of a ranking less the mean loss of all rankings is enough: what no ranking can
    change needs no estimate. Raises NotObservable where no coefficients exist.
    """
    n_items, k = rankings.shape[1], sets.shape[1]
    grades = grades_up_to(n_grades - 1)
    outcomes = np.array(list(itertools.product(grades, repeat=n_items)))
    losses = np.stack([measure.many(np.tile(r, (len(rankings), 1)), rankings) for r in outcomes])
    losses *= 1.0 if measure.is_loss else -1.0
    losses -= losses.mean(axis=1, keepdims=True)
    powers = n_grades ** np.arange(k - 1, -1, -1)
    seen = np.zeros((len(outcomes), len(sets), n_grades**k))
    for index, items in enumerate(sets):
        pattern = (outcomes[:, items] @ powers).astype(np.int64)
        seen[np.arange(len(outcomes)), index, pattern] = 1.0
    matrix = seen.reshape(len(outcomes), -1)
    solution = np.linalg.lstsq(matrix, losses, rcond=None)[0]
    residual = float(np.abs(matrix @ solution - losses).max())
    if residual > _RESIDUAL * max(1.0, float(np.abs(losses).max())):
        raise NotObservable(
            f"{measure.label} on {n_items} items with {n_grades} grades cannot be estimated from "
            f"the top {k}: no ranker learns it from that feedback (closest fit is off by "
            f"{residual:.3g})."
        )
    return np.ascontiguousarray(solution.T).reshape(len(rankings), len(sets), n_grades**k)


class Forecaster(EnumeratedRanker):
    """Exponential weights over all rankings, fed with unbiased estimates of every loss.

    Parameters
    ----------
    n_items, game
        See :class:`~keyhole.rankers.fixed.base.GameFacts`; grades must be whole numbers.
    rate, mix
        eta and the share gamma of uniformly random rankings. Default: the theory's.

    Notes
    -----
    The generic forecaster of Cesa-Bianchi, Lugosi & Stoltz (2006) for globally observable
    games, tuned as in A9: regret about 3 (k* N)^(2/3) (log N)^(1/3) T^(2/3). Estimates
    divide by the probability of the revealed set, which rankings with the same top k share;
    k* N is then the largest coefficient times the number of sets. Up to 5 items.

    Examples
    --------
    >>> Forecaster(3, horizon=1000, measure="SumLoss").depth
    1
    >>> Forecaster(3, horizon=1000, measure="NDCG")
    Traceback (most recent call last):
    ...
    keyhole.base.errors.NotObservable: NDCG on 3 items with 2 grades cannot be estimated from the \
top 1: no ranker learns it from that feedback (closest fit is off by 0.056).
    """

    label = "Forecaster"
    look = Look("#7A3B10", DASH_DOT, "8")
    guarantee = Guarantee(
        2 / 3, f"{ANY_CROWD}, any measure that the top can estimate", "Cesa-Bianchi et al. 2006"
    )
    kernel = RankerKernel(_init, _work, _rank, _update, show_least_loss)

    def __init__(
        self,
        n_items: int,
        *,
        rate: float | None = None,
        mix: float | None = None,
        **game: Unpack[GameFacts],
    ) -> None:
        super().__init__(n_items, **game)
        check_integer(self.n_items, "`n_items` of Forecaster", at_least=2, at_most=_LARGEST_LIST)
        n_grades = 1 + check_integer(self.max_grade, "`max_grade` of Forecaster", at_least=1)
        if n_grades**self.n_items > _LARGEST_GAME:
            raise InvalidInput(
                f"`max_grade` of Forecaster must leave at most {_LARGEST_GAME} lists to "
                f"enumerate, got {n_grades**self.n_items}."
            )
        rate = None if rate is None else check_number(rate, "`rate` of Forecaster", above=0.0)
        if mix is not None:
            mix = check_number(mix, "`mix` of Forecaster", above=0.0, at_most=1.0)
        rankings = all_rankings(self.n_items)
        sets = np.array(list(itertools.combinations(range(self.n_items), self.k)), dtype=np.int64)
        index_of = {tuple(items): index for index, items in enumerate(sets.tolist())}
        set_of = np.array([index_of[tuple(sorted(r[: self.k].tolist()))] for r in rankings])
        coefficients = loss_coefficients(self.measure, rankings, sets, n_grades)
        self.scale = float(np.abs(coefficients).max()) * len(sets)
        log_actions = math.log(len(rankings))

        def tune(length: int) -> Tuning:
            scale = max(self.scale, 1e-12)
            eta = log_actions ** (2 / 3) * (scale * length) ** (-2 / 3)
            gamma = min(1.0, (scale**2 * log_actions / length) ** (1 / 3))
            return Tuning(rate=eta if rate is None else rate, mix=gamma if mix is None else mix)

        table = epochs(self.horizon, tune)
        self.rate, self.mix = float(table.rates[0]), float(table.mixes[0])
        self.params = ForecasterParams(table, rankings, set_of, sets, coefficients, n_grades)

    @property
    def depth(self) -> int:
        return self.k
