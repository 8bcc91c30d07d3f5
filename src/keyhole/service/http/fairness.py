"""A queue of CPU-heavy work for the event loop, so that small requests are not delayed."""

import asyncio
from collections import deque
from collections.abc import Callable


class Turns:
    """Runs one queued piece of work per turn of the event loop."""

    def __init__(self) -> None:
        self._queue: deque[Callable[[], None]] = deque()

    def take(self, loop: asyncio.AbstractEventLoop, work: Callable[[], None]) -> None:
        """Queue a piece of work."""
        if not self._queue:
            loop.call_soon(self._do_next, loop)
        self._queue.append(work)

    def _do_next(self, loop: asyncio.AbstractEventLoop) -> None:
        try:
            self._queue[0]()
        finally:
            self._queue.popleft()
            if self._queue:
                loop.call_soon(self._do_next, loop)
