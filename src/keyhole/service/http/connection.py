"""Connections: uvicorn's, with the limits that it lacks, by names that it makes public.

A request is fed to the parser by itself: what comes behind it waits as bytes, unread and unparsed,
until it is answered. So whatever a client sends at once, one request of it costs memory.
"""

import asyncio
import re
from http import HTTPStatus
from math import inf
from typing import Any

import httptools
from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from keyhole.service.http.problems import CONTENT_TYPE, TYPE_PREFIX, Problem, encode
from keyhole.service.settings import Settings

MAX_HEAD_BYTES = 64 * 1024
"""Of a head, and of all that frames a body: sizes of chunks, their extensions, trailers."""
_MOST_FED = 4 * 1024
_MOST_FED_OF_CHUNKS = 256
"""Where they end is for the parser to find: it may begin that many bytes of what is behind them."""
_HEAD_END = b"\r\n\r\n"
_LINE_END = b"\r\n"
_LINE_ENDS = re.compile(rb"[\r\n]+")


def _refusal(status: int, slug: str, title: str, detail: str, more: str = "") -> bytes:
    body = encode(Problem(TYPE_PREFIX + slug, title, status, detail))
    head = (
        f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\ncontent-type: {CONTENT_TYPE}\r\n"
        f"content-length: {len(body)}\r\nx-content-type-options: nosniff\r\n{more}"
        "connection: close\r\n\r\n"
    )
    return head.encode() + body


def _malformed(detail: str) -> bytes:
    return _refusal(400, "malformed", "The request cannot be read", detail)


_NO_HTTP = _malformed("A request must be HTTP/1.1.")
_NO_HOST = _malformed("A request of HTTP/1.1 must have one field Host.")
_TWICE = _malformed("A request must have each of the fields Host and Authorization once.")
_UPGRADE = _malformed("A request must not ask for another protocol.")
_TOO_LARGE = _refusal(
    431, "head-too-large", "The head is too large",
    f"A head, and what frames a body, must have at most {MAX_HEAD_BYTES} bytes.",
)  # fmt: skip
_TOO_SLOW = _refusal(408, "too-slow", "The request took too long", "It did not come whole in time.")
_TOO_MANY = _refusal(
    503, "busy", "Too many requests at once", "Bodies of all requests together are too large.",
    "retry-after: 1\r\n",
)  # fmt: skip


