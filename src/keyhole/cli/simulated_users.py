"""Crowds that play the client of a service: users of a world, who answer late or not at all."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from keyhole.base.errors import FloatArray, InvalidInput, check_integer, check_number
from keyhole.contracts.measures import Measure
from keyhole.contracts.worlds import World
from keyhole.lab.kinds.games import GameSpec, build_on, play_game, summary
from keyhole.measures import measure as named_measure
from keyhole.worlds.table import Recorded

if TYPE_CHECKING:  # its library may be missing, and other commands need none
    from keyhole.client import AsyncClient, RankerInfo, Ranking


class Fate(NamedTuple):
    """What becomes of the feedback of a round: whether it is lost, and how long it takes."""

    is_lost: bool
    rounds: int
    seconds: float


@dataclass(frozen=True)
class Crowd:
    """Who comes in which round, what they like, and when they say so.

    All of it follows from the seed and the round, and nothing from what is shown: every ranker
    meets the same users, whose relevance is what :func:`keyhole.play` would draw.

    Parameters
    ----------
    world, seed
        Where relevance comes from.
    lose
        The share of feedback that never arrives.
    delay_rounds, delay_seconds
        How late feedback is on average; each delay is drawn evenly from 0 to twice that.
    changes_at
        The round from which on the first item is liked as the last one was, and so on.
    """

    world: World
    seed: int = 0
    lose: float = 0.0
    delay_rounds: float = 0.0
    delay_seconds: float = 0.0
    changes_at: int | None = None

    def __post_init__(self) -> None:
        check_number(self.lose, "`lose`", at_least=0.0, at_most=1.0)
        check_number(self.delay_rounds, "`delay_rounds`", at_least=0.0, at_most=1e6)
        check_number(self.delay_seconds, "`delay`", at_least=0.0, at_most=86_400.0)

    @cached_property
    def _later(self) -> World:
        return self.world.relabelled(np.arange(self.world.n_items)[::-1])

    def relevance(self, round: int) -> FloatArray:
        """Return the relevance by item for the user of a round."""
        has_changed = self.changes_at is not None and round >= self.changes_at
        return (self._later if has_changed else self.world).relevance(round, seed=self.seed)

    def fate(self, round: int) -> Fate:
        """Return what becomes of the feedback of a round."""
        drawn = np.random.default_rng((self.seed, round)).random(3)
        rounds = int(drawn[1] * (2 * self.delay_rounds + 1))
        return Fate(bool(drawn[0] < self.lose), rounds, float(drawn[2] * 2 * self.delay_seconds))


@dataclass
class Seen:
    """What the rounds that were played came to; a round that is not in ``scores`` was not."""

    scores: dict[int, float] = field(default_factory=dict)
    relevance: dict[int, FloatArray] = field(default_factory=dict)
    top_relevance: float = 0.0
    n_lost: int = 0
    learned: dict[str, int] = field(default_factory=dict)
    """Feedback by what became of it."""
    seconds: float = 0.0

    @property
    def mean_relevance(self) -> float:
        """The mean relevance of the items whose relevance is told, over the rounds."""
        return self.top_relevance / len(self.scores) if self.scores else 0.0


class Visits:
    """The rounds of a crowd, played through a client.

    Parameters
    ----------
    client, info
        The client, and the ranker as the service describes it: a fixed list.
    names
        The item of the list that each item of the world is.
    """

    def __init__(
        self,
        client: "AsyncClient",
        info: "RankerInfo",
        names: list[str],
        crowd: Crowd,
    ) -> None:
        self.seen = Seen()
        self.measure: Measure = named_measure(info.request.get("measure", "DCG"))
        self._client, self._ranker, self._crowd = client, info.name, crowd
        self._names, self._index = names, {name: item for item, name in enumerate(names)}
        self._is_simulation = bool(info.request.get("simulation", False))
        self._due: dict[int, list[tuple[Ranking, int]]] = {}

    async def play(
        self,
        rounds: int,
        *,
        rate: float | None = None,
        concurrency: int = 1,
        watch: Callable[[Seen], None] | None = None,
    ) -> Seen:
        """Play rounds, and wait until all feedback that is not lost has been given.

        Parameters
        ----------
        rate
            Rounds that begin each second; as fast as they can where it is None.
        concurrency
            Users at once.
        watch
            Called after every round.
        """
        began = time.perf_counter()
        coming = iter(range(rounds))

        async def serve_users(group: asyncio.TaskGroup) -> None:
            for round in coming:
                if rate is not None:
                    await asyncio.sleep(began + round / rate - time.perf_counter())
                await self._play_round(round, group)
                self.seen.seconds = time.perf_counter() - began
                if watch is not None:
                    watch(self.seen)

        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(concurrency):
                    group.create_task(serve_users(group))
            for due in sorted(self._due):
                await self._answer_all(due)
        except BaseExceptionGroup as failed:
            raise failed.exceptions[0] from None
        self.seen.seconds = time.perf_counter() - began
        return self.seen

    async def _play_round(self, round: int, group: asyncio.TaskGroup) -> None:
        for due in [due for due in self._due if due <= round]:
            await self._answer_all(due)
        ranking = await self._client.rank(self._ranker)
        relevance, seen = self._crowd.relevance(round), self.seen
        shown = np.array([self._index[name] for name in ranking.ranking])
        seen.scores[round] = float(self.measure(relevance, shown))
        seen.relevance[round] = relevance
        seen.top_relevance += float(relevance[shown[: ranking.k]].mean())
        fate = self._crowd.fate(round)
        if fate.is_lost:
            seen.n_lost += 1
        elif fate.seconds:
            group.create_task(self._answer_later(ranking, round, fate))
        else:
            self._due.setdefault(round + fate.rounds, []).append((ranking, round))
            await self._answer_all(round)

    async def _answer_later(self, ranking: "Ranking", round: int, fate: Fate) -> None:
        await asyncio.sleep(fate.seconds)
        if fate.rounds:
            self._due.setdefault(round + fate.rounds, []).append((ranking, round))
        else:
            await self._answer(ranking, round)

    async def _answer_all(self, due: int) -> None:
        for ranking, round in self._due.pop(due, []):
            await self._answer(ranking, round)

    async def _answer(self, ranking: "Ranking", round: int) -> None:
        """Tell the relevance of the first items, and in a simulation that of all."""
        relevance = self._crowd.relevance(round)
        told = [float(relevance[self._index[name]]) for name in ranking.ranking[: ranking.k]]
        truth = dict(zip(self._names, map(float, relevance), strict=True))
        result = await self._client.feedback(
            self._ranker, ranking, told, truth=truth if self._is_simulation else None
        )
        counts = self.seen.learned
        counts[result.learned] = counts.get(result.learned, 0) + 1


async def find_or_create(
    client: "AsyncClient", name: str, world: World, asked: dict[str, Any], wait_seconds: float
) -> "RankerInfo":
    """Return the ranker of a name, created if it is not there, or raise if it is another.

    ``asked`` may have items, a measure and k.
    """
    there = {info.name: info for info in await client.rankers()}
    if name not in there:
        wanted = {"items": made_up_names(world.n_items), "k": 1, "measure": "DCG", **asked}
        max_grade = max(1.0, world.max_grade)
        return await client.put_ranker(
            name, **wanted, max_grade=max_grade, wait_seconds=wait_seconds, simulation=True
        )
    request = {"k": 1, "measure": "DCG", "items": None, **there[name].request}
    for what in ("k", "measure"):
        if asked.get(what, request[what]) != request[what]:
            raise InvalidInput(
                f"The {what} of the ranker {name}, which is there already, is {request[what]}, "
                f"got {asked[what]}."
            )
    items = request["items"]
    if items is None or sorted(asked.get("items", items)) != sorted(items):
        raise InvalidInput(
            f"The ranker {name}, which is there already, must rank the items of the crowd, got one "
            f"that ranks {'documents' if items is None else 'others'}."
        )
    check_integer(
        world.n_items, f"The number of items of the crowd of {name}", at_least=len(items),
        at_most=len(items),
    )  # fmt: skip
    return there[name]


def made_up_names(n_items: int) -> list[str]:
    """Return names for items that have none.

    Examples
    --------
    >>> made_up_names(3), made_up_names(10)[0]
    (['item-1', 'item-2', 'item-3'], 'item-01')
    """
    width = len(str(n_items))
    return [f"item-{number:0{width}d}" for number in range(1, n_items + 1)]


def judge(seen: Seen, measure: Measure, seed: int) -> dict[str, Any]:
    """Return what rounds came to, beside the best fixed list and full information.

    Both are of the same users: those of the rounds that were played.
    """
    rounds = sorted(seen.scores)
    n_rounds = check_integer(len(rounds), "The number of rounds played", at_least=1)
    users = Recorded(np.array([seen.relevance[round] for round in rounds]))
    game = build_on(
        GameSpec(ranker="ftpl", reveal="full", measure=measure.label, rounds=n_rounds, seed=seed),
        users,
        [],
    )
    informed = summary(game, play_game(game))
    score = float(np.mean([seen.scores[round] for round in rounds]))
    best = informed["best_fixed_score"]
    sign = 1.0 if measure.is_loss else -1.0
    return {
        "rounds": n_rounds,
        "average_score": score,
        "average_regret": None if best is None else sign * (score - best),
        "best_fixed_score": best,
        "full_information": {
            "ranker": "ftpl",
            "average_score": informed["average_score"],
            "average_regret": informed["average_regret"],
        },
        "mean_relevance": seen.mean_relevance,
        "feedback": {"lost": seen.n_lost, **seen.learned},
        "measure": measure.label,
        "is_loss": measure.is_loss,
        "seconds": seen.seconds,
        "rounds_per_second": n_rounds / seen.seconds if seen.seconds else None,
        "notes": [note for note in informed["notes"] if note.startswith("regret")],
    }
