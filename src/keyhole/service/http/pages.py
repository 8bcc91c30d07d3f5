"""The pages around the dashboard: logging in, headers that keep them safe, forms that are ours."""

import asyncio
import hmac
from html import escape
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, quote

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from keyhole.errors import KeyholeError
from keyhole.service.dashboard import error_html, routes
from keyhole.service.desk import Desk
from keyhole.service.http.call import Call, Gone
from keyhole.service.http.doors import (
    SAFE_METHODS,
    access_by_header,
    access_by_session,
    access_without_keys,
    check_access,
    check_origin,
)
from keyhole.service.http.problems import (
    Busy,
    Forbidden,
    Malformed,
    NoSuchPath,
    NotReady,
    Unauthorized,
    WrongMethod,
    answer_to,
    problem_of,
    row_of,
)
from keyhole.service.http.wire import Answer, Headers, Message, Receive, Send, send_answer
from keyhole.service.keys import Access
from keyhole.service.logs import logger
from keyhole.service.settings import Settings

if TYPE_CHECKING:
    from keyhole.service.http.service import Service

LOGIN, LOGOUT = "/login", "/logout"
_MOST_FIELDS = 1_000
_FORM = (b"application/x-www-form-urlencoded",)
_HTML: Headers = ((b"content-type", b"text/html; charset=utf-8"), (b"cache-control", b"no-store"))
SECURITY: Headers = (
    (
        b"content-security-policy",
        b"default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
    ),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
)


class Pages:
    """Everything that is not in the table of operations."""

    def __init__(self, service: "Service") -> None:
        self._service = service
        self._app: Starlette | None = None

    async def answer(self, call: Call, send: Send) -> int:
        """Answer a request for a page, and return the status."""
        told = _Listener(send)
        try:
            answer = await self._own_page(call)
            if answer is None:
                await self._dashboard(call, told)
                return told.status
        except Gone:
            raise
        except Exception as error:
            if row_of(error).status == 500:
                logger().error("A page failed.", request=call.request_id, exc_info=error)
            if told.status:  # Starlette has answered, and says so by raising
                return told.status
            answer = refusal(error, call.headers.get(b"accept", b""), call.scope["path"])
        more = (*SECURITY, (b"x-request-id", call.request_id.encode()))
        await send_answer(told, call.receive, answer._replace(headers=answer.headers + more))
        return told.status

    async def _own_page(self, call: Call) -> Answer | None:
        """Answer what is not the dashboard's."""
        path, method = call.scope["path"], call.scope["method"]
        if not self._service.is_ready:
            raise NotReady(self._service.why_not_ready)
        if path == LOGIN and method in ("GET", "HEAD"):
            return Answer(200, _login_form(self._next(call)), _HTML)
        if path == LOGIN and method == "POST":
            return await self._log_in(call)
        if path == LOGOUT and method == "POST":
            check_origin(method, call.headers)
            return _redirect(LOGIN, self._service.sessions.end())
        return None

    async def _log_in(self, call: Call) -> Answer:
        check_origin("POST", call.headers)
        form = _fields(await call.body(_FORM))
        where = _local(form.get("next", ["/"])[0])
        access = self._service.keyring.access(form.get("key", [""])[0].strip())
        if access is None or access.prefix is None:
            return Answer(401, _login_form(where, "This key is not known."), _HTML)
        return _redirect(where, self._service.sessions.cookie(access.prefix))

    async def _dashboard(self, call: Call, send: Send) -> None:
        """Hand a request to the dashboard: with what may be seen, and the token of its forms."""
        service, scope = self._service, call.scope
        if self._app is None:
            self._app = dashboard(service.desk, service.settings)
        csrf = service.sessions.csrf(call.headers)
        receive = call.receive
        if not scope["path"].startswith("/static/"):
            access = self._access(call)
            check_access(access, "read", _ranker_of(scope["path"], access), needs_all=False)
            scope.setdefault("state", {}).update(access=access, csrf=csrf)
        if scope["method"] not in SAFE_METHODS:
            receive = await _checked_form(call, csrf)
        is_stream = scope["path"].endswith("/stream")
        if is_stream and service.n_streams >= service.settings.max_streams:
            raise Busy(f"At most {service.settings.max_streams} streams may be open at once.")
        service.n_streams += is_stream
        service.metrics.in_flight -= is_stream  # what never ends is not being answered now
        try:
            receive = _until_stopped(receive, service.stopping)
            await self._app(scope, receive, _with_headers(send, call.request_id))
        finally:
            service.n_streams -= is_stream
            service.metrics.in_flight += is_stream

    def _access(self, call: Call) -> Access:
        service, headers = self._service, call.headers
        if service.keyring.is_empty:
            return access_without_keys(service.settings, call.scope["method"], headers)
        access = access_by_header(service.keyring, headers)
        access = access or access_by_session(service.keyring, service.sessions, headers)
        if access is None:
            raise Unauthorized("To see this page, log in with a key.")
        return access

    @staticmethod
    def _next(call: Call) -> str:
        query = _fields(call.scope["query_string"])
        return _local(query.get("next", ["/"])[0])


