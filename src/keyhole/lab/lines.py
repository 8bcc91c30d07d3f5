"""Bounds and closed forms by name: average regret as a function of the round."""

from collections.abc import Callable

import numpy as np

from keyhole.bounds import blocks, choices, ftpl
from keyhole.errors import FloatArray, IntArray


def choice_bound(rounds: IntArray, *, items: int, chosen: int | None = None) -> FloatArray:
    """B9: the bound of OnlineRank tuned for the last of the rounds."""
    spread = choices.spread(items, chosen)
    rate = choices.best_rate(items, float(rounds[-1]), spread)
    totals = [choices.choice_bound(items, float(t), spread, rate) for t in rounds]
    return np.array(totals) / rounds


def uniform_choice(rounds: IntArray, *, items: int) -> FloatArray:
    """B9: regret of any ranker on uniform single choices."""
    totals = [choices.uniform_choice_regret(items, float(t)) for t in rounds]
    return np.array(totals) / rounds


def top_k_bound(rounds: IntArray, *, items: int, top: int = 1, measure: str = "DCG") -> FloatArray:
    """B6: the bound of RTop-kF with FTPL, tuned for each horizon."""
    constants, n_cells = ftpl.constants(measure, items), blocks.n_cells(items, top)
    totals = [ftpl.top_k_bound(constants, n_cells, float(t)) for t in rounds]
    return np.array(totals) / rounds


LINES: dict[str, Callable[..., FloatArray]] = {
    "choice-bound": choice_bound,
    "uniform-choice": uniform_choice,
    "top-k-bound": top_k_bound,
}
