"""Login to the dashboard, authorisation of its pages, and CSRF tokens of its forms."""

import hmac
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, quote

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route, Router
from starlette.types import Message, Receive, Scope, Send

from keyhole.service.dashboard import error_html, login_html, routes
from keyhole.service.http.auth import SAFE_METHODS, access_of, check_access, check_origin
from keyhole.service.http.problems import (
    NO_PATH,
    Forbidden,
    Malformed,
    NoSuchPath,
    NotReady,
    Unauthorized,
    problem_of,
    request_id,
)
from keyhole.service.http.request import body_of
from keyhole.service.http.streams import stream_by
from keyhole.service.keys import Access

if TYPE_CHECKING:
    from keyhole.service.http.context import Service

LOGIN, LOGOUT = "/login", "/logout"
_MOST_FIELDS = 1_000
_FORM = (b"application/x-www-form-urlencoded",)
_NOT_KEPT = {"cache-control": "no-store"}


class Pages:
    """The paths outside the API: login, logout and the dashboard."""

    def __init__(self, service: "Service") -> None:
        self._service = service
        self._dashboard: Router | None = None
        self.routes = [
            Route(LOGIN, self.log_in, methods=["GET", "POST"]),
            Route(LOGOUT, self.log_out, methods=["POST"]),
        ]

    async def log_in(self, request: Request) -> Response:
        """Show the login form, or log in with a key."""
        self._check_ready()
        if request.method != "POST":
            where = _local(_fields(request.scope["query_string"]).get("next", ["/"])[0])
            return HTMLResponse(login_html(where), headers=_NOT_KEPT)
        check_origin("POST", request.scope["state"]["fields"])
        form = _fields(await body_of(request, self._service.settings.max_body_bytes, _FORM))
        where = _local(form.get("next", ["/"])[0])
        access = self._service.keyring.access(form.get("key", [""])[0].strip())
        if access is None or access.prefix is None:
            return HTMLResponse(login_html(where, "This key is invalid."), 401, _NOT_KEPT)
        return _redirect(where, self._service.sessions.cookie(access.prefix))

    async def log_out(self, request: Request) -> Response:
        """End the session."""
        self._check_ready()
        check_origin("POST", request.scope["state"]["fields"])
        return _redirect(LOGIN, self._service.sessions.end())

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request to the dashboard with its access and the CSRF token of its forms."""
        service, path, state = self._service, scope["path"], scope["state"]
        if path.startswith("/v1/"):
            raise NoSuchPath(NO_PATH)
        self._check_ready()
        if self._dashboard is None:
            self._dashboard = Router(routes(service.desk, service.settings), redirect_slashes=False)
        state["csrf"] = csrf = service.sessions.csrf(state["fields"])
        if not path.startswith("/static/"):
            access = access_of(service, scope, by_session=True)
            if access is None:
                raise Unauthorized("To see this page, log in with a key.")
            check_access(access, "read", _ranker_of(path, access), needs_all=False)
            state["access"] = access
        if scope["method"] not in SAFE_METHODS:
            receive = await self._checked_form(Request(scope, receive), csrf)
        if path.endswith("/stream"):
            await stream_by(self._dashboard, service, scope, receive, send)
        else:
            await self._dashboard(scope, receive, send)

    def _check_ready(self) -> None:
        if not self._service.is_ready:
            raise NotReady(self._service.why_not_ready)

    async def _checked_form(self, request: Request, csrf: str) -> Receive:
        """Check the CSRF token of a form, and return its body for a second read."""
        fields = request.scope["state"]["fields"]
        check_origin(request.method, fields)
        most = self._service.settings.max_body_bytes
        body = await body_of(request, most, (*_FORM, b"application/json"))
        token = fields.get(b"x-csrf-token")
        if token is None:
            token = _fields(body).get("csrf", [""])[0].encode("utf-8", "replace")
        if not hmac.compare_digest(token, csrf.encode()):
            raise Forbidden("A form must have the CSRF token of its page: reload the page.")

        async def receive() -> Message:
            return {"type": "http.request", "body": body, "more_body": False}

        return receive


def page_refused(request: Request, error: Exception) -> Response | None:
    """Return the error page of a refused request; None if it is not for a page."""
    scope = request.scope
    wants_page = b"text/html" in scope["state"]["fields"].get(b"accept", b"")
    if not wants_page or scope["state"]["operation"] != "page":
        return None
    if isinstance(error, Unauthorized):
        return _redirect(f"{LOGIN}?next={quote(scope['path'])}")
    told = problem_of(error, request_id(scope))
    page = error_html(told.status, told.title, told.detail, is_passing=told.status == 503)
    return HTMLResponse(page, told.status, _NOT_KEPT)


def _fields(text: bytes) -> dict[str, list[str]]:
    """Return the fields of a form, or raise if it has too many."""
    try:
        return parse_qs(text.decode("utf-8", "replace"), max_num_fields=_MOST_FIELDS)
    except ValueError:
        raise Malformed(f"A form must have at most {_MOST_FIELDS} fields.") from None


def _ranker_of(path: str, access: Access) -> str | None:
    """Return the ranker of a page or of its JSON."""
    parts = path.split("/")
    if len(parts) < 3 or parts[1] != "rankers":
        return None
    name = parts[2]
    return name if access.sees(name) else name.removesuffix(".json")


def _local(where: str) -> str:
    """Return the path if it is on this site, else the root (no open redirects)."""
    is_local = where.startswith("/") and not where.startswith(("//", "/\\")) and where.isprintable()
    return where if is_local and where.isascii() else "/"


def _redirect(where: str, cookie: str | None = None) -> Response:
    headers = {"location": where, **_NOT_KEPT}
    if cookie is not None:
        headers["set-cookie"] = cookie
    return Response(status_code=303, headers=headers)
