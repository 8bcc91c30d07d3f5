"""The views of the dashboard, which answer requests for pages and their JSON."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial, wraps
from typing import Any, Protocol

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from keyhole.base.errors import InvalidInput, KeyholeError
from keyhole.service.commands import EvaluationRequest
from keyhole.service.dashboard.commands import first_commands, next_commands
from keyhole.service.dashboard.dates import days_of, rounds_of, seqs_of
from keyhole.service.dashboard.evaluate_page import (
    BASELINES,
    BOUNDS,
    POLICIES,
    blank_form,
    read_form,
    request_of,
    result_page,
)
from keyhole.service.dashboard.event_page import MAX_ROWS, event_pairs, event_rows
from keyhole.service.dashboard.index_page import ROWS, index_page
from keyhole.service.dashboard.keys_page import key_row
from keyhole.service.dashboard.log import KINDS, event_address, event_row, log_page
from keyhole.service.dashboard.pages import error_page, html, plain, root_of, with_query
from keyhole.service.dashboard.ranker_page import MODES, acts_of, ranker_page, within
from keyhole.service.dashboard.stream import messages
from keyhole.service.errors import (
    ConflictingRequest,
    NoSuchResource,
    Preparing,
    RankerDamaged,
    ScopeMissing,
    StaleVersion,
    StoreError,
)
from keyhole.service.evaluations import evaluate
from keyhole.service.group_commit import Desk
from keyhole.service.paging import page_of
from keyhole.service.ranker_state import LiveRanker
from keyhole.service.summary import brief, event_page, summary as summary_of

_JSON = ".json"
_STATUSES: dict[type[KeyholeError], int] = {
    ScopeMissing: 403,
    NoSuchResource: 404,
    ConflictingRequest: 409,
    StaleVersion: 409,
    StoreError: 503,
    Preparing: 503,
    RankerDamaged: 503,
}
View = Callable[[Request], Awaitable[Response]]


def wants_json(request: Request) -> bool:
    """Return whether the JSON version of a page is requested."""
    return request.url.path.endswith(_JSON)


def page_of_errors(view: Callable[..., Awaitable[Response]]) -> Callable[..., Awaitable[Response]]:
    """Turn exceptions into error pages; for JSON requests the middleware handles them."""

    @wraps(view)
    async def guarded(self: "Dashboard", request: Request) -> Response:
        try:
            return await view(self, request)
        except KeyholeError as error:
            if wants_json(request):
                raise
            return error_page(request, _status_of(error), str(error))

    return guarded


def _status_of(error: KeyholeError) -> int:
    return next((status for kind, status in _STATUSES.items() if isinstance(error, kind)), 422)


class DashboardSettings(Protocol):
    """The service settings that the dashboard reads."""

    @property
    def heartbeat_seconds(self) -> float:
        """Seconds between heartbeats of a live stream."""

    @property
    def insecure(self) -> bool:
        """Whether everybody is served while no key exists."""


class Dashboard:
    """The pages of the dashboard."""

    def __init__(self, desk: Desk, settings: DashboardSettings) -> None:
        self.desk = desk
        self.settings = settings
        self._judging = asyncio.Semaphore(1)

    # ------------------------------------------------------------------- all rankers

    @page_of_errors
    async def index(self, request: Request) -> Response:
        """Show all rankers, or how to create the first."""
        engine, root = self.desk.engine, root_of(request)
        search = request.query_params.get("search", "").strip()
        after = request.query_params.get("after", "")
        sees = partial(_sees, request)
        found = page_of(engine.names, sees, limit=ROWS, after=after, search=search)
        rankers = [engine.rankers[name] for name in found.names if name not in engine.damaged]
        summaries = [await self.desk.read(partial(brief, live)) for live in rankers]
        damaged = [(name, engine.damaged[name]) for name in found.names if name in engine.damaged]
        if engine.damage is not None:
            damaged.insert(0, ("All rankers", engine.damage))
        is_searched = bool(search or after)
        page = index_page(summaries, root, found.total, damaged, is_searched=is_searched)
        if wants_json(request):
            return plain({"rankers": summaries, "page": page})
        needs_key = bool(await run_in_threadpool(self.desk.store.keys))
        data = {
            "page": page,
            "needs_key": needs_key,
            "commands": first_commands(_base(request), needs_key),
            "may_act": may_act(request),
            "may_see_keys": _may_see_keys(request),
            "search": search,
            "first": with_query(f"{root}/", search=search or None) if after else None,
            "next": with_query(f"{root}/", search=search or None, after=found.next_after)
            if found.next_after
            else None,
            "twin": with_query(f"{root}/index.json", search=search or None, after=after or None),
        }
        return html(request, "index.html", data)

    @page_of_errors
    async def keys(self, request: Request) -> Response:
        """Show the access keys with their scopes and last uses."""
        if not _may_see_keys(request):
            raise ScopeMissing("A key must have the scope admin for all rankers to see keys.")
        keys = await run_in_threadpool(self.desk.store.keys)
        data = {"keys": [key_row(key) for key in keys], "insecure": self.settings.insecure}
        return html(request, "keys.html", data)

    # ------------------------------------------------------------------- one ranker

    @page_of_errors
    async def ranker(self, request: Request) -> Response:
        """Show a ranker: its estimates, its lists and its history."""
        live, is_json = self._live(request, request.path_params["ranker"])
        summary = await self.desk.read(partial(summary_of, live))
        page, query = ranker_page(summary), _days_in(request)
        days = days_of(**query)
        if not days.is_all:
            rounds = await run_in_threadpool(rounds_of, self.desk.store, live, days)
            page = within(page, summary, *rounds)
        if is_json:
            return plain({"summary": summary, "page": page})
        needs_key = bool(await run_in_threadpool(self.desk.store.keys))
        data = {
            "name": live.name,
            "here": "overview",
            "summary": summary,
            "page": page,
            "mode_says": MODES[summary["mode"]],
            "commands": next_commands(_base(request), live, needs_key),
            "beat": self.settings.heartbeat_seconds,
            "twin": with_query(f"{root_of(request)}/rankers/{live.name}{_JSON}", **query),
            "days": query,
            "acts": acts_of(live.config.mode) if may_act(request) else [],
        }
        return html(request, "ranker.html", data)

    @page_of_errors
    async def stream(self, request: Request) -> Response:
        """Stream an event on every change of a ranker, on which its page reloads its data."""
        live, _ = self._live(request, request.path_params["ranker"])
        happenings: AsyncIterator[dict[str, Any]] = self.desk.subscribe(live.name)
        return StreamingResponse(
            messages(happenings, self.settings.heartbeat_seconds),
            media_type="text/event-stream",
            headers={"cache-control": "no-store", "x-accel-buffering": "no"},
        )

    # ------------------------------------------------------------------- its log

    @page_of_errors
    async def events(self, request: Request) -> Response:
        """Show the log of a ranker, newest first."""
        live, _ = self._live(request, request.path_params["ranker"])
        kind = request.query_params.get("kind") or None
        if kind is not None and kind not in KINDS:
            raise NoSuchResource(f"The kind of an event must be one of {', '.join(KINDS)}.")
        before, query = _number(request.query_params.get("before")), _days_in(request)
        days = days_of(**query)
        after, end = await run_in_threadpool(seqs_of, self.desk.store, live.name, days)
        top = end if before is None else min(before, end)
        found, older = await run_in_threadpool(
            log_page, self.desk.store, live.name, kind, top, after
        )
        rows = [event_row(event, live.names_of, live.outcome) for event in found]
        if wants_json(request):
            return plain({"ranker": live.name, "kind": kind, "events": rows, "older": older})
        root = root_of(request)
        path = f"{root}/rankers/{live.name}/events"
        for row in rows:
            key = row["key"]
            row["address"] = None if key is None else event_address(root, live.name, key)
        data = {
            "name": live.name,
            "here": "events",
            "kind": kind,
            "kinds": list(KINDS.items()),
            "events": rows,
            "older": None if older is None else with_query(path, kind=kind, before=older, **query),
            "newest": None if before is None else with_query(path, kind=kind, **query),
            "twin": with_query(path + _JSON, kind=kind, before=before, **query),
            "days": query,
        }
        return html(request, "events.html", data)

    @page_of_errors
    async def event(self, request: Request) -> Response:
        """Show an impression: its list, its feedback, and why the list was shown."""
        live, _ = self._live(request, request.path_params["ranker"])
        event_id: str = request.path_params["event"]
        try:
            page, is_json = event_page(live, event_id), False
        except NoSuchResource:
            if not event_id.endswith(_JSON):
                raise
            page, is_json = event_page(live, event_id.removesuffix(_JSON)), True
        if is_json:
            return plain(page)
        rows = event_rows(page)
        data = {
            "name": live.name,
            "here": "events",
            "event": page,
            "rows": rows[:MAX_ROWS],
            "left_out": max(len(rows) - MAX_ROWS, 0),
            "pairs": event_pairs(page),
            "twin": event_address(root_of(request), live.name, event_id) + _JSON,
        }
        return html(request, "event.html", data)

    # ------------------------------------------------------------------- off-policy evaluation

    @page_of_errors
    async def evaluate(self, request: Request) -> Response:
        """Show the evaluation form, and once it is submitted the result."""
        live, _ = self._live(request, request.path_params["ranker"])
        self.desk.engine.usable(live.name)
        is_fixed = live.config.catalogue is not None
        best = tuple(str(name) for name in live.learner.best()) if is_fixed else ()
        form, result, error = blank_form(list(best)), None, None
        if request.method == "POST":
            try:
                form = read_form(await request.body(), form)
                result = await self._judge(live, best, request_of(form))
            except InvalidInput as wrong:
                if wants_json(request):
                    raise
                error = str(wrong)
        if wants_json(request):
            return plain({"ranker": live.name, "form": form, "result": result})
        data = {
            "name": live.name,
            "here": "evaluate",
            "fixed": is_fixed,
            "measure": live.config.measure,
            "form": form,
            "result": None if result is None else result_page(result),
            "error": error,
            "policies": list(POLICIES.items()),
            "baselines": list(BASELINES.items()),
            "bounds": list(BOUNDS.items()),
            "twin": f"{root_of(request)}/rankers/{live.name}/evaluate{_JSON}",
        }
        return html(request, "evaluate.html", data, status=200 if error is None else 422)

    async def _judge(
        self, live: LiveRanker, best: tuple[str, ...], asked: EvaluationRequest
    ) -> dict[str, Any]:
        """Evaluate a policy in a thread, one at a time, because it reads the whole log."""
        async with self._judging:
            return await run_in_threadpool(
                evaluate, self.desk.store, live.name, live.config, best, asked
            )

    # ------------------------------------------------------------------- helpers

    def _live(self, request: Request, name: str) -> tuple[LiveRanker, bool]:
        """Return a ranker, and whether the JSON of its page is requested.

        A ranker whose name itself ends in ``.json`` takes precedence.
        """
        engine = self.desk.engine
        is_there = name in engine.rankers or name in engine.damaged
        if not is_there and name.endswith(_JSON):
            stem = name.removesuffix(_JSON)
            return (self._live(request, stem)[0], True)
        if not is_there or not _sees(request, name):
            raise NoSuchResource(f"There is no ranker {name!r}.")
        return engine.ranker(name), False


def _sees(request: Request, name: str) -> bool:
    """Return whether the request may see a ranker; always true without authentication."""
    access = getattr(request.state, "access", None)
    return access is None or bool(access.sees(name))


def may_act(request: Request) -> bool:
    """Return whether the request may change rankers; always true without authentication."""
    access = getattr(request.state, "access", None)
    return access is None or bool(access.may("admin"))


def _may_see_keys(request: Request) -> bool:
    access = getattr(request.state, "access", None)
    return access is None or (bool(access.may("admin")) and access.rankers is None)


def _days_in(request: Request) -> dict[str, str | None]:
    """Return the days of a query as texts."""
    return {name: request.query_params.get(name) or None for name in ("since", "until")}


def _number(text: str | None) -> int | None:
    """Return the event number in a query; None if it is not a number."""
    return int(text) if text and text.isascii() and text.isdigit() and len(text) < 19 else None


def _base(request: Request) -> str:
    return str(request.base_url).rstrip("/")
