"""The kinds of study: what their curves are made of, how they are played and drawn."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from keyhole.experiment.description import Experiment
from keyhole.lab.kinds.ads import AdSpec, ad_axes, build_ads, play_ads
from keyhole.lab.kinds.experiments import (
    ListsSpec,
    lists_end_axes,
    play_lists,
    play_lists_to_the_end,
)
from keyhole.lab.kinds.horizons import HORIZONS, HorizonsSpec, play_horizons
from keyhole.lab.kinds.risks import VARIED, build_risk, play_risk, reader, risk_axes
from keyhole.lab.kinds.sides import SIDES, SidesSpec, play_sides
from keyhole.lab.results import (
    AT_THE_END,
    REGRET,
    Axes,
    Curve,
    list_axes,
    play_regret,
    play_to_the_end,
)

Report = Callable[[int], None] | None
"""Called with the amount of work just done."""


class Spec(Protocol):
    """A curve described by names and numbers."""

    @property
    def measure(self) -> str:
        """What is measured, for the label of an axis."""
        ...

    @property
    def ranker(self) -> str:
        """The ranker that plays, by its name, which gives a curve its colour; none if empty."""
        ...

    @property
    def work(self) -> int:
        """How much there is to do, in the unit of :data:`Report`."""
        ...

    def as_dict(self) -> dict[str, Any]:
        """Return the description as plain data."""
        ...


class Built(Protocol):
    """What a description names, ready to be played."""

    @property
    def key(self) -> dict[str, Any]:
        """All that the results depend on, as plain data: a finished curve is found by it."""
        ...


@dataclass(frozen=True)
class Kind:
    """One kind of study.

    ``read`` makes the description of a curve of the fields of study.toml (and of where they
    stand, for errors), ``build`` the objects it names: it raises
    :class:`~keyhole.experiment.inputs.DataMissing` where data is not on this machine. ``play``
    makes the curve of a label. ``axes`` depend on what is measured. ``on_files`` gives the
    description of the same curve on files of the user's own, if there can be any.
    """

    read: Callable[[dict[str, Any], str], Spec]
    build: Callable[[Any], Built]
    play: Callable[[str, Any, Report], Curve]
    axes: Callable[[str], Axes]
    on_files: Callable[[Any, list[Path]], Spec] | None = None


KINDS: dict[str, Kind] = {
    "game": Kind(Experiment.of, Experiment.build, play_regret, lambda _: REGRET),
    "game-end": Kind(Experiment.of, Experiment.build, play_to_the_end, lambda _: AT_THE_END),
    "sides": Kind(SidesSpec.of, SidesSpec.build, play_sides, lambda _: SIDES),
    "horizons": Kind(HorizonsSpec.of, HorizonsSpec.build, play_horizons, lambda _: HORIZONS),
    "lists": Kind(ListsSpec.of, ListsSpec.build, play_lists, list_axes, ListsSpec.on_files),
    "lists-end": Kind(
        ListsSpec.of, ListsSpec.build, play_lists_to_the_end, lists_end_axes, ListsSpec.on_files
    ),
    "ads": Kind(AdSpec.of, build_ads, play_ads, ad_axes),
    **{
        f"risk-by-{vary}": Kind(reader(vary), build_risk, play_risk, risk_axes(vary))
        for vary in VARIED
    },
}
