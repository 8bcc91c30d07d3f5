"""The two clients: one waits, the other awaits; what they say is in ``core``."""

import asyncio
import functools
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

import httpx

from keyhole.base.errors import InvalidInput, check_number, shown
from keyhole.base.version import __version__
from keyhole.client.core import Core
from keyhole.client.retries import Answer, Call, NoAnswer, Pause, Talk

P = ParamSpec("P")
T = TypeVar("T")


def _settings(url: str, key: str | None, timeout: float) -> dict[str, Any]:
    """Return what both kinds of connection are made with, or raise."""
    try:
        parsed = httpx.URL(url)
    except (TypeError, httpx.InvalidURL):
        parsed = httpx.URL("")
    if parsed.scheme not in ("http", "https") or not parsed.host:
        raise InvalidInput(f"`url` must be such as http://localhost:8360, got {shown(url)}.")
    headers = {"User-Agent": f"keyhole-client/{__version__}", "Accept": "application/json"}
    if key is not None:
        if not (isinstance(key, str) and key and key.isascii() and key.isprintable()):
            raise InvalidInput("`key` must be what keyhole keys printed.")  # which no error shows
        headers["Authorization"] = f"Bearer {key}"
    seconds = check_number(timeout, "`timeout`", above=0.0, at_most=3600.0)
    return {"base_url": parsed, "headers": headers, "timeout": seconds}


def _request(http: httpx.Client | httpx.AsyncClient, call: Call) -> httpx.Request:
    headers = {"Content-Type": "application/json"} if call.body else {}
    timeout = http.timeout
    if call.seconds > (timeout.read or 0.0):
        timeout = httpx.Timeout(timeout.connect, read=call.seconds)
    return http.build_request(
        call.method,
        call.path,
        content=call.body or None,
        params=call.params or None,
        headers={**headers, **call.headers},
        timeout=timeout,
    )


def _answer(response: httpx.Response) -> Answer:
    return Answer(response.status_code, response.headers, response.content)


def _no_answer(error: httpx.TransportError) -> NoAnswer:
    return NoAnswer(f"{type(error).__name__}: {error}".removesuffix(": ").rstrip("."))


def _waiting(
    talk: Callable[Concatenate[Core, P], Talk[T]],
) -> Callable[Concatenate["Client", P], T]:
    """Return a method that carries out a talk and returns what it returns."""

    @functools.wraps(talk)
    def method(self: "Client", /, *args: P.args, **kwargs: P.kwargs) -> T:
        return self._carry_out(talk(self._core, *args, **kwargs))

    return method


