"""What the checks share."""

from typing import Any

import numpy as np

from keyhole.base.errors import IntArray

SEED = 11


def require(holds: bool, sentence: str) -> None:
    """Raise a sentence unless something holds."""
    if not holds:
        raise AssertionError(sentence)


def name_of(thing: object) -> str:
    """Return the name of a thing's class."""
    return type(thing).__name__


def same(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Return whether two mappings of arrays are equal to the last bit."""
    return set(one) == set(other) and all(_equal(one[name], other[name]) for name in one)


def _equal(one: Any, other: Any) -> bool:
    holds_nan = np.asarray(one).dtype.kind == "f"
    return bool(np.array_equal(one, other, equal_nan=holds_nan))


def is_ranking(ranking: IntArray, n_items: int) -> bool:
    """Return whether a list holds each item once."""
    return bool(np.array_equal(np.sort(ranking), np.arange(n_items)))


def a_relabelling(n_items: int) -> IntArray:
    """Return a relabelling without fixed points."""
    return np.roll(np.arange(n_items), 1)
