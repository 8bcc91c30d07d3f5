"""Algorithms that rank and learn: one file each, one row each in RANKERS."""

from keyhole.contracts import Ranker
from keyhole.rankers.fixed import (
    FIXED_LIST_RANKERS,
    FTPL,
    SUBROUTINES,
    Fixed,
    FixedListRanker,
    Forecaster,
    Hedge,
    OnlineRank,
    Random,
    RTopK,
)

RANKERS: dict[str, type[Ranker]] = {**FIXED_LIST_RANKERS}

__all__ = [
    "FTPL",
    "RANKERS",
    "SUBROUTINES",
    "Fixed",
    "FixedListRanker",
    "Forecaster",
    "Hedge",
    "OnlineRank",
    "RTopK",
    "Random",
]
