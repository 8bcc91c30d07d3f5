"""The uvicorn server, with connection limits and a graceful shutdown."""

import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn
from uvicorn.server import HANDLED_SIGNALS

from keyhole.base.errors import InvalidInput
from keyhole.service.http.app import Application
from keyhole.service.http.connection import connections
from keyhole.service.settings import Settings


class Server(uvicorn.Server):
    """A server that ends live streams at shutdown; they would never end by themselves."""

    def __init__(self, application: Application, settings: Settings) -> None:
        self._application = application
        super().__init__(
            uvicorn.Config(
                application,
                http=connections(settings),
                loop="uvloop",
                ws="none",
                lifespan="on",
                log_config=None,
                access_log=False,
                proxy_headers=False,
                server_header=False,
                timeout_keep_alive=20,
                timeout_graceful_shutdown=max(1, round(settings.shutdown_seconds)),
            )
        )

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Handle signals with a graceful shutdown, and do not raise them again."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {each: signal.signal(each, self.handle_exit) for each in HANDLED_SIGNALS}
        try:
            yield
        finally:
            for each, handler in before.items():
                signal.signal(each, handler)

    async def on_tick(self, counter: int) -> bool:
        """Stop if the log cannot be opened: waiting would not help."""
        return await super().on_tick(counter) or self._application.service.failure is not None

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop accepting connections, end streams, finish requests and close the log."""
        self._application.service.stopping.set()
        await super().shutdown(sockets)


def bound_socket(settings: Settings) -> socket.socket:
    """Return a socket bound to the address of the settings, or raise."""
    where = f"{settings.host}, port {settings.port}"
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            settings.host, settings.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except (OSError, UnicodeError):
        raise InvalidInput(f"The address to listen on must exist, got {where}.") from None
    listening = socket.socket(family, kind, protocol)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
        listening.listen(2048)
    except (OSError, OverflowError) as error:
        listening.close()
        why = getattr(error, "strerror", None) or str(error)
        raise InvalidInput(f"The address to listen on must be free, got {where}: {why}.") from None
    listening.setblocking(False)
    return listening


def address_of(listening: socket.socket) -> str:
    """Return the URL of a socket's address, for a browser."""
    host, port = listening.getsockname()[:2]
    shown = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(host, f"[{host}]" if ":" in host else host)  # noqa: S104
    return f"http://{shown}:{port}"
