"""The service under its server: real sockets, limits of time and size, an orderly end."""

import json
import logging
import re
import socket
import threading
import time
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest
import structlog
from typer.testing import CliRunner

from keyhole.cli.app import app
from keyhole.service.commands import Configure, RankerRequest
from keyhole.service.engine import Engine
from keyhole.service.errors import StoreDamaged
from keyhole.service.group_commit import Desk
from keyhole.service.http.app import build_later
from keyhole.service.http.server import Server, address_of, bound_socket
from keyhole.service.settings import Settings, load_settings
from keyhole.service.store.memory import MemoryStore
from keyhole.service.structured_logs import configure_logs, logger
from tests.service.asking import ANIMALS
from tests.service.test_http_inputs import CORPUS


@pytest.fixture(autouse=True)
def usual_logs():
    """Forget where logs go: a test of a command lets them go where that test ends."""
    yield
    structlog.reset_defaults()
    logging.getLogger("uvicorn").handlers.clear()


class Running:
    """A service that listens at a port of its own, in a thread."""

    def __init__(self, open_desk=None, **settings):
        self.store = MemoryStore()
        Engine(self.store).execute(Configure("animals", RankerRequest(items=ANIMALS, seed=1)))
        self.settings = Settings(port=0, **settings)
        listening = bound_socket(self.settings)
        self.address = address_of(listening)
        self.port = listening.getsockname()[1]
        self.app = build_later(open_desk or (lambda: Desk(self.store)), self.settings)
        self.server = Server(self.app, self.settings)
        self.thread = threading.Thread(target=self.server.run, args=([listening],))

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.server.should_exit = True
        self.thread.join(10)
        assert not self.thread.is_alive()

    def get(self, path):
        try:
            with urllib.request.urlopen(self.address + path, timeout=10) as answer:  # noqa: S310
                return answer.status, json.loads(answer.read())
        except urllib.error.HTTPError as error:
            with error:
                return error.code, json.loads(error.read())

    def until_ready(self):
        while self.get("/readyz")[0] != 200:
            time.sleep(0.01)

    def raw(self, *pieces, pause=0.0):
        """Return all that comes back on a connection until the service closes it."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=10) as connection:
            for piece in pieces:
                connection.sendall(piece)
                time.sleep(pause)
            told = b""
            while piece := connection.recv(65_536):
                told += piece
        return told


def test_it_answers_while_the_log_is_read_and_ends_with_its_streams():
    may_open = threading.Event()

    def open_slowly():
        may_open.wait(10)
        return Desk(running.store)

    with Running(open_slowly, shutdown_seconds=30.0) as running:
        assert running.get("/healthz")[0] == 200
        status, told = running.get("/readyz")
        assert (status, told["type"]) == (503, "urn:keyhole:problem:not-ready")
        assert running.get("/v1/rankers")[0] == 503
        may_open.set()
        running.until_ready()
        assert running.get("/v1/rankers")[1]["rankers"][0]["name"] == "animals"
        heard = [
            threading.Thread(target=running.raw, args=(_get(path),))
            for path in ("/v1/rankers/animals/stream", "/rankers/animals/stream")
        ]
        for each in heard:
            each.start()
        while running.app.service.n_streams < 2:
            time.sleep(0.01)
        began = time.monotonic()
    assert time.monotonic() - began < 8.0  # nothing waited for the streams to end by themselves
    for each in heard:
        each.join(5)
        assert not each.is_alive()


def _get(path):
    return f"GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n".encode()


def test_slow_and_endless_requests_are_cut_off():
    with Running(request_seconds=1.0, max_body_bytes=1_024) as running:
        running.until_ready()
        head = b"POST /v1/rankers/animals/rank HTTP/1.1\r\nhost: localhost\r\n"
        kind = b"content-type: application/json\r\n"
        half = head + kind + b"content-length: 2\r\n\r\n{"
        odd = head + b"transfer-encoding: chunked\r\n" + kind + b"\r\n1\r\n{\r\n"
        with ThreadPoolExecutor(4) as pool:
            for told in pool.map(running.raw, [b"", head, half, odd]):
                assert told.startswith(b"HTTP/1.1 408")
        large = running.raw(head + b"x: " + b"y" * 70_000)
        assert large.startswith(b"HTTP/1.1 431")
        many = running.raw(head, *[b"a: b\r\n" * 2_000] * 6)
        assert many.startswith(b"HTTP/1.1 431")
        told = running.raw(head + kind + b"content-length: 9000000\r\n\r\n" + b" " * 5_000)
        assert told.startswith(b"HTTP/1.1 413")
        assert b"connection: close" in told
        told = running.raw(head + kind + b"content-length: 2000\r\n\r\n" + b" " * 2_000)
        assert told.startswith(b"HTTP/1.1 413")
        assert told.count(b"connection: close") == 1
        chunked = head + kind + b"transfer-encoding: chunked\r\n\r\n"
        told = running.raw(chunked, b"800\r\n" + b" " * 2_048 + b"\r\n")
        assert told.startswith(b"HTTP/1.1 413")
        fine = head + kind + b"connection: close\r\ncontent-length: 2\r\n\r\n{}"
        assert running.raw(fine).startswith(b"HTTP/1.1 201")
        assert running.raw(b"nonsense\r\n\r\n").startswith(b"HTTP/1.1 400")
        twice = running.raw(_get("/healthz"), _get("/healthz") + fine)
        assert [twice.count(b"HTTP/1.1 200"), twice.count(b"HTTP/1.1 201")] == [2, 1]


def test_a_body_in_chunks_is_answered_as_one_with_a_length():
    with Running() as running:
        running.until_ready()
        for _, method, path, body, status, _ in CORPUS:
            head = (
                f"{method} {path} HTTP/1.1\r\nhost: localhost\r\nx-request-id: one\r\n"
                "content-type: application/json\r\nconnection: close\r\n"
            ).encode()
            chunk = b"%x\r\n%s\r\n" % (len(body), body) if body else b""
            told = [
                running.raw(head + b"content-length: %d\r\n\r\n" % len(body) + body),
                running.raw(head + b"transfer-encoding: chunked\r\n\r\n" + chunk + b"0\r\n\r\n"),
            ]
            by_length, by_chunks = (_parsed(each) for each in told)
            assert by_length == by_chunks
            assert by_length[0] == f"HTTP/1.1 {status}".encode()
        assert running.app.service.metrics.in_flight == 0


def _parsed(told):
    """Return the status, the headers but for the date, and the body of an answer."""
    head, _, body = told.partition(b"\r\n\r\n")
    status, *headers = head.split(b"\r\n")
    return status[:12], {each for each in headers if not each.startswith(b"date")}, body


def test_many_requests_on_one_connection_are_answered_in_order():
    """Whether they wait for each other or not, and whichever way they go."""
    with Running() as running:
        running.until_ready()
        rank = (
            b"POST /v1/rankers/animals/rank HTTP/1.1\r\nhost: localhost\r\n"
            b"content-type: application/json\r\ncontent-length: %d\r\n%s\r\n%s"
        )
        asked, bodies = b"", [b'{"event_id":"e%d"}' % each for each in range(6)]
        for each, body in enumerate(bodies):
            close = b"connection: close\r\n" * (each == len(bodies) - 1)
            asked += rank % (len(body), close, body)
            if each == 2:
                asked += _get("/healthz")
                asked += b"HEAD /v1/rankers/animals/rank HTTP/1.1\r\nhost: localhost\r\n\r\n"
        for pieces in ([asked], [asked[:300], asked[300:310], asked[310:]], [*_bytes_of(asked)]):
            told = running.raw(*pieces)
            found = re.findall(rb'"event_id":"(e\d)"|"status":"(ok)"', told)
            assert b"wrong-method" not in told  # what is said of a HEAD is said without a body
            assert told.count(b"HTTP/1.1 405") == 1
            assert [a or b for a, b in found] == [b"e0", b"e1", b"e2", b"ok", b"e3", b"e4", b"e5"]


FIELDS = (
    b"host: localhost\r\nx-request-id: one\r\ncontent-type: application/json\r\n"
    b"content-length: %d\r\n\r\n"
)
AFTER_ANOTHER = [
    (b"POST /v1/rankers/animals/rank HTTP/1.1", b'{"event_id":"e1"}'),
    (b"POST /v1/rankers/animals/rank HTTP/1.1", b'{"event_id":"e2"}'),
    (b"POST /v1/rankers/animals/rank HTTP/1.1", b'{"event_id":"e3'),
    (b"PUT /v1/rankers/animals/events/e1/feedback HTTP/1.1", b'{"relevance":[1]}'),
    (b"PUT /v1/rankers/animals/events/e1/feedback HTTP/1.1", b'{"relevance":[0]}'),
    (b"PUT /v1/rankers/animals/events/e9/feedback HTTP/1.1", b'{"relevance":[1]}'),
    (b"PUT /v1/rankers/animals/events/e%31/feedback HTTP/1.1", b'{"relevance":[1]}'),
    (b"PUT /v1/rankers/animals/events/e1/rank HTTP/1.1", b'{"relevance":[1]}'),
    (b"POST /v1/rankers/animals/rank?a=b HTTP/1.1", b'{"event_id":"e1"}'),
    (b"POST /v1/rankers/animals/rank/feedback HTTP/1.1", b'{"relevance":[1]}'),
    (b"POST /v1/rankers/plants/rank HTTP/1.1", b'{"event_id":"e1"}'),
    (b"POST /v1/rankers//rank HTTP/1.1", b'{"event_id":"e1"}'),
    (b"GET /v1/rankers/animals/rank HTTP/1.1", b'{"event_id":"e1"}'),
    (b"POST  /v1/rankers/animals/rank HTTP/1.1", b'{"event_id":"e1"}'),
    (b"POST /v1/rankers/animals/rank HTTP/1.0", b'{"event_id":"e1"}'),
    (b"POST /v1/rankers/animals/rank HTTP/1.1\r\nexpect: 100-continue", b'{"event_id":"e1"}'),
    (b"POST /v1/rankers/animals/rank HTTP/1.1\r\ncontent-length: 3", b'{"event_id":"e1"}'),
]


def test_what_has_the_fields_of_the_request_before_is_read_as_if_it_were_the_first():
    """Whatever was asked before, in one piece or in many, a request is answered as if alone."""
    with Running() as running:
        running.until_ready()
        whole = [_whole(*each) for each in AFTER_ANOTHER]
        for request in whole:  # what it changes is changed by now
            _answers(running, (request, 1))
        alone = [_answers(running, (request, 1))[0] for request in whole]
        for request, told in zip(whole, alone, strict=True):
            assert _answers(running, (whole[0], 1), (request, 1)) == [alone[0], told]
        pieces = [(whole[0], 1)] * 5 + [(2 * whole[0], 2), (whole[0][:40], 0), (whole[0][40:], 1)]
        assert _answers(running, *pieces) == [alone[0]] * 8


def test_only_what_is_a_request_of_the_same_fields_is_taken_for_one():
    with Running() as running:
        running.until_ready()
        first = _whole(*AFTER_ANOTHER[0])
        other = first.replace(b": one", b": two")
        told = _answers(running, (first, 1), (other, 1), (first + other, 2), (first, 1))
        ids = [_field(b"x-request-id", head) for head, _ in told]
        assert ids == [b"one", b"two", b"one", b"two", b"one"]
        bad = _whole(*AFTER_ANOTHER[2])  # which is answered before the one behind it is read
        told = _answers(running, (bad + other, 2), (first, 1))
        ids = [_field(b"x-request-id", head) for head, _ in told]
        assert ids == [b"one", b"two", b"one"]
        # A body may look like a request, and so may a field.
        begun = b"POST /v1/rankers/plants/rank HTTP/1.1\r\nx-odd: "
        told = _answers(running, (first, 1), (begun, 0), (first, 1))
        assert [head[:12] for head, _ in told] == [b"HTTP/1.1 201", b"HTTP/1.1 404"]
        head = first.partition(b"\r\n\r\n")[0].replace(b": 17", b": %d" % len(first)) + b"\r\n\r\n"
        told = _answers(running, (first, 1), (head, 0), (first, 1), (first, 1))
        assert [head[:12] for head, _ in told] == [
            b"HTTP/1.1 201",
            b"HTTP/1.1 400",
            b"HTTP/1.1 201",
        ]


def test_an_answer_waits_for_the_one_before_it(monkeypatch):
    with Running() as running:
        running.until_ready()
        may_commit, stage = threading.Event(), running.store.stage

        def wait_and_commit(events):
            commit = stage(events)
            return lambda: may_commit.wait(10) and commit()

        first, bad = _whole(*AFTER_ANOTHER[0]), _whole(*AFTER_ANOTHER[2])
        _answers(running, (first, 1))
        monkeypatch.setattr(running.store, "stage", wait_and_commit)
        with ThreadPoolExecutor(1) as pool:
            new = first.replace(b'"e1"', b'"e7"')
            told = pool.submit(_answers, running, (first, 1), (new, 0), (bad, 0), (b"", 2))
            time.sleep(0.2)
            may_commit.set()
            heads = [head[:12] for head, _ in told.result()]
        assert heads == [b"HTTP/1.1 201", b"HTTP/1.1 201", b"HTTP/1.1 400"]


def _whole(line, body):
    return line + b"\r\n" + FIELDS % 17 + body.ljust(17)


def _answers(running, *pieces):
    """Return the answers on one connection, without dates, each piece sent after those before."""
    told = []
    address = ("127.0.0.1", running.port)
    with socket.create_connection(address, 10) as connection, connection.makefile("rb") as heard:
        for piece, n_answers in pieces:
            connection.sendall(piece)
            time.sleep(0.02 * (n_answers == 0))
            told += [_answer(heard) for _ in range(n_answers)]
    return told


def _field(name, head):
    found = re.search(name + rb": ([^\r]*)", head)
    assert found is not None
    return found[1]


def _answer(heard):
    head = b""
    while (line := heard.readline()) not in (b"\r\n", b""):
        if not line.startswith(b"date: "):
            head += line
    length = re.search(rb"content-length: (\d+)", head)
    return head, heard.read(int(length[1]) if length else 0)


def test_connections_that_asked_before_are_cut_off_as_well():
    with Running(request_seconds=0.5) as running:
        running.server.config.timeout_keep_alive = 2
        running.until_ready()
        rank = _whole(*AFTER_ANOTHER[0])
        with ThreadPoolExecutor(3) as pool:
            began = time.monotonic()
            idle = pool.submit(running.raw, rank)
            slow = pool.submit(running.raw, rank, rank[:50], pause=0.1)
            both = pool.submit(running.raw, rank, rank, _get("/healthz"), rank, pause=0.1)
            assert slow.result().count(b"HTTP/1.1 408") == 1
            assert time.monotonic() - began < 1.9
            assert idle.result().count(b"HTTP/1.1") == 1
            assert both.result().count(b"HTTP/1.1 20") == 4
            assert 1.9 < time.monotonic() - began < 5.0


def test_connections_that_are_used_stay_open_and_the_date_goes_on():
    with Running(request_seconds=0.5) as running:
        running.server.config.timeout_keep_alive = 2
        running.until_ready()
        rank = _whole(*AFTER_ANOTHER[0])
        address = ("127.0.0.1", running.port)
        dates = set()
        with socket.create_connection(address, 10) as connection:
            for number in range(10):
                is_slow = number in (1, 2, 3)  # it has been there for long, but has begun to ask
                connection.sendall(rank[:50] if is_slow else rank)
                if is_slow:
                    time.sleep(0.3)
                    connection.sendall(rank[50:])
                told = connection.recv(65_536)
                assert told.startswith(b"HTTP/1.1 201")
                dates.add(_field(b"date", told))
                time.sleep(0.3)
        assert len(dates) >= 2


def test_an_answer_to_head_has_no_body():
    with Running() as running:
        running.until_ready()
        head = b"HEAD /v1/rankers/animals/rank HTTP/1.1\r\nhost: localhost\r\n"
        told = running.raw(head + b"connection: close\r\n\r\n")
        assert told.startswith(b"HTTP/1.1 405")
        assert told.endswith(b"\r\n\r\n")


def _bytes_of(text):
    return (text[i : i + 97] for i in range(0, len(text), 97))


def test_whoever_hangs_up_early_does_no_harm():
    with Running() as running:
        running.until_ready()
        request = b"POST /v1/rankers/animals/rank HTTP/1.1\r\nhost: localhost\r\n\r\n"
        for _ in range(20):
            with socket.create_connection(("127.0.0.1", running.port)) as connection:
                connection.sendall(request)
        while running.get("/v1/rankers/animals")[1]["round"] < 20:
            time.sleep(0.01)
        assert running.app.service.metrics.in_flight == 0


def test_a_log_that_cannot_be_opened_ends_the_service():
    def damaged():
        raise StoreDamaged("Event 7 does not follow from event 6.")

    with Running(damaged) as running:
        running.thread.join(10)
        assert not running.thread.is_alive()
        assert str(running.app.service.failure) == "Event 7 does not follow from event 6."


# ----------------------------------------------------------------------- settings, logs, commands


def test_flags_come_before_the_environment_before_the_file(tmp_path):
    file = tmp_path / "keyhole.toml"
    file.write_text('port = 1\ndb = "file.db"\nhost = "127.0.0.3"\ninsecure = true\n')
    environ = {"KEYHOLE_PORT": "2", "KEYHOLE_DB": "variable.db", "KEYHOLE_DATA": "x", "HOME": "y"}
    found = load_settings({"port": 3, "db": None}, file=file, environ=environ)
    assert (found.port, found.db, found.host, found.insecure) == (
        3,
        "variable.db",
        "127.0.0.3",
        True,
    )
    assert load_settings({}, environ={"KEYHOLE_INSECURE": "true"}).insecure
    with pytest.raises(AttributeError):
        found.port = 4  # type: ignore[misc]


@pytest.mark.parametrize(
    ("environ", "text", "sentence"),
    [
        ({"KEYHOLE_PROT": "1"}, "", "Did you mean 'KEYHOLE_PORT'?"),
        ({}, "prot = 1", "Did you mean 'port'?"),
        ({"KEYHOLE_PORT": "many"}, "", "The setting port must be as the documentation says"),
        ({"KEYHOLE_PORT": "70000"}, "", "got '70000'"),
        ({}, "port = ", "must be TOML in UTF-8"),
        ({}, "[port]\nx = 1", "The setting port"),
        ({"KEYHOLE_LOG_LEVEL": "loud"}, "", "The setting log_level"),
    ],
)
def test_settings_that_cannot_be_used_are_named(tmp_path, environ, text, sentence):
    file = tmp_path / "keyhole.toml"
    file.write_text(text)
    with pytest.raises(Exception) as caught:  # noqa: PT011
        load_settings({}, file=file, environ=environ)
    assert sentence in str(caught.value)


def test_logs_are_lines_of_json_without_keys(capsys):
    try:
        configure_logs("info")
        logger().info("asked", key="x", note="got kh_0123abcd_Secret-_1 here", n=1)
        logger().debug("not this")
        try:
            raise RuntimeError("with kh_0123abcd_Secret-_1 in it")
        except RuntimeError:
            logger().exception("failed")
    finally:
        structlog.reset_defaults()
    first, second = (json.loads(line) for line in capsys.readouterr().err.splitlines())
    assert (first["event"], first["key"], first["n"]) == ("asked", "[hidden]", 1)
    assert first["note"] == "got [hidden] here"
    assert "RuntimeError: with [hidden] in it" in second["exception"]


def run(*arguments, code=0):
    result = CliRunner().invoke(app, [str(a) for a in arguments], env={"COLUMNS": "200"})
    assert result.exit_code == code, result.output + result.stderr
    return result


def test_keys_are_created_listed_and_removed_by_commands(tmp_path):
    db = tmp_path / "log.db"
    made = run("keys", "create", "--db", db, "--scope", "rank", "--ranker", "shop").stdout.strip()
    prefix = made.split("_")[1]
    run("keys", "create", "--db", db, "--scope", "admin", "--ranker", "*", "--expires-days", 9)
    listed = json.loads(run("keys", "list", "--db", db, "--json").stdout)
    assert {key["prefix"]: key["scopes"] for key in listed}[prefix] == ["rank"]
    table = run("keys", "list", "--db", db).stdout
    assert prefix in table
    assert made not in table
    run("keys", "remove", prefix, "--db", db)
    assert "got" in run("keys", "remove", prefix, "--db", db, code=2).stderr
    wrong = run("keys", "create", "--db", db, "--scope", "ranks", "--ranker", "x", code=2)
    assert "Did you mean 'rank'?" in wrong.stderr


def test_what_keeps_the_service_from_starting_is_said_in_a_sentence(tmp_path):
    db, junk = tmp_path / "log.db", tmp_path / "junk.db"
    junk.write_text("This is no database, however long it may be. " * 50)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        for arguments, sentence in [
            (("--db", db, "--port", port), "must be free"),
            (("--db", junk), "must be a log"),
            (("--db", tmp_path), ""),
            (("--db", db, "--host", "0.0.0.0"), "keyhole keys create"),  # noqa: S104
            (("--db", db, "--host", "no.such.host.invalid"), "keyhole keys create"),
            (("--db", db, "--host", "127.0.0.1.1", "--insecure"), "must exist"),
            (("--db", db, "--config", tmp_path / "none.toml"), "must be TOML"),
        ]:
            result = run("serve", *arguments, code=2)
            assert sentence in result.stderr
            assert len(result.stderr.strip().splitlines()) <= 3


def test_a_demonstration_begins_no_log_in_the_place_of_one_that_is_missing(tmp_path, monkeypatch):
    """Its first start makes a log, as every first start does."""
    db = tmp_path / "demo.db"
    demos: list[tuple[object, ...]] = []
    stopped = SimpleNamespace(join=lambda **_: None)

    def close(_, *, sockets):
        for each in sockets:
            each.close()

    def start(*given):
        demos.append(given)
        return stopped

    without_failure = SimpleNamespace(service=SimpleNamespace(failure=None))
    monkeypatch.setattr("keyhole.service.http.app.build_later", lambda *_: without_failure)
    monkeypatch.setattr("keyhole.service.http.server.Server.__init__", lambda *_: None)
    monkeypatch.setattr("keyhole.service.http.server.Server.run", close)
    monkeypatch.setattr("keyhole.service.structured_logs.configure_logs", lambda _: None)
    monkeypatch.setattr("keyhole.cli.demo.start_demo", start)
    serve = ("serve", "--demo", "--db", db, "--port", 0)
    run(*serve)
    assert (len(demos), db.is_file()) == (1, True)
    db.unlink()
    assert "keyhole serve --create" in run(*serve, code=2).stderr
    assert (len(demos), db.exists()) == (1, False)
    run(*serve, "--create")
    assert db.is_file()
