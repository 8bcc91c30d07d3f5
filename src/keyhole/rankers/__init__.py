"""Algorithms that rank and learn: one file each, one row each in RANKERS."""

import json
from collections.abc import Mapping, Sized
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from keyhole.base.errors import InvalidInput
from keyhole.base.files import reading_arrays
from keyhole.contracts.rankers import Ranker
from keyhole.contracts.registry import Table, no_new_code

RANKERS: Table[Ranker] = Table(
    "ranker",
    Ranker,
    {
        # of one list for everybody, first those to be taken first
        "keystone": "keyhole.rankers.fixed.keystone:Keystone",
        "semibandit": "keyhole.rankers.fixed.semibandit:SemiBandit",
        "rtopk": "keyhole.rankers.fixed.rtopk:RTopK",
        "iw-onlinerank": "keyhole.rankers.fixed.iw_onlinerank:IWOnlineRank",
        "neighbourhood": "keyhole.rankers.fixed.neighbourhood:NeighbourhoodWatch",
        "ftpl": "keyhole.rankers.fixed.full_information:FTPL",
        "adaptive-ftpl": "keyhole.rankers.fixed.adaptive_ftpl:AdaptiveFTPL",
        "leader": "keyhole.rankers.fixed.leader:Leader",
        "onlinerank": "keyhole.rankers.fixed.full_information:OnlineRank",
        "hedge": "keyhole.rankers.fixed.hedge:Hedge",
        "forecaster": "keyhole.rankers.fixed.forecaster:Forecaster",
        "thompson": "keyhole.rankers.fixed.thompson:Thompson",
        "epsilon-greedy": "keyhole.rankers.fixed.epsilon_greedy:EpsilonGreedyRanker",
        "cascade-ucb": "keyhole.rankers.fixed.cascade_ucb:CascadeUCB",
        "toprank": "keyhole.rankers.fixed.toprank:TopRank",
        "pege": "keyhole.rankers.fixed.pege:PEGE",
        "pege2": "keyhole.rankers.fixed.pege2:PEGE2",
        "random": "keyhole.rankers.fixed.plain:Random",
        "fixed": "keyhole.rankers.fixed.plain:Fixed",
        # of query-document lists
        "recall": "keyhole.rankers.lists.recall:Recall",
        "contextual-rtopk": "keyhole.rankers.lists.top_k:ContextualRTopK",
        "listnet": "keyhole.rankers.lists.gradient:Descent",
        "slam": "keyhole.rankers.lists.perceptron:SLAMPerceptron",
        "max-violation": "keyhole.rankers.lists.perceptron:MaxViolationPerceptron",
        "kernel-slam": "keyhole.rankers.lists.kernel_perceptron:KernelSLAMPerceptron",
        "kernel-max-violation": "keyhole.rankers.lists.kernel_perceptron:KernelMaxViolationPerceptron",  # noqa: E501
        "perceptron": "keyhole.rankers.lists.perceptron:ClassificationPerceptron",
        "linucb": "keyhole.rankers.lists.linucb:LinUCB",
        "linear-thompson": "keyhole.rankers.lists.linear_thompson:LinearThompson",
        "pdgd": "keyhole.rankers.lists.pdgd:PDGD",
        "dbgd": "keyhole.rankers.lists.dbgd:DBGD",
        "random-lists": "keyhole.rankers.lists.plain:RandomLists",
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
    """Return the ranker that :meth:`~keyhole.Ranker.save` wrote, with all it has learnt.

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
    """Return the ranker that a state of :meth:`~keyhole.Ranker.state_dict` is of.

    ``trusted`` is that of :func:`load`.
    """
    spec = json.loads(str(arrays["spec"]))
    if not isinstance(spec, dict):
        raise InvalidInput("`spec` of the state must be the spec of a ranker.")
    with nullcontext() if trusted else no_new_code():
        made = ranker(spec)
    return made.load_state_dict(arrays)