def dashboard(desk: Desk, settings: Settings) -> Starlette:
    """Return the dashboard of a desk."""
    return Starlette(routes=routes(desk, settings), exception_handlers=_HANDLERS)


async def _refused(request: Request, error: Exception) -> Response:
    """Answer what the dashboard does not answer itself."""
    if isinstance(error, HTTPException):
        kind = WrongMethod if error.status_code == 405 else NoSuchPath
        error = kind("There is no such page.")
    accept = request.headers.get("accept", "").encode("latin-1")
    answer = refusal(error, accept, request.url.path)
    return Response(
        answer.body,
        answer.status,
        {name.decode(): value.decode("latin-1") for name, value in answer.headers},
    )


_HANDLERS: dict[Any, Any] = {HTTPException: _refused, KeyholeError: _refused, Exception: _refused}


def refusal(error: Exception, accept: bytes, path: str) -> Answer:
    """Return what is said of a page that cannot be shown: a page to people, or a problem."""
    answer = answer_to(error)
    if b"text/html" not in accept:
        return answer
    if isinstance(error, Unauthorized):
        return _redirect(f"{LOGIN}?next={quote(path)}")
    told = problem_of(error)
    page = error_html(told.status, told.title, told.detail, is_passing=told.status == 503)
    return Answer(told.status, page, _HTML)


class _Listener:
    """Sends on, and remembers the status."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self.status = 0

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
        await self._send(message)


def _until_stopped(receive: Receive, stopping: asyncio.Event) -> Receive:
    """Return what receives until the service stops: then whoever listens to a stream has left."""

    async def receive_or_stop() -> Message:
        message = asyncio.ensure_future(receive())
        stopped = asyncio.ensure_future(stopping.wait())
        try:
            await asyncio.wait((message, stopped), return_when=asyncio.FIRST_COMPLETED)
            return message.result() if message.done() else {"type": "http.disconnect"}
        finally:
            message.cancel()
            stopped.cancel()

    return receive_or_stop


def _with_headers(send: Send, request_id: str) -> Send:
    """Return what sends pages with the headers that keep them safe."""
    more = [*SECURITY, (b"x-request-id", request_id.encode())]

    async def safely(message: Message) -> None:
        if message["type"] == "http.response.start":
            message["headers"] = [*message.get("headers", ()), *more]
        await send(message)

    return safely


async def _checked_form(call: Call, csrf: str) -> Receive:
    """Return the body of a form once more, if it is one that this session was given."""
    check_origin(call.scope["method"], call.headers)
    body = await call.body((*_FORM, b"application/json"))
    given = call.header(b"x-csrf-token")
    if given is None:
        given = _fields(body).get("csrf", [""])[0]
    if not hmac.compare_digest(given.encode("utf-8", "replace"), csrf.encode()):
        raise Forbidden("A form must come with the token of its page: load the page again.")

    async def receive() -> Message:
        return {"type": "http.request", "body": body, "more_body": False}

    return receive


def _fields(text: bytes) -> dict[str, list[str]]:
    """Return the fields of a form, or raise where they are more than any form has."""
    try:
        return parse_qs(text.decode("utf-8", "replace"), max_num_fields=_MOST_FIELDS)
    except ValueError:
        raise Malformed(f"A form must have at most {_MOST_FIELDS} fields.") from None


def _ranker_of(path: str, access: Access) -> str | None:
    """Return the ranker that a page is about; a page's twin in JSON is about the same one."""
    parts = path.split("/")
    if len(parts) < 3 or parts[1] != "rankers":
        return None
    name = parts[2]
    return name if access.sees(name) else name.removesuffix(".json")


def _local(where: str) -> str:
    """Return a path of this site, whatever was asked for."""
    is_local = where.startswith("/") and not where.startswith(("//", "/\\")) and where.isprintable()
    return where if is_local and where.isascii() else "/"


def _redirect(where: str, cookie: str | None = None) -> Answer:
    headers: Headers = ((b"location", where.encode("ascii")), (b"cache-control", b"no-store"))
    if cookie is not None:
        headers = (*headers, (b"set-cookie", cookie.encode("ascii")))
    return Answer(303, headers=headers)


def _login_form(where: str, wrong: str = "") -> bytes:
    said = f'<p role="alert">{escape(wrong)}</p>' if wrong else ""
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark">'
        "<title>Log in · Keyhole</title>"
        '<link rel="stylesheet" href="/static/dashboard.css"></head>'
        f'<body><main id="main"><h1>Log in</h1>{said}'
        f'<form class="form panel" method="post" action="{LOGIN}">'
        '<p><label for="key">Access key</label> '
        '<input id="key" name="key" type="password" autocomplete="current-password" required></p>'
        f'<input type="hidden" name="next" value="{escape(where)}">'
        '<p><button type="submit">Log in</button></p></form></main></body></html>'
    ).encode()
