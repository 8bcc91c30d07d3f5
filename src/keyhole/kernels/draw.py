"""Counter-based random numbers: a draw is a pure function of where it is made.

``uniform(draw, use, item)`` depends on (seed, stream, round, use, item) and on
nothing else, so no generator state exists anywhere: replay, delay and
parallelism need no care. Within one (round, use) the words over the items are a
SplitMix64 sequence; where it starts is a hash of everything else.

Notes
-----
SplitMix64 (Steele, Lea & Flood 2014) with Stafford's variant-13 finaliser. It
vectorises: a uniform costs about a tenth of a Philox one. ``bench/battery.py``
feeds the words in the order in which games use them to dieharder; docs/draws.md
has the outcome.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from numba.extending import overload

from keyhole.kernels.compiled import kernel

MAX_USE = 2**16

# One stream per role and run, so that every ranker meets the same users.
RANKER_STREAM, WORLD_STREAM, REVEAL_STREAM = 0, 1, 2
_N_ROLES = 4

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)
_UNIT = 2.0**-52


class Draw(NamedTuple):
    """Where a draw is made."""

    seed: int
    stream: int
    round: int


class RelabelledDraw(NamedTuple):
    """A draw in which item ``i`` receives the numbers of item ``labels[i]``.

    Rankers are tested with it: relabel the items and the draws, and the rankings
    must come out relabelled.
    """

    seed: int
    stream: int
    round: int
    labels: Any


@kernel
def stream_of(role: int, run: int) -> int:
    """Return the stream of a role (ranker, world or reveal) in a run."""
    return run * _N_ROLES + role


def _label(draw: Any, item: int) -> int:
    return int(draw.labels[item]) if isinstance(draw, RelabelledDraw) else item


def _own_label(draw: Any, item: Any) -> Any:
    return item


def _given_label(draw: Any, item: Any) -> Any:
    return draw.labels[item]


@overload(_label, inline="always")
def _label_by_type(draw: Any, item: Any) -> Any:
    # Chosen when a kernel is compiled for the type of its draw: games pay nothing for it.
    relabelled = getattr(draw, "instance_class", None) is RelabelledDraw
    return _given_label if relabelled else _own_label


@kernel
def mix(word: Any) -> Any:
    """Return the SplitMix64 finaliser of a 64-bit word."""
    word = (word ^ (word >> np.uint64(30))) * _MIX_1
    word = (word ^ (word >> np.uint64(27))) * _MIX_2
    return word ^ (word >> np.uint64(31))


@kernel
def start(draw: Any, round: int, use: int) -> Any:
    """Return the word at which the sequence of one (round, use) starts."""
    key = mix(mix(np.uint64(draw.seed)) + np.uint64(draw.stream) * _GOLDEN)
    counter = np.uint64(round) * np.uint64(MAX_USE) + np.uint64(use)
    return mix(key + counter * _GOLDEN)


@kernel
def word(begin: Any, index: int) -> Any:
    """Return word ``index`` of the sequence that starts at ``begin``."""
    return mix(begin + (np.uint64(index) + np.uint64(1)) * _GOLDEN)


@kernel
def to_unit(bits: Any) -> float:
    """Return a number strictly inside (0, 1), so that its logarithm is finite."""
    return (float(np.int64(bits >> np.uint64(12))) + 0.5) * _UNIT


@kernel
def scalar(draw: Any, round: int, use: int, index: int) -> float:
    """Return a uniform number that belongs to no item, of a round that may be another one."""
    return to_unit(word(start(draw, round, use), index))


@kernel
def uniform(draw: Any, use: int, item: int) -> float:
    """Return the uniform number of one item."""
    return to_unit(word(start(draw, draw.round, use), _label(draw, item)))


@kernel
def uniforms_of(draw: Any, round: int, use: int, out: Any) -> None:
    """Fill ``out[i]`` with the uniform number of item ``i`` in a round that may be another one."""
    begin = start(draw, round, use)
    for item in range(out.shape[0]):
        out[item] = to_unit(word(begin, _label(draw, item)))


@kernel
def uniforms(draw: Any, use: int, out: Any) -> None:
    """Fill ``out[i]`` with the uniform number of item ``i``."""
    uniforms_of(draw, draw.round, use, out)


@kernel
def start_of_item(draw: Any, use: int, item: int, n_words: int) -> Any:
    """Return the word at which the sequence of one item starts, which needs ``n_words``."""
    first = np.uint64(_label(draw, item)) * np.uint64(n_words)
    return start(draw, draw.round, use) + first * _GOLDEN


@kernel
def shuffled(draw: Any, round: int, use: int, index: int, length: int) -> int:
    """Return where ``index`` goes in a pseudo-random permutation of ``length`` places.

    A Feistel network of four rounds over the next power of four, walked until it lands inside:
    any place of a shuffle in constant time and memory.
    """
    half = 1
    while (1 << (2 * half)) < length:
        half += 1
    mask = (1 << half) - 1
    begin = start(draw, round, use)
    place = index
    while True:
        left, right = place >> half, place & mask
        for step in range(4):
            left, right = right, left ^ (int(word(begin, right * 4 + step)) & mask)
        place = (left << half) | right
        if place < length:
            return place


@kernel
def gumbels(draw: Any, use: int, out: Any) -> None:
    """Fill ``out[i]`` with the standard Gumbel number of item ``i``."""
    uniforms(draw, use, out)
    for item in range(out.shape[0]):
        out[item] = -math.log(-math.log(out[item]))


@kernel
def normal_from(draw: Any, begin: Any, item: int) -> float:
    """Return the standard normal number of one item in the sequence that starts at ``begin``.

    Box-Muller, of which the other number is not used.
    """
    index = 2 * _label(draw, item)
    radius = math.sqrt(-2.0 * math.log(to_unit(word(begin, index))))
    return radius * math.cos(2.0 * math.pi * to_unit(word(begin, index + 1)))


@kernel
def normals(draw: Any, use: int, out: Any) -> None:
    """Fill ``out[i]`` with the standard normal number of item ``i``."""
    begin = start(draw, draw.round, use)
    for item in range(out.shape[0]):
        out[item] = normal_from(draw, begin, item)
