"""Renders pages from plain data, which their JSON versions return directly."""

from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import jinja2
import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from keyhole.base.version import __version__

_HEADERS = {"cache-control": "no-store"}
DOCUMENTS = ("docs/service.md", "docs/operating.md")
TITLES = {
    403: "Not allowed for this key",
    404: "Not found",
    409: "Changed in the meantime",
    422: "Invalid request",
    500: "Internal error",
}


class _Blank(dict[str, str]):
    """An empty row: the template that the script fills."""

    def __missing__(self, name: str) -> str:
        return ""


_templates = jinja2.Environment(
    loader=jinja2.PackageLoader("keyhole.service.dashboard"),
    autoescape=True,
    undefined=jinja2.StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
_templates.globals["blank"] = _Blank()


def root_of(request: Request) -> str:
    """Return the path prefix of a reverse proxy, usually empty."""
    return str(request.scope.get("root_path", "")).rstrip("/")


def html(
    request: Request, template: str, data: dict[str, Any], *, status: int = 200
) -> HTMLResponse:
    """Return a page."""
    access = getattr(request.state, "access", None)
    context = {
        "root": root_of(request),
        "version": __version__,
        "twin": None,
        "csrf": getattr(request.state, "csrf", None),
        "has_key": access is not None and access.prefix is not None,
        **data,
    }
    return HTMLResponse(
        _templates.get_template(template).render(context), status_code=status, headers=_HEADERS
    )


def plain(data: Any) -> Response:
    """Return the data of a page as JSON; numbers that are not finite become null."""
    return Response(
        msgspec.json.encode(data),
        media_type="application/json",
        headers=_HEADERS,
    )


def error_page(request: Request, status: int, detail: str) -> HTMLResponse:
    """Return an error page as a response."""
    title = TITLES.get(status, TITLES[500] if status >= 500 else "That did not work")
    data = {"status": status, "title": title, "detail": detail, "is_passing": False}
    return html(request, "error.html", data, status=status)


def error_html(status: int, title: str, detail: str, *, is_passing: bool = False) -> bytes:
    """Return an error page for errors outside the views.

    With ``is_passing``, for temporary errors, the page reloads itself after a second.
    """
    data = {"status": status, "title": title, "detail": detail, "is_passing": is_passing}
    around = {"root": "", "version": __version__, "twin": None, "has_key": False}
    return _templates.get_template("error.html").render(around, **data).encode()


def login_html(where: str, wrong: str = "") -> bytes:
    """Return the login form; ``where`` is the page to go to after login."""
    return _templates.get_template("login.html").render(where=where, wrong=wrong).encode()


async def documentation(request: Request) -> Response:
    """Return a documentation page of this version as plain text."""
    name = f"docs/{request.path_params['page']}"
    if name not in DOCUMENTS:
        raise HTTPException(404)
    packaged = Path(__file__).parent / name
    path = packaged if packaged.is_file() else Path(__file__).parents[4] / name
    if not path.is_file():
        raise HTTPException(404)
    return Response(path.read_text("utf-8"), media_type="text/plain; charset=utf-8")


def with_query(path: str, **parameters: Any) -> str:
    """Return a URL with the query parameters that are not None."""
    given = {name: value for name, value in parameters.items() if value is not None}
    return f"{path}?{urlencode(given)}" if given else path
