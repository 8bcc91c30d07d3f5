"""Rankers that do not learn: random rankings, and one ranking for ever."""

from typing import Any, ClassVar, NamedTuple, Self, Unpack

import numpy as np
from numpy.typing import ArrayLike

from keyhole.base.errors import FloatArray, IntArray, InvalidInput, check_ranking
from keyhole.contracts.lists import Impression
from keyhole.contracts.rankers import RankerKernel
from keyhole.contracts.rows import DASH_DOT, DOTTED, GREY, Look
from keyhole.kernels.compiled import kernel
from keyhole.kernels.draw import uniforms
from keyhole.kernels.sorting import sort_descending
from keyhole.rankers.fixed.base import FixedListRanker, GameFacts, NoState
from keyhole.rankers.fixed.subroutines import NOISE, ProposalWork, proposal_work


class RandomParams(NamedTuple):
    """Nothing to set, but compiled code wants a type of its own."""

    unused: int = 0


class FixedParams(NamedTuple):
    """The ranking to show."""

    ranking: Any


def _init(params: Any, n_items: int, n_features: int) -> NoState:
    return NoState(np.zeros(0))


def _work(params: Any, n_items: int) -> ProposalWork:
    return proposal_work(n_items)


@kernel
def _shuffle(
    params: Any, state: Any, draw: Any, features: Any, out: Any, work: Any
) -> tuple[bool, float]:
    uniforms(draw, NOISE, work.keys)
    sort_descending(work.keys, out, work.sort)
    return True, np.nan


@kernel
def _show(
    params: Any, state: Any, draw: Any, features: Any, out: Any, work: Any
) -> tuple[bool, float]:
    for position in range(out.shape[0]):
        out[position] = params.ranking[position]
    return False, 1.0


@kernel
def _in_order(params: Any, state: Any, features: Any, out: Any, work: Any) -> None:
    """Nothing has been learnt, and ties go to the lowest index."""
    for item in range(out.shape[0]):
        out[item] = item


@kernel
def _ignore(params: Any, state: Any, seen: Any, work: Any) -> None:
    pass


class Random(FixedListRanker):
    """A uniformly random ranking every round: what any learner must beat.

    Examples
    --------
    >>> sorted(Random(5).rank().ranking.tolist())
    [0, 1, 2, 3, 4]
    """

    label = "Random order"
    look = Look(GREY, DOTTED, "X")
    kernel = RankerKernel(_init, _work, _shuffle, _ignore, _in_order)
    params = RandomParams()
    by_item: ClassVar[tuple[str, ...] | None] = ()

    @property
    def depth(self) -> int:
        return 0

    def chances(self, impression: Impression) -> FloatArray | None:
        return np.full(self.k, self.k / self.n_items)

    def least_chance(self, impression: Impression) -> float | None:
        return self.k / self.n_items


class Fixed(FixedListRanker):
    """One ranking for ever, such as the best one in hindsight.

    Parameters
    ----------
    n_items, game
        See :class:`~keyhole.rankers.fixed.base.GameFacts`.
    ranking
        The ranking to show; by default the items in order.
        :func:`keyhole.best_fixed` computes the best for a game.

    Examples
    --------
    >>> Fixed(3, ranking=[2, 0, 1]).rank().ranking.tolist()
    [2, 0, 1]
    """

    label = "Fixed list"
    look = Look("#404040", DASH_DOT, "+")
    kernel = RankerKernel(_init, _work, _show, _ignore)
    by_item: ClassVar[tuple[str, ...] | None] = ()

    def __init__(
        self,
        n_items: int,
        *,
        ranking: ArrayLike | None = None,
        **game: Unpack[GameFacts],
    ) -> None:
        super().__init__(n_items, **game)
        shown = np.arange(self.n_items) if ranking is None else ranking
        items = check_ranking(shown, self.n_items, "`ranking` of Fixed")
        if items.ndim != 1:
            raise InvalidInput(
                f"`ranking` of Fixed must be one list of items, got an array of shape "
                f"{items.shape}."
            )
        self.params = FixedParams(items)

    @property
    def depth(self) -> int:
        return 0

    def chances(self, impression: Impression) -> FloatArray | None:
        return np.ones(self.k)

    def least_chance(self, impression: Impression) -> float | None:
        return 1.0 if self.k == self.n_items else 0.0

    def settings_for(self, where: IntArray) -> dict[str, Any]:
        """Keep the order of those that stay; those that are new come below them."""
        place_of = {int(old): new for new, old in enumerate(where) if old >= 0}
        stay = [place_of[item] for item in self.params.ranking.tolist() if item in place_of]
        new = np.flatnonzero(where < 0).tolist()
        return {**super().settings_for(where), "ranking": [*stay, *new]}

    def relabelled(self, labels: IntArray) -> Self:
        new_of_old = np.argsort(labels)
        return self.fresh(ranking=new_of_old[self.params.ranking])
