"""Studies on two worlds that feedback cannot tell apart: the mean regret over both sides."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from keyhole.base.errors import InvalidInput
from keyhole.experiment.description import BuiltExperiment
from keyhole.lab.kinds.experiments import BuiltCurve, OfExperiment
from keyhole.lab.results import Axes, Curve, play_regret
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


@dataclass(frozen=True)
class SidesSpec(OfExperiment):
    """An experiment on a hopeless pair; ``learns`` is the measure that the ranker is tuned for.

    Other fields are those of an experiment, without a world.
    """

    pair: str = "table-b1"
    learns: str = ""
    not_given = ("world", "world_options")
    defaults: ClassVar[Mapping[str, Any]] = {"world": "hopeless"}

    def __post_init__(self) -> None:
        if not self.learns:
            object.__setattr__(self, "learns", self.measure)

    @property
    def work(self) -> int:
        """Number of rounds to play, in all runs and on both sides together."""
        return 2 * self.game.work

    def build(self) -> BuiltCurve:
        """Return the games of both sides: the same ranker, told nothing of the side it is on."""
        if self.ranker == "fixed" and "ranking" not in self.game.ranker_options:
            raise InvalidInput(
                "`ranking` of fixed must be given: the best one tells the sides apart."
            )
        return BuiltCurve(self, (self._side(0), self._side(1)))

    def _side(self, side: int) -> BuiltExperiment:
        options = {"pair": self.pair, "side": side}
        game = replace(self.game, measure=self.learns, world_options=options).build()
        return replace(game, measure=named_measure(self.measure, **self.game.measure_options))


def play_sides(label: str, built: BuiltCurve, report: Any) -> Curve:
    """Return the average regret of each run, as a mean over the two sides."""
    first, second = (play_regret(label, game, report) for game in built.games)
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
