"""Hostile requests by number: ``python -m bench.hostile`` attacks a service of its own.

The service runs in a process of its own and listens on this machine alone. Strangers send it what
no client sends, many at a time: trailers and chunks without end, pipelines whose answers nobody
reads, requests cut at every byte, upgrades, bodies that never end, clients that ask no more or
read slowly, and garbage. What a case sends follows from its seed and its number. Before them,
hundreds of requests at once are never whole, and floods go on for a second or two each. Meanwhile a
good client asks for lists. The service must be there in the end, its memory must stay within 300 MB
of what it was, and the good client's 99th percentile within five times its usual one, among the
cases and among the floods.
"""

import argparse
import random
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

from bench.hostile_floods import floods, keep_up
from bench.hostile_watch import Scales, watched
from bench.load import await_ready, free_port
from keyhole.client import Client

CASES = 20_000
MOST_GROWTH_MB = 300.0
MOST_SLOWER = 5.0
_SECONDS = 0.25
"""How long a case goes on sending or listening."""
_MOST_SENT = 400_000
_PATH = "/v1/rankers/good/rank"
_KINDS: dict[str, Callable[..., None]] = {}


def kind(attack):
    """Note a kind of attack, by its name."""
    _KINDS[attack.__name__] = attack
    return attack


def head(dice, *fields, method="POST", path=_PATH):
    """Return a head that is all right but for its fields, in any order."""
    lines = ["host: localhost", "content-type: application/json", *fields]
    dice.shuffle(lines)
    return "\r\n".join([f"{method} {path} HTTP/1.1", *lines, "", ""]).encode()


def whole(dice, body=b'{"exclude":["a"]}', *fields):
    return head(dice, f"content-length: {len(body)}", *fields) + body


def chunks(dice, *pieces):
    told = b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces)
    return head(dice, "transfer-encoding: chunked") + told


@kind
def trailers(dice, wire):
    """Trailers without end, or that would change the head."""
    line = dice.choice([b"a:b\r\n", b"authorization: x\r\n", b"host: evil.example\r\n", b"x" * 500])
    wire.flood(chunks(dice, b"{}") + b"0\r\n", line)


@kind
def tiny_chunks(dice, wire):
    """A body in chunks of a byte, or whose extensions never end."""
    wire.flood(head(dice, "transfer-encoding: chunked"), dice.choice(
        [b"1\r\nx\r\n", b"1;a=b\r\nx\r\n", b"1;" + b"a" * 1_000, b"0" * 1_000]
    ))  # fmt: skip


@kind
def pipelines(dice, wire):
    """More requests than anybody waits for the answers of."""
    path = dice.choice(["/healthz", "/openapi.json", "/v1/rankers", "/", "/v1/rankers/good/state"])
    wire.flood(b"", head(dice, method="GET", path=path) * dice.randint(1, 50), listens=False)
    time.sleep(dice.choice([0.0, 0.1]))


@kind
def splits(dice, wire):
    """A request cut in two, at any byte."""
    request = dice.choice(
        [whole(dice), chunks(dice, b'{"excl', b'ude":["a"]}') + b"0\r\na: b\r\n\r\n"]
    )
    cut = dice.randrange(1, len(request))
    wire.send(request[:cut])
    time.sleep(0.001)
    wire.send(request[cut:])
    wire.hear()


@kind
def upgrades(dice, wire):
    """A body that is a request, behind the wish for another protocol."""
    inner = whole(dice)
    wish = dice.choice(["websocket", "h2c", "TLS/1.0", "x"])
    wire.send(
        head(dice, "connection: upgrade", f"upgrade: {wish}", f"content-length: {len(inner)}")
    )
    wire.send(inner)
    wire.hear()


@kind
def half_closed(dice, wire):
    """A client that says at once that it asks no more."""
    wire.send(dice.choice([whole(dice), whole(dice) * 3, whole(dice)[:-1], whole(dice)[:20], b""]))
    wire.end()
    wire.hear()


@kind
def slow_readers(dice, wire):
    """Large answers, which are read a few bytes at a time, or not at all."""
    wire.send(head(dice, method="GET", path="/openapi.json") * dice.randint(1, 100))
    for _ in range(dice.randint(0, 5)):
        wire.hear(200)
        time.sleep(0.01)


