"""Two distributions that no feedback can tell apart, and the regret they force."""

import itertools
import math
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from keyhole.base.errors import FloatArray
from keyhole.measures.exact import DIGITS
from keyhole.monitoring.cells import Distribution
from keyhole.monitoring.elimination import Span
from keyhole.monitoring.games import Game
from keyhole.monitoring.observability import cells_of
from keyhole.monitoring.programs import solve

_GRAIN = 10**9
_DENOMINATORS = (24, 1000)
_LOST = 1e-9


class Witness(NamedTuple):
    """Distributions p and q with one law of feedback; what any learner loses per round.

    Whatever is played, the regrets against the best action under p and under q average to at
    least ``constant``, so that one of the two is as large. It is exact for rational losses and
    rounded down to twelve digits otherwise.
    """

    p: Distribution
    q: Distribution
    constant: Fraction


def invisible(game: Game) -> FloatArray:
    """Return a basis of the functions of outcomes at right angles to all signals, as columns.

    For rankings: alternating sums over more items than are shown.
    """
    losses, n_outcomes = game.losses, game.feedback.shape[1]
    if not losses.is_ranking:
        rows = [row for action in range(len(game.feedback)) for row in game.signals(action)]
        normals = Span(np.unique(rows, axis=0).tolist()).normals(n_outcomes)
        scale = math.lcm(*(entry.denominator for normal in normals for entry in normal))
        columns = [[int(entry * scale) for entry in normal] for normal in normals]
        return np.array(columns, dtype=np.float64).reshape(-1, n_outcomes).T
    outcomes = np.array(losses.outcomes)
    columns = []
    for top in outcomes[(outcomes > 0).sum(axis=1) > game.k]:
        agrees = ((outcomes == 0) | (outcomes == top)).all(axis=1)
        columns.append(agrees * (-1.0) ** ((top > 0).sum() - (outcomes > 0).sum(axis=1)))
    return np.array(columns).reshape(-1, n_outcomes).T


def best_witness(game: Game) -> Witness | None:
    """Return the pair of distributions that forces the largest linear regret.

    For actions i and j the constant is the largest t with
    ((2 loss_a - loss_i - loss_j) . s + (loss_j - loss_i) . d)/2 >= t for every action a, where
    p = s + d and q = s - d are distributions and d is invisible: a linear program.

    Examples
    --------
    >>> best_witness(Game.of("AP", n_items=3, k=1)).constant
    Fraction(1, 16)
    """
    cells, directions = cells_of(game.losses), invisible(game)
    if directions.shape[1] == 0:
        return None
    best = [action for action in cells.distinct if action in set(cells.optimal)]
    firsts = best[:1] if game.losses.is_ranking else best
    found: tuple[float, Any] = (0.0, None)
    for first, second in itertools.product(firsts, best):
        if second > first:
            size, point = _program(game, best, first, second, directions)
            if size > found[0] + _LOST:
                found = (size, point)
    return None if found[1] is None else _rounded(game, found[1], directions, found[0])


def _program(
    game: Game, actions: list[int], first: int, second: int, directions: FloatArray
) -> tuple[float, FloatArray]:
    """Return the constant that the best actions ``first`` and ``second`` give, and its solution."""
    matrix, (n_outcomes, n_directions) = game.losses.matrix, directions.shape
    both = matrix[actions] - (matrix[first] + matrix[second]) / 2.0
    apart = (matrix[second] - matrix[first]) @ directions / 2.0
    unit = np.eye(n_outcomes)
    zeros = np.zeros((n_outcomes, 1))
    below = np.vstack(
        [
            np.hstack([-both, np.tile(-apart, (len(actions), 1)), np.ones((len(actions), 1))]),
            np.hstack([-unit, -directions, zeros]),
            np.hstack([-unit, directions, zeros]),
        ]
    )
    size = n_outcomes + n_directions + 1
    objective, equal = np.zeros(size), np.zeros((1, size))
    objective[-1] = 1.0
    equal[0, :n_outcomes] = 1.0
    free = [False] * n_outcomes + [True] * (n_directions + 1)
    result = solve(
        objective,
        below=below,
        limits=np.zeros(len(below)),
        equal=equal,
        targets=np.ones(1),
        free=free,
    )
    return float(result.x[-1]), result.x[:-1]


def _rounded(game: Game, point: FloatArray, directions: FloatArray, size: float) -> Witness | None:
    """Return the distributions as fractions with exactly one law of feedback."""
    n_outcomes = len(directions)
    columns = directions.astype(np.int64)
    for denominator in _DENOMINATORS:
        plain = [Fraction(float(x)).limit_denominator(denominator) for x in point]
        witness = _witness(game, plain[:n_outcomes], columns @ np.array(plain[n_outcomes:]))
        if witness is not None and float(witness.constant) > size - _LOST:
            return witness
    # A little of the uniform distribution makes room for the rounding.
    middle = [Fraction(round(float(x) * _GRAIN)) for x in point[:n_outcomes]]
    shifts = columns @ np.array([Fraction(round(float(x) * _GRAIN)) for x in point[n_outcomes:]])
    room = 1 + int(np.abs(columns).sum(axis=1).max())
    total = sum(middle) + n_outcomes * room
    return _witness(game, [(s + room) / total for s in middle], [d / total for d in shifts])


def _witness(game: Game, middle: Any, shifts: Any) -> Witness | None:
    p = tuple(s + d for s, d in zip(middle, shifts, strict=True))
    q = tuple(s - d for s, d in zip(middle, shifts, strict=True))
    if sum(p) != 1 or min(*p, *q) < 0:
        return None
    return Witness(p, q, forced_regret(game, p, q))


def forced_regret(game: Game, p: Distribution, q: Distribution) -> Fraction:
    """Return the least mean of the regrets under p and q that an action has."""
    losses = game.losses
    scale = math.lcm(*(x.denominator for x in (*p, *q)))
    sides = [np.array([int(x * scale) for x in side], dtype=object) for side in (p, q)]
    totals = [losses.numbers.bounds(side @ losses.numerators) for side in sides]
    least = min(totals[0][0] + totals[1][0]) - min(totals[0][0]) - min(totals[1][0])
    unit = 2 * scale * losses.denominator * 10**DIGITS
    exact = Fraction(int(least), unit)
    if any(losses.numbers.errors) or losses.tolerance:
        return Fraction(math.floor(exact * 10**12), 10**12)
    return exact
