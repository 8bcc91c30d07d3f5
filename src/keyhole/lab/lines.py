"""Bounds and closed forms by name: average regret as a function of the round."""

from collections.abc import Callable
from typing import Any

import numpy as np

from keyhole.bounds import blocks, choices, ftpl, iw_onlinerank, keystone, precision
from keyhole.bounds.guarantees import Problem, guarantees
from keyhole.errors import FloatArray, IntArray, check_choice
from keyhole.lab.kinds.sides import hopeless_constant
from keyhole.surrogates import surrogate


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


def safety_bound(rounds: IntArray, *, items: int, top: int = 1, measure: str = "DCG") -> FloatArray:
    """Return the bound of keystone, which knows no horizon, whatever its adaptive half does."""
    constants = keystone.constants(measure, items, top)
    return np.array([keystone.safety_bound(constants, float(t)) for t in rounds]) / rounds


def semi_bandit_bound(rounds: IntArray, *, items: int, counted: int, top: int = 1) -> FloatArray:
    """A11: the bound of the semi-bandit for the first ``counted`` positions, at each horizon."""
    totals = [precision.semi_bandit_bound(items, counted, top, float(t)) for t in rounds]
    return np.array(totals) / rounds


def iw_onlinerank_bound(
    rounds: IntArray, *, items: int, top: int = 1, measure: str = "DCG"
) -> FloatArray:
    """A12: the bound of IW-OnlineRank, tuned for each horizon."""
    weights = iw_onlinerank.falling_weights(measure, items)
    given = iw_onlinerank.constants(weights, top)
    schedules = [iw_onlinerank.best_schedule(given, int(t)) for t in rounds]
    totals = [
        iw_onlinerank.regret_bound(given, schedule, int(t))
        for schedule, t in zip(schedules, rounds, strict=True)
    ]
    return np.array(totals) / rounds


def hopeless_line(
    rounds: IntArray, *, pair: str, items: int, top: int = 1, measure: str = "NDCG"
) -> FloatArray:
    """X3, X4: what any ranker loses per round, as a mean over the two sides of a pair."""
    return np.full(len(rounds), float(hopeless_constant(measure, pair=pair, items=items, top=top)))


def risk_bound(x: IntArray, *, vary: str, bound: str, **problem: Any) -> FloatArray:
    """B11: a bound on the excess risk as ``items``, ``queries`` or ``features`` vary.

    ``bound`` is the name that :func:`~keyhole.bounds.guarantees.guarantees` has for it, or
    ``range``: how far losses can be apart, beyond which a bound says nothing.
    """
    fields = {"items": 5, "queries": 100, **problem}
    options = fields.pop("surrogate_options", {})
    fields["surrogate"] = surrogate(fields["surrogate"], **options)
    values = []
    for point in x:
        now = {**fields, vary: int(point)}
        own = {
            f"n_{name}": now.pop(name) for name in ("items", "queries", "features") if name in now
        }
        given = Problem(**own, **now)
        rows = {row.name: row.value for row in guarantees(given)} | {"range": given.range}
        value = rows[check_choice(bound, "bound", rows)]
        values.append(np.nan if value is None else value)
    return np.array(values)


LINES: dict[str, Callable[..., FloatArray]] = {
    "choice-bound": choice_bound,
    "uniform-choice": uniform_choice,
    "top-k-bound": top_k_bound,
    "safety-bound": safety_bound,
    "semi-bandit-bound": semi_bandit_bound,
    "iw-onlinerank-bound": iw_onlinerank_bound,
    "hopeless-constant": hopeless_line,
    "risk-bound": risk_bound,
}
