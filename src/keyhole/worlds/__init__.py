"""Where relevance comes from: one file per kind of world, one row each in WORLDS."""

from keyhole.contracts import World
from keyhole.worlds.choices import Choices
from keyhole.worlds.flips import Flips
from keyhole.worlds.gaussian import Gaussian
from keyhole.worlds.generated import Graded, Separable
from keyhole.worlds.outcomes import Hopeless, Outcomes
from keyhole.worlds.queries import Queries
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
    "queries": Queries,
    "separable": Separable,
    "graded": Graded,
}

__all__ = [
    "WORLDS",
    "Choices",
    "Flips",
    "Gaussian",
    "Graded",
    "Hopeless",
    "Outcomes",
    "Queries",
    "Ratings",
    "Recorded",
    "Separable",
    "Switching",
]
