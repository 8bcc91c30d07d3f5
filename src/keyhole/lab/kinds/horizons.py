"""Studies of rates: games of rising horizons, each on a crowd as hard as it can be for it."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from keyhole.base.errors import InvalidInput, check_integer, check_number
from keyhole.lab.inputs import Description, check_fields
from keyhole.lab.kinds.games import GameSpec, build, play_game
from keyhole.lab.kinds.sides import SidesSpec, build_sides, play_sides
from keyhole.lab.results import Axes, Curve

HORIZONS = Axes(
    "horizon T",
    "regret per round of games of T rounds",
    "horizon",
    "average_regret",
    "lower is better; every point has games of its own; a rate of T^a is a line of slope a - 1",
)


@dataclass(frozen=True)
class HorizonsSpec(Description):
    """Games that differ in their horizons, the ``points``, and in a gap that shrinks with them.

    The option ``gap`` of the world is ``gap`` times T^(-``shrinks``), where a gap is given. With a
    ``pair``, games are those of a hopeless pair, as a mean over its two sides (``learns`` is the
    measure that the ranker is tuned for then). Rankers are told the horizon, unless
    ``knows_horizon`` is false. Other fields are those of a game.
    """

    game: GameSpec
    points: tuple[int, ...]
    gap: float | None = None
    shrinks: float = 0.0
    pair: str | None = None
    learns: str | None = None
    knows_horizon: bool = True

    @classmethod
    def of(cls, fields: dict[str, Any], where: str) -> "HorizonsSpec":
        """Return the description that a mapping holds, or name the field that it cannot have."""
        own = dict(fields)
        known = [f for f in GameSpec.__dataclass_fields__ if f not in ("rounds", "points")]
        extra = [f for f in cls.__dataclass_fields__ if f != "game"]
        check_fields(own, where, [*known, *extra])
        points = tuple(own.pop("points", ()))
        given = {name: own.pop(name) for name in extra if name in own}
        if not points or any(np.diff(points) <= 0):
            raise InvalidInput(f"points of {where} must be rising horizons, got {list(points)}.")
        rounds = [check_integer(point, f"points of {where}", at_least=1) for point in points]
        if given.get("gap") is not None:
            check_number(given["gap"], f"gap of {where}", above=0.0)
        return cls(GameSpec(**own, rounds=rounds[-1], points=2), points, **given)

    @property
    def measure(self) -> str:
        """What rankings are judged by."""
        return self.game.measure

    @property
    def ranker(self) -> str:
        """The ranker that plays."""
        return self.game.ranker

    @property
    def work(self) -> int:
        """Number of rounds to play, in all games together."""
        return sum(self.points) * self.game.runs * (1 if self.pair is None else 2)

    def at(self, horizon: int) -> GameSpec:
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


@dataclass(frozen=True)
class BuiltHorizons:
    """What plays the games of one horizon after the other, and returns their curves."""

    spec: HorizonsSpec
    players: tuple[Callable[[Any], Curve], ...]

    @property
    def key(self) -> dict[str, Any]:
        """All that the results depend on, as plain data."""
        return self.spec.as_dict()


def _player(spec: HorizonsSpec, horizon: int) -> Callable[[Any], Curve]:
    if spec.pair is not None:
        sides = build_sides(spec.sides_at(horizon))
        return lambda report: play_sides("", sides, report)
    game = build(spec.at(horizon))
    if not spec.knows_horizon:
        game = replace(game, ranker=game.ranker.fresh(horizon=None))
    return lambda report: Curve.of("", play_game(game, report))


def build_horizons(spec: HorizonsSpec) -> BuiltHorizons:
    """Return the games that a description names, or raise with a sentence."""
    return BuiltHorizons(spec, tuple(_player(spec, point) for point in spec.points))


def play_horizons(label: str, built: BuiltHorizons, report: Any) -> Curve:
    """Return regret per round at the end of the games of each horizon, one run per row."""
    ends = [play(report).values[:, -1] for play in built.players]
    return Curve(label, np.array(built.spec.points, dtype=np.int64), np.array(ends).T)
