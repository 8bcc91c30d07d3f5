"""Rankers that learn nothing, made of one that does: what a claim about learning must tell apart.

A claim that holds for a random ranker, or for one that never updates, says nothing about learning.
:func:`check_only_learners_pass` runs it on a learner and demands that it fail for the others::

    def learns(ranker):
        trace = play(ranker, Flips(6, n_relevant=2), rounds=5000, measure="DCG")
        assert trace.average_regret.mean < 0.3

    ranker = MyRanker(6, horizon=5000)
    check_only_learners_pass(learns, ranker, non_learners(ranker))
"""

import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Self, TypeVar

import numpy as np

from keyhole.base.errors import FloatArray, check_choice, check_number
from keyhole.contracts.lists import Query
from keyhole.contracts.rankers import Ranker, RankerKernel
from keyhole.kernels.compiled import assemble, kernel
from keyhole.kernels.draw import scalar

_SHUFFLE = 15
"""The use of the draws of random rankings: none of the rankers' own."""

T = TypeVar("T")


class NonLearnerParams(NamedTuple):
    """The settings of the learner, where it is asked, and the largest relevance."""

    learner: Any
    max_grade: float


class _Nothing(NamedTuple):
    """The state and the memory of a ranker that has neither."""

    unused: Any


def _init(params: Any, n_items: int, n_features: int) -> _Nothing:
    return _Nothing(np.zeros(0))


def _work(params: Any, n_items: int) -> _Nothing:
    return _Nothing(np.zeros(0))


@kernel
def _in_order(params: Any, state: Any, features: Any, out: Any, work: Any) -> None:
    for position in range(out.shape[0]):
        out[position] = position


@kernel
def _show_in_order(
    params: Any, state: Any, draw: Any, features: Any, out: Any, work: Any
) -> tuple[bool, float]:
    _in_order(params, state, features, out, work)
    return False, 1.0


@kernel
def _shuffle(
    params: Any, state: Any, draw: Any, features: Any, out: Any, work: Any
) -> tuple[bool, float]:
    _in_order(params, state, features, out, work)
    for last in range(out.shape[0] - 1, 0, -1):
        other = int(scalar(draw, draw.round, _SHUFFLE, last) * (last + 1))
        out[last], out[other] = out[other], out[last]
    return True, math.nan


def _rank_by(rank: Any) -> Callable[..., tuple[bool, float]]:
    def rank_unlearnt(
        params: Any, state: Any, draw: Any, features: Any, out: Any, work: Any
    ) -> tuple[bool, float]:
        return rank(params.learner, state, draw, features, out, work)

    return rank_unlearnt


@kernel
def _learn_nothing(params: Any, state: Any, seen: Any, work: Any) -> None:
    pass


def _opposite_of(update: Any) -> Callable[..., None]:
    def update_contrarily(params: Any, state: Any, seen: Any, work: Any) -> None:
        for position in range(seen.values.shape[0]):
            seen.values[position] = params.max_grade - seen.values[position]
        update(params.learner, state, seen, work)
        for position in range(seen.values.shape[0]):  # they are not ours
            seen.values[position] = params.max_grade - seen.values[position]

    return update_contrarily


KINDS: dict[str, Callable[..., Any] | None] = {
    "random": _shuffle,
    "fixed": _show_in_order,
    "idle": None,
    "contrary": None,
}
"""What ranks in place of the learner, if anything does; ``contrary`` alone is told anything."""


def _greedy_by(greedy: Any) -> Callable[..., None]:
    def greedy_unlearnt(params: Any, state: Any, features: Any, out: Any, work: Any) -> None:
        greedy(params.learner, state, features, out, work)

    return greedy_unlearnt


def _prepare_by(prepare: Any) -> Callable[..., None]:
    def prepare_unlearnt(params: Any, state: Any, features: Any, upcoming: Any, work: Any) -> None:
        prepare(params.learner, state, features, upcoming, work)

    return prepare_unlearnt


