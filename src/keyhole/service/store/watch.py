"""A thread that looks after a log on another machine, so that the event loop never waits for it."""

import threading
from collections.abc import Callable

_EVERY = 1.0
"""Seconds between two looks."""


class Watch:
    """Calls a function every second, and keeps what it said last: a sentence, or None."""

    def __init__(self, look: Callable[[], str | None]) -> None:
        self.said: str | None = None
        self._look = look
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="keyhole-watch", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._stopped.wait(_EVERY):
            self.said = self._look()

    def stop(self) -> None:
        """End the thread; a look that has begun is finished first."""
        self._stopped.set()
        if threading.current_thread() is not self._thread:
            self._thread.join()
