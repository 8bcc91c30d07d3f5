"""The safe half of a keystone: a perturbed leader that holds its list, and how far it is trusted.

Sums of importance-weighted estimates are sorted with Gumbel noise at the start of each block of
rounds. The rate falls with the variance of what was estimated, so that no horizon is needed.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from keyhole.base.errors import FloatArray
from keyhole.kernels.compiled import kernel, rare_kernel
from keyhole.kernels.draw import uniforms_of
from keyhole.kernels.sorting import sort_descending

BLOCK = 16
FLOOR_RATE = 0.1
_NOISE = 5
_PRIOR = 0.01
_LOGIT = math.log(_PRIOR / (1.0 - _PRIOR))
_LOG_PRIOR = math.log(1.0 / _PRIOR)
_LARGEST_LOGIT = 40.0
VARIANCE, LEAD, LEAD_SQUARES, ALARMS = 0, 1, 2, 3
"""Where the numbers of a state are: the variance that the rate falls with, by how much the safe
list leads the audited one, the squares of that, and how often a change was noticed."""


class SafeParams(NamedTuple):
    """Constants of the theorem: c, a, kappa and V0."""

    penalty: float
    weight: float
    drift: float
    first: float


def safe_params(weights: FloatArray, k: int) -> SafeParams:
    """Return the constants for weights of positions that fall to 0, of which k are seen."""
    n_items = len(weights)
    spread, total = float(weights[0]), float(weights.sum())
    positions = np.arange(1, n_items + 1)
    weight = spread / math.e / (2.0 if k == 1 else 1.0)
    slow = (BLOCK - 1) * n_items * spread / (2.0 * math.e)
    return SafeParams(
        float((weights * np.log((n_items + 1.0) / positions)).sum()),
        weight,
        (BLOCK + 1) * total / 4.0 + slow,
        max(weight * (n_items / FLOOR_RATE) ** 2, 1e-9),
    )


@rare_kernel
def draw_safe_list(params: Any, state: Any, draw: Any, block: int, out: Any, work: Any) -> None:
    """Sort the estimated totals with the noise of a block."""
    rate = math.sqrt(params.penalty / (params.first + state.numbers[VARIANCE]))
    uniforms_of(draw, block * BLOCK, _NOISE, work.keys)
    for item in range(out.shape[0]):
        work.keys[item] = rate * state.estimates[item] - math.log(-math.log(work.keys[item]))
    sort_descending(work.keys, out, work.sort)


@kernel
def trust_in_safe(numbers: Any) -> float:
    """Return how likely the safe list is to be shown: as likely as it has earned."""
    lead = numbers[LEAD] * math.sqrt(_LOG_PRIOR / (1.0 + numbers[LEAD_SQUARES]))
    logit = min(max(_LOGIT + lead, -_LARGEST_LOGIT), _LARGEST_LOGIT)
    return 1.0 / (1.0 + math.exp(-logit))


@kernel
def chance_to_be_seen(place: int, k: int, n_items: int, floor: float) -> float:
    """Return how likely the item at some place of a list is to be seen."""
    if place < k - 1:
        return 1.0
    return 1.0 - floor * (1.0 - k / n_items) if place == k - 1 else floor / n_items
