"""Answers as handlers give them, and how they are sent: the raw ASGI of answers is here alone."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, MutableMapping
from contextlib import suppress
from typing import Any, NamedTuple

import msgspec

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Headers = tuple[tuple[bytes, bytes], ...]

JSON: Headers = ((b"content-type", b"application/json"),)

encode = msgspec.json.Encoder().encode


class Answer(NamedTuple):
    """A status, a body, and headers; ``pieces`` is a body that comes bit by bit instead."""

    status: int
    body: bytes = b""
    headers: Headers = ()
    pieces: AsyncGenerator[bytes, None] | None = None


def json_answer(value: Any, status: int = 200, headers: Headers = ()) -> Answer:
    """Return an answer that is JSON."""
    return Answer(status, encode(value), JSON + headers)


async def send_answer(send: Send, receive: Receive, answer: Answer) -> None:
    """Send an answer; what comes in pieces is sent as each comes, while somebody listens."""
    headers = [*answer.headers]
    if answer.pieces is None and answer.status != 204:
        headers.append((b"content-length", b"%d" % len(answer.body)))
    await send({"type": "http.response.start", "status": answer.status, "headers": headers})
    if answer.pieces is not None:
        await _send_pieces(send, receive, answer.pieces)
    await send({"type": "http.response.body", "body": answer.body})


async def _send_pieces(send: Send, receive: Receive, pieces: AsyncGenerator[bytes, None]) -> None:
    """Send pieces until there are no more, or whoever asked has gone."""
    gone = asyncio.ensure_future(_until_gone(receive))
    try:
        while True:
            step = asyncio.ensure_future(anext(pieces, None))
            await asyncio.wait({step, gone}, return_when=asyncio.FIRST_COMPLETED)
            if not step.done():
                step.cancel()
                with suppress(asyncio.CancelledError):
                    await step
                return
            piece = step.result()
            if piece is None:
                return
            await send({"type": "http.response.body", "body": piece, "more_body": True})
    finally:
        gone.cancel()
        await pieces.aclose()


async def _until_gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
