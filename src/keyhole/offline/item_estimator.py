"""What a whole ranking would have earned, from rounds in which a few items were seen."""

import numpy as np
from numpy.typing import ArrayLike

from keyhole.base.errors import FloatArray, InvalidInput
from keyhole.offline.estimators import Estimate, Range


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
    counts = ~np.isnan(likely)
    if not ((likely[counts] > 0.0) & (likely[counts] <= 1.0)).all():
        raise InvalidInput("A chance to be seen must be a number above 0 and at most 1.")
    if (predicted is None) != (base is None):
        raise InvalidInput("Predictions of items and of whole rankings go together.")
    guess = np.zeros_like(earned) if predicted is None else np.asarray(predicted, dtype=np.float64)
    terms = np.where(counts, weighed * (earned - guess) / np.where(counts, likely, 1.0), 0.0)
    contributions: FloatArray = terms.sum(axis=1)
    if base is not None:
        contributions = contributions + np.asarray(base, dtype=np.float64)
    name = "importance-weighted" if predicted is None else "doubly-robust"
    if largest is None or not least_chance:
        return Estimate(name, contributions, "none")
    reach = largest / least_chance
    if base is None:
        return Estimate(name, contributions, "none", (0.0 if never_negative else -reach, reach))
    if base_range is None:
        return Estimate(name, contributions, "none")
    return Estimate(name, contributions, "none", (base_range[0] - reach, base_range[1] + reach))
