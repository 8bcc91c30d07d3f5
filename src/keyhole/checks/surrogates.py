"""What every surrogate must do: be the loss, and have the gradient, terms and constants it claims.

A surrogate is taken on random lists. A loss may have kinks: random scores are off them.
"""

from collections.abc import Callable, Iterator
from itertools import permutations
from typing import Any

import numpy as np

from keyhole.base.errors import FloatArray
from keyhole.checks.base import SEED, a_relabelling, require
from keyhole.surrogates.base import Surrogate, surrogate_work

_LONGEST = 7
_REACH = 2.0
"""Scores of lists on which constants are checked are between this and its negative."""
_STEP = 1e-5
"""Of central differences: their error is of order 1e-10, rounding adds as much."""
_ROUNDING = 1e-9

List = tuple[FloatArray, FloatArray]
_NORMS: dict[str, tuple[Any, Any]] = {"linf": (np.inf, 1), "l2": (2, 2)}
"""Names of norms of scores: the norm itself, and that of gradients which goes with it."""


def _top_grade(surrogate: Surrogate) -> int:
    return int(min(3.0, surrogate.max_grade))


def _lists(surrogate: Surrogate, n_lists: int) -> Iterator[List]:
    """Yield lists of one to seven items: random scores, and whole grades."""
    rng = np.random.default_rng(SEED)
    for _ in range(n_lists):
        n_items = int(rng.integers(1, _LONGEST + 1))
        grades = rng.integers(0, _top_grade(surrogate) + 1, n_items)
        yield rng.normal(0.0, 1.5, n_items), grades.astype(np.float64)


def _bounded_pairs(surrogate: Surrogate, n_lists: int) -> Iterator[tuple[List, FloatArray]]:
    """Yield lists of bounded scores, some in the corners, and other scores near or far."""
    rng = np.random.default_rng(SEED)
    top = float(_top_grade(surrogate))
    for _ in range(n_lists):
        n_items = int(rng.integers(1, _LONGEST))
        grades = rng.choice([0.0, top, float(rng.integers(0, int(top) + 1))], n_items)
        corner = rng.random() < 0.3
        scores = (
            rng.choice([-_REACH, _REACH], n_items)
            if corner
            else rng.uniform(-_REACH, _REACH, n_items)
        )
        other = scores + rng.choice([1e-3, 1.0]) * rng.uniform(-1.0, 1.0, n_items)
        yield (scores, grades), np.clip(other, -_REACH, _REACH)


def _close(one: float | FloatArray, other: float | FloatArray) -> bool:
    """Return whether two results differ by no more than the order of additions explains."""
    return bool(np.allclose(one, other, rtol=_ROUNDING, atol=_ROUNDING))


def check_values_are_finite(surrogate: Surrogate, n_lists: int) -> None:
    """Check that losses and gradients are finite, of enormous scores too, and signs as claimed."""
    for scores, grades in _lists(surrogate, n_lists):
        for scale in (1.0, 20.0, 1000.0):
            value = surrogate.value(scale * scores, grades)
            gradient = surrogate.gradient(scale * scores, grades)
            require(
                bool(np.isfinite(value) and np.isfinite(gradient).all()),
                f"{surrogate.name} must be finite with a finite gradient, got {value} and "
                f"{gradient.tolist()} at scores {(scale * scores).tolist()}.",
            )
            require(
                value >= 0.0 or not surrogate.is_nonnegative,
                f"{surrogate.name} says it is never negative but is {value}.",
            )


def check_gradient_is_the_derivative(surrogate: Surrogate, n_lists: int) -> None:
    """Check the gradient against central differences of the value."""
    for scores, grades in _lists(surrogate, n_lists):
        steps = _STEP * np.eye(len(scores))
        numeric = np.array([
            (surrogate.value(scores + step, grades) - surrogate.value(scores - step, grades))
            / (2.0 * _STEP)
            for step in steps
        ])  # fmt: skip
        gradient = surrogate.gradient(scores, grades)
        require(
            bool(np.allclose(gradient, numeric, rtol=1e-6, atol=1e-6)),
            f"The gradient of {surrogate.name} must be the derivative {numeric.tolist()} of its "
            f"value, got {gradient.tolist()}.",
        )


def check_terms_add_up(surrogate: Surrogate, n_lists: int) -> None:
    """Check that the terms by item, or by pair, add up to the gradient."""
    for scores, grades in _lists(surrogate, n_lists):
        gradient, out = surrogate.gradient(scores, grades), np.zeros(len(scores))
        params = surrogate.params(_LONGEST)
        if surrogate.parts is not None:
            out[:] = np.nan  # what needs no relevance is written, not added
            surrogate.parts.known(params, scores, out)
            for item, grade in enumerate(grades):
                surrogate.parts.part(params, scores, item, grade, out)
        elif surrogate.pairs is not None:
            for i, j in permutations(range(len(scores)), 2):
                surrogate.pairs.pair(params, scores, i, j, grades[i], grades[j], out)
        else:
            return
        require(
            _close(out, gradient),
            f"The terms of {surrogate.name} must add up to its gradient {gradient.tolist()}, got "
            f"{out.tolist()}.",
        )


