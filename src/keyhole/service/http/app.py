"""The Starlette application: the API routes, the dashboard, and the middleware around both."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Mount, Route

from keyhole.base.errors import KeyholeError
from keyhole.service.api.openapi import document
from keyhole.service.api.operations import Operation
from keyhole.service.api.routes import OPERATIONS
from keyhole.service.compilation import Preparer
from keyhole.service.group_commit import Desk
from keyhole.service.http.context import Service
from keyhole.service.http.login import Pages, page_refused
from keyhole.service.http.middleware import Door, Endpoint
from keyhole.service.http.problems import of_starlette, response_to
from keyhole.service.settings import Settings


class Application(Starlette):
    """Opens the group committer at startup, answers meanwhile, and closes it at shutdown."""

    def __init__(self, service: Service) -> None:
        self.service = service
        super().__init__(
            routes=_routes(service),
            middleware=[Middleware(Door, service)],
            exception_handlers={KeyholeError: _refused, HTTPException: _refused},
            lifespan=_lifespan,
        )
        self.router.redirect_slashes = False


@asynccontextmanager
async def _lifespan(app: Application) -> AsyncIterator[None]:
    """Start to open the desk; if it is open already, requests are answered at once."""
    starting = asyncio.create_task(app.service.start())
    if app.service.is_ready:
        await starting
    try:
        yield
    finally:
        app.service.preparer.halt()
        await starting
        await app.service.stop()


def _routes(service: Service) -> list[BaseRoute]:
    """Return a route for every path of the table, in order, and the dashboard for all others.

    Routes accept every method: the endpoint answers 405 for those it lacks.
    """
    paths: dict[str, dict[str, Operation]] = {}
    for operation in OPERATIONS:
        paths.setdefault(operation.path, {})[operation.method] = operation
    pages = Pages(service)
    return [
        *(
            Route(path.replace("{event}", "{event:id}"), Endpoint(service, of))
            for path, of in paths.items()
        ),
        *pages.routes,
        Mount("", pages),
    ]


async def _refused(request: Request, error: Exception) -> Response:
    """Answer an error: as a page to browsers, as an RFC 9457 problem otherwise."""
    told = of_starlette(error) if isinstance(error, HTTPException) else error
    return page_refused(request, told) or response_to(told, request.scope)


def build(desk: Desk, settings: Settings | None = None) -> Application:
    """Return the application of an open desk."""
    return _application(Service(settings or Settings(), open_desk=lambda: desk, desk=desk))


def build_later(
    open_desk: Callable[[], Desk], settings: Settings, preparer: Preparer | None = None
) -> Application:
    """Return an application that answers while a thread opens its desk.

    It reports the progress of the preparer, and stops the preparer at shutdown.
    """
    return _application(Service(settings, open_desk=open_desk, preparer=preparer))


def _application(service: Service) -> Application:
    service.openapi = document()
    return Application(service)
