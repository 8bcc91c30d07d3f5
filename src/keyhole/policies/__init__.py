"""Pick one of K: advertisements, chosen by what logged clicks taught."""

from keyhole.policies.base import (
    Always,
    EpsilonGreedy,
    Greedy,
    Policy,
    Scorer,
    Softmax,
    Uniform,
)
from keyhole.policies.choosing import MODELS, Trained, train_policy
from keyhole.policies.files import load_policy, save_policy
from keyhole.policies.forest import ForestScorer
from keyhole.policies.linear import LinearScorer
from keyhole.policies.online import OnlineRankers
from keyhole.policies.pairs import fit_pairs
from keyhole.policies.tables import POLICIES, SCORERS, policy
from keyhole.policies.training import fit_classifiers, fit_forests, fit_rankers

__all__ = [
    "MODELS",
    "POLICIES",
    "SCORERS",
    "Always",
    "EpsilonGreedy",
    "ForestScorer",
    "Greedy",
    "LinearScorer",
    "OnlineRankers",
    "Policy",
    "Scorer",
    "Softmax",
    "Trained",
    "Uniform",
    "fit_classifiers",
    "fit_forests",
    "fit_pairs",
    "fit_rankers",
    "load_policy",
    "policy",
    "save_policy",
    "train_policy",
]
