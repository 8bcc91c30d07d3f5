"""What keeps the loop busy takes turns, so that whoever asks for little is answered at once."""

import asyncio
from collections import deque
from collections.abc import Callable


class Turns:
    """Work that can wait: one piece of it in each turn of the loop, whoever sent it."""

    def __init__(self) -> None:
        self._queue: deque[Callable[[], None]] = deque()

    def take(self, loop: asyncio.AbstractEventLoop, work: Callable[[], None]) -> None:
        """Do some work when it is its turn."""
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
