"""What all requests share: the desk once the log is read, keys, metrics, evaluations, sessions."""

import asyncio
import hmac
from collections.abc import Callable
from typing import Any

from keyhole.errors import KeyholeError
from keyhole.service.events import Key
from keyhole.service.http.doors import Sessions
from keyhole.service.http.evaluations import Evaluations
from keyhole.service.http.metrics import Metrics
from keyhole.service.http.pages import Pages
from keyhole.service.http.problems import NotReady
from keyhole.service.keys import KeyRing
from keyhole.service.logs import logger
from keyhole.service.settings import Settings

Desk = Any


class Service:
    """The desk and what stands around it; requests come before it is open and after it failed."""

    openapi: bytes

    def __init__(
        self,
        settings: Settings,
        *,
        desk: Desk | None = None,
        open_desk: Callable[[], Desk] | None = None,
    ) -> None:
        self.settings = settings
        self.stopping = asyncio.Event()
        self.n_streams = 0
        self.evaluations = Evaluations()
        self.pages = Pages(self)
        self.keyring = KeyRing(self._keys)
        self.metrics = Metrics(self._rankers)
        self.why_not_ready = "The log is being read; come again in a moment."
        self.has_failed = False
        self._open_desk = open_desk
        self._desk = desk
        self._sessions: Sessions | None = None

    @property
    def is_ready(self) -> bool:
        """Whether requests can be answered."""
        return self._desk is not None and not self.has_failed

    @property
    def desk(self) -> Desk:
        """The desk, or :class:`NotReady` while there is none."""
        if self._desk is None:
            raise NotReady(self.why_not_ready)
        return self._desk

    @property
    def sessions(self) -> Sessions:
        """The logins of the dashboard, signed with a secret of the log's own."""
        if self._sessions is None:
            secret = hmac.new(self.desk.store.secret(), b"sessions", "sha256").digest()
            self._sessions = Sessions(
                secret, self.settings.session_seconds, secure=self.settings.secure_cookies
            )
        return self._sessions

    async def start(self) -> None:
        """Open the desk in a thread: that reads the log and compiles, while requests come in."""
        try:
            desk = self._desk
            if desk is None and self._open_desk is not None:
                desk = await asyncio.to_thread(self._open_desk)
            await desk.start()
            self._desk = desk
        except KeyholeError as error:
            self.fail(str(error))
        except Exception:
            logger().exception("The log cannot be opened.")
            self.fail("The log cannot be opened.")

    def fail(self, why: str) -> None:
        """Note that the log cannot be used."""
        self.has_failed = True
        self.why_not_ready = why
        logger().error("The service is not ready.", why=why)

    async def stop(self) -> None:
        """End the streams, finish what was begun, and let go of the log."""
        self.stopping.set()
        self.evaluations.close()
        if self._desk is not None:
            desk, self._desk = self._desk, None
            self.why_not_ready = "The service is stopping."
            await desk.stop()

    def _keys(self) -> list[Key]:
        keys: list[Key] = self.desk.store.keys()
        return keys

    def _rankers(self) -> list[Any]:
        return list(self._desk.engine.rankers.values()) if self.is_ready else []
