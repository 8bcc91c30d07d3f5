"""Adds the security headers to every response."""

from starlette.types import Message, Scope, Send

from keyhole.service.http.problems import request_id

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
