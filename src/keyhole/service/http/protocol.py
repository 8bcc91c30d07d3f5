"""Connections: uvicorn's, with limits that it lacks and a short way for what is asked most.

A list is ranked and learnt from in some fifty microseconds, of which ASGI would take another
twenty: two messages, an event and a dictionary for each request. So requests that are small, come
whole and are about ranking or feedback are answered here, with one write. Everything else goes the
usual way, and both ways lead through the same gate.
"""

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from keyhole.service.http.call import Call
from keyhole.service.http.gate import Gate
from keyhole.service.http.wire import Answer, Message

MAX_HEAD_BYTES = 64 * 1024
MAX_DIRECT_BYTES = 64 * 1024
_PREFIX, _ENDINGS = b"/v1/rankers/", (b"/rank", b"/feedback")
_METHODS = ("POST", "PUT")
"""Those whose answers have a body, whatever they are."""
_NOTHING_MORE = b"\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
_TOO_LARGE = b"HTTP/1.1 431 Request Header Fields Too Large" + _NOTHING_MORE
_TOO_SLOW = b"HTTP/1.1 408 Request Timeout" + _NOTHING_MORE


class _NoEvent:
    """Stands where uvicorn tells a request of its own that something came: nobody waits here."""

    def set(self) -> None:
        """Tell nobody."""


class DirectCycle:
    """A request on the short way, with all that uvicorn's protocol asks of its own."""

    __slots__ = ("body", "disconnected", "headers", "keep_alive", "method", "more_body",
                 "response_complete", "response_started", "url")  # fmt: skip
    message_event = _NoEvent()

    def __init__(self, method: str, url: bytes, headers: dict[bytes, bytes], keep: bool) -> None:
        self.method = method
        self.url = url
        self.headers = headers
        self.keep_alive = keep
        self.body = bytearray()
        self.more_body = True
        self.disconnected = False
        self.response_started = False
        self.response_complete = False


class Connection(HttpToolsProtocol):
    """One connection."""

    gate: Gate
    request_seconds: float
    _n_head = 0
    _in_head = True
    _timer: asyncio.TimerHandle | None = None
    _task: asyncio.Task[None] | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._timer = self.loop.call_later(self.request_seconds, self._refuse, _TOO_SLOW)

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timer()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._in_head:
            self._n_head += len(data)
        super().data_received(data)
        # What came with the end of a head is a body, which has a limit of its own.
        if self._in_head and self._n_head > MAX_HEAD_BYTES:
            self._refuse(_TOO_LARGE)

    # ------------------------------------------------------------------- a request comes in

    def on_message_begin(self) -> None:
        if self._timer is None:
            self._timer = self.loop.call_later(self.request_seconds, self._refuse, _TOO_SLOW)
        self.url = b""
        self.expect_100_continue = False
        self.headers = []

    def on_headers_complete(self) -> None:
        self._in_head = False
        cycle = self._direct_cycle()
        if cycle is not None:
            self.cycle = cycle  # type: ignore[assignment]
            return
        url, headers, expects = self.url, self.headers, self.expect_100_continue
        super().on_message_begin()
        self.url, self.expect_100_continue = url, expects
        self.headers += headers
        super().on_headers_complete()

    def _direct_cycle(self) -> DirectCycle | None:
        """Return a cycle for a request that can go the short way, and None for all others."""
        if not (self.url.startswith(_PREFIX) and self.url.endswith(_ENDINGS)):
            return None
        if not (self.cycle is None or self.cycle.response_complete):
            return None  # another request is being answered on this connection
        headers = dict(self.headers)
        length = headers.get(b"content-length", b"0")
        parser = self.parser
        method = parser.get_method().decode("ascii")
        if (
            method not in _METHODS
            or b"transfer-encoding" in headers
            or b"expect" in headers
            or not (length.isdigit() and int(length[:20]) <= MAX_DIRECT_BYTES)
            or parser.get_http_version() != "1.1"
            or parser.should_upgrade()
        ):
            return None
        return DirectCycle(method, self.url, headers, parser.should_keep_alive())

    def on_body(self, body: bytes) -> None:
        cycle: Any = self.cycle
        if type(cycle) is DirectCycle:
            cycle.body += body
        else:
            super().on_body(body)

    def on_message_complete(self) -> None:
        self._in_head, self._n_head = True, 0
        self._stop_timer()
        cycle: Any = self.cycle
        if type(cycle) is DirectCycle and cycle.more_body:
            cycle.more_body = False
            self._task = self.loop.create_task(self._answer(cycle))
        else:
            super().on_message_complete()

    # ------------------------------------------------------------------- and is answered

    async def _answer(self, cycle: DirectCycle) -> None:
        """Answer a request on the short way."""
        scope = {
            "method": cycle.method,
            "path": cycle.url.decode("latin-1"),
            "raw_path": cycle.url,
            "query_string": b"",
        }
        call = Call(self.gate.service, scope, _nothing_more, cycle.headers, bytes(cycle.body))
        try:
            answer = await self.gate.answer(call)
            if self.flow.write_paused:
                await self.flow.drain()
        except BaseException:
            self.transport.close()
            raise
        if not (answer is None or cycle.disconnected or self.transport.is_closing()):
            self._write(answer, cycle)

    def _write(self, answer: Answer, cycle: DirectCycle) -> None:
        parts = [STATUS_LINE[answer.status]]
        for name, value in (*self.server_state.default_headers, *answer.headers):
            parts += (name, b": ", value, b"\r\n")
            if name == b"connection":
                cycle.keep_alive = False
        if not cycle.keep_alive:
            parts.append(b"connection: close\r\n")
        parts += (b"content-length: %d\r\n\r\n" % len(answer.body), answer.body)
        cycle.response_started = cycle.response_complete = True
        self.transport.write(b"".join(parts))
        if not cycle.keep_alive:
            self.transport.close()
        self.on_response_complete()

    # ------------------------------------------------------------------- limits

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _refuse(self, answer: bytes) -> None:
        """Say what is wrong, unless another answer is on its way, and hang up."""
        self._stop_timer()
        if self.transport.is_closing():
            return
        cycle = self.cycle
        if cycle is None or cycle.response_complete or not cycle.response_started:
            self.transport.write(answer)
        self.transport.close()


async def _nothing_more() -> Message:
    return {"type": "http.disconnect"}


def connections(gate: Gate, request_seconds: float) -> type[Connection]:
    """Return the connections of an application, as a class for uvicorn to make them of."""
    return type("Connections", (Connection,), {"gate": gate, "request_seconds": request_seconds})
