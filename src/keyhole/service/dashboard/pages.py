"""The pages: each is put together from plain data, which its JSON twin gives as it is."""

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
    403: "This key may not do that",
    404: "Not found",
    409: "It has changed meanwhile",
    422: "That cannot be done",
    500: "Something went wrong here",
}


class _Blank(dict[str, str]):
    """A row without content: the pattern that the script fills."""

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
    """Return the path below which a proxy serves the dashboard, mostly none."""
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
    """Return the data of a page; what is not a finite number becomes null."""
    return Response(
        msgspec.json.encode(data),
        media_type="application/json",
        headers=_HEADERS,
    )


def error_page(request: Request, status: int, detail: str) -> HTMLResponse:
    """Return a page that says what went wrong."""
    title = TITLES.get(status, TITLES[500] if status >= 500 else "That did not work")
    data = {"status": status, "title": title, "detail": detail, "is_passing": False}
    return html(request, "error.html", data, status=status)


def error_html(status: int, title: str, detail: str, *, is_passing: bool = False) -> bytes:
    """Return a page that says what went wrong, where no view was reached.

    One about something that passes loads itself again after a second.
    """
    data = {"status": status, "title": title, "detail": detail, "is_passing": is_passing}
    around = {"root": "", "version": __version__, "twin": None, "has_key": False}
    return _templates.get_template("error.html").render(around, **data).encode()


def login_html(where: str, wrong: str = "") -> bytes:
    """Return the form for a key; ``where`` is the page that it leads to."""
    return _templates.get_template("login.html").render(where=where, wrong=wrong).encode()


async def documentation(request: Request) -> Response:
    """Return a page of the documentation, as it is written: that of this version, also offline."""
    name = f"docs/{request.path_params['page']}"
    if name not in DOCUMENTS:
        raise HTTPException(404)
    packaged = Path(__file__).parent / name
    path = packaged if packaged.is_file() else Path(__file__).parents[4] / name
    if not path.is_file():
        raise HTTPException(404)
    return Response(path.read_text("utf-8"), media_type="text/plain; charset=utf-8")


def with_query(path: str, **parameters: Any) -> str:
    """Return an address with the parameters that are there."""
    given = {name: value for name, value in parameters.items() if value is not None}
    return f"{path}?{urlencode(given)}" if given else path
