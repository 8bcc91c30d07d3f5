"""Full-information learners that propose a ranking from accumulated scores (A5, A8).

Each is a law of rankings given rate * scores. Two rankers use them: the ones that
see everything, and RTop-kF, which feeds them block estimates.
"""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from keyhole.bounds import choices, ftpl
from keyhole.kernels.compiled import kernel, rare_kernel
from keyhole.kernels.draw import gumbels, uniform, uniforms
from keyhole.kernels.sorting import SortWork, sort_descending, sort_work

FTPL, PLACKETT_LUCE, QUICKSORT, REVERSE_PLACKETT_LUCE = 0, 1, 2, 3

_LARGEST_EXPONENT = 700.0

# Uses of the ranker's draws; other files of the package take numbers below NOISE.
NOISE, COINS = 16, 17


class ProposalWork(NamedTuple):
    """Scratch memory of :func:`propose`; no result depends on its content."""

    keys: Any
    stack: Any
    sort: SortWork


def proposal_work(n_items: int) -> ProposalWork:
    """Allocate the scratch memory for lists of ``n_items``."""
    return ProposalWork(
        np.empty(n_items, np.float64), np.empty((n_items + 1, 3), np.int64), sort_work(n_items)
    )


@rare_kernel
def _quicksort(rate: float, scores: Any, draw: Any, out: Any, work: ProposalWork) -> None:
    """Algorithm 2 of [Ai]; the pivot of a part is its item of least priority, hence uniform."""
    priorities, stack, spare = work.keys, work.stack, work.sort.spare
    uniforms(draw, NOISE, priorities)
    for item in range(out.shape[0]):
        out[item] = item
    stack[0, 0], stack[0, 1], stack[0, 2] = 0, out.shape[0], 0
    n_parts = 1
    while n_parts > 0:
        n_parts -= 1
        low, high, depth = stack[n_parts, 0], stack[n_parts, 1], stack[n_parts, 2]
        if high - low < 2:
            continue
        pivot = out[low]
        for place in range(low + 1, high):
            if priorities[out[place]] < priorities[pivot]:
                pivot = out[place]
        n_left = n_right = 0
        for place in range(low, high):
            item = out[place]
            if item == pivot:
                continue
            behind = min(rate * (scores[pivot] - scores[item]), _LARGEST_EXPONENT)
            chance = 1.0 / (1.0 + math.exp(behind))
            if uniform(draw, COINS + depth, item) < chance:
                out[low + n_left] = item
                n_left += 1
            else:
                spare[n_right] = item
                n_right += 1
        middle = low + n_left
        out[middle] = pivot
        for place in range(n_right):
            out[middle + 1 + place] = spare[place]
        stack[n_parts, 0], stack[n_parts, 1], stack[n_parts, 2] = low, middle, depth + 1
        n_parts += 1
        stack[n_parts, 0], stack[n_parts, 1], stack[n_parts, 2] = middle + 1, high, depth + 1
        n_parts += 1


@kernel
def propose(
    sampler: int, rate: float, scores: Any, draw: Any, out: Any, work: ProposalWork
) -> None:
    """Draw a ranking from the law of a sampler given ``rate * scores``."""
    if sampler == QUICKSORT:
        _quicksort(rate, scores, draw, out, work)
        return
    keys = work.keys
    if sampler == FTPL:
        uniforms(draw, NOISE, keys)
    else:
        gumbels(draw, NOISE, keys)
    # Reversing a Plackett-Luce draw for -w is sorting w less Gumbel noise.
    sign = -1.0 if sampler == REVERSE_PLACKETT_LUCE else 1.0
    for item in range(out.shape[0]):
        keys[item] = rate * scores[item] + sign * keys[item]
    sort_descending(keys, out, work.sort)


@dataclass(frozen=True)
class Problem:
    """What the theory's tuning depends on."""

    n_items: int
    k: int
    n_cells: int
    constants: ftpl.Constants
    largest_gain: float
    spread: float


@dataclass(frozen=True)
class Subroutine:
    """A sampler with the tuning its theory gives."""

    sampler: int
    summary: str

    def rate(self, problem: Problem, n_updates: float) -> float:
        """Return the factor of the scores for ``n_updates`` updates."""
        if self.sampler == FTPL:
            return ftpl.best_epsilon(problem.constants, n_updates)
        rate = choices.best_rate(problem.n_items, n_updates, problem.spread)
        return rate / problem.largest_gain

    def n_blocks(self, problem: Problem, rounds: float) -> float:
        """Return the best number of blocks, before rounding."""
        if self.sampler == FTPL:
            return ftpl.best_n_blocks(problem.constants, problem.n_cells, rounds)
        return choices.best_n_blocks(
            problem.n_items, problem.k, problem.n_cells, rounds, problem.spread
        )


SUBROUTINES: dict[str, Subroutine] = {
    "ftpl": Subroutine(FTPL, "follow the perturbed leader: sort scores plus uniform noise"),
    "plackett-luce": Subroutine(
        PLACKETT_LUCE, "OnlineRank, items drawn one by one in proportion to e^w"
    ),
    "quicksort": Subroutine(QUICKSORT, "OnlineRank, QuickSort with a coin for each comparison"),
    "reverse-plackett-luce": Subroutine(
        REVERSE_PLACKETT_LUCE, "OnlineRank, items drawn from the bottom up"
    ),
}
