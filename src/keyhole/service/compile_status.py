"""The progress of a ranker's compilation: cache lookup, compilation in a worker, ready."""

import asyncio
import time
from typing import Any, Literal

from keyhole.service.commands import CodeReply
from keyhole.service.events import Config
from keyhole.service.structured_logs import logger

Source = Literal["disk", "compiled", "compiled within the service"]


class Preparation:
    """The compilation status of one ranker."""

    def __init__(self, ranker: str, config: Config) -> None:
        self.ranker = ranker
        self.kind = str(config.spec.get("name"))
        self.state: Literal["preparing", "ready", "failed"] = "preparing"
        self.looked = asyncio.Event()
        """Set once the disk cache has been searched."""
        self._began = time.monotonic()
        self._took: float | None = None
        logger().info("Preparing compiled code.", ranker=ranker, kind=self.kind)

    @property
    def seconds(self) -> float:
        """Seconds so far, or in total once it has ended."""
        return time.monotonic() - self._began if self._took is None else self._took

    @property
    def is_open(self) -> bool:
        """Whether the ranker is still waiting for its code."""
        return self.state == "preparing"

    def reply(self) -> CodeReply:
        """Return the status as a reply field."""
        return CodeReply(self.state, round(self.seconds, 3))

    def end(self, source: Source) -> None:
        """Mark the code as ready."""
        self._took, self.state = self.seconds, "ready"
        logger().info("Code is ready.", **self._told(), source=source)

    def fail(self, error: BaseException) -> None:
        """Mark the preparation as failed: requests will compile on demand."""
        self._took, self.state = self.seconds, "failed"
        logger().error("Preparing compiled code failed.", **self._told(), exc_info=error)

    def _told(self) -> dict[str, Any]:
        return {"ranker": self.ranker, "kind": self.kind, "seconds": round(self.seconds, 3)}
