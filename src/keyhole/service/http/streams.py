"""Live streams: limited in number, and ended at shutdown."""

import asyncio
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

from starlette.responses import StreamingResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

if TYPE_CHECKING:
    from keyhole.service.http.context import Service


class LiveStream(StreamingResponse):
    """Server-sent events."""

    def __init__(self, content: AsyncIterator[bytes], service: "Service") -> None:
        headers = {"content-type": "text/event-stream", "cache-control": "no-store"}
        super().__init__(content, headers=headers)
        self._service = service

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send events until the client disconnects."""
        await stream_by(super().__call__, self._service, scope, receive, send)


async def stream_by(
    app: ASGIApp, service: "Service", scope: Scope, receive: Receive, send: Send
) -> None:
    """Send a stream, unless there are too many; it ends when the service stops."""

    async def receive_or_stop() -> Message:
        message = asyncio.ensure_future(receive())
        stopped = asyncio.ensure_future(service.stopping.wait())
        try:
            await asyncio.wait((message, stopped), return_when=asyncio.FIRST_COMPLETED)
            return message.result() if message.done() else {"type": "http.disconnect"}
        finally:
            message.cancel()
            stopped.cancel()

    with service.streaming():
        await app(scope, receive_or_stop, send)
        await send({"type": "http.response.body", "body": b""})
