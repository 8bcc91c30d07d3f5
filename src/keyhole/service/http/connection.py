"""Connections: uvicorn's protocol with the limits it lacks, built on its public names.

The parser gets one request at a time; pipelined bytes wait unparsed until it is answered, so each
connection holds at most one request in memory. Many small chunks and pipelined requests are parsed
in turns of the event loop, so that they do not delay other clients.
"""

import asyncio
import re
from math import inf
from typing import Any

import httptools
from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from keyhole.service.http import connection_errors
from keyhole.service.http.connection_errors import (
    FRAME_SHARE,
    MAX_FIELDS,
    MAX_FRAME_BYTES,
    MAX_HEAD_BYTES,
)
from keyhole.service.http.fairness import Turns
from keyhole.service.settings import Settings

try:
    import resource
except ImportError:  # pragma: no cover - Windows: descriptors have no such limit
    resource = None  # type: ignore[assignment]

_MOST_FED = 4 * 1024
_MOST_FED_OF_CHUNKS = 256
"""The parser finds the end of a chunk: it may read this many bytes beyond it."""
_MOST_CHUNKS_AT_ONCE = 1024
_MOST_CHUNKS_A_TURN = 8 * 1024
"""Chunk bytes parsed on arrival, and per turn: at most half a millisecond of work."""
_ALWAYS_HELD = 16 * 1024
"""Bytes guaranteed to every request; otherwise large requests could lock everybody out."""
_MOST_IDLE = 2_048
_LINGERS = 1.0
_PAUSE = 0.02
"""Seconds that a closing connection drains input, and seconds between two reads."""
_HEAD_END = b"\r\n\r\n"
_LINE_END = b"\r\n"
_LINE_ENDS = re.compile(rb"[\r\n]+")


