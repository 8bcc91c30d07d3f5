"""Rankers of query-document lists."""

from keyhole.rankers.lists.base import ContextualRanker
from keyhole.rankers.lists.dbgd import DBGD
from keyhole.rankers.lists.gradient import Descent
from keyhole.rankers.lists.kernel_perceptron import (
    KernelMaxViolationPerceptron,
    KernelSLAMPerceptron,
)
from keyhole.rankers.lists.linear_thompson import LinearThompson
from keyhole.rankers.lists.linucb import LinUCB
from keyhole.rankers.lists.pdgd import PDGD
from keyhole.rankers.lists.perceptron import (
    ClassificationPerceptron,
    MaxViolationPerceptron,
    SLAMPerceptron,
)
from keyhole.rankers.lists.plain import RandomLists
from keyhole.rankers.lists.recall import Recall
from keyhole.rankers.lists.top_k import ContextualRTopK

__all__ = [
    "DBGD",
    "PDGD",
    "ClassificationPerceptron",
    "ContextualRTopK",
    "ContextualRanker",
    "Descent",
    "KernelMaxViolationPerceptron",
    "KernelSLAMPerceptron",
    "LinUCB",
    "LinearThompson",
    "MaxViolationPerceptron",
    "RandomLists",
    "Recall",
    "SLAMPerceptron",
]
