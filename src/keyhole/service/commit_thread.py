"""A thread that waits for the disk, so that the loop which serves everybody does not."""

import asyncio
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import NamedTuple

Work = Callable[[], None]


class _Piece(NamedTuple):
    work: Work
    ended: asyncio.Future[None]
    is_awaited: bool
    """Whether whoever handed it over waits until it has begun."""


class Committer:
    """Does one piece of work after the other.

    Whoever hands work to a thread that has none waits until it has begun. A thread that only asks
    for its turn gets it when the loop has nothing left to do, or after milliseconds: long after a
    disk, which can work beside it, could have been done.
    """

    def __init__(self) -> None:
        self._pieces: SimpleQueue[_Piece | None] = SimpleQueue()
        self._n_open = 0
        self._has_begun = threading.Lock()
        self._has_begun.acquire()
        self._thread: threading.Thread | None = None

    def begin(self, work: Work) -> asyncio.Future[None]:
        """Begin a piece of work after all before it; return what tells that it has ended."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="keyhole-commit", daemon=True)
            self._thread.start()
        piece = _Piece(work, asyncio.get_running_loop().create_future(), self._n_open == 0)
        self._n_open += 1
        self._pieces.put(piece)
        if piece.is_awaited:
            self._has_begun.acquire()
        return piece.ended

    def stop(self) -> None:
        """End the thread, after the work that it has."""
        if self._thread is not None:
            self._pieces.put(None)
            self._thread.join()
            self._thread = None

    def _run(self) -> None:
        while (piece := self._pieces.get()) is not None:
            if piece.is_awaited:
                self._has_begun.release()
            error: BaseException | None = None
            try:
                piece.work()
            except BaseException as raised:
                error = raised
            piece.ended.get_loop().call_soon_threadsafe(self._end, piece.ended, error)

    def _end(self, ended: asyncio.Future[None], error: BaseException | None) -> None:
        self._n_open -= 1
        if ended.cancelled():
            return
        if error is None:
            ended.set_result(None)
        else:
            ended.set_exception(error)