@kind
def unfinished(dice, wire):
    """Most of a large body, and then silence."""
    size = dice.randint(1_000, 8_000_000)
    begun = head(dice, f"content-length: {size}")
    wire.flood(begun, b" " * min(size - 1, dice.choice([1_000, 65_536])), most=size - 1)


@kind
def odd_heads(dice, wire):
    """Fields that come twice, contradict each other or have no end."""
    wire.send(
        dice.choice(
            [
                whole(dice, b"{}", "host: evil.example"),
                whole(dice, b"{}", "authorization: a", "authorization: b"),
                whole(dice, b"{}", "content-length: 3"),
                whole(dice, b"{}", "transfer-encoding: chunked"),
                whole(dice, b"{}", "transfer-encoding: chunked, gzip"),
                whole(dice, b"{}", "expect: 100-continue"),
                whole(dice, b"{}", "x: " + "y" * 70_000),
                whole(dice, b"{}", *(f"a{i}: b" for i in range(dice.randint(10, 9_000)))),
                head(dice, f"content-length: {'9' * dice.randint(1, 400)}"),
                b"POST " + _PATH.encode() + b" HTTP/1.1\r\n\r\n",
                b"\r\n" * dice.randint(1, 50_000),
                b"GET /healthz HTTP/1.1\r\nhost: a\r\n\r\n\r\n",
            ]
        )
    )
    wire.hear()


@kind
def garbage(dice, wire):
    """Bytes, or a request of which some are others."""
    request = bytearray(dice.choice([whole(dice), chunks(dice, b"{}") + b"0\r\n\r\n"]))
    for _ in range(dice.randint(1, 8)):
        request[dice.randrange(len(request))] = dice.randrange(256)
    wire.send(bytes(request) if dice.random() < 0.8 else dice.randbytes(dice.randint(1, 5_000)))
    wire.hear()


@kind
def leavers(dice, wire):
    """Whoever asks and hangs up."""
    paths = [
        "/v1/rankers/good/stream",
        "/rankers/good/stream",
        "/v1/rankers/good/events?format=ndjson",
    ]
    request = head(dice, method=dice.choice(["GET", "HEAD"]), path=dice.choice(paths))
    wire.send(dice.choice([whole(dice), request, request[: dice.randint(1, len(request))]]))
    if dice.random() < 0.5:
        wire.hear(100)


