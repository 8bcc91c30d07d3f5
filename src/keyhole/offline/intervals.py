"""Two-sided confidence intervals: half of what may go wrong on either side of a lower bound."""

import math
from dataclasses import dataclass
from typing import Any

from keyhole.base.errors import check_choice
from keyhole.offline.bounds import BOUNDS, Question, check_confidence, lower_bound
from keyhole.offline.estimators import Estimate


@dataclass(frozen=True)
class Interval:
    """An interval around an estimate; an end that nothing bounds is None, and ``why_not`` why."""

    name: str
    low: float | None
    high: float | None
    why_not: str = ""

    @property
    def ends(self) -> list[float | None]:
        """Both ends, as plain data."""
        return [self.low, self.high]


def interval(name: str, estimate: Estimate, confidence: float = 0.95, **options: Any) -> Interval:
    """Return a two-sided interval: either end is wrong with half of 1 - confidence.

    Parameters
    ----------
    name
        One of ``BOUNDS``. The upper end is the lower bound of the rows with their signs changed, so
        it holds where the lower bound holds; bounds that need a largest contribution for it take
        that of the estimate's range. No end is beyond what rewards can be worth in the mean.
    options
        Those of :func:`~keyhole.offline.bounds.lower_bound`.

    Notes
    -----
    What holds in the limit may be far from it where rewards are rare: at .3 % clicks and 2,000
    rows, half of them with weight 2, an interval of Student's at 95 % holds in 79.7 % of logs, its
    lower end alone in 99.6 %: logs with few clicks have a low estimate and little spread at once.

    Examples
    --------
    >>> import numpy as np
    >>> coins = Estimate("coins", np.tile([0.0, 1.0], 5000), "none", (0.0, 1.0))
    >>> found = interval("betting", coins)
    >>> round(found.low, 4), round(found.high, 4)
    (0.4864, 0.5136)
    """
    row = BOUNDS[check_choice(name, "A bound", BOUNDS)]
    half = (1.0 + check_confidence(confidence)) / 2.0
    below = lower_bound(name, estimate, half, **options)
    if below.value is None:
        return Interval(name, None, None, below.why_not)
    if estimate.bias == "down":
        return Interval(
            name, below.value, None, "the estimate may be too low, by nobody knows what"
        )
    above = row.mirror - row.compute(Question(estimate, half, **options).mirrored())
    least, most = estimate.value_range or (-math.inf, math.inf)
    low, high = (min(max(end, least), most) for end in (below.value, above))
    return Interval(name, low, high)


def intervals(estimate: Estimate, confidence: float = 0.95, **options: Any) -> dict[str, Interval]:
    """Return every two-sided interval by the name of its bound; options as :func:`interval`."""
    return {name: interval(name, estimate, confidence, **options) for name in BOUNDS}
