"""How fast the service answers, beside an empty handler: ``python -m bench.load``.

Lists of 20 items are ranked, and feedback is given on them, each on the disk (SQLite) before it is
answered: one by one and 64 at a time, over 1, 16 and 64 connections. What is sent is what
``keyhole.client`` sends: its fields, an access key, and a new idempotency key with each rank.
A handler of the same framework under the same server, which reads the same body and checks the same
key, and does nothing else, is asked in turns with them: what counts are ratios. Servers run in
processes of their own; this one makes the requests. The last ratio of a row is that of computing
time, which other processes on the machine change least.
"""

import argparse
import math
import os
import re
import select
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections import deque
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import httpx

from keyhole.client import Client

CONNECTIONS = (1, 16, 64)
N_ITEMS = 20
N_BATCH = 64
MOST_WAITING = 50_000
"""Lists that feedback may be given on: fewer than the service lets wait, so that none is late."""
LEAST_SHARE = 0.45
"""Of the rate of the empty handler, for single lists over the most connections."""
LEAST_GAIN = 8.0
"""Lists a second in batches, of those asked for one by one."""
MOST_SPREAD = 3.0
"""The 99th percentile, of the median."""
JUDGED = ("rank", "rank-batch", "feedback", "feedback-batch")
_LENGTH = re.compile(rb"content-length: (\d+)")
_ID = re.compile(rb'"event_id":"([^"]+)"')
_KEY, _EVENT = "idempotency-key-of-the-template-000", "event-of-the-template"
EMPTY = """
import sys
import msgspec
import uvicorn
from starlette.applications import Starlette
from starlette.responses import Response
from starlette.routing import Route
from keyhole.service.commands import RankRequest
from keyhole.service.http.connection import connections
from keyhole.service.keys import KeyRing
from keyhole.service.settings import Settings
from keyhole.service.store import open_store

with open_store(sys.argv[2], read_only=True) as store:
    keys = store.keys()
ring, read = KeyRing(lambda: keys), msgspec.json.Decoder(RankRequest).decode

async def empty(request):
    if ring.access(request.headers["authorization"][7:]) is None:
        return Response(status_code=401)
    read(await request.body())
    return Response(b"{}", media_type="application/json")

uvicorn.run(
    Starlette(routes=[Route("/empty", empty, methods=["POST"])]),
    port=int(sys.argv[1]), loop="uvloop", http=connections(Settings()), ws="none",
    log_config=None, access_log=False, proxy_headers=False, server_header=False,
)
"""


class Kind(NamedTuple):
    """One kind of request: who is asked, how the next one is made, and what its answer is for."""

    server: int
    next_request: Any
    answered: Any = None
    n_lists: int = 1


class Connection:
    """Asks one thing after the other, and notes how long each took."""

    def __init__(self, port, kind):
        self.kind = kind
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.began = 0.0
        self.heard = b""
        self.n_wanted = 0
        self.seconds: list[float] = []

    def ask(self):
        """Send the next request; return whether there was one."""
        request = self.kind.next_request()
        if request is None:
            return False
        self.heard, self.n_wanted = b"", 0
        self.began = time.perf_counter()
        self.socket.sendall(request)
        return True

    def hear(self):
        """Take what came; return whether the answer is whole."""
        self.heard += self.socket.recv(262_144)
        if not self.n_wanted:
            n_head = self.heard.find(b"\r\n\r\n") + 4
            length = _LENGTH.search(self.heard)
            if n_head < 4 or length is None:
                return False
            self.n_wanted = n_head + int(length[1])
        if len(self.heard) < self.n_wanted:
            return False
        self.seconds.append(time.perf_counter() - self.began)
        if self.heard[9:10] != b"2":
            raise RuntimeError(self.heard.decode())
        if self.kind.answered is not None:
            self.kind.answered(self.heard)
        return True


