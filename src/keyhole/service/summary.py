"""The data of dashboard pages, and of their JSON, as plain dictionaries."""

import math
from typing import Any

import msgspec

from keyhole.measures import measure as named_measure
from keyhole.service.counters import ItemTally, Point, Tally, interval
from keyhole.service.errors import NoSuchResource
from keyhole.service.events import Answered, Event, Ranked, body_of
from keyhole.service.ranker_state import LiveRanker

_FEW_ROUNDS = 100
_FEW_ALARMS = 2
"""The number of alarms from which their spacing is meaningful."""


def summary(live: LiveRanker) -> dict[str, Any]:
    """Return the data of a ranker's page."""
    return {**brief(live), "sha256": live.sha256()}


def brief(live: LiveRanker) -> dict[str, Any]:
    """Return the same data without the hash, which is slow for a large state."""
    config, tally = live.config, live.tally
    is_fixed = config.catalogue is not None
    n_answered = tally.observed + tally.none + tally.not_shown
    return {
        "name": live.name,
        "mode": config.mode,
        "ranker": config.spec["name"],
        "measure": config.measure,
        "is_loss": named_measure(config.measure).is_loss,
        "k": config.k,
        "seq": live.seq,
        "round": live.round,
        "version": live.version,
        "simulation": config.simulation,
        "verdict": config.verdict,
        "code": msgspec.to_builtins(live.reply().code),
        "items": _items(live) if is_fixed else None,
        "shows": list(tally.shown) or None,
        "best": _best(live),
        "exploration_share": _share(tally.points, tally.ranks),
        "answer_rate": _ratio(n_answered, n_answered + tally.expired),
        "counts": {
            "ranks": tally.ranks,
            "observed": tally.observed,
            "none": tally.none,
            "not_shown": tally.not_shown,
            "late": tally.late,
            "expired": tally.expired,
            "refused": tally.refused,
            "waiting": len(live.waiting),
        },
        "delay_seconds": _delays(tally),
        "series": _series(tally),
        "alarms": [{"round": round, "seq": seq} for round, seq in tally.alarms],
        "apprentice": _apprentice(live)
        if config.mode == "apprentice" and not live.is_preparing
        else None,
        "warnings": _warnings(live),
    }


def event_page(live: LiveRanker, event_id: str) -> dict[str, Any]:
    """Return an impression, its feedback, and why this list was shown."""
    event = live.store.find(live.name, event_id, "rank")
    if event is None:
        raise NoSuchResource(f"There is no event {event_id!r} of ranker {live.name!r}.")
    ranked: Ranked = body_of(event)
    said = live.store.find(live.name, event_id, "feedback")
    answered: Answered | None = None if said is None else body_of(said)
    names = live.names_of(ranked)
    n_shown = len(ranked.ranking) - ranked.n_excluded
    return {
        "ranker": live.name,
        "event_id": event_id,
        "seq": event.seq,
        "at": event.at,
        "round": ranked.round,
        "mode": ranked.mode,
        "k": ranked.k,
        "ranking": [names[index] for index in ranked.ranking[:n_shown]],
        "excluded": [names[index] for index in ranked.ranking[n_shown:]],
        "own": None if ranked.own is None else [names[index] for index in ranked.own],
        "explored": ranked.explored,
        "p_marginal": ranked.p_marginal,
        "p_conditional": ranked.p_conditional,
        "chances": None if ranked.chances is None else list(ranked.chances),
        "model_seq": ranked.model_seq,
        "deferred": ranked.deferred,
        "waiting": event.seq in live.waiting,
        "outcome": _outcome(live, event, said, answered),
        "feedback": _feedback(live, event, said, answered),
        "why": _why(live, ranked, event, said, answered),
    }


def _outcome(live: LiveRanker, event: Event, said: Event | None, answered: Answered | None) -> str:
    """Return the feedback status of a list."""
    if said is not None and answered is not None:
        return live.outcome(answered, said.seq)
    waited = live.waiting.get(event.seq)
    if waited is None:
        return "expired"
    return "deferred" if waited.deferred else "waiting"


