"""How much memory input may claim, and how that is raised."""

import os
import re
from typing import Any

from keyhole.base.errors import InvalidInput, check_integer

VARIABLE = "KEYHOLE_MEMORY_LIMIT"
"""The environment variable that sets the limit: a number of bytes, or such as 8G or 500M."""

_UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
_LARGEST_INFLATION = 200
_ALWAYS_ALLOWED = 64 * 2**20

_BYTES_PER_ITEM = 256
"""What a game needs for each item of its list: state, weights, scratch memory, some 30 numbers."""


def _chosen_limit() -> int | None:
    """Return the limit that the user has set, if any."""
    text = os.environ.get(VARIABLE, "").strip()
    if not text:
        return None
    match = re.fullmatch(r"(\d{1,15})([KMGT]?)i?B?", text, re.IGNORECASE)
    if match is None or int(match[1]) == 0:
        raise InvalidInput(
            f"{VARIABLE} must be a number of bytes, or such as 500M or 8G, got {text!r}."
        )
    return int(match[1]) * _UNITS[match[2].upper()]


def _memory_of_this_machine() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def memory_limit() -> int:
    """Return the most bytes that one input may take: half of the memory, unless set."""
    return _chosen_limit() or _memory_of_this_machine() // 2


def inflation_limit(n_compressed: int) -> int:
    """Return the most bytes that a compressed file may inflate to.

    Text shrinks to a twentieth or less, rarely to a two-hundredth; what inflates to more was made
    to fill a memory, or needs the limit to be set.
    """
    return _chosen_limit() or min(
        memory_limit(), _ALWAYS_ALLOWED + _LARGEST_INFLATION * n_compressed
    )


def size_in_words(n_bytes: float) -> str:
    """Return a number of bytes as people read it.

    Examples
    --------
    >>> size_in_words(13.2 * 2**30), size_in_words(700)
    ('13.2 GiB', '700 bytes')
    """
    for unit, size in (("GiB", 2**30), ("MiB", 2**20)):
        if n_bytes >= size:
            return f"{n_bytes / size:.1f} {unit}"
    return f"{n_bytes:.0f} bytes"


def check_memory(n_bytes: float, what: str, limit: int | None = None) -> None:
    """Raise unless ``what`` fits the limit (default: that of one input).

    Examples
    --------
    >>> check_memory(2.0**60, "--runs 10000000000")
    Traceback (most recent call last):
    ...
    keyhole.base.errors.InvalidInput: --runs 10000000000 would take 1073741824.0 GiB, more than \
the limit of ... GiB: KEYHOLE_MEMORY_LIMIT raises it.
    """
    allowed = memory_limit() if limit is None else limit
    if n_bytes > allowed:
        raise InvalidInput(
            f"{what} would take {size_in_words(n_bytes)}, more than the limit of "
            f"{size_in_words(allowed)}: {VARIABLE} raises it."
        )


def check_length(value: Any, name: str, *, at_least: int = 1, width: int = 0) -> int:
    """Return the length of a list, or of something that is kept for each item, or raise.

    ``width`` is how many numbers each item has besides what every game needs.

    Examples
    --------
    >>> check_length(10**15, "`n_items`")
    Traceback (most recent call last):
    ...
    keyhole.base.errors.InvalidInput: `n_items` of 1000000000000000 would take 238418579.1 GiB, \
more than the limit of ... GiB: KEYHOLE_MEMORY_LIMIT raises it.
    """
    length = check_integer(value, name, at_least=at_least)
    check_memory(float(length) * (_BYTES_PER_ITEM + 8.0 * width), f"{name} of {length}")
    return length