def _note_by(note: Any) -> Callable[..., None]:
    def note_unlearnt(params: Any, work: Any, out: Any) -> None:
        note(params.learner, work, out)

    return note_unlearnt


def _without_learner(rank: Any, has_greedy: bool) -> RankerKernel:
    """Return what needs no learner: its code is the same for all, and compiled once."""
    return RankerKernel(_init, _work, rank, _learn_nothing, _in_order if has_greedy else None)


def _by_learner(own: RankerKernel, contrary: bool) -> RankerKernel:
    def init(params: Any, n_items: int, n_features: int) -> Any:
        return own.init(params.learner, n_items, n_features)

    def work(params: Any, n_items: int) -> Any:
        return own.work(params.learner, n_items)

    def note_size(params: Any) -> int:
        return own.note_size(params.learner)

    return RankerKernel(
        init,
        work,
        assemble(_rank_by, own.rank),
        assemble(_opposite_of, own.update) if contrary else _learn_nothing,
        None if own.greedy is None else assemble(_greedy_by, own.greedy),
        assemble(_prepare_by, own.prepare),
        note=assemble(_note_by, own.note),
        note_size=note_size,
    )


class NonLearner(Ranker):
    """A ranker for the lists of another one that does not learn what that one learns.

    Parameters
    ----------
    learner
        Whose lists are ranked, with its settings, draws and scratch memory if it is asked.
    kind
        ``random``: a random ranking every round. ``fixed``: the items in order. ``idle``: what the
        learner shows, but it is never told anything. ``contrary``: it is told ``max_grade`` less
        the relevance, so that its scores have the wrong sign.
    max_grade
        The largest relevance, which is whole.

    Examples
    --------
    >>> from keyhole import RTopK
    >>> NonLearner(RTopK(4, horizon=100), "fixed").rank().ranking.tolist()
    [0, 1, 2, 3]
    """

    def __init__(self, learner: Ranker, kind: str, *, max_grade: float = 1.0) -> None:
        super().__init__(learner.n_items, seed=learner.seed, run=learner.run)
        self.learner, self.kind, self.n_features = learner, kind, learner.n_features
        self.max_grade = learner.max_grade
        rank = KINDS[check_choice(kind, "`kind` of NonLearner", KINDS)]
        if rank is None:
            self.kernel = _by_learner(learner.kernel, kind == "contrary")
        else:
            self.kernel = _without_learner(rank, learner.kernel.greedy is not None)
        self.params = NonLearnerParams(
            learner.params if rank is None else 0,
            check_number(max_grade, "`max_grade` of NonLearner", above=0.0),
        )

    @property
    def depth(self) -> int:
        return self.learner.depth

    def features_of(self, query: Query) -> FloatArray:
        return self.learner.features_of(query)

    def fresh(self, **changed: Any) -> Self:
        """Return one like it of the learner made anew, with the arguments named here changed."""
        learner = self.learner.fresh(**changed)
        return type(self)(learner, self.kind, max_grade=self.params.max_grade)


def non_learners(learner: Ranker, *, max_grade: float = 1.0) -> dict[str, Ranker]:
    """Return one ranker of each kind of :class:`NonLearner`, by its name."""
    return {kind: NonLearner(learner, kind, max_grade=max_grade) for kind in KINDS}


def check_only_learners_pass(
    claim: Callable[[T], None], learner: T, others: Mapping[str, T]
) -> None:
    """Check that a claim holds for a learner and for none of those that do not learn.

    Examples
    --------
    >>> def claim(errors):
    ...     assert errors < 10, "too many errors"
    >>> check_only_learners_pass(claim, 3, {"random": 50})
    >>> check_only_learners_pass(claim, 3, {"random": 9})
    Traceback (most recent call last):
    ...
    AssertionError: A claim about learning must fail for what does not learn, but 'random' passes.
    """
    claim(learner)
    for name, other in others.items():
        try:
            claim(other)
        except AssertionError:
            continue
        raise AssertionError(
            f"A claim about learning must fail for what does not learn, but {name!r} passes."
        )