def _feedback(
    live: LiveRanker, event: Event, said: Event | None, answered: Answered | None
) -> dict[str, Any] | None:
    if said is None or answered is None:
        return None
    return {
        "seq": said.seq,
        "at": said.at,
        "delay_seconds": (said.at - event.at) / 1000.0,
        "status": answered.status,
        "relevance": list(answered.relevance),
        "learned": live.outcome(answered, said.seq),
    }


_BECAME = {
    "deferred": "Deferred: the feedback timer starts once the list is activated.",
    "waiting": "Waiting for feedback.",
    "expired": "Expired without feedback.",
    "learned": "Feedback arrived, and the ranker learnt from it.",
    "unused": "Feedback arrived, but the ranker did not learn from it.",
    "late": "Feedback arrived too late to learn from; evaluations use it.",
    "refused": "Feedback was refused: its numbers are too large to learn from.",
    "unknown": "Feedback was learnt from or refused; the log no longer tells which.",
}


def _why(
    live: LiveRanker,
    ranked: Ranked,
    event: Event,
    said: Event | None,
    answered: Answered | None,
) -> list[str]:
    """Return sentences on why a list was shown and whether it was learnt from."""
    name, known = live.config.spec["name"], f"as of event {ranked.model_seq}"
    if ranked.mode == "frozen":
        why = [f"The ranker is frozen: this is the best list of {name} {known}."]
    elif ranked.own is not None:
        why = ["The ranker is an apprentice: the caller's list was shown."]
        why.append(
            "The apprentice's list had the same top items, so it learns from this round."
            if ranked.teaches
            else "The apprentice's list had different top items: it cannot learn from this round."
        )
    elif ranked.explored:
        why = [f"The ranker explored: this list differs from the best list of {name} {known}."]
    else:
        why = [f"The ranker did not explore: this is the best list of {name} {known}."]
    if ranked.n_excluded:
        n = ranked.n_excluded
        why.append(f"{n} item{' was' if n == 1 else 's were'} excluded by the caller.")
    if ranked.p_marginal is not None and ranked.own is None:
        why.append(
            f"The top items of this list had a marginal propensity of {ranked.p_marginal:.3g}."
        )
    why.append(_BECAME[_outcome(live, event, said, answered)])
    return why


def _best(live: LiveRanker) -> list[str] | None:
    """Return the ranker's current best list; None without a fixed list, or while code compiles.

    During compilation the learner is not called: the page would compile its code a second time.
    """
    if live.config.catalogue is None or live.is_preparing:
        return None
    return [str(name) for name in live.learner.best()]


def _items(live: LiveRanker) -> list[dict[str, Any]]:
    """Return an estimate per item: the ranker's belief, or else the mean of all feedback.

    Beliefs are shown if the ranker has learnt from most feedback. An apprentice learns from few
    rounds but is evaluated on all, so its beliefs could contradict its evaluation.
    """
    grade = float(live.config.request.get("max_grade", 1.0))
    beliefs = live.learner.beliefs()
    if named_measure(live.config.measure).exponential_gain and grade != 1.0:
        beliefs = None  # they are gains, not shares of relevance
    if live.config.mode == "apprentice":
        beliefs = None
    found = []
    for place, name in enumerate(live.config.catalogue or ()):
        item = live.tally.items.get(name, ItemTally())
        mean, low, high = item.mean(), None, None
        if mean is not None:
            variance = item.variance_of_mean(grade)
            if beliefs is not None and 2 * item.untaught <= item.observed:
                mean = grade * float(beliefs[0][place])
                variance = (grade * float(beliefs[1][place])) ** 2
            around = interval(mean, variance)
            low, high = max(around["low"], 0.0), min(around["high"], grade)
        found.append(
            {
                "name": name,
                "mean": mean,
                "low": low,
                "high": high,
                "observed": item.observed,
                "shown_top": item.shown_top,
            }
        )
    return found


def _ratio(part: float, whole: float) -> float | None:
    return part / whole if whole else None


