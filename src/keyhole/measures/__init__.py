"""How a ranking is judged: one file per measure, one row each in MEASURES."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from keyhole.base.errors import InvalidInput, check_integer, shown
from keyhole.contracts.measures import Measure
from keyhole.contracts.registry import Table

_MOST_DIGITS = 18
"""Digits of a cutoff; Python reads no number of more than some thousands."""

MEASURES: Table[Measure] = Table(
    "measure",
    Measure,
    {
        "SumLoss": "keyhole.measures.sum_loss:SumLoss",
        "PairwiseLoss": "keyhole.measures.pairwise:PairwiseLoss",
        "InversionLoss": "keyhole.measures.inversion:InversionLoss",
        "DCG": "keyhole.measures.dcg:DCG",
        "NDCG": "keyhole.measures.ndcg:NDCG",
        "Precision": "keyhole.measures.precision:Precision",
        "AP": "keyhole.measures.ap:AP",
        "AUC": "keyhole.measures.auc:AUC",
        "ERR": "keyhole.measures.err:ERR",
        "RR": "keyhole.measures.rr:RR",
        "Recall": "keyhole.measures.recall:Recall",
        "NDCGLoss": "keyhole.measures.induced:NDCGLoss",
        "APLoss": "keyhole.measures.induced:APLoss",
    },
)


def measure(name: str | Mapping[str, Any] | Measure, /, **options: Any) -> Measure:
    """Return a measure by its name, such as ``"DCG"`` or ``"NDCG@10"``.

    Parameters
    ----------
    name
        A name of MEASURES, with ``@n`` for a cutoff where the measure takes one; or a spec.
    options
        ``empty`` (the value of a list without a relevant item) and, for ERR, ``max_grade``.

    Examples
    --------
    >>> measure("NDCG@2")([0, 1, 1], [1, 2, 0])
    1.0
    >>> print(measure("NDCG@10"))
    NDCG@10 (gain; item 2^r - 1; position 1/log2(1+p), over that of the best ranking; \
cutoff 10, empty list 1)
    """
    if not isinstance(name, str):
        return MEASURES.make(name, **options)
    if not options and name.partition("@")[0] in MEASURES:
        return _known(name)
    return _made(name, **options)


@lru_cache(maxsize=256)
def _known(name: str) -> Measure:
    """Return a measure of the table, which nothing changes: it is made once."""
    return _made(name)


def _made(name: str, **options: Any) -> Measure:
    base, at, cutoff = name.partition("@")
    if not at:
        return MEASURES.make(base, **options)
    MEASURES.find(base)
    if not (cutoff.isascii() and cutoff.isdecimal() and len(cutoff) <= _MOST_DIGITS):
        raise InvalidInput(f"cutoff of measure {shown(name)} must be a whole number after the @.")
    depth = check_integer(int(cutoff), f"cutoff of {base}", at_least=1)
    return MEASURES.make(base, cutoff=depth, **options)
