"""Which of several is best, judged on the same users: paired intervals that all hold at once."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from keyhole.base.errors import FloatArray

BEST, AS_GOOD, WORSE, UNKNOWN = "best", "not told apart", "worse", "one run tells nothing"
_HALVINGS = 60


@dataclass(frozen=True)
class Gap:
    """How much more one costs than the best, with an interval, and what follows from it."""

    mean: float
    low: float
    high: float
    standing: str


@dataclass(frozen=True)
class PairedVerdict:
    """The one of the least mean cost, and how far the others are from it, in order of their means.

    All ``n_pairs`` intervals between two of them hold at once with the ``confidence``, so that it
    does not matter which of them the data singled out.
    """

    best: str
    gaps: dict[str, Gap]
    confidence: float
    n_pairs: int
    n_runs: int

    def named(self, standing: str) -> list[str]:
        """Return those of some standing, in order."""
        return [name for name, gap in self.gaps.items() if gap.standing == standing]


def judge_pairs(costs: Mapping[str, FloatArray], confidence: float = 0.95) -> PairedVerdict:
    """Return who costs least, given what each cost in each run; run i of all had the same users.

    Intervals are Student's, of the mean difference over the runs, widened by Bonferroni's
    inequality to hold for all pairs at once.

    Examples
    --------
    >>> import numpy as np
    >>> costs = {"a": np.array([3.0, 4.0, 5.0]), "b": np.array([1.0, 2.1, 3.0])}
    >>> verdict = judge_pairs(costs)
    >>> verdict.best, verdict.gaps["a"].standing, round(verdict.gaps["a"].mean, 3)
    ('b', 'worse', 1.967)
    """
    order = sorted(costs, key=lambda name: float(costs[name].mean()))
    best, n_runs = order[0], len(costs[order[0]])
    n_pairs = len(order) * (len(order) - 1) // 2
    gaps = {best: Gap(0.0, 0.0, 0.0, BEST)}
    for name in order[1:]:
        differences = costs[name] - costs[best]
        mean = float(differences.mean())
        if n_runs < 2:
            gaps[name] = Gap(mean, math.nan, math.nan, UNKNOWN)
            continue
        width = student_quantile(n_runs - 1, (1.0 - confidence) / n_pairs) * float(
            differences.std(ddof=1) / math.sqrt(n_runs)
        )
        low = mean - width
        gaps[name] = Gap(mean, low, mean + width, WORSE if low > 0.0 else AS_GOOD)
    return PairedVerdict(best, gaps, confidence, n_pairs, n_runs)


def student_quantile(n_free: int, outside: float) -> float:
    """Return what a Student number of some degrees of freedom exceeds, in size, with a probability.

    Notes
    -----
    The distribution function of whole degrees of freedom is a finite sum (Abramowitz & Stegun,
    26.7.3 and 26.7.4); it is inverted by halving.

    Examples
    --------
    >>> round(student_quantile(9, 0.05), 4), round(student_quantile(10, 0.05), 4)
    (2.2622, 2.2281)
    """
    low, high = 0.0, math.pi / 2.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2.0
        low, high = (middle, high) if _inside(middle, n_free) < 1.0 - outside else (low, middle)
    return math.sqrt(n_free) * math.tan(low)


def _inside(angle: float, n_free: int) -> float:
    """Return P(|t| <= sqrt(n_free) tan(angle))."""
    is_odd = n_free % 2 == 1
    cosine = math.cos(angle)
    term, total = (cosine, 0.0) if is_odd else (1.0, 0.0)
    first = 1 if is_odd else 0
    for power in range(first, n_free - 1, 2):
        total += term
        term *= cosine**2 * (power + 1) / (power + 2)
    if is_odd:
        return 2.0 / math.pi * (angle + math.sin(angle) * total)
    return math.sin(angle) * total
