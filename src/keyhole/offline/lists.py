"""The gate for rankers of documents: other rankings judged on a ranker's own log."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from keyhole.base.errors import FloatArray, InvalidInput, check_choice
from keyhole.game.log import Log
from keyhole.measures import measure as named_measure
from keyhole.offline.bounds import BOUNDS, DEFAULT_BOUND, check_confidence
from keyhole.offline.diagnostics import Diagnostics
from keyhole.offline.estimators import DECISIVE, Estimate
from keyhole.offline.evaluation import Evaluation, Judged, Line, no_bound
from keyhole.offline.rankings import top_set

Rankings = Sequence[ArrayLike] | str
"""What a ranker would have shown in each row of a log, or ``logged``: what was shown."""

LOGGED = "logged"


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
    least = None
    for first, end in zip(log.starts[:-1], log.starts[1:], strict=True):
        hidden = np.isnan(log.values[first:end])
        shown = int(np.argmax(hidden)) if hidden.any() else None
        if shown is not None:
            least = shown if least is None else min(least, shown)
    longest = int(np.diff(log.starts).max()) if len(log.rounds) else 0
    return longest if least is None else least


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
    revealed, in any order, weighted by one over how likely that was
    (:func:`~keyhole.offline.rankings.top_set`).

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
    check_choice(bound, "`bound`", BOUNDS)
    confidence = check_confidence(confidence)
    if not log.features.shape[1]:
        raise InvalidInput(
            "Rankings can be judged on the log of a ranker of documents with features; the log of "
            "a fixed list does not say alone how likely its tops were."
        )
    k = revealed(log) if k is None else k
    if k < 1:
        raise InvalidInput("The log must reveal at least the first item of each list, got none.")
    largest = _largest_score(log, measure, k, max_grade)
    found = [_estimate(log, each, measure, k, largest) for each in (policy, baseline)]
    lines = [
        {DECISIVE: Line.of(estimate, confidence, seed=seed)}
        for estimate in (*(estimate for estimate, _ in found), found[0][0].minus(found[1][0]))
    ]
    judged = [
        Judged(name, line, _diagnosed(log, weights, k))
        for name, line, (_, weights) in zip(names, lines, found, strict=False)
    ]
    warnings = [w for each in judged for w in each.diagnostics.warnings(each.name)]
    warnings += no_bound(lines[2], bound)
    note = f"Rewards are {named_measure(measure).label} of the first {k} documents."
    return Evaluation(
        judged[0], judged[1], lines[2], confidence, bound, len(log.rounds), (note,), tuple(warnings)
    )


def _largest_score(log: Log, measure: str, k: int, max_grade: float | None) -> float | None:
    """Return the score of a top of the best documents; None where it is not known."""
    seen = float(np.nanmax(log.values))
    grade = 1.0 if max_grade is None else max_grade
    if seen > grade:
        if max_grade is None:
            return None
        raise InvalidInput(
            f"`max_grade` must be at least {seen:g}, as the log has it, got {grade:g}."
        )
    score = named_measure(measure)
    score = score if score.cutoff else score @ k
    return float(score(np.full(k, grade), np.arange(k)))


def _estimate(
    log: Log, rankings: Rankings, measure: str, k: int, largest: float | None
) -> tuple[Estimate, FloatArray]:
    """Return what rankings score, and the weight of each row."""
    wanted: Any = rankings
    if isinstance(rankings, str):
        check_choice(rankings, "Rankings", (LOGGED,))
        wanted = [
            log.rankings[first:end]
            for first, end in zip(log.starts[:-1], log.starts[1:], strict=True)
        ]
        log = log._replace(propensities=np.ones(len(log.rounds)))  # what was shown, for certain
    high = None if largest is None else largest / float(log.propensities.min())
    found = top_set(log, wanted, k=k, measure=measure, high=high)
    agrees = np.array([_agrees(log, row, wanted[row], k) for row in range(len(log.rounds))])
    known = None if largest is None else (0.0, largest)
    estimate = Estimate(DECISIVE, found.contributions, "none", found.range, known)
    return estimate, agrees / log.propensities


def _agrees(log: Log, row: int, wanted: Any, k: int) -> bool:
    shown = log.rankings[int(log.starts[row]) : int(log.starts[row + 1])]
    return set(np.asarray(wanted)[:k].tolist()) == set(shown[:k].tolist())


def _diagnosed(log: Log, weights: FloatArray, k: int) -> Diagnostics:
    """Return how rankings overlap with a log."""
    tops = [log.values[int(first) : int(first) + k] for first in log.starts[:-1]]
    is_rewarded = np.array([bool((top > 0.0).any()) for top in tops])
    return Diagnostics.of_weights(weights, is_rewarded)
