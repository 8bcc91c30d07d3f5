"""Keyhole: learn to rank a whole list while seeing only its top.

These are the public names; docs/ explains them, ``keyhole --help`` the command line. There are
four uses, whose first lines docs/start shows: games on one list, learning from query-document
lists, whether a measure can be learnt at all, and policies judged on logs. Rows of tables without
a name here are made by theirs: ``keyhole.ranker("epsilon-greedy", ...)`` and
``keyhole.policy("epsilon-greedy", ...)`` are two things.

A name is imported when it is asked for: compilers take a second to load, in which the command line
must already know how to end, and which many programs never need.
"""

import importlib
import importlib.util
from typing import TYPE_CHECKING, Any

from keyhole.base.version import __version__ as __version__

if TYPE_CHECKING:  # the same names again, for type checkers; a test compares them
    from keyhole.base.errors import KeyholeError as KeyholeError
    from keyhole.batch.averaging import Averaged as Averaged, average_weights as average_weights
    from keyhole.batch.ranker import BatchRanker as BatchRanker
    from keyhole.contracts.lists import (
        Feedback as Feedback,
        Impression as Impression,
        Query as Query,
    )
    from keyhole.contracts.measures import Measure as Measure, MeasureKernel as MeasureKernel
    from keyhole.contracts.rankers import Ranker as Ranker, RankerKernel as RankerKernel
    from keyhole.contracts.reveals import Reveal as Reveal, RevealKernel as RevealKernel
    from keyhole.contracts.worlds import World as World, WorldKernel as WorldKernel
    from keyhole.data.bandit.files import write_bandit_csv as write_bandit_csv
    from keyhole.data.bandit.formats import (
        from_open_bandit_pipeline as from_open_bandit_pipeline,
        read_bandit as read_bandit,
        to_open_bandit_pipeline as to_open_bandit_pipeline,
    )
    from keyhole.data.bandit.log import BanditLog as BanditLog
    from keyhole.data.bandit.vowpal_wabbit import (
        read_vowpal_wabbit as read_vowpal_wabbit,
        write_vowpal_wabbit as write_vowpal_wabbit,
    )
    from keyhole.data.letor.queries import QuerySet as QuerySet
    from keyhole.data.letor.reader import iterate_letor as iterate_letor, read_letor as read_letor
    from keyhole.data.ratings import read_ratings as read_ratings
    from keyhole.experiment.description import Experiment as Experiment
    from keyhole.game.comparators import best_fixed as best_fixed
    from keyhole.game.log import Log as Log, replay as replay
    from keyhole.game.play import play as play
    from keyhole.game.stream import LetorStream as LetorStream
    from keyhole.game.trace import Trace as Trace
    from keyhole.lab.compare import Comparison as Comparison, compare as compare
    from keyhole.lab.figures.plots import plot as plot
    from keyhole.measures import MEASURES as MEASURES, measure as measure
    from keyhole.measures.linear import LinearMeasure as LinearMeasure
    from keyhole.monitoring.classification import (
        classify as classify,
        classify_matrices as classify_matrices,
    )
    from keyhole.monitoring.verify import check_certificate as check_certificate
    from keyhole.offline.bounds import intervals as intervals, lower_bounds as lower_bounds
    from keyhole.offline.estimators import (
        estimate_all as estimate_all,
        importance_weighted as importance_weighted,
        predict_rewards as predict_rewards,
    )
    from keyhole.offline.evaluation import evaluate as evaluate
    from keyhole.offline.lists import evaluate_lists as evaluate_lists, top_set as top_set
    from keyhole.offline.report import Evaluation as Evaluation
    from keyhole.offline.target import binomial_trials as binomial_trials, target_of as target_of
    from keyhole.policies import POLICIES as POLICIES, policy as policy
    from keyhole.policies.base import (
        Always as Always,
        Greedy as Greedy,
        Policy as Policy,
        Softmax as Softmax,
        Uniform as Uniform,
    )
    from keyhole.policies.choosing import train_policy as train_policy
    from keyhole.policies.files import load_policy as load_policy, save_policy as save_policy
    from keyhole.policies.forest import ForestScorer as ForestScorer
    from keyhole.policies.linear import LinearScorer as LinearScorer
    from keyhole.policies.online import OnlineRankers as OnlineRankers
    from keyhole.policies.training import (
        fit_classifiers as fit_classifiers,
        fit_forests as fit_forests,
        fit_rankers as fit_rankers,
    )
    from keyhole.rankers import RANKERS as RANKERS, load as load, ranker as ranker
    from keyhole.rankers.fixed.base import FixedListRanker as FixedListRanker
    from keyhole.rankers.fixed.forecaster import Forecaster as Forecaster
    from keyhole.rankers.fixed.full_information import FTPL as FTPL, OnlineRank as OnlineRank
    from keyhole.rankers.fixed.hedge import Hedge as Hedge
    from keyhole.rankers.fixed.keystone import Keystone as Keystone
    from keyhole.rankers.fixed.plain import Fixed as Fixed, Random as Random
    from keyhole.rankers.fixed.rtopk import RTopK as RTopK
    from keyhole.rankers.fixed.semibandit import SemiBandit as SemiBandit
    from keyhole.rankers.fixed.subroutines import SUBROUTINES as SUBROUTINES
    from keyhole.rankers.lists.base import ContextualRanker as ContextualRanker
    from keyhole.rankers.lists.kernel_perceptron import (
        KernelMaxViolationPerceptron as KernelMaxViolationPerceptron,
    )
    from keyhole.rankers.lists.perceptron import MaxViolationPerceptron as MaxViolationPerceptron
    from keyhole.rankers.lists.plain import RandomLists as RandomLists
    from keyhole.rankers.lists.recall import Recall as Recall
    from keyhole.rankers.lists.top_k import ContextualRTopK as ContextualRTopK
    from keyhole.reveals import REVEALS as REVEALS, reveal as reveal
    from keyhole.reveals.choice import Choice as Choice
    from keyhole.reveals.full import Full as Full
    from keyhole.reveals.top import Top as Top
    from keyhole.surrogates import SURROGATES as SURROGATES, surrogate as surrogate
    from keyhole.surrogates.base import Surrogate as Surrogate, SurrogateKernel as SurrogateKernel
    from keyhole.worlds import WORLDS as WORLDS, world as world
    from keyhole.worlds.choices import Choices as Choices
    from keyhole.worlds.flips import Flips as Flips
    from keyhole.worlds.gaussian import Gaussian as Gaussian
    from keyhole.worlds.generated import Graded as Graded, Separable as Separable
    from keyhole.worlds.outcomes import Hopeless as Hopeless, Outcomes as Outcomes
    from keyhole.worlds.queries import Queries as Queries
    from keyhole.worlds.switching import Switching as Switching
    from keyhole.worlds.table import Ratings as Ratings, Recorded as Recorded

