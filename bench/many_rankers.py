"""What ten thousand rankers cost, beside ten: ``python -m bench.many_rankers``.

Two services are up at once, each on a log of its own (SQLite): one of ten rankers, one of many,
each of which has shown some lists and learnt from one. Both are asked for single lists in turns,
as ``keyhole.client`` asks, from one connection, of one ranker and of all in turn; the first page is
loaded; then the one of many is told to stop, and started again. At the end a ranker of 4,096
features is made, asked, taught and made anew, while others ask whether the service is there.
"""

import argparse
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from itertools import count
from pathlib import Path

from bench.load import _KEY as KEY, Connection, Kind, Templates, free_port
from keyhole.client import Client
from keyhole.service.commands import (
    Configure,
    FeedbackRequest,
    GiveFeedback,
    MeasureVerdict,
    Rank,
    RankerRequest,
    RankRequest,
)
from keyhole.service.engine import Engine
from keyhole.service.events import Event
from keyhole.service.keys import new_key
from keyhole.service.store import open_store
from keyhole.service.store.memory import MemoryStore

N_ITEMS = 20
N_LISTS = 4
MOST_RATIO = 1.2
MOST_STOPPING = MOST_STARTING = 10.0
MOST_PAGE = 0.2
_AT_ONCE = 5_000
MOST_HELD = 0.5


def make_log(path, n_rankers):
    """Make a log in which every ranker has shown lists and learnt from one; return a key to it."""
    text, key = new_key(["admin"], ["*"])
    with open_store(path) as store:
        store.add_key(key)
        trial = MemoryStore()
        trial._secret = store.secret()
        engine = Engine(trial)
        events: list[Event] = []
        request = RankerRequest(items=[f"item-{i}" for i in range(N_ITEMS)], k=1)
        for name in names(n_rankers):
            engine.execute(Configure(name, request, judged=MeasureVerdict(None)))
            for _ in range(N_LISTS):
                event_id = engine.execute(Rank(name, RankRequest())).event_id
            engine.execute(GiveFeedback(name, event_id, FeedbackRequest(relevance=[1.0])))
            events += trial.events(name)
            del engine.rankers[name]
            if len(events) > _AT_ONCE:
                store.append(events)
                events = []
        store.append(events)
    return text


def names(n_rankers):
    return [f"ranker-{place:05d}" for place in range(n_rankers)]


