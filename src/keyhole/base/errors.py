"""The exceptions Keyhole raises, and the checks that raise them.

Every message has one form: what was given, what it must be, what it was.
"""

import difflib
import math
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

MAX_ROUND = 2**47
"""Rounds that a draw can tell apart."""

LARGEST_INTEGER = 2**63 - 1
"""What compiled code counts with."""

LARGEST_NUMBER = 1e60
"""Largest size of a setting: products of five of them are finite."""

LEAST_NUMBER = 1e-60
"""Least size of a setting that is not 0."""

_LONGEST_NAME = 100
"""Characters of a name that are compared with those that exist."""

LARGEST_EXPONENTIAL_GRADE = 199.0
"""The largest grade r whose gain 2^r - 1 does not exceed :data:`LARGEST_NUMBER`."""

_LEAST_TOP_GRADE = 1e-9

_NO_NUMBERS = (bool, np.bool_, str, bytes, complex)
"""What Python would read as a number, and nobody gives as one."""


class KeyholeError(Exception):
    """Base of every error a caller can cause."""


class InvalidInput(KeyholeError, ValueError):
    """An argument that cannot be used."""


class UnknownName(KeyholeError, LookupError):
    """A name that no table holds."""


class FeedbackTooSmall(KeyholeError, ValueError):
    """A reveal or a feedback that shows less than a ranker needs."""


class LibraryMissing(KeyholeError):
    """A library that comes with one of the package's extras is not installed.

    Examples
    --------
    >>> print(LibraryMissing("Figures need matplotlib", "figures"))
    Figures need matplotlib: pip install -e '.[figures]' in a checkout of Keyhole brings it.
    """

    def __init__(self, what: str, extra: str) -> None:
        super().__init__(f"{what}: pip install -e '.[{extra}]' in a checkout of Keyhole brings it.")


class CannotWrite(KeyholeError, OSError):
    """A file that cannot be written: a full disk, a folder in its place, a missing right."""


class NotObservable(KeyholeError, ValueError):
    """A measure that cannot be estimated from the feedback at hand."""


def shown(value: Any, longest: int = 200) -> str:
    """Return how a value is shown in an error: as Python writes it, but never without end.

    Examples
    --------
    >>> shown("abc"), shown(10**5000), len(shown([0] * 10**6))
    ("'abc'", 'an int that cannot be written', 201)
    """
    try:
        text = repr(value)
    except Exception:  # an integer of more than 4,300 digits, or whatever a class of theirs raises
        kind = type(value).__name__
        return f"a{'n' * (kind[0] in 'aeiouAEIOU')} {kind} that cannot be written"
    text, half = " ".join(line.strip() for line in text.splitlines()), longest // 2
    return text if len(text) <= longest else f"{text[:half]}…{text[-half:]}"


def _is_no_number(value: Any) -> bool:
    """Return whether Python might read a value as a number that nobody gives as one."""
    is_complex = isinstance(value, np.ndarray) and value.dtype.kind == "c"
    return is_complex or isinstance(value, _NO_NUMBERS)


def check_integer(
    value: Any, name: str, *, at_least: int, at_most: int | None = None, bound: str = ""
) -> int:
    """Return ``value`` as an integer within its range, or raise.

    No integer may exceed what compiled code counts with, :data:`LARGEST_INTEGER`.

    Examples
    --------
    >>> check_integer(12, "`k` of Top", at_least=1, at_most=10, bound="n_items=")
    Traceback (most recent call last):
    ...
    keyhole.base.errors.InvalidInput: `k` of Top must be an integer between 1 and n_items=10, \
got 12.
    """
    whole, integer = False, 0
    with suppress(TypeError, ValueError, OverflowError):
        if not _is_no_number(value):
            integer = int(value)
            whole = bool(integer == value)
    most = LARGEST_INTEGER if at_most is None else at_most
    if whole and at_least <= integer <= most:
        return integer
    is_open = at_most is None and not (whole and integer > most)
    span = f"of at least {at_least}" if is_open else f"between {at_least} and {bound}{most}"
    raise InvalidInput(f"{name} must be an integer {span}, got {shown(value)}.")


def check_number(
    value: Any,
    name: str,
    *,
    at_least: float = -math.inf,
    at_most: float = math.inf,
    above: float | None = None,
) -> float:
    """Return ``value`` as a finite number within its range, or raise.

    Nor may it be so large, or so close to 0, that squares and products of it leave the range of
    floating point: see :data:`LARGEST_NUMBER`.
    """
    try:
        number = math.nan if _is_no_number(value) else float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    outside = number < at_least or (above is not None and number <= above)
    if not math.isfinite(number) or outside or number > at_most:
        low = f"above {above}" if above is not None else f"of at least {at_least}"
        ends = ([] if low.endswith("-inf") else [low]) + [f"at most {at_most}"]
        span = " and ".join(end for end in ends if end != "at most inf")
        raise InvalidInput(f"{name} must be a number {span}".rstrip() + f", got {shown(value)}.")
    if number and not LEAST_NUMBER <= abs(number) <= LARGEST_NUMBER:
        raise InvalidInput(
            f"{name} must be a number of a size between {LEAST_NUMBER:g} and {LARGEST_NUMBER:g}, "
            f"or 0, got {shown(value)}."
        )
    return number


def check_top_grade(value: Any, name: str, *, exponential: bool) -> float:
    """Return the largest grade that can occur, of which gains are computed, or raise.

    ``exponential``: gains are 2^r - 1.
    """
    most = LARGEST_EXPONENTIAL_GRADE if exponential else LARGEST_NUMBER
    return check_number(value, name, at_least=_LEAST_TOP_GRADE, at_most=most)


