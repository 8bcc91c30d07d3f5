"""Kill the service at random moments: what was acknowledged is there, and replay gives its bytes.

    python -m bench.service_kills --times 1000
    python -m bench.service_kills --times 1000 --store postgresql

A child is forked, recovers the log of the one before, checks it against a replay from an empty
state and against everything that was ever acknowledged, and serves eight callers until it is
killed. A kill tests what is left in memory, not the disk: power cuts do that (bench.powercuts). Of
a share of the kills (--http) the child is `keyhole serve` itself, asked over a socket. On
PostgreSQL a tenth of the children see its processes killed first, and must go on acknowledging.
"""

import argparse
import asyncio
import os
import random
import shutil
import signal
import sys
import tempfile
import threading
import time
from contextlib import suppress
from pathlib import Path

import psycopg

from bench.http_kills import LONGEST_LIFE as LONGEST_HTTP_LIFE, one_http_life
from keyhole.service.commands import (
    Activate,
    Configure,
    FeedbackRequest,
    GiveFeedback,
    Rank,
    RankerRequest,
    RankRequest,
)
from keyhole.service.errors import StoreError
from keyhole.service.group_commit import Desk
from keyhole.service.replay import check_ranker
from keyhole.service.store import open_store
from keyhole.service.store.base import Store
from tests.service.addresses import DURABLE, SERVING, address_of, as_owner

ITEMS = ["ant", "bee", "cat", "dog", "eel"]
KILLS_PER_LOG = 10
"""A log that has been killed so often is followed by an empty one: replay takes its time."""
N_CALLERS = 8
LONGEST_LIFE = 0.08
DATABASE_SHARE = 0.1
LONGEST_OUTAGE = 5.0
"""Seconds until a service whose database was killed acknowledges again."""
_CREATE = Configure("animals", RankerRequest(items=ITEMS, seed=1))


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--times", type=int, default=1_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--http", type=int, help="kills of keyhole serve; a twentieth of all")
    parser.add_argument("--store", choices=DURABLE, default="sqlite", help="where the log is")
    asked = parser.parse_args(arguments)
    n_http = asked.times // 20 if asked.http is None else min(asked.http, asked.times)
    warm_up()
    began, rng = time.monotonic(), random.Random(asked.seed)
    n_acknowledged = n_killed = n_mid_commit = n_database = 0
    folder = Path(tempfile.mkdtemp())
    try:
        while n_killed < asked.times - n_http:
            address = new_log(asked.store, folder / str(n_killed))
            acknowledged: list[str] = []
            n_loose = 0
            for _ in range(min(KILLS_PER_LOG, asked.times - n_http - n_killed)):
                at_database = asked.store == "postgresql" and rng.random() < DATABASE_SHARE
                n_database += at_database
                seconds = rng.uniform(0.0, LONGEST_LIFE)
                problem = one_life(address, acknowledged, seconds, at_database=at_database)
                if problem:
                    print(f"After {n_killed} kills, seed {asked.seed}: {problem}")
                    return 1
                n_killed += 1
                now_loose = loose_ends(address, acknowledged)
                n_mid_commit += now_loose > n_loose
                n_loose = now_loose
            n_acknowledged += len(acknowledged)
        n_told = http_kills(asked.store, folder, n_http, rng)
        if isinstance(n_told, str):
            print(f"keyhole serve, seed {asked.seed}: {n_told}")
            return 1
    finally:
        shutil.rmtree(folder)
    n_killed, n_acknowledged = n_killed + n_http, n_acknowledged + n_told
    print(
        f"{n_killed} kills, {n_http} of them of keyhole serve with {n_told} events told over HTTP"
    )
    print(
        f"{n_killed} kills, {n_acknowledged} events acknowledged, 0 lost; {n_mid_commit} kills "
        f"came between a commit and its reply; {time.monotonic() - began:.0f} s"
    )
    if n_database:
        print(f"{n_database} times the processes of PostgreSQL were killed before")
    if n_acknowledged < n_killed:
        print("Too little was acknowledged for this to say anything.")
        return 1
    return 0


def new_log(scheme: str, folder: Path) -> str:
    """Return the address of an empty log in a kind of store."""
    folder.mkdir(exist_ok=True)
    return address_of(scheme, folder)


def http_kills(scheme: str, folder: Path, n_kills: int, rng: random.Random) -> int | str:
    """Return how many events were told over HTTP before kills, or what was wrong."""
    n_told, acknowledged = 0, list[str]()
    for number in range(n_kills):
        if number % KILLS_PER_LOG == 0:
            n_told, acknowledged = n_told + len(acknowledged), []
        address = new_log(scheme, folder / f"http-{number // KILLS_PER_LOG}")
        problem = one_http_life(address, acknowledged, rng.uniform(0.02, LONGEST_HTTP_LIFE), ITEMS)
        if problem:
            return f"after {number} kills: {problem}"
    return n_told + len(acknowledged)


