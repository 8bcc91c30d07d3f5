"""Unbiased estimates of a surrogate's gradient from the top of a list (A7).

:func:`top_one`, :func:`top_two` and :func:`top_k` take a list as it was shown. Rankers use the
kernels that :func:`top_one_kernel`, :func:`doubly_robust_kernel` and :func:`top_two_kernel`
assemble from a surrogate's own; these take the propensity, which travels with the impression. Where
more items are seen than a term needs, they use those of :mod:`keyhole.surrogates.inclusion`.
"""

from collections.abc import Callable, Iterator
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from keyhole.base.errors import (
    FeedbackTooSmall,
    FloatArray,
    IntArray,
    InvalidInput,
    NotObservable,
    check_integer,
    check_number,
    check_ranking,
    check_relevance,
)
from keyhole.kernels.compiled import assemble
from keyhole.kernels.sorting import sort_descending, sort_work
from keyhole.surrogates.base import Surrogate, check_scores, surrogate_work
from keyhole.surrogates.propensities import inclusion_chance, mixed, set_propensity


def _top_one(known: Any, part: Any) -> Callable[..., None]:
    def estimate_from_one(
        params: Any, scores: Any, ranking: Any, values: Any, propensity: float, out: Any, work: Any
    ) -> None:
        extra = work.extra[: scores.shape[0]]
        for item in range(scores.shape[0]):
            extra[item] = 0.0
        part(params, scores, ranking[0], values[0], extra)
        known(params, scores, out)
        for item in range(scores.shape[0]):
            out[item] += extra[item] / propensity

    return estimate_from_one


def _doubly_robust(gradient: Any, part: Any) -> Callable[..., None]:
    def estimate_beyond_guess(
        params: Any,
        scores: Any,
        ranking: Any,
        values: Any,
        propensity: float,
        guess: Any,
        out: Any,
        work: Any,
    ) -> None:
        gradient(params, scores, guess, out, work)
        extra = work.extra[: scores.shape[0]]
        for item in range(scores.shape[0]):
            extra[item] = 0.0
        part(params, scores, ranking[0], guess[ranking[0]], extra)
        for item in range(scores.shape[0]):
            extra[item] = -extra[item]
        part(params, scores, ranking[0], values[0], extra)
        for item in range(scores.shape[0]):
            out[item] += extra[item] / propensity

    return estimate_beyond_guess


def _top_two(pair: Any) -> Callable[..., None]:
    def estimate_from_two(
        params: Any, scores: Any, ranking: Any, values: Any, propensity: float, out: Any, work: Any
    ) -> None:
        for item in range(scores.shape[0]):
            out[item] = 0.0
        if scores.shape[0] > 1:  # R32: a list of one item has no pairs
            first, second = ranking[0], ranking[1]
            pair(params, scores, first, second, values[0], values[1], out)
            pair(params, scores, second, first, values[1], values[0], out)
            for item in range(scores.shape[0]):
                out[item] /= propensity

    return estimate_from_two


def top_one_kernel(surrogate: Surrogate) -> Callable[..., None]:
    """Return the kernel (params, scores, ranking, values, propensity, out, work) of top_one."""
    if surrogate.parts is None:
        raise not_observable(surrogate, 1)
    return assemble(_top_one, *surrogate.parts)


def doubly_robust_kernel(surrogate: Surrogate) -> Callable[..., None]:
    """Return the kernel of top_one with a guess, which comes after the propensity."""
    if surrogate.parts is None:
        raise not_observable(surrogate, 1)
    return assemble(_doubly_robust, surrogate.kernel.gradient, surrogate.parts.part)


def top_two_kernel(surrogate: Surrogate) -> Callable[..., None]:
    """Return the kernel (params, scores, ranking, values, propensity, out, work) of top_two."""
    if surrogate.pairs is None:
        raise not_observable(surrogate, 2)
    return assemble(_top_two, *surrogate.pairs)