def check_lists_are_untouched(surrogate: Surrogate, n_lists: int) -> None:
    """Check that kernels write to what they are to fill alone, and that scratch changes nothing."""
    params, work = surrogate.params(12 * _LONGEST), surrogate_work(12 * _LONGEST)
    for scores, grades in _lists(surrogate, n_lists):
        given, out = (scores.copy(), grades.copy()), np.full(len(scores), np.nan)
        value, gradient = surrogate.value(*given), surrogate.gradient(*given)
        again = surrogate.kernel.value(params, *given, work)
        surrogate.kernel.gradient(params, *given, out, work)
        require(
            np.array_equal(given[0], scores) and np.array_equal(given[1], grades),
            f"{surrogate.name} must leave scores and relevance as they are.",
        )
        require(
            again == value and np.array_equal(out, gradient),
            f"{surrogate.name} must give the same in memory that is longer and has been used.",
        )


def check_items_are_exchangeable(surrogate: Surrogate, n_lists: int) -> None:
    """Check that relabelling items leaves the value and relabels the gradient."""
    for scores, grades in _lists(surrogate, n_lists):
        labels = a_relabelling(len(scores))
        value, gradient = surrogate.value(scores, grades), surrogate.gradient(scores, grades)
        other = (scores[labels], grades[labels])
        require(
            _close(surrogate.value(*other), value)
            and _close(surrogate.gradient(*other), gradient[labels]),
            f"Relabelling items must leave {surrogate.name} and relabel its gradient.",
        )


def check_shifts(surrogate: Surrogate, n_lists: int) -> None:
    """Check that it says whether only differences of scores count."""
    moves = False
    for scores, grades in _lists(surrogate, n_lists):
        gradient = surrogate.gradient(scores, grades)
        shifted = surrogate.gradient(scores + 0.7, grades)
        moves |= not _close(shifted, gradient)
        moves |= abs(gradient.sum()) > _ROUNDING
    require(
        surrogate.is_shift_invariant is not bool(moves),
        f"{surrogate.name} says that shifts change {'nothing' if moves else 'it'}, which is wrong.",
    )


def check_convexity(surrogate: Surrogate, n_lists: int) -> None:
    """Check that a loss that says it is convex is so between random points."""
    if not surrogate.is_convex:
        return
    rng = np.random.default_rng(SEED)
    for scores, grades in _lists(surrogate, n_lists):
        other = scores + rng.normal(0.0, 1.5, len(scores))
        ends = (surrogate.value(scores, grades) + surrogate.value(other, grades)) / 2.0
        require(
            surrogate.value((scores + other) / 2.0, grades) <= ends + _ROUNDING,
            f"{surrogate.name} says it is convex but is not between {scores.tolist()} and "
            f"{other.tolist()}.",
        )


def check_constants_hold(surrogate: Surrogate, n_lists: int) -> None:
    """Check the Lipschitz and smoothness constants in both norms, and the range of losses."""
    limits = {"max_grade": float(_top_grade(surrogate)), "max_score": _REACH}
    lows, highs = np.zeros(_LONGEST), np.full(_LONGEST, -np.inf)
    for (scores, grades), other in _bounded_pairs(surrogate, n_lists):
        n_items = len(scores)
        values = [surrogate.value(each, grades) for each in (scores, other)]
        gradient = surrogate.gradient(scores, grades)
        change = gradient - surrogate.gradient(other, grades)
        for norm, (of_scores, of_gradients) in _NORMS.items():
            gap = np.linalg.norm(scores - other, of_scores)
            slope = surrogate.lipschitz(n_items, norm=norm, **limits)
            curve = surrogate.smoothness(n_items, norm=norm, **limits)
            steep = np.linalg.norm(gradient, of_gradients)
            require(
                slope is None
                or bool(
                    steep <= slope + _ROUNDING
                    and abs(values[0] - values[1]) <= slope * gap + _ROUNDING
                ),
                f"{surrogate.name} exceeds its Lipschitz constant {slope} ({norm}): a gradient has "
                f"norm {steep}.",
            )
            require(
                curve is None
                or bool(np.linalg.norm(change, of_gradients) <= curve * gap + _ROUNDING),
                f"{surrogate.name} exceeds its smoothness {curve} ({norm}).",
            )
        lows[n_items] = min(lows[n_items], *values)
        highs[n_items] = max(highs[n_items], *values)
        bound = surrogate.loss_range(n_items, **limits)
        spread = highs[n_items] - lows[n_items]
        require(
            bound is None or spread <= bound * (1.0 + _ROUNDING),
            f"Losses of {surrogate.name} differ by {spread}, more than its range {bound}.",
        )


SURROGATE_CHECKS: tuple[Callable[[Surrogate, int], None], ...] = (
    check_values_are_finite,
    check_gradient_is_the_derivative,
    check_terms_add_up,
    check_lists_are_untouched,
    check_items_are_exchangeable,
    check_shifts,
    check_convexity,
    check_constants_hold,
)


def check_surrogate(surrogate: Surrogate, n_lists: int = 100) -> None:
    """Run every check over a surrogate, on so many random lists."""
    for check in SURROGATE_CHECKS:
        check(surrogate, n_lists)
