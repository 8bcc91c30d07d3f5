"""State shared by all requests: the desk, keys, metrics, evaluations and sessions."""

import asyncio
import hmac
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from keyhole.base.errors import KeyholeError
from keyhole.service.api.evaluations import Evaluations
from keyhole.service.compilation import Preparer, Stopped
from keyhole.service.errors import LastKey, StoreError
from keyhole.service.events import Key
from keyhole.service.group_commit import Desk
from keyhole.service.http.problems import Busy, NotReady
from keyhole.service.http.rate_limits import RateLimits
from keyhole.service.keys import KeyRing
from keyhole.service.metrics import Metrics
from keyhole.service.ranker_state import LiveRanker
from keyhole.service.sessions import Sessions
from keyhole.service.settings import Settings
from keyhole.service.structured_logs import logger

_STOPPING = "The service is stopping."


class Service:
    """The shared state of the service; its desk may still be opening, or have failed."""

    openapi: bytes

    def __init__(
        self,
        settings: Settings,
        *,
        desk: Desk | None = None,
        open_desk: Callable[[], Desk],
        preparer: Preparer | None = None,
    ) -> None:
        self.settings = settings
        self.stopping = asyncio.Event()
        self.n_streams = 0
        self.evaluations = Evaluations()
        self.keyring = KeyRing(self._keys, note_use=self._note_use)
        self.metrics = Metrics(self._rankers)
        rate, burst = settings.key_rate, settings.key_burst
        self.rate_limits = RateLimits(rate, burst) if rate else None
        self.preparer = preparer or Preparer()
        self.failure: Exception | None = None
        """The error that kept the log from being opened."""
        self._why_not_ready = "The log is being read; retry in a moment."
        self._open_desk = open_desk
        self._desk = desk
        self._sessions: Sessions | None = None
        self._removing = threading.Lock()

    @property
    def is_ready(self) -> bool:
        """Whether the service can answer requests."""
        return self._desk is not None and self._desk.is_ready

    @property
    def why_not_ready(self) -> str:
        """The reason why it cannot answer: mostly replay of the log, or compilation."""
        if self._desk is not None and self._desk.trouble is not None:
            return self._desk.trouble
        is_starting = self.failure is None and not self.stopping.is_set()
        return (self.preparer.told() if is_starting else None) or self._why_not_ready

    @property
    def desk(self) -> Desk:
        """The desk; raises :class:`NotReady` until it is open."""
        if self._desk is None:
            raise NotReady(self.why_not_ready)
        return self._desk

    @property
    def sessions(self) -> Sessions:
        """The sessions of the dashboard, signed with the secret of the log."""
        if self._sessions is None:
            secret = hmac.new(self.desk.store.secret(), b"sessions", "sha256").digest()
            self._sessions = Sessions(
                secret, self.settings.session_seconds, secure=self.settings.secure_cookies
            )
        return self._sessions

    @contextmanager
    def streaming(self) -> Iterator[None]:
        """Count an open live stream; raise if there are too many."""
        if self.n_streams >= self.settings.max_streams:
            raise Busy(f"At most {self.settings.max_streams} streams may be open at once.")
        self.n_streams += 1
        self.metrics.in_flight -= 1  # streams do not count as requests in flight
        try:
            yield
        finally:
            self.n_streams -= 1
            self.metrics.in_flight += 1

    async def start(self) -> None:
        """Open the desk in a thread, which replays the log and compiles code."""
        try:
            desk = self._desk
            if desk is None:
                desk = await asyncio.to_thread(self._open_desk)
            desk.on_commit = self.metrics.count_commit
            await desk.start()
            self._desk = desk
        except Stopped:
            self._why_not_ready = _STOPPING
        except Exception as error:
            is_fault = not isinstance(error, KeyholeError)
            logger().error("The log cannot be used.", exc_info=error if is_fault else None)
            self.failure = error
            self._why_not_ready = "The event log cannot be opened; the service log says why."

    async def stop(self) -> None:
        """End the streams, finish running work, and close the log."""
        self.stopping.set()
        self.evaluations.close()
        await self.preparer.stop()
        if self._desk is not None:
            desk, self._desk = self._desk, None
            self._why_not_ready = _STOPPING
            await desk.stop()
            await asyncio.to_thread(desk.store.close)

    def remove_key(self, prefix: str) -> bool:
        """Remove a key, and return whether it existed; a public service keeps its last key."""
        with self._removing:
            keys, store = self._keys(), self.desk.store
            if self.settings.needs_key and [key.prefix for key in keys] == [prefix]:
                raise LastKey(
                    "The last key of a service that other machines can reach must stay: "
                    "create another key first."
                )
            return store.remove_key(prefix)

    def _keys(self) -> list[Key]:
        return self.desk.store.keys()

    def _note_use(self, prefix: str, at: int) -> None:
        """Store the last use of a key in a thread; a failed write is retried a minute later."""
        store = self.desk.store

        def write() -> None:
            with suppress(StoreError):
                store.note_key_use(prefix, at)

        asyncio.get_running_loop().run_in_executor(None, write)

    def _rankers(self) -> list[LiveRanker]:
        return [] if self._desk is None else list(self._desk.engine.rankers.values())
