"""A crowd whose taste wanders: the log-odds of every item are a random walk."""

import math
from typing import Any, ClassVar, NamedTuple, Self

from keyhole.base.errors import IntArray, check_number
from keyhole.base.limits import check_length
from keyhole.contracts.worlds import World, WorldKernel
from keyhole.kernels.compiled import kernel
from keyhole.kernels.draw import normal_from, start, uniform

_STARTS, _STEPS, _OPINIONS = 0, 1, 2


class WalkingParams(NamedTuple):
    """Standard deviations of where log-odds begin and of their steps."""

    spread: float
    step: float


@kernel
def _add(draw: Any, time: int, use: int, weight: float, out: Any) -> None:
    """Add to every item its normal number of some time, times a weight."""
    begin = start(draw, time, use)
    for item in range(out.shape[0]):
        out[item] += weight * normal_from(draw, begin, item)


@kernel
def _walk(draw: Any, time: int, step: float, out: Any) -> None:
    """Add the sum of the first ``time`` steps of a walk, without taking them one by one.

    Every whole time has a normal number of its own. That of a power of two is the way from the
    power below it. That of any other time is how far the walk is from the middle between two
    times that are known before it and that it lies halfway between (Lévy's construction). Paths
    made so have the law of a random walk, and any place of one takes 2 log2(time) numbers.
    """
    before = 0
    power = 1
    while before < time:
        # The whole way to a power that is passed, the share of it to one that is ahead.
        share = min(time - before, power - before) / (power - before)
        _add(draw, power, _STEPS, step * math.sqrt(power - before) * share, out)
        before, power = power, 2 * power
    high = before
    low = high // 2
    while high - low > 1 and time != high:
        middle = (low + high) // 2
        half = middle - low
        # The walk bends at the middle, by a variance of half of the half; a straight line leads
        # from there to both ends.
        height = step * math.sqrt(half / 2.0) * (1.0 - abs(time - middle) / half)
        _add(draw, middle, _STEPS, height, out)
        if time == middle:
            return
        if time < middle:
            high = middle
        else:
            low = middle


@kernel
def _relevance(params: Any, draw: Any, out: Any) -> None:
    for item in range(out.shape[0]):
        out[item] = 0.0
    _add(draw, 0, _STARTS, params.spread, out)
    _walk(draw, draw.round, params.step, out)
    for item in range(out.shape[0]):
        odds = math.exp(-abs(out[item]))  # of the less likely opinion, so that none is too large
        chance = (odds if out[item] < 0.0 else 1.0) / (1.0 + odds)
        out[item] = 1.0 if uniform(draw, _OPINIONS, item) < chance else 0.0


class Walking(World):
    """Users whose chance to find an item relevant changes a little in every round.

    Parameters
    ----------
    n_items
        Size of the list.
    spread
        Standard deviation of the log-odds in the first round, about even odds.
    step
        Standard deviation of their change from a round to the next.

    Notes
    -----
    The log-odds of each item are a Gaussian random walk of its own. A round draws its place on the
    walk directly: 2 log2(t) normal numbers per item in round t, so that no state is kept.

    Examples
    --------
    >>> crowd = Walking(5, spread=1000.0, step=0.0)  # nobody is in doubt, or changes their mind
    >>> crowd.relevance(round=0).tolist() == crowd.relevance(round=10**9).tolist()
    True
    """

    kernel: ClassVar[WorldKernel] = WorldKernel(_relevance)
    max_grade = 1.0
    is_binary = True

    def __init__(self, n_items: int = 20, *, spread: float = 1.0, step: float = 0.01) -> None:
        self.n_items = check_length(n_items, "`n_items` of Walking")
        self.params = WalkingParams(
            check_number(spread, "`spread` of Walking", at_least=0.0),
            check_number(step, "`step` of Walking", at_least=0.0),
        )

    def relabelled(self, labels: IntArray) -> Self:
        return self  # items have no part in the world but their draws
