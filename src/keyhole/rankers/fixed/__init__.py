"""Rankers of one list for everybody."""

from keyhole.rankers.fixed.base import FixedListRanker
from keyhole.rankers.fixed.forecaster import Forecaster
from keyhole.rankers.fixed.full_information import FTPL, OnlineRank
from keyhole.rankers.fixed.hedge import Hedge
from keyhole.rankers.fixed.iw_onlinerank import IWOnlineRank
from keyhole.rankers.fixed.keystone import Keystone
from keyhole.rankers.fixed.neighbourhood import NeighbourhoodWatch
from keyhole.rankers.fixed.plain import Fixed, Random
from keyhole.rankers.fixed.rtopk import RTopK
from keyhole.rankers.fixed.semibandit import SemiBandit
from keyhole.rankers.fixed.subroutines import SUBROUTINES

__all__ = [
    "FTPL",
    "SUBROUTINES",
    "Fixed",
    "FixedListRanker",
    "Forecaster",
    "Hedge",
    "IWOnlineRank",
    "Keystone",
    "NeighbourhoodWatch",
    "OnlineRank",
    "RTopK",
    "Random",
    "SemiBandit",
]
