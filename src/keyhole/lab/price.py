"""The price of the keyhole: how many times the regret of who sees all one has who sees less."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from keyhole.base.errors import FloatArray
from keyhole.lab.paired import student_quantile


@dataclass(frozen=True)
class Price:
    """How many times as much one loses as another that sees all, and how much more per round.

    ``ratio`` is None where the regret of the other is not above 0, and ``interval`` also where that
    is not sure: they would say nothing.
    """

    over: str
    more: float
    ratio: float | None
    interval: tuple[float, float] | None

    def __str__(self) -> str:
        if self.ratio is None:
            return "no ratio"
        if self.interval is None:
            return f"{self.ratio:.2f}"
        return f"{self.ratio:.2f} ({self.interval[0]:.2f} to {self.interval[1]:.2f})"


def price_over(
    regrets: FloatArray, references: Mapping[str, FloatArray], outside: float
) -> Price | None:
    """Return the price over the reference of least regret, or None where regret is not known.

    Run i of all had the same users. The interval misses the ratio with the probability
    ``outside``, which must be small enough to be shared by all references if it is to hold for
    whichever of them is best.

    Examples
    --------
    >>> import numpy as np
    >>> price = price_over(np.array([3.0, 4.0, 5.0]), {"a": np.array([1.4, 2.0, 2.6])}, 0.05)
    >>> price.over, price.ratio, [round(end, 2) for end in price.interval]
    ('a', 2.0, [1.86, 2.98])
    """
    means = {name: float(values.mean()) for name, values in references.items()}
    if not means or not np.isfinite([regrets.mean(), *means.values()]).all():
        return None
    best = min(means, key=lambda name: means[name])
    whole, own = references[best], float(regrets.mean())
    ratio = own / means[best] if means[best] > 0.0 else None
    interval = ratio_interval(regrets, whole, outside) if ratio is not None else None
    return Price(best, own - means[best], ratio, interval)


def ratio_interval(
    part: FloatArray, whole: FloatArray, outside: float
) -> tuple[float, float] | None:
    """Return the interval of Fieller for the ratio of two means over paired runs.

    It has all ratios q for which the mean of part - q whole is not told apart from 0 by Student's
    test. There is none that is bounded where the mean of ``whole`` is not told apart from 0.
    """
    n_runs = len(part)
    if n_runs < 2:
        return None
    a, b = float(part.mean()), float(whole.mean())
    reach = student_quantile(n_runs - 1, outside) ** 2 / n_runs
    (of_part, both), (_, of_whole) = reach * np.cov(part, whole)
    square, middle = b * b - of_whole, a * b - both
    if square <= 0.0:
        return None
    width = math.sqrt(max(middle * middle - square * (a * a - of_part), 0.0))
    return float((middle - width) / square), float((middle + width) / square)
