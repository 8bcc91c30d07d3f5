"""The path of a request: limit, headers, metrics, errors; then authorisation and handler."""

import re
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING
from urllib.parse import unquote

from starlette.convertors import StringConvertor, register_url_convertor
from starlette.requests import ClientDisconnect, Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from keyhole.service.api.operations import Operation
from keyhole.service.http.auth import WHO, access_of, check_access
from keyhole.service.http.problems import (
    Busy,
    NotReady,
    RateLimited,
    Unauthorized,
    WrongMethod,
    request_id,
    response_to,
)
from keyhole.service.structured_logs import logger

if TYPE_CHECKING:
    from keyhole.service.http.context import Service

_NO_SLASH, _NO_SLASH_DECODED = "%00", "\0"
"""Stands for an escaped slash in a path during routing: ids may hold one, names may not."""
_NOTHING = "%FF"
"""Bytes that are not UTF-8, and so in no name."""
_SLASH = re.compile("%2f", re.IGNORECASE)
_GONE = 499
"""The status that metrics record if the client has disconnected."""
_NOSNIFF = ((b"x-content-type-options", b"nosniff"),)
_PAGES = (
    (
        b"content-security-policy",
        b"default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
    ),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
)


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
                raw = scope["raw_path"].decode("latin-1").replace(_NO_SLASH, _NOTHING)
                scope["path"] = unquote(_SLASH.sub(_NO_SLASH, raw))
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


class Sender:
    """Sends a response with security headers, and records its status."""

    __slots__ = ("_is_over", "_scope", "_send", "status")

    def __init__(self, scope: Scope, send: Send) -> None:
        self._scope = scope
        self._send = send
        self._is_over = False
        self.status = 0

    async def __call__(self, message: Message) -> None:
        """Send a message; after the head of a response to HEAD, send nothing."""
        if message["type"] == "http.response.start":
            self._begin(message)
            await self._send(message)
            if self._scope["method"] == "HEAD":  # end endless streams as well
                self._is_over = True
                await self._send({"type": "http.response.body", "body": b""})
        elif not self._is_over:
            self._is_over = not message.get("more_body", False)
            await self._send(message)

    def _begin(self, message: Message) -> None:
        state = self._scope["state"]
        self.status = status = message["status"]
        is_page = state["operation"] == "page"
        headers = [*message.get("headers", ()), *(_PAGES if is_page else _NOSNIFF)]
        if is_page or status >= 400 or b"x-request-id" in state["fields"]:
            headers.append((b"x-request-id", request_id(self._scope).encode()))
        message["headers"] = [*headers, *state.get("rate_limit", ())]


class _Id(StringConvertor):
    """A path segment that may hold an escaped slash, which the middleware has replaced."""

    def convert(self, value: str) -> str:
        return value.replace(_NO_SLASH_DECODED, "/")


register_url_convertor("id", _Id())


class Endpoint:
    """A path of the API, with the operations of its methods."""

    def __init__(self, service: "Service", operations: Mapping[str, Operation]) -> None:
        self._service = service
        self._operations = dict(operations)
        if "GET" in operations:
            self._operations["HEAD"] = operations["GET"]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Authorise the request and call its handler."""
        service, state = self._service, scope["state"]
        state["operation"] = "unknown"
        operation = self._operations.get(scope["method"])
        if operation is None:
            allowed = ", ".join(sorted(self._operations))
            raise WrongMethod(
                f"The method of this path must be one of {allowed}, got {scope['method'][:20]}.",
                {"allow": allowed},
            )
        state["operation"] = operation.name
        if operation.needs is not None:
            if not service.is_ready:
                raise NotReady(service.why_not_ready)
            access = access_of(service, scope, by_session=scope["method"] in ("GET", "HEAD"))
            if access is None:
                raise Unauthorized(WHO)
            if service.rate_limits is not None and access.prefix is not None:
                state["rate_limit"], wait = service.rate_limits.take(access.prefix)
                if wait:
                    raise RateLimited(
                        "This key must make fewer requests: its limit is in RateLimit-Policy; "
                        f"retry in {wait} s.",
                        {"retry-after": str(wait)},
                    )
            ranker = scope["path_params"].get("ranker")
            check_access(access, operation.needs, ranker, operation.needs_all)
            state["access"] = access
        response = await operation.handler(Request(scope, receive, send), service)
        await response(scope, receive, send)
