"""Connections: uvicorn's, with limits that it lacks and a short way for what is asked most.

A list is ranked and learnt from in some forty microseconds, of which ASGI would take another
thirty: a task, two messages, an event and a dictionary for each request. So requests that are
small, come whole and are about ranking or feedback go to the desk from here, and are answered with
one write when it replies. Everything else goes the
usual way, and both ways lead through the same gate.
"""

import asyncio
import re
from typing import Any, NamedTuple

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from keyhole.service.http.call import Call
from keyhole.service.http.gate import Gate
from keyhole.service.http.operations import Errand
from keyhole.service.http.problems import CLOSE
from keyhole.service.http.wire import Answer, Headers, Message

MAX_HEAD_BYTES = 64 * 1024
MAX_DIRECT_BYTES = 64 * 1024
_PREFIX, _ENDINGS = b"/v1/rankers/", (b"/rank", b"/feedback")
_LINE_END = b"\r\n"
_LINE = re.compile(rb"(POST|PUT) (/v1/rankers/[\w.~/-]+/(?:rank|feedback)) HTTP/1\.1")
_MOST_HEADS = 64
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
    """A request on the short way: all that uvicorn asks of its own, and where the reply goes."""

    __slots__ = ("body", "call", "connection", "disconnected", "errand", "headers", "keep_alive",
                 "method", "more_body", "response_complete", "response_started",
                 "url")  # fmt: skip
    message_event = _NoEvent()
    call: Call
    errand: Errand | None

    def __init__(
        self,
        connection: "Connection",
        method: str,
        url: bytes,
        headers: dict[bytes, bytes],
        keep_alive: bool,
    ) -> None:
        self.connection = connection
        self.method = method
        self.url = url
        self.headers = headers
        self.keep_alive = keep_alive
        self.body = b""
        self.more_body = True
        self.disconnected = False
        self.response_started = False
        self.response_complete = False

    def begin(self) -> None:
        """Hand the request on, now that it has come whole."""
        self.more_body = False
        scope = {
            "method": self.method,
            "path": self.url.decode("latin-1"),
            "raw_path": self.url,
            "query_string": b"",
        }
        gate = self.connection.gate
        self.call = Call(gate.service, scope, _nothing_more, self.headers, self.body)
        gate.begin(self.call, self)

    def done(self) -> bool:
        """Return that what was asked for is done even if whoever asked has gone."""
        return False

    def set_result(self, result: Any) -> None:
        """Answer with what the desk has replied."""
        assert self.errand is not None  # noqa: S101 - there is no reply without one
        self.connection.send(self, self.connection.gate.end(self.call, self.errand, result))

    def set_exception(self, exception: Exception) -> None:
        """Answer that it was not done, and why."""
        self.connection.send(self, self.connection.gate.fail(self.call, exception))


class Fields(NamedTuple):
    """The fields of a request: as they came, as they were read, and the length of the body."""

    raw: bytes
    """From behind the first line to the empty one, and that as well."""
    headers: dict[bytes, bytes]
    n_body: int


