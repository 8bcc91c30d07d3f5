"""Losses of measures as exact sums, numbers read exactly, and arrays of both compared."""

import math
import re
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from keyhole.base.errors import LARGEST_NUMBER, InvalidInput, shown
from keyhole.contracts.measures import Measure
from keyhole.measures.exact import DIGITS, ONE, Items, Sum, Term, value_of


def definition_of(kind: type[Measure]) -> Callable[[Measure, Items, Items], Sum] | None:
    """Return how a kind of measure says its values exactly, or None where it does not.

    What a base class says is not taken for its own: it may compute something else.
    """
    own: Callable[[Measure, Items, Items], Sum] | None = vars(kind).get("exact")
    return own


def loss_of(measure: Measure, relevance: Items, ranking: Items) -> Sum:
    """Return what a ranking loses, exactly: the value of a loss, a gain negated.

    Examples
    --------
    >>> from keyhole.measures.ndcg import NDCG
    >>> {str(term): str(c) for term, c in loss_of(NDCG(), (0, 1, 1), (0, 1, 2)).items()}
    {'D(2)/Z(1,1)': '-1', 'D(3)/Z(1,1)': '-1'}
    """
    definition = definition_of(type(measure))
    if definition is None:
        raise InvalidInput(f"the values of {measure.label} are not known exactly.")
    total = definition(measure, relevance, ranking)
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
