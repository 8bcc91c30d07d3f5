"""Which documents are worth a look: the value of knowing one better against the price of it."""

import math
from typing import Any

import numpy as np

from keyhole.kernels.compiled import kernel

CUTOFF = 10
"""Positions that count: the discounts are those of DCG@10."""
_STEPS = 64.0
_FURTHEST = 4.0
_LEAST_GAIN = 1e-4


def drops() -> Any:
    """Return by how much less each of the first ten positions counts than the one above it."""
    discounts = np.append(1.0 / np.log2(np.arange(2, CUTOFF + 2)), 0.0)
    return discounts[:-1] - discounts[1:]


@kernel
def _value(position: int, step: float, params: Any, ordered: Any) -> float:
    """Return what a list gains by one more look at a document: its chances to belong elsewhere.

    ``step`` is by how much its score is expected to move.
    """
    score, value = ordered[position], 0.0
    for other in range(min(position, CUTOFF) - 1, -1, -1):
        distance = (ordered[other] - score) / step
        if not distance <= _FURTHEST:
            break
        value += params.drops[other] * params.table[int(max(distance, 0.0) * _STEPS)]
    for other in range(position + 1, min(ordered.shape[0], CUTOFF + 1)):
        distance = (score - ordered[other]) / step
        if not distance <= _FURTHEST:
            break
        value += params.drops[other - 1] * params.table[int(max(distance, 0.0) * _STEPS)]
    return step * value


@kernel
def _price(position: int, top: int, params: Any, ordered: Any) -> float:
    """Return what a list is expected to lose by a document that is lifted to position ``top``."""
    price = 0.0
    for other in range(top, min(position, CUTOFF)):
        price += params.drops[other] * (ordered[other] - ordered[position])
    return price


@kernel
def choose_looks(params: Any, variances: Any, order: Any, work: Any) -> int:
    """Choose the positions, of k or below, whose documents are worth a look.

    They are left in ``chosen``, best first, and their number is returned. The future of a document
    is taken to be as long as its past: it will be listed as often as it was.
    """
    total, noise, lasting = variances
    n_items, k = order.shape[0], params.k
    ordered, values = work.ordered[:n_items], work.values[:n_items]
    for position in range(n_items):
        ordered[position] = work.scores[order[position]]
    last = ordered[min(n_items, CUTOFF) - 1]
    for position in range(k, n_items):
        item = order[position]
        seen = work.seen[item]
        less = noise / (seen * lasting + noise) - noise / ((seen + 1.0) * lasting + noise)
        step = math.sqrt(max(lasting * less, 0.0))
        values[position] = -1.0
        promising = step * step >= _LEAST_GAIN * total
        if promising and work.listed[item] > 0.0 and ordered[position] + _FURTHEST * step >= last:
            values[position] = work.listed[item] * _value(position, step, params, ordered)
    n_chosen = 0
    for top in range(k - 1, -1, -1):
        best, most = -1, 0.0
        for position in range(k, n_items):
            if values[position] >= 0.0:
                net = values[position] - _price(position, top, params, ordered)
                if net > most:
                    best, most = position, net
        if best < 0:
            break
        work.chosen[n_chosen] = best
        values[best] = -1.0
        n_chosen += 1
    return n_chosen


@kernel
def put_on_top(k: int, n_chosen: int, order: Any, out: Any, work: Any) -> None:
    """Fill ``out`` with ``order``, documents at chosen positions lifted to the end of the top."""
    for index in range(n_chosen):
        work.is_chosen[work.chosen[index]] = True
    place = 0
    for position in range(order.shape[0]):
        if place == k - n_chosen:
            for index in range(n_chosen):
                out[place + index] = order[work.chosen[index]]
            place += n_chosen
        if not work.is_chosen[position]:
            out[place] = order[position]
            place += 1
    for index in range(n_chosen):
        work.is_chosen[work.chosen[index]] = False
