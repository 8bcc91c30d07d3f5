"""The names that ``keyhole`` itself has; docs/ explains them.

There are four uses, whose first lines docs/start shows: games on one list, learning
from query-document lists, whether a measure can be learnt at all, and policies judged on logs.
Rows of tables without a name here are made by theirs: ``keyhole.ranker("epsilon-greedy", ...)``
and ``keyhole.policy("epsilon-greedy", ...)`` are two things.
"""

from keyhole.base.errors import KeyholeError
from keyhole.base.version import __version__
from keyhole.batch.ranker import BatchRanker
from keyhole.contracts.lists import Feedback, Impression, Query
from keyhole.data.bandit.files import write_bandit_csv
from keyhole.data.bandit.formats import read_bandit
from keyhole.data.bandit.log import BanditLog
from keyhole.data.letor.queries import QuerySet
from keyhole.data.letor.reader import read_letor
from keyhole.data.ratings import read_ratings
from keyhole.experiment.description import Experiment
from keyhole.game.comparators import best_fixed
from keyhole.game.log import Log, replay
from keyhole.game.play import play
from keyhole.game.stream import LetorStream
from keyhole.game.trace import Trace
from keyhole.lab.compare import Comparison, compare
from keyhole.lab.figures.plots import plot
from keyhole.measures import MEASURES, measure
from keyhole.measures.linear import LinearMeasure
from keyhole.monitoring.classification import classify
from keyhole.monitoring.verify import check_certificate
from keyhole.offline.estimators import estimate_all
from keyhole.offline.evaluation import evaluate
from keyhole.offline.lists import evaluate_lists
from keyhole.offline.report import Evaluation
from keyhole.policies import POLICIES, policy
from keyhole.policies.base import Always, Greedy, Policy, Softmax, Uniform
from keyhole.policies.choosing import train_policy
from keyhole.policies.files import load_policy, save_policy
from keyhole.policies.online import OnlineRankers
from keyhole.policies.training import fit_classifiers, fit_forests, fit_rankers
from keyhole.rankers import RANKERS, load, ranker
from keyhole.rankers.fixed.forecaster import Forecaster
from keyhole.rankers.fixed.full_information import FTPL, OnlineRank
from keyhole.rankers.fixed.hedge import Hedge
from keyhole.rankers.fixed.keystone import Keystone
from keyhole.rankers.fixed.plain import Fixed, Random
from keyhole.rankers.fixed.rtopk import RTopK
from keyhole.rankers.fixed.subroutines import SUBROUTINES
from keyhole.rankers.lists.plain import RandomLists
from keyhole.rankers.lists.recall import Recall
from keyhole.reveals import REVEALS, reveal
from keyhole.reveals.choice import Choice
from keyhole.reveals.full import Full
from keyhole.reveals.top import Top
from keyhole.surrogates import SURROGATES, surrogate
from keyhole.worlds import WORLDS, world
from keyhole.worlds.choices import Choices
from keyhole.worlds.flips import Flips
from keyhole.worlds.gaussian import Gaussian
from keyhole.worlds.generated import Graded, Separable
from keyhole.worlds.outcomes import Hopeless, Outcomes
from keyhole.worlds.queries import Queries
from keyhole.worlds.switching import Switching
from keyhole.worlds.table import Ratings, Recorded

__all__ = [
    "FTPL",
    "MEASURES",
    "POLICIES",
    "RANKERS",
    "REVEALS",
    "SUBROUTINES",
    "SURROGATES",
    "WORLDS",
    "Always",
    "BanditLog",
    "BatchRanker",
    "Choice",
    "Choices",
    "Comparison",
    "Evaluation",
    "Experiment",
    "Feedback",
    "Fixed",
    "Flips",
    "Forecaster",
    "Full",
    "Gaussian",
    "Graded",
    "Greedy",
    "Hedge",
    "Hopeless",
    "Impression",
    "KeyholeError",
    "Keystone",
    "LetorStream",
    "LinearMeasure",
    "Log",
    "OnlineRank",
    "OnlineRankers",
    "Outcomes",
    "Policy",
    "Queries",
    "Query",
    "QuerySet",
    "RTopK",
    "Random",
    "RandomLists",
    "Ratings",
    "Recall",
    "Recorded",
    "Separable",
    "Softmax",
    "Switching",
    "Top",
    "Trace",
    "Uniform",
    "__version__",
    "best_fixed",
    "check_certificate",
    "classify",
    "compare",
    "estimate_all",
    "evaluate",
    "evaluate_lists",
    "fit_classifiers",
    "fit_forests",
    "fit_rankers",
    "load",
    "load_policy",
    "measure",
    "play",
    "plot",
    "policy",
    "ranker",
    "read_bandit",
    "read_letor",
    "read_ratings",
    "replay",
    "reveal",
    "save_policy",
    "surrogate",
    "train_policy",
    "world",
    "write_bandit_csv",
]