def not_observable(surrogate: Surrogate, k: int) -> NotObservable:
    """Return the error of a surrogate whose terms need more than k items."""
    needs = "all items" if surrogate.order is None else f"{surrogate.order} at a time"
    return NotObservable(
        f"surrogate must have a gradient made of terms of {k} item{'s'[: k - 1]}, but that of "
        f"{surrogate.name} needs the relevance of {needs}."
    )


class _Shown:
    """One list as it was shown, checked."""

    def __init__(
        self,
        surrogate: Surrogate,
        scores: ArrayLike,
        ranking: ArrayLike,
        values: ArrayLike,
        *,
        k: int,
        gamma: float,
        greedy: ArrayLike | None,
        mismatch_scale: float,
    ) -> None:
        self.scores = check_scores(scores)
        self.n_items = len(self.scores)
        self.depth = min(k, self.n_items)
        self.ranking = check_ranking(ranking, self.n_items)
        self.values = np.ascontiguousarray(values, dtype=np.float64)
        if self.values.shape != (self.n_items,):
            raise InvalidInput(
                f"values must have one entry per position ({self.n_items}; NaN where hidden), got "
                f"shape {self.values.shape}."
            )
        if bool(np.isnan(self.values[: self.depth]).any()):
            raise FeedbackTooSmall(
                f"values must show the first {self.depth} positions, but some of them are hidden."
            )
        top = check_relevance(self.values[: self.depth], "revealed relevance")
        surrogate.check(np.zeros(self.depth), top)
        best = self._sorted() if greedy is None else check_ranking(greedy, self.n_items, "greedy")
        gamma = check_number(gamma, "`gamma`", above=0.0, at_most=1.0)
        scale = check_number(mismatch_scale, "`mismatch_scale`", above=0.0)
        self.propensity = float(set_propensity(best, self.ranking, self.depth, gamma, scale))
        self.law, self.greedy_top = (gamma, scale), set(best[: self.depth].tolist())

    def inclusion(self, places: tuple[int, ...]) -> float:
        """Return the probability that the items at some places of the top are on top together."""
        match = self.greedy_top.issuperset(self.ranking[list(places)].tolist())
        chance = inclusion_chance(self.n_items, self.depth, len(places))
        return float(mixed(match, chance, *self.law))

    def _sorted(self) -> IntArray:
        order = np.empty(self.n_items, np.int64)
        sort_descending(self.scores, order, sort_work(self.n_items))
        return order


def top_one(
    surrogate: Surrogate,
    scores: ArrayLike,
    ranking: ArrayLike,
    values: ArrayLike,
    *,
    gamma: float,
    greedy: ArrayLike | None = None,
    guess: ArrayLike | None = None,
    mismatch_scale: float = 1.0,
) -> FloatArray:
    """Estimate the gradient from the relevance of the first item.

    Parameters
    ----------
    surrogate
        One of order 1.
    scores
        Scores by item, at which the gradient is wanted.
    ranking, values
        What was shown, and the relevance by position (NaN where hidden; only the first is read).
    gamma
        Probability with which a uniformly random ranking was shown instead of the greedy one.
    greedy
        The ranking shown otherwise (default: by scores, ties by lowest index).
    guess
        Relevance by item, fixed before the list was shown; the nearer to the truth, the less
        the estimate varies. Unbiased whatever it is.
    mismatch_scale
        Factor of the propensity where another item than the greedy one is on top. Above 1 the
        estimate varies less, and lacks a share 1 - 1/c of the other items' terms.

    Notes
    -----
    Lemma 25 of [T16] with k = 1, and its doubly-robust form (A7).

    Examples
    --------
    >>> from keyhole import surrogate
    >>> nan = float("nan")
    >>> top_one(surrogate("squared"), [1.0, 0.0], [0, 1], [1.0, nan], gamma=0.5).round(4).tolist()
    [-0.6667, 0.0]
    """
    estimate = top_one_kernel(surrogate)
    shown = _Shown(
        surrogate, scores, ranking, values,
        k=1, gamma=gamma, greedy=greedy, mismatch_scale=mismatch_scale,
    )  # fmt: skip
    params, work = surrogate.params(shown.n_items), surrogate_work(shown.n_items)
    out = np.empty(shown.n_items)
    fixed = (params, shown.scores, shown.ranking, shown.values, shown.propensity)
    if guess is None:
        estimate(*fixed, out, work)
    else:
        _, grades = surrogate.check(shown.scores, guess)
        doubly_robust_kernel(surrogate)(*fixed, grades, out, work)
    return out