def check_flag(value: Any, name: str) -> bool:
    """Return ``value`` if it is true or false, or raise.

    Examples
    --------
    >>> check_flag("maybe", "`tight` of FTPL")
    Traceback (most recent call last):
    ...
    keyhole.base.errors.InvalidInput: `tight` of FTPL must be true or false, got 'maybe'.
    """
    if not isinstance(value, bool | np.bool_):
        raise InvalidInput(f"{name} must be true or false, got {shown(value)}.")
    return bool(value)


def as_array(value: Any, name: str) -> NDArray[Any]:
    """Return a value as an array of whatever it holds, or raise."""
    try:
        return np.asarray(value)
    except (TypeError, ValueError, OverflowError):
        raise InvalidInput(f"{name} must be an array of numbers.") from None


def check_array(values: ArrayLike, name: str, *, n_dims: int) -> FloatArray:
    """Return numbers as an array of so many dimensions, whatever the numbers are, or raise.

    Examples
    --------
    >>> check_array([[1, 2], [3]], "`weights`", n_dims=1)
    Traceback (most recent call last):
    ...
    keyhole.base.errors.InvalidInput: `weights` must be a list of numbers, got [[1, 2], [3]].
    """
    try:
        array = np.asarray(values, dtype=np.float64)
        fits = array.ndim == n_dims
    except (TypeError, ValueError, OverflowError):
        fits = False
    if not fits:
        kind = "a list of numbers" if n_dims == 1 else "rows of numbers, all of one length"
        raise InvalidInput(f"{name} must be {kind}, got {shown(values)}.")
    return np.ascontiguousarray(array)


def check_choice(value: str, name: str, choices: Iterable[str]) -> str:
    """Return ``value`` if it is one of ``choices``; otherwise name the nearest.

    Examples
    --------
    >>> check_choice("NDGC", "measure", ["NDCG", "DCG"])
    Traceback (most recent call last):
    ...
    keyhole.base.errors.UnknownName: measure must be one of DCG, NDCG, got 'NDGC'. \
Did you mean 'NDCG'?
    """
    known = sorted(choices)
    if not isinstance(value, str):
        raise InvalidInput(f"{name} must be one of {', '.join(known)}, got {shown(value)}.")
    if value in known:
        return value
    lowered = {choice.lower(): choice for choice in known}
    near = difflib.get_close_matches(value[:_LONGEST_NAME].lower(), lowered, n=1, cutoff=0.5)
    hint = f" Did you mean {lowered[near[0]]!r}?" if near else ""
    raise UnknownName(f"{name} must be one of {', '.join(known)}, got {shown(value)}.{hint}")


def check_seed(seed: Any) -> int:
    """Return a seed that fits a signed 64-bit word, or raise."""
    return check_integer(seed, "`seed`", at_least=0, at_most=2**63 - 1)


def check_round(round: Any) -> int:
    """Return a round number that a draw can be made for, or raise."""
    return check_integer(round, "`round`", at_least=0, at_most=MAX_ROUND - 1)


def check_relevance(relevance: ArrayLike, name: str = "relevance") -> FloatArray:
    """Return relevance as floats, or raise on anything that is not finite and non-negative."""
    try:
        values = np.ascontiguousarray(relevance, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise InvalidInput(f"{name} must be numbers in lists of one length.") from None
    if values.ndim == 0 or np.ndim(relevance) == 0:
        raise InvalidInput(f"{name} must be a list, got {shown(relevance)}.")
    bad = ~((values >= 0) & (values <= LARGEST_NUMBER))
    if bad.any():
        where = tuple(int(i) for i in np.argwhere(bad)[0])
        place = where[0] if len(where) == 1 else where
        is_huge = values[where] > LARGEST_NUMBER and np.isfinite(values[where])
        range_of_it = f"at most {LARGEST_NUMBER:g}" if is_huge else "finite and not negative"
        raise InvalidInput(f"{name} must be {range_of_it}, got {values[where]} at index {place}.")
    return values


def check_ranking(ranking: ArrayLike, n_items: int, name: str = "ranking") -> IntArray:
    """Return rankings as integers, or raise unless each row is a permutation of the items."""
    try:
        given = np.asarray(ranking)
        with np.errstate(invalid="ignore"):  # what is no whole number is named below
            items = np.ascontiguousarray(given.real, dtype=np.int64)
        whole = bool(np.all(items == given))
    except (TypeError, ValueError, OverflowError):
        raise InvalidInput(f"{name} must be a list of item indices.") from None
    fits = given.ndim >= 1 and given.shape[-1] == n_items
    if not (whole and fits and bool((np.sort(items, axis=-1) == np.arange(n_items)).all())):
        raise InvalidInput(
            f"{name} must hold each of the items 0 to {n_items - 1} exactly once, got "
            f"{_what_is_wrong(given, n_items)}."
        )
    return items


def _what_is_wrong(ranking: NDArray[Any], n_items: int) -> str:
    """Return why the first ranking that is not a permutation of the items is none."""
    if ranking.ndim == 0:
        return f"{ranking.item()!r}"
    if ranking.shape[-1] != n_items:
        return f"{ranking.shape[-1]} item{'s' * (ranking.shape[-1] != 1)}"
    rows = ranking.reshape(-1, n_items)
    row = next(row for row in range(len(rows)) if set(rows[row].tolist()) != set(range(n_items)))
    where = "" if ranking.ndim == 1 else f" in ranking {row}"
    found = Counter(rows[row].tolist())
    odd = next((item for item in found if item not in range(n_items)), None)
    if odd is not None:
        return f"{odd!r}{where}, which is no item"
    repeated = next(item for item, times in found.items() if times > 1)
    absent = next(item for item in range(n_items) if item not in found)
    times = "twice" if found[repeated] == 2 else f"{found[repeated]} times"
    return f"item {repeated} {times} and no item {absent}{where}"
