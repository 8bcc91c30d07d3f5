"""The dashboard: server-rendered pages with live updates; it works without internet access."""

from pathlib import Path

from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles

from keyhole.service.dashboard.actions import ActingDashboard
from keyhole.service.dashboard.pages import documentation, error_html, error_page, login_html
from keyhole.service.dashboard.views import DashboardSettings
from keyhole.service.group_commit import Desk

__all__ = ["error_html", "error_page", "login_html", "routes"]

STATIC = Path(__file__).parent / "static"


def routes(desk: Desk, settings: DashboardSettings) -> list[BaseRoute]:
    """Return the routes of all pages, their JSON versions and their static files."""
    pages = ActingDashboard(desk, settings)
    return [
        Route("/", pages.index),
        Route("/index.json", pages.index),
        Route("/new", pages.new, methods=["GET", "POST"]),
        Route("/keys", pages.keys),
        Route("/docs/{page}", documentation),
        Route("/rankers/{ranker}/stream", pages.stream),
        Route("/rankers/{ranker}/events", pages.events),
        Route("/rankers/{ranker}/events.json", pages.events),
        Route("/rankers/{ranker}/events/{event:path}", pages.event),
        Route("/rankers/{ranker}/evaluate", pages.evaluate, methods=["GET", "POST"]),
        Route("/rankers/{ranker}/evaluate.json", pages.evaluate, methods=["GET", "POST"]),
        Route("/rankers/{ranker}/change", pages.change, methods=["GET", "POST"]),
        Route("/rankers/{ranker}", pages.ranker),
        Mount("/static", StaticFiles(directory=STATIC)),
    ]
