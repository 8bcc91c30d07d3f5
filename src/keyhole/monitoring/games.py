"""Finite partial-monitoring games: what every action loses and shows under every outcome."""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from keyhole.base.errors import FloatArray, IntArray, InvalidInput, check_integer
from keyhole.base.limits import check_length
from keyhole.contracts.measures import Measure
from keyhole.measures import measure as measure_by_name
from keyhole.measures.exact import DIGITS, ONE, Items, Sum, number
from keyhole.measures.linear import LinearMeasure
from keyhole.monitoring.exact import (
    READING_TOLERANCE,
    Numbers,
    common_denominator,
    definition_of,
    loss_of,
    read_number,
)
from keyhole.reveals.top import Top

LARGEST_GAME = 50_000
"""Most entries of a loss matrix to enumerate: six items of two grades, five of three."""
_AGREEMENT = 1e-12


class Losses:
    """The losses of all actions, exactly: ``numerators[action, outcome, term] / denominator``.

    ``tolerance`` is 0 where they are exact; otherwise an entry can be off by that much, sums
    within it count as zero, and ``nonzero_above`` is the smallest that did not.
    """

    def __init__(
        self,
        matrix: FloatArray,
        sums: list[list[Sum]],
        *,
        tolerance: float = 0.0,
        measure: Measure | None = None,
        actions: tuple[Items, ...] = (),
        outcomes: tuple[Items, ...] = (),
        grades: int = 0,
    ) -> None:
        self.matrix, self.tolerance = matrix, tolerance
        self.measure, self.actions, self.outcomes = measure, actions, outcomes
        self.grades = grades
        terms = tuple(sorted({term for row in sums for total in row for term in total})) or (ONE,)
        shares = [share for row in sums for total in row for share in total.values()]
        self.denominator = common_denominator(shares)
        self.numbers = Numbers(terms)
        self.numerators = np.zeros((*matrix.shape, len(terms)), dtype=object)
        for action, row in enumerate(sums):
            for outcome, total in enumerate(row):
                for term, share in total.items():
                    whole = share.numerator * (self.denominator // share.denominator)
                    self.numerators[action, outcome, terms.index(term)] = whole
        self.memo: dict[Any, Any] = {}  # what has been worked out about them
        self.nonzero_above = math.inf
        self.is_decided = True

    @property
    def is_ranking(self) -> bool:
        """Whether actions are the rankings of a list, so that relabelling items is a symmetry."""
        return self.measure is not None

    @property
    def is_exact(self) -> bool:
        """Whether every comparison so far is a proof."""
        return self.tolerance == 0.0 and self.is_decided

    def signs(self, shares: Any, weight: float) -> IntArray:
        """Return the signs of sums of losses (terms last), ``weight`` bounding their weights.

        A sum without terms is zero, and one beyond its error is not; what is neither is zero
        too, but then ``is_exact`` is no longer true.
        """
        totals, errors = self.numbers.bounds(shares)
        totals, errors = np.asarray(totals, dtype=object), np.asarray(errors, dtype=object)
        unit = self.denominator * 10**DIGITS * Fraction(weight)
        slack = int(Fraction(self.tolerance) * unit)
        signs = np.sign(totals).astype(np.int64)
        small = np.abs(totals) <= errors + slack
        if self.tolerance:
            sizes = np.array([float(abs(t) / unit) for t in totals.ravel()]).reshape(totals.shape)
            self.nonzero_above = min(self.nonzero_above, float(sizes[~small].min(initial=math.inf)))
        elif bool((np.asarray(shares)[small] != 0).any()):
            self.is_decided = False
        signs[small] = 0
        return signs

    def difference(self, first: int, second: int) -> Any:
        """Return the numerators of one action's losses less another's: (outcomes, terms)."""
        return self.numerators[first] - self.numerators[second]


@dataclass(frozen=True)
class Game:
    """A partial-monitoring game.

    Parameters
    ----------
    losses
        What every action loses under every outcome.
    feedback
        A symbol for what is seen, by action and outcome.
    shown
        For rankings, the set of items whose relevance each action shows.

    Examples
    --------
    >>> game = Game.of("SumLoss", n_items=3, k=1)
    >>> game.losses.matrix[0].astype(int).tolist()          # Table 3.1, the ranking 1 2 3
    [0, 3, 2, 5, 1, 4, 3, 6]
    >>> game.feedback[0].tolist()                           # Table 3.2
    [0, 0, 0, 0, 1, 1, 1, 1]
    >>> game.signals(0).shape                               # one row per symbol
    (2, 8)
    """

    losses: Losses
    feedback: IntArray
    shown: tuple[frozenset[int], ...] = ()
    k: int = 0

    @classmethod
    def of(cls, measure: str | Measure, n_items: int, k: int, grades: int = 2) -> "Game":
        """Return the game of ranking ``n_items`` with relevance 0 to ``grades - 1``, Top(k) shown.

        Actions are rankings in lexicographic order, outcomes relevance vectors likewise; the
        matrices are filled by the kernels that games are played with.
        """
        judge = check_ranking_game(measure, n_items, k, grades)
        check_size(n_items, grades)
        losses = losses_of(judge, n_items, grades)
        reveal = Top(k)
        seen = np.array(
            [
                [reveal(outcome, action).values for outcome in losses.outcomes]
                for action in losses.actions
            ]
        )
        shown = tuple(
            frozenset(
                item for place, item in enumerate(action) if not np.isnan(rows[:, place]).any()
            )
            for action, rows in zip(losses.actions, seen, strict=True)
        )
        places = grades ** np.arange(k - 1, -1, -1)
        symbols = (seen[:, :, :k] @ places).astype(np.int64)
        return cls(losses, symbols, shown, k)

    @classmethod
    def from_matrices(
        cls, loss: Sequence[Sequence[Any]], feedback: Sequence[Sequence[Any]]
    ) -> "Game":
        """Return the game of a user's own matrices, one row per action, one column per outcome.

        Losses can be integers, fractions or strings such as "1/3", which are exact, or floats.
        Feedback can be any symbols.

        Examples
        --------
        >>> Game.from_matrices([[0, 1], [1, 0]], [["rain", "sun"], ["?", "?"]]).feedback.tolist()
        [[0, 1], [0, 0]]
        """
        rows = _read_rows(loss, "loss")
        if len(rows) * len(rows[0]) > LARGEST_GAME:
            raise InvalidInput(
                f"loss must have at most {LARGEST_GAME} entries, got {len(rows) * len(rows[0])}."
            )
        seen = [[str(symbol) for symbol in row] for row in _check_rows(feedback, "feedback")]
        if (len(seen), len(seen[0])) != (len(rows), len(rows[0])):
            raise InvalidInput(
                f"feedback must have the shape of loss ({len(rows)} by {len(rows[0])}), "
                f"got {len(seen)} by {len(seen[0])}."
            )
        symbols = [[sorted(set(row)).index(symbol) for symbol in row] for row in seen]
        sums = [[{ONE: value} if value else {} for value, _ in row] for row in rows]
        matrix = np.array([[float(value) for value, _ in row] for row in rows])
        exact = all(given for row in rows for _, given in row)
        losses = Losses(matrix, sums, tolerance=0.0 if exact else READING_TOLERANCE)
        return cls(losses, np.array(symbols, dtype=np.int64))

    def signals(self, action: int) -> IntArray:
        """Return the signal matrix of an action: one 0/1 row per symbol it can show."""
        symbols = np.unique(self.feedback[action])
        return (self.feedback[action] == symbols[:, None]).astype(np.int64)


def _check_rows(matrix: Any, name: str) -> list[list[Any]]:
    try:
        rows = [list(row) for row in matrix]
    except TypeError:
        rows = []
    if not rows or not rows[0] or any(len(row) != len(rows[0]) for row in rows):
        raise InvalidInput(f"{name} must be a list of rows of one length, at least one by one.")
    return rows


def _read_rows(matrix: Any, name: str) -> list[list[tuple[Fraction, bool]]]:
    rows = _check_rows(matrix, name)
    try:
        return [[read_number(value) for value in row] for row in rows]
    except (TypeError, ValueError, OverflowError, ZeroDivisionError) as error:
        why = f": {error}" if isinstance(error, InvalidInput) else "."
        raise InvalidInput(f"{name} must hold finite numbers{why}") from None


def check_ranking_game(measure: str | Measure, n_items: int, k: int, grades: int) -> Measure:
    """Return the measure of a game that makes sense, or raise."""
    judge = measure_by_name(measure)
    n_items = check_length(n_items, "`n_items`")
    check_integer(k, "`k` of Top", at_least=1, at_most=n_items, bound="n_items=")
    at_most = int(judge.max_grade) + 1 if math.isfinite(judge.max_grade) else None
    check_integer(grades, "`grades`", at_least=2, at_most=at_most)
    judge.params(n_items)
    if judge.empty is not None and not math.isfinite(judge.empty):
        raise InvalidInput(f"`empty` of {judge.name} must be finite, got {judge.empty}.")
    return judge


def is_enumerable(n_items: int, grades: int, most: int = LARGEST_GAME) -> bool:
    """Return whether rankings times relevance vectors are at most so many."""
    return n_items <= 8 and math.factorial(n_items) * grades**n_items <= most


def check_size(n_items: int, grades: int) -> None:
    """Raise where a game is too large to list."""
    if not is_enumerable(n_items, grades):
        raise InvalidInput(
            f"a game of {n_items} items and {grades} grades is too large to enumerate: rankings "
            f"times relevance vectors must be at most {LARGEST_GAME}."
        )


def losses_of(measure: Measure, n_items: int, grades: int) -> Losses:
    """Return the losses of all rankings; those of shipped measures are kept for the next call."""
    if definition_of(type(measure)) is not None and not isinstance(measure, LinearMeasure):
        return _shipped_losses(type(measure), str(measure), _Held(measure), n_items, grades)
    return _fill(measure, n_items, grades)


class _Held:
    """Carries a measure past a cache that looks at its name and convention only."""

    def __init__(self, measure: Measure) -> None:
        self.measure = measure

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Held)

    def __hash__(self) -> int:
        return 0