def _awaiting(
    talk: Callable[Concatenate[Core, P], Talk[T]],
) -> Callable[Concatenate["AsyncClient", P], Coroutine[Any, Any, T]]:
    """Return a coroutine method that carries out a talk and returns what it returns."""

    @functools.wraps(talk)
    async def method(self: "AsyncClient", /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await self._carry_out(talk(self._core, *args, **kwargs))

    return method


class Client:
    """A client that waits for every answer; threads may share it.

    Parameters
    ----------
    url
        Where the service is, such as ``http://localhost:8360``.
    key
        An access key, where the service asks for one.
    timeout
        Seconds after which a request for a list is given up, as somebody waits for it. Nobody looks
        on while feedback is given or a log is read: that may take 30 seconds, or ``timeout`` if it
        is longer; a batch of feedback, which may have to wait for compiled code, and changes of
        rankers, about which an oracle may have to be asked, may take two minutes.
    retries
        How often a request is made again while nobody answers or the service is busy, with pauses
        that double, and no earlier than it asks for.
    transport
        How requests travel; for tests.

    Examples
    --------
    >>> with Client("http://localhost:1", retries=0) as client:      # where nobody is
    ...     ranking = client.rank("shop", fallback=["tea", "coffee"])
    ...     ranking.ranking, ranking.from_fallback, client.feedback("shop", ranking, 1).sent
    (['tea', 'coffee'], True, False)
    """

    def __init__(
        self,
        url: str,
        *,
        key: str | None = None,
        timeout: float = 5.0,
        retries: int = 4,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        self._core = Core(retries)
        self._http = httpx.Client(transport=transport, **_settings(url, key, timeout))

    put_ranker = _waiting(Core.put_ranker)
    change_ranker = _waiting(Core.change_ranker)
    set_items = _waiting(Core.set_items)
    edit_items = _waiting(Core.edit_items)
    reset_ranker = _waiting(Core.reset_ranker)
    rename_ranker = _waiting(Core.rename_ranker)
    delete_ranker = _waiting(Core.delete_ranker)
    rank = _waiting(Core.rank)
    rank_batch = _waiting(Core.rank_batch)
    feedback = _waiting(Core.feedback)
    feedback_batch = _waiting(Core.feedback_batch)
    activate = _waiting(Core.activate)
    state = _waiting(Core.state)
    ranker = _waiting(Core.ranker)
    rankers = _waiting(Core.rankers)
    evaluate = _waiting(Core.evaluate)
    _events_page = _waiting(Core.events_page)

    def events(self, ranker: str, *, after: int = 0) -> Iterator[dict[str, Any]]:
        """Yield the events of a ranker's log with a greater seq, page by page."""
        following: int | None = after
        while following is not None:
            page = self._events_page(ranker, following)
            yield from page.events
            following = page.next_after

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _carry_out(self, talk: Talk[T]) -> T:
        answer: Answer | NoAnswer | None = None
        while True:
            try:
                step = talk.send(answer)
            except StopIteration as done:
                return done.value
            if isinstance(step, Pause):
                time.sleep(step.seconds)
                answer = None
                continue
            try:
                answer = _answer(self._http.send(_request(self._http, step)))
            except httpx.TransportError as error:
                answer = _no_answer(error)


class AsyncClient:
    """A client for programs that do other things meanwhile; else as :class:`Client`."""

    def __init__(
        self,
        url: str,
        *,
        key: str | None = None,
        timeout: float = 5.0,
        retries: int = 4,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self._core = Core(retries)
        self._http = httpx.AsyncClient(transport=transport, **_settings(url, key, timeout))

    put_ranker = _awaiting(Core.put_ranker)
    change_ranker = _awaiting(Core.change_ranker)
    set_items = _awaiting(Core.set_items)
    edit_items = _awaiting(Core.edit_items)
    reset_ranker = _awaiting(Core.reset_ranker)
    rename_ranker = _awaiting(Core.rename_ranker)
    delete_ranker = _awaiting(Core.delete_ranker)
    rank = _awaiting(Core.rank)
    rank_batch = _awaiting(Core.rank_batch)
    feedback = _awaiting(Core.feedback)
    feedback_batch = _awaiting(Core.feedback_batch)
    activate = _awaiting(Core.activate)
    state = _awaiting(Core.state)
    ranker = _awaiting(Core.ranker)
    rankers = _awaiting(Core.rankers)
    evaluate = _awaiting(Core.evaluate)
    _events_page = _awaiting(Core.events_page)

    async def events(self, ranker: str, *, after: int = 0) -> AsyncIterator[dict[str, Any]]:
        """Yield the events of a ranker's log with a greater seq, page by page."""
        following: int | None = after
        while following is not None:
            page = await self._events_page(ranker, following)
            for event in page.events:
                yield event
            following = page.next_after

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def _carry_out(self, talk: Talk[T]) -> T:
        answer: Answer | NoAnswer | None = None
        while True:
            try:
                step = talk.send(answer)
            except StopIteration as done:
                return done.value
            if isinstance(step, Pause):
                await asyncio.sleep(step.seconds)
                answer = None
                continue
            try:
                answer = _answer(await self._http.send(_request(self._http, step)))
            except httpx.TransportError as error:
                answer = _no_answer(error)
