"""Whether others notice that code is compiled: ``python -m bench.preparing``.

A service with an empty code cache has a ranker that is asked for lists, and told of them, 200 times
a second. Then a ranker of a kind that was never seen is created. What counts is the 99th percentile
of the others from then until the new one is ready, beside what it was before. ``--within`` has the
service compile by itself, in a thread, as it does where code cannot be kept: how bad it was.
"""

import argparse
import http.client
import json
import os
import re
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import NamedTuple

RATE = 200.0
MOST_RATIO = 2.0
ITEMS = [f"item-{i}" for i in range(20)]
_WITHIN = """
import sys
from keyhole.service import preparing
preparing._is_kept = lambda: False
from keyhole.__main__ import main
main()
"""


class Times(NamedTuple):
    """Seconds that requests took before a ranker was created, and until it was ready."""

    before: list[float]
    during: list[float]
    put: float
    ready: float


class Service:
    """A service in a process of its own, with a log and a code cache in some folder."""

    def __init__(self, folder: Path, *, within: bool = False) -> None:
        start = ["-c", _WITHIN] if within else ["-m", "keyhole"]
        self.log = (folder / "service.log").open("ab")
        self.process = subprocess.Popen(
            [sys.executable, *start, "serve", "--db", str(folder / "log.db"), "--port", "0"],
            env={**os.environ, "NUMBA_CACHE_DIR": str(folder / "code")},
            stdout=subprocess.PIPE,
            stderr=self.log,
            text=True,
        )
        assert self.process.stdout is not None  # noqa: S101
        found = re.search(r"http://127\.0\.0\.1:(\d+)", self.process.stdout.readline())
        if found is None:
            raise RuntimeError("The service did not start.")
        self.port = int(found[1])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.communicate(timeout=60)
        self.log.close()

    def ask(self, method, path, body=None):
        """Return the status, the headers and the body of an answer."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        headers = {"content-type": "application/json"}
        connection.request(method, path, None if body is None else json.dumps(body), headers)
        answer = connection.getresponse()
        told = answer.read()
        connection.close()
        return answer.status, answer.headers, json.loads(told) if told else None

    def put(self, name, ranker):
        return self.ask("PUT", f"/v1/rankers/{name}", {"items": ITEMS, "k": 1, "ranker": ranker})

    def until_ready(self, name=None, limit=300.0):
        """Wait until the service is ready, or one of its rankers."""
        ends_at = time.monotonic() + limit
        while time.monotonic() < ends_at:
            if name is None and self.ask("GET", "/readyz")[0] == 200:
                return
            if name is not None:
                status, _, told = self.ask("GET", f"/v1/rankers/{name}")
                if status == 200 and told["code"]["state"] == "ready":
                    return
            time.sleep(0.1)
        raise RuntimeError("Nothing became ready.")


def request_of(method, path, body):
    return (
        f"{method} {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
        f"content-length: {len(body)}\r\n\r\n"
    ).encode() + body


def ask_steadily(port, ranker, ends, rate=RATE):
    """Ask for lists and tell of them in turns, so often a second; return when each began and took.

    A request that could not begin in time, as the one before it was not answered, began when it
    should have.
    """
    times: list[tuple[float, float]] = []
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        event_id, due = None, time.perf_counter()
        while not ends.is_set():
            time.sleep(max(0.0, due - time.perf_counter()))
            if event_id is None:
                asked = request_of("POST", f"/v1/rankers/{ranker}/rank", b"{}")
            else:
                path = f"/v1/rankers/{ranker}/events/{event_id}/feedback"
                asked = request_of("PUT", path, b'{"relevance":[1]}')
            connection.sendall(asked)
            answer = b""
            while not answer.endswith(b"}"):
                answer += connection.recv(65_536)
            if answer[9:10] != b"2":
                raise RuntimeError(answer.decode())
            times.append((due, time.perf_counter() - due))
            found = re.search(rb'"event_id":"([^"]+)"', answer)
            event_id = None if found is None else found[1].decode()
            due += 1.0 / rate
    return times


def measure(service, first, second, seconds):
    """Return how long requests for one kind of ranker take before and while another is prepared."""
    service.until_ready()
    service.put("first", first)
    service.until_ready("first")
    ends, times = threading.Event(), []
    client = threading.Thread(
        target=lambda: times.extend(ask_steadily(service.port, "first", ends)), daemon=True
    )
    client.start()
    time.sleep(1.0 + seconds)  # the first second is for caches of all kinds
    began = time.perf_counter()
    name = f"new-{second}"
    _, _, told = service.put(name, second)
    put = time.perf_counter() - began
    if told["code"]["state"] != "ready":
        service.until_ready(name)
    ended = time.perf_counter()
    ends.set()
    client.join(60)
    before = [took for due, took in times if began - seconds <= due < began]
    during = [took for due, took in times if began <= due < ended]
    return Times(before, during, put, ended - began)


def percentile(times, share):
    return sorted(times)[min(int(share * len(times)), len(times) - 1)]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="shorter, with a smaller ranker")
    parser.add_argument("--within", action="store_true", help="compile in a thread of the service")
    parser.add_argument("--folder", type=Path, default=Path.cwd(), help="where the log is kept")
    given = parser.parse_args()
    second, seconds = ("epsilon-greedy", 5.0) if given.quick else ("keystone", 15.0)
    with (
        tempfile.TemporaryDirectory(dir=given.folder) as folder,
        Service(Path(folder), within=given.within) as service,
    ):
        times = measure(service, "random", second, seconds)
    print(f"PUT of {second}: answered in {times.put:.3f} s, ready in {times.ready:.1f} s")
    for name, taken in (("before", times.before), ("during", times.during)):
        print(
            f"{name}: {len(taken)} requests, p50 {1e3 * statistics.median(taken):.2f} ms, p99 "
            f"{1e3 * percentile(taken, 0.99):.2f} ms, longest {1e3 * max(taken):.1f} ms"
        )
    ratio = percentile(times.during, 0.99) / percentile(times.before, 0.99)
    print(f"ratio of the 99th percentiles: {ratio:.2f}, at most {MOST_RATIO}")
    return 0 if ratio <= MOST_RATIO else 1


if __name__ == "__main__":
    sys.exit(main())
