"""The demo of the service: two rankers with simulated users for a limited time."""

import asyncio
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Literal, NamedTuple

import keyhole
from keyhole.base.errors import KeyholeError
from keyhole.cli.simulated_users import Crowd, Visits
from keyhole.service.compilation import expected
from keyhole.worlds.phases import Independent

if TYPE_CHECKING:
    from keyhole.client import AsyncClient, RankerInfo

_WAIT_SECONDS = 5.0
_APPRENTICE_SHARE = 0.2
_READY_WITHIN = 3600.0
"""Seconds to wait for compilation, which the dashboard shows."""
_A_MOMENT = 0.2
"""Seconds between checks for a stop, or for the service to be ready."""


class Demonstration(NamedTuple):
    """A ranker of the demo: the popularity of its items, and its users."""

    name: str
    chances: dict[str, float]
    rounds: int
    rate: float
    mode: Literal["online", "apprentice"] = "online"
    changes: bool = False
    """Whether preferences are reversed half way."""

    @property
    def names(self) -> list[str]:
        """The items in the order of the world: least popular first."""
        return sorted(self.chances, key=self.chances.__getitem__)

    @property
    def crowd(self) -> Crowd:
        """The users, of whom some answer late and some never."""
        return Crowd(
            Independent(len(self.chances), chances=[self.chances[name] for name in self.names]),
            lose=0.15,
            delay_seconds=0.3,
            changes_at=self.rounds // 2 if self.changes else None,
        )


DEMONSTRATIONS = (
    Demonstration(
        "demo-bookshop",
        {
            "A Field Guide to Clouds": 0.35,
            "Bread for Beginners": 0.7,
            "Chess Endings": 0.15,
            "Letters from the Sea": 0.5,
            "Maps of the Old Town": 0.2,
            "Night Trains of Europe": 0.8,
            "One Pot, Forty Dinners": 0.6,
            "Repairing Bicycles": 0.25,
            "Short Walks": 0.45,
            "The Clockmaker's Daughter": 0.4,
            "Violins and Their Makers": 0.1,
            "Winter Gardens": 0.3,
        },
        rounds=3_000,
        rate=60.0,
        changes=True,
    ),
    Demonstration(
        "demo-apprentice",
        {
            "Applications": 0.2,
            "Billing": 0.3,
            "Getting started": 0.8,
            "Release notes": 0.1,
            "Status": 0.4,
            "Upgrading": 0.6,
        },
        rounds=1_000,
        rate=20.0,
        mode="apprentice",
    ),
)


def start_demo(url: str, stop: threading.Event) -> threading.Thread:
    """Run the demo in a thread until ``stop``, if the service has no rankers.

    It uses the HTTP client; any error ends it silently.
    """

    def play() -> None:
        with suppress(KeyholeError), expected():  # the users' code is compiled in their thread
            asyncio.run(_play_until(url, stop))

    thread = threading.Thread(target=play, name="keyhole-demo", daemon=True)
    thread.start()
    return thread


async def _play_until(url: str, stop: threading.Event) -> None:
    async with keyhole.client.AsyncClient(url) as client:
        playing = asyncio.ensure_future(play_demo(client))
        while not playing.done() and not stop.is_set():
            await asyncio.wait({playing}, timeout=_A_MOMENT)
        playing.cancel()
        with suppress(asyncio.CancelledError):
            await playing


async def play_demo(
    client: "AsyncClient", demonstrations: tuple[Demonstration, ...] = DEMONSTRATIONS
) -> None:
    """Create the rankers and simulate their users, unless there are rankers already."""
    if not await _rankers_once_it_is_there(client):
        await asyncio.gather(*(_play(client, each) for each in demonstrations))


async def _rankers_once_it_is_there(client: "AsyncClient") -> list["RankerInfo"]:
    """Return the rankers of a service, once it is ready."""
    while True:
        try:
            return await client.rankers()
        except keyhole.client.ServiceAway:
            await asyncio.sleep(_A_MOMENT)


async def _play(client: "AsyncClient", demo: Demonstration) -> None:
    share = _APPRENTICE_SHARE if demo.mode == "apprentice" else None
    info = await client.put_ranker(
        demo.name, items=list(demo.chances), k=1, mode=demo.mode, apprentice_share=share,
        wait_seconds=_WAIT_SECONDS, simulation=True, seed=0, ready_within=_READY_WITHIN,
    )  # fmt: skip
    await Visits(client, info, demo.names, demo.crowd).play(demo.rounds, rate=demo.rate)
