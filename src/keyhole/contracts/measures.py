"""What a measure must be."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from keyhole.base.display import Description
from keyhole.base.errors import (
    FloatArray,
    IntArray,
    InvalidInput,
    check_integer,
    check_number,
    check_ranking,
    check_relevance,
    shown,
)
from keyhole.contracts.registry import Configured
from keyhole.kernels.compiled import assemble
from keyhole.kernels.sorting import SortWork, sort_work


class MeasureKernel(NamedTuple):
    """The compiled half of a measure.

    ``prepare(params, relevance, gains, work) -> (offset, norm)`` turns relevance into a
    gain per item; ``score(params, gains, offset, norm, ranking) -> value`` judges a
    ranking. For a linear measure the value is (weights by position . gains + offset) / norm.
    """

    prepare: Callable[..., tuple[float, float]]
    score: Callable[..., float]


class MeasureParams(NamedTuple):
    """What measure kernels read: weight by position, number of positions scored, and rules."""

    weights: Any
    depth: int
    empty: float
    max_grade: float


class MeasureWork(NamedTuple):
    """Scratch memory of ``prepare``; no result depends on its content."""

    order: Any
    sort: SortWork


def measure_work(n_items: int) -> MeasureWork:
    """Allocate the scratch memory of measures for lists of up to ``n_items``."""
    return MeasureWork(np.empty(n_items, np.int64), sort_work(n_items))


def _list_loop(prepare: Any, score: Any) -> Callable[..., None]:
    def score_lists(
        params: Any, relevance: Any, rankings: Any, gains: Any, work: Any, out: Any
    ) -> None:
        for row in range(relevance.shape[0]):
            offset, norm = prepare(params, relevance[row], gains, work)
            out[row] = score(params, gains, offset, norm, rankings[row])

    return score_lists


def _checked_empty(empty: Any, name: str) -> float:
    """Return the value of an empty list, or raise; NaN, a word in specs, leaves such lists out."""
    if isinstance(empty, str | float) and str(empty) == "nan":
        return np.nan
    return check_number(empty, f"`empty` of {name}")


class Measure(Configured, ABC):
    """A named way to judge a ranking by the relevance of its items.

    Printing it states its gain, discount, cutoff and what it gives an empty list
    (one without a relevant item).
    """

    name: ClassVar[str]
    kernel: MeasureKernel
    is_loss: ClassVar[bool] = False
    gain: ClassVar[str] = "1[r > 0]"
    discount: ClassVar[str]
    takes_cutoff: ClassVar[bool] = False
    exponential_gain: ClassVar[bool] = False
    """Whether the gain of an item is 2^r - 1 rather than r."""
    gain_per_item: ClassVar[bool] = False
    """Whether an item's gain depends on its own relevance only so that a part of
    the list tells something about the whole."""
    default_empty: ClassVar[float | None] = None
    """Value of an empty list; None where the formula itself gives one."""

    def __init__(self, cutoff: int | None = None, *, empty: float | None = None) -> None:
        if cutoff is not None:
            self._check_takes_cutoff(cutoff)
        self.cutoff = (
            None if cutoff is None else check_integer(cutoff, f"cutoff of {self.name}", at_least=1)
        )
        if empty is not None and self.default_empty is None:
            raise InvalidInput(f"{self.name} has no rule for empty lists to change.")
        self.empty = self.default_empty if empty is None else _checked_empty(empty, self.name)

    @abstractmethod
    def weights(self, n_items: int) -> FloatArray:
        """Return the weight of each position."""

    @property
    def max_grade(self) -> float:
        """The largest relevance the measure is defined for."""
        return 1000.0 if self.exponential_gain else np.inf

    def is_gain_per_item(self, max_grade: float) -> bool:
        """Return whether gains are per item for grades up to ``max_grade``."""
        return self.gain_per_item and self.is_linear(binary=max_grade <= 1.0)

    def kernel_for(self, binary: bool) -> MeasureKernel:
        """Return the kernel to use where relevance is known to be binary, or is not."""
        return self.kernel

    def is_linear(self, binary: bool) -> bool:
        """Return whether a ranking's value is linear in the gains, so that sorting is optimal."""
        return False

    def params(self, n_items: int) -> MeasureParams:
        """Return what the kernels read for lists of ``n_items``."""
        depth = n_items if self.cutoff is None else min(self.cutoff, n_items)
        empty = 0.0 if self.empty is None else self.empty
        return MeasureParams(self.weights(n_items), depth, empty, self.max_grade)

    def __matmul__(self, cutoff: int) -> "Measure":
        """Return the measure cut off at a position: ``measure("NDCG") @ 10``."""
        self._check_takes_cutoff(cutoff)
        return type(self)(cutoff, empty=self.empty)

    def _check_takes_cutoff(self, cutoff: Any) -> None:
        if not self.takes_cutoff:
            raise InvalidInput(f"{self.name} takes no cutoff, got {shown(cutoff)}.")

    def __call__(self, relevance: ArrayLike, ranking: ArrayLike) -> float:
        """Return the value of one ranking (item at each position, best first)."""
        by_item, order = self._check(relevance, ranking, n_dims=1)
        gains = np.empty(by_item.shape[0])
        params, work = self.params(by_item.shape[0]), measure_work(by_item.shape[0])
        offset, norm = self.kernel.prepare(params, by_item, gains, work)
        return float(self.kernel.score(params, gains, offset, norm, order))

    def many(self, relevance: ArrayLike, rankings: ArrayLike) -> FloatArray:
        """Return the value of many rankings, one per row."""
        by_item, order = self._check(relevance, rankings, n_dims=2)
        n_lists, n_items = by_item.shape
        out, gains = np.empty(n_lists), np.empty(n_items)
        params, work = self.params(n_items), measure_work(n_items)
        assemble(_list_loop, *self.kernel)(params, by_item, order, gains, work, out)
        return out

    def _check(
        self, relevance: ArrayLike, ranking: ArrayLike, n_dims: int
    ) -> tuple[FloatArray, IntArray]:
        by_item = check_relevance(relevance)
        if by_item.ndim != n_dims or by_item.shape[-1] == 0:
            raise InvalidInput(
                f"relevance must have {n_dims} dimension{'s'[: n_dims - 1]} and at least one item, "
                f"got shape {by_item.shape}."
            )
        order = check_ranking(ranking, by_item.shape[-1])
        if order.shape != by_item.shape:
            raise InvalidInput(
                f"ranking must have the shape of relevance {by_item.shape}, got {order.shape}."
            )
        if by_item.size and float(by_item.max()) > self.max_grade:
            raise InvalidInput(
                f"relevance must be at most max_grade={self.max_grade} for {self.name}, "
                f"got {by_item.max()}."
            )
        return by_item, order

    @property
    def label(self) -> str:
        """The name with its cutoff, as :func:`keyhole.measure` takes it."""
        return self.name if self.cutoff is None else f"{self.name}@{self.cutoff}"

    def __str__(self) -> str:
        cutoff = "no cutoff" if self.cutoff is None else f"cutoff {self.cutoff}"
        empty = "" if self.empty is None else f", empty list {self.empty:g}"
        kind = "loss" if self.is_loss else "gain"
        return f"{self.label} ({kind}; item {self.gain}; position {self.discount}; {cutoff}{empty})"

    def _described(self) -> Description:
        return Description(f"<{self}>")
