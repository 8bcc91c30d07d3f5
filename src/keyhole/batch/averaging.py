"""Online to batch: the mean of the weights that an online ranker went through."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, cast

import numpy as np

from keyhole.base.errors import FloatArray, InvalidInput
from keyhole.contracts.rankers import RankerKernel
from keyhole.contracts.worlds import World
from keyhole.game.play import play
from keyhole.kernels.compiled import assemble
from keyhole.rankers import RANKERS
from keyhole.rankers.lists.base import ContextualRanker, LinearState


class AveragedState(NamedTuple):
    """The state of a linear ranker, the sum of its weights, and how many were added."""

    weights: Any
    squares: Any
    total: Any
    count: Any


def _averaged_init(params: Any, n_items: int, n_features: int) -> AveragedState:
    return AveragedState(
        np.zeros(n_features), np.zeros(n_features), np.zeros(n_features), np.zeros(1)
    )


def _adding(update: Any) -> Callable[..., None]:
    def add_and_update(params: Any, state: Any, seen: Any, work: Any) -> None:
        for column in range(state.total.shape[0]):
            state.total[column] += state.weights[column]
        state.count[0] += 1.0
        update(params, state, seen, work)

    return add_and_update


class Averaged(ContextualRanker):
    """Any linear ranker of lists, which also keeps the mean of the weights it ranked with.

    Parameters
    ----------
    ranker
        Its settings are used; it is not changed.

    Notes
    -----
    Section 4.5 of [T16]: where losses are convex, the mean of the weights of n rounds has at most
    the mean regret of these rounds as excess risk, in expectation. Rankings are those of the
    ranker itself: the mean is for afterwards.

    Examples
    --------
    >>> from keyhole import Feedback, Query
    >>> from keyhole.rankers.lists.gradient import Descent
    >>> steps = {"step": "fixed", "rate": 0.25, "centred": False}
    >>> ranker = Averaged(Descent(1, 2, surrogate="squared", **steps))
    >>> for _ in range(2):
    ...     impression = ranker.rank(Query(2, np.array([[1.0], [0.0]])))
    ...     ranker.update(impression, Feedback(np.array([1.0, 0.0])))
    >>> ranker.mean_weights.tolist()
    [0.25]
    """

    def __init__(
        self, ranker: ContextualRanker | Mapping[str, Any], *, seed: int = 0, run: int = 0
    ) -> None:
        ranker = cast(ContextualRanker, RANKERS.make(ranker))
        super().__init__(ranker.n_features, ranker.n_items, seed=seed, run=run)
        if not isinstance(ranker.state, LinearState):
            raise InvalidInput(
                f"`ranker` of Averaged must have a linear state, got {type(ranker).__name__}."
            )
        self.params, self.max_grade, self._depth = ranker.params, ranker.max_grade, ranker.depth
        self.kernel = RankerKernel(
            _averaged_init,
            ranker.kernel.work,
            ranker.kernel.rank,
            assemble(_adding, ranker.kernel.update),
            ranker.kernel.greedy,
            ranker.kernel.prepare,
        )

    @property
    def depth(self) -> int:
        return self._depth

    @property
    def mean_weights(self) -> FloatArray:
        """The mean of the weights before each update."""
        return self.state.total / max(self.state.count[0], 1.0)


def average_weights(
    ranker: ContextualRanker, world: World, *, rounds: int, seed: int = 0
) -> FloatArray:
    """Return the mean of the weights of a ranker that learns on a stream of lists, compiled.

    Parameters
    ----------
    ranker, world, rounds, seed
        See :func:`keyhole.play`.
    """
    averaged = Averaged(ranker, run=ranker.run)
    state = play(averaged, world, rounds=rounds, seed=seed, runs=ranker.run + 1).states[ranker.run]
    return state["total"] / state["count"][0]