def load(port, kind, n_connections, seconds):
    """Return how long every request took, and the requests per second.

    One thread asks over all connections with as little of its own as possible: what it computes
    is taken from the servers, which share the machine with it.
    """
    made = {
        each.socket.fileno(): each
        for each in (Connection(port, kind) for _ in range(n_connections))
    }
    began = time.perf_counter()
    ends_at = began + seconds
    with select.epoll() as waiting:
        asking = set()
        for number, connection in made.items():
            if connection.ask():
                waiting.register(number, select.EPOLLIN)
                asking.add(number)
        while asking:
            for number, _ in waiting.poll():
                connection = made[number]
                if not connection.hear():
                    continue
                if time.perf_counter() >= ends_at or not connection.ask():
                    waiting.unregister(number)
                    asking.discard(number)
    took = time.perf_counter() - began
    for connection in made.values():
        connection.socket.close()
    times = [each for connection in made.values() for each in connection.seconds]
    return times, len(times) / took


class Templates:
    """Requests as ``keyhole.client`` makes them, with what is new in each left to be filled in."""

    def __init__(self, key):
        self.sent: list[httpx.Request] = []
        transport = httpx.MockTransport(self._note)
        with Client("http://localhost:8360", key=key, retries=0, transport=transport) as client:
            client.rank("load", idempotency_key=_KEY)
            client.feedback("load", _EVENT, [1])
            client.rank_batch("load", [{}] * N_BATCH, idempotency_key=_KEY)
            client.feedback_batch("load", [(_EVENT, [1])])
        self.rank, self.feedback, self.ranks, self.feedbacks = self.sent

    def _note(self, request):
        self.sent.append(request)
        path = request.url.path
        if path.endswith("feedback-batch"):
            return httpx.Response(200, content=b'{"line":1,"status":201}\n')
        if path.endswith("feedback"):
            return httpx.Response(200, json={"learned": "learned", "seq": 2, "created": True})
        ranked = {
            "event_id": "e", "ranking": ["a"], "k": 1, "model_seq": 1, "feedback_by": None,
            "policy": {"mode": "online", "explored": False, "p_marginal": 1.0,
                       "p_conditional": 1.0},
        }  # fmt: skip
        many = {"replies": [{"status": 201, **ranked}] * N_BATCH}
        return httpx.Response(200, json=many if path.endswith("rank-batch") else ranked)

    @staticmethod
    def bytes_of(request, path=None, body=None):
        """Return a request as it is sent, with another path or another body."""
        content = request.content if body is None else body
        fields = b"".join(
            b"%b: %b\r\n" % (name, value)
            for name, value in request.headers.raw
            if name.lower() != b"content-length"
        )
        line = f"{request.method} {path or request.url.path} HTTP/1.1\r\n".encode()
        return line + fields + b"content-length: %d\r\n\r\n" % len(content) + content


def kinds_of(templates):
    """Return the kinds of requests, in the order in which they are asked."""
    waiting: deque[bytes] = deque(maxlen=MOST_WAITING)
    number = count()
    to_bytes = templates.bytes_of

    def with_new_keys(request):
        before, after = request.split(_KEY.encode())
        return lambda: b"%b%035d%b" % (before, next(number), after)

    before, after = to_bytes(templates.feedback).split(_EVENT.encode())

    def next_feedback():
        return b"".join((before, waiting.popleft(), after)) if waiting else None

    def next_feedbacks():
        lines = [b'{"event_id":"%b","relevance":[1]}\n' % waiting.popleft()
                 for _ in range(min(N_BATCH, len(waiting)))]  # fmt: skip
        return to_bytes(templates.feedbacks, body=b"".join(lines)) if lines else None

    def ranked(answer):
        waiting.extend(_ID.findall(answer))

    rank, ranks = (with_new_keys(to_bytes(each)) for each in (templates.rank, templates.ranks))
    return {
        "empty": Kind(1, with_new_keys(to_bytes(templates.rank, "/empty"))),
        "rank": Kind(0, rank, ranked),
        "feedback": Kind(0, next_feedback),
        "rank-batch": Kind(0, ranks, ranked, N_BATCH),
        "feedback-batch": Kind(0, next_feedbacks, None, N_BATCH),
    }


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def await_ready(port, path):
    for _ in range(1_200):
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=5):
                return
        except urllib.error.HTTPError as error:
            if error.code in {404, 405}:
                return
        except OSError:
            pass
        time.sleep(0.1)
    raise RuntimeError("A server did not start.")


