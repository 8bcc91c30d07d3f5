"""What a ranking would have earned, from the logs of a ranker that explores.

A whole ranking is almost never the one that was logged. Both estimators ask for less to agree: an
item at its position, or the set of items on top.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from keyhole.base.errors import FloatArray, InvalidInput, check_integer, check_ranking
from keyhole.game.log import Log
from keyhole.measures import measure as named_measure
from keyhole.measures.dcg import DCG
from keyhole.measures.precision import Precision
from keyhole.offline.estimators import Estimate


def item_position(
    rewards: ArrayLike,
    propensities: ArrayLike,
    target: ArrayLike,
    *,
    high: float | None = None,
) -> Estimate:
    """Return the total reward of lists, each item weighted by how it gets to its position.

    Parameters
    ----------
    rewards
        Reward of the item at each position of each logged list, (n, n_positions).
    propensities
        Probability with which the logging policy put that item at that position.
    target
        Probability with which the policy puts it there: 1 or 0 for a fixed ranking.
    high
        The largest that the sum of one list can be, for bounds with a guarantee.

    Notes
    -----
    The item-position estimator of Li, Abbasi-Yadkori, Kveton, Muthukrishnan, Vinay and Wen 2018:
    the sum over positions of reward times target / propensity. Unbiased where the reward of an
    item depends on the item and its position alone, not on what else is shown.

    Examples
    --------
    >>> item_position([[1, 0], [0, 1]], [[0.5, 0.5], [0.5, 0.5]], [[1, 0], [1, 1]]).value
    2.0
    """
    arrays = [np.asarray(given, dtype=np.float64) for given in (rewards, propensities, target)]
    earned, logged, wanted = arrays
    if earned.ndim != 2 or not earned.shape == logged.shape == wanted.shape or not earned.size:
        raise InvalidInput(
            f"Rewards, propensities and target must be of one shape (n, n_positions), got "
            f"{earned.shape}, {logged.shape} and {wanted.shape}."
        )
    if not np.isfinite(earned).all():
        raise InvalidInput("Rewards must be finite: leave out positions whose reward was not seen.")
    _check_chances(logged, "A propensity", zero=False)
    _check_chances(wanted, "A probability of the target", zero=True)
    contributions = (wanted / logged * earned).sum(axis=1)
    return _estimate("item-position", contributions, high)


def top_set(
    log: Log,
    rankings: Sequence[ArrayLike] | ArrayLike,
    *,
    k: int,
    measure: str = "DCG",
    high: float | None = None,
) -> Estimate:
    """Return the score of the first k items of a policy's rankings, from a ranker's own log.

    Parameters
    ----------
    log
        What a ranker that explores showed and saw, with the probability of each revealed top:
        contextual RTop-kF writes such logs.
    rankings
        What the policy would have shown in each row of the log: the item at each position.
    k
        How many items each row reveals, which the logged propensities are of.
    measure
        ``DCG`` or ``Precision``, at a cutoff of at most k; without one at k. No other measure is
        decided by the first items alone.
    high
        The largest that a contribution can be (largest score over least propensity), for
        bounds with a guarantee.

    Notes
    -----
    A row counts where both rankings have the same *set* on top, with weight 1 / propensity: the
    logged propensity is the marginal one of that set in any order (A7, R20), and inside the set
    the relevance of every item is known, so the policy's own order is scored. Unbiased whatever the
    items' rewards depend on, as long as the ranker's ``mismatch_scale`` is 1.

    Examples
    --------
    >>> values, features = np.array([1.0, np.nan, 0.0, np.nan]), np.zeros((4, 0))
    >>> log = Log(0, 0, np.arange(2), np.ones(2, bool), np.array([0.5, 0.5]), np.array([0, 2, 4]),
    ...           np.array([0, 1, 1, 0]), values, features)
    >>> top_set(log, [[0, 1], [0, 1]], k=1).value
    1.0
    """
    n_rows = len(log.rounds)
    k = check_integer(k, "`k`", at_least=1)
    score = named_measure(measure)
    if type(score) not in (DCG, Precision) or (score.cutoff or k) > k:
        raise InvalidInput(
            f"`measure` must be DCG or Precision at a cutoff of at most k={k}, got {measure!r}."
        )
    score = score if score.cutoff else score @ k
    if len(rankings) != n_rows:  # type: ignore[arg-type]
        raise InvalidInput(f"There must be a ranking for each of the {n_rows} rows of the log.")
    _check_chances(log.propensities, "A propensity of the log", zero=False)
    contributions = np.zeros(n_rows)
    for row, wanted in enumerate(rankings):  # type: ignore[arg-type]
        first, end = int(log.starts[row]), int(log.starts[row + 1])
        shown, values = log.rankings[first:end], log.values[first:end]
        order = check_ranking(wanted, end - first, f"Ranking {row}")
        depth = min(k, end - first)
        if np.isnan(values[:depth]).any():
            raise InvalidInput(
                f"The log must reveal the first {depth} items, but row {row} hides some of them."
            )
        if set(order[:depth].tolist()) == set(shown[:depth].tolist()):
            relevance = np.zeros(end - first)
            relevance[shown[:depth]] = values[:depth]
            contributions[row] = score(relevance, order) / log.propensities[row]
    return _estimate(f"top-set, {score.label}", contributions, high)


def _estimate(name: str, contributions: FloatArray, high: float | None) -> Estimate:
    if high is None or contributions.min() < 0.0:
        return Estimate(name, contributions, "none")
    if contributions.max() > high:
        raise InvalidInput(
            f"`high` must be at least the largest contribution, {contributions.max():g}, got "
            f"{high:g}."
        )
    return Estimate(name, contributions, "none", (0.0, float(high)))


def _check_chances(values: FloatArray, name: str, *, zero: bool) -> None:
    fair = (values >= 0.0 if zero else values > 0.0) & (values <= 1.0)
    if not fair.all():
        where = tuple(int(i) for i in np.argwhere(~fair)[0])
        least = "of at least 0" if zero else "above 0"
        raise InvalidInput(
            f"{name} must be a number {least} and at most 1, got {values[where]} in row {where[0]}."
        )
