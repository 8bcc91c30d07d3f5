"""What another list would have earned, computed a second time: plain Python, from events alone."""

import math
from dataclasses import dataclass
from typing import Any

from scipy.stats import t as student

from keyhole.rankers.fixed.rtopk import RTopK
from tests.service.references import History, Shown, gain_of, weights_of
from tests.service.summary_references import mean


@dataclass
class Row:
    """A round that can be judged: what each item seen gained, how likely that was, and the list."""

    gains: dict[str, float]
    chances: dict[str, float]
    """Without those that nothing is known of."""
    order: list[str]
    least: float | None
    round: int
    block: int


def rows_of(history: History, after: int) -> tuple[list[Row], int]:
    """Return the rounds that can be judged, in their order, and how many cannot be."""
    names, measure = history.config.catalogue, history.config.measure

    def counts(one: Shown) -> bool:
        is_drawn = one.ranked.mode != "apprentice" or one.config.apprentice_share > 0.0
        return one.names == names and one.ranked.n_excluded == 0 and is_drawn

    asked = [one for one in history.rounds if one.event.seq > after]
    rows = []
    for one in sorted(history.heard, key=lambda one: one.round):
        if one in asked and counts(one) and one.was_seen:
            gains = {name: gain_of(measure, grade) for name, grade in one.by_name.items()}
            likely = one.likely["chances"] or []
            chances = dict(zip(one.top, likely, strict=False))
            least = one.likely["least_chance"]
            rows.append(Row(gains, chances, one.order, least, one.round, block_of(history, one)))
    return rows, sum(not counts(one) for one in asked)


def block_of(history: History, one: Shown) -> int:
    """Return the length of the block that an item was explored in, once; 1 where there is none."""
    if not isinstance(history.alone, RTopK) or one.likely["chances"] is None:
        return 1
    fair = one.config.apprentice_share if one.ranked.mode == "apprentice" else 1.0
    return round(fair / one.likely["p_marginal"])


Weights = list[dict[str, float]]
"""What a gain of each item counts, in each row."""


def policy_of(history: History, rows: list[Row], policy: Any) -> tuple[Weights, Weights]:
    """Return what a policy makes of items in each row: by its list, and before that was drawn."""
    names = list(history.config.catalogue or ())
    by_place = weights_of(history.config.measure, len(names))
    if policy == "logged":
        given = [dict(zip(row.order, by_place, strict=True)) for row in rows]
        sums = {name: math.fsum(weights[name] for weights in given) for name in names}
        others = [
            {name: (sums[name] - weights[name]) / (len(rows) - 1) for name in names}
            for weights in given
        ]
        return given, others
    if policy == "uniform":
        fixed = dict.fromkeys(names, math.fsum(by_place) / len(names))
    else:
        order = [str(name) for name in history.alone.best()] if policy == "best" else policy
        fixed = dict(zip(order, by_place, strict=True))
    return [fixed] * len(rows), [fixed] * len(rows)


def contributions(rows: list[Row], given: Weights, expected: Weights) -> dict[str, list[float]]:
    """Return what each row says, by importance weights alone, and beside means of rows before.

    Rows of its own block are not before a row, whose length may be one more than that of others.
    """
    plain, robust = [], []
    longest = max(row.block for row in rows)
    away = longest + 1 if longest > 1 else 1
    for row, weights, before in zip(rows, given, expected, strict=True):
        gained: dict[str, list[float]] = {}
        for other in rows:
            if other.round <= row.round - away:
                for name in other.chances:
                    gained.setdefault(name, []).append(other.gains[name])
        known = {name: math.fsum(values) / len(values) for name, values in gained.items()}
        base = math.fsum(weights[name] * known.get(name, 0.0) for name in weights)
        plain.append(
            math.fsum(before[name] * row.gains[name] / p for name, p in row.chances.items())
        )
        surprise = [
            before[name] * (row.gains[name] - known.get(name, 0.0)) / p
            for name, p in row.chances.items()
        ]
        robust.append(base + math.fsum(surprise))
    return {"importance-weighted": plain, "doubly-robust": robust}


Range = tuple[float, float]


def minus(one: Weights, other: Weights) -> Weights:
    return [{name: a[name] - b[name] for name in a} for a, b in zip(one, other, strict=True)]


