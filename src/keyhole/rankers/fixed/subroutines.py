"""Full-information learners that propose a ranking from accumulated scores (A5, A8).

Each is a law of rankings given rate * scores. Two rankers use them: the ones that
see everything, and RTop-kF, which feeds them block estimates.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

import numpy as np

from keyhole.bounds import choices, ftpl
from keyhole.kernels.compiled import kernel, rare_kernel
from keyhole.kernels.draw import gumbels, uniform, uniforms
from keyhole.kernels.sorting import SortWork, sort_descending, sort_work

_LARGEST_EXPONENT = 700.0

# Uses of the ranker's draws; other files of the package take numbers below NOISE.
NOISE, COINS = 16, 17


class ProposalWork(NamedTuple):
    """Scratch memory of the samplers; no result depends on its content."""

    keys: Any
    stack: Any
    sort: SortWork


def proposal_work(n_items: int) -> ProposalWork:
    """Allocate the scratch memory for lists of ``n_items``."""
    return ProposalWork(
        np.empty(n_items, np.float64), np.empty((n_items + 1, 3), np.int64), sort_work(n_items)
    )


Proposal = Annotated[ProposalWork, proposal_work]


@rare_kernel
def quicksort(rate: float, scores: Any, draw: Any, out: Any, work: ProposalWork) -> None:
    """Sort with a coin for each comparison, item by pivot: Algorithm 2 of [Ai].

    The pivot of a part is its item of least priority, hence uniform.
    """
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
def _sort_with_noise(rate: float, scores: Any, sign: float, out: Any, work: ProposalWork) -> None:
    """Sort ``rate * scores`` plus or minus the noise that the keys hold."""
    keys = work.keys
    for item in range(out.shape[0]):
        keys[item] = rate * scores[item] + sign * keys[item]
    sort_descending(keys, out, work.sort)


@kernel
def perturbed_leader(rate: float, scores: Any, draw: Any, out: Any, work: ProposalWork) -> None:
    """Sort scores plus uniform noise."""
    uniforms(draw, NOISE, work.keys)
    _sort_with_noise(rate, scores, 1.0, out, work)


@kernel
def plackett_luce(rate: float, scores: Any, draw: Any, out: Any, work: ProposalWork) -> None:
    """Draw items one by one in proportion to e^w, which is to sort w plus Gumbel noise."""
    gumbels(draw, NOISE, work.keys)
    _sort_with_noise(rate, scores, 1.0, out, work)


@kernel
def reverse_plackett_luce(
    rate: float, scores: Any, draw: Any, out: Any, work: ProposalWork
) -> None:
    """Reverse a Plackett-Luce draw for -w, which is to sort w less Gumbel noise."""
    gumbels(draw, NOISE, work.keys)
    _sort_with_noise(rate, scores, -1.0, out, work)


@dataclass(frozen=True)
class TunedFor:
    """What the theory's tuning depends on."""

    n_items: int
    k: int
    n_cells: int
    constants: ftpl.FTPLConstants
    largest_gain: float
    spread: float


def _ftpl_rate(facts: TunedFor, n_updates: float) -> float:
    return ftpl.best_epsilon(facts.constants, n_updates)


def _ftpl_blocks(facts: TunedFor, rounds: float) -> float:
    return ftpl.best_n_blocks(facts.constants, facts.n_cells, rounds)


def _choice_rate(facts: TunedFor, n_updates: float) -> float:
    return choices.best_rate(facts.n_items, n_updates, facts.spread) / facts.largest_gain


def _choice_blocks(facts: TunedFor, rounds: float) -> float:
    return choices.best_n_blocks(facts.n_items, facts.k, facts.n_cells, rounds, facts.spread)


@dataclass(frozen=True)
class Subroutine:
    """A sampler with the tuning its theory gives.

    ``propose(rate, scores, draw, out, work)`` draws a ranking from its law given ``rate * scores``;
    ``rate`` is the best factor of the scores for some number of updates, ``n_blocks`` the best
    number of blocks for some number of rounds, before rounding.
    """

    propose: Callable[..., None]
    summary: str
    rate: Callable[[TunedFor, float], float] = _choice_rate
    n_blocks: Callable[[TunedFor, float], float] = _choice_blocks


SUBROUTINES: dict[str, Subroutine] = {
    "ftpl": Subroutine(
        perturbed_leader,
        "follow the perturbed leader: sort scores plus uniform noise",
        _ftpl_rate,
        _ftpl_blocks,
    ),
    "plackett-luce": Subroutine(
        plackett_luce, "OnlineRank, items drawn one by one in proportion to e^w"
    ),
    "quicksort": Subroutine(quicksort, "OnlineRank, QuickSort with a coin for each comparison"),
    "reverse-plackett-luce": Subroutine(
        reverse_plackett_luce, "OnlineRank, items drawn from the bottom up"
    ),
}
