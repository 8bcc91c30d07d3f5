"""Values of measures as exact sums: fractions times a few symbols.

Most measures are rational. DCG and NDCG are sums of D(p) and D(p)/Z with rational
coefficients, D(p) = 1/log2(1 + p) and Z the DCG of the best ranking. A sum whose coefficients
vanish is zero; whether another one is, is decided by the symbols' values to fifty digits.
The definitions here are plain ones, written apart from the kernels and compared with them
whenever a game is built.
"""

import math
import re
from collections.abc import Callable
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import cache
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from keyhole.base.errors import LARGEST_NUMBER, InvalidInput, shown
from keyhole.contracts import Measure
from keyhole.measures import (
    AP,
    AUC,
    DCG,
    ERR,
    NDCG,
    RR,
    APLoss,
    InversionLoss,
    LinearMeasure,
    NDCGLoss,
    PairwiseLoss,
    Precision,
    Recall,
    SumLoss,
)

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


# --------------------------------------------------------------------------- definitions
# Each takes a measure, relevance by item and the item at each position.


def _depth(measure: Measure, relevance: Items) -> int:
    return min(measure.cutoff or len(relevance), len(relevance))


def _rational(value: Fraction | int) -> Sum:
    return {ONE: Fraction(value)} if value else {}


def _empty(measure: Measure) -> Fraction:
    return Fraction(measure.empty or 0.0)


def _n_relevant(relevance: Items) -> int:
    return sum(grade > 0 for grade in relevance)


def _sum_loss(measure: Measure, relevance: Items, ranking: Items) -> Sum:
    return _rational(sum((p + 1) * relevance[item] for p, item in enumerate(ranking)))


def _wrong_pairs(relevance: Items, ranking: Items) -> list[int]:
    """Return by how much the lower item of each pair is more relevant, where it is."""
    shown = (relevance[item] for item in ranking)
    return [below - above for above, below in combinations(shown, 2) if below > above]


def _pairwise(measure: Measure, relevance: Items, ranking: Items) -> Sum:
    return _rational(len(_wrong_pairs(relevance, ranking)))


def _inversion(measure: Measure, relevance: Items, ranking: Items) -> Sum:
    return _rational(sum(_wrong_pairs(relevance, ranking)))


def _auc(measure: Measure, relevance: Items, ranking: Items) -> Sum:
    binary = tuple(int(grade > 0) for grade in relevance)
    n_pairs = sum(binary) * (len(binary) - sum(binary))
    if n_pairs == 0:
        return _rational(_empty(measure))
    return _rational(Fraction(len(_wrong_pairs(binary, ranking)), n_pairs))


def _precision(measure: Measure, relevance: Items, ranking: Items) -> Sum:
    return _rational(sum(relevance[item] for item in ranking[: _depth(measure, relevance)]))


def _recall(measure: Measure, relevance: Items, ranking: Items) -> Sum:
    found = sum(relevance[item] > 0 for item in ranking[: _depth(measure, relevance)])
    total = _n_relevant(relevance)
    return _rational(Fraction(found, total) if total else _empty(measure))


def _average_precision(measure: Measure, relevance: Items, ranking: Items) -> Sum:
    if not _n_relevant(relevance):
        return _rational(_empty(measure))
    hits = [p for p, item in enumerate(ranking) if relevance[item] > 0]
    within = [p for p in hits if p < _depth(measure, relevance)]
    total = sum((Fraction(n + 1, p + 1) for n, p in enumerate(within)), Fraction(0))
    return _rational(total / len(hits))


def _reciprocal_rank(measure: Measure, relevance: Items, ranking: Items) -> Sum:
    if not _n_relevant(relevance):
        return _rational(_empty(measure))
    first = min(p for p, item in enumerate(ranking) if relevance[item] > 0)
    return _rational(Fraction(1, first + 1) if first < _depth(measure, relevance) else 0)


def _expected_rr(measure: Measure, relevance: Items, ranking: Items) -> Sum:
    stops = [Fraction(2**grade - 1, 2 ** int(measure.max_grade)) for grade in relevance]
    total, reach = Fraction(0), Fraction(1)
    for p, item in enumerate(ranking[: _depth(measure, relevance)]):
        total += reach * stops[item] / (p + 1)
        reach *= 1 - stops[item]
    return _rational(total)


def _dcg(measure: Measure, relevance: Items, ranking: Items) -> Sum:
    shown = ranking[: _depth(measure, relevance)]
    return {
        Term(p + 1): Fraction(2 ** relevance[item] - 1)
        for p, item in enumerate(shown)
        if relevance[item] > 0
    }


def _ndcg(measure: Measure, relevance: Items, ranking: Items) -> Sum:
    best = sorted((2**grade - 1 for grade in relevance), reverse=True)
    ideal = tuple(gain for gain in best[: _depth(measure, relevance)] if gain > 0)
    if not ideal:
        return _rational(_empty(measure))
    dcg = _dcg(measure, relevance, ranking)
    return {Term(term.position, ideal): share for term, share in dcg.items()}


def _one_less(definition: Callable[..., Sum]) -> Callable[..., Sum]:
    def value(measure: Measure, relevance: Items, ranking: Items) -> Sum:
        total = definition(measure, relevance, ranking)
        negated = {term: -share for term, share in total.items()}
        negated[ONE] = negated.get(ONE, Fraction(0)) + 1
        return {term: share for term, share in negated.items() if share}

    return value


