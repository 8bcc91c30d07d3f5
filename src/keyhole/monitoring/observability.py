"""Can differences of losses be written in what actions show? Global and local observability.

An action that shows the relevance of a set S of items shows every function of r restricted to S.
Expand a difference of losses in products of 1[r_a = g_a] over sets A of items and grades above
the lowest: it is a sum of functions of the shown sets iff every A with a non-zero
coefficient lies in one of them. So both questions are read off one exact table of coefficients;
for a user's own matrices they are settled by elimination in fractions.
"""

import itertools
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, NamedTuple, cast

import numpy as np

from keyhole.measures.exact import Items
from keyhole.monitoring.cells import ActionPair, Cells
from keyhole.monitoring.elimination import Span
from keyhole.monitoring.games import Game, Losses


class Part(NamedTuple):
    """``shares`` (one per term) times an indicator that an action shows.

    In a ranking game, that the ``items`` have these ``grades``; otherwise, that the action's
    symbol is ``symbol``.
    """

    action: int
    items: Items
    grades: Items
    symbol: int
    shares: tuple[Fraction, ...]


class Refutation(NamedTuple):
    """A function of outcomes at right angles to every signal, but not to the difference."""

    weights: tuple[tuple[int, Fraction], ...]


@dataclass(frozen=True)
class Explanation:
    """How one action's losses less another's are written in signals, or why they cannot be."""

    first: int
    second: int
    parts: tuple[Part, ...] = ()
    refutation: Refutation | None = None


@dataclass(frozen=True)
class SolvedGame:
    """The class of a game, and what proves it.

    ``differences`` are generators of all differences of losses (adjacent swaps of one ranking),
    ``local`` one explanation per neighbouring pair; ``offending`` is a neighbouring pair whose
    difference is not locally observable, or for a hopeless game one that is not globally so.
    """

    game: Game
    class_: str
    differences: tuple[Explanation, ...] = ()
    local: tuple[Explanation, ...] = ()
    offending: Explanation | None = None
    pair: ActionPair | None = None
    is_exact: bool = True


def cells_of(losses: Losses) -> Cells:
    """Return the cells of a game; they do not depend on the feedback."""
    if "cells" not in losses.memo:
        losses.memo["cells"] = Cells(losses)
    return cast(Cells, losses.memo["cells"])


def interactions(losses: Losses, first: int, second: int) -> dict[tuple[Items, Items], Any]:
    """Return the non-zero coefficients of a difference, by items and their grades.

    Examples
    --------
    >>> losses = Game.of("SumLoss", n_items=3, k=1).losses
    >>> {key: int(c[0]) for key, c in interactions(losses, 0, 1).items()}     # r_2 - r_3
    {((2,), (1,)): 1, ((1,), (1,)): -1}
    """
    if (first, second) not in losses.memo:
        losses.memo[first, second] = _expand(losses, first, second)
    return cast(dict[tuple[Items, Items], Any], losses.memo[first, second])


def _expand(losses: Losses, first: int, second: int) -> dict[tuple[Items, Items], Any]:
    n_items = len(losses.actions[0])
    table = losses.difference(first, second).reshape(*[losses.grades] * n_items, -1)
    for axis in range(n_items):
        lowest = table.take([0], axis=axis)
        others = table.take(range(1, losses.grades), axis=axis) - lowest
        table = np.concatenate([lowest, others], axis=axis)
    nonzero = losses.signs(table, 2.0 * 2**n_items) != 0
    return {
        (tuple(i for i, grade in enumerate(index) if grade), tuple(g for g in index if g)): table[
            tuple(index)
        ]
        for index in np.argwhere(nonzero).tolist()
    }


def explain(game: Game, first: int, second: int, actions: tuple[int, ...]) -> Explanation:
    """Write a difference of losses in what ``actions`` show, or refute that it can be."""
    if game.losses.is_ranking:
        return _explain_ranking(game, first, second, actions)
    rows = [(action, row) for action in actions for row in game.signals(action).tolist()]
    span = _span(tuple(tuple(row) for _, row in rows))
    target = game.losses.difference(first, second)[:, 0].tolist()
    shares = span.coefficients(target)
    if shares is None:
        normal = span.refutation(target) or []
        weights = tuple((outcome, weight) for outcome, weight in enumerate(normal) if weight)
        size = float(sum(abs(weight) for _, weight in weights))
        value = sum(weight * target[outcome] for outcome, weight in weights)
        if game.losses.signs(np.array([[value]], dtype=object), 2.0 * size).any():
            return Explanation(first, second, refutation=Refutation(weights))
        return Explanation(first, second)
    parts = [
        Part(action, (), (), int(game.feedback[action][row.index(1)]), (share / scale,))
        for (action, row), share in zip(rows, shares, strict=True)
        if (scale := game.losses.denominator) and share
    ]
    return Explanation(first, second, tuple(parts))


