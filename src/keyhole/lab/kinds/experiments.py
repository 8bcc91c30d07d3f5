"""Studies of experiments as they are: regret by round, or the mean of query-document lists."""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Self

import numpy as np

from keyhole.base.described import PlainData, check_fields
from keyhole.experiment.description import Experiment
from keyhole.lab.results import Axes, Curve, list_axes


@dataclass(frozen=True)
class OfExperiment(PlainData):
    """A curve of an experiment, with fields of its own beside those of the experiment."""

    game: Experiment
    not_given: ClassVar[tuple[str, ...]] = ()
    """Fields of the experiment that the curve decides itself."""
    defaults: ClassVar[Mapping[str, Any]] = {}

    @classmethod
    def of(cls, given: Mapping[str, Any], where: str) -> Self:
        """Return the description that a mapping holds, or name the field that it cannot have."""
        own = [each.name for each in fields(cls) if each.name != "game"]
        known = [each.name for each in fields(Experiment) if each.name not in cls.not_given]
        check_fields(given, where, [*known, *own])
        of_game = {name: value for name, value in given.items() if name not in own}
        game = Experiment(**{**cls.defaults, **of_game})
        return cls(game, **{name: given[name] for name in own if name in given})

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
        """Number of rounds to play, in all runs together."""
        return self.game.work

    def as_dict(self) -> dict[str, Any]:
        """Return the description as plain data."""
        own = {each.name: getattr(self, each.name) for each in fields(self)}
        return {**own, "game": self.game.as_dict()}


@dataclass(frozen=True)
class BuiltCurve:
    """The games of a curve, ready to be played."""

    spec: Any
    games: tuple[Any, ...]
    """Built experiments, or curves that are built of such."""

    @property
    def key(self) -> dict[str, Any]:
        """All that the results depend on, as plain data."""
        return {**self.games[0].key, **self.spec.as_dict()}


# --------------------------------------------------------------------- query-document lists


@dataclass(frozen=True)
class ListsSpec(OfExperiment):
    """An experiment on query-document lists, of which scores are drawn.

    ``greedy`` draws the lists that would have been shown without exploring in place of those that
    were. Where single points are drawn, they are means of the lists ``since`` a round.
    """

    greedy: bool = False
    since: int = 0
    defaults: ClassVar[Mapping[str, Any]] = {
        "world": "graded",
        "ranker": "contextual-rtopk",
        "rounds": 100_000,
    }

    def as_dict(self) -> dict[str, Any]:
        """Return the description as plain data."""
        return {**self.game.as_dict(), "greedy": self.greedy, "since": self.since}

    def on_files(self, files: list[Any]) -> "ListsSpec":
        """Return the same on the lists of some files."""
        game = replace(self.game, world=[str(path) for path in files], world_options={})
        return replace(self, game=game)

    def build(self) -> BuiltCurve:
        """Return the game, or raise with a sentence."""
        return BuiltCurve(self, (self.game.build(),))


def play_lists(label: str, lists: BuiltCurve, report: Any = None) -> Curve:
    """Return the running mean of the lists shown, one run per row."""
    trace = lists.games[0].play(report)
    totals = trace.greedy if lists.spec.greedy else trace.scores
    return Curve(label, trace.rounds, totals / trace.rounds)


def play_lists_to_the_end(label: str, lists: BuiltCurve, report: Any = None) -> Curve:
    """Return the mean of the lists from the round ``since`` on, one run per row."""
    whole = play_lists(label, lists, report)
    since, last = lists.spec.since, whole.index()
    totals = whole.totals[:, last]
    n_lists = int(whole.x[last])
    if since:
        first = whole.index(since)
        totals, n_lists = totals - whole.totals[:, first], n_lists - int(whole.x[first])
    return Curve(label, whole.x[last:], totals[:, np.newaxis] / n_lists)


def lists_end_axes(measure: str) -> Axes:
    """Return the axes of means over all lists."""
    return replace(list_axes(measure), x="", y="mean of all lists")
