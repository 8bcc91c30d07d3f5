"""What people are shown of a log, computed a second time: plain Python, from events alone."""

import math
from dataclasses import dataclass, field
from itertools import permutations
from typing import Any

from keyhole.contracts import Impression, Ranker
from keyhole.rankers import ranker as library_ranker
from keyhole.service.events import Answered, Config, Event, Ranked, body_of
from keyhole.service.store.base import Store
from tests.service.played import NAME

MOST_POINTS = 256


@dataclass
class Shown:
    """A list that was shown: its event, what was said of it, and what became of it."""

    event: Event
    ranked: Ranked
    config: Config
    round: int
    own: Impression | None = None
    """What the library's ranker would have shown itself."""
    said: Event | None = None
    answered: Answered | None = None
    fate: str = "waiting"
    """Or ``answered`` in time, or ``expired``."""
    deferred: bool = False
    learned: str = ""
    teaches: bool = True
    likely: dict[str, Any] = field(default_factory=dict)
    """How likely what was revealed was."""
    best: list[str] = field(default_factory=list)
    """What the library's ranker believed best."""

    @property
    def names(self) -> tuple[str, ...]:
        return self.config.catalogue or ()

    @property
    def order(self) -> list[str]:
        return [self.names[index] for index in self.ranked.ranking]

    @property
    def n_shown(self) -> int:
        return len(self.ranked.ranking) - self.ranked.n_excluded

    @property
    def top(self) -> list[str]:
        return self.order[: self.ranked.k]

    @property
    def was_seen(self) -> bool:
        return self.answered is not None and self.answered.status != "not_shown"

    @property
    def by_name(self) -> dict[str, float]:
        """The relevance that was revealed."""
        assert self.answered is not None
        return dict(zip(self.top, self.answered.relevance, strict=True))


@dataclass
class History:
    """What the events of a log tell, one after the other, and a ranker that lives through them."""

    store: Store
    shown: dict[str, Shown] = field(default_factory=dict)
    in_time: list[Shown] = field(default_factory=list)
    """Lists in the order in which feedback on them came, if it came in time."""
    heard: list[Shown] = field(default_factory=list)
    """The same, and those of which it came late."""
    configs: dict[int, Config] = field(default_factory=dict)
    then: list[tuple[str, ...]] = field(default_factory=list)
    """The items of the ranker when each of ``in_time`` was told."""
    n_late: int = 0
    n_expired: int = 0
    alarms: list[tuple[int, int]] = field(default_factory=list)
    seq: int = 0

    def __post_init__(self) -> None:
        self.alone: Ranker
        for event in self.store.events(NAME):
            assert event.seq == self.seq + 1
            getattr(self, f"_{event.kind}")(event, body_of(event))
            self.seq = event.seq

    @property
    def config(self) -> Config:
        return self.configs[self.version]

    @property
    def version(self) -> int:
        return max(self.configs)

    @property
    def grade(self) -> float:
        return float(self.config.request.get("max_grade", 1.0))

    @property
    def rounds(self) -> list[Shown]:
        return list(self.shown.values())

    def _config(self, event: Event, config: Config) -> None:
        if not self.configs:
            self.alone = library_ranker(config.spec)
        elif config.catalogue != self.config.catalogue:
            self.alone = self.alone.with_items(config.catalogue)
        self.configs[event.seq] = config

    def _rank(self, event: Event, ranked: Ranked) -> None:
        one = Shown(event, ranked, self.config, len(self.shown), deferred=ranked.deferred)
        if self.config.mode != "frozen":
            one.own = self.alone.rank(round=len(self.shown))
        one.best = [str(name) for name in self.alone.best()]
        one.teaches = self._teaches(one)
        one.likely = chances_of(one, self.config.apprentice_share, self.alone)
        self.shown[str(event.key)] = one

    def _teaches(self, one: Shown) -> bool:
        """Return whether what a list shows is what the ranker itself would have shown."""
        if one.own is None:
            return False
        own, k = one.own.ranking.tolist(), one.ranked.k
        if self.config.mode == "online":
            return list(one.ranked.ranking[:k]) == own[:k]
        if self.config.apprentice_share > 0.0:
            return one.ranked.own is None
        return set(one.ranked.ranking[:k]) == set(own[:k])

    def _feedback(self, event: Event, answered: Answered) -> None:
        one = self.shown[str(event.key)]
        one.said, one.answered = event, answered
        self.heard.append(one)
        if one.fate == "expired":
            one.learned, self.n_late = "late", self.n_late + 1
            return
        one.fate = "answered"
        self.in_time.append(one)
        self.then.append(self.config.catalogue or ())
        one.learned = "pending" if one.teaches and one.was_seen else "unused"
        if one.learned == "pending":
            self._learn(one, one.by_name, event.seq)

    def _activate(self, event: Event, _: Any) -> None:
        self.shown[str(event.key)].deferred = False

    def _expire(self, event: Event, body: Any) -> None:
        for one in self.rounds:
            if one.event.seq in body.seqs:
                assert one.fate == "waiting"
                one.fate, self.n_expired = "expired", self.n_expired + 1
                missing = self.config.missing
                if missing is not None and not one.deferred and one.teaches:
                    self._learn(one, dict.fromkeys(one.top, missing), one.event.seq)

    def _learn(self, one: Shown, by_name: dict[str, float], seq: int) -> None:
        assert one.own is not None
        before = self.alone.n_alarms
        own_top = [one.names[index] for index in one.own.ranking.tolist()[: one.ranked.k]]
        self.alone.update(one.own, [by_name[name] for name in own_top])
        if self.alone.n_alarms > before:
            self.alarms.append((len(self.shown), seq))