@lru_cache(maxsize=32)
def _shipped_losses(
    kind: type[Measure], convention: str, held: _Held, n_items: int, grades: int
) -> Losses:
    return _fill(held.measure, n_items, grades)


def _fill(measure: Measure, n_items: int, grades: int) -> Losses:
    actions = tuple(itertools.permutations(range(n_items)))
    outcomes = tuple(itertools.product(range(grades), repeat=n_items))
    values = np.array([[measure(outcome, action) for outcome in outcomes] for action in actions])
    matrix = values if measure.is_loss else 0.0 - values  # no negative zeros
    if not np.isfinite(matrix).all():
        raise InvalidInput(f"{measure.label} must be finite on every list.")
    places = {outcome: index for index, outcome in enumerate(outcomes)}
    moved = [[places[tuple(r[i] for i in action)] for r in outcomes] for action in actions]
    if np.abs(matrix - matrix[0][moved]).max() > _AGREEMENT * max(1.0, np.abs(matrix).max()):
        raise InvalidInput(f"{measure.label} must treat all items alike.")
    exact = definition_of(type(measure)) is not None
    sums: list[list[Sum]]
    if exact:
        sums = [[loss_of(measure, outcome, action) for outcome in outcomes] for action in actions]
        given = np.array([[number(total) for total in row] for row in sums])
        if np.abs(given - matrix).max() > _AGREEMENT * max(1.0, np.abs(matrix).max()):
            raise InvalidInput(f"the kernel of {measure.label} must compute its definition.")
    else:
        sums = [[{ONE: read_number(v)[0]} if v else {} for v in row] for row in matrix]
    return Losses(
        matrix,
        sums,
        tolerance=0.0 if exact else READING_TOLERANCE * max(1.0, float(np.abs(matrix).max())),
        measure=measure,
        actions=actions,
        outcomes=outcomes,
        grades=grades,
    )