def _share(points: list[Point], ranks: int) -> float | None:
    """Return the share of exploration in the last tenth of the points."""
    last = points[-max(len(points) // 10, 1) :]
    return _ratio(sum(p.n_explored for p in last), sum(p.n for p in last)) if ranks else None


def _delays(tally: Tally) -> dict[str, Any] | None:
    median = tally.delay_quantile(0.5)
    if median is None:
        return None
    return {
        "median": median,
        "p90": tally.delay_quantile(0.9),
        "max": tally.longest_delay / 1000.0,
    }


def _series(tally: Tally) -> dict[str, Any]:
    points = [point for point in tally.points if point.n]
    truths = [point for point in points if point.n_true]
    knows_truth = bool(truths)
    return {
        "round": [min(point.last_round, tally.ranks - 1) for point in points],
        "score": [_ratio(point.score, point.n_scored) for point in points],
        "exploration": [_ratio(point.n_explored, point.n) for point in points],
        "regret": [_true(point, point.regret) for point in points] if knows_truth else None,
        "full_information": [_true(point, point.full_information) for point in points]
        if knows_truth
        else None,
    }


def _true(point: Point, value: float) -> float | None:
    return value if point.n_true else None


def _apprentice(live: LiveRanker) -> dict[str, Any]:
    """Return the value of the caller's lists, of the apprentice's, and their difference.

    The value of a list is the mean relevance of its first k items: observed for the caller's lists;
    for the apprentice's, estimated from every observation of its items, which assumes a stationary
    audience. If requests bring their own documents, only the share of rounds that showed the
    apprentice's lists counts.
    """
    tally, k = live.tally, live.config.k
    baseline, own = tally.baseline.mean(), tally.own.mean()
    variance, n_own = tally.own.variance_of_mean(), tally.own.n
    if live.config.catalogue is not None:
        grade = float(live.config.request.get("max_grade", 1.0))
        top = [tally.items.get(str(name), ItemTally()) for name in live.learner.best()[:k]]
        n_own = min(item.observed for item in top)
        own = sum(item.mean() or 0.0 for item in top) / k if n_own else None
        variance = sum(item.variance_of_mean(grade) for item in top) / k**2 if n_own else math.inf
    spread = tally.baseline.variance_of_mean()
    apart = None if own is None or baseline is None else own - baseline
    difference = interval(apart, variance + spread)
    return {
        "baseline": {**interval(baseline, spread), "n": tally.baseline.n},
        "own": {**interval(own, variance), "n": n_own},
        "difference": difference,
        "better": difference["low"] is not None and difference["low"] > 0.0,
    }


def _warnings(live: LiveRanker) -> list[str]:
    """Return warnings for the owner of a ranker."""
    config, tally, found = live.config, live.tally, []
    if config.verdict is not None:
        found.append(
            f"{config.measure} cannot be learnt from the relevance of the top {config.k}: "
            f"regret may grow linearly."
        )
    if len(tally.alarms) >= _FEW_ALARMS:
        rounds = [round for round, _ in tally.alarms]
        between = (rounds[-1] - rounds[0]) / (len(rounds) - 1)
        if len(live.waiting) > between / 10.0:
            found.append(
                f"{len(live.waiting)} lists wait for feedback, and preferences seem to change "
                f"every {between:.0f} rounds: the ranker notices changes late."
            )
    n_answered = tally.observed + tally.none + tally.not_shown
    if tally.expired > n_answered and tally.expired > 100:
        found.append(
            "More than half of all lists expire without feedback: is `wait_seconds` too short?"
        )
    best = _best(live)
    if config.mode == "apprentice" and best is not None and config.apprentice_share == 0.0:
        unseen = [name for name in best[: config.k] if name not in tally.items]
        if unseen and tally.baseline.n > _FEW_ROUNDS:
            found.append(
                f"The apprentice would show {unseen[0]!r}, which has no feedback yet: vary the "
                f"baseline, or set `apprentice_share`."
            )
    never_shown = config.catalogue is None and config.apprentice_share == 0.0
    if config.mode == "apprentice" and never_shown and tally.baseline.n > _FEW_ROUNDS:
        found.append(
            "The apprentice's lists have no feedback, because they are never shown: set "
            "`apprentice_share`."
        )
    if tally.refused:
        found.append(f"{tally.refused} feedback events were refused: too large to learn from.")
    return found
