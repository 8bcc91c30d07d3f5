"""What a surrogate is: a loss of scores and relevance that can be descended.

A surrogate stands in for a measure that jumps. Its gradient with respect to the scores
(chain it with the features for that of a model) may fall apart into terms that each need
the relevance of few items; then it can be estimated where only the top of a list is seen.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from keyhole.base.errors import (
    FloatArray,
    InvalidInput,
    check_choice,
    check_integer,
    check_number,
    check_relevance,
)
from keyhole.contracts.registry import Configured
from keyhole.kernels.sorting import SortWork, sort_work


class SurrogateKernel(NamedTuple):
    """The compiled half of a surrogate.

    ``value(params, scores, relevance, work) -> float``;
    ``gradient(params, scores, relevance, out, work)`` fills ``out``, one entry per item.
    Lists may be shorter than those ``params`` and ``work`` were made for.
    """

    value: Callable[..., float]
    gradient: Callable[..., None]


class PartKernel(NamedTuple):
    """A gradient that is a known vector plus one term per item.

    ``known(params, scores, out)`` fills ``out`` with what needs no relevance;
    ``part(params, scores, item, grade, out)`` adds the term of one item.
    """

    known: Callable[..., None]
    part: Callable[..., None]


class PairKernel(NamedTuple):
    """A gradient that is a sum over ordered pairs of two different items.

    ``pair(params, scores, i, j, grade_i, grade_j, out)`` adds the term of one pair.
    """

    pair: Callable[..., None]


class PlainParams(NamedTuple):
    """Parameters of a surrogate that has none."""

    max_items: int


class SurrogateWork(NamedTuple):
    """Scratch memory of surrogates and of their estimates; no result depends on its content."""

    order: Any
    gains: Any
    extra: Any
    sort: SortWork


def surrogate_work(max_items: int) -> SurrogateWork:
    """Allocate the scratch memory for lists of up to ``max_items``."""
    return SurrogateWork(
        np.empty(max_items, np.int64),
        np.empty(max_items),
        np.empty(max_items),
        sort_work(max_items),
    )


class Surrogate(Configured, ABC):
    """A loss of scores and relevance, and its gradient with respect to the scores."""

    name: ClassVar[str]
    kernel: ClassVar[SurrogateKernel]
    parts: ClassVar[PartKernel | None] = None
    """The terms of the gradient, where each needs the relevance of one item."""
    pairs: ClassVar[PairKernel | None] = None
    """The terms of the gradient, where each needs the relevance of two items."""
    is_convex: ClassVar[bool] = True
    is_nonnegative: ClassVar[bool] = True
    is_shift_invariant: ClassVar[bool] = False
    """Whether it depends on differences of scores only."""

    @property
    def order(self) -> int | None:
        """How many relevances a term of the gradient needs (1 or 2), or None if all of them.

        Feedback on as many top items gives an unbiased estimate (Lemma 25 of [T16]).
        """
        if self.parts is not None:
            return 1
        return None if self.pairs is None else 2

    @property
    def max_grade(self) -> float:
        """The largest relevance the surrogate is defined for."""
        return np.inf

    def params(self, max_items: int) -> Any:
        """Return what the kernels read for lists of up to ``max_items``."""
        return PlainParams(check_integer(max_items, "`max_items`", at_least=1))

    @abstractmethod
    def _lipschitz(self, n_items: int, max_grade: float, max_score: float) -> float | None: ...

    def _smoothness(self, n_items: int, max_grade: float, max_score: float) -> float | None:
        return None

    @abstractmethod
    def _l2_lipschitz(self, n_items: int, max_grade: float, max_score: float) -> float | None: ...

    def _l2_smoothness(self, n_items: int, max_grade: float, max_score: float) -> float | None:
        return None

    @abstractmethod
    def _loss_range(self, n_items: int, max_grade: float, max_score: float) -> float: ...

    def lipschitz(
        self,
        n_items: int,
        *,
        max_grade: float = 1.0,
        max_score: float = np.inf,
        norm: str = "linf",
    ) -> float | None:
        """Return how fast the loss can change with the scores, or None where there is no bound.

        With respect to the largest change of a score (``linf``, the G of B11) that is a bound
        on the l1 norm of the gradient; with respect to the Euclidean norm (``l2``), on its own
        Euclidean norm. For relevance in [0, max_grade] and scores in [-max_score, max_score].
        """
        of = {"linf": self._lipschitz, "l2": self._l2_lipschitz}
        return of[check_choice(norm, "norm", of)](*self._check_range(n_items, max_grade, max_score))

    def smoothness(
        self,
        n_items: int,
        *,
        max_grade: float = 1.0,
        max_score: float = np.inf,
        norm: str = "linf",
    ) -> float | None:
        """Return how fast the gradient changes with the scores, or None.

        For ``linf`` that is the change of the gradient (l1) over the largest change of a score,
        the H of B11; for ``l2`` both are Euclidean. Conditions are those of :meth:`lipschitz`.
        """
        of = {"linf": self._smoothness, "l2": self._l2_smoothness}
        return of[check_choice(norm, "norm", of)](*self._check_range(n_items, max_grade, max_score))

    def loss_range(self, n_items: int, *, max_grade: float = 1.0, max_score: float) -> float | None:
        """Return a bound on the largest loss less the least (the B of B11), or None.

        Conditions are those of :meth:`lipschitz`.
        """
        n_items, max_grade, max_score = self._check_range(n_items, max_grade, max_score)
        bound = self._loss_range(n_items, max_grade, max_score)
        return bound if np.isfinite(bound) else None

    def _check_range(
        self, n_items: int, max_grade: float, max_score: float
    ) -> tuple[int, float, float]:
        n_items = check_integer(n_items, "`n_items`", at_least=1)
        max_grade = check_number(max_grade, "`max_grade`", at_least=0.0)
        if max_grade > self.max_grade:
            raise InvalidInput(
                f"`max_grade` must be at most {self.max_grade:g} for {self.name}, got {max_grade}."
            )
        if max_score != np.inf:
            max_score = check_number(max_score, "`max_score`", at_least=0.0)
        return n_items, max_grade, max_score

    def value(self, scores: ArrayLike, relevance: ArrayLike) -> float:
        """Return the loss of one list."""
        by_item, grades = self.check(scores, relevance)
        n_items = len(by_item)
        params, work = self.params(n_items), surrogate_work(n_items)
        return float(self.kernel.value(params, by_item, grades, work))

    def gradient(self, scores: ArrayLike, relevance: ArrayLike) -> FloatArray:
        """Return the gradient of the loss of one list with respect to its scores."""
        by_item, grades = self.check(scores, relevance)
        n_items = len(by_item)
        params, work, out = self.params(n_items), surrogate_work(n_items), np.empty(n_items)
        self.kernel.gradient(params, by_item, grades, out, work)
        return out

    def check(self, scores: ArrayLike, relevance: ArrayLike) -> tuple[FloatArray, FloatArray]:
        """Return scores and relevance of one list as floats, or raise."""
        by_item = check_scores(scores)
        grades = check_relevance(relevance)
        if grades.shape != by_item.shape:
            raise InvalidInput(
                f"relevance must have the shape of scores {by_item.shape}, got {grades.shape}."
            )
        if float(grades.max()) > self.max_grade:
            raise InvalidInput(
                f"relevance must be at most {self.max_grade:g} for {self.name}, got {grades.max()}."
            )
        return by_item, grades


def check_scores(scores: ArrayLike) -> FloatArray:
    """Return the scores of one list as floats, or raise."""
    try:
        by_item = np.ascontiguousarray(scores, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidInput("scores must be a list of numbers.") from None
    if np.ndim(scores) != 1 or not by_item.size:
        raise InvalidInput(
            f"scores must have 1 dimension and at least one item, got shape {np.shape(scores)}."
        )
    bad = np.flatnonzero(~np.isfinite(by_item))
    if bad.size:
        raise InvalidInput(f"scores must be finite, got {by_item[bad[0]]} at index {bad[0]}.")
    return by_item
