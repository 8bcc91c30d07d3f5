"""How far the code of a ranker is: looked for on disk, compiled by another process, or ready."""

import asyncio
import time
from typing import Any, Literal

from keyhole.service.commands import CodeReply
from keyhole.service.events import Config
from keyhole.service.structured_logs import logger

Source = Literal["disk", "compiled", "compiled within the service"]


class Preparation:
    """How far the code of one ranker is."""

    def __init__(self, ranker: str, config: Config) -> None:
        self.ranker = ranker
        self.kind = str(config.spec.get("name"))
        self.state: Literal["preparing", "ready", "failed"] = "preparing"
        self.looked = asyncio.Event()
        """Set once it is known whether the code is on disk."""
        self._began = time.monotonic()
        self._took: float | None = None
        logger().info("Code is being prepared.", ranker=ranker, kind=self.kind)

    @property
    def seconds(self) -> float:
        """How long it has taken until now, or until it was done."""
        return time.monotonic() - self._began if self._took is None else self._took

    @property
    def is_open(self) -> bool:
        """Whether the ranker must still wait for it."""
        return self.state == "preparing"

    def reply(self) -> CodeReply:
        """Return what is told of it."""
        return CodeReply(self.state, round(self.seconds, 3))

    def end(self, source: Source) -> None:
        """Note that the code is ready."""
        self._took, self.state = self.seconds, "ready"
        logger().info("Code is ready.", **self._told(), source=source)

    def fail(self, error: BaseException) -> None:
        """Note that there will be no code but what requests compile themselves."""
        self._took, self.state = self.seconds, "failed"
        logger().error("Code cannot be prepared.", **self._told(), exc_info=error)

    def _told(self) -> dict[str, Any]:
        return {"ranker": self.ranker, "kind": self.kind, "seconds": round(self.seconds, 3)}
