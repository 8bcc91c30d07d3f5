"""Games and their sums a second time, round by round, in plain Python and NumPy."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from tests.unit.references import orders

Value = Callable[[Any, Any], float]
"""What a ranking is worth, by its definition."""


class Run(NamedTuple):
    """What a ranker scored in each round, what each fixed ranking would have, and the ranker."""

    shown: np.ndarray
    fixed: np.ndarray
    ranker: Any
    rankings: list[list[int]]
    """All fixed rankings, where they were asked for."""

    def best(self, is_loss: bool, *, final: bool = False) -> np.ndarray:
        """Return the total of the best fixed ranking after each round."""
        totals, pick = np.cumsum(self.fixed, axis=0), np.argmin if is_loss else np.argmax
        if not final:
            return totals.min(axis=1) if is_loss else totals.max(axis=1)
        best = totals[-1].min() if is_loss else totals[-1].max()
        assert (
            np.isclose(totals[-1], best).sum() == 1
        )  # no other is as good: they may differ before
        return totals[:, pick(totals[-1])]


def play_by_hand(
    ranker: Any, world: Any, reveal: Any, value: Value, rounds: int, seed: int, run: int, users: int
) -> Run:
    """Play a game of one list, and try all its rankings."""
    ranker, rankings = ranker.fresh(seed=seed, run=run), orders(world.n_items)
    shown, fixed = [], []
    for t in range(rounds):
        relevance = world.relevance(t, seed=seed, run=users)
        impression = ranker.rank()
        ranker.update(
            impression, reveal(relevance, impression.ranking, round=t, seed=seed, run=run)
        )
        shown.append(value(relevance, impression.ranking))
        fixed.append([value(relevance, order) for order in rankings])
    return Run(np.array(shown), np.array(fixed), ranker, rankings)


def checkpoints(rounds: int, n_points: int = 200) -> list[int]:
    """Return the rounds that a curve has points at: half of them even, half geometric."""
    if rounds <= n_points:
        return list(range(1, rounds + 1))
    half = n_points // 2
    even = [round(rounds * (i + 1) / half) for i in range(half)]
    geometric = [round(rounds ** (i / (half - 1))) for i in range(half)]
    return sorted({*even, *geometric})


def mean_and_error(values: Any) -> tuple[float, Any]:
    """Return a mean and its standard error; that of a single one is not known."""
    mean = math.fsum(values) / len(values)
    if len(values) < 2:
        return mean, None
    squares = math.fsum((value - mean) ** 2 for value in values)
    return mean, math.sqrt(squares / (len(values) - 1) / len(values))


def slope_of(rounds: Any, regret: Any) -> float:
    """Return the least-squares slope of log regret on log round."""
    x, y = np.log(rounds), np.log(regret)
    return float(((x - x.mean()) * (y - y.mean())).sum() / ((x - x.mean()) ** 2).sum())


def slope_and_interval(rounds: Any, regrets: Any) -> tuple[float, float, float]:
    """Return the slope over the last nine tenths, and a bootstrap interval over the runs."""
    late = np.asarray(rounds) >= 0.1 * rounds[-1]
    x, curves = np.asarray(rounds)[late], np.asarray(regrets)[:, late]
    picks = np.random.default_rng(0).integers(len(curves), size=(1000, len(curves)))
    slopes = [slope_of(x, curves[pick].mean(axis=0)) for pick in picks]
    low, high = np.quantile(slopes, [0.025, 0.975])
    return slope_of(x, curves.mean(axis=0)), float(low), float(high)