def cpu_seconds(process):
    """Return the time that a process has computed so far: other processes do not lengthen it."""
    fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measure(servers, ports, kinds, seconds, turns):
    """Return times, rates and computing time of each kind of request, turn by turn."""
    found: dict[tuple[str, int], list[Any]] = {}
    for turn in range(turns + 1):
        for n_connections in CONNECTIONS:
            for name, kind in kinds.items():
                before = cpu_seconds(servers[kind.server])
                times, rate = load(ports[kind.server], kind, n_connections, seconds)
                if not times:
                    continue
                computed = (cpu_seconds(servers[kind.server]) - before) / len(times)
                if turn:  # the first one warms up
                    found.setdefault((name, n_connections), []).append((times, rate, computed))
    return found


def report(found, kinds):
    """Print what was measured, and return whether the promises are kept."""
    kept = True
    for (name, n_connections), turns in found.items():
        n_lists = kinds[name].n_lists
        times = sorted(each for seconds, _, _ in turns for each in seconds)
        median, p99 = times[len(times) // 2], times[len(times) * 99 // 100]
        rate = statistics.median(rate for _, rate, _ in turns)
        base = "rank" if name == "rank-batch" else "feedback" if n_lists > 1 else "empty"
        per_base = n_lists * statistics.median(
            own[1] / other[1] for own, other in zip(turns, found[base, n_connections], strict=False)
        )
        computed = statistics.median(each for _, _, each in turns) / n_lists
        of_base = statistics.median(each for _, _, each in found[base, n_connections])
        by_base = of_base / computed if computed else math.nan  # of a turn too short to measure
        print(
            f"{name:14} over {n_connections:2}: {rate:7.0f} requests/s, {n_lists * rate:8.0f} "
            f"lists/s, {per_base:5.2f} of {base}; median {1e3 * median:6.2f} ms, p99 "
            f"{1e3 * p99:6.2f} ms ({p99 / median:.1f} x); computing {1e6 * computed:.0f} us a "
            f"list, {by_base:.2f} of {base}"
        )
        if name in JUDGED:
            kept &= p99 <= MOST_SPREAD * median
            if n_connections == max(CONNECTIONS):
                kept &= per_base >= (LEAST_GAIN if n_lists > 1 else LEAST_SHARE)
    return kept


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="shorter turns")
    parser.add_argument("--seconds", type=float, help="length of a turn")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--folder", type=Path, default=Path.cwd(), help="where the log is kept")
    given = parser.parse_args()
    seconds = given.seconds or (1.0 if given.quick else 4.0)
    ports = free_port(), free_port()
    with tempfile.TemporaryDirectory(dir=given.folder) as folder:
        db = f"{folder}/load.db"
        keyhole = [sys.executable, "-m", "keyhole"]
        create = [*keyhole, "keys", "create", "--db", db, "--scope", "admin", "--ranker", "*"]
        key = subprocess.run(create, capture_output=True, text=True, check=True).stdout.strip()
        servers = [
            subprocess.Popen(
                [*keyhole, "serve", "--db", db, "--port", str(ports[0])], stdout=subprocess.DEVNULL
            ),
            subprocess.Popen([sys.executable, "-c", EMPTY, str(ports[1]), db]),
        ]
        try:
            await_ready(ports[0], "/readyz")
            await_ready(ports[1], "/empty")
            with Client(f"http://127.0.0.1:{ports[0]}", key=key) as client:
                client.put_ranker("load", items=[f"item-{i}" for i in range(N_ITEMS)], k=1)
            kinds = kinds_of(Templates(key))
            kept = report(measure(servers, ports, kinds, seconds, given.turns), kinds)
        finally:
            for server in servers:
                server.terminate()
            for server in servers:
                server.wait(30)
    print("Kept." if kept else "Not kept.")
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())
