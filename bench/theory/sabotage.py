"""Keystone with its adaptive half spoilt: what its theorem says it survives."""

from collections.abc import Callable
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from keyhole.base.errors import InvalidInput, check_relevance
from keyhole.contracts.rankers import Ranker, RankerKernel
from keyhole.kernels.compiled import assemble, kernel
from keyhole.kernels.sorting import sort_descending
from keyhole.rankers.fixed.audited import judge
from keyhole.rankers.fixed.keystone import Keystone
from keyhole.rankers.fixed.safe import LEAD

_LEAST_SPREAD = 1e-9
_NEVER = -1e12


class SabotagedParams(NamedTuple):
    """The settings of the ranker that is spoilt, what it must believe, whether it may be safe."""

    learner: Any
    means: Any
    safe: bool


@kernel
def _believe(params: Any, state: Any) -> None:
    for item in range(state.mean.shape[0]):
        state.mean[item] = params.means[item]


@kernel
def _believe_the_opposite(params: Any, state: Any) -> None:
    for item in range(state.mean.shape[0]):
        judge(state, item, 0.0)
        state.mean[item] = 1.0 - state.mean[item]


def _rank_by(rank: Any) -> Callable[..., tuple[bool, float]]:
    def rank_spoilt(
        params: Any, state: Any, draw: Any, features: Any, out: Any, work: Any
    ) -> tuple[bool, float]:
        return rank(params.learner, state, draw, features, out, work)

    return rank_spoilt


def _update_by(update: Any, spoil: Any) -> Callable[..., None]:
    def update_spoilt(params: Any, state: Any, seen: Any, work: Any) -> None:
        update(params.learner, state, seen, work)
        spoil(params, state)
        if not params.safe:
            state.numbers[LEAD] = _NEVER
        for item in range(state.mean.shape[0]):  # it is sure of what it believes: no second look
            state.spread[item] = _LEAST_SPREAD
            state.suspect[item] = 0
        sort_descending(state.mean, state.order, work.sort)

    return update_spoilt


def _note_by(note: Any) -> Callable[..., None]:
    def note_spoilt(params: Any, work: Any, out: Any) -> None:
        note(params.learner, work, out)

    return note_spoilt


class Sabotaged(Ranker):
    """A keystone whose adaptive half shows the worst list and estimates the worst means.

    Parameters
    ----------
    learner
        A :class:`~keyhole.Keystone`, whose settings and draws are used.
    means
        What the adaptive half believes of each item: it shows the items in this order, and the
        safe half corrects these means. None (default): the opposite of what it has observed, so
        that its list is its own reversed.
    safe
        Whether the safe half may be played. If not, nothing of the theorem is left.

    Notes
    -----
    The state of the ranker is overwritten after each update; all that ranks and learns is its own
    code. The theorem allows any list and any means that are no function of the coin.

    Examples
    --------
    >>> Sabotaged(Keystone(3), means=[0.1, 0.9, 0.5]).state.mean.tolist()
    [0.1, 0.9, 0.5]
    """

    def __init__(
        self, learner: Keystone, *, means: ArrayLike | None = None, safe: bool = True
    ) -> None:
        super().__init__(learner.n_items, seed=learner.seed, run=learner.run)
        self.learner, self.means, self.safe = learner, means, safe
        self.max_grade = learner.max_grade
        believed = np.full(self.n_items, 0.5)
        if means is not None:
            believed = check_relevance(means, "`means` of Sabotaged")
            if believed.shape != (self.n_items,) or believed.max() > 1.0:
                raise InvalidInput(
                    f"`means` of Sabotaged must be {self.n_items} numbers between 0 and 1, got "
                    f"{believed.tolist()}."
                )
        own = learner.kernel
        spoil = _believe_the_opposite if means is None else _believe

        def init(params: Any, n_items: int, n_features: int) -> Any:
            state = own.init(params.learner, n_items, n_features)
            state.mean[:] = params.means
            return state

        def work(params: Any, n_items: int) -> Any:
            return own.work(params.learner, n_items)

        def note_size(params: Any) -> int:
            return own.note_size(params.learner)

        self.kernel = RankerKernel(
            init,
            work,
            assemble(_rank_by, own.rank),
            assemble(_update_by, own.update, spoil),
            note=assemble(_note_by, own.note),
            note_size=note_size,
        )
        self.params = SabotagedParams(learner.params, believed, safe)

    @property
    def depth(self) -> int:
        return self.learner.depth

    def fresh(self, **changed: Any) -> Self:
        """Return one like it of the learner made anew, with the arguments named here changed."""
        return type(self)(self.learner.fresh(**changed), means=self.means, safe=self.safe)