def record_of(
    history: History, rows: list[Row], given: Weights, expected: Weights, confidence: float
) -> dict[str, Any]:
    """Return both estimates of what weights earn, with all their intervals and bounds."""
    config, n_items = history.config, len(history.config.catalogue or ())
    best_gain = gain_of(config.measure, history.grade)
    said = contributions(rows, given, expected)
    least = [row.least for row in rows if row.chances]
    reach = max(map(abs, weights_of(config.measure, n_items))) * best_gain * config.k
    ends = [
        best_gain * min(math.fsum(min(w, 0.0) for w in each.values()) for each in given),
        best_gain * max(math.fsum(max(w, 0.0) for w in each.values()) for each in given),
    ]
    record = {}
    for name, values in said.items():
        span = None
        if None not in least and least:
            far = reach / min(each for each in least if each is not None)
            gains_only = min(min(each.values()) for each in expected) >= 0.0
            span = (0.0 if gains_only else -far, far)
            if name == "doubly-robust":  # whatever was predicted
                span = (ends[0] - far, ends[1] + far)
        record[name] = {
            "value": math.fsum(values) / len(values),
            "standard_error": deviation(values) / math.sqrt(len(values)),
            "interval": two_sided("betting", values, confidence, span, ends),
            "approximate_interval": two_sided("student-t", values, confidence, span, ends),
            "lower_bounds": {each: BOUNDS[each](values, confidence, span) for each in BOUNDS},
        }
    return record


def judgement_of(
    history: History,
    policy: Any = "best",
    baseline: Any = "logged",
    confidence: float = 0.95,
    bound: str = "betting",
    after: int = 0,
) -> dict[str, Any]:
    """Return all numbers of an evaluation."""
    rows, n_skipped = rows_of(history, after)
    ours, theirs = (policy_of(history, rows, each) for each in (policy, baseline))
    apart = [minus(one, other) for one, other in zip(ours, theirs, strict=True)]
    records = {
        name: record_of(history, rows, weights[0], weights[1], confidence)
        for name, weights in (("policy", ours), ("baseline", theirs), ("difference", apart))
    }
    decided = records["difference"]["doubly-robust"]["lower_bounds"][bound]
    return {
        "verdict": "promote" if decided is not None and decided > 0.0 else "keep",
        "lower_bound": decided,
        "confidence": confidence,
        "rows": len(rows),
        "skipped": n_skipped,
        **records,
    }


# --------------------------------------------------------------------------- bounds


def deviation(values: list[float]) -> float:
    """Return the standard deviation of a sample."""
    middle = mean(values) or 0.0
    return math.sqrt(math.fsum((value - middle) ** 2 for value in values) / (len(values) - 1))


def by_student(values: list[float], confidence: float, _: Range | None) -> float:
    quantile = float(student.ppf(confidence, len(values) - 1))
    return (mean(values) or 0.0) - quantile * deviation(values) / math.sqrt(len(values))


def by_bernstein(values: list[float], confidence: float, span: Range | None) -> float | None:
    """Theorem 4 of Maurer and Pontil."""
    if span is None:
        return None
    n, surprise = len(values), math.log(2.0 / (1.0 - confidence))
    near = math.sqrt(2.0 * deviation(values) ** 2 * surprise / n)
    return (mean(values) or 0.0) - near - 7.0 * (span[1] - span[0]) * surprise / (3.0 * (n - 1))


def by_bets(values: list[float], confidence: float, span: Range | None) -> float | None:
    """The least mean at which a gambler with predictable bets has not become rich."""
    if span is None:
        return None
    n, rich, width = len(values), math.log(1.0 / (1.0 - confidence)), span[1] - span[0]
    above = [value - span[0] for value in values]
    bets, total, squares = [], 0.0, 0.0
    for count, value in enumerate(values):
        spread = max(squares - total * total / max(count, 1), 0.0)
        variance = (width**2 / 4.0 + spread) / (count + 1)
        bets.append(math.sqrt(2.0 * rich / (n * variance)))
        total, squares = total + value, squares + value * value

    def is_rich(at: float) -> bool:
        stakes = zip(bets, above, strict=True)
        return math.fsum(math.log1p(min(bet, 0.5 / at) * (v - at)) for bet, v in stakes) >= rich

    low, high = 0.0, math.fsum(above) / n
    if high == 0.0:
        return span[0]
    for _ in range(40):
        middle = (low + high) / 2.0
        low, high = (middle, high) if is_rich(middle) else (low, middle)
    return span[0] + low


BOUNDS = {"betting": by_bets, "empirical-bernstein": by_bernstein, "student-t": by_student}


def two_sided(
    bound: str, values: list[float], confidence: float, span: Range | None, ends: list[float]
) -> list[float | None]:
    """Return an interval either end of which is wrong with half of what is left."""
    half = 1.0 - (1.0 - confidence) / 2.0
    below = BOUNDS[bound](values, half, span)
    turned = None if span is None else (-span[1], -span[0])
    above = BOUNDS[bound]([-value for value in values], half, turned)
    if below is None or above is None:
        return [None, None]
    return [max(below, ends[0]), min(-above, ends[1])]
