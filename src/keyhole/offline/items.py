"""Orders of a fixed list, judged by rounds in which a few of its items were seen."""

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from keyhole.base.errors import FloatArray, IntArray, InvalidInput
from keyhole.data.rounds import Rounds
from keyhole.offline.bounds import check_bound, check_confidence
from keyhole.offline.estimators import Estimate, Range
from keyhole.offline.report import Evaluation, Side, compare

_BOUNDS = ("betting", "empirical-bernstein", "student-t")
_DECISIVE = "doubly-robust"


class Scoring(NamedTuple):
    """How orders of a list are scored."""

    weights: FloatArray
    """What a gain counts at each position, more being better."""
    largest_gain: float
    """What one item can gain at most."""
    k: int
    """How many items a round reveals."""

    @property
    def largest(self) -> float:
        """What the items seen in one round can count at most."""
        return float(np.abs(self.weights).max()) * self.largest_gain * self.k


class Weights(NamedTuple):
    """What a policy makes of the gain of each item in each round, (n, n_items)."""

    given: FloatArray
    """By the list of the round, as it was or would be."""
    expected: FloatArray
    """Before the list of the round was drawn: whether an item is seen says nothing about it."""

    def minus(self, other: "Weights") -> "Weights":
        """Return what one policy makes of gains beyond another."""
        return Weights(self.given - other.given, self.expected - other.expected)


def weights_of(policy: IntArray | str, scoring: Scoring, rounds: Rounds) -> Weights:
    """Return what an order of all items makes of their gains; or ``uniform``, or ``logged``."""
    if isinstance(policy, str) and policy == "logged":
        return as_shown(scoring.weights[rounds.shown])
    if isinstance(policy, str):  # the mean of all orders
        each = np.full(len(scoring.weights), scoring.weights.mean())
    else:
        each = np.empty(len(scoring.weights))
        each[policy] = scoring.weights
    weights = np.tile(each, (len(rounds.gains), 1))
    return Weights(weights, weights)


def as_shown(weights: FloatArray) -> Weights:
    """Return the weights of lists as they were shown; expected is their mean in other rounds.

    An item that was seen stood at the top of its own list: to weigh it by that, and divide by how
    likely it was, would count it as if it always stood there.
    """
    beyond = weights - weights[0]  # so that lists that are all the same weigh the same to the bit
    return Weights(weights, weights[0] + (beyond.sum(axis=0) - beyond) / (len(weights) - 1))


def evaluate_items(
    rounds: Rounds,
    scoring: Scoring,
    policy: IntArray | str,
    baseline: IntArray | str = "logged",
    confidence: float = 0.95,
    *,
    bound: str = "betting",
) -> Evaluation:
    """Compare an order of all items with a baseline, and say whether to promote it.

    The bound on the doubly robust difference decides, which is that of the difference of weights.
    """
    both = [weights_of(each, scoring, rounds) for each in (policy, baseline)]
    sides = [
        Side(name, item_estimates(rounds, weights, scoring))
        for name, weights in zip(("policy", "baseline"), both, strict=True)
    ]
    return compare(
        sides, check_confidence(confidence), check_bound(bound),
        difference=item_estimates(rounds, both[0].minus(both[1]), scoring),
        decisive=_DECISIVE, bounds=_BOUNDS,
    )  # fmt: skip


def item_estimates(rounds: Rounds, weights: Weights, scoring: Scoring) -> dict[str, Estimate]:
    """Return the importance-weighted and the doubly robust estimate of what weights earn."""
    means = _means_before(rounds, len(scoring.weights))
    of_seen, predicted = (
        np.take_along_axis(table, rounds.seen, axis=1) for table in (weights.expected, means)
    )
    worth = _worth(weights.given, scoring.largest_gain)
    known: dict[str, Any] = {"largest": scoring.largest, "least_chance": rounds.least_chance}
    asked = (rounds.gains, rounds.chances, of_seen)
    never_negative = bool(weights.expected.min() >= 0.0)
    base = (weights.given * means).sum(axis=1)
    found = (
        seen_items(*asked, never_negative=never_negative, **known),
        seen_items(*asked, predicted=predicted, base=base, base_range=worth, **known),
    )
    return {each.name: replace(each, value_range=worth) for each in found}


def _worth(weights: FloatArray, largest_gain: float) -> Range:
    """Return what weights can earn in the mean of all rounds, whatever each item gains."""
    least = float(np.minimum(weights, 0.0).sum(axis=1).min())
    most = float(np.maximum(weights, 0.0).sum(axis=1).max())
    return largest_gain * least, largest_gain * most


