"""How many cores there are, and work and runs spread over them."""

import os
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from contextlib import contextmanager
from typing import Any, TypeVar

T = TypeVar("T")


def n_cores() -> int:
    """Return the number of cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextmanager
def spread(n_threads: int) -> Iterator[Any]:
    """Give a ``map`` over some threads; its results come in order."""
    if n_threads == 1:
        yield lambda work, parts: [work(part) for part in parts]
        return
    with ThreadPoolExecutor(n_threads) as pool:
        yield lambda work, parts: list(pool.map(work, parts))


class Stop:
    """Whether runs should end early.

    No interrupt comes within an assignment, as it may within any call: the flag is set however
    fast they follow each other.
    """

    asked = False


def play_runs(
    play_run: Callable[[int, Callable[[int], None], Stop], T],
    runs: int,
    n_threads: int,
    progress: Callable[[int], None] | None,
) -> list[T]:
    """Return what runs 0, 1, ... leave, played in threads.

    ``play_run`` takes the number of the run, what to call with the rounds it has played, and
    whether it should end early: at an interrupt, or another run's error.
    """
    stop = Stop()
    tell = progress or (lambda _: None)
    if n_threads == 1 or runs == 1:
        return [play_run(run, tell, stop) for run in range(runs)]
    steps: deque[int] = deque()  # threads note what they played, this one tells
    with ThreadPoolExecutor(n_threads) as pool:
        try:
            futures = [pool.submit(play_run, run, steps.append, stop) for run in range(runs)]
            pending = set(futures)
            while pending:
                done, pending = wait(pending, timeout=0.1, return_when=FIRST_EXCEPTION)
                tell(sum(steps.popleft() for _ in range(len(steps))))
                if any(future.exception() for future in done):
                    break
        finally:
            stop.asked = True
            pool.shutdown(wait=True, cancel_futures=True)
        return [future.result() for future in futures]
