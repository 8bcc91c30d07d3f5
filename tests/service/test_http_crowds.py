"""Many strangers at once: what they hold together has a limit, and others get their turn."""

import asyncio
import resource
import socket
import time
from contextlib import ExitStack, suppress
from functools import partial
from typing import Any
from unittest.mock import Mock

import pytest
from uvicorn import Config
from uvicorn.server import ServerState

from keyhole.service.http.connection import Connection, connections, most_connections
from keyhole.service.http.fairness import Turns
from keyhole.service.keys import new_key
from keyhole.service.settings import Settings
from tests.service.test_http_attacks import CHUNKED, HEAD, answer_to, dialled
from tests.service.test_http_server import Running, _get


def until(is_so):
    ends_at = time.monotonic() + 5.0
    while not is_so() and time.monotonic() < ends_at:
        time.sleep(0.005)
    assert is_so()


def has_ended(connection):
    """Return whether the service hung up, however it did."""
    with suppress(ConnectionResetError):
        connection.settimeout(5.0)
        while connection.recv(65_536):
            pass
    return True


# ----------------------------------------------------------------------- what is held


def test_a_head_has_so_many_fields():
    with Running() as running:
        for n_fields, told in [(100, b"HTTP/1.1 200"), (101, b"HTTP/1.1 431")]:
            fields = b"ab:\r\n" * (n_fields - 1)
            request = _get("/healthz").replace(b"\r\n\r\n", b"\r\n" + fields + b"\r\n")
            assert answer_to(running, request).startswith(told)
        assert answer_to(running, HEAD + b"ab:\r\n" * 101).startswith(b"HTTP/1.1 431")


def test_unfinished_heads_have_a_limit_together_and_small_requests_always_room():
    with Running(max_pending_bytes=100_000) as running:
        running.until_ready()
        held = running.server.config.http.held
        head = HEAD + b"x: " + b"y" * 30_000
        with ExitStack() as stack:
            for n_heads in (1, 2, 3):
                stack.enter_context(dialled(running, head))
                until(lambda n=n_heads: held.n_bytes >= n * len(head))
            told = answer_to(running, head)
            assert told.startswith(b"HTTP/1.1 503")
            assert b"retry-after: 1" in told
            for _ in range(3):
                stack.enter_context(dialled(running, HEAD + b"x: " + b"y" * 15_000))
            until(lambda: held.n_bytes > 130_000)
            small = HEAD + b"content-length: 2\r\n\r\n{}"
            assert answer_to(running, small).startswith(b"HTTP/1.1 201")
        until(lambda: held.n_bytes == 0)


def test_trailers_are_not_kept():
    with Running() as running:
        running.until_ready()
        with dialled(running, CHUNKED + b"2\r\n{}\r\n0\r\n" + b"a:b\r\n" * 2_000):
            until(lambda: running.server.config.http.held.n_bytes > 10_000)
            (connection,) = running.server.server_state.connections
            assert len(connection.headers) == HEAD.count(b":") + 1


def test_what_waits_behind_an_answer_is_counted():
    with Running() as running:
        running.until_ready()
        held = running.server.config.http.held
        with dialled(running) as connection:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
            connection.setblocking(False)
            until(lambda: sent(connection, _get("/openapi.json") * 1_000) or held.n_bytes > 20_000)
        until(lambda: held.n_bytes == 0)


def sent(connection, requests):
    with suppress(BlockingIOError):
        connection.send(requests)


# ----------------------------------------------------------------------- turns


def test_who_is_answered_before_all_is_sent_is_hung_up_on():
    with Running(request_seconds=20.0) as running:
        _, key = new_key(["rank"], ["*"])
        running.store.add_key(key)
        running.until_ready()
        began = time.monotonic()
        with dialled(running, CHUNKED) as connection:
            assert connection.recv(65_536).startswith(b"HTTP/1.1 401")
            with suppress(BrokenPipeError, ConnectionResetError):
                for _ in range(100):
                    connection.sendall(b"400\r\n" + b" " * 0x400 + b"\r\n")
            assert has_ended(connection)
        assert time.monotonic() - began < 4.0


