"""The synchronous and the asynchronous client; ``core`` has their common logic."""

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
from keyhole.client.retries import Answer, Call, Exchange, NoAnswer, Pause

P = ParamSpec("P")
T = TypeVar("T")


def _settings(url: str, key: str | None, timeout: float) -> dict[str, Any]:
    """Return the arguments of the HTTP client, or raise."""
    try:
        parsed = httpx.URL(url)
    except (TypeError, httpx.InvalidURL):
        parsed = httpx.URL("")
    if parsed.scheme not in ("http", "https") or not parsed.host:
        raise InvalidInput(f"`url` must look like http://localhost:8360, got {shown(url)}.")
    headers = {"User-Agent": f"keyhole-client/{__version__}", "Accept": "application/json"}
    if key is not None:
        if not (isinstance(key, str) and key and key.isascii() and key.isprintable()):
            raise InvalidInput("`key` must be a key that keyhole keys printed.")  # never show it
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
    exchange: Callable[Concatenate[Core, P], Exchange[T]],
) -> Callable[Concatenate["Client", P], T]:
    """Return a method that runs an exchange and returns its result."""

    @functools.wraps(exchange)
    def method(self: "Client", /, *args: P.args, **kwargs: P.kwargs) -> T:
        return self._carry_out(exchange(self._core, *args, **kwargs))

    return method


def _awaiting(
    exchange: Callable[Concatenate[Core, P], Exchange[T]],
) -> Callable[Concatenate["AsyncClient", P], Coroutine[Any, Any, T]]:
    """Return a coroutine method that runs an exchange and returns its result."""

    @functools.wraps(exchange)
    async def method(self: "AsyncClient", /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await self._carry_out(exchange(self._core, *args, **kwargs))

    return method


class Client:
    """A synchronous client; it is thread-safe.

    Parameters
    ----------
    url
        The URL of the service, such as ``http://localhost:8360``.
    key
        An access key, if the service requires one.
    timeout
        The timeout of a rank request in seconds: a user is waiting for it. The timeout of feedback
        and of reading logs is 30 seconds, or ``timeout`` if that is longer. Batches of feedback,
        which may wait for compilation, and changes of rankers, which may have to check whether the
        measure can be learnt, have two minutes.
    retries
        The number of retries if the service does not answer or is busy, with exponential backoff,
        and not before its Retry-After.
    transport
        The transport of httpx; for tests.

    Examples
    --------
    >>> with Client("http://localhost:1", retries=0) as client:      # nothing listens here
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

    def _carry_out(self, exchange: Exchange[T]) -> T:
        answer: Answer | NoAnswer | None = None
        while True:
            try:
                step = exchange.send(answer)
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
    """The asynchronous version of :class:`Client`."""

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

    async def _carry_out(self, exchange: Exchange[T]) -> T:
        answer: Answer | NoAnswer | None = None
        while True:
            try:
                step = exchange.send(answer)
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
