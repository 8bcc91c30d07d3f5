"""Logs of small services, in which everything happens that can, for tests of numbers."""

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from keyhole.service.commands import (
    Activate,
    Configure,
    Expire,
    FeedbackReply,
    FeedbackRequest,
    GiveFeedback,
    Rank,
    RankerRequest,
    RankReply,
    RankRequest,
)
from keyhole.service.engine import Engine
from keyhole.service.store.memory import MemoryStore

NAME = "animals"
ANIMALS = ("ant", "bee", "cat", "dog", "eel", "fox")
START_MS = 1_700_000_000_000
PATIENCE = 15
"""Rounds after which feedback is no longer waited for."""


@dataclass
class Game:
    """A ranker, what its owner changes in which round, and what its crowd is like."""

    asked: dict[str, Any]
    n_rounds: int = 150
    seed: int = 0
    changes: dict[int, dict[str, Any]] = field(default_factory=dict)
    excluding: float = 0.0
    """The share of rounds that exclude items, where the mode lets them."""
    lost: float = 0.12
    delay: float = 3.0
    """Rounds until feedback comes, in the mean."""
    turns: int | None = None
    """The round from which on people like what they did not."""


class Crowd:
    """People who ask for lists, and answer early, late, out of order, oddly or never."""

    def __init__(self, game: Game) -> None:
        self.game, self.draws = game, random.Random(game.seed)
        self.engine, self.now, self.asked = Engine(MemoryStore()), START_MS, dict(game.asked)
        self.due: dict[int, list[str]] = {}
        self.shown: dict[str, tuple[int, list[str]]] = {}
        """Lists that wait, with their round and what was revealed."""
        self.ranked: dict[str, RankReply] = {}
        self.told: dict[str, FeedbackReply] = {}
        self.forgotten: list[tuple[str, list[str]]] = []
        self.likes = {name: self.draws.random() for name in (*ANIMALS, "gnu", "hen")}

    def play(self) -> "Crowd":
        """Play all rounds."""
        self._configure({})
        for round in range(self.game.n_rounds):
            if round in self.game.changes:
                self._configure(self.game.changes[round])
            if round == self.game.turns:
                self.likes = {name: 1.0 - like for name, like in self.likes.items()}
            self.now += self.draws.randrange(1, 4_000)
            self._ask(round)
            for event_id in self.due.pop(round, []):
                self._answer(event_id)
            if round % 7 == 0:
                self._give_up(round)
        return self

    def _configure(self, changed: dict[str, Any]) -> None:
        self.asked |= changed
        request = RankerRequest(**{"seed": self.game.seed, **self.asked})
        self.engine.execute(Configure(NAME, request), self.now)

    def _ask(self, round: int) -> None:
        live, draws = self.engine.rankers[NAME], self.draws
        names = list(live.config.catalogue or ())
        asked: dict[str, Any] = {}
        if live.config.mode == "apprentice":
            if draws.random() < 0.8:
                asked["baseline"] = draws.sample(names, draws.randint(1, len(names)))
        elif draws.random() < self.game.excluding:
            most = len(names) - live.config.k
            asked["exclude"] = draws.sample(names, draws.randint(min(1, most), most))
        deferred = draws.random() < 0.1
        command = Rank(NAME, RankRequest(deferred=deferred, **asked))
        reply = self.engine.execute(command, self.now)
        self.ranked[reply.event_id] = reply
        self.shown[reply.event_id] = (round, reply.ranking[: reply.k])
        if deferred and draws.random() < 0.7:
            self.now += draws.randrange(1, 50)
            self.engine.execute(Activate(NAME, reply.event_id), self.now)
        if draws.random() >= self.game.lost:
            wait = int(draws.expovariate(1.0 / self.game.delay)) if self.game.delay else 0
            self.due.setdefault(round + wait, []).append(reply.event_id)

    def _answer(self, event_id: str) -> None:
        if event_id in self.shown:
            self._tell(event_id, self.shown.pop(event_id)[1])

    def _give_up(self, round: int) -> None:
        """Stop waiting for what was shown long ago; of some of it feedback comes all the same."""
        for event_id, top in self.forgotten:
            if self.draws.random() < 0.5:
                self._tell(event_id, top)
        old = [each for each, (shown, _) in self.shown.items() if round - shown > PATIENCE]
        live = self.engine.rankers[NAME]
        self.now += 1
        self.engine.execute(Expire(NAME, tuple(live.seq_of[each] for each in old)), self.now)
        self.forgotten = [(each, self.shown.pop(each)[1]) for each in old]

    def _tell(self, event_id: str, top: list[str]) -> None:
        live, draws = self.engine.rankers[NAME], self.draws
        grade = int(self.asked.get("max_grade", 1))
        truth = {name: float(self._grade(name, grade)) for name in self.likes}
        relevance = [truth[name] for name in top]
        told: dict[str, Any] = {"relevance": relevance}
        fate = draws.random()
        if fate < 0.06:
            told = {"status": "not_shown"}
        elif fate < 0.16:
            told = {"status": "none"}
        if live.config.simulation and draws.random() < 0.9:
            event = live.store.find(NAME, event_id, "rank")
            assert event is not None
            names = live.names_of(live.ranked(event.seq))
            told["truth"] = {name: truth[name] for name in names}
        self.now += draws.choice((0, 1, 7, 60, 900))
        given = GiveFeedback(NAME, event_id, FeedbackRequest(**told))
        self.told[event_id] = self.engine.execute(given, self.now)

    def _grade(self, name: str, grade: int) -> int:
        return sum(self.draws.random() < self.likes[name] for _ in range(grade))


def played(game: Game) -> Crowd:
    """Return a crowd that has played with a ranker, and its engine."""
    return Crowd(game).play()


def numbers_in(told: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield every number and flag in plain data, with where it is; places in lists are a star."""
    if isinstance(told, dict):
        for key, value in told.items():
            yield from numbers_in(value, f"{path}.{key}" if path else str(key))
    elif isinstance(told, list | tuple):
        for value in told:
            yield from numbers_in(value, f"{path}.*")
    elif isinstance(told, bool | int | float):
        yield path, told
