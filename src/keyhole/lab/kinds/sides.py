"""Studies on two worlds that feedback cannot tell apart: the mean regret over both sides."""

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from keyhole.base.errors import InvalidInput
from keyhole.lab.inputs import Description, check_fields
from keyhole.lab.kinds.games import BuiltGame, GameSpec, build, play_game
from keyhole.lab.results import Axes, Curve
from keyhole.measures import measure as named_measure
from keyhole.monitoring.games import Game
from keyhole.monitoring.hopeless import forced_regret
from keyhole.worlds.outcomes import Hopeless

SIDES = Axes(
    "round t",
    "regret per round up to t",
    "round",
    "average_regret",
    "lower is better; each curve is the mean over the two sides of a pair",
)
_WORLD = "hopeless"


@dataclass(frozen=True)
class SidesSpec(Description):
    """A game on a hopeless pair by names; ``learns`` is the measure that the ranker is tuned for.

    Other fields are those of a game, without a world.
    """

    game: GameSpec
    pair: str
    learns: str

    @classmethod
    def of(cls, fields: dict[str, Any], where: str) -> "SidesSpec":
        """Return the description that a mapping holds, or name the field that it cannot have."""
        own = dict(fields)
        pair = own.pop("pair", "table-b1")
        learns = own.pop("learns", own.get("measure", "DCG"))
        known = [f for f in GameSpec.__dataclass_fields__ if not f.startswith("world")]
        check_fields(own, where, [*known, "pair", "learns"])
        return cls(GameSpec(**own, world=_WORLD), pair, learns)

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
        """Number of rounds to play, in all runs and on both sides together."""
        return 2 * self.game.work


@dataclass(frozen=True)
class BuiltSides:
    """One game per side of a pair."""

    spec: SidesSpec
    games: tuple[BuiltGame, BuiltGame]

    @property
    def key(self) -> dict[str, Any]:
        """All that the results depend on, as plain data."""
        return self.spec.as_dict()


def build_sides(spec: SidesSpec) -> BuiltSides:
    """Return the games of both sides: the same ranker, told nothing of the side it is on."""
    if spec.game.ranker == "fixed" and "ranking" not in spec.game.ranker_options:
        raise InvalidInput("`ranking` of fixed must be given: the best one tells the sides apart.")
    first, second = (_build_side(spec, side) for side in (0, 1))
    return BuiltSides(spec, (first, second))


def _build_side(spec: SidesSpec, side: int) -> BuiltGame:
    options = {"pair": spec.pair, "side": side}
    game = build(replace(spec.game, measure=spec.learns, world_options=options))
    return replace(game, measure=named_measure(spec.measure, **spec.game.measure_options))


def play_sides(label: str, built: BuiltSides, report: Any) -> Curve:
    """Return the average regret of each run, as a mean over the two sides."""
    first, second = (Curve.of(label, play_game(game, report)) for game in built.games)
    return replace(first, values=(first.values + second.values) / 2.0)


def hopeless_constant(measure: str, *, pair: str, items: int, top: int) -> Fraction:
    """Return what any ranker loses per round, as a mean over the two sides of a pair.

    Raises unless the two sides have exactly one law of feedback and force a loss.

    Examples
    --------
    >>> round(float(hopeless_constant("NDCG", pair="table-b1", items=3, top=1)), 6)
    0.014197
    """
    game = Game.of(measure, items, top)
    sides = [Hopeless(items, pair=pair, side=side) for side in (0, 1)]
    p, q = (_distribution(game, world) for world in sides)
    apart = np.array(p) - np.array(q)
    for action in range(len(game.feedback)):
        if any(game.signals(action) @ apart):
            raise InvalidInput(f"`pair` must look alike from the top {top}, got {pair!r}.")
    constant = forced_regret(game, p, q)
    if constant <= 0:
        raise InvalidInput(f"`pair` must force regret of {measure}, got {pair!r}, which forces 0.")
    return constant


def _distribution(game: Game, world: Hopeless) -> tuple[Fraction, ...]:
    """Return probabilities by outcome of a game, each the decimal number that it prints as."""
    chances = {
        tuple(int(grade) for grade in outcome): Fraction(repr(float(chance)))
        for outcome, chance in zip(world.outcomes, world.probabilities, strict=True)
    }
    return tuple(chances.get(outcome, Fraction(0)) for outcome in game.losses.outcomes)
