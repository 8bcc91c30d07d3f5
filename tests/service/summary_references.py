"""What people are shown of a ranker, computed a second time from the history of its log."""

import math
from itertools import permutations
from typing import Any

from tests.service.references import History, Shown, gain_of, weights_of

MOST_POINTS = 256


def width_of(n_rounds: int) -> int:
    """Return how many rounds a point stands for."""
    width = 1
    while n_rounds > MOST_POINTS * width:
        width *= 2
    return width


def mean(values: list[float]) -> float | None:
    return math.fsum(values) / len(values) if values else None


def around(value: float | None, variance: float) -> dict[str, Any]:
    """Return a value with the interval of a normal one."""
    if value is None or variance == math.inf:
        return {"value": value, "low": None, "high": None}
    reach = 1.96 * math.sqrt(variance)
    return {"value": value, "low": value - reach, "high": value + reach}


def variance_of_mean(values: list[float]) -> float:
    """Return the unbiased variance of a sample, over its size."""
    n = len(values)
    if n < 2:
        return math.inf
    middle = math.fsum(values) / n
    return math.fsum((value - middle) ** 2 for value in values) / (n - 1) / n


def cautious_variance(values: list[float], grade: float) -> float:
    """Return the variance of a mean of values that vary as if each extreme had been seen too."""
    seen = [*values, 0.0, grade]
    middle = math.fsum(seen) / len(seen)
    return math.fsum((value - middle) ** 2 for value in seen) / len(seen) / len(values)


def revealed_of(history: History, name: str) -> list[float]:
    """Return all that was revealed of an item in time."""
    return [one.by_name[name] for one in history.in_time if one.was_seen and name in one.by_name]


def scores_of(shown: list[Shown]) -> list[float]:
    """Return the mean relevance of what was revealed of each list."""
    return [math.fsum(one.by_name.values()) / len(one.top) for one in shown if one.was_seen]


