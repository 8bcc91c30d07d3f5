"""Rankers of query-document lists."""

from keyhole.rankers.lists.base import ContextualRanker
from keyhole.rankers.lists.gradient import Descent
from keyhole.rankers.lists.kernel_perceptron import (
    KernelMaxViolationPerceptron,
    KernelSLAMPerceptron,
)
from keyhole.rankers.lists.perceptron import (
    ClassificationPerceptron,
    MaxViolationPerceptron,
    SLAMPerceptron,
)
from keyhole.rankers.lists.plain import RandomLists
from keyhole.rankers.lists.recall import Recall
from keyhole.rankers.lists.top_k import ContextualRTopK

__all__ = [
    "ClassificationPerceptron",
    "ContextualRTopK",
    "ContextualRanker",
    "Descent",
    "KernelMaxViolationPerceptron",
    "KernelSLAMPerceptron",
    "MaxViolationPerceptron",
    "RandomLists",
    "Recall",
    "SLAMPerceptron",
]
