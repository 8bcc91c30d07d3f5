"""Worker processes: a case that crashes or hangs costs its worker, not the run."""

import faulthandler
import multiprocessing
import os
import resource
import signal
import tempfile
import time
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from bench.fuzz.cases import Report, area_of
from bench.fuzz.scene import Failure

LIMIT = 20.0
"""Seconds that a case may take."""

_ADDRESSES = 8 * 2**30
"""Bytes of addresses that a worker may use: what claims more than is there fails at once."""

_WHERE = signal.SIGUSR1
"""Asks a worker that seems to hang where it is."""

Judge = Callable[[int, int], Report]


def _work(pipe: Connection, judge: Judge, warm: Callable[[], None], folder: Path) -> None:
    """Judge the cases that come through a pipe, until None does."""
    os.setsid()  # what a case has started ends with the worker
    log = (folder / f"{os.getpid()}.stderr").open("wb")
    os.dup2(log.fileno(), 2)
    faulthandler.enable()
    faulthandler.register(_WHERE, all_threads=False)
    tempfile.tempdir = str(folder)
    os.environ |= {"TMPDIR": str(folder), "COLUMNS": "100", "KEYHOLE_MEMORY_LIMIT": "64M"}
    resource.setrlimit(resource.RLIMIT_AS, (_ADDRESSES, _ADDRESSES))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the run is interrupted as a whole
    warm()
    pipe.send(None)
    while (case := pipe.recv()) is not None:
        seed, number = case
        try:
            report = judge(seed, number)
        except Exception:  # an attack that does not work is a defect too, of the attack
            report = _broken(seed, number, "the attack itself fails", traceback.format_exc(), 0.0)
        pipe.send(report)


def _broken(seed: int, number: int, kind: str, detail: str, seconds: float) -> Report:
    """Return the report on a case that could not report itself."""
    area = area_of(seed, number)
    return Report(number, area, "", [], [Failure(kind, detail)], 0, 0, seconds)


@dataclass
class _Worker:
    """A process and the case that it is at."""

    process: Any
    pipe: Connection
    number: int | None = None
    since: float = 0.0
    is_ready: bool = False

    def give(self, seed: int, number: int) -> None:
        self.number, self.since = number, time.monotonic()
        self.pipe.send((seed, number))

    def stop(self) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.kill()
        self.process.join()
        self.pipe.close()


class Workers:
    """Some processes that judge cases, and are replaced when they die or hang.

    Parameters
    ----------
    judge, warm
        What a worker does with a case, and what it does before the first one; both must be
        functions that another process can import.
    limit
        Seconds that a case may take. One that takes longer is tried once more before it is said
        to hang: the machine may have been busy.
    """

    def __init__(
        self, judge: Judge, warm: Callable[[], None], *, jobs: int = 2, limit: float = LIMIT
    ) -> None:
        self.judge, self.warm, self.jobs, self.limit = judge, warm, jobs, limit
        self._context = multiprocessing.get_context("spawn")

    def run(self, seed: int, numbers: Iterable[int]) -> Iterator[Report]:
        """Judge cases, and give a report on each as it comes."""
        waiting, again = iter(numbers), list[int]()
        tried_twice: set[int] = set()
        with tempfile.TemporaryDirectory(prefix="fuzz-") as name:
            folder = Path(name)
            workers = [self._start(folder) for _ in range(self.jobs)]
            try:
                while workers:
                    self._feed(workers, seed, waiting, again)
                    ready = wait([worker.pipe for worker in workers], timeout=0.2)
                    for worker in list(workers):
                        report = self._news(worker, seed, worker.pipe in ready, folder)
                        if worker.process.exitcode is not None or report is _HANGS:
                            workers.remove(worker)
                            number, since = worker.number, worker.since
                            if report is _HANGS:
                                os.kill(worker.process.pid, _WHERE)
                                time.sleep(0.3)
                            worker.stop()
                            workers.append(self._start(folder))
                            if report is _HANGS and number is not None:
                                if number not in tried_twice:
                                    tried_twice.add(number)
                                    again.append(number)
                                    continue
                                told = _last_words(folder, worker.process.pid)
                                kind = f"hangs for more than {self.limit:g} s at {_place_in(told)}"
                                report = _broken(seed, number, kind, told, time.monotonic() - since)
                        if isinstance(report, Report):
                            yield report
            finally:
                for worker in workers:
                    worker.stop()

    def _start(self, folder: Path) -> _Worker:
        ours, theirs = self._context.Pipe()
        process = self._context.Process(target=_work, args=(theirs, self.judge, self.warm, folder))
        process.start()
        theirs.close()
        return _Worker(process, ours)

    def _feed(
        self, workers: list[_Worker], seed: int, waiting: Iterator[int], again: list[int]
    ) -> None:
        """Give every worker that has nothing to do a case; send those away that get none."""
        for worker in list(workers):
            if worker.is_ready and worker.number is None:
                number = again.pop() if again else next(waiting, None)
                if number is not None:
                    worker.give(seed, number)
                elif all(other.number is None for other in workers):
                    worker.stop()
                    workers.remove(worker)

    def _news(self, worker: _Worker, seed: int, has_sent: bool, folder: Path) -> Any:
        """Return the report that a worker has sent, one on its death, or that it hangs."""
        if has_sent:
            try:
                report = worker.pipe.recv()
            except (EOFError, ConnectionError):
                return self._obituary(worker, seed, folder)
            worker.is_ready, worker.number = True, None
            return report
        late = worker.number is not None and time.monotonic() - worker.since > self.limit
        return _HANGS if late else None

    def _obituary(self, worker: _Worker, seed: int, folder: Path) -> Report:
        """Return the report on the case at which a worker died."""
        worker.process.join()
        told = _last_words(folder, worker.process.pid)
        if worker.number is None:
            raise RuntimeError(f"A worker died before its first case:\n{told}")
        code = worker.process.exitcode
        name = signal.Signals(-code).name if code < 0 else f"exit code {code}"
        place = _place_in(told)
        seconds = time.monotonic() - worker.since
        report = _broken(seed, worker.number, f"dies of {name} at {place}", told, seconds)
        return replace(report, what="see --case")


_HANGS = object()


def _last_words(folder: Path, pid: int) -> str:
    path = folder / f"{pid}.stderr"
    return path.read_text("utf-8", "replace")[-4000:] if path.exists() else ""


def _place_in(told: str) -> str:
    """Return the last place within the package of a traceback that faulthandler wrote."""
    for line in told.splitlines():
        if "keyhole" in line and '", line ' in line:
            path, _, rest = line.partition('", line ')
            return f"{path.rpartition('keyhole/')[2]}:{rest.rpartition(' in ')[2]}"
    return "an unknown place"
