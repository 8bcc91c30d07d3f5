"""What strangers send to a port: nothing grows without end, nothing gets in, others are served."""

import asyncio
import errno
import resource
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from keyhole.service.api import log
from keyhole.service.keys import new_key
from tests.service.asking import Asked, problem
from tests.service.test_http_server import Running, _get

pytestmark = pytest.mark.interpreted

HEAD = (
    b"POST /v1/rankers/animals/rank HTTP/1.1\r\nhost: localhost\r\n"
    b"content-type: application/json\r\n"
)
CHUNKED = HEAD + b"transfer-encoding: chunked\r\n\r\n"
CLOSE = b"connection: close\r\n"
PUT_SMUGGLED = (
    b"PUT /v1/rankers/smuggled HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
    b'content-length: 23\r\n\r\n{"items":["a"],"seed":1}'
)


@pytest.fixture(scope="module")
def running():
    with Running(request_seconds=20.0) as opened:
        opened.until_ready()
        yield opened
        assert opened.server.config.http.held.n_bytes == 0


def dialled(running, *pieces, timeout=10.0):
    connection = socket.create_connection(("127.0.0.1", running.port), timeout)
    for piece in pieces:
        connection.sendall(piece)
    return connection


def answer_to(running, *pieces):
    """Return the beginning of what comes back, even if the service hangs up on what was sent."""
    with dialled(running) as connection:
        told = b""
        with suppress(BrokenPipeError, ConnectionResetError):
            for piece in pieces:
                connection.sendall(piece)
        with suppress(ConnectionResetError):
            told = connection.recv(65_536)
        return told


