"""Draws of other laws than the uniform one, made of the counter-based words of one place.

A gamma number is found by rejection, so how many words it takes is random. Each item has room for
more of them than it can need, and its numbers remain a function of where they are drawn.
"""

import math
from typing import Any

from keyhole.kernels.compiled import kernel
from keyhole.kernels.draw import scalar, start_of_item, to_unit, word

_WORDS = 3
_ATTEMPTS = 16
_ROOM = _WORDS * _ATTEMPTS


@kernel
def _gamma(begin: Any, first: int, shape: float) -> float:
    """Return a gamma number of a shape of at least 1, made of words from ``first`` on.

    Marsaglia & Tsang (2000). An attempt fails with probability of less than 1/20; after 16 that
    failed, which nobody will see, the number is the mode of a proposal.
    """
    middle = shape - 1.0 / 3.0
    width = 1.0 / math.sqrt(9.0 * middle)
    for attempt in range(_ATTEMPTS):
        at = first + _WORDS * attempt
        radius = math.sqrt(-2.0 * math.log(to_unit(word(begin, at))))
        normal = radius * math.cos(2.0 * math.pi * to_unit(word(begin, at + 1)))
        root = 1.0 + width * normal
        if root > 0.0:
            cube = root * root * root
            limit = 0.5 * normal * normal + middle * (1.0 - cube + math.log(cube))
            if math.log(to_unit(word(begin, at + 2))) < limit:
                return middle * cube
    return middle


@kernel
def beta(draw: Any, use: int, item: int, successes: float, failures: float) -> float:
    """Return the beta number of one item; both parameters are at least 1."""
    begin = start_of_item(draw, use, item, 2 * _ROOM)
    won = _gamma(begin, 0, successes)
    return won / (won + _gamma(begin, _ROOM, failures))


@kernel
def free_normals(draw: Any, use: int, out: Any) -> None:
    """Fill ``out`` with standard normal numbers that belong to no item (Box-Muller)."""
    for index in range(out.shape[0]):
        radius = math.sqrt(-2.0 * math.log(scalar(draw, draw.round, use, 2 * index)))
        angle = 2.0 * math.pi * scalar(draw, draw.round, use, 2 * index + 1)
        out[index] = radius * math.cos(angle)
