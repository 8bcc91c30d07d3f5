"""A thread that waits for fsync, so that the event loop does not."""

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
    """Whether the submitting thread waits until the work has started."""


class Committer:
    """Runs jobs one after the other.

    Submitting a job to an idle thread blocks until it has started. Otherwise the thread would have
    to wait for the GIL, which a busy event loop gives up only after milliseconds: longer than the
    fsync takes, which itself needs no GIL.
    """

    def __init__(self) -> None:
        self._pieces: SimpleQueue[_Piece | None] = SimpleQueue()
        self._n_open = 0
        self._has_begun = threading.Lock()
        self._has_begun.acquire()
        self._thread: threading.Thread | None = None

    def begin(self, work: Work) -> asyncio.Future[None]:
        """Submit a job; return the future of its end."""
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
        """End the thread once its queue is empty."""
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
