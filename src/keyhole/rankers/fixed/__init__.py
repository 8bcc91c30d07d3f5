"""Rankers of one list for everybody."""

from keyhole.rankers.fixed.base import FixedListRanker
from keyhole.rankers.fixed.cascade_ucb import CascadeUCB
from keyhole.rankers.fixed.epsilon_greedy import EpsilonGreedy
from keyhole.rankers.fixed.forecaster import Forecaster
from keyhole.rankers.fixed.full_information import FTPL, OnlineRank
from keyhole.rankers.fixed.hedge import Hedge
from keyhole.rankers.fixed.iw_onlinerank import IWOnlineRank
from keyhole.rankers.fixed.keystone import Keystone
from keyhole.rankers.fixed.neighbourhood import NeighbourhoodWatch
from keyhole.rankers.fixed.pege import PEGE
from keyhole.rankers.fixed.pege2 import PEGE2
from keyhole.rankers.fixed.plain import Fixed, Random
from keyhole.rankers.fixed.rtopk import RTopK
from keyhole.rankers.fixed.semibandit import SemiBandit
from keyhole.rankers.fixed.subroutines import SUBROUTINES
from keyhole.rankers.fixed.thompson import Thompson
from keyhole.rankers.fixed.toprank import TopRank

__all__ = [
    "FTPL",
    "PEGE",
    "PEGE2",
    "SUBROUTINES",
    "CascadeUCB",
    "EpsilonGreedy",
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
    "Thompson",
    "TopRank",
]
