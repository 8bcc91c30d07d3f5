"""Losses of scores that can be descended: one file per surrogate, one row each in SURROGATES."""

from collections.abc import Mapping
from typing import Any

from keyhole.contracts.registry import Table
from keyhole.surrogates.base import (
    PairKernel,
    PartKernel,
    Surrogate,
    SurrogateKernel,
    SurrogateWork,
    surrogate_work,
)
from keyhole.surrogates.estimators import (
    doubly_robust_kernel,
    top_k,
    top_one,
    top_one_kernel,
    top_two,
    top_two_kernel,
)
from keyhole.surrogates.hinge import Hinge
from keyhole.surrogates.inclusion import inclusion_kernel
from keyhole.surrogates.interactions import interaction_order
from keyhole.surrogates.kl import UnnormalisedKL
from keyhole.surrogates.listnet import ListNet
from keyhole.surrogates.logistic import Logistic
from keyhole.surrogates.max_violation import MaxViolation
from keyhole.surrogates.ndcg_squared import NDCGSquared
from keyhole.surrogates.ordinal import Ordinal
from keyhole.surrogates.pairwise_squared import PairwiseSquared
from keyhole.surrogates.poisson import Poisson
from keyhole.surrogates.propensities import ordered_propensity, set_propensity
from keyhole.surrogates.ranksvm import RankSVM
from keyhole.surrogates.slam import SLAM
from keyhole.surrogates.smooth_dcg import SmoothDCG, annealed_eps
from keyhole.surrogates.squared import Squared

SURROGATES: Table[Surrogate] = Table(
    "surrogate",
    Surrogate,
    {
        "hinge": "keyhole.surrogates.hinge:Hinge",
        "slam": "keyhole.surrogates.slam:SLAM",
        "max_violation": "keyhole.surrogates.max_violation:MaxViolation",
        "listnet": "keyhole.surrogates.listnet:ListNet",
        "squared": "keyhole.surrogates.squared:Squared",
        "ranksvm": "keyhole.surrogates.ranksvm:RankSVM",
        "kl": "keyhole.surrogates.kl:UnnormalisedKL",
        "smooth_dcg": "keyhole.surrogates.smooth_dcg:SmoothDCG",
        "ndcg_squared": "keyhole.surrogates.ndcg_squared:NDCGSquared",
        "logistic": "keyhole.surrogates.logistic:Logistic",
        "ordinal": "keyhole.surrogates.ordinal:Ordinal",
        "poisson": "keyhole.surrogates.poisson:Poisson",
        "pairwise_squared": "keyhole.surrogates.pairwise_squared:PairwiseSquared",
    },
)


def surrogate(name: str | Mapping[str, Any] | Surrogate, /, **options: Any) -> Surrogate:
    """Return a surrogate by its name, such as ``"squared"``.

    Parameters
    ----------
    name
        A name of SURROGATES, or a spec.
    options
        What the surrogate takes: ``measure`` and ``weights`` (slam), ``eps`` (smooth_dcg),
        ``max_grade`` (logistic, ordinal).

    Examples
    --------
    >>> surrogate("slam", measure="NDCG@10").lipschitz(20)
    2.0
    >>> surrogate("rank_svm")
    Traceback (most recent call last):
    ...
    keyhole.base.errors.UnknownName: surrogate must be one of hinge, kl, listnet, logistic, \
max_violation, ndcg_squared, ordinal, pairwise_squared, poisson, ranksvm, slam, smooth_dcg, \
squared, got 'rank_svm'. Did you mean 'ranksvm'?
    """
    return SURROGATES.make(name, **options)


__all__ = [
    "SLAM",
    "SURROGATES",
    "Hinge",
    "ListNet",
    "Logistic",
    "MaxViolation",
    "NDCGSquared",
    "Ordinal",
    "PairKernel",
    "PairwiseSquared",
    "PartKernel",
    "Poisson",
    "RankSVM",
    "SmoothDCG",
    "Squared",
    "Surrogate",
    "SurrogateKernel",
    "SurrogateWork",
    "UnnormalisedKL",
    "annealed_eps",
    "doubly_robust_kernel",
    "inclusion_kernel",
    "interaction_order",
    "ordered_propensity",
    "set_propensity",
    "surrogate",
    "surrogate_work",
    "top_k",
    "top_one",
    "top_one_kernel",
    "top_two",
    "top_two_kernel",
]
