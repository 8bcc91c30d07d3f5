"""What rankers share that know of each item how often it was seen, and what it was worth."""

from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple, Self, Unpack

from keyhole.base.errors import MAX_ROUND, IntArray, InvalidInput
from keyhole.bounds import ftpl
from keyhole.contracts.arrays import PerItem, Sorting, ranker_kernel
from keyhole.contracts.rankers import RankerKernel
from keyhole.kernels.compiled import kernel
from keyhole.kernels.draw import uniforms
from keyhole.kernels.sorting import sort_descending
from keyhole.rankers.fixed.base import Arrays, FixedListRanker, GameFacts, gain_of

_TIES = 0
_TIE = 1e-6
_ROUNDING = 1e-9


class Gains(NamedTuple):
    """How relevance becomes a gain between 0 and 1."""

    exponential: bool
    largest: float


class CountingParams(NamedTuple):
    """How many positions are seen, and what relevance is worth."""

    k: int
    gains: Gains


class CountingState(NamedTuple):
    """Of each item how often it was seen, and the sum of its gains."""

    counts: PerItem
    sums: PerItem


class CountingWork(NamedTuple):
    """Scratch memory."""

    keys: PerItem
    sort: Sorting


@kernel
def gain_in_unit(gains: Any, value: float) -> float:
    """Return the gain of one relevance, between 0 and 1."""
    return gain_of(value, gains.exponential) / gains.largest


@kernel
def posterior_mean(state: Any, item: int) -> float:
    """Return the mean of the Beta(1, 1) posterior: one half where nothing was seen."""
    return (state.sums[item] + 1.0) / (state.counts[item] + 2.0)


@kernel
def begin_ties(draw: Any, keys: Any) -> None:
    """Fill keys with at most a millionth each: what is equal otherwise is then in random order."""
    uniforms(draw, _TIES, keys)
    for item in range(keys.shape[0]):
        keys[item] *= _TIE


@kernel
def sort_by_means(state: Any, draw: Any, out: Any, work: Any) -> None:
    """Sort items by their posterior means, ties at random."""
    begin_ties(draw, work.keys)
    for item in range(out.shape[0]):
        work.keys[item] += posterior_mean(state, item)
    sort_descending(work.keys, out, work.sort)


@kernel
def best_by_means(params: Any, state: Any, features: Any, out: Any, work: Any) -> None:
    """Sort items by their posterior means."""
    for item in range(out.shape[0]):
        work.keys[item] = posterior_mean(state, item)
    sort_descending(work.keys, out, work.sort)


@kernel
def count_seen(params: Any, state: Any, seen: Any, work: Any) -> None:
    """Add what was seen on top to the counts and sums."""
    for position in range(params.k):
        item = seen.ranking[position]
        state.counts[item] += 1.0
        state.sums[item] += gain_in_unit(params.gains, seen.values[position])


def gains_of(ranker: FixedListRanker) -> Gains:
    """Return how relevance becomes a gain for a ranker, or raise if gains are not per item."""
    ftpl.constants(ranker.measure, ranker.n_items, ranker.max_grade)  # refuses other measures
    return Gains(
        ranker.measure.exponential_gain, ftpl.largest_gain(ranker.measure, ranker.max_grade)
    )


def counting_kernel(
    rank: Callable[..., tuple[bool, float]],
    update: Callable[..., None] = count_seen,
    work: Any = CountingWork,
) -> RankerKernel:
    """Return the kernel of a ranker that counts what it has seen."""
    return ranker_kernel(CountingState, work, rank, update, best_by_means)


class CountingRanker(FixedListRanker):
    """A ranker that knows of each item how often it was seen, and the sum of its gains.

    Items that are new to the list begin unseen, rather than with the mean of the others.
    """

    needs_gain_per_item: ClassVar[bool] = True
    by_item: ClassVar[tuple[str, ...] | None] = CountingState._fields

    def __init__(self, n_items: int, **game: Unpack[GameFacts]) -> None:
        super().__init__(n_items, **game)
        self.gains = gains_of(self)

    @property
    def depth(self) -> int:
        return self.k

    def check_state(self, arrays: Arrays) -> None:
        counts, sums = arrays["counts"], arrays["sums"]
        if not 0.0 <= counts.min() <= counts.max() <= MAX_ROUND:
            raise InvalidInput(
                f"`counts` of the state must be between 0 and {MAX_ROUND}, got {counts.min()} to "
                f"{counts.max()}."
            )
        if sums.min() < 0.0 or bool((sums > counts * (1.0 + _ROUNDING)).any()):
            raise InvalidInput(
                f"`sums` of the state must be between 0 and `counts`, got {sums.min()} to "
                f"{sums.max()}."
            )

    def carried(
        self, arrays: Arrays, other: Self, where: IntArray, newcomers: float | None = None
    ) -> dict[str, Any]:
        """Let new items begin unseen."""
        return super().carried(arrays, other, where, 0.0)