_PUBLIC = {
    "keyhole.base.errors": "KeyholeError",
    "keyhole.batch.averaging": "Averaged average_weights",
    "keyhole.batch.ranker": "BatchRanker",
    "keyhole.contracts.lists": "Feedback Impression Query",
    "keyhole.contracts.measures": "Measure MeasureKernel",
    "keyhole.contracts.rankers": "Ranker RankerKernel",
    "keyhole.contracts.reveals": "Reveal RevealKernel",
    "keyhole.contracts.worlds": "World WorldKernel",
    "keyhole.data.bandit.files": "write_bandit_csv",
    "keyhole.data.bandit.formats": "from_open_bandit_pipeline read_bandit to_open_bandit_pipeline",
    "keyhole.data.bandit.log": "BanditLog",
    "keyhole.data.bandit.vowpal_wabbit": "read_vowpal_wabbit write_vowpal_wabbit",
    "keyhole.data.letor.queries": "QuerySet",
    "keyhole.data.letor.reader": "iterate_letor read_letor",
    "keyhole.data.ratings": "read_ratings",
    "keyhole.experiment.description": "Experiment",
    "keyhole.game.comparators": "best_fixed",
    "keyhole.game.log": "Log replay",
    "keyhole.game.play": "play",
    "keyhole.game.stream": "LetorStream",
    "keyhole.game.trace": "Trace",
    "keyhole.lab.compare": "Comparison compare",
    "keyhole.lab.figures.plots": "plot",
    "keyhole.measures": "MEASURES measure",
    "keyhole.measures.linear": "LinearMeasure",
    "keyhole.monitoring.classification": "classify classify_matrices",
    "keyhole.monitoring.verify": "check_certificate",
    "keyhole.offline.bounds": "intervals lower_bounds",
    "keyhole.offline.estimators": "estimate_all importance_weighted predict_rewards",
    "keyhole.offline.evaluation": "evaluate",
    "keyhole.offline.lists": "evaluate_lists top_set",
    "keyhole.offline.report": "Evaluation",
    "keyhole.offline.target": "binomial_trials target_of",
    "keyhole.policies": "POLICIES policy",
    "keyhole.policies.base": "Always Greedy Policy Softmax Uniform",
    "keyhole.policies.choosing": "train_policy",
    "keyhole.policies.files": "load_policy save_policy",
    "keyhole.policies.forest": "ForestScorer",
    "keyhole.policies.linear": "LinearScorer",
    "keyhole.policies.online": "OnlineRankers",
    "keyhole.policies.training": "fit_classifiers fit_forests fit_rankers",
    "keyhole.rankers": "RANKERS load ranker",
    "keyhole.rankers.fixed.base": "FixedListRanker",
    "keyhole.rankers.fixed.forecaster": "Forecaster",
    "keyhole.rankers.fixed.full_information": "FTPL OnlineRank",
    "keyhole.rankers.fixed.hedge": "Hedge",
    "keyhole.rankers.fixed.keystone": "Keystone",
    "keyhole.rankers.fixed.plain": "Fixed Random",
    "keyhole.rankers.fixed.rtopk": "RTopK",
    "keyhole.rankers.fixed.semibandit": "SemiBandit",
    "keyhole.rankers.fixed.subroutines": "SUBROUTINES",
    "keyhole.rankers.lists.base": "ContextualRanker",
    "keyhole.rankers.lists.kernel_perceptron": "KernelMaxViolationPerceptron",
    "keyhole.rankers.lists.perceptron": "MaxViolationPerceptron",
    "keyhole.rankers.lists.plain": "RandomLists",
    "keyhole.rankers.lists.recall": "Recall",
    "keyhole.rankers.lists.top_k": "ContextualRTopK",
    "keyhole.reveals": "REVEALS reveal",
    "keyhole.reveals.choice": "Choice",
    "keyhole.reveals.full": "Full",
    "keyhole.reveals.top": "Top",
    "keyhole.surrogates": "SURROGATES surrogate",
    "keyhole.surrogates.base": "Surrogate SurrogateKernel",
    "keyhole.worlds": "WORLDS world",
    "keyhole.worlds.choices": "Choices",
    "keyhole.worlds.flips": "Flips",
    "keyhole.worlds.gaussian": "Gaussian",
    "keyhole.worlds.generated": "Graded Separable",
    "keyhole.worlds.outcomes": "Hopeless Outcomes",
    "keyhole.worlds.queries": "Queries",
    "keyhole.worlds.switching": "Switching",
    "keyhole.worlds.table": "Ratings Recorded",
}
"""The public names, by the module that defines them."""
_WHERE = {name: module for module, names in _PUBLIC.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    """Return a public name, or a module of the package, imported now."""
    if name == "__all__":
        return sorted([*_WHERE, "__version__"])
    if name in _WHERE:
        value = getattr(importlib.import_module(_WHERE[name]), name)
        globals()[name] = value
        return value
    if not name.startswith("__") and importlib.util.find_spec(f"keyhole.{name}") is not None:
        return importlib.import_module(f"keyhole.{name}")
    raise AttributeError(f"module 'keyhole' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_WHERE})
