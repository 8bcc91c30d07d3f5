"""A game rebuilt from its name in a certificate, with nothing but definitions and sums.

Losses come from the plain definitions of :mod:`keyhole.monitoring.exact` (compared with the
measure's kernel), feedback from what a ranking has on top.
"""

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any

from keyhole.base.errors import InvalidInput, KeyholeError, check_integer
from keyhole.contracts.measures import Measure
from keyhole.measures import measure as measure_by_name
from keyhole.measures.exact import DIGITS, ONE, Sum, number, value_of
from keyhole.monitoring.exact import common_denominator, loss_of, read_fraction
from keyhole.monitoring.games import LARGEST_GAME, check_ranking_game

_MOST_ITEMS = 100_000
"""Longest list of which a certificate may speak."""


class InvalidCertificate(KeyholeError, ValueError):
    """A certificate that does not prove what it claims."""


class UnreadableCertificate(InvalidCertificate):
    """Something that is no certificate at all, or has parts missing."""


def require(holds: bool, sentence: str) -> None:
    """Raise InvalidCertificate with a sentence unless something holds."""
    if not holds:
        raise InvalidCertificate(sentence)


# --------------------------------------------------------------------------- sums


def add(*weighted: tuple[Fraction | int, Sum]) -> Sum:
    """Return a weighted sum of sums; terms that cancel are left out."""
    total: Sum = {}
    for weight, terms in weighted:
        for term, share in terms.items():
            total[term] = total.get(term, Fraction(0)) + weight * share
    return {term: share for term, share in total.items() if share}


def sign_of(total: Sum) -> int:
    """Return the sign of a sum: 0 without terms, otherwise by its value to fifty digits."""
    value = sum((share * value_of(term) for term, share in total.items()), Fraction(0))
    error = sum(abs(share) for term, share in total.items() if term != ONE)
    require(not total or abs(value) > error / 10**DIGITS, "a sum must be told from zero.")
    return (value > 0) - (value < 0)


def mean(distribution: Sequence[Fraction], losses: Sequence[Sum]) -> Sum:
    """Return the expected loss."""
    return add(*((p, loss) for p, loss in zip(distribution, losses, strict=True) if p))


def read_distribution(given: Any) -> list[Fraction]:
    """Return probabilities that sum to one."""
    probabilities = [read_fraction(text) for text in given]
    common_denominator(probabilities)
    require(sum(probabilities) == 1, "probabilities must sum to 1.")
    require(min(probabilities) >= 0, "probabilities must not be negative.")
    return probabilities


# --------------------------------------------------------------------------- the game, rebuilt


class Board:
    """A game as a certificate names it: actions, outcomes, losses and what is shown."""

    def __init__(self, game: Mapping[str, Any]) -> None:
        self.measure: Measure | None = None
        self._rows: dict[Any, list[Sum]] = {}
        if "measure" in game:
            self.n_items = check_integer(
                game["n_items"], "`n_items`", at_least=1, at_most=_MOST_ITEMS
            )
            named = measure_by_name(game["measure"], **game.get("options", {}))
            self.measure = check_ranking_game(named, self.n_items, game["k"], game["grades"])
            self.k, self.grades = int(game["k"]), int(game["grades"])
        else:
            if len(game["loss"]) * len(game["loss"][0]) > LARGEST_GAME:
                raise InvalidInput(f"loss must have at most {LARGEST_GAME} entries.")
            self._loss = [[_fraction(x) for x in row] for row in game["loss"]]
            common_denominator([value for row in self._loss for value in row])
            self._feedback = game["feedback"]

    @property
    def actions(self) -> Iterable[Any]:
        """All rankings, or the numbers of the rows."""
        if self.measure is None:
            return range(len(self._loss))
        return itertools.permutations(range(self.n_items))

    @property
    def outcomes(self) -> list[tuple[int, ...]]:
        """All relevance vectors, or the numbers of the columns."""
        if self.measure is None:
            return [(column,) for column in range(len(self._loss[0]))]
        return list(itertools.product(range(self.grades), repeat=self.n_items))

    def is_outcome(self, outcome: tuple[int, ...]) -> bool:
        """Return whether an outcome can happen; a list may leave out its last items."""
        if self.measure is None:
            return outcome in self.outcomes
        known = range(self.grades)
        return len(outcome) <= self.n_items and all(grade in known for grade in outcome)

    def action(self, given: Any) -> Any:
        """Return an action as it is written in a certificate."""
        return given if self.measure is None else tuple(given)

    def loss(self, action: Any) -> list[Sum]:
        """Return the losses of an action, one per outcome."""
        if action not in self._rows:
            self._rows[action] = [self._entry(action, outcome) for outcome in self.outcomes]
        return self._rows[action]

    def _entry(self, action: Any, outcome: tuple[int, ...]) -> Sum:
        if self.measure is None:
            value = self._loss[action][outcome[0]]
            return {ONE: value} if value else {}
        return loss_at(self.measure, outcome, action)

    def seen(self, action: Any, outcome: tuple[int, ...]) -> Any:
        """Return what an action shows under an outcome."""
        if self.measure is None:
            return str(self._feedback[action][outcome[0]])
        return tuple(outcome[item] for item in action[: self.k])

    def difference(self, first: Any, second: Any) -> list[Sum]:
        """Return one action's losses less another's."""
        pairs = zip(self.loss(first), self.loss(second), strict=True)
        return [add((1, one), (-1, other)) for one, other in pairs]

    def read_sum(self, given: Mapping[str, str]) -> Sum:
        """Return a sum as it is written in a certificate, by the names of its terms."""
        # Every symbol of a measure occurs in the losses of any one ranking.
        some = self.loss(next(iter(self.actions)))
        known = {str(ONE): ONE} | {str(term): term for entry in some for term in entry}
        require(set(given) <= set(known), "terms must be those of the measure.")
        shares = {name: read_fraction(share) for name, share in given.items()}
        return {known[name]: share for name, share in shares.items() if share}

    def is_between(self, action: Any, first: Any, second: Any) -> bool:
        """Return whether an action is optimal wherever both are.

        Rankings of one measure all have loss vectors of one length, so only duplicates are;
        otherwise those whose losses lie on the segment between the two.
        """
        if self.loss(action) in (self.loss(first), self.loss(second)):
            return True
        if self.measure is not None:
            return False
        step, away = self.difference(second, first), self.difference(action, first)
        at = next(x for x, entry in enumerate(step) if entry)
        share = away[at].get(ONE, Fraction(0)) / step[at][ONE]
        return 0 < share < 1 and away == [add((share, entry)) for entry in step]


def loss_at(measure: Measure, outcome: tuple[int, ...], ranking: tuple[int, ...]) -> Sum:
    """Return a loss by its definition, compared with the measure's kernel."""
    total, value = loss_of(measure, outcome, ranking), measure(outcome, ranking)
    value = value if measure.is_loss else -value
    close = math.isclose(number(total), value, rel_tol=1e-12, abs_tol=1e-12)
    require(close, f"the kernel of {measure.label} must compute its definition.")
    return total


def _fraction(value: Any) -> Fraction:
    return read_fraction(value if isinstance(value, int | str) else str(value))
