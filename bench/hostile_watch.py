"""What ``bench.hostile`` watches: how a good client fares, and the memory of the service."""

import multiprocessing
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from keyhole.client import Client

_EVERY = 0.005
"""How long a good client waits before it asks again."""


class Told(NamedTuple):
    """What a good client tells: when it asked, how long answers took, and which did not come."""

    times: list[float]
    seconds: list[float]
    failures: list[str]

    def p99(self, begin=0.0, end=float("inf")):
        """Return the 99th percentile of what was asked within some time.

        While it waits it asks nothing, so a long wait counts for all that it would have asked.
        """
        waits = []
        for at, took in zip(self.times, self.seconds, strict=True):
            if begin <= at < end:
                waits += [took - i * _EVERY for i in range(1 + int(took / _EVERY))]
        return sorted(waits)[len(waits) * 99 // 100] if waits else 0.0


def ask_for_lists(url, key, begun, stopping, told):
    """Ask for a list again and again until told to stop, and tell how it went."""
    times, seconds, failures = [], [], []
    with Client(url, key=key, retries=0, timeout=30.0) as client:
        while not stopping.is_set():
            began = time.perf_counter()
            try:
                client.rank("good")
            except Exception as error:
                failures.append(str(error))
            times.append(began)
            seconds.append(time.perf_counter() - began)
            begun.set()
            time.sleep(_EVERY)
    told.send(Told(times, seconds, failures))


def resident_mb(pid):
    fields = Path(f"/proc/{pid}/status").read_text()
    return int(fields.partition("VmRSS:")[2].split()[0]) / 1_024.0


def watched(url, key, work):
    """Return what a good client, a process of its own, tells of the time that some work took."""
    processes = multiprocessing.get_context("spawn")
    begun, stopping = processes.Event(), processes.Event()
    heard, told = processes.Pipe(duplex=False)
    client = processes.Process(
        target=ask_for_lists, args=(url, key, begun, stopping, told), daemon=True
    )
    client.start()
    try:
        begun.wait(60)
        work()
    finally:
        stopping.set()
    result = heard.recv()
    client.join(60)
    return result


class Scales:
    """Weighs a process now and then, from the moment when its memory is the usual one."""

    def __init__(self, pid):
        self._pid = pid
        self.times, self.memory = [], []
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._weigh)

    def __enter__(self):
        self._thread.start()
        while not self.memory:
            time.sleep(0.01)
        return self

    def __exit__(self, *_):
        self._is_over.set()
        self._thread.join()

    def _weigh(self):
        with suppress(OSError):  # it has ended
            while not self._is_over.wait(0.05):
                self.times.append(time.perf_counter())
                self.memory.append(resident_mb(self._pid))

    def growth(self, begin=0.0, end=float("inf")):
        """Return by how much it was ever more than at first, within some time."""
        within = [mb for at, mb in zip(self.times, self.memory, strict=False) if begin <= at < end]
        return max(within, default=0.0) - self.memory[0]
