"""The names that ``keyhole`` itself has; docs/ explains them."""

from keyhole.contracts import Feedback, Impression, Query
from keyhole.errors import KeyholeError
from keyhole.figures.plots import plot
from keyhole.game import LetorStream, Log, Trace, best_fixed, play, replay
from keyhole.measures import MEASURES, LinearMeasure, measure
from keyhole.monitoring import classify
from keyhole.rankers import (
    FTPL,
    RANKERS,
    SUBROUTINES,
    Fixed,
    Forecaster,
    Hedge,
    Keystone,
    OnlineRank,
    Random,
    RTopK,
    load,
    ranker,
)
from keyhole.reveals import REVEALS, Choice, Full, Top, reveal
from keyhole.surrogates import SURROGATES, surrogate
from keyhole.version import __version__
from keyhole.worlds import (
    WORLDS,
    Choices,
    Flips,
    Gaussian,
    Hopeless,
    Outcomes,
    Ratings,
    Recorded,
    Switching,
    world,
)

__all__ = [
    "FTPL",
    "MEASURES",
    "RANKERS",
    "REVEALS",
    "SUBROUTINES",
    "SURROGATES",
    "WORLDS",
    "Choice",
    "Choices",
    "Feedback",
    "Fixed",
    "Flips",
    "Forecaster",
    "Full",
    "Gaussian",
    "Hedge",
    "Hopeless",
    "Impression",
    "KeyholeError",
    "Keystone",
    "LetorStream",
    "LinearMeasure",
    "Log",
    "OnlineRank",
    "Outcomes",
    "Query",
    "RTopK",
    "Random",
    "Ratings",
    "Recorded",
    "Switching",
    "Top",
    "Trace",
    "__version__",
    "best_fixed",
    "classify",
    "load",
    "measure",
    "play",
    "plot",
    "ranker",
    "replay",
    "reveal",
    "surrogate",
    "world",
]
