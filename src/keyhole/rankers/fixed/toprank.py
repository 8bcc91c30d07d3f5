"""TopRank: blocks of items that differences of pairs have not told apart."""

import math
from typing import Annotated, Any, ClassVar, NamedTuple, Self, Unpack

import numpy as np

from keyhole.base.errors import MAX_ROUND, IntArray, InvalidInput
from keyhole.base.limits import check_memory
from keyhole.contracts.arrays import Array, ItemIndices, PerItem, Sorting, ranker_kernel
from keyhole.contracts.rows import DASHED, Look
from keyhole.kernels.compiled import kernel, rare_kernel
from keyhole.kernels.draw import uniforms
from keyhole.kernels.sorting import sort_descending
from keyhole.rankers.fixed.base import Arrays, FixedListRanker, GameFacts
from keyhole.rankers.fixed.counting import Gains, gain_in_unit, gains_of

_ORDER = 0
_CONSTANT = 4.0 * math.sqrt(2.0 / math.pi) / math.erf(math.sqrt(2.0))
_ROUNDING = 1e-9


class TopRankParams(NamedTuple):
    """How many positions are seen, and what relevance is worth."""

    k: int
    gains: Gains


_PerPair = Annotated[Any, Array(("n_items", "n_items"))]


class TopRankState(NamedTuple):
    """Of each pair of items: the sum of differences, that of their sizes, and who lost to whom.

    ``beaten[i, j]`` is 1 where item i is known to be worse than item j.
    """

    differences: _PerPair
    sizes: _PerPair
    beaten: _PerPair


class TopRankWork(NamedTuple):
    """Scratch memory.

    ``losses`` are how many items that are not placed yet beat each one, ``ends`` where the block of
    each position ends.
    """

    keys: PerItem
    preferred: ItemIndices
    losses: PerItem
    ends: ItemIndices
    gains: PerItem
    sort: Sorting


@kernel
def _note(params: Any, work: Any, out: Any) -> None:
    """Write down where the block of each position that is seen ends."""
    for position in range(out.shape[0]):
        out[position] = work.ends[position]


@kernel
def _take_block(out: Any, begin: int, most_losses: float, work: Any) -> int:
    """Place items that are not beaten more often than said; return where they end."""
    end = begin
    for place in range(out.shape[0]):
        item = work.preferred[place]
        if 0.0 <= work.losses[item] <= most_losses:
            out[end] = item
            end += 1
    return end


@rare_kernel
def _fill_blocks(state: Any, out: Any, work: Any) -> None:
    """Place items block by block: first those that nobody beats, then those beaten by these alone.

    Within a block they are in the order of ``work.preferred``.
    """
    n_items, losses = out.shape[0], work.losses
    for item in range(n_items):
        losses[item] = 0.0
        for other in range(n_items):
            losses[item] += state.beaten[item, other]
    begin = 0
    while begin < n_items:
        end = _take_block(out, begin, 0.0, work)
        if end == begin:  # verdicts that are wrong can make a circle, of which nobody is first
            end = _take_block(out, begin, np.inf, work)
        for position in range(begin, end):
            work.ends[position] = end
            losses[out[position]] = -np.inf
        for position in range(begin, end):
            for item in range(n_items):
                losses[item] -= state.beaten[item, out[position]]
        begin = end


@kernel
def _rank(
    params: Any, state: Any, draw: Any, features: Any, out: Any, work: Any
) -> tuple[bool, float]:
    uniforms(draw, _ORDER, work.keys)
    sort_descending(work.keys, work.preferred, work.sort)
    _fill_blocks(state, out, work)
    return True, np.nan


@kernel
def _compare(state: Any, item: int, other: int, difference: float, round: int) -> None:
    """Add the difference of two items of one block, and judge who is better."""
    state.differences[item, other] += difference
    state.differences[other, item] -= difference
    state.sizes[item, other] += abs(difference)
    state.sizes[other, item] = state.sizes[item, other]
    size, total = state.sizes[item, other], state.differences[item, other]
    odds = _CONSTANT * (round + 1.0) * math.sqrt(max(size, 1.0))
    if total * total >= 2.0 * size * math.log(odds):
        state.beaten[other, item] = 1.0 if total > 0.0 else state.beaten[other, item]
        state.beaten[item, other] = 1.0 if total < 0.0 else state.beaten[item, other]


