"""Where relevance comes from: one file per kind of world, one row each in WORLDS."""

from keyhole.contracts import World
from keyhole.worlds.choices import Choices
from keyhole.worlds.flips import Flips
from keyhole.worlds.gaussian import Gaussian
from keyhole.worlds.outcomes import Hopeless, Outcomes
from keyhole.worlds.switching import Switching
from keyhole.worlds.table import Ratings, Recorded

WORLDS: dict[str, type[World]] = {
    "flips": Flips,
    "gaussian": Gaussian,
    "choices": Choices,
    "switching": Switching,
    "hopeless": Hopeless,
    "outcomes": Outcomes,
    "ratings": Ratings,
    "recorded": Recorded,
}

__all__ = [
    "WORLDS",
    "Choices",
    "Flips",
    "Gaussian",
    "Hopeless",
    "Outcomes",
    "Ratings",
    "Recorded",
    "Switching",
]
