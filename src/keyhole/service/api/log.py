"""Endpoints of the log: events, impressions and off-policy evaluations."""

import asyncio
import errno
from collections.abc import AsyncIterator
from tempfile import TemporaryFile
from typing import IO, TYPE_CHECKING, Any, NamedTuple

import msgspec
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from keyhole.base.errors import check_choice
from keyhole.service.api.evaluations import EvaluationReply
from keyhole.service.api.operations import Operation, Parameter, Reply, json_response
from keyhole.service.commands import EvaluationRequest
from keyhole.service.errors import StoreFull
from keyhole.service.events import OutcomeOf
from keyhole.service.http.problems import Busy, NotAcceptable, encode
from keyhole.service.http.request import json_of, number, query_of
from keyhole.service.store.base import Store
from keyhole.service.store.export import event_records, impressions, write_parquet
from keyhole.service.summary import event_page

if TYPE_CHECKING:
    from keyhole.service.http.context import Service

FORMATS = {
    "json": "application/json",
    "ndjson": "application/x-ndjson",
    "parquet": "application/vnd.apache.parquet",
}
MAX_SEQ = 2**53
_PAGE = 500
_DEFAULT_LIMIT = 100
_MOST = {"json": 10_000, "ndjson": MAX_SEQ, "parquet": 10_000_000}
_CHUNK = 2**18
_PAGE_BYTES = 8 * 2**20
"""From which size on a page of events ends: those of large lists have megabytes each."""

_evaluation_request = msgspec.json.Decoder(EvaluationRequest)


class EventsReply(msgspec.Struct, frozen=True):
    """A page of the log; pass ``next_after`` as ``after`` to get the next page.

    A page of large events may end before its limit.
    """

    events: list[dict[str, Any]]
    next_after: int | None


class _EncodedReply(msgspec.Struct, frozen=True):
    """The same, of events that are encoded already."""

    events: list[msgspec.Raw]
    next_after: int | None


class _Page(NamedTuple):
    """Events as JSON; ``next_after`` is None where these were the last ones."""

    lines: list[bytes]
    next_after: int | None


async def list_events(request: Request, service: "Service") -> Response:
    """Read the log."""
    query = query_of(request, "after", "limit", "format")
    form = _format(request, query.get("format"))
    after = number(query.get("after"), "after", default=0, least=0, most=MAX_SEQ)
    most = _MOST[form]
    default = _DEFAULT_LIMIT if form == "json" else most
    limit = number(query.get("limit"), "limit", default=default, least=1, most=most)
    desk, ranker = service.desk, request.path_params["ranker"]
    outcome = desk.engine.ranker(ranker).outcome
    if form == "json":
        body = await asyncio.to_thread(_reply, desk.store, ranker, after, limit, outcome)
        return Response(body, media_type=FORMATS[form])
    if form == "ndjson":
        page = await asyncio.to_thread(_page, desk.store, ranker, after, min(limit, _PAGE), outcome)
        lines = _lines(desk.store, ranker, page, limit, outcome)
        return StreamingResponse(lines, media_type=FORMATS[form])
    file = await asyncio.to_thread(_table, desk.store, ranker, after, limit, outcome)
    return _Table(file, ranker)


def _format(request: Request, given: str | None) -> str:
    """Return the requested format, from the parameter or the Accept header."""
    if given is not None:
        return check_choice(given, "The format of events", FORMATS)
    accept = request.headers.get("accept") or "*/*"
    for part in accept.split(","):
        kind = part.partition(";")[0].strip().lower()
        if kind in ("*/*", "application/*", ""):
            return "json"
        for form, content_type in FORMATS.items():
            if kind == content_type:
                return form
    raise NotAcceptable(
        f"Accept must allow one of {', '.join(FORMATS.values())}, got {accept[:200]}."
    )


def _page(store: Store, ranker: str, after: int, limit: int, outcome: OutcomeOf) -> _Page:
    """Return events, at most so many and at most so large."""
    lines: list[bytes] = []
    n_bytes = 0
    for record in event_records(store, ranker, after=after, limit=limit, outcome=outcome):
        lines.append(encode(record))
        n_bytes += len(lines[-1])
        if len(lines) == limit or n_bytes >= _PAGE_BYTES:
            return _Page(lines, record["seq"])
    return _Page(lines, None)


def _reply(store: Store, ranker: str, after: int, limit: int, outcome: OutcomeOf) -> bytes:
    page = _page(store, ranker, after, limit, outcome)
    return encode(_EncodedReply([msgspec.Raw(line) for line in page.lines], page.next_after))


async def _lines(
    store: Store, ranker: str, page: _Page, limit: int, outcome: OutcomeOf
) -> AsyncIterator[bytes]:
    """Yield the log as lines, holding one page in memory at a time."""
    while page.lines:
        yield b"\n".join([*page.lines, b""])
        limit -= len(page.lines)
        if page.next_after is None or limit <= 0:
            return
        after, n_next = page.next_after, min(limit, _PAGE)
        page = await asyncio.to_thread(_page, store, ranker, after, n_next, outcome)


