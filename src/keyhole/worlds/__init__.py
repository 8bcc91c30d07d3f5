"""Where relevance comes from: one file per kind of world, one row each in WORLDS."""

from collections.abc import Mapping
from typing import Any

from keyhole.contracts.registry import Table
from keyhole.contracts.worlds import World

WORLDS: Table[World] = Table(
    "world",
    World,
    {
        "flips": "keyhole.worlds.flips:Flips",
        "gaussian": "keyhole.worlds.gaussian:Gaussian",
        "choices": "keyhole.worlds.choices:Choices",
        "switching": "keyhole.worlds.switching:Switching",
        "independent": "keyhole.worlds.phases:Independent",
        "alternating": "keyhole.worlds.phases:Alternating",
        "takeover": "keyhole.worlds.phases:Takeover",
        "rising": "keyhole.worlds.phases:Rising",
        "walking": "keyhole.worlds.walking:Walking",
        "near-ties": "keyhole.worlds.near_ties:NearTies",
        "hopeless": "keyhole.worlds.outcomes:Hopeless",
        "outcomes": "keyhole.worlds.outcomes:Outcomes",
        "ratings": "keyhole.worlds.table:Ratings",
        "recorded": "keyhole.worlds.table:Recorded",
        "shuffled": "keyhole.worlds.table:Shuffled",
        "queries": "keyhole.worlds.queries:Queries",
        "separable": "keyhole.worlds.generated:Separable",
        "graded": "keyhole.worlds.generated:Graded",
    },
)


def world(name: str | Mapping[str, Any] | World, /, **settings: Any) -> World:
    """Return a world by its name or spec.

    Examples
    --------
    >>> world("flips", n_items=4, flip=0.2)
    Flips(n_items=4, flip=0.2)
    >>> world(world("switching", period=9).spec)
    Switching(period=9)
    """
    return WORLDS.make(name, **settings)
