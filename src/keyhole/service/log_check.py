"""What replay leaves out is checked beside requests: the file, and events before snapshots."""

import threading
import time
from collections.abc import Iterable
from queue import Empty, SimpleQueue

from keyhole.service.errors import StoreDamaged, StoreError
from keyhole.service.ranker_state import LiveRanker
from keyhole.service.store.base import Store
from keyhole.service.store.chain import checked
from keyhole.service.structured_logs import logger

_AT_ONCE = 64
"""Events that are checked between two pauses."""
_SHARE = 0.25
"""Of the time, once requests are answered: they wait for what this thread does."""
_AGAIN, _AGAIN_AT_MOST = 1.0, 60.0
"""Seconds until a check that failed is tried again: twice as long each time."""

Finding = tuple[str | None, str]
"""A ranker, or None for the whole log, and what is wrong with it."""


class LogCheck:
    """Checks in a thread whether a log is what was written.

    That of each ranker up to its snapshot, and the file as a whole, whose indexes say which events
    there are. Events that were replayed were checked then. Where something keeps it from reading,
    it tries again later: what nobody has read is not checked.
    """

    def __init__(self, store: Store, rankers: Iterable[LiveRanker]) -> None:
        self._store = store
        self._pending = [live for live in rankers if not live.is_checked]
        self._n_rankers = len(self._pending)
        self._found: SimpleQueue[Finding] = SimpleQueue()
        self._is_urgent = True
        self._tried, self._stopped = threading.Event(), threading.Event()
        self._n_events = 0
        self._thread: threading.Thread | None = None
        if store.is_durable or self._pending:
            self._thread = threading.Thread(target=self._run, name="keyhole-check", daemon=True)
            self._thread.start()

    @property
    def is_done(self) -> bool:
        """Whether there is nothing left to check."""
        return self._thread is None or not self._thread.is_alive()

    def wait(self, seconds: float) -> None:
        """Wait for its first try, but not for longer; then it goes on beside requests."""
        if self._thread is not None:
            self._tried.wait(seconds)
        self._is_urgent = False

    def findings(self) -> list[Finding]:
        """Return what was found since this was asked last."""
        found: list[Finding] = []
        while True:
            try:
                found.append(self._found.get_nowait())
            except Empty:
                return found

    def stop(self) -> None:
        """Leave the rest unchecked; ends at once where the store is closed after it."""
        self._stopped.set()

    def _run(self) -> None:
        began, pause = time.monotonic(), _AGAIN
        while not self._is_read(pause):
            self._tried.set()
            if self._stopped.wait(pause):
                return
            pause = min(2.0 * pause, _AGAIN_AT_MOST)
        if not self._stopped.is_set():
            seconds = round(time.monotonic() - began, 3)
            logger().info(
                "The log was checked, beside what was replayed.",
                seconds=seconds, rankers=self._n_rankers, events=self._n_events,
            )  # fmt: skip
        self._tried.set()

    def _is_read(self, pause: float) -> bool:
        """Check what is left; return whether it came to an end, be it that there is damage."""
        try:
            for said in self._store.damage():
                self._found.put((None, f"The file of the log is damaged: {said}."))
                break
            while self._pending and not self._stopped.is_set():
                self._check(self._pending[0])
                self._pending.pop(0)
        except StoreDamaged as error:
            self._found.put((None, str(error)))
        except Exception as error:
            if self._stopped.is_set():
                return True
            is_fault = not isinstance(error, StoreError)
            logger().error(
                "The log could not be checked; it is tried again.",
                error=str(error), seconds=pause, exc_info=error if is_fault else None,
            )  # fmt: skip
            return False
        return True

    def _check(self, live: LiveRanker) -> None:
        """Check that events follow each other from the first to the snapshot's."""
        seq, last, resumed = 0, live.snapshot_seq, time.monotonic()
        try:
            for event in checked(self._store.events(live.name, limit=last)):
                seq = event.seq
                self._n_events += 1
                if seq % _AT_ONCE == 0:
                    if self._stopped.is_set():
                        return
                    self._pause(time.monotonic() - resumed)
                    resumed = time.monotonic()
        except StoreDamaged as error:
            self._found.put((live.name, str(error)))
            return
        if seq < last:
            said = f"Ranker {live.name!r} must have {last} events at least, got {seq}."
            self._found.put((live.name, said))
        else:
            live.is_checked = True

    def _pause(self, worked: float) -> None:
        if not self._is_urgent:
            time.sleep(worked * (1.0 / _SHARE - 1.0))