class Held:
    """The bytes of unanswered requests, over all connections."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.n_bytes = 0


class Flow(FlowControl):
    """Flow control that resumes reading only if no received bytes are left to parse."""

    is_full = False

    def resume_reading(self) -> None:
        """Resume reading, if nothing is left to parse."""
        if not self.is_full:
            super().resume_reading()


class Connection(HttpToolsProtocol):
    """One connection.

    One periodic timer enforces all time limits: a timer per request would cost as much as the
    request itself.
    """

    flow: Flow
    held: Held
    turns: Turns
    unanswered: dict["Connection", None]
    """Receiving or idle connections, ordered by their last start of a request or end of a head."""
    most_connections: int
    request_seconds: float
    _waiting: bytes = b""
    _at = 0
    """Bytes of the buffer already fed to the parser."""
    _has_begun = False
    _is_in_body = False
    _is_asking = True
    """Whether a request is arriving; the first one counts from the connection on."""
    _since = 0.0
    """The start of the arriving request, or else the end of the last answer."""
    _n_request = 0
    """Bytes of the request that is arriving or being answered."""
    _n_frame = 0
    """Bytes of the head so far; after its end, bytes of chunk framing as well."""
    _n_body = 0
    _n_left: int | None = 0
    """Missing bytes of the body; None for a chunked body."""
    _n_held = 0
    _n_unsent = inf
    """Unsent bytes of the answer at the last check, if the client reads slowly."""
    _has_ended = False
    _is_given_up = False
    _watch: asyncio.TimerHandle | None = None

    # ------------------------------------------------------------------- incoming bytes

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self.flow = Flow(transport)
        self._since = self.loop.time()
        self._watch = self.loop.call_later(self.request_seconds, self._look)
        self._queue()
        if len(self.connections) > self.most_connections:
            oldest = next(iter(self.unanswered))
            del self.unanswered[oldest]
            oldest.transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        for timer in (self._watch, self.timeout_keep_alive_task):
            if timer is not None:
                timer.cancel()
        self.unanswered.pop(self, None)
        self._waiting = b""
        self._hold(0)
        super().connection_lost(exc)

    def eof_received(self) -> bool:  # type: ignore[override]
        """Answer the pending request after the client half-closes the connection.

        A live stream has no end: for it a half-close counts as a disconnect.
        """
        if self._is_given_up:
            return False
        self._has_ended = self._is_answering() and not self._is_in_body
        return self._has_ended and not self.scope["path"].endswith("/stream")

    def data_received(self, data: bytes) -> None:
        if self._is_given_up:
            self.flow.pause_reading()
            self.loop.call_later(_PAUSE, self.flow.resume_reading)
            return
        self._waiting = self._waiting[self._at :] + data if self._waiting else data
        self._at = 0
        self._feed(_MOST_CHUNKS_AT_ONCE)

    def _is_answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _may_come_in(self) -> bool:
        return self._is_in_body or not self._is_answering()

    def _is_over(self) -> bool:
        return self._is_given_up or self.transport.is_closing()

    def _feed(self, most_chunks: int) -> None:
        """Feed the parser from the buffer, up to the end of one request.

        At most ``most_chunks`` bytes of chunks are parsed: small chunks are expensive.
        """
        data, at, end = self._waiting, self._at, len(self._waiting)
        view = memoryview(data)
        while at < end and most_chunks > 0 and self._may_come_in():
            piece = view[at : at + self._n_next(data, at)]
            at += len(piece)
            if self._n_left is None:
                most_chunks -= len(piece)
            self._parse(piece)
            if self._is_over():
                return
        self._at = at
        if at < end:
            self._let_wait()
            return
        self._waiting = b""
        self._hold(self._n_request)
        if self.flow.is_full:
            self.flow.is_full = False
            self.flow.resume_reading()

    def _parse(self, piece: memoryview) -> None:
        """Feed the parser; refuse malformed or oversized input."""
        self._n_frame += len(piece)
        self._n_request += len(piece)
        try:
            self.parser.feed_data(piece)
        except httptools.HttpParserUpgrade:
            return  # already refused
        except httptools.HttpParserError:
            self._refuse(connection_errors.NO_HTTP)
        if not self._is_in_body and self._n_frame > MAX_HEAD_BYTES:
            self._refuse(connection_errors.HEAD_TOO_LARGE)
        elif self._is_in_body and self._n_frame > MAX_FRAME_BYTES + self._n_body // FRAME_SHARE:
            self._refuse(connection_errors.FRAME_TOO_LARGE)
        elif not self._hold(self._n_request):
            self._refuse(connection_errors.TOO_MANY)

    def _let_wait(self) -> None:
        """Pause reading until the buffer is parsed: in the next turn, or after an answer.

        A pipelined request is dropped if there is no room for it.
        """
        self.flow.is_full = True
        self.flow.pause_reading()
        has_room = self._hold(self._n_request + len(self._waiting))
        if self._may_come_in():
            self.turns.take(self.loop, self._go_on)
        elif not has_room:
            self._waiting = b""
            self._hold(self._n_request)
            self.cycle.keep_alive = False

    def _go_on(self) -> None:
        if not self._is_over():
            self._feed(_MOST_CHUNKS_A_TURN)
            self._end_if_all_is_answered()

    def _end_if_all_is_answered(self) -> None:
        if self._has_ended and not self._is_answering():
            self.transport.close()

    def _n_next(self, data: bytes, at: int) -> int:
        """Return how many bytes to feed, so that the parser reads at most one request."""
        if self._is_in_body:
            return _MOST_FED_OF_CHUNKS if self._n_left is None else max(self._n_left, 1)
        if not self._has_begun and data[at] in _LINE_END:  # line ends may precede a request
            found = _LINE_ENDS.match(data, at)
            return found.end() - at if found else 1
        begin = at
        if self._n_frame:  # the end of a head may span two reads
            if at < len(_HEAD_END) - 1:
                return 1
            begin -= len(_HEAD_END) - 1
        end = data.find(_HEAD_END, begin, at + _MOST_FED)
        return end + len(_HEAD_END) - at if end >= 0 else _MOST_FED

    # ------------------------------------------------------------------- parser callbacks

    def on_message_begin(self) -> None:
        self._has_begun = self._is_asking = True
        self._since = self.loop.time()
        super().on_message_begin()

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._is_in_body or self._is_over():  # ignore trailers
            return
        if len(self.headers) == MAX_FIELDS:
            self._refuse(connection_errors.HEAD_TOO_LARGE)
            return
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        names = [name for name, _ in self.headers]
        wrong = self._wrong_with(names)
        if wrong is not None:
            self._refuse(wrong)
        if self._is_over():
            return
        self._queue()
        super().on_headers_complete()  # raises where the target is none, which is refused then
        self._is_in_body, self._n_frame, self._n_left = True, 0, 0
        if b"content-length" in names:
            self._n_left = int(self.headers[names.index(b"content-length")][1])
        elif b"transfer-encoding" in names:
            self._n_left = None

    def _wrong_with(self, names: list[bytes]) -> bytes | None:
        version = self.parser.get_http_version()
        if version not in ("1.1", "1.0"):
            return connection_errors.NO_HTTP
        if self.parser.should_upgrade():  # the parser would take a body for another request
            return connection_errors.UPGRADE
        n_hosts = names.count(b"host")
        if n_hosts > 1 or names.count(b"authorization") > 1:
            return connection_errors.TWICE
        if not n_hosts and version == "1.1":
            return connection_errors.NO_HOST
        if b"transfer-encoding" in names and not self._is_chunked(names, version):
            return connection_errors.CODING
        return None

    def _is_chunked(self, names: list[bytes], version: str) -> bool:
        """Return whether a body comes in chunks and no other coding: proxies differ about those."""
        coding = self.headers[names.index(b"transfer-encoding")][1].lower()
        return coding == b"chunked" and names.count(b"transfer-encoding") == 1 and version == "1.1"

    def on_body(self, body: bytes) -> None:
        n_bytes = len(body)
        self._n_frame -= n_bytes
        self._n_body += n_bytes
        if self._n_left is not None:
            self._n_left -= n_bytes
        if not self._is_over():
            super().on_body(body)

    def on_message_complete(self) -> None:
        self._has_begun = self._is_in_body = self._is_asking = False
        self._n_frame = self._n_body = 0
        self.unanswered.pop(self, None)
        if self._is_over():
            return
        if not self.parser.should_keep_alive():  # a trailer may say so: it reads nothing after this
            self.cycle.keep_alive = False
        super().on_message_complete()

    # ------------------------------------------------------------------- responses

    def on_response_complete(self) -> None:
        self._since = self.loop.time()
        self._n_request = 0
        self._hold(len(self._waiting))
        super().on_response_complete()
        if self._is_in_body and not self._is_answering():  # the rest of the body is not needed
            self._give_up()
        if self._is_over():
            return
        if not self._is_answering():
            self._queue()
        if self._waiting:
            self.turns.take(self.loop, self._go_on)
        else:
            self._end_if_all_is_answered()

    def timeout_keep_alive_handler(self) -> None:
        """Do nothing: the periodic timer enforces this limit."""

    def resume_writing(self) -> None:
        self._n_unsent = inf
        super().resume_writing()

    # ------------------------------------------------------------------- limits

    def _queue(self) -> None:
        """Move to the end of the queue of connections that may be closed to make room."""
        self.unanswered.pop(self, None)
        self.unanswered[self] = None

    def _hold(self, n_bytes: int) -> bool:
        """Reserve bytes, and return whether there is room for them."""
        held = self.held
        held.n_bytes += n_bytes - self._n_held
        self._n_held = n_bytes
        return n_bytes <= _ALWAYS_HELD or held.n_bytes <= held.most

    def _look(self) -> None:
        """Close a connection that sends or reads too slowly, or has been idle for too long.

        It runs often enough to end a request within twice its time limit.
        """
        took, longest = self.loop.time() - self._since, self.request_seconds
        if self._is_over() or self._is_stalled():
            self.transport.abort()
            return
        if self._is_asking:
            if took >= longest:
                self._refuse(connection_errors.TOO_SLOW)
                return
            longest -= took
        elif not self._is_answering():
            if took >= self.timeout_keep_alive:
                self.transport.close()
            longest = min(longest, self.timeout_keep_alive - took)
        self._watch = self.loop.call_later(longest if longest > 0.0 else 1.0, self._look)

    def _is_stalled(self) -> bool:
        """Return whether the client has read nothing since the last check."""
        before, self._n_unsent = self._n_unsent, inf
        if self.flow.write_paused:
            self._n_unsent = self.transport.get_write_buffer_size()
        return before <= self._n_unsent < inf

    def _refuse(self, answer: bytes) -> None:
        """Send an error, unless another answer has been started, and close the connection."""
        if self._is_over():
            return
        cycle = self.cycle
        if cycle is None or cycle.response_complete:
            is_in_turn = not self._is_in_body
        else:
            is_in_turn = not cycle.response_started
            cycle.disconnected, cycle.waiting_for_100_continue = True, False
            cycle.message_event.set()
        if is_in_turn:
            self.transport.write(answer)
        self._give_up()

    def _give_up(self) -> None:
        """Half-close the connection, and drain input for a moment.

        Closing a socket with unread input would reset the connection, and the client would lose the
        answer.
        """
        self._is_given_up = True
        self._waiting = b""
        self._hold(0)
        self.transport.write_eof()
        self.flow.is_full = False
        self.flow.resume_reading()
        if self._watch is not None:
            self._watch.cancel()
        self._watch = self.loop.call_later(_LINGERS, self._look)


def most_connections(settings: Settings) -> int:
    """Return the maximum number of connections: three quarters of the file descriptors."""
    most = settings.max_concurrency + settings.max_streams + _MOST_IDLE
    n_descriptors = -1 if resource is None else resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return most if n_descriptors < 0 else min(most, n_descriptors * 3 // 4)


def connections(settings: Settings) -> type[Connection]:
    """Return the protocol class for uvicorn, bound to the settings."""
    shared = {
        "held": Held(settings.max_pending_bytes),
        "turns": Turns(),
        "unanswered": {},
        "most_connections": most_connections(settings),
        "request_seconds": settings.request_seconds,
    }
    return type("Connections", (Connection,), shared)
