"""The application: built of a desk, or of what will open one while requests already come."""

import asyncio
from collections.abc import Callable

from keyhole.service.desk import Desk
from keyhole.service.http.gate import Gate
from keyhole.service.http.openapi import document
from keyhole.service.http.service import Service
from keyhole.service.http.wire import Receive, Scope, Send
from keyhole.service.preparing import Preparer
from keyhole.service.settings import Settings


class Application:
    """An ASGI application; it opens its desk as it starts, and closes it as it ends."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self.gate = Gate(service)
        self._starting: asyncio.Task[None] | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer what a server hands on."""
        if scope["type"] == "http":
            await self.gate(scope, receive, send)
        elif scope["type"] == "lifespan":
            await self._live(receive, send)
        else:  # there are no web sockets
            await send({"type": "websocket.close", "code": 1000})

    async def _live(self, receive: Receive, send: Send) -> None:
        """Begin to open the desk, answer from then on, and close it in the end."""
        while True:
            message = await receive()
            if message["type"] == "lifespan.startup":
                await self.start()
                await send({"type": "lifespan.startup.complete"})
            else:
                await self.stop()
                await send({"type": "lifespan.shutdown.complete"})
                return

    async def start(self) -> None:
        """Begin to open the desk; where it is there already, requests are answered at once."""
        self._starting = asyncio.create_task(self.service.start())
        if self.service.is_ready:
            await self._starting

    async def stop(self) -> None:
        """Close the desk."""
        self.service.preparer.halt()
        if self._starting is not None:
            await self._starting
        await self.service.stop()


def build(desk: Desk, settings: Settings | None = None) -> Application:
    """Return the application of a desk."""
    return _application(Service(settings or Settings(), open_desk=lambda: desk, desk=desk))


def build_later(
    open_desk: Callable[[], Desk], settings: Settings, preparer: Preparer | None = None
) -> Application:
    """Return an application that answers while its desk is still being opened, in a thread.

    It says what the preparer of the desk is busy with, and stops it in the end.
    """
    return _application(Service(settings, open_desk=open_desk, preparer=preparer))


def _application(service: Service) -> Application:
    service.openapi = document()
    return Application(service)
