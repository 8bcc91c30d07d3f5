"""The dashboard over a log in memory, served from this process, and a crowd that plays.

For screenshots and for tests in a browser: no database, no network but the loopback.
"""

import asyncio
import random
import socket
import threading
from collections.abc import Sequence
from contextlib import asynccontextmanager
from typing import Any, NamedTuple, Self

import uvicorn
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from keyhole.service.commands import (
    Command,
    Configure,
    Expire,
    FeedbackRequest,
    GiveFeedback,
    Rank,
    RankerRequest,
    RankRequest,
)
from keyhole.service.dashboard import error_page, routes
from keyhole.service.group_commit import Desk
from keyhole.service.store.base import Store

_START_MS = 1_780_000_000_000
_PATIENCE = 30.0
_POLICY = b"default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"


class _Settings(NamedTuple):
    heartbeat_seconds: float
    insecure: bool = False


class _Strict:
    """Says with every answer that pages may load from here alone, as the service does."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def strictly(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], (b"content-security-policy", _POLICY)]
            await send(message)

        await self._app(scope, receive, strictly)


class Showroom:
    """A server in a thread; it can be closed and opened again at the same port, over the same log.

    Parameters
    ----------
    store
        The log.
    heartbeat_seconds
        How often a live stream says that it is alive.
    """

    def __init__(self, store: Store, *, heartbeat_seconds: float = 10.0) -> None:
        self.store = store
        self._settings = _Settings(heartbeat_seconds)
        self._port = 0
        self.open()

    @property
    def url(self) -> str:
        """Where it is."""
        return f"http://127.0.0.1:{self._port}"

    def open(self) -> None:
        """Begin to answer."""
        self.desk = Desk(self.store)
        listener = socket.socket()
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", self._port))
        self._port = listener.getsockname()[1]
        config = uvicorn.Config(self._app(), log_level="critical", lifespan="on")
        self._server = uvicorn.Server(config)
        self._is_open = threading.Event()
        self._thread = threading.Thread(target=self._server.run, args=([listener],), daemon=True)
        self._thread.start()
        if not self._is_open.wait(_PATIENCE):
            raise TimeoutError("The server did not start.")

    def close(self) -> None:
        """Stop the desk, which ends the live streams, and then the server."""
        asyncio.run_coroutine_threadsafe(self.desk.stop(), self._loop).result(_PATIENCE)
        self._server.should_exit = True
        self._thread.join(_PATIENCE)

    def submit(self, command: Command) -> Any:
        """Give the desk a command, as a request would, and return its reply."""
        future = asyncio.run_coroutine_threadsafe(self.desk.submit(command), self._loop)
        return future.result(_PATIENCE)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _app(self) -> Starlette:
        @asynccontextmanager
        async def lifespan(_):
            self._loop = asyncio.get_running_loop()
            await self.desk.start()
            self._is_open.set()
            yield

        async def not_found(request, _) -> Response:
            return error_page(request, 404, "There is no such page.")

        return Starlette(
            routes=routes(self.desk, self._settings),
            lifespan=lifespan,
            exception_handlers={404: not_found},
            middleware=[Middleware(_Strict)],
        )


class Crowd:
    """Users who like items with fixed chances, answer after a while, and sometimes never.

    Their clock is made up, so that a day of theirs takes a moment.
    """

    def __init__(self, worth: dict[str, float], *, seed: int = 1, lost: float = 0.15) -> None:
        self.worth = worth
        self._draws = random.Random(seed)
        self._lost = lost
        self._now = _START_MS

    def truth(self) -> dict[str, float]:
        """Return what one of them likes."""
        return {name: float(self._draws.random() < chance) for name, chance in self.worth.items()}

    def play(self, engine: Any, ranker: str, rounds: int) -> None:
        """Ask for lists and answer; every fiftieth round gives up on what was not answered."""
        for round in range(rounds):
            self._now += 900
            shown = engine.execute(Rank(ranker, RankRequest()), self._now)
            if self._draws.random() > self._lost:
                delay = int(1_000 * self._draws.expovariate(1 / 6.0))
                self._answer(engine, ranker, shown.event_id, shown.ranking[: shown.k], delay)
            if round % 50 == 49:
                given_up = tuple(engine.ranker(ranker).waiting)[:-4]
                engine.execute(Expire(ranker, given_up), self._now)

    def _answer(
        self, engine: Any, ranker: str, event_id: str, top: Sequence[str], delay: int
    ) -> None:
        truth = self.truth()
        is_simulation = engine.ranker(ranker).config.simulation
        request = FeedbackRequest(
            relevance=[truth[name] for name in top], truth=truth if is_simulation else None
        )
        engine.execute(GiveFeedback(ranker, event_id, request), self._now + delay)


def configure(engine: Any, name: str, **request: Any) -> None:
    """Make a ranker."""
    engine.execute(Configure(name, RankerRequest(**request)), _START_MS)
