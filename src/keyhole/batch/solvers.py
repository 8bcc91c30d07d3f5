"""Least mean loss over a ball, with a certificate of how far from the least it can be."""

import math

import numpy as np

from keyhole.base.errors import FloatArray, InvalidInput, check_integer, check_number
from keyhole.batch.balls import Ball
from keyhole.batch.bundle import bundle
from keyhole.batch.descent import Minimum, Objective, descend, newton

_FIRST = 500
"""Evaluations before Newton's steps are tried, and the number of weights more."""
_WIDEST = 2000
"""Weights up to which they are: each takes a gradient per weight."""

__all__ = ["Ball", "Minimum", "Objective", "minimise"]


def minimise(
    loss: Objective,
    n_features: int,
    *,
    ball: Ball,
    regularisation: float = 0.0,
    smooth: bool = True,
    convex: bool = True,
    tolerance: float = 1e-6,
    max_evaluations: int = 20_000,
    start: FloatArray | None = None,
) -> Minimum:
    """Return the least of a loss plus regularisation / 2 times the squared norm of the weights.

    Parameters
    ----------
    loss
        Value and (sub)gradient at some weights.
    n_features, ball, regularisation
        Number of weights, where they may lie, and how strongly they are held back. Without a
        radius the regularisation must be above 0: there may be no least otherwise.
    smooth, convex
        What is known of the loss. If it is not convex, what is found is a stationary point and its
        gap NaN.
    tolerance
        The gap to stop at, relative to the value where that is above 1.
    max_evaluations, start
        When to give up, and where to begin (default: at 0).

    Examples
    --------
    >>> found = minimise(lambda w: (float((w - 3) @ (w - 3)), 2 * (w - 3)), 1, ball=Ball("l2", 2))
    >>> found.weights.tolist(), found.converged
    ([2.0], True)
    """
    regularisation = check_number(regularisation, "`regularisation`", at_least=0.0)
    tolerance = check_number(tolerance, "`tolerance`", above=0.0)
    max_evaluations = check_integer(max_evaluations, "`max_evaluations`", at_least=1)
    if ball.radius == math.inf and regularisation == 0.0:
        raise InvalidInput("`radius` must be given, or `regularisation` be above 0, got neither.")
    if not (smooth or convex):
        raise InvalidInput("A loss must be smooth or convex to be minimised.")

    def relative(value: float) -> float:
        return tolerance * max(1.0, abs(value))

    begin = ball.project(np.zeros(n_features) if start is None else np.array(start, dtype=float))
    if not smooth:
        return bundle(loss, begin, ball, regularisation, relative, max_evaluations)

    def objective(weights: FloatArray) -> tuple[float, FloatArray]:
        value, gradient = loss(weights)
        held = regularisation * weights
        return value + 0.5 * float(held @ weights), gradient + held

    def gap(weights: FloatArray, gradient: FloatArray) -> float:
        # f is at least its tangent, and by strong convexity more: the least of that bounds f
        slope = gradient - regularisation * weights
        here = float(slope @ weights) + 0.5 * regularisation * float(weights @ weights)
        return here - ball.lowest(slope, regularisation)

    if not convex:
        return descend(objective, begin, ball, None, relative, max_evaluations)
    wide = n_features > _WIDEST
    first = max_evaluations if wide else min(max_evaluations, _FIRST + n_features)
    found = descend(objective, begin, ball, gap, relative, first)
    if found.converged or wide:
        return found
    return newton(objective, found, ball, gap, relative, max_evaluations)