def warm_up() -> None:
    """Load what is compiled before any child is forked."""

    async def rank_once() -> None:
        desk = Desk(open_store("memory:"))
        await desk.start()
        await desk.submit(_CREATE)
        shown = await desk.submit(Rank("animals", RankRequest()))
        said = FeedbackRequest(relevance=[1.0])
        await desk.submit(GiveFeedback("animals", shown.event_id, said))
        await desk.stop()

    asyncio.run(rank_once())


def loose_ends(address: str, acknowledged: list[str]) -> int:
    """Return how many events are in the log of which nobody was told."""
    with open_store(address) as store:
        last = store.last("animals")
        return 0 if last is None else last.seq - 1 - len(acknowledged)


def one_life(
    address: str, acknowledged: list[str], seconds: float, *, at_database: bool = False
) -> str:
    """Let a child serve for some time and kill it; return what was wrong, or nothing."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read)
        live_and_be_killed(address, acknowledged, write)
    os.close(write)
    problem, said = "", list[str]()
    with os.fdopen(read, "r") as told:
        first = told.readline()
        hearing = threading.Thread(target=said.extend, args=(told,))  # a full pipe would stop it
        hearing.start()
        if first.startswith("ready"):
            time.sleep(seconds)
            if at_database:
                problem = outlive_the_database(address)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        hearing.join()
    for line in said:
        if line.endswith("\n"):  # half a line was not said
            if line.startswith("problem"):
                return line
            acknowledged.append(line.strip())
    return problem if first.startswith("ready") else first or "the child died before it was ready"


def outlive_the_database(address: str) -> str:
    """Kill the sessions of a service, at which all of PostgreSQL starts again; await new events."""
    with psycopg.connect(as_owner(address), autocommit=True) as db:
        sessions = "SELECT pid FROM pg_stat_activity WHERE usename = %s"
        for (process,) in db.execute(sessions, (SERVING,)).fetchall():
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
    killed_at, ends_at = time.time_ns() // 1_000_000, time.monotonic() + LONGEST_OUTAGE
    while time.monotonic() < ends_at:
        with suppress(StoreError), open_store(address, read_only=True) as store:
            last = store.last("animals")
            if last is not None and last.at > killed_at:
                return ""
        time.sleep(0.02)
    return f"nothing was written within {LONGEST_OUTAGE:g} s of a kill of PostgreSQL"


def live_and_be_killed(address: str, acknowledged: list[str], write: int) -> None:
    """Recover, check, and serve until killed."""
    try:
        with open_store(address) as store:
            asyncio.run(serve(store, address, acknowledged, write))
    except BaseException as error:  # whatever it is, the parent must hear of it
        os.write(write, f"problem: {type(error).__name__}: {error}\n".encode())
    os._exit(1)


async def serve(store: Store, address: str, acknowledged: list[str], write: int) -> None:
    desk = Desk(store, snapshot_every=50, reopen=lambda: open_store(address))
    if "animals" in desk.engine.rankers:
        problem = what_is_wrong(desk, acknowledged)
        if problem:
            os.write(write, f"problem: {problem}\n".encode())
            return
    await desk.start()
    await desk.submit(_CREATE)
    os.write(write, b"ready\n")
    await asyncio.gather(*(call(desk, write, caller) for caller in range(N_CALLERS)))


def what_is_wrong(desk: Desk, acknowledged: list[str]) -> str:
    store = desk.store
    checked = check_ranker(store, "animals")
    if checked.problems:
        return checked.problems[0]
    if checked.sha256 != desk.engine.ranker("animals").sha256():
        return "the recovered state is not that of a replay"
    for line in acknowledged:
        kind, _, event_id = line.partition(" ")
        if store.find("animals", event_id, kind) is None:  # type: ignore[arg-type]
            return f"{line} was acknowledged and is lost"
    return ""


async def call(desk: Desk, write: int, caller: int) -> None:
    """Rank and answer for ever, and say so only after the reply."""
    rng = random.Random(f"{os.getpid()} {caller}")
    while True:
        try:
            await rank_and_answer(desk, write, rng)
        except StoreError:  # the database is gone for a while
            await asyncio.sleep(0.01)


async def rank_and_answer(desk: Desk, write: int, rng: random.Random) -> None:
    deferred = rng.random() < 0.2
    shown = await desk.submit(Rank("animals", RankRequest(deferred=deferred)))
    os.write(write, f"rank {shown.event_id}\n".encode())
    if deferred:
        await desk.submit(Activate("animals", shown.event_id))
        os.write(write, f"activate {shown.event_id}\n".encode())
    if rng.random() < 0.9:
        said = FeedbackRequest(relevance=[float(rng.random() < 0.5)])
        await desk.submit(GiveFeedback("animals", shown.event_id, said))
        os.write(write, f"feedback {shown.event_id}\n".encode())


if __name__ == "__main__":
    sys.exit(main())