def summary_of(history: History) -> dict[str, Any]:
    """Return all numbers of the summary of a ranker of a fixed list."""
    config, rounds = history.config, history.rounds
    points = points_of(history)
    last = points[-max(len(points) // 10, 1) :]
    explored = [float(one.ranked.explored) for point in last for one in point]
    statuses = [one.answered.status for one in history.in_time if one.answered is not None]
    n_in_time = len(history.in_time)
    is_known = n_in_time + history.n_expired > 0
    return {
        "k": config.k,
        "seq": history.seq,
        "round": len(rounds),
        "version": history.version,
        "items": items_of(history),
        "shows": rounds[-1].order[: rounds[-1].n_shown],
        "best": [str(name) for name in history.alone.best()],
        "exploration_share": mean(explored),
        "answer_rate": n_in_time / (n_in_time + history.n_expired) if is_known else None,
        "counts": {
            "ranks": len(rounds),
            "observed": statuses.count("observed"),
            "none": statuses.count("none"),
            "not_shown": statuses.count("not_shown"),
            "late": history.n_late,
            "expired": history.n_expired,
            "refused": 0,
            "waiting": sum(one.fate == "waiting" for one in rounds),
        },
        "delay_seconds": delays_of(history),
        "series": series_of(history),
        "alarms": [{"round": round, "seq": seq} for round, seq in history.alarms],
        "apprentice": apprentice_of(history) if config.mode == "apprentice" else None,
    }


def points_of(history: History) -> list[list[Shown]]:
    """Return the lists of each point of the series."""
    rounds, width = history.rounds, width_of(len(history.shown))
    return [rounds[first : first + width] for first in range(0, len(rounds), width)]


def items_of(history: History) -> list[dict[str, Any]]:
    config, grade = history.config, history.grade
    beliefs = history.alone.beliefs()
    if config.measure.startswith("DCG") and grade != 1.0:
        beliefs = None
    found = []
    for place, name in enumerate(config.catalogue or ()):
        values = revealed_of(history, name)
        value, low, high = mean(values), None, None
        if value is not None:
            variance = cautious_variance(values, grade)
            seen = [one for one in history.in_time if one.was_seen and name in one.by_name]
            n_taught = sum(one.learned == "learned" for one in seen)
            if config.mode == "apprentice" or 2 * n_taught < len(seen):
                pass  # what it learnt from is not what is told of the item
            elif beliefs is not None:
                value = grade * float(beliefs[0][place])
                variance = grade**2 * float(beliefs[1][place]) ** 2
            reach = 1.96 * math.sqrt(variance)
            low, high = max(value - reach, 0.0), min(value + reach, grade)
        n_top = sum(name in one.order[: min(one.ranked.k, one.n_shown)] for one in history.rounds)
        found.append(
            {
                "name": name,
                "mean": value,
                "low": low,
                "high": high,
                "observed": len(values),
                "shown_top": n_top,
            }
        )
    return found


def delays_of(history: History) -> dict[str, Any] | None:
    """Return delays in seconds; quantiles are the end of the bucket that doubles, in ms."""
    seen = [one for one in history.in_time if one.was_seen and one.said is not None]
    delays = sorted(max(one.said.at - one.event.at, 0) for one in seen if one.said is not None)
    if not delays:
        return None

    def quantile(share: float) -> float:
        rank = next(n for n in range(1, len(delays) + 1) if n >= share * len(delays))
        end = 0
        while end < delays[rank - 1]:
            end = 2 * end + 1
        return min(end, delays[-1]) / 1000.0

    return {"median": quantile(0.5), "p90": quantile(0.9), "max": delays[-1] / 1000.0}


def series_of(history: History) -> dict[str, Any]:
    points, width, n = points_of(history), width_of(len(history.shown)), len(history.shown)
    scored = [[one for one in point if one.fate == "answered"] for point in points]
    lost = lost_of(history)
    found: dict[str, Any] = {
        "round": [min((place + 1) * width, n) - 1 for place in range(len(points))],
        "score": [mean(scores_of(point)) for point in scored],
        "exploration": [mean([float(one.ranked.explored) for one in point]) for point in points],
        "regret": None,
        "full_information": None,
    }
    if lost:
        for place, line in enumerate(("regret", "full_information")):
            found[line] = [
                lost[point][place] if point in lost else None for point in range(len(points))
            ]
    return found


def lost_of(history: History) -> dict[int, tuple[float, float]]:
    """Return what was lost per round against the best list, by point, as it was known last."""
    measure, width = history.config.measure, width_of(len(history.shown))
    names: tuple[str, ...] = ()
    totals: dict[str, float] = {}
    earned, informed, n, found = 0.0, 0.0, 0, {}
    for one, present in zip(history.in_time, history.then, strict=True):
        if present != names:
            names, totals, earned, informed, n = present, dict.fromkeys(present, 0.0), 0.0, 0.0, 0
        told = None if one.answered is None else one.answered.truth
        if told is None or not one.was_seen or one.names != names:
            continue
        gains = {name: gain_of(measure, grade) for name, grade in zip(names, told, strict=True)}
        weights = weights_of(measure, len(names))

        def worth(order: list[str], of: dict[str, float], by: list[float] = weights) -> float:
            return sum(w * of[name] for w, name in zip(by, order, strict=True))

        earned += worth(one.order, gains)
        informed += worth(sorted(names, key=lambda name: -totals[name]), gains)
        totals = {name: totals[name] + gains[name] for name in names}
        n += 1
        best = max(worth(list(order), totals) for order in permutations(names))
        found[one.ranked.round // width] = ((best - earned) / n, (best - informed) / n)
    return found


def apprentice_of(history: History) -> dict[str, Any]:
    """Return what the caller's lists and the apprentice's are worth, and the difference."""
    k, told = history.config.k, [one for one in history.in_time if one.was_seen]
    was_baseline = [one.ranked.mode == "apprentice" and one.ranked.own is not None for one in told]
    baseline = scores_of([one for one, was in zip(told, was_baseline, strict=True) if was])
    best = [revealed_of(history, str(name)) for name in history.alone.best()[:k]]
    n_own = min(len(values) for values in best)
    own, variance = None, math.inf
    if n_own:
        own = sum(math.fsum(values) / len(values) for values in best) / k
        variance = sum(cautious_variance(values, history.grade) for values in best) / k**2
    spread, value = variance_of_mean(baseline), mean(baseline)
    apart = None if own is None or value is None else own - value
    difference = around(apart, variance + spread)
    return {
        "baseline": {**around(value, spread), "n": len(baseline)},
        "own": {**around(own, variance), "n": n_own},
        "difference": difference,
        "better": difference["low"] is not None and difference["low"] > 0.0,
    }