# --------------------------------------------------------------------------- measures


def weights_of(measure: str, n_items: int) -> list[float]:
    """Return what a gain counts at each position, more being better."""
    name, _, cutoff = measure.partition("@")
    depth = int(cutoff or n_items)
    by_name = {
        "DCG": lambda place: 1.0 / math.log2(place + 2) if place < depth else 0.0,
        "Precision": lambda place: float(place < depth),
    }
    if name.endswith("Loss"):  # of positions or of pairs, which no order tells apart
        return [-(place + 1.0) for place in range(n_items)]
    return [by_name[name](place) for place in range(n_items)]


def gain_of(measure: str, grade: float) -> float:
    """Return what an item of a grade gains."""
    return 2.0**grade - 1.0 if measure.startswith("DCG") else grade


# --------------------------------------------------------------------------- the summary


def width_of(n_rounds: int) -> int:
    """Return how many rounds a point stands for."""
    width = 1
    while n_rounds > MOST_POINTS * width:
        width *= 2
    return width


def mean(values: list[float]) -> float | None:
    return math.fsum(values) / len(values) if values else None


def around(value: float, variance: float) -> dict[str, Any]:
    """Return a value with the interval of a normal one."""
    if variance == math.inf:
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
    """Return the variance of a mean as if one more of each extreme had been seen."""
    seen = [*values, 0.0, grade]
    middle = math.fsum(seen) / len(seen)
    return math.fsum((value - middle) ** 2 for value in seen) / len(seen) ** 2


def revealed_of(history: History, name: str) -> list[float]:
    """Return all that was revealed of an item in time."""
    return [
        one.by_name[name] for one in history.in_time if one.was_seen and name in one.by_name
    ]


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
            if beliefs is not None:
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
        informed += worth(sorted(names, key=lambda name: -totals[name]), gains)  # noqa: B023
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
    own = sum(mean(values) or 0.0 for values in best) / k
    n_own = min(len(values) for values in best)
    variance = math.inf
    if n_own:
        variance = sum(cautious_variance(values, history.grade) for values in best) / k**2
    spread, value = variance_of_mean(baseline), mean(baseline) or 0.0
    difference = around(own - value, variance + spread)
    return {
        "baseline": {**around(value, spread), "n": len(baseline)},
        "own": {**around(own, variance), "n": n_own},
        "difference": difference,
        "better": difference["low"] is not None and difference["low"] > 0.0,
    }


# --------------------------------------------------------------------------- one event


def chances_of(one: Shown, share: float, learner: Ranker) -> dict[str, Any]:
    """Return how likely what was revealed was, as the library's ranker says it."""
    unknown = dict.fromkeys(("p_marginal", "p_conditional", "chances", "least_chance"))
    mode, k = one.ranked.mode, one.ranked.k
    if mode == "frozen":
        least = 1.0 if k == len(one.names) else 0.0
        certain = {"p_marginal": 1.0, "p_conditional": 1.0}
        return {**certain, "chances": [1.0] * k, "least_chance": least}
    is_own = one.own is not None and one.own.ranking.tolist()[:k] == list(one.ranked.ranking[:k])
    if one.own is None or not is_own or one.ranked.own is not None:
        return unknown
    chances, least = learner.chances(one.own), learner.least_chance(one.own)
    known = not math.isnan(one.own.propensity)
    if chances is None:
        marginal = one.own.propensity if known else None
        return {**unknown, "p_marginal": marginal, "p_conditional": marginal}
    fair = share if mode == "apprentice" else 1.0
    return {
        "p_marginal": fair * float(chances[-1]),
        "p_conditional": learner.chance_given_the_past(one.own),
        "chances": [fair * float(chance) for chance in chances],
        "least_chance": None if least is None else fair * least,
    }


def page_of(one: Shown) -> dict[str, Any]:
    """Return all that the page of an event says of a list."""
    likely = {name: one.likely[name] for name in ("p_marginal", "p_conditional", "chances")}
    said, answered, own = one.said, one.answered, one.ranked.own
    feedback = None
    if said is not None and answered is not None:
        feedback = {
            "seq": said.seq,
            "at": said.at,
            "delay_seconds": (said.at - one.event.at) / 1000.0,
            "status": answered.status,
            "relevance": list(answered.relevance),
            "learned": one.learned,
        }
    return {
        "event_id": one.event.key,
        "seq": one.event.seq,
        "at": one.event.at,
        "round": one.round,
        "model_seq": one.event.seq - 1,
        "explored": one.own is not None and one.own.explored,
        **likely,
        "mode": one.ranked.mode,
        "k": min(one.config.k, len(one.names)),
        "ranking": one.order[: one.n_shown],
        "excluded": one.order[one.n_shown :],
        "own": None if own is None else [one.names[index] for index in own],
        "deferred": one.ranked.deferred,
        "waiting": one.fate == "waiting",
        "feedback": feedback,
    }


def order_of(one: Shown) -> list[str] | None:
    """Return what a list must have been: None where it was the caller's."""
    if one.ranked.own is not None:
        return None
    own = one.best if one.own is None else [str(name) for name in one.own.items]
    excluded = set(one.order[one.n_shown :])
    return sorted(own, key=lambda name: name in excluded)
