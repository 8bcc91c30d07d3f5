"""Items that are almost as good as each other, and leaders that hide them."""

from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from keyhole.base.errors import (
    IntArray,
    InvalidInput,
    check_integer,
    check_number,
    check_relevance,
    shown,
)
from keyhole.base.limits import check_length
from keyhole.contracts.worlds import World, WorldKernel
from keyhole.kernels.compiled import kernel
from keyhole.kernels.draw import uniforms

_LIKES = 0


class NearTiesParams(NamedTuple):
    """How likely each item is to be relevant."""

    chances: Any


@kernel
def _relevance(params: Any, draw: Any, out: Any) -> None:
    uniforms(draw, _LIKES, out)
    for item in range(out.shape[0]):
        out[item] = 1.0 if out[item] < params.chances[item] else 0.0


class NearTies(World):
    """Leaders whom everybody likes; of the others, some are better than the rest by a small gap.

    Parameters
    ----------
    n_items
        Size of the list.
    n_leaders
        How many items (the last ones) are always relevant.
    n_better
        How many of the others (the last ones) are relevant with probability 1/2 + gap/2 rather
        than 1/2 - gap/2; by default half of them.
    gap
        The difference.
    chances
        How likely each item is to be relevant, in place of all that.

    Notes
    -----
    The crowd on which lower bounds of partial monitoring rest. Where n items count alike, a gap of
    order T^(-1/2) is too small to be learnt for less than a multiple of T^(1/2). With a leader, a
    ranker that sees the top alone has to take it from there in order to see another item, which
    costs a constant: at a gap of order T^(-1/3), both to look and not to look cost T^(2/3).

    Examples
    --------
    >>> NearTies(5, n_leaders=1, gap=1.0).relevance(round=0).tolist()
    [0.0, 0.0, 1.0, 1.0, 1.0]
    """

    kernel: ClassVar[WorldKernel] = WorldKernel(_relevance)
    max_grade = 1.0
    is_binary = True

    def __init__(
        self,
        n_items: int = 10,
        *,
        n_leaders: int = 0,
        n_better: int | None = None,
        gap: float = 0.1,
        chances: ArrayLike | None = None,
    ) -> None:
        self.n_items = check_length(n_items, "`n_items` of NearTies")
        n_leaders = check_integer(
            n_leaders, "`n_leaders`", at_least=0, at_most=self.n_items, bound="n_items="
        )
        others = self.n_items - n_leaders
        n_better = others - others // 2 if n_better is None else n_better
        n_better = check_integer(
            n_better, "`n_better`", at_least=0, at_most=others, bound="the others="
        )
        gap = check_number(gap, "`gap` of NearTies", at_least=0.0, at_most=1.0)
        likes = np.full(self.n_items, 0.5 - gap / 2.0)
        likes[others - n_better :] = 0.5 + gap / 2.0
        likes[others:] = 1.0
        if chances is not None:
            likes = check_relevance(chances, "`chances` of NearTies")
            if likes.shape != (self.n_items,) or likes.max() > 1.0:
                raise InvalidInput(
                    f"`chances` of NearTies must be {self.n_items} probabilities, got "
                    f"{shown(likes.tolist())}."
                )
        self.params = NearTiesParams(likes)

    def relabelled(self, labels: IntArray) -> Self:
        return type(self)(self.n_items, chances=self.params.chances[labels])