class Served:
    """A service in a process of its own."""

    def __init__(self, path, n_rankers):
        self.path, self.n_rankers = path, n_rankers
        self.key = make_log(path, n_rankers)
        self.rank, self.number = Templates(self.key).rank, count()
        self.paths = [f"/v1/rankers/{name}/rank" for name in names(n_rankers)]

    def start(self):
        """Start it, and return the seconds until it is ready."""
        self.port = free_port()
        began = time.perf_counter()
        serve = ["-m", "keyhole", "serve", "--db", str(self.path), "--port", str(self.port)]
        self.process = subprocess.Popen(
            [sys.executable, *serve], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        while True:
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/readyz", timeout=30):
                    return time.perf_counter() - began
            except OSError:
                time.sleep(0.02)
                if self.process.poll() is not None or time.perf_counter() - began > 600.0:
                    raise RuntimeError("A server did not start.") from None

    def stop(self):
        """Tell it to stop, and return the seconds until it has."""
        began = time.perf_counter()
        self.process.send_signal(signal.SIGTERM)
        if self.process.wait(600):
            raise RuntimeError("A server did not stop in order.")
        return time.perf_counter() - began

    def ranks(self, n_requests, paths):
        """Return the seconds that each of some single lists took, one after the other."""
        waiting = []
        for place in range(n_requests):
            request = Templates.bytes_of(self.rank, paths[place % len(paths)])
            waiting.append(request.replace(KEY.encode(), b"%035d" % next(self.number)))
        connection = Connection(self.port, Kind(0, lambda: waiting.pop() if waiting else None))
        connection.socket.setblocking(True)
        while connection.ask():
            while not connection.hear():
                pass
        connection.socket.close()
        return connection.seconds

    def page(self):
        """Return the seconds that the first page takes."""
        began = time.perf_counter()
        fields = {"Authorization": f"Bearer {self.key}"}
        page = urllib.request.Request(f"http://127.0.0.1:{self.port}/", headers=fields)
        with urllib.request.urlopen(page, timeout=60) as answer:  # noqa: S310 - this machine
            answer.read()
        return time.perf_counter() - began

    def large(self, most):
        """Return the longest that somebody waits while a ranker of so many features lives."""
        waits, is_over = [], threading.Event()

        def ask():
            while not is_over.is_set():
                began = time.perf_counter()
                address = f"http://127.0.0.1:{self.port}/healthz"
                with urllib.request.urlopen(address, timeout=60) as answer:
                    answer.read()
                waits.append(time.perf_counter() - began)

        asking = threading.Thread(target=ask)
        with Client(f"http://127.0.0.1:{self.port}", key=self.key, timeout=120.0) as client:
            # What is compiled for a small one, which is measured elsewhere, the large one needs.
            for name, n_features in (("small", 8), ("large", most)):
                if name == "large":
                    asking.start()
                client.put_ranker(name, n_features=n_features, max_items=8, ready_within=600.0)
                for _ in range(2):
                    rows = [[0.5] * n_features, [0.25] * n_features]
                    shown = client.rank(name, ["a", "b"], rows)
                    client.feedback(name, shown, [1])
                    client.state(name)
                    client.reset_ranker(name)
        is_over.set()
        asking.join()
        return max(waits)


def measure(few, many, n_requests, turns):
    """Return the median of a rank of one ranker, and of all in turn, as ratios; and of the page."""
    ratios: dict[str, list[float]] = {"one": [], "all": []}
    for turn in range(turns + 1):
        for kind, found in ratios.items():
            took = [
                statistics.median(
                    each.ranks(n_requests, each.paths[:1] if kind == "one" else each.paths)
                )
                for each in (few, many)
            ]
            if turn:  # the first one warms up
                found.append(took[1] / took[0])
    page = statistics.median(many.page() for _ in range(5))
    return statistics.median(ratios["one"]), statistics.median(ratios["all"]), page


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rankers", type=int, default=10_000)
    parser.add_argument("--requests", type=int, default=500, help="of a turn")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--features", type=int, default=4_096, help="of the largest ranker")
    parser.add_argument("--folder", type=Path, default=Path.cwd(), help="where the logs are kept")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=given.folder) as folder:
        few, many = (
            Served(Path(folder) / f"{n_rankers}.db", n_rankers) for n_rankers in (10, given.rankers)
        )
        with_ten = few.start()
        many.start()
        try:
            one, all_in_turn, page = measure(few, many, given.requests, given.turns)
            stopping = many.stop()
            starting = many.start()
            held = few.large(given.features)
        finally:
            for each in (few, many):
                if each.process.poll() is None:
                    each.stop()
    rows = (
        ("rank p50, one ranker", one, MOST_RATIO, "times that with ten"),
        ("rank p50, all in turn", all_in_turn, MOST_RATIO, "times that with ten"),
        ("SIGTERM", stopping, MOST_STOPPING, "s"),
        ("restart to ready", starting, MOST_STARTING, f"s, with ten {with_ten:.1f} s"),
        ("GET /", page, MOST_PAGE, "s"),
        (f"{given.features:,} features, held", held, MOST_HELD, "s for others at most"),
    )
    print(f"{given.rankers:,} rankers")
    for name, number, most, unit in rows:
        print(f"{name:22} {number:7.3f} {unit} (at most {most:g})")
    kept = all(number <= most for _, number, most, _ in rows)
    print("Kept." if kept else "Not kept.")
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())