@lru_cache(maxsize=1024)
def _span(rows: tuple[tuple[int, ...], ...]) -> Span:
    return Span(rows)


def _explain_ranking(game: Game, first: int, second: int, actions: tuple[int, ...]) -> Explanation:
    parts = []
    shown = {game.shown[action]: action for action in reversed(actions)}
    for (items, grades), numerators in interactions(game.losses, first, second).items():
        by = next((action for sees, action in shown.items() if sees.issuperset(items)), None)
        if by is None:
            return Explanation(first, second, refutation=_alternate(game, items, grades))
        shares = tuple(Fraction(int(n), game.losses.denominator) for n in numerators)
        parts.append(Part(by, items, grades, -1, shares))
    return Explanation(first, second, tuple(parts))


def _alternate(game: Game, items: Items, grades: Items) -> Refutation:
    """Return the functional that reads off one coefficient: an alternating sum over lists."""
    n_items, weights = len(game.losses.actions[0]), []
    for kept in itertools.product((False, True), repeat=len(items)):
        outcome = 0
        by_item = dict(zip(items, grades, strict=True))
        chosen = {item for item, keep in zip(items, kept, strict=True) if keep}
        for item in range(n_items):
            outcome = outcome * game.losses.grades + (by_item[item] if item in chosen else 0)
        weights.append((outcome, Fraction((-1) ** (len(items) - len(chosen)))))
    return Refutation(tuple(sorted(weights)))


def generators(game: Game, cells: Cells) -> list[tuple[int, int]]:
    """Return pairs whose differences, relabelled and added up, give all others."""
    if not game.losses.is_ranking:
        best = [action for action in cells.distinct if action in set(cells.optimal)]
        return [(best[0], other) for other in best[1:]]
    first, pairs = game.losses.actions[0], []
    for place in range(len(first) - 1):
        swapped = [*first]
        swapped[place : place + 2] = swapped[place : place + 2][::-1]
        pairs.append((0, game.losses.actions.index(tuple(swapped))))
    return pairs


def solve_game(game: Game) -> SolvedGame:
    """Return the class of a game by enumeration (Theorem 2 of Bartok et al. 2014).

    Examples
    --------
    >>> solve_game(Game.of("SumLoss", n_items=3, k=1)).class_
    'global'
    >>> solve_game(Game.from_matrices([[0, 1], [1, 0]], [["a", "b"], ["c", "c"]])).class_
    'local'
    """
    cells = cells_of(game.losses)
    best = {cells.duplicates[action] for action in cells.optimal}
    if len(best) == 1:
        return _solution(game, "trivial")
    everyone = tuple(range(len(game.feedback)))
    differences = []
    for first, second in generators(game, cells):
        if second in cells.duplicates[first]:
            continue
        differences.append(explain(game, first, second, everyone))
        if differences[-1].refutation:
            return _solution(game, "hopeless", offending=differences[-1])
    local = []
    for pair in cells.neighbours:
        explanation = explain(game, pair.first, pair.second, pair.between)
        if explanation.refutation:
            return _solution(
                game,
                "global",
                differences=tuple(differences),
                offending=explanation,
                pair=pair,
            )
        local.append(explanation)
    return _solution(game, "local", differences=tuple(differences), local=tuple(local))


def _solution(game: Game, class_: str, **found: Any) -> SolvedGame:
    cells, pair = cells_of(game.losses), found.get("pair")
    is_proof = cells.is_proof and game.losses.is_exact
    if class_ == "global":
        is_proof &= pair is None or pair.is_proof
    elif class_ == "local":
        is_proof &= all(pair.is_proof for pair in cells.pairs)
    return SolvedGame(game, class_, is_exact=is_proof, **found)
