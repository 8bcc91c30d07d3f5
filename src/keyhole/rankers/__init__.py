"""Algorithms that rank and learn: one file each, one row each in RANKERS."""

import json
from collections.abc import Mapping, Sized
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from keyhole.base.errors import InvalidInput
from keyhole.base.files import reading_arrays
from keyhole.contracts import Ranker
from keyhole.contracts.registry import Table, no_new_code
from keyhole.rankers.fixed import (
    FTPL,
    PEGE,
    PEGE2,
    SUBROUTINES,
    CascadeUCB,
    EpsilonGreedy,
    Fixed,
    FixedListRanker,
    Forecaster,
    Hedge,
    IWOnlineRank,
    Keystone,
    NeighbourhoodWatch,
    OnlineRank,
    Random,
    RTopK,
    SemiBandit,
    Thompson,
    TopRank,
)
from keyhole.rankers.lists import (
    DBGD,
    PDGD,
    ClassificationPerceptron,
    ContextualRanker,
    ContextualRTopK,
    Descent,
    KernelMaxViolationPerceptron,
    KernelSLAMPerceptron,
    LinearThompson,
    LinUCB,
    MaxViolationPerceptron,
    RandomLists,
    Recall,
    SLAMPerceptron,
)

RANKERS: Table[Ranker] = Table(
    "ranker",
    Ranker,
    {
        # of one list for everybody
        "keystone": Keystone,
        "rtopk": RTopK,
        "iw-onlinerank": IWOnlineRank,
        "semibandit": SemiBandit,
        "neighbourhood": NeighbourhoodWatch,
        "ftpl": FTPL,
        "onlinerank": OnlineRank,
        "hedge": Hedge,
        "forecaster": Forecaster,
        "thompson": Thompson,
        "epsilon-greedy": EpsilonGreedy,
        "cascade-ucb": CascadeUCB,
        "toprank": TopRank,
        "pege": PEGE,
        "pege2": PEGE2,
        "random": Random,
        "fixed": Fixed,
        # of query-document lists
        "recall": Recall,
        "contextual-rtopk": ContextualRTopK,
        "listnet": Descent,
        "slam": SLAMPerceptron,
        "max-violation": MaxViolationPerceptron,
        "kernel-slam": KernelSLAMPerceptron,
        "kernel-max-violation": KernelMaxViolationPerceptron,
        "perceptron": ClassificationPerceptron,
        "linucb": LinUCB,
        "linear-thompson": LinearThompson,
        "pdgd": PDGD,
        "dbgd": DBGD,
        "random-lists": RandomLists,
    },
)


def ranker(name: str | Mapping[str, Any] | Ranker, /, **settings: Any) -> Ranker:
    """Return a ranker by its name or spec.

    Parameters
    ----------
    name
        A name of RANKERS; ``module:Class`` or ``file.py:Class`` for one of your own; or the
        spec of a ranker, of which an equal one is made.
    settings
        What the ranker takes: ``n_items`` or ``items``, the names of the items, for a fixed list;
        ``n_features`` and ``n_items``, the length of the longest list, for query-document lists.

    Examples
    --------
    >>> ranker("rtopk", items=["ant", "bee", "cat"], horizon=1000)
    RTopK(n_items=3, horizon=1000, items=['ant', 'bee', 'cat'])
    >>> ranker(ranker("ftpl", n_items=5, seed=3).spec)
    FTPL(n_items=5, seed=3)
    >>> ranker("rtopk", n_items=5, horizn=1000)
    Traceback (most recent call last):
    ...
    keyhole.base.errors.UnknownName: A setting of RTopK must be one of eps_scale, horizon, items, \
k, max_grade, measure, n_blocks, n_chosen, n_items, partition, rate, rest, run, seed, subroutine, \
tight, got 'horizn'. Did you mean 'horizon'?
    """
    if isinstance(settings.get("items"), Sized):
        settings.setdefault("n_items", len(settings["items"]))
    return RANKERS.make(name, **settings)


def load(path: Path | str, *, trusted: bool = False) -> Ranker:
    """Return the ranker that :meth:`~keyhole.contracts.Ranker.save` wrote, with all it has learnt.

    Parameters
    ----------
    path
        The file.
    trusted
        Whether the file may name classes outside the package that are still to be imported,
        which is to run code. Those of installed packages, and those imported already, it may name.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "animals.npz"
    >>> animals = ranker("ftpl", items=["ant", "bee", "cat"])
    >>> animals.update(animals.rank(), [0, 0, 1])
    >>> animals.save(path)
    >>> load(path).best() == animals.best()
    True
    """
    with reading_arrays(path, "a ranker saved by Ranker.save") as arrays:
        return of_state(arrays, trusted=trusted)


def of_state(arrays: Mapping[str, Any], *, trusted: bool = False) -> Ranker:
    """Return the ranker that a state of :meth:`~keyhole.contracts.Ranker.state_dict` is of.

    ``trusted`` is that of :func:`load`.
    """
    spec = json.loads(str(arrays["spec"]))
    if not isinstance(spec, dict):
        raise InvalidInput("`spec` of the state must be the spec of a ranker.")
    with nullcontext() if trusted else no_new_code():
        made = ranker(spec)
    return made.load_state_dict(arrays)


__all__ = [
    "DBGD",
    "FTPL",
    "PDGD",
    "PEGE",
    "PEGE2",
    "RANKERS",
    "SUBROUTINES",
    "CascadeUCB",
    "ClassificationPerceptron",
    "ContextualRTopK",
    "ContextualRanker",
    "Descent",
    "EpsilonGreedy",
    "Fixed",
    "FixedListRanker",
    "Forecaster",
    "Hedge",
    "IWOnlineRank",
    "KernelMaxViolationPerceptron",
    "KernelSLAMPerceptron",
    "Keystone",
    "LinUCB",
    "LinearThompson",
    "MaxViolationPerceptron",
    "NeighbourhoodWatch",
    "OnlineRank",
    "RTopK",
    "Random",
    "RandomLists",
    "Recall",
    "SLAMPerceptron",
    "SemiBandit",
    "Thompson",
    "TopRank",
    "load",
    "of_state",
    "ranker",
]
