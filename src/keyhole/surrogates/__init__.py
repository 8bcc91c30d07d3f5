"""Losses of scores that can be descended: one file per surrogate, one row each in SURROGATES."""

from collections.abc import Mapping
from typing import Any

from keyhole.contracts.registry import Table
from keyhole.surrogates.base import Surrogate

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
