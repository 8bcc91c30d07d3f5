"""Values of measures as exact sums: fractions times a few symbols.

Most measures are rational. DCG and NDCG are sums of D(p) and D(p)/Z with rational
coefficients, D(p) = 1/log2(1 + p) and Z the DCG of the best ranking. A sum whose coefficients
vanish is zero; whether another one is, is decided by the symbols' values to fifty digits.
The method ``exact`` of a measure is its plain definition, written apart from its kernels and
compared with them whenever a game is built.
"""

from collections.abc import Callable
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import cache
from itertools import combinations
from typing import Any, NamedTuple

Items = tuple[int, ...]

DIGITS = 50
"""Symbols are known to within 10^-DIGITS."""


class Term(NamedTuple):
    """A symbol: 1, D(position), or D(position)/Z with ``ideal`` the gains of the best list."""

    position: int = 0
    ideal: Items = ()

    def __str__(self) -> str:
        if self.position == 0:
            return "1"
        norm = f"/Z({','.join(map(str, self.ideal))})" if self.ideal else ""
        return f"D({self.position}){norm}"


ONE = Term()
Sum = dict[Term, Fraction]
"""Coefficients by symbol; zeros are left out."""


@cache
def discount(position: int, digits: int = DIGITS + 10) -> Fraction:
    """Return D(position) to within 10^-digits; decimal logarithms are correctly rounded."""
    with localcontext() as context:
        context.prec = digits + 5
        return Fraction(Decimal(2).ln() / Decimal(1 + position).ln())


@cache
def value_of(term: Term) -> Fraction:
    """Return the value of a symbol, to within 10^-DIGITS where it is not 1."""
    if term.position == 0:
        return Fraction(1)
    norm = sum((gain * discount(place + 1) for place, gain in enumerate(term.ideal)), Fraction(0))
    return discount(term.position) / norm if term.ideal else discount(term.position)


def number(total: Sum) -> float:
    """Return a sum as a float."""
    return float(sum((share * value_of(term) for term, share in total.items()), Fraction(0)))


def rational(value: Fraction | int) -> Sum:
    """Return a rational number as a sum."""
    return {ONE: Fraction(value)} if value else {}


def one_less(definition: Callable[..., Sum]) -> Callable[..., Sum]:
    """Return the definition of 1 - what another one gives."""

    def value(measure: Any, relevance: Items, ranking: Items) -> Sum:
        total = definition(measure, relevance, ranking)
        negated = {term: -share for term, share in total.items()}
        negated[ONE] = negated.get(ONE, Fraction(0)) + 1
        return {term: share for term, share in negated.items() if share}

    return value


def wrong_pairs(relevance: Items, ranking: Items) -> list[int]:
    """Return by how much the lower item of each pair is more relevant, where it is."""
    shown = (relevance[item] for item in ranking)
    return [below - above for above, below in combinations(shown, 2) if below > above]


def depth_of(measure: Any, relevance: Items) -> int:
    """Return how many positions a measure scores."""
    return min(measure.cutoff or len(relevance), len(relevance))


def of_empty(measure: Any) -> Sum:
    """Return the value of a list without a relevant item."""
    return rational(Fraction(measure.empty or 0.0))
