"""Middleware of all routes: concurrency limit, metrics, access log and error responses."""

import re
import time
from typing import TYPE_CHECKING
from urllib.parse import unquote

from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Receive, Scope, Send

from keyhole.service.http.problems import Busy, request_id, response_to
from keyhole.service.http.responses import Sender
from keyhole.service.structured_logs import logger

if TYPE_CHECKING:
    from keyhole.service.http.context import Service

NO_SLASH = "%00"
"""Stands for an escaped slash in a path during routing: ids may hold one, names may not."""
_NOTHING = "%FF"
"""Bytes that are not UTF-8, and so in no name."""
_SLASH = re.compile("%2f", re.IGNORECASE)
_GONE = 499
"""The status that metrics record if the client has disconnected."""


class Door:
    """Wraps every request."""

    def __init__(self, app: ASGIApp, service: "Service") -> None:
        self._app = app
        self._service = service

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request; every exception becomes a problem response."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        metrics, most = self._service.metrics, self._service.settings.max_concurrency
        began = time.perf_counter()
        state = scope.setdefault("state", {})
        state["fields"] = dict(scope["headers"])
        state["operation"] = "page"
        if scope["path"].startswith("/v1/"):
            state["operation"] = "unknown"
            if b"%" in scope.get("raw_path", b""):
                raw = scope["raw_path"].decode("latin-1").replace(NO_SLASH, _NOTHING)
                scope["path"] = unquote(_SLASH.sub(NO_SLASH, raw))
        sender = Sender(scope, send)
        metrics.in_flight += 1
        try:
            if metrics.in_flight > most:
                busy = Busy(f"At most {most} concurrent requests are answered.")
                await response_to(busy, scope)(scope, receive, sender)
            else:
                await self._app(scope, receive, sender)
        except ClientDisconnect:
            pass
        except Exception as error:
            self._tell_of(error, scope)
            if not sender.status:
                await response_to(error, scope)(scope, receive, sender)
        finally:
            metrics.in_flight -= 1
            seconds = time.perf_counter() - began
            metrics.count(state["operation"], sender.status or _GONE, seconds)
            if self._service.settings.log_requests:
                logger().info(
                    "request",
                    request=request_id(scope),
                    operation=state["operation"],
                    status=sender.status or _GONE,
                    seconds=round(seconds, 6),
                )

    @staticmethod
    def _tell_of(error: Exception, scope: Scope) -> None:
        logger().error(
            "A request failed.",
            request=request_id(scope),
            operation=scope["state"]["operation"],
            exc_info=error,
        )
