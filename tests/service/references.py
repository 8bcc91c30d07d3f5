"""What people are shown of a log, computed a second time: plain Python, from events alone."""

import math
from dataclasses import dataclass, field
from typing import Any

from keyhole.contracts.lists import Impression
from keyhole.contracts.rankers import Ranker
from keyhole.rankers import ranker as library_ranker
from keyhole.service.events import Answered, Config, Event, Ranked, body_of
from keyhole.service.store.base import Store
from tests.service.played import NAME


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
            self.alone = self.alone.with_items(config.catalogue or ())
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
        one.learned = "learned" if one.teaches and one.was_seen else "unused"
        if one.learned == "learned":
            self._learn(one, one.by_name, event.seq)

    def _activate(self, event: Event, _: Any) -> None:
        self.shown[str(event.key)].deferred = False

    def _expire(self, _: Event, body: Any) -> None:
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


# --------------------------------------------------------------------------- one event


def chances_of(one: Shown, share: float, learner: Ranker) -> dict[str, Any]:
    """Return how likely what was revealed was, as the library's ranker says it."""
    unknown = dict.fromkeys(("p_marginal", "p_conditional", "chances", "least_chance"))
    mode, k = one.ranked.mode, one.ranked.k
    if mode == "frozen":
        certain = {"p_marginal": 1.0, "p_conditional": 1.0, "chances": [1.0] * k}
        return {**certain, "least_chance": 1.0 if k == len(one.names) else 0.0}
    is_own = one.own is not None and one.own.ranking.tolist()[:k] == list(one.ranked.ranking[:k])
    if one.own is None or not is_own or one.ranked.own is not None:
        return unknown
    chances, least = learner.chances(one.own), learner.least_chance(one.own)
    fair = share if mode == "apprentice" else 1.0
    if chances is None:
        marginal = None if math.isnan(one.own.propensity) else fair * one.own.propensity
        return {**unknown, "p_marginal": marginal, "p_conditional": marginal}
    past = learner.chance_given_the_past(one.own)
    return {
        "p_marginal": fair * float(chances[-1]),
        "p_conditional": None if past is None else fair * past,
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
