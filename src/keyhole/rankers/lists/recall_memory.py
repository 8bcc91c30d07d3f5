"""What is remembered of documents: a table of fixed size, which forgets what was listed long ago.

A document is known by a hash of its row of features, or of the one column that holds its id. The
hash gives it a set of eight places. Where all of them are taken, the document that was listed
longest ago is forgotten.
"""

from typing import Any, NamedTuple

import numpy as np

from keyhole.base.errors import InvalidInput
from keyhole.kernels.compiled import kernel
from keyhole.kernels.draw import mix

PLACES = 8
"""Places of a set, whose keys fill one line of a cache."""
SEEN, LISTED, LAST = 0, 1, 2
"""Of counts: how often a relevance was seen and a list held it, and the last list that did."""
MEAN, WEIGHT, MOMENT, PRIOR = 0, 1, 2, 3
"""Of values: mean relevance, what the weights have learnt of it, and its score by features."""
_KEY_BITS = np.uint64(2**47 - 1)
_HALF = np.uint64(32)
_ONE = np.uint64(1)


class Memory(NamedTuple):
    """The table, place by place: keys (0 where nothing is), counts and values."""

    keys: Any
    counts: Any
    values: Any


def new_memory(capacity: int) -> Memory:
    """Return a table in which nothing is remembered."""
    n_places = -(-capacity // PLACES) * PLACES
    return Memory(
        np.zeros(n_places, np.int64), np.zeros((n_places, 3), np.int64), np.zeros((n_places, 4))
    )


def multipliers(n_features: int) -> Any:
    """Return an odd number for each column, by which a hash tells columns apart."""
    numbers = np.random.default_rng(2**31 - 1).integers(2**63, size=n_features, dtype=np.uint64)
    return 2 * numbers + np.uint64(1)


@kernel
def hash_row(numbers: Any, column: int, factors: Any, row: Any, bits: Any) -> Any:
    """Return the hash of a document; ``bits`` are those of the numbers in ``row``."""
    for index in range(factors.shape[0]):
        row[index] = numbers[index] + 0.0  # there is but one zero
    if column >= 0:
        return mix((bits[column] ^ (bits[column] >> _HALF)) * factors[column])
    total = np.uint64(0)
    for index in range(factors.shape[0]):
        total += (bits[index] ^ (bits[index] >> _HALF)) * factors[index]
    return mix(total)


@kernel
def key_of(hashed: Any) -> int:
    """Return the key of a document, which is never 0."""
    return int(np.int64((hashed & _KEY_BITS) | _ONE))


@kernel
def find(memory: Any, hashed: Any) -> int:
    """Return the place of a document, or -1 if it is not remembered."""
    key, first = key_of(hashed), _first_place(memory, hashed)
    for place in range(first, first + PLACES):
        if memory.keys[place] == key:
            return place
    return -1


@kernel
def _first_place(memory: Any, hashed: Any) -> int:
    n_sets = np.uint64(memory.keys.shape[0] // PLACES)
    return int(np.int64(((hashed >> _HALF) * n_sets) >> _HALF)) * PLACES


@kernel
def find_or_forget(memory: Any, hashed: Any) -> int:
    """Return the place of a document, which another one may have to leave."""
    place = find(memory, hashed)
    if place >= 0:
        return place
    first = _first_place(memory, hashed)
    place = first
    for other in range(first, first + PLACES):
        if memory.counts[other, LAST] < memory.counts[place, LAST]:
            place = other  # a place where nothing is was last listed at 0
    memory.keys[place] = key_of(hashed)
    for index in range(3):
        memory.counts[place, index] = 0
    for index in range(4):
        memory.values[place, index] = 0.0
    return place


def check_memory_of(arrays: Any) -> None:
    """Raise unless weights of what was learnt are those of a memory."""
    weights = arrays["values"][:, WEIGHT]
    if weights.min() < 0.0:
        raise InvalidInput(
            f"`values` of the state must have weights of at least 0, got {weights.min()}."
        )
