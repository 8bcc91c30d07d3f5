"""Keyhole: learn to rank a whole list while seeing only its top.

The public names; docs/ explains them, ``keyhole --help`` the command line.
"""

from keyhole.contracts import Feedback, Impression, Query
from keyhole.errors import KeyholeError
from keyhole.game.comparators import best_fixed
from keyhole.game.log import Log, replay
from keyhole.game.play import play
from keyhole.game.trace import Trace
from keyhole.measures import MEASURES, LinearMeasure, measure
from keyhole.monitoring import classify
from keyhole.rankers import (
    FTPL,
    RANKERS,
    SUBROUTINES,
    Fixed,
    Forecaster,
    Hedge,
    OnlineRank,
    Random,
    RTopK,
)
from keyhole.reveals import REVEALS, Choice, Full, Top
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
)

__version__ = "0.1.0"

__all__ = [
    "FTPL",
    "MEASURES",
    "RANKERS",
    "REVEALS",
    "SUBROUTINES",
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
    "best_fixed",
    "classify",
    "measure",
    "play",
    "replay",
]
