"""Which item is worth a look: the value of knowing it better against the price of showing it."""

import math
from functools import cache
from typing import Any

import numpy as np

from keyhole.kernels.compiled import kernel, rare_kernel
from keyhole.kernels.draw import uniforms_of
from keyhole.kernels.sorting import sort_descending
from keyhole.rankers.fixed.audited import regime_length
from keyhole.rankers.fixed.safe import ALARMS

LOOKS = 2
_SWEEP = 1
_STEPS = 64
_FURTHEST = 4.0
_NEIGHBOURS = 9.0
_LEAST_SHARE = 0.1
_ALIKE = 30.0
_FUTURE = 0.3
"""The crowd is taken to stay as it is for this share of the rounds that it has been so: items whose
means are T^(-1/3) apart are told apart by T^(2/3) looks, which no smaller power of T would pay."""


@cache
def value_table() -> Any:
    """Return psi(z) = phi(z) - z (1 - Phi(z)) at z = 0, 1/64, ...: what a guess may gain by."""
    z = np.arange(0.0, _FURTHEST + 2.0 / _STEPS, 1.0 / _STEPS)
    tails = np.array([0.5 * math.erfc(each / math.sqrt(2.0)) for each in z])
    return np.exp(-0.5 * z * z) / math.sqrt(2.0 * math.pi) - z * tails


@kernel
def _shrinkage(memory: Any, order: Any, place: int) -> tuple[float, int, int]:
    """Return which share of the differences among an item's neighbours in the order is real.

    And the places of the first and the last neighbour. The more of them there are, the surer it is
    that they are alike if they look alike.
    """
    item = order[place]
    mean, variance = memory.mean[item], memory.spread[item] ** 2
    sum_of_gaps = sum_of_squares = 0.0
    variances, count = variance, 1.0
    first = last = place
    for step in (-1, 1):
        other = place + step
        while 0 <= other < order.shape[0]:
            theirs = memory.spread[order[other]] ** 2
            gap = memory.mean[order[other]] - mean
            if gap * gap > _NEIGHBOURS * (variance + theirs):
                break
            sum_of_gaps += gap
            sum_of_squares += gap * gap
            variances += theirs
            count += 1.0
            first, last = min(first, other), max(last, other)
            other += step
    if count == 1.0:
        return 1.0, first, last
    noise = variances / count
    between = (sum_of_squares - sum_of_gaps * sum_of_gaps / count) / (count - 1.0) - noise
    real = max(between, min(_LEAST_SHARE, _ALIKE / (count * count)) * noise)
    return real / (real + noise), first, last


@kernel
def _value(memory: Any, order: Any, place: int, weights: Any, table: Any) -> float:
    """Return what a round may gain by knowing an item: its chances to belong elsewhere.

    Only differences from its neighbours are shrunk: an item that is none of them is as far as it
    seems.
    """
    item = order[place]
    share, first, last = _shrinkage(memory, order, place)
    mean, root, furthest = memory.mean[item], math.sqrt(share), _STEPS * _FURTHEST
    scale = _STEPS / memory.spread[item]
    near = far = 0.0
    for other in range(place - 1, -1, -1):
        distance = scale * (memory.mean[order[other]] - mean)
        is_near = other >= first
        if is_near:
            distance *= root
        if not distance <= furthest:
            break
        gain = (weights[other] - weights[other + 1]) * table[int(max(distance, 0.0))]
        if is_near:
            near += gain
        else:
            far += gain
    for other in range(place + 1, order.shape[0]):
        distance = scale * (mean - memory.mean[order[other]])
        is_near = other <= last
        if is_near:
            distance *= root
        if not distance <= furthest:
            break
        gain = (weights[other - 1] - weights[other]) * table[int(max(distance, 0.0))]
        if is_near:
            near += gain
        else:
            far += gain
    return (near * root + far) * memory.spread[item]


@kernel
def price_of_lift(memory: Any, order: Any, place: int, k: int, weights: Any) -> float:
    """Return what a round is expected to lose by an item that is lifted to position k."""
    price = -memory.mean[order[place]] * (weights[k - 1] - weights[place])
    for other in range(k - 1, place):
        price += (weights[other] - weights[other + 1]) * memory.mean[order[other]]
    return price


@kernel
def is_due(memory: Any, item: int) -> bool:
    """Return whether an item should be looked at whatever the price."""
    return memory.n[item] == 0.0 or memory.suspect[item] == 1


@kernel
def is_worth_its_price(
    params: Any, memory: Any, order: Any, place: int, round: int, pending: float
) -> bool:
    """Return whether the item at a place below k should be lifted there.

    What was seen of it, and what is ``pending``, lowers the value of one look more.
    """
    length = regime_length(round, memory.numbers[ALARMS])
    future = min(0.5 * length, max(6.5 * length ** (2.0 / 3.0), _FUTURE * length))
    price = price_of_lift(memory, order, place, params.k, params.weights)
    value = _value(memory, order, place, params.weights, params.table)
    return price * (memory.n[order[place]] + pending) < future * value


@rare_kernel
def _draw_sweep(draw: Any, sweep: int, work: Any) -> None:
    uniforms_of(draw, sweep, _SWEEP, work.keys)
    sort_descending(work.keys, work.sweep, work.sort)
    work.header[0], work.header[1], work.header[2] = draw.seed, draw.stream, sweep


@kernel
def next_look(draw: Any, look: int, work: Any) -> int:
    """Return the item of a look: all items once in each sweep, in random order."""
    n_items = work.sweep.shape[0]
    sweep, header = look // n_items, work.header
    if header[0] != draw.seed or header[1] != draw.stream or header[2] != sweep:
        _draw_sweep(draw, sweep, work)
    return work.sweep[look % n_items]
