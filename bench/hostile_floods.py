"""What ``bench.hostile`` keeps up: hundreds of requests that are never whole, floods that go on.

Its other attacks are many, but short and small; these show what connections keep together, and
whether others get their turn while somebody sends as much as is taken.
"""

import socket
import time
from contextlib import suppress
from typing import NamedTuple

_POST = (
    b"POST /v1/rankers/good/rank HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
)
_CHUNKED = b"transfer-encoding: chunked\r\n\r\n"
_GET = b"GET /openapi.json HTTP/1.1\r\nhost: localhost\r\n\r\n"
_PIECE = 65_536
_LONGEST = 6.0
"""How many seconds strangers may take to send what they hold; some of it is never taken."""


class Flood(NamedTuple):
    """What strangers send: a beginning, and then something without end, or nothing more."""

    name: str
    begins: bytes
    goes_on: bytes = b""


def floods(key):
    """Return all of them; those that come with a key are not refused before they are read."""
    known = _POST + b"authorization: Bearer " + key.encode() + b"\r\n"
    return [
        Flood("heads of small fields", _POST + b"ab:\r\n" * 12_000),
        Flood("heads of large fields", _POST + b"".join(b"a%d: %b\r\n" % (i, b"x" * 900)
                                                        for i in range(70))),
        Flood("bodies", known + b"content-length: 8000000\r\n\r\n" + b" " * 250_000),
        Flood("trailers", known + _CHUNKED + b"2\r\n{}\r\n0\r\n" + b"a:b\r\n" * 12_000),
        Flood("requests ahead", _GET * 4_000),
        Flood("endless fields", _POST, b"ab:\r\n"),
        Flood("endless small chunks", known + _CHUNKED, b"5\r\nxxxxx\r\n"),
        Flood("endless chunks without a key", _POST + _CHUNKED, b"5\r\nxxxxx\r\n"),
        Flood("endless fair chunks", known + _CHUNKED, b"40\r\n" + b" " * 0x40 + b"\r\n"),
        Flood("endless trailers", known + _CHUNKED + b"2\r\n{}\r\n0\r\n", b"a:b\r\n"),
        Flood("endless requests", b"", _GET),
    ]  # fmt: skip


class Stranger:
    """A connection that is sent as much as it takes, and listened to a little."""

    def __init__(self, port, flood):
        self._port = port
        self._flood = flood
        self._more = flood.goes_on * (_PIECE // max(1, len(flood.goes_on)))
        self._dial()

    def _dial(self):
        self._left = self._flood.begins or self._more
        self._socket = socket.socket()
        self._socket.setblocking(False)
        with suppress(BlockingIOError):
            self._socket.connect(("127.0.0.1", self._port))

    def turn(self):
        """Send what is taken, and return whether there is more to send.

        Whoever sends without end comes again when hung up on.
        """
        try:
            with suppress(BlockingIOError):
                self._left = self._left[self._socket.send(self._left) :] or self._more
            with suppress(BlockingIOError):
                if not self._socket.recv(200):
                    raise ConnectionResetError
        except OSError:
            self._left = b""
            if self._more:
                self.leave()
                self._dial()
        return bool(self._left)

    def leave(self):
        self._socket.close()


def keep_up(port, flood, n_strangers, seconds):
    """Have many strangers send the same, and go on for some time from when all have sent it."""
    now = ready = time.monotonic()
    ends_at = now + _LONGEST + seconds
    strangers: list[Stranger] = []
    try:
        while now < min(ready + seconds, ends_at):
            if len(strangers) < n_strangers:
                strangers += [Stranger(port, flood) for _ in range(min(20, n_strangers))]
            n_busy = sum([stranger.turn() for stranger in strangers])
            if not flood.goes_on and (n_busy or len(strangers) < n_strangers):
                ready = now
            time.sleep(0.002)
            now = time.monotonic()
    finally:
        for stranger in strangers:
            stranger.leave()