def test_an_answer_is_read_even_if_more_is_sent_than_is_wanted():
    """Whoever hangs up on unread bytes resets the connection, and some systems drop the answer."""
    with Running() as running:
        _, key = new_key(["rank"], ["*"])
        running.store.add_key(key)
        running.until_ready()
        begun = HEAD + b"content-length: 8000000\r\n\r\n"
        with dialled(running, begun, b" " * 1_000_000) as connection:
            told = b""
            while piece := connection.recv(65_536):
                told += piece
            assert told.startswith(b"HTTP/1.1 401")


def test_a_turn_of_the_loop_parses_a_bounded_piece():
    async def app(_scope, receive, _send):
        while (await receive()).get("more_body"):
            pass

    sizes = []

    class Counted(Connection):
        def on_body(self, body):
            sizes.append(len(body))
            super().on_body(body)

    async def fed():
        loop = asyncio.get_running_loop()
        made: Any = type("Made", (Counted, connections(Settings())), {})(
            Config(app, lifespan="off"), ServerState(), {}, _loop=loop
        )
        transport = Mock(is_closing=lambda: False, get_extra_info=lambda _name: None)
        made.connection_made(transport)
        made.data_received(CHUNKED + (b"40\r\n" + b"x" * 0x40 + b"\r\n") * 3_500)
        at_once = sum(sizes)
        transport.pause_reading.assert_called_once()
        for _ in range(100):
            await asyncio.sleep(0)
        made.connection_lost(None)
        return at_once, sum(sizes)

    at_once, in_the_end = asyncio.run(fed())
    assert 500 < at_once <= 1_024
    assert in_the_end == 3_500 * 0x40


def test_what_can_wait_is_done_one_piece_in_a_turn_whoever_sent_it():
    async def done():
        turns, loop, told = Turns(), asyncio.get_running_loop(), []

        def fail():
            raise ZeroDivisionError

        def work(name, again):
            told.append(name)
            if again:
                turns.take(loop, partial(work, name, again - 1))

        for name in "abc":
            turns.take(loop, partial(work, name, 1))
        for n_turns in range(1, 7):
            await asyncio.sleep(0)
            assert len(told) == n_turns
        turns.take(loop, fail)
        turns.take(loop, partial(work, "d", 0))
        loop.set_exception_handler(lambda _loop, context: told.append(context["exception"]))
        for _ in range(2):
            await asyncio.sleep(0)
        return told

    *told, error, last = asyncio.run(done())
    assert told == list("abcabc")
    assert isinstance(error, ZeroDivisionError)
    assert last == "d"


# ----------------------------------------------------------------------- connections


def test_the_oldest_that_asks_nothing_makes_room_for_others():
    with Running() as running:
        running.until_ready()
        running.server.config.http.most_connections = 20
        open_now = running.server.server_state.connections
        until(lambda: not open_now)
        with ExitStack() as stack:
            stream = stack.enter_context(dialled(running, _get("/v1/rankers/animals/stream")))
            assert stream.recv(65_536).startswith(b"HTTP/1.1 200")
            slow = [stack.enter_context(dialled(running, b"GET / H")) for _ in range(19)]
            until(lambda: len(open_now) == 20)
            slow += [stack.enter_context(dialled(running, b"GET / H")) for _ in range(19)]
            assert all(has_ended(each) for each in slow[:19])
            until(lambda: len(open_now) == 20)
            assert running.get("/healthz")[0] == 200
            slow[-1].sendall(b"TTP/1.1\r\nhost: localhost\r\n\r\n")
            assert slow[-1].recv(65_536).startswith(b"HTTP/1.1 200")
            assert running.app.service.n_streams == 1


@pytest.mark.parametrize(
    ("n_descriptors", "most"),
    [(256, 192), (1_024, 768), (1_000_000, 3_200), (resource.RLIM_INFINITY, 3_200)],
)
def test_descriptors_are_left_for_the_log(monkeypatch, n_descriptors, most):
    monkeypatch.setattr(resource, "getrlimit", lambda _which: (n_descriptors, n_descriptors))
    assert most_connections(Settings()) == most
    assert connections(Settings()).most_connections == most
