"""Studies of rates: games of rising horizons, each on a crowd as hard as it can be for it."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from keyhole.base.errors import InvalidInput, check_integer, check_number
from keyhole.experiment.description import BuiltExperiment, Experiment
from keyhole.lab.kinds.experiments import BuiltCurve, OfExperiment
from keyhole.lab.kinds.sides import SidesSpec, play_sides
from keyhole.lab.results import Axes, Curve, play_regret

HORIZONS = Axes(
    "horizon T",
    "regret per round of games of T rounds",
    "horizon",
    "average_regret",
    "lower is better; every point has games of its own; a rate of T^a is a line of slope a - 1",
)


@dataclass(frozen=True)
class HorizonsSpec(OfExperiment):
    """Games that differ in their horizons, the ``points``, and in a gap that shrinks with them.

    The option ``gap`` of the world is ``gap`` times T^(-``shrinks``), where a gap is given. With a
    ``pair``, games are those of a hopeless pair, as a mean over its two sides (``learns`` is the
    measure that the ranker is tuned for then). Rankers are told the horizon, unless
    ``knows_horizon`` is false. Other fields are those of an experiment.
    """

    points: tuple[int, ...] = ()
    gap: float | None = None
    shrinks: float = 0.0
    pair: str | None = None
    learns: str | None = None
    knows_horizon: bool = True
    not_given = ("rounds", "points")

    @classmethod
    def of(cls, given: Mapping[str, Any], where: str) -> "HorizonsSpec":
        """Return the description that a mapping holds, or name the field that it cannot have."""
        found = super().of(given, where)
        points = tuple(found.points)
        if not points or any(np.diff(points) <= 0):
            raise InvalidInput(f"points of {where} must be rising horizons, got {list(points)}.")
        for point in points:
            check_integer(point, f"points of {where}", at_least=1)
        if found.gap is not None:
            check_number(found.gap, f"gap of {where}", above=0.0)
        return replace(found, points=points, game=replace(found.game, rounds=points[-1], points=2))

    @property
    def work(self) -> int:
        """Number of rounds to play, in all games together."""
        return sum(self.points) * self.game.runs * (1 if self.pair is None else 2)

    def at(self, horizon: int) -> Experiment:
        """Return the game of a horizon."""
        if self.gap is None:
            return replace(self.game, rounds=horizon)
        gap = min(self.gap * horizon ** (-self.shrinks), 1.0)
        options = {**self.game.world_options, "gap": gap}
        return replace(self.game, rounds=horizon, world_options=options)

    def sides_at(self, horizon: int) -> SidesSpec:
        """Return the games of a horizon on both sides of the pair."""
        learns = self.game.measure if self.learns is None else self.learns
        game = replace(self.game, rounds=horizon, world="hopeless")
        return SidesSpec(game, str(self.pair), learns)

    def build(self) -> BuiltCurve:
        """Return the games of all horizons, or raise with a sentence."""
        return BuiltCurve(self, tuple(self._game(point) for point in self.points))

    def _game(self, horizon: int) -> BuiltCurve | BuiltExperiment:
        if self.pair is not None:
            return self.sides_at(horizon).build()
        game = self.at(horizon).build()
        return game if self.knows_horizon else replace(game, ranker=game.ranker.fresh(horizon=None))


def play_horizons(label: str, built: BuiltCurve, report: Any) -> Curve:
    """Return regret per round at the end of the games of each horizon, one run per row."""
    play = play_regret if built.spec.pair is None else play_sides
    ends = [play("", game, report).values[:, -1] for game in built.games]
    return Curve(label, np.array(built.spec.points, dtype=np.int64), np.array(ends).T)