def top_two(
    surrogate: Surrogate,
    scores: ArrayLike,
    ranking: ArrayLike,
    values: ArrayLike,
    *,
    gamma: float,
    greedy: ArrayLike | None = None,
    mismatch_scale: float = 1.0,
) -> FloatArray:
    """Estimate the gradient of a surrogate of order 2 from the relevance of the first two items.

    Parameters are those of :func:`top_one`.

    Notes
    -----
    Lemma 25 of [T16] with k = 2; a list of one item has no pair and gradient 0 (R32).

    Examples
    --------
    >>> from keyhole import surrogate
    >>> shown = dict(ranking=[1, 0, 2], values=[1.0, 0.0, float("nan")], gamma=0.3)
    >>> top_two(surrogate("ranksvm"), [0.2, 0.1, 0.0], **shown).tolist()
    [1.25, -1.25, 0.0]
    """
    estimate = top_two_kernel(surrogate)
    shown = _Shown(
        surrogate, scores, ranking, values,
        k=2, gamma=gamma, greedy=greedy, mismatch_scale=mismatch_scale,
    )  # fmt: skip
    params, work = surrogate.params(shown.n_items), surrogate_work(shown.n_items)
    out = np.empty(shown.n_items)
    estimate(params, shown.scores, shown.ranking, shown.values, shown.propensity, out, work)
    return out


def top_k(
    surrogate: Surrogate,
    scores: ArrayLike,
    ranking: ArrayLike,
    values: ArrayLike,
    *,
    k: int,
    gamma: float,
    greedy: ArrayLike | None = None,
    mismatch_scale: float = 1.0,
) -> FloatArray:
    """Estimate the gradient of any surrogate from the relevance of the first k items.

    Unbiased wherever the gradient's interaction order (see
    :func:`keyhole.surrogates.interactions.interaction_order`) is at most k.
    Parameters are those of :func:`top_one`; 2^k gradients are computed.

    Notes
    -----
    Lemma 25 of [T16] for any k. Its terms are made by inclusion and exclusion: that of a set S of
    items is the alternating sum of the gradients with the relevances outside a subset of
    S set to 0, divided by the probability that all of S is on top. Of all weights by the
    top that leave a term unbiased this one has the least second moment (Cauchy-Schwarz); the
    lemma's, which divide by the probability of the whole top, hardly use what greed shows. The
    term of the empty set is known and not divided.

    Examples
    --------
    >>> from keyhole import surrogate
    >>> nan = float("nan")
    >>> values = [1.0, nan]
    >>> top_k(surrogate("squared"), [1.0, 0.0], [0, 1], values, k=1, gamma=0.5).round(4).tolist()
    [-0.6667, 0.0]
    """
    k = check_integer(k, "`k`", at_least=1)
    shown = _Shown(
        surrogate, scores, ranking, values,
        k=k, gamma=gamma, greedy=greedy, mismatch_scale=mismatch_scale,
    )  # fmt: skip
    if surrogate.order is not None and surrogate.order > shown.depth < shown.n_items:
        raise not_observable(surrogate, k)
    at: dict[tuple[int, ...], FloatArray] = {}
    for places in _subsets(shown.depth):
        grades = np.zeros(shown.n_items)
        grades[shown.ranking[list(places)]] = shown.values[list(places)]
        at[places] = surrogate.gradient(shown.scores, grades)
    out = np.zeros(shown.n_items)
    for places in _subsets(shown.depth):
        signs = [(subset, (-1.0) ** (len(places) - len(subset))) for subset in at]
        term = sum(sign * at[subset] for subset, sign in signs if set(subset) <= set(places))
        out += term / shown.inclusion(places)
    return out


def _subsets(n: int) -> Iterator[tuple[int, ...]]:
    return (places for size in range(n + 1) for places in combinations(range(n), size))
