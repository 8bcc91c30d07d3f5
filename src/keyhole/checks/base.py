"""What the checks share."""

from typing import Any

import numpy as np

from keyhole.errors import IntArray

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
    return set(one) == set(other) and all(
        np.array_equal(one[key], other[key], equal_nan=True) for key in one
    )


def a_relabelling(n_items: int) -> IntArray:
    """Return a relabelling without fixed points."""
    return np.roll(np.arange(n_items), 1)