class Held:
    """Bytes that all connections together hold for requests that are not answered yet."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.n_bytes = 0


class Flow(FlowControl):
    """Reads on whenever somebody asks for it, unless bytes that were read still wait."""

    is_full = False

    def resume_reading(self) -> None:
        """Read on, if there is room."""
        if not self.is_full:
            super().resume_reading()


class Connection(HttpToolsProtocol):
    """One connection.

    Its time limits are watched by one timer that looks now and then, as a timer for each request
    and each pause would take as long as an answer does.
    """

    flow: Flow
    held: Held
    request_seconds: float
    _waiting: bytes = b""
    _at = 0
    """How much of what waits was fed to the parser."""
    _has_begun = False
    _is_in_body = False
    _is_asking = True
    """Whether a request is coming in; the first one from the moment somebody is there."""
    _since = 0.0
    """When it began to come in, or else when the last one was answered."""
    _n_frame = 0
    """Bytes of the head so far; from its end on, bytes that are not of the body."""
    _n_body = 0
    _n_left: int | None = 0
    """Bytes that the body lacks; None where only its chunks tell."""
    _n_held = 0
    _n_unsent = inf
    """What the other side had yet to read when this was last looked at, if it reads slowly."""
    _has_ended = False
    _watch: asyncio.TimerHandle | None = None

    # ------------------------------------------------------------------- bytes come in

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self.flow = Flow(transport)
        self._since = self.loop.time()
        self._watch = self.loop.call_later(self.request_seconds, self._look)

    def connection_lost(self, exc: Exception | None) -> None:
        for timer in (self._watch, self.timeout_keep_alive_task):
            if timer is not None:
                timer.cancel()
        self._waiting = b""
        self._hold(-self._n_held)
        super().connection_lost(exc)

    def eof_received(self) -> bool:  # type: ignore[override]
        """Answer what has been asked before a client said that it asks no more.

        A live stream has no end of its own: who asks no more has left it.
        """
        self._has_ended = self._is_answering() and not self._is_in_body
        return self._has_ended and not self.scope["path"].endswith("/stream")

    def data_received(self, data: bytes) -> None:
        self._waiting = self._waiting[self._at :] + data if self._waiting else data
        self._at = 0
        self._feed()

    def _is_answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _feed(self) -> None:
        """Have the parser read what waits, up to the end of a request that is to be answered."""
        data, at, end = self._waiting, self._at, len(self._waiting)
        view, transport = memoryview(data), self.transport
        while at < end and not transport.is_closing():
            cycle = self.cycle
            if not (self._is_in_body or cycle is None or cycle.response_complete):
                break
            piece = view[at : at + self._n_next(data, at)]
            at += len(piece)
            self._n_frame += len(piece)
            try:
                self.parser.feed_data(piece)
            except httptools.HttpParserUpgrade:
                break  # which was refused
            except httptools.HttpParserError:
                self._refuse(_NO_HTTP)
            if self._n_frame > MAX_HEAD_BYTES + self._n_body:
                self._refuse(_TOO_LARGE)
        self._at = at
        if at < end:
            self.flow.is_full = True
            self._keep(end - at)
            return
        self._waiting = b""
        if self.flow.is_full:
            self.flow.is_full = False
            self.flow.resume_reading()

    def _keep(self, n_waiting: int) -> None:
        """Let what came early wait, and read no more; where there is no room, give it up."""
        if self.held.n_bytes + n_waiting > self.held.most:
            self._waiting = b""
            self.cycle.keep_alive = False
        if not self.transport.is_closing():
            self.flow.pause_reading()

    def _n_next(self, data: bytes, at: int) -> int:
        """Return how many bytes the parser may be fed so that it reads no more than one request."""
        if self._is_in_body:
            return _MOST_FED_OF_CHUNKS if self._n_left is None else max(self._n_left, 1)
        if not self._has_begun and data[at] in _LINE_END:  # which may come before a request
            found = _LINE_ENDS.match(data, at)
            return found.end() - at if found else 1
        begin = at
        if self._n_frame:  # the end of a head may lie between what came before and this
            if at < len(_HEAD_END) - 1:
                return 1
            begin -= len(_HEAD_END) - 1
        end = data.find(_HEAD_END, begin, at + _MOST_FED)
        return end + len(_HEAD_END) - at if end >= 0 else _MOST_FED

    # ------------------------------------------------------------------- the parser tells

    def on_message_begin(self) -> None:
        self._has_begun = self._is_asking = True
        self._since = self.loop.time()
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        names = [name for name, _ in self.headers]
        wrong = self._wrong_with(names)
        if wrong is not None:
            self._refuse(wrong)
            return
        self._is_in_body, self._n_frame, self._n_left = True, 0, 0
        if b"content-length" in names:
            self._n_left = int(self.headers[names.index(b"content-length")][1])
        elif b"transfer-encoding" in names:
            self._n_left = None
        super().on_headers_complete()
        self.headers = []  # where trailers go: they must not change what the head decided

    def _wrong_with(self, names: list[bytes]) -> bytes | None:
        if self.parser.should_upgrade():  # a body would be read as another request
            return _UPGRADE
        n_hosts = names.count(b"host")
        if n_hosts > 1 or names.count(b"authorization") > 1:
            return _TWICE
        if not n_hosts and self.parser.get_http_version() not in ("0.9", "1.0"):
            return _NO_HOST
        return None

    def on_body(self, body: bytes) -> None:
        n_bytes = len(body)
        self._n_frame -= n_bytes
        self._n_body += n_bytes
        if self._n_left is not None:
            self._n_left -= n_bytes
        if self.transport.is_closing() or self.cycle.response_complete:
            return
        self._hold(n_bytes)
        if self.held.n_bytes > self.held.most:
            self._refuse(_TOO_MANY)
            return
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._has_begun = self._is_in_body = self._is_asking = False
        self._n_frame = self._n_body = 0
        if not self.transport.is_closing():
            super().on_message_complete()

    # ------------------------------------------------------------------- a request is answered

    def on_response_complete(self) -> None:
        self._since = self.loop.time()
        self._hold(-self._n_held)
        super().on_response_complete()
        if self._waiting:
            self._feed()
        if self._has_ended and not self._is_answering():
            self.transport.close()

    def timeout_keep_alive_handler(self) -> None:
        """Leave it to the timer that looks at everything."""

    def resume_writing(self) -> None:
        self._n_unsent = inf
        super().resume_writing()

    # ------------------------------------------------------------------- limits

    def _hold(self, n_bytes: int) -> None:
        self._n_held += n_bytes
        self.held.n_bytes += n_bytes

    def _look(self) -> None:
        """End a connection that takes too long to ask or to listen, or has not asked for long.

        It looks often enough to end a request before it has taken twice as long as it may.
        """
        took, longest = self.loop.time() - self._since, self.request_seconds
        if self.transport.is_closing() or self._is_stalled():
            self.transport.abort()
            return
        if self._is_asking:
            if took >= longest:
                self._refuse(_TOO_SLOW)
            longest -= took
        elif not self._is_answering():
            if took >= self.timeout_keep_alive:
                self.transport.close()
            longest = min(longest, self.timeout_keep_alive - took)
        self._watch = self.loop.call_later(longest if longest > 0.0 else 1.0, self._look)

    def _is_stalled(self) -> bool:
        """Return whether nothing at all was read of an answer since this was last asked."""
        before, self._n_unsent = self._n_unsent, inf
        if self.flow.write_paused:
            self._n_unsent = self.transport.get_write_buffer_size()
        return before <= self._n_unsent < inf

    def _refuse(self, answer: bytes) -> None:
        """Say what is wrong, unless another answer is on its way or was given, and hang up."""
        if self.transport.is_closing():
            return
        cycle = self.cycle
        if cycle is None or cycle.response_complete:
            is_in_turn = not self._is_in_body
        else:
            is_in_turn = not cycle.response_started
            cycle.disconnected = True
            cycle.message_event.set()
        if is_in_turn:
            self.transport.write(answer)
        self.transport.close()


def connections(settings: Settings) -> type[Connection]:
    """Return the connections of an application, as a class for uvicorn to make them of."""
    shared = {"held": Held(settings.max_pending_bytes), "request_seconds": settings.request_seconds}
    return type("Connections", (Connection,), shared)
