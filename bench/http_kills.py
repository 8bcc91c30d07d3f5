"""Kills of the service as it is run: a process of its own, asked over a socket by its client."""

import random
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from collections import Counter

from bench.load import free_port
from keyhole.base.errors import KeyholeError
from keyhole.client import Client
from keyhole.service.replay import check_ranker
from keyhole.service.store import open_store

N_CALLERS = 8
LONGEST_LIFE = 0.3
_READY_WITHIN = 120.0
_FIRST_WITHIN = 5.0
"""Seconds until the first answer, which a busy machine takes its time for."""
_RANKER = "animals"


def one_http_life(address: str, acknowledged: list[str], seconds: float, items: list[str]) -> str:
    """Let a process serve for some time, kill it, and return what its log lacks, or nothing.

    What callers have read whole is acknowledged; it must be in the log once.
    """
    port = free_port()
    serve = [sys.executable, "-m", "keyhole", "serve", "--db", address, "--port", str(port)]
    process = subprocess.Popen(serve, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        if not _is_ready(process, port):
            return "The service did not start."
        with Client(f"http://127.0.0.1:{port}", retries=0) as client:
            client.put_ranker(_RANKER, items=items, seed=1, ready_within=_READY_WITHIN)
        told: list[list[str]] = [[] for _ in range(N_CALLERS)]
        callers = [threading.Thread(target=_call, args=(port, each)) for each in told]
        for caller in callers:
            caller.start()
        ends_at = time.monotonic() + _FIRST_WITHIN
        while not any(told) and time.monotonic() < ends_at:
            time.sleep(0.002)
        time.sleep(seconds)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    for caller in callers:
        caller.join()
    acknowledged += [line for each in told for line in each]
    return _missing(address, acknowledged)


def _is_ready(process: "subprocess.Popen[bytes]", port: int) -> bool:
    ends_at = time.monotonic() + _READY_WITHIN
    while process.poll() is None and time.monotonic() < ends_at:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=5):
                return True
        except OSError:
            time.sleep(0.02)
    return False


def _call(port: int, told: list[str]) -> None:
    """Rank and answer until the service is gone, and note what each answer says."""
    rng = random.Random(f"{port} {threading.get_ident()}")
    with Client(f"http://127.0.0.1:{port}", retries=0) as client:
        try:
            while True:
                deferred = rng.random() < 0.2
                shown = client.rank(_RANKER, deferred=deferred)
                if shown.event_id is None:
                    return  # the client ranks by itself once nobody is there
                told.append(f"rank {shown.event_id}")
                if deferred:
                    client.activate(_RANKER, shown.event_id)
                    told.append(f"activate {shown.event_id}")
                if rng.random() < 0.9:
                    client.feedback(_RANKER, shown.event_id, [float(rng.random() < 0.5)])
                    told.append(f"feedback {shown.event_id}")
        except KeyholeError:
            return


def _missing(address: str, acknowledged: list[str]) -> str:
    with open_store(address) as store:
        checked = check_ranker(store, _RANKER)
        if checked.problems:
            return checked.problems[0]
        times = Counter(f"{event.kind} {event.key}" for event in store.events(_RANKER))
    for line in acknowledged:
        if times[line] != 1:
            return f"{line} was acknowledged and is there {times[line]} times"
    return ""
