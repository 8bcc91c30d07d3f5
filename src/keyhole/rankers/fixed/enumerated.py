"""What the rankers that keep a weight for each of the m! rankings share."""

import itertools
import math
from typing import Any, ClassVar, Self

import numpy as np

from keyhole.base.errors import IntArray, InvalidInput
from keyhole.contracts.measures import Measure
from keyhole.kernels.compiled import kernel, rare_kernel
from keyhole.kernels.draw import uniform
from keyhole.rankers.fixed.base import Arrays, FixedListRanker

LARGEST_LIST = 7
_MOST_LISTS = 50_000_000
"""Lists of grades times rankings that are judged to find the range of a measure: seconds."""


def all_rankings(n_items: int) -> IntArray:
    """Return every ranking of the items, in lexicographic order."""
    return np.array(list(itertools.permutations(range(n_items))), dtype=np.int64)


def grades_up_to(max_grade: float) -> list[float]:
    """Return 0, 1, ... and the top grade."""
    return sorted({*(float(grade) for grade in range(math.ceil(max_grade))), float(max_grade)})


def largest_range(measure: Measure, n_items: int, max_grade: float) -> float:
    """Return the most by which two rankings of one list can differ."""
    n_grades = math.ceil(max_grade) + 1
    if math.comb(n_grades + n_items - 1, n_items) * math.factorial(n_items) > _MOST_LISTS:
        raise InvalidInput(
            f"`max_grade` must be smaller for {n_items} items: all lists of grades are tried to "
            f"find the range of {measure.label}, got {max_grade:g}."
        )
    rankings = all_rankings(n_items)
    widest = 0.0
    for grades in itertools.combinations_with_replacement(grades_up_to(max_grade), n_items):
        values = measure.many(np.tile(grades, (len(rankings), 1)), rankings)
        widest = max(widest, float(np.ptp(values)))
    return widest if widest > 0.0 else 1.0


class EnumeratedRanker(FixedListRanker):
    """A ranker that keeps the total loss of every ranking, in ``losses``."""

    by_item: ClassVar[tuple[str, ...] | None] = ("losses",)

    def carried(
        self, arrays: Arrays, other: Self, where: IntArray, newcomers: float | None = None
    ) -> dict[str, Any]:
        """Give a ranking the mean loss of those that have the common items in the same order."""
        stay = set(where[where >= 0].tolist())
        losses: dict[tuple[int, ...], list[float]] = {}
        for ranking, loss in zip(self.params.rankings.tolist(), arrays["losses"], strict=True):
            losses.setdefault(tuple(item for item in ranking if item in stay), []).append(loss)
        means = {order: sum(given) / len(given) for order, given in losses.items()}
        there = [where[ranking] for ranking in other.params.rankings]
        carried = np.array([means[tuple(order[order >= 0].tolist())] for order in there])
        return {**{name: array.copy() for name, array in arrays.items()}, "losses": carried}


@rare_kernel
def exponential_weights(rate: float, losses: Any, out: Any) -> None:
    """Fill ``out`` with probabilities in proportion to exp(-rate * losses)."""
    least = losses[0]
    for action in range(losses.shape[0]):
        least = min(least, losses[action])
    total = 0.0
    for action in range(losses.shape[0]):
        out[action] = math.exp(-rate * (losses[action] - least))
        total += out[action]
    for action in range(losses.shape[0]):
        out[action] /= total


@kernel
def show_least_loss(params: Any, state: Any, features: Any, out: Any, work: Any) -> None:
    """Show the ranking whose loss so far is least: what exponential weights tend to."""
    least = 0
    for action in range(state.losses.shape[0]):
        if state.losses[action] < state.losses[least]:
            least = action
    for position in range(out.shape[0]):
        out[position] = params.rankings[least, position]


@rare_kernel
def sample_ranking(probabilities: Any, rankings: Any, draw: Any, use: int, out: Any) -> int:
    """Draw a ranking into ``out`` and return its index.

    Item by item from the top, each in proportion to the probability of the rankings that
    go on with it. All draws belong to items, so relabelling items commutes with sampling.
    """
    n_items = rankings.shape[1]
    first, size = 0, rankings.shape[0]
    for position in range(n_items):
        n_branches = n_items - position
        size //= n_branches
        best, chosen = -math.inf, first
        for branch in range(n_branches):
            begin = first + branch * size
            total = 0.0
            for action in range(begin, begin + size):
                total += probabilities[action]
            number = uniform(draw, use + position, rankings[begin, position])
            key = math.log(total) - math.log(-math.log(number)) if total > 0.0 else -math.inf
            if key > best:
                best, chosen = key, begin
        first = chosen
        out[position] = rankings[first, position]
    return first
