"""Simulated users of a service: users of a world, with delayed and lost feedback."""

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
from keyhole.experiment.description import Experiment
from keyhole.lab.results import summary
from keyhole.measures import measure as named_measure
from keyhole.worlds.table import Recorded

if TYPE_CHECKING:  # the client's library is optional
    from keyhole.client import AsyncClient, RankerInfo, Ranking


class Fate(NamedTuple):
    """The fate of a round's feedback: whether it is lost, and its delay."""

    is_lost: bool
    rounds: int
    seconds: float


@dataclass(frozen=True)
class Crowd:
    """The users of all rounds: their relevance, and the fate of their feedback.

    Both depend only on the seed and the round, so every ranker meets the same users. Their
    relevance equals that of :func:`keyhole.play`.

    Parameters
    ----------
    world, seed
        The source of relevance, and its random seed.
        lose
        The share of feedback that never arrives.
    delay_rounds, delay_seconds
        The mean delay of feedback; each delay is uniform between 0 and twice the mean.
    changes_at
        The round at which preferences are reversed: the first item is then liked as the last was.
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
        """Return the fate of a round's feedback."""
        drawn = np.random.default_rng((self.seed, round)).random(3)
        rounds = int(drawn[1] * (2 * self.delay_rounds + 1))
        return Fate(bool(drawn[0] < self.lose), rounds, float(drawn[2] * 2 * self.delay_seconds))


@dataclass
class Results:
    """The results so far; ``scores`` has only played rounds."""

    scores: dict[int, float] = field(default_factory=dict)
    relevance: dict[int, FloatArray] = field(default_factory=dict)
    top_relevance: float = 0.0
    n_lost: int = 0
    learned: dict[str, int] = field(default_factory=dict)
    """The number of feedback events by outcome."""
    seconds: float = 0.0

    @property
    def mean_relevance(self) -> float:
        """The mean relevance of the revealed items."""
        return self.top_relevance / len(self.scores) if self.scores else 0.0


class Visits:
    """Plays the rounds of a crowd through a client.

    Parameters
    ----------
    client, info
        The client, and the service's description of the ranker, which has a fixed list.
    names
        The item name of each item of the world.
    """

    def __init__(
        self,
        client: "AsyncClient",
        info: "RankerInfo",
        names: list[str],
        crowd: Crowd,
    ) -> None:
        self.seen = Results()
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
        watch: Callable[[Results], None] | None = None,
    ) -> Results:
        """Play rounds, and wait until all feedback except the lost has been sent.

        Parameters
        ----------
        rate
            Rounds started per second; None: as fast as possible.
        concurrency
            The number of concurrent users.
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
        """Send the relevance of the first items, in a simulation of all items."""
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
    """Return a ranker, created if it does not exist; raise if it differs from ``asked``.

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
                f"The {what} of the existing ranker {name} must be {request[what]}, "
                f"got {asked[what]}."
            )
    items = request["items"]
    if items is None or sorted(asked.get("items", items)) != sorted(items):
        raise InvalidInput(
            f"The existing ranker {name} must rank the items of the simulated users, got one "
            f"that ranks {'documents' if items is None else 'others'}."
        )
    check_integer(
        world.n_items, f"The number of items of the crowd of {name}", at_least=len(items),
        at_most=len(items),
    )  # fmt: skip
    return there[name]


def made_up_names(n_items: int) -> list[str]:
    """Return generated item names.

    Examples
    --------
    >>> made_up_names(3), made_up_names(10)[0]
    (['item-1', 'item-2', 'item-3'], 'item-01')
    """
    width = len(str(n_items))
    return [f"item-{number:0{width}d}" for number in range(1, n_items + 1)]


def judge(seen: Results, measure: Measure, seed: int) -> dict[str, Any]:
    """Return the results of the rounds, with the best fixed list and full information.

    Both are computed for the same users.
    """
    rounds = sorted(seen.scores)
    n_rounds = check_integer(len(rounds), "The number of rounds played", at_least=1)
    users = Recorded(np.array([seen.relevance[round] for round in rounds]))
    told = Experiment(
        ranker="ftpl", reveal="full", measure=measure.label, rounds=n_rounds, seed=seed
    )
    game = told.build_on(users)
    informed = summary(game, game.play())
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