class Connection(HttpToolsProtocol):
    """One connection.

    Its time limits are watched by one timer that looks now and then, as a timer for each request
    and each pause would take as long as an answer does.
    """

    gate: Gate
    heads: "Heads"
    request_seconds: float
    _n_head = 0
    _in_head = True
    _is_asking = True
    """Whether a request is coming in; the first one from the moment somebody is there."""
    _since = 0.0
    """When it began to come in, or else when the last one was answered."""
    _watch: asyncio.TimerHandle | None = None
    _known: "Fields | None" = None
    """Those of the last request, if it went the short way."""

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._since = self.loop.time()
        self._watch = self.loop.call_later(self.request_seconds, self._look)

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_watching()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._known is not None and self._take_alike(data, self._known):
            return
        before, is_new = self.cycle, self._in_head and not self._n_head
        if self._in_head:
            self._n_head += len(data)
        super().data_received(data)
        if is_new and self.cycle is not before:
            self._known = self._fields_of(data)
        # What came with the end of a head is a body, which has a limit of its own.
        if self._in_head and self._n_head > MAX_HEAD_BYTES:
            self._refuse(_TOO_LARGE)

    # ------------------------------------------------------------------- a request comes in

    def on_message_begin(self) -> None:
        if not self._is_asking:
            self._is_asking, self._since = True, self.loop.time()
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
        if self.flow.write_paused or not (self.cycle is None or self.cycle.response_complete):
            return None  # another answer is on its way, or is not being read
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
        return DirectCycle(self, method, self.url, headers, parser.should_keep_alive())

    def _fields_of(self, data: bytes) -> "Fields | None":
        """Return the fields of the one request in some data, if it went the short way."""
        cycle: Any = self.cycle
        if type(cycle) is not DirectCycle or cycle.more_body or not cycle.keep_alive:
            return None
        rest = data.partition(_LINE_END)[2]
        n_head = rest.find(2 * _LINE_END) + 2 * len(_LINE_END)
        if len(rest) - n_head != len(cycle.body):
            return None  # there is more in it than one request
        return Fields(rest[:n_head], cycle.headers, len(cycle.body))

    def _take_alike(self, data: bytes, known: "Fields") -> bool:
        """Take a request that has the fields of the last one; return whether it was one.

        Clients say the same in every request, byte by byte, and what the parser makes of it is
        known: only the first line is new.
        """
        if self._n_head or not self._in_head or self.flow.write_paused:
            return False
        line, _, rest = data.partition(_LINE_END)
        n_head = len(known.raw)
        if len(rest) != n_head + known.n_body or not rest.startswith(known.raw):
            return False
        found = _LINE.fullmatch(line)
        if found is None or not self.cycle.response_complete:
            return False
        cycle = DirectCycle(self, found[1].decode(), found[2], known.headers, True)
        cycle.body = rest[n_head:]
        self.cycle = cycle  # type: ignore[assignment]
        cycle.begin()
        return True

    def on_body(self, body: bytes) -> None:
        cycle: Any = self.cycle
        if type(cycle) is DirectCycle:
            cycle.body += body
        else:
            super().on_body(body)

    def on_message_complete(self) -> None:
        self._in_head, self._n_head, self._is_asking = True, 0, False
        cycle: Any = self.cycle
        if type(cycle) is DirectCycle and cycle.more_body:
            cycle.begin()
        else:
            super().on_message_complete()

    # ------------------------------------------------------------------- and is answered

    def send(self, cycle: DirectCycle, answer: Answer) -> None:
        """Send the answer to a request that came the short way."""
        cycle.response_started = cycle.response_complete = True
        if cycle.disconnected or self.transport.is_closing():
            return
        head = self.heads.of(answer, self.server_state.default_headers)
        close = b""
        if answer.status >= 400 and CLOSE in answer.headers:
            cycle.keep_alive = False
        elif not cycle.keep_alive:
            close = b"connection: close\r\n"
        length = b"content-length: %d\r\n\r\n" % len(answer.body)
        self.transport.write(b"".join((head, close, length, answer.body)))
        if not cycle.keep_alive:
            self.transport.close()
        if self.pipeline or self.flow.read_paused:
            self.on_response_complete()
        else:
            self.server_state.total_requests += 1
            self._since = self.loop.time()

    # ------------------------------------------------------------------- limits

    def _look(self) -> None:
        """End a connection that takes too long to ask, or has not asked for long.

        It looks often enough to end a request before it has taken twice as long as it may.
        """
        cycle: Any = self.cycle
        took, left = self.loop.time() - self._since, self.request_seconds
        if self._is_asking:
            left -= took
            if left <= 0.0:
                self._refuse(_TOO_SLOW)
                return
        elif (
            type(cycle) is DirectCycle
            and cycle.response_complete
            and took >= self.timeout_keep_alive
        ):
            self._stop_watching()
            self.transport.close()
            return
        self._watch = self.loop.call_later(left, self._look)

    def _stop_watching(self) -> None:
        if self._watch is not None:
            self._watch.cancel()
            self._watch = None

    def _refuse(self, answer: bytes) -> None:
        """Say what is wrong, unless another answer is on its way, and hang up."""
        self._stop_watching()
        if self.transport.is_closing():
            return
        cycle = self.cycle
        if cycle is None or cycle.response_complete or not cycle.response_started:
            self.transport.write(answer)
        self.transport.close()


class Heads:
    """Heads of answers without their lengths: there are few, as long as the date is the same."""

    def __init__(self) -> None:
        self._made: dict[tuple[int, Headers], bytes] = {}
        self._defaults: list[tuple[bytes, bytes]] | None = None

    def of(self, answer: Answer, defaults: list[tuple[bytes, bytes]]) -> bytes:
        """Return the head of an answer, with the server's own headers first."""
        if defaults is not self._defaults:
            self._made.clear()
            self._defaults = defaults
        key = (answer.status, answer.headers)
        head = self._made.get(key)
        if head is None:
            lines = [b"%b: %b\r\n" % pair for pair in (*defaults, *answer.headers)]
            head = b"".join((STATUS_LINE[answer.status], *lines))
            if len(self._made) < _MOST_HEADS:  # one that repeats the id of its request is rare
                self._made[key] = head
        return head


async def _nothing_more() -> Message:
    return {"type": "http.disconnect"}


def connections(gate: Gate, request_seconds: float) -> type[Connection]:
    """Return the connections of an application, as a class for uvicorn to make them of."""
    shared = {"gate": gate, "heads": Heads(), "request_seconds": request_seconds}
    return type("Connections", (Connection,), shared)
