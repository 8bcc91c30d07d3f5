"""Bounds and closed forms by name: average regret as a function of the round."""

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from keyhole.base.errors import FloatArray, IntArray, InvalidInput, check_choice
from keyhole.bounds import blocks, choices, ftpl, iw_onlinerank, keystone, precision
from keyhole.bounds.guarantees import Problem, guarantees
from keyhole.experiment.description import Experiment
from keyhole.experiment.inputs import DataMissing
from keyhole.experiment.worlds import make_world
from keyhole.lab.kinds import Spec
from keyhole.lab.kinds.horizons import HorizonsSpec
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


def top_k_bound(
    rounds: IntArray, *, items: int, top: int = 1, measure: str = "DCG", max_grade: float = 1.0
) -> FloatArray:
    """B6: the bound of RTop-kF with FTPL, tuned for each horizon."""
    constants, n_cells = ftpl.constants(measure, items, max_grade), blocks.n_cells(items, top)
    totals = [ftpl.top_k_bound(constants, n_cells, float(t)) for t in rounds]
    return np.array(totals) / rounds


def safety_bound(
    rounds: IntArray, *, items: int, top: int = 1, measure: str = "DCG", max_grade: float = 1.0
) -> FloatArray:
    """Return the bound of keystone, which knows no horizon, whatever its adaptive half does."""
    constants = keystone.constants(measure, items, top, max_grade)
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


def options_of_line(
    kind: str, label: str, given: dict[str, Any], beside: Sequence[Spec]
) -> dict[str, Any]:
    """Return the options of a line: its own, and of the curves of its panel what they agree on.

    A line is drawn for one measure: where curves differ in theirs, it must say which.
    """
    line = LINES[check_choice(kind, f"kind of line {label!r}", LINES)]
    lacks = {name for name in _OF_CURVES if name in inspect.signature(line).parameters} - {*given}
    options = dict(given)
    for name in sorted(lacks):
        found = {_OF_CURVES[name](spec) for spec in beside} - {None}
        if name == "measure" and len(found) > 1:
            raise InvalidInput(
                f"The line {label!r} must name its measure, for the curves beside it have "
                f"{' and '.join(sorted(found))}."
            )
        if len(found) == 1:
            options[name] = found.pop()
    return options


def _game_of(spec: Any) -> Experiment | None:
    if isinstance(spec, HorizonsSpec):
        return spec.at(spec.points[-1])
    game = getattr(spec, "game", spec)
    return game if isinstance(game, Experiment) and not game.has_queries else None


def _measure_of(spec: Spec) -> str | None:
    game = _game_of(spec)
    return None if game is None else game.measure


def _top_of(spec: Spec) -> int | None:
    game = _game_of(spec)
    return None if game is None else game.top or 1  # what rankers take where nothing is said


def _max_grade_of(spec: Spec) -> float | None:
    game = _game_of(spec)
    if game is None:
        return None
    if "max_grade" in game.ranker_options:
        return float(game.ranker_options["max_grade"])
    if game.world == "hopeless":  # whose worlds are those of its pair, of two grades
        return 1.0
    try:
        world, _, _ = make_world(game.world, game.items, game.world_options)
        return max(world.max_grade, 1.0)
    except DataMissing:  # it is not played
        return None


_OF_CURVES: dict[str, Callable[[Any], Any]] = {
    "measure": _measure_of,
    "top": _top_of,
    "max_grade": _max_grade_of,
}
"""What a line takes of the curves of its panel where it does not say it itself."""