class Wire:
    """A connection on which nothing is waited for long, and nothing is an error."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=5)
        self.socket.settimeout(_SECONDS)

    def send(self, piece):
        """Send what is taken of a piece; return whether it was all."""
        try:
            self.socket.sendall(piece)
        except OSError:
            return False
        return True

    def flood(self, begin, piece, most=_MOST_SENT, *, listens=True):
        """Send a piece again and again, while it is taken."""
        ends_at, n_sent = time.monotonic() + _SECONDS, 0
        going_on = self.send(begin)
        repeated = piece * max(1, 4_096 // len(piece))
        while going_on and n_sent < min(most, _MOST_SENT) and time.monotonic() < ends_at:
            going_on = self.send(repeated[: max(1, most - n_sent)])
            n_sent += len(repeated)
        if listens:
            self.hear()

    def end(self):
        """Say that nothing more comes."""
        with suppress(OSError):
            self.socket.shutdown(socket.SHUT_WR)

    def hear(self, most=65_536):
        """Take an answer, if one comes soon."""
        try:
            return self.socket.recv(most)
        except OSError:
            return b""


def attack(port, seed, number):
    """Carry out a case, and return its kind."""
    dice = random.Random(f"{seed} {number}")
    name = dice.choice(sorted(_KINDS))
    try:
        wire = Wire(port)
    except OSError:
        return f"{name}, refused"
    with wire.socket:
        _KINDS[name](dice, wire)
    return name


def crowd(port, seed, numbers, at_once, seconds):
    """Carry out cases, many at once, until they are done or the time is up."""
    kinds: Counter[str] = Counter()
    ends_at = time.monotonic() + seconds

    def one(number):
        return attack(port, seed, number) if time.monotonic() < ends_at else "left out"

    with ThreadPoolExecutor(at_once) as pool:
        kinds.update(pool.map(one, numbers))
    return kinds


def flooded(port, key, given):
    """Have all floods go on, one after the other, and return when each began and ended."""
    spans = {}
    for flood in floods(key):
        n_strangers = given.at_once if flood.goes_on else given.held
        began = time.perf_counter()
        keep_up(port, flood, n_strangers, given.flood_seconds)
        spans[f"{flood.name}, {n_strangers} at once"] = began, time.perf_counter()
        time.sleep(given.flood_seconds / 2.0)  # what it did last is still seen to
    return spans


def report(usual, parts, scales):
    """Print how a good client fared beside each part, and return whether the promises are kept."""
    kept = scales.growth() <= MOST_GROWTH_MB
    print(f"memory: {scales.memory[0]:.0f} MB before, at most {scales.growth():.0f} MB more")
    print(f"a good client alone: p99 {1e3 * usual.p99():.1f} ms")
    for name, good in parts.items():
        print(
            f"among {name}: p99 {1e3 * good.p99():.1f} ms ({good.p99() / usual.p99():.1f} x); "
            f"medians {1e3 * statistics.median(usual.seconds):.1f} and "
            f"{1e3 * statistics.median(good.seconds):.1f} ms; {len(good.failures)} of "
            f"{len(good.seconds)} not answered"
        )
        for told in sorted(set(good.failures))[:3]:
            print(told)
        kept = kept and good.p99() <= MOST_SLOWER * usual.p99() and not good.failures
    return kept


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=CASES)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--case", type=int, help="the first of the cases")
    parser.add_argument("--at-once", type=int, default=16)
    parser.add_argument("--held", type=int, default=400, help="requests that are never whole")
    parser.add_argument("--flood-seconds", type=float, default=1.5, help="how long each flood is")
    parser.add_argument("--seconds", type=float, default=1_800.0, help="the longest it may take")
    given = parser.parse_args()
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    with tempfile.TemporaryDirectory() as folder:
        db = f"{folder}/hostile.db"
        keyhole = [sys.executable, "-m", "keyhole"]
        create = [*keyhole, "keys", "create", "--db", db, "--scope", "admin", "--ranker", "*"]
        key = subprocess.run(create, capture_output=True, text=True, check=True).stdout.strip()
        with subprocess.Popen(
            [*keyhole, "serve", "--db", db, "--port", str(port)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        ) as server:
            try:
                await_ready(port, "/readyz")
                with Client(url, key=key) as client:
                    client.put_ranker("good", items=[f"item-{i}" for i in range(20)])
                kept = attacked(server, url, key, given)
            finally:
                server.terminate()
            ended = server.wait(60)
    print("Kept." if kept and ended == 0 else "Not kept.")
    return 0 if kept and ended == 0 else 1


def attacked(server, url, key, given):
    """Attack a service, and return whether it keeps what is promised."""
    port = int(url.rpartition(":")[2])
    seconds = min(12.0, given.cases / 100.0)
    watched(url, key, lambda: time.sleep(seconds / 4.0))  # what is slow once is not counted
    usual = watched(url, key, lambda: time.sleep(seconds))
    kinds: Counter[str] = Counter()
    spans: dict[str, tuple[float, float]] = {}
    first = given.case or 0
    numbers = range(first, first + given.cases)
    with Scales(server.pid) as scales:
        among_floods = watched(url, key, lambda: spans.update(flooded(port, key, given)))
        among_cases = watched(
            url,
            key,
            lambda: kinds.update(crowd(port, given.seed, numbers, given.at_once, given.seconds)),
        )
    for name, span in spans.items():
        p99 = 1e3 * among_floods.p99(*span)
        print(f"{name}: {scales.growth(*span):.0f} MB more, p99 {p99:.1f} ms")
    n_done = sum(n for name, n in kinds.items() if name in _KINDS)
    print(f"{n_done} hostile requests of {given.cases}:")
    print(", ".join(f"{name} {n}" for name, n in sorted(kinds.items())))
    kept = report(usual, {"floods": among_floods, "cases": among_cases}, scales)
    return kept and n_done == given.cases and server.poll() is None


if __name__ == "__main__":
    sys.exit(main())
