"""Rankings of documents judged on the log of a ranker that explores.

A whole ranking is almost never the one that was logged. Both estimators ask for less to agree: an
item at its position, or the set of items on top.
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from keyhole.base.errors import (
    FloatArray,
    IntArray,
    InvalidInput,
    check_choice,
    check_integer,
    check_ranking,
)
from keyhole.contracts.measures import Measure
from keyhole.data.rounds import Rounds
from keyhole.game.log import Log
from keyhole.kernels.sorting import sort_descending, sort_work
from keyhole.measures import measure as named_measure
from keyhole.measures.dcg import DCG
from keyhole.measures.precision import Precision
from keyhole.offline.bounds import DEFAULT_BOUND, check_bound, check_confidence
from keyhole.offline.diagnostics import Diagnostics
from keyhole.offline.estimators import DECISIVE, Estimate
from keyhole.offline.items import seen_items
from keyhole.offline.report import Evaluation, Side, compare

if TYPE_CHECKING:
    from keyhole.rankers.lists.models import Model

Rankings = Sequence[ArrayLike] | str
"""What a ranker would have shown in each row of a log, or ``logged``: what was shown."""

LOGGED = "logged"


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
    k = check_integer(k, "`k`", at_least=1)
    score = _score(measure, k)
    rounds = log.as_rounds(k)
    scores, agrees = _scores(log, rounds, rankings, score)
    found = seen_items(scores, rounds.chances[:, :1], agrees)
    estimate = _estimate(f"top-set, {score.label}", found.contributions, high)
    if high is None or estimate.range is None or rounds.least_chance is None:
        return estimate
    return replace(estimate, value_range=(0.0, high * rounds.least_chance))  # a score, unweighted


def rankings_by(model: "Model", log: Log, name: str = "the model") -> list[IntArray]:
    """Return how a saved model would have ranked the documents of each row of a log."""
    if log.features.shape[1] > model.n_features:
        raise InvalidInput(
            f"Documents must have at most the {model.n_features} features of {name}, got "
            f"{log.features.shape[1]}."
        )
    work = sort_work(int(np.diff(log.starts).max()))
    rankings = []
    for first, end in pairwise(log.starts):
        order = np.empty(int(end - first), dtype=np.int64)
        sort_descending(model.scores(log.features[first:end]), order, work)
        rankings.append(order)
    return rankings


def revealed(log: Log) -> int:
    """Return how many items every row of a log reveals, from the first on.

    Examples
    --------
    >>> values = np.array([1.0, np.nan, 0.0, 1.0])
    >>> log = Log(0, 0, np.arange(2), np.ones(2, bool), np.ones(2), np.array([0, 2, 4]),
    ...           np.array([0, 1, 1, 0]), values, np.zeros((4, 1)))
    >>> revealed(log)
    1
    """
    lengths = np.diff(log.starts)
    positions = np.arange(log.starts[-1]) - np.repeat(log.starts[:-1], lengths)
    hidden = positions[np.isnan(log.values[: len(positions)])]
    return int(hidden.min() if len(hidden) else lengths.max(initial=0))


def evaluate_lists(
    log: Log,
    policy: Rankings,
    baseline: Rankings = LOGGED,
    confidence: float = 0.95,
    *,
    measure: str = "DCG",
    k: int | None = None,
    bound: str = DEFAULT_BOUND,
    max_grade: float | None = None,
    names: tuple[str, str] = ("policy", "baseline"),
    seed: int = 0,
) -> Evaluation:
    """Compare rankings of documents with those of a log, and say whether to promote them.

    The rule is that of :func:`~keyhole.offline.evaluation.evaluate`: the lower bound on the
    difference must be above 0. A row counts where the first k documents are those that were
    revealed, in any order, weighted by one over how likely that was (:func:`top_set`).

    Parameters
    ----------
    log
        Of contextual RTop-kF, which logs the probability of each top that it reveals.
    policy, baseline
        The documents of each row of the log by position, best first; or ``logged``.
    measure
        ``DCG`` or ``Precision``, at a cutoff of at most k.
    k
        How many items each row reveals; by default as many as every row does.
    max_grade
        The largest relevance; by default 1, if the log agrees. Bounds with a guarantee need it.
    """
    confidence, bound = check_confidence(confidence), check_bound(bound)
    if not log.features.shape[1]:
        raise InvalidInput(
            "Rankings can be judged on the log of a ranker of documents with features; the log of "
            "a fixed list does not say alone how likely its tops were."
        )
    k = revealed(log) if k is None else k
    if k < 1:
        raise InvalidInput("The log must reveal at least the first item of each list, got none.")
    score = _score(measure, k)
    rounds, largest = log.as_rounds(k), _largest_score(log, score, k, max_grade)
    sides = [
        _side(name, log, rounds, rankings, score, largest)
        for name, rankings in zip(names, (policy, baseline), strict=True)
    ]
    note = f"Rewards are {named_measure(measure).label} of the first {k} documents."
    return compare(sides, confidence, bound, notes=[note], seed=seed)


def _side(
    name: str, log: Log, rounds: Rounds, rankings: Rankings, score: Measure, largest: float | None
) -> Side:
    """Return what rankings score, and how they overlap with a log."""
    wanted: Any = rankings
    if isinstance(rankings, str):
        check_choice(rankings, "Rankings", (LOGGED,))
        wanted = [log.rankings[first:end] for first, end in pairwise(log.starts)]
        rounds = rounds._replace(chances=np.ones_like(rounds.chances), least_chance=1.0)  # for sure
    scores, agrees = _scores(log, rounds, wanted, score)
    chances = rounds.chances[:, :1]
    found = seen_items(
        scores, chances, agrees, never_negative=True, least_chance=rounds.least_chance,
        largest=None if scores.min() < 0.0 else largest,
    )  # fmt: skip
    worth = None if largest is None else (0.0, largest)
    weights = (agrees / chances)[:, 0]
    diagnosed = Diagnostics.of_weights(weights, np.any(rounds.gains > 0.0, axis=1))
    return Side(name, {DECISIVE: replace(found, value_range=worth)}, diagnosed)


def _score(measure: str, k: int) -> Measure:
    """Return a measure that the first k items decide, or raise."""
    score = named_measure(measure)
    if type(score) not in (DCG, Precision) or (score.cutoff or k) > k:
        raise InvalidInput(
            f"`measure` must be DCG or Precision at a cutoff of at most k={k}, got {measure!r}."
        )
    return score if score.cutoff else score @ k


def _largest_score(log: Log, score: Measure, k: int, max_grade: float | None) -> float | None:
    """Return the score of a top of the best documents; None where it is not known."""
    seen = float(np.nanmax(log.values))
    grade = 1.0 if max_grade is None else max_grade
    if seen > grade:
        if max_grade is None:
            return None
        raise InvalidInput(
            f"`max_grade` must be at least {seen:g}, as the log has it, got {grade:g}."
        )
    return float(score(np.full(k, grade), np.arange(k)))


def _scores(
    log: Log, rounds: Rounds, rankings: Any, score: Measure
) -> tuple[FloatArray, FloatArray]:
    """Return the scores of rankings where their tops are those revealed, and 1 there, (n, 1)."""
    n_rows, k = rounds.seen.shape
    if len(rankings) != n_rows:
        raise InvalidInput(f"There must be a ranking for each of the {n_rows} rows of the log.")
    _check_chances(rounds.chances[:, 0], "A propensity of the log", zero=False)
    scores, agrees = np.zeros((n_rows, 1)), np.zeros((n_rows, 1))
    for row, wanted in enumerate(rankings):
        n_items = int(log.starts[row + 1] - log.starts[row])
        order, seen = check_ranking(wanted, n_items, f"Ranking {row}"), rounds.seen[row, :n_items]
        if set(order[:k].tolist()) == set(seen.tolist()):
            relevance = np.zeros(n_items)
            relevance[seen] = rounds.gains[row, :n_items]
            scores[row], agrees[row] = score(relevance, order), 1.0
    return scores, agrees


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