def _means_before(rounds: Rounds, n_items: int) -> FloatArray:
    """Return the mean gain of every item as it was known before each round; 0 at first.

    Where draws of a block depend on each other, before it is before the block: an item that was
    seen in it is not seen again, so what it gained would be counted and never be set right.
    """
    n_rows, depth = rounds.gains.shape
    known = ~np.isnan(rounds.chances)
    counts, sums = np.zeros((n_rows + 1, n_items)), np.zeros((n_rows + 1, n_items))
    rows = np.arange(1, n_rows + 1)
    for column in range(depth):
        np.add.at(counts, (rows, rounds.seen[:, column]), known[:, column])
        np.add.at(sums, (rows, rounds.seen[:, column]), known[:, column] * rounds.gains[:, column])
    number = np.arange(n_rows) if rounds.number is None else rounds.number
    n_before = np.searchsorted(number, number - rounds.block, "right")
    counts, sums = counts.cumsum(axis=0)[n_before], sums.cumsum(axis=0)[n_before]
    return np.divide(sums, counts, out=np.zeros_like(sums), where=counts > 0.0)


def seen_items(
    gains: ArrayLike,
    chances: ArrayLike,
    weights: ArrayLike,
    *,
    predicted: ArrayLike | None = None,
    base: ArrayLike | None = None,
    base_range: Range | None = None,
    never_negative: bool = False,
    largest: float | None = None,
    least_chance: float | None = None,
) -> Estimate:
    """Return the score of a policy whose rankings weigh the gains of items by their positions.

    Parameters
    ----------
    gains
        Gain of each item that a round revealed, (n, k).
    chances
        How likely that item was to be seen in that round, over all draws of the logging ranker; NaN
        where the item does not count.
    weights
        What the policy's ranking makes of that item: the weight of its position.
    predicted
        What the item's gain was predicted to be before the round, such as the mean of what had been
        seen of it; the gain of an item that is not seen counts as predicted.
    base
        What the policy's whole ranking was predicted to score in each round. Goes with
        ``predicted``.
    base_range
        What predictions of the whole ranking could have been, whatever was seen: what they were is
        no range.
    never_negative
        Whether gains and the weights of all items are known to be at least 0.
    largest
        The most that the items seen in one round can count, for bounds with a guarantee.
    least_chance
        How likely the least likely item of any round was to be seen: one that was never seen may be
        less likely than all that were. Goes with ``largest``.

    Notes
    -----
    A round contributes base + sum over seen items of weight (gain - predicted) / chance: unbiased
    for measures with gains per item, whatever the predictions, as long as they are made of earlier
    rounds alone. Without predictions it is importance weighting; with good ones its variance is a
    fraction of that. Earlier rounds are those whose draws do not depend on the round's own: all
    before it where each draws anew, and those of earlier blocks where a ranker such as RTop-kF
    draws a block at once, in which an item that was seen is not seen again.

    The estimate has a range, for bounds with a guarantee, where ``least_chance`` is known, and for
    predictions ``base_range``. It follows from these alone: what the rows happen to be is no limit
    of what they could have been.

    Examples
    --------
    >>> seen_items([[1.0], [0.0]], [[0.5], [0.5]], [[1.0], [0.6]]).value
    1.0
    """
    arrays = [np.asarray(given, dtype=np.float64) for given in (gains, chances, weights)]
    earned, likely, weighed = arrays
    if earned.ndim != 2 or not earned.shape == likely.shape == weighed.shape or not earned.size:
        raise InvalidInput(
            f"Gains, chances and weights must be of one shape (n, k), got {earned.shape}, "
            f"{likely.shape} and {weighed.shape}."
        )
    if not (np.isnan(likely) | ((likely > 0.0) & (likely <= 1.0))).all():
        raise InvalidInput("A chance to be seen must be a number above 0 and at most 1.")
    if (predicted is None) != (base is None):
        raise InvalidInput("Predictions of items and of whole rankings go together.")
    guess = np.zeros_like(earned) if predicted is None else np.asarray(predicted, dtype=np.float64)
    contributions = Rounds(np.empty(0, np.int64), earned, likely).scores(
        weighed, guess, None if base is None else np.asarray(base, dtype=np.float64)
    )
    name = "importance-weighted" if predicted is None else "doubly-robust"
    if largest is None or not least_chance:
        return Estimate(name, contributions, "none")
    reach = largest / least_chance
    if base is None:
        return Estimate(name, contributions, "none", (0.0 if never_negative else -reach, reach))
    if base_range is None:
        return Estimate(name, contributions, "none")
    return Estimate(name, contributions, "none", (base_range[0] - reach, base_range[1] + reach))
