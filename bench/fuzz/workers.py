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
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from bench.fuzz.cases import Report, area_of
from bench.fuzz.scene import Failure

LIMIT = 20.0
"""Seconds of processor time that a case may take, or be without."""
_HARDLY = 0.1
"""Seconds of the processor in so long, and it was without."""

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


def _worked(session: int) -> float:
    """Return how long a worker and all that it has started had the processor, in seconds."""
    ticks = 0
    for place in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # it has just ended
            fields = place.read_text("utf-8", "replace").rpartition(") ")[2].split()
            if int(fields[3]) == session:
                ticks += sum(map(int, fields[11:15]))  # its own, and of those that it waited for
    return ticks / os.sysconf("SC_CLK_TCK")


@dataclass
class _Worker:
    """A process and the case that it is at."""

    process: Any
    pipe: Connection
    number: int | None = None
    since: float = 0.0
    had: float = 0.0
    """Seconds of the processor that it had before its case."""
    seen: tuple[float, float] = (0.0, 0.0)
    """What it had had when it was last seen to work, and when that was."""
    is_ready: bool = False

    @property
    def seconds(self) -> float:
        """How long it has been at its case."""
        return time.monotonic() - self.since

    def give(self, seed: int, number: int) -> None:
        self.number, self.since, self.had = number, time.monotonic(), _worked(self.process.pid)
        self.seen = self.had, self.since
        self.pipe.send((seed, number))

    def is_late(self, limit: float) -> bool:
        """Return whether it has worked for longer than a limit, or not at all for as long.

        A busy machine may let it wait for minutes.
        """
        if self.seconds <= limit:
            return False
        had, now = _worked(self.process.pid), time.monotonic()
        if had > self.seen[0] + _HARDLY:
            self.seen = had, now
        return had - self.had > limit or now - self.seen[1] > limit

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
        Seconds of the processor that a case may take, or be without. One that takes longer is
        tried once more before it is said to hang.
    """

    def __init__(
        self, judge: Judge, warm: Callable[[], None], *, jobs: int = 2, limit: float = LIMIT
    ) -> None:
        self.judge, self.warm, self.jobs, self.limit = judge, warm, jobs, limit
        self._context = multiprocessing.get_context("spawn")

    def run(self, seed: int, numbers: Iterable[int]) -> Iterator[Report]:
        """Judge cases, and give a report on each as it comes."""
        self._seed, self._waiting = seed, iter(numbers)
        self._again, self._were_late = list[int](), set[int]()
        with tempfile.TemporaryDirectory(prefix="fuzz-") as name:
            self._folder = Path(name)
            self._workers = [self._start()]  # it compiles for all: the others find its code
            try:
                while self._workers:
                    self._feed()
                    ready = wait([worker.pipe for worker in self._workers], timeout=0.2)
                    for worker in list(self._workers):
                        report = self._news(worker, worker.pipe in ready)
                        if report is not None:
                            yield report
            finally:
                for worker in self._workers:
                    worker.stop()

    def _start(self) -> _Worker:
        ours, theirs = self._context.Pipe()
        given = (theirs, self.judge, self.warm, self._folder)
        process = self._context.Process(target=_work, args=given)
        process.start()
        theirs.close()
        return _Worker(process, ours)

    def _replace(self, worker: _Worker) -> str:
        """Put a new worker in the place of one, and return what that one has last said."""
        worker.stop()
        self._workers[self._workers.index(worker)] = self._start()
        path = self._folder / f"{worker.process.pid}.stderr"
        return path.read_text("utf-8", "replace")[-4000:] if path.exists() else ""

    def _feed(self) -> None:
        """Give every worker that has nothing to do a case; when there is none, send all away."""
        if len(self._workers) < self.jobs and all(worker.is_ready for worker in self._workers):
            self._workers.append(self._start())
        is_done = False
        for worker in self._workers:
            if worker.is_ready and worker.number is None:
                number = self._again.pop() if self._again else next(self._waiting, None)
                is_done = number is None
                if number is not None:
                    worker.give(self._seed, number)
        if is_done and all(worker.number is None for worker in self._workers):
            for worker in self._workers:
                worker.stop()
            self._workers = []

    def _news(self, worker: _Worker, has_sent: bool) -> Report | None:
        """Return the report that a worker has sent, or one on its end, if there is any."""
        if has_sent:
            try:
                report: Report | None = worker.pipe.recv()
            except (EOFError, ConnectionError):
                return self._dead(worker)
            worker.is_ready, worker.number = True, None
            return report
        if worker.number is not None and worker.is_late(self.limit):
            return self._late(worker, worker.number)
        return None

    def _late(self, worker: _Worker, number: int) -> Report | None:
        """Replace a worker that takes too long; report when its case does so twice."""
        os.kill(worker.process.pid, _WHERE)
        time.sleep(0.3)
        told, seconds = self._replace(worker), worker.seconds
        if number not in self._were_late:
            self._were_late.add(number)
            self._again.append(number)
            return None
        kind = f"hangs for more than {self.limit:g} s at {_place_in(told)}"
        return _broken(self._seed, number, kind, told, seconds)

    def _dead(self, worker: _Worker) -> Report:
        """Replace a worker that has died, and report on the case that it was at."""
        worker.process.join()
        code, number, seconds = worker.process.exitcode, worker.number, worker.seconds
        told = self._replace(worker)
        if number is None:
            raise RuntimeError(f"A worker died before its first case:\n{told}")
        name = signal.Signals(-code).name if code < 0 else f"exit code {code}"
        return _broken(self._seed, number, f"dies of {name} at {_place_in(told)}", told, seconds)


def _place_in(told: str) -> str:
    """Return the last place within the package of a traceback that faulthandler wrote."""
    for line in told.splitlines():
        if "keyhole" in line and '", line ' in line:
            path, _, rest = line.partition('", line ')
            return f"{path.rpartition('keyhole/')[2]}:{rest.rpartition(' in ')[2]}"
    return "an unknown place"