def _linear(measure: Measure, relevance: Items, ranking: Items) -> Sum:
    weights = [Fraction(float(w)) for w in measure.weights(len(relevance))]
    gains = [2**g - 1 if measure.exponential_gain else g for g in relevance]
    return _rational(sum((weights[p] * gains[i] for p, i in enumerate(ranking)), Fraction(0)))


DEFINITIONS: dict[type[Measure], Callable[[Measure, Items, Items], Sum]] = {
    SumLoss: _sum_loss,
    PairwiseLoss: _pairwise,
    InversionLoss: _inversion,
    AUC: _auc,
    Precision: _precision,
    Recall: _recall,
    AP: _average_precision,
    APLoss: _one_less(_average_precision),
    RR: _reciprocal_rank,
    ERR: _expected_rr,
    DCG: _dcg,
    NDCG: _ndcg,
    NDCGLoss: _one_less(_ndcg),
    LinearMeasure: _linear,
}
"""Measures whose values are known exactly."""


def loss_of(measure: Measure, relevance: Items, ranking: Items) -> Sum:
    """Return what a ranking loses, exactly: the value of a loss, a gain negated.

    Examples
    --------
    >>> {str(term): str(c) for term, c in loss_of(NDCG(), (0, 1, 1), (0, 1, 2)).items()}
    {'D(2)/Z(1,1)': '-1', 'D(3)/Z(1,1)': '-1'}
    """
    total = DEFINITIONS[type(measure)](measure, relevance, ranking)
    return total if measure.is_loss else {term: -share for term, share in total.items()}


# --------------------------------------------------------------------------- arrays of sums

_PLAIN_DENOMINATOR = 1000
_LONGEST_NUMBER = 2000
_LARGEST_EXPONENT = 300
_LARGEST_DENOMINATOR = 20_000
"""Bits of what all numbers of a game are multiples of one over."""
READING_TOLERANCE = 1e-12
"""A float this close to a fraction with a small denominator is read as that fraction."""


def read_fraction(given: Any) -> Fraction:
    """Return a number exactly, or raise InvalidInput.

    Text is looked at before it is computed: ``1e999999999`` is short, and fills a memory.

    Examples
    --------
    >>> read_fraction("1/3") + read_fraction("2.5e-1")
    Fraction(7, 12)
    >>> read_fraction("1e999999999")
    Traceback (most recent call last):
    ...
    keyhole.base.errors.InvalidInput: Numbers must be such as 2, 0.25 or 1/3, of at most 2000 \
characters, with an exponent of at most 300, got '1e999999999'.
    """
    try:
        if isinstance(given, str):
            exponent = re.search(r"[eE]([+-]?[\d_]*)\s*$", given)
            is_short = len(given) <= _LONGEST_NUMBER
            if is_short and (exponent is None or abs(int(exponent[1])) <= _LARGEST_EXPONENT):
                return Fraction(given)
        elif isinstance(given, int | float | Fraction) and not isinstance(given, bool):
            return Fraction(given)
    except (ValueError, OverflowError, ZeroDivisionError):
        pass
    raise InvalidInput(
        f"Numbers must be such as 2, 0.25 or 1/3, of at most {_LONGEST_NUMBER} characters, with an "
        f"exponent of at most {_LARGEST_EXPONENT}, got {shown(given)}."
    )


def read_number(value: Any) -> tuple[Fraction, bool]:
    """Return a number as a fraction, and whether it was given exactly."""
    fraction, is_exact = _read_number(value)
    if abs(fraction) > LARGEST_NUMBER:
        raise InvalidInput(f"Numbers must be at most {LARGEST_NUMBER:g}, got {shown(value)}.")
    return fraction, is_exact


def _read_number(value: Any) -> tuple[Fraction, bool]:
    if isinstance(value, Fraction | int | np.integer):
        return Fraction(int(value) if isinstance(value, np.integer) else value), True
    if isinstance(value, str):
        return read_fraction(value), True
    plain = Fraction(float(value)).limit_denominator(_PLAIN_DENOMINATOR)
    if plain == Fraction(float(value)) and plain.denominator == 1:
        return plain, True
    near = abs(float(plain) - float(value)) <= READING_TOLERANCE * max(1.0, abs(float(value)))
    return (plain if near else Fraction(float(value))), False


class Numbers:
    """How sums over the same symbols are compared: in whole numbers, with their error."""

    def __init__(self, terms: tuple[Term, ...]) -> None:
        self.terms = terms
        values = [value_of(term) for term in terms]
        self.values = np.array([round(v * 10**DIGITS) for v in values], dtype=object)
        self.errors = np.array([int(term != ONE) for term in terms], dtype=object)

    def bounds(self, shares: Any) -> tuple[Any, Any]:
        """Return sums times 10^DIGITS and the most they can be off by; terms are last."""
        return shares @ self.values, np.abs(shares) @ self.errors

    def floats(self, shares: Any) -> Any:
        """Return sums as floats."""
        return (np.asarray(shares @ self.values) / 10**DIGITS).astype(np.float64)


def common_denominator(numbers: Any) -> int:
    """Return the least common denominator of fractions."""
    common = 1
    for denominator in {fraction.denominator for fraction in numbers}:
        common = math.lcm(common, denominator)
        if common.bit_length() > _LARGEST_DENOMINATOR:
            raise InvalidInput(
                f"Numbers must have a common denominator of at most {_LARGEST_DENOMINATOR} bits."
            )
    return common