def resident():
    """Return the memory of this process, which the service runs in, in bytes."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize()


# ----------------------------------------------------------------------- framing


@pytest.mark.parametrize(
    "rest",
    [
        b"0\r\n" + b"a:b\r\n" * 20_000,
        b"0\r\n" + b"a" * 100_000,
        b"1\r\nx\r\n" * 20_000,
        b"1;" + b"a" * 100_000,
        b"1;a=b\r\nx\r\n" * 12_000,
        b"5\r\nxxxxx\r\n" * 20_000,
    ],
    ids=["trailers", "one trailer", "of a byte", "an extension", "extensions", "of five"],
)
def test_what_frames_a_body_has_a_limit(running, rest):
    assert answer_to(running, CHUNKED + rest).startswith(b"HTTP/1.1 431")


def test_a_body_in_chunks_of_a_fair_size_is_read(running):
    body = b'{"event_id":"fair"}' + b" " * 500_000
    chunks = b"".join(
        b"40\r\n" + body[i : i + 64].ljust(64) + b"\r\n" for i in range(0, len(body), 64)
    )
    told = running.raw(
        HEAD + CLOSE + b"transfer-encoding: chunked\r\n\r\n" + chunks + b"0\r\na: b\r\n\r\n"
    )
    assert told.startswith(b"HTTP/1.1 201")


def test_trailers_change_nothing():
    with Running() as running:
        text, key = new_key(["rank"], ["*"])
        running.store.add_key(key)
        running.until_ready()
        field = b"authorization: Bearer " + text.encode() + b"\r\n"
        body = b"2\r\n{}\r\n0\r\n"
        head = HEAD + CLOSE + b"transfer-encoding: chunked\r\n"
        assert running.raw(head + field + b"\r\n" + body + b"\r\n").startswith(b"HTTP/1.1 201")
        assert running.raw(head + b"\r\n" + body + field + b"\r\n").startswith(b"HTTP/1.1 401")
        lies = b"authorization: Bearer kh_a_b\r\nhost: evil.example\r\n"
        assert running.raw(head + field + b"\r\n" + body + lies + b"\r\n").startswith(
            b"HTTP/1.1 201"
        )


# ----------------------------------------------------------------------- pipelines


def test_pipelined_requests_that_nobody_reads_the_answers_of_take_no_memory(running):
    before = resident()
    with dialled(running) as connection:
        connection.setblocking(False)
        piece = _get("/healthz") * 2_000
        ends_at, n_sent = time.monotonic() + 6.0, 0
        while time.monotonic() < ends_at and n_sent < 30_000_000:
            try:
                n_sent += connection.send(piece)
            except BlockingIOError:
                time.sleep(0.01)
    assert resident() - before < 40_000_000
    assert running.get("/healthz")[0] == 200


def test_a_thousand_pipelined_requests_are_answered_in_order(running):
    asked = b"".join(_get(f"/v1/rankers/none-{i}") for i in range(1_000))
    told = b""
    with dialled(running, asked) as connection:
        while told.count(b"There is no ranker") < 1_000:
            piece = connection.recv(65_536)
            assert piece
            told += piece
    places = [told.index(b"'none-%d'" % i) for i in range(1_000)]
    assert places == sorted(places)


def test_what_was_sent_ahead_is_given_up_where_there_is_no_room_for_it():
    with Running(max_pending_bytes=10_000) as running:
        running.until_ready()
        told = answers(running, _get("/healthz") * 2_000)
        assert told.startswith(b"HTTP/1.1 200")
        assert 1 <= told.count(b"HTTP/1.1 200") < 2_000
        assert told.count(b"connection: close") == 1
        assert running.get("/healthz")[0] == 200


def answers(running, asked):
    """Return all that comes back until the service hangs up, however it does."""
    told = b""
    with dialled(running, asked) as connection, suppress(ConnectionResetError):
        while piece := connection.recv(65_536):
            told += piece
    return told


def test_pipelined_bodies_in_chunks_are_told_from_what_follows(running):
    one = CHUNKED + b"2\r\n{}\r\n0\r\nx: y\r\n\r\n"
    last = HEAD + CLOSE + b"transfer-encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n"
    told = running.raw((one + _get("/healthz")) * 50 + last)
    assert (told.count(b"HTTP/1.1 201"), told.count(b"HTTP/1.1 200")) == (51, 50)


def test_a_request_may_be_split_at_every_byte(running):
    body = b'{"exclude":["ant"]}'
    request = HEAD + b"content-length: %d\r\n\r\n" % len(body) + body
    other = CHUNKED + b"5;a=b\r\n" + body[:5] + b"\r\ne\r\n" + body[5:] + b"\r\n0\r\na: b\r\n\r\n"
    for whole in (request, other):
        with dialled(running) as connection:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for cut in range(1, len(whole)):
                connection.sendall(whole[:cut])
                time.sleep(0.0005)
                connection.sendall(whole[cut:])
                assert connection.recv(65_536).startswith(b"HTTP/1.1 201"), whole[:cut]


# ----------------------------------------------------------------------- heads


@pytest.mark.parametrize("wish", [b"Upgrade: h2c", b"Upgrade: websocket", b"Upgrade: x\r\nA: b"])
def test_a_body_is_never_read_as_another_request(running, wish):
    length = b"content-length: %d\r\n" % len(PUT_SMUGGLED)
    head = b"POST /healthz HTTP/1.1\r\nhost: localhost\r\nconnection: upgrade\r\n" + wish + b"\r\n"
    told = running.raw(head + length + b"\r\n" + PUT_SMUGGLED)
    assert told.startswith(b"HTTP/1.1 400")
    assert told.count(b"HTTP/1.1") == 1
    assert running.get("/v1/rankers/smuggled")[0] == 404


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        (b"host: localhost\r\nhost: localhost\r\n", 400),
        (b"", 400),
        (b"host: localhost\r\nauthorization: a\r\nauthorization: a\r\n", 400),
        (b"host: localhost\r\ncontent-length: 2\r\ntransfer-encoding: chunked\r\n", 400),
        (b"host: localhost\r\ncontent-length: 2\r\ncontent-length: 2\r\n", 400),
        (b"host: localhost\r\ncontent-length: -2\r\n", 400),
        (b"host: localhost\r\ncontent-length:  2 \r\n", 201),
        (b"host: localhost\r\ncontent-length:\t2\t\r\n", 201),
    ],
)
def test_fields_that_decide_come_once(running, fields, status):
    line = b"POST /v1/rankers/animals/rank HTTP/1.1\r\ncontent-type: application/json\r\n"
    told = running.raw(line + CLOSE + fields + b"\r\n{}")
    assert told.startswith(b"HTTP/1.1 %d" % status), told


@pytest.mark.parametrize(
    "codings",
    [
        [b"gzip, chunked"], [b"identity"], [b"chunked, identity"], [b"identity", b"chunked"],
        [b"chunked", b"chunked"], [b"xchunked"], [b"\x0bchunked"], [b""],
    ],
    ids=repr,
)  # fmt: skip
def test_a_body_comes_in_chunks_or_with_a_length_and_in_no_other_coding(running, codings):
    fields = b"".join(b"transfer-encoding: " + coding + b"\r\n" for coding in codings)
    told = running.raw(HEAD + fields + b"\r\n2\r\n{}\r\n0\r\n\r\n" + _get("/healthz"))
    assert (told[:12], told.count(b"HTTP/1.1 ")) == (b"HTTP/1.1 400", 1)


@pytest.mark.parametrize(
    ("version", "status"),
    [(b" HTTP/1.0", 200), (b"", 400), (b" HTTP/0.9", 400), (b" HTTP/2.0", 400)],
)
def test_versions_of_http_that_are_not_spoken_are_refused(running, version, status):
    told = running.raw(b"GET /healthz" + version + b"\r\nhost: localhost\r\n" + CLOSE + b"\r\n")
    assert told.startswith(b"HTTP/1.1 %d" % status), told


def test_the_oldest_clients_send_no_chunks(running):
    head = CHUNKED.replace(b"HTTP/1.1", b"HTTP/1.0")
    assert running.raw(head + b"2\r\n{}\r\n0\r\n\r\n").startswith(b"HTTP/1.1 400")


@pytest.mark.parametrize(
    "target",
    [b"http://localhost", b"http://[::1/healthz", b"http://localhost?x", b"localhost:80", b"*\xff"],
)
def test_a_target_that_is_none_is_told_so(running, target):
    told = running.raw(b"GET " + target + b" HTTP/1.1\r\nhost: localhost\r\n\r\n")
    assert told.startswith(b"HTTP/1.1 400")
    assert b"urn:keyhole:problem:malformed" in told


@pytest.mark.parametrize("field", [b"connection: close", b"proxy-connection: close"])
def test_a_trailer_that_ends_the_connection_leaves_no_request_waiting(running, field):
    """The parser reads nothing after it; the connection stayed open, and what followed unread."""
    one = CHUNKED + b"2\r\n{}\r\n0\r\n" + field + b"\r\n\r\n"
    with dialled(running, one, timeout=5.0) as connection:
        told = b""
        while piece := connection.recv(65_536):
            told += piece
    assert told.startswith(b"HTTP/1.1 201")


def test_the_oldest_clients_need_no_host(running):
    assert running.raw(b"GET /healthz HTTP/1.0\r\n\r\n").startswith(b"HTTP/1.1 200")


# ----------------------------------------------------------------------- connections


def test_idle_connections_are_closed_whatever_they_said_last():
    with Running(request_seconds=3.0) as running:
        running.server.config.timeout_keep_alive = 1
        running.until_ready()
        with ThreadPoolExecutor(3) as pool:
            began = time.monotonic()
            ended = pool.map(
                lambda pieces: running.raw(*pieces, pause=0.1),
                [(_get("/healthz"), b"\r\n"), (_get("/healthz"), b"\r\n", b"\r\n\r\n")],
            )
            assert [told.count(b"HTTP/1.1 200") for told in ended] == [1, 1]
            assert time.monotonic() - began < 4.0


def test_who_asks_no_more_is_answered(running):
    request = HEAD + b"content-length: 2\r\n\r\n{}"
    for asked, n_answers in [(request, 1), (3 * request, 3), (request + _get("/healthz")[:20], 1)]:
        with dialled(running, asked) as connection:
            connection.shutdown(socket.SHUT_WR)
            told = b""
            while piece := connection.recv(65_536):
                told += piece
        assert told.count(b"HTTP/1.1 201") == n_answers
    with dialled(running, HEAD + b"content-length: 20\r\n\r\n{}") as connection:
        connection.shutdown(socket.SHUT_WR)
        assert connection.recv(65_536) == b""


def test_a_stream_ends_when_its_reader_leaves_and_there_are_never_too_many():
    with Running(max_streams=3) as running:
        running.until_ready()
        paths = ("/v1/rankers/animals/stream", "/rankers/animals/stream")
        with ExitStack() as stack:
            opened = [stack.enter_context(dialled(running, _get(paths[i % 2]))) for i in range(24)]
            statuses = [connection.recv(65_536)[9:12] for connection in opened]
            assert (statuses.count(b"200"), statuses.count(b"503")) == (3, 21)
            assert running.app.service.n_streams == 3
        until_no_stream(running)


@pytest.mark.parametrize("path", ["/v1/rankers/animals/stream", "/rankers/animals/stream"])
def test_streams_that_are_asked_for_at_once_are_counted_one_by_one(path):
    with Asked(max_streams=3) as asked:
        asked.put()
        statuses = asked.loop.run_until_complete(_streams_at_once(asked, path))
        assert sorted(statuses) == [200] * 3 + [503] * 21
        assert asked.app.service.n_streams == 0


async def _streams_at_once(asked, path):
    """Return the statuses of 24 streams, whose readers leave when all have begun."""
    statuses, may_leave = [], asyncio.Event()

    async def receive():
        await may_leave.wait()
        return {"type": "http.disconnect"}

    async def send(message):
        if message["type"] == "http.response.start":
            statuses.append(message["status"])

    scope = {
        "type": "http", "method": "GET", "path": path, "query_string": b"",
        "headers": [(b"host", b"localhost")],
    }  # fmt: skip
    asks = [asyncio.ensure_future(asked.app({**scope}, receive, send)) for _ in range(24)]
    while len(statuses) < len(asks):
        await asyncio.sleep(0.01)
    may_leave.set()
    await asyncio.wait_for(asyncio.gather(*asks), 10)
    return statuses


def until_no_stream(running):
    ends_at = time.monotonic() + 5.0
    while running.app.service.n_streams and time.monotonic() < ends_at:
        time.sleep(0.01)
    assert running.app.service.n_streams == 0


@pytest.mark.parametrize(
    "path",
    [
        "/v1/rankers/animals/stream", "/rankers/animals/stream", "/static/dashboard.css",
        "/v1/rankers/animals/events?format=ndjson", "/v1/rankers/animals/events?format=parquet",
        "/", "/rankers/animals", "/v1/rankers", "/metrics", "/openapi.json",
    ],
)  # fmt: skip
def test_the_head_of_everything_ends_at_once(running, path):
    request = f"HEAD {path} HTTP/1.1\r\nhost: localhost\r\n\r\n".encode()
    told = running.raw(request, request.replace(b"\r\n\r\n", b"\r\n" + CLOSE + b"\r\n"))
    assert told.count(b"HTTP/1.1 200") == 2
    assert told.endswith(b"\r\n\r\n")
    assert told.count(b"\r\n\r\n") == 2
    until_no_stream(running)


def test_unfinished_bodies_have_a_limit_together():
    with Running(max_pending_bytes=1_001_000) as running:  # heads are counted as well
        running.until_ready()
        head = HEAD + b"content-length: 400000\r\n\r\n"
        with ExitStack() as stack:
            opened = [
                stack.enter_context(dialled(running, head + b" " * 300_000)) for _ in range(3)
            ]
            time.sleep(0.2)
            told = answer_to(running, head + b" " * 300_000)
            assert told.startswith(b"HTTP/1.1 503")
            assert b"retry-after: 1" in told
            assert running.get("/healthz")[0] == 200
            opened[0].sendall(b"{}".rjust(100_000))
            assert opened[0].recv(65_536).startswith(b"HTTP/1.1 201")
            done = answer_to(running, head + b"{}".ljust(400_000))
            assert done.startswith(b"HTTP/1.1 201")
        time.sleep(0.2)
        assert running.server.config.http.held.n_bytes == 0


def test_who_reads_nothing_of_an_answer_is_cut_off():
    with Running(request_seconds=0.5) as running:
        running.until_ready()
        with dialled(running) as connection:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
            connection.setblocking(False)
            connection.send(_get("/openapi.json") * 500)
            connections = running.server.server_state.connections
            ends_at = time.monotonic() + 8.0
            while not connections and time.monotonic() < ends_at:
                time.sleep(0.01)
            while connections and time.monotonic() < ends_at:
                time.sleep(0.05)
            assert not connections


# ----------------------------------------------------------------------- temporary files


class Full:
    """A temporary file on a full disk."""

    def __init__(self, code):
        self.code, self.is_closed = code, False

    def __getattr__(self, name):
        raise OSError(self.code, "it cannot be written")

    def write(self, _piece):
        raise OSError(self.code, "it cannot be written")

    def close(self):
        self.is_closed = True


@pytest.mark.parametrize(
    ("code", "status", "slug"),
    [
        (errno.ENOSPC, 507, "store-full"),
        (errno.EDQUOT, 507, "store-full"),
        (errno.ENOENT, 507, "store-full"),
        (errno.EMFILE, 503, "busy"),
        (errno.ENFILE, 503, "busy"),
    ],
)
def test_a_table_that_cannot_be_written_is_no_fault(monkeypatch, code, status, slug):
    def none():
        raise OSError(code, "there is none")

    with Asked() as asked:
        asked.put()
        asked.rank()
        path = "/v1/rankers/animals/events?format=parquet"
        monkeypatch.setattr(log, "TemporaryFile", none)
        problem(asked.ask("GET", path, faults=True), status, slug)
        full = Full(code)
        monkeypatch.setattr(log, "TemporaryFile", lambda: full)
        problem(asked.ask("GET", path, faults=True), status, slug)
        assert full.is_closed
