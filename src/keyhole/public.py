"""The names that ``keyhole`` itself has; docs/ explains them.

There are four uses, whose first lines docs/start shows: games on one list, learning
from query-document lists, whether a measure can be learnt at all, and policies judged on logs.
Rows of tables without a name here are made by theirs: ``keyhole.ranker("epsilon-greedy", ...)``
and ``keyhole.policy("epsilon-greedy", ...)`` are two things.
"""

from keyhole.base.errors import KeyholeError
from keyhole.base.version import __version__
from keyhole.batch import BatchRanker
from keyhole.contracts import Feedback, Impression, Query
from keyhole.data import (
    BanditLog,
    QuerySet,
    read_bandit,
    read_letor,
    read_ratings,
    write_bandit_csv,
)
from keyhole.experiment.description import Experiment
from keyhole.game import LetorStream, Log, Trace, best_fixed, play, replay
from keyhole.lab.compare import Comparison, compare
from keyhole.lab.figures.plots import plot
from keyhole.measures import MEASURES, LinearMeasure, measure
from keyhole.monitoring import check_certificate, classify
from keyhole.offline import Evaluation, estimate_all, evaluate, evaluate_lists
from keyhole.policies import (
    POLICIES,
    Always,
    Greedy,
    OnlineRankers,
    Policy,
    Softmax,
    Uniform,
    fit_classifiers,
    fit_forests,
    fit_rankers,
    load_policy,
    policy,
    save_policy,
    train_policy,
)
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
    RandomLists,
    Recall,
    RTopK,
    load,
    ranker,
)
from keyhole.reveals import REVEALS, Choice, Full, Top, reveal
from keyhole.surrogates import SURROGATES, surrogate
from keyhole.worlds import (
    WORLDS,
    Choices,
    Flips,
    Gaussian,
    Graded,
    Hopeless,
    Outcomes,
    Queries,
    Ratings,
    Recorded,
    Separable,
    Switching,
    world,
)

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