def _table(store: Store, ranker: str, after: int, limit: int, outcome: OutcomeOf) -> IO[bytes]:
    """Return impressions with feedback as a Parquet file, one row per revealed item."""
    try:
        file = TemporaryFile()  # noqa: SIM115 - the response closes it
        try:
            rows = impressions(store, ranker, after=after, limit=limit, outcome=outcome)
            write_parquet(rows, file)
            file.seek(0)
        except BaseException:
            file.close()
            raise
    except OSError as error:
        if error.errno in (errno.EMFILE, errno.ENFILE):
            raise Busy("A table cannot be written: too many files are open.") from None
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.ENOENT):  # no folder has room
            raise StoreFull(
                "The folder for temporary files must have room for the table: request NDJSON, "
                "or fewer events."
            ) from None
        raise
    return file


class _Table(StreamingResponse):
    """A response with a table from a file, which it closes in any case."""

    def __init__(self, file: IO[bytes], ranker: str) -> None:
        headers = {"content-disposition": f'attachment; filename="{ranker}.parquet"'}
        super().__init__(_content(file), headers=headers, media_type=FORMATS["parquet"])
        self._file = file

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with self._file:
            await super().__call__(scope, receive, send)


async def _content(file: IO[bytes]) -> AsyncIterator[bytes]:
    while piece := await asyncio.to_thread(file.read, _CHUNK):
        yield piece


async def get_event(request: Request, service: "Service") -> Response:
    """Return an impression, its feedback, and why that list was shown."""
    ranker, event_id = request.path_params["ranker"], request.path_params["event"]
    return json_response(event_page(service.desk.engine.ranker(ranker), event_id))


async def ask_evaluation(request: Request, service: "Service") -> Response:
    """Start an off-policy evaluation on the log of a ranker."""
    most = service.settings.max_body_bytes
    asked = await json_of(request, most, _evaluation_request, b"{}")
    desk = service.desk
    live = desk.engine.usable(request.path_params["ranker"])
    reply = service.evaluations.ask(live, desk.store, asked)
    where = f"/v1/rankers/{live.name}/evaluations/{reply.id}"
    return json_response(reply, 202, {"location": where})


async def list_evaluations(request: Request, service: "Service") -> Response:
    """List the evaluations of a ranker."""
    live = service.desk.engine.ranker(request.path_params["ranker"])
    return json_response(EvaluationsReply(service.evaluations.of(live.name)))


async def get_evaluation(request: Request, service: "Service") -> Response:
    """Return an evaluation, which may still be running."""
    return json_response(service.evaluations.find(**request.path_params))


class EvaluationsReply(msgspec.Struct, frozen=True):
    """The evaluations of a ranker, newest first."""

    evaluations: list[EvaluationReply]


_PAGE_OF_EVENTS = {
    FORMATS["json"]: EventsReply,
    FORMATS["ndjson"]: dict[str, Any],
    FORMATS["parquet"]: bytes,
}
_SEQ = {"type": "integer", "minimum": 0, "maximum": MAX_SEQ}

OPERATIONS = (
    Operation(
        "GET", "/v1/rankers/{ranker}/events", list_events, "read", "Read the log",
        {200: Reply("The events in order.", _PAGE_OF_EVENTS)},
        problems=(400, 406, 422, 507),
        query=(
            Parameter("after", {**_SEQ, "default": 0}, "Return events with a greater `seq`."),
            Parameter(
                "limit",
                {**_SEQ, "minimum": 1},
                "Maximum number of events; as JSON at most 10,000, and 8 MB of them.",
            ),
            Parameter("format", {"enum": list(FORMATS)}, "Overrides the Accept header."),
        ),
    ),
    Operation(
        "GET", "/v1/rankers/{ranker}/events/{event}", get_event, "read", "Read an impression",
        {200: Reply("The impression, as data.", {"application/json": dict[str, Any]})},
    ),
    Operation(
        "POST", "/v1/rankers/{ranker}/evaluations", ask_evaluation, "read",
        "Evaluate another policy on the log",
        {
            202: Reply(
                "The evaluation has been queued.",
                {"application/json": EvaluationReply},
                (Parameter("Location", {"type": "string"}, "The URL of the evaluation."),),
            )
        },
        request={"application/json": EvaluationRequest},
        is_request_required=False,
    ),
    Operation(
        "GET", "/v1/rankers/{ranker}/evaluations", list_evaluations, "read", "List evaluations",
        {200: Reply("Newest first.", {"application/json": EvaluationsReply})},
    ),
    Operation(
        "GET", "/v1/rankers/{ranker}/evaluations/{evaluation}", get_evaluation, "read",
        "Read an evaluation",
        {200: Reply("The evaluation.", {"application/json": EvaluationReply})},
    ),
)  # fmt: skip
