"""Verifies in the background what replay skips: the file, and the events before snapshots."""

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
"""The number of events checked between two pauses."""
_SHARE = 0.25
"""The share of time the check may run while requests are served: it holds the GIL."""
_AGAIN, _AGAIN_AT_MOST = 1.0, 60.0
"""Seconds until a failed check is retried, with exponential backoff."""

Finding = tuple[str | None, str]
"""A damaged ranker, or None for the whole log, and the reason."""


class LogCheck:
    """Verifies a log in a thread.

    It checks the hash chain of each ranker up to its snapshot (replay has checked the rest) and the
    integrity of the file, including its indexes. Read errors are retried.
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
        """Whether the check has finished."""
        return self._thread is None or not self._thread.is_alive()

    def wait(self, seconds: float) -> None:
        """Wait some seconds for the first attempt; then let the check run in the background."""
        if self._thread is not None:
            self._tried.wait(seconds)
        self._is_urgent = False

    def findings(self) -> list[Finding]:
        """Return the damage found since the last call."""
        found: list[Finding] = []
        while True:
            try:
                found.append(self._found.get_nowait())
            except Empty:
                return found

    def stop(self) -> None:
        """Cancel the check; the thread ends at once when the store is closed."""
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
                "The log check has finished.",
                seconds=seconds, rankers=self._n_rankers, events=self._n_events,
            )  # fmt: skip
        self._tried.set()

    def _is_read(self, pause: float) -> bool:
        """Run the check; return whether it finished, with or without findings."""
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
                "The log could not be checked; retrying.",
                error=str(error), seconds=pause, exc_info=error if is_fault else None,
            )  # fmt: skip
            return False
        return True

    def _check(self, live: LiveRanker) -> None:
        """Check the hash chain from the first event to the snapshot's."""
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