@kernel
def _update(params: Any, state: Any, seen: Any, work: Any) -> None:
    n_items, k = seen.ranking.shape[0], params.k
    for position in range(n_items):
        work.gains[position] = (
            gain_in_unit(params.gains, seen.values[position]) if position < k else 0.0
        )
    end = 0
    for position in range(k):
        if position >= end:
            end = int(min(max(seen.note[position], position + 1.0), float(n_items)))
        for below in range(position + 1, end):
            difference = work.gains[position] - work.gains[below]
            if difference != 0.0:
                _compare(
                    state, seen.ranking[position], seen.ranking[below], difference, seen.draw.round
                )


@kernel
def _greedy(params: Any, state: Any, features: Any, out: Any, work: Any) -> None:
    """Sort the items of each block by the sum of their differences."""
    for item in range(out.shape[0]):
        work.keys[item] = 0.0
        for other in range(out.shape[0]):
            work.keys[item] += state.differences[item, other]
    sort_descending(work.keys, work.preferred, work.sort)
    _fill_blocks(state, out, work)


class TopRank(FixedListRanker):
    """Blocks of items in random order, split as differences between pairs become certain.

    Parameters
    ----------
    n_items, game
        See :class:`~keyhole.rankers.fixed.base.GameFacts`; the horizon is of no concern. The
        measure must have gains per item.

    Notes
    -----
    Algorithm 1 of Lattimore, Kveton, Li & Szepesvari (2018), "TopRank: A Practical Algorithm for
    Online Stochastic Ranking". Items are cut into blocks: the first has all that no item is known
    to be better than, the next all that only those beat, and so on. The items of a block are shown
    in random order on its positions. For a pair of one block U is the difference of what they
    gained, S the sum of U and N that of abs(U). One is better once S >= sqrt(2 N ln(c sqrt(N) /
    delta)), c = 4 sqrt(2 / pi) / erf(sqrt(2)), for ever.

    What differs: the paper's K positions with clicks are the first k, with their relevance; what
    an item gains below them counts as 0, as that of an item that is not shown does there. It is
    the randomness within a block that makes this fair. So blocks below position k are never split:
    regret is of order sqrt(T log T), or log T by the gaps, for what is among the first k, and
    measures that look deeper have no guarantee. delta is 1 / t in place of 1 / T, because T is not
    known, and N in the logarithm counts at least 1, because gains may be graded. Where the blocks
    of the first k ended travels with the impression, for feedback that is late. A round takes
    O(m^2) time, and the state O(m^2) memory.

    Examples
    --------
    >>> ranker = TopRank(2)
    >>> for _ in range(100):
    ...     impression = ranker.rank()
    ...     ranker.update(impression, 1 if impression.items[0] == 1 else 0)
    >>> ranker.rank().items
    [1, 0]
    """

    label = "TopRank"
    look = Look("#117733", DASHED, "d")
    needs_gain_per_item: ClassVar[bool] = True
    by_item: ClassVar[tuple[str, ...] | None] = TopRankState._fields
    kernel = ranker_kernel(TopRankState, TopRankWork, _rank, _update, _greedy)._replace(
        note=_note, note_size=lambda params: params.k
    )

    def __init__(self, n_items: int, **game: Unpack[GameFacts]) -> None:
        super().__init__(n_items, **game)
        check_memory(3 * 8.0 * self.n_items**2, f"Every pair of {self.n_items} items")
        self.params = TopRankParams(self.k, gains_of(self))

    @property
    def depth(self) -> int:
        return self.k

    def check_state(self, arrays: Arrays) -> None:
        sizes, beaten = arrays["sizes"], arrays["beaten"]
        if not 0.0 <= sizes.min() <= sizes.max() <= MAX_ROUND:
            raise InvalidInput(
                f"`sizes` of the state must be between 0 and {MAX_ROUND}, got {sizes.min()} to "
                f"{sizes.max()}."
            )
        if bool((np.abs(arrays["differences"]) > sizes * (1.0 + _ROUNDING)).any()):
            raise InvalidInput(
                f"`differences` of the state must not exceed `sizes`, got "
                f"{arrays['differences'].min()} to {arrays['differences'].max()}."
            )
        if bool(((beaten != 0.0) & (beaten != 1.0)).any()):
            raise InvalidInput(
                f"`beaten` of the state must be 0 or 1, got {beaten.min()} to {beaten.max()}."
            )

    def carried(
        self, arrays: Arrays, other: Self, where: IntArray, newcomers: float | None = None
    ) -> dict[str, Any]:
        """Keep what is known of pairs of which both stay; a new item has been compared to none."""
        stay = np.flatnonzero(where >= 0)
        moved = {name: np.zeros((len(where), len(where))) for name in arrays}
        for name, array in arrays.items():
            moved[name][np.ix_(stay, stay)] = array[np.ix_(where[stay], where[stay])]
        return moved
