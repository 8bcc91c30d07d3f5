"""A million events on one log: memory stays flat, and a restart takes seconds.

    python -m bench.endurance                     # 10^6 events, some minutes
    python -m bench.endurance --events 100000

Lists of 20 items are ranked and answered through the desk, in groups, on a file of SQLite; a tenth
is never answered and expires. Memory is that of the process, after each tenth of the events. Then
the log is opened anew with the last 10^4 events after the newest snapshot.
"""

import argparse
import asyncio
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from keyhole.service.commands import (
    Configure,
    Expire,
    FeedbackRequest,
    GiveFeedback,
    Rank,
    RankerRequest,
    RankRequest,
)
from keyhole.service.engine import Engine
from keyhole.service.group_commit import Desk
from keyhole.service.store import open_store

N_CALLERS = 64
TAIL = 10_000
MOST_GROWTH = 0.05
"""Growth of memory from the second tenth of the events on."""
LONGEST_RESTART = 5.0
RESTART = """
import sys, time
began = time.perf_counter()
from keyhole.service.engine import Engine
from keyhole.service.store import open_store
with open_store(sys.argv[1]) as store:
    snapshot = store.snapshots("songs")[0].seq
    engine = Engine(store)
    live = engine.ranker("songs")
    print(live.seq - snapshot, time.perf_counter() - began)
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--quick", action="store_true", help="a fifth of the events")
    parser.add_argument("--tail", type=int, default=TAIL, help="events after the last snapshot")
    asked = parser.parse_args()
    n_events = asked.events // 5 if asked.quick else asked.events
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "log.db"
        began = time.monotonic()
        sizes = asyncio.run(play(path, n_events, asked.tail))
        rate = n_events / (time.monotonic() - began)
        ran = subprocess.run(
            [sys.executable, "-c", RESTART, str(path)], capture_output=True, text=True, check=True
        )
        tail, seconds = ran.stdout.split()
    growth = sizes[-1] / sizes[1] - 1.0
    print(f"{n_events} events, {rate:.0f} per second; MB: {' '.join(f'{s:.0f}' for s in sizes)}")
    print(f"memory grew by {growth:.1%} from a fifth on (at most {MOST_GROWTH:.0%})")
    print(f"a restart with {tail} events to replay took {float(seconds):.2f} s (5 at most)")
    kept = growth <= MOST_GROWTH and float(seconds) <= LONGEST_RESTART and int(tail) >= asked.tail
    return 0 if kept else 1


async def play(path: Path, n_events: int, n_tail: int) -> list[float]:
    """Fill a log, and return the memory of this process after each tenth, in MB."""
    rng, sizes = random.Random(0), []
    with open_store(path) as store:
        desk = Desk(store)
        await desk.start()
        items = [f"song {number}" for number in range(20)]
        await desk.submit(Configure("songs", RankerRequest(items=items, seed=1)))
        live = desk.engine.ranker("songs")

        async def visit() -> None:
            shown = await desk.submit(Rank("songs", RankRequest()))
            if rng.random() < 0.9:
                said = FeedbackRequest(relevance=[float(rng.random() < 0.5)])
                await desk.submit(GiveFeedback("songs", shown.event_id, said))

        for tenth in range(1, 11):
            while live.seq < tenth * n_events / 10:
                await asyncio.gather(*(visit() for _ in range(N_CALLERS)))
                if len(live.waiting) > 1_000:
                    oldest = tuple(list(live.waiting)[:500])
                    await desk.submit(Expire("songs", oldest))
            sizes.append(resident())
        await desk.stop()
        tail = Engine(store)  # which takes no snapshots
        for _ in range(n_tail // 2):
            shown = tail.execute(Rank("songs", RankRequest()))
            said = FeedbackRequest(relevance=[1.0])
            tail.execute(GiveFeedback("songs", shown.event_id, said))
    return sizes


def resident() -> float:
    """Return the memory of this process in MB."""
    with open("/proc/self/statm") as numbers:
        return int(numbers.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


if __name__ == "__main__":
    sys.exit(main())
