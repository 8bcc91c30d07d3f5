"""Endpoints about the log: its events, one impression, evaluations of other policies on it."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from tempfile import TemporaryFile
from typing import IO, Any

import msgspec

from keyhole.errors import check_choice
from keyhole.service.commands import EvaluationRequest
from keyhole.service.http.call import Call, number
from keyhole.service.http.evaluations import EvaluationReply
from keyhole.service.http.operations import Operation, Parameter, Reply
from keyhole.service.http.problems import NotAcceptable
from keyhole.service.http.wire import Answer, Headers, encode, json_answer
from keyhole.service.store.base import Store
from keyhole.service.store.export import event_records, impressions, write_parquet
from keyhole.service.summary import event_page

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

_evaluation_request = msgspec.json.Decoder(EvaluationRequest)


class EventsReply(msgspec.Struct, frozen=True):
    """A page of the log; ``next_after`` is what ``after`` must be for the next one."""

    events: list[dict[str, Any]]
    next_after: int | None


async def list_events(call: Call) -> Answer:
    """Read the log."""
    query = call.query("after", "limit", "format")
    form = _format(call, query.get("format"))
    after = number(query.get("after"), "after", default=0, least=0, most=MAX_SEQ)
    most = _MOST[form]
    default = _DEFAULT_LIMIT if form == "json" else most
    limit = number(query.get("limit"), "limit", default=default, least=1, most=most)
    desk, ranker = call.service.desk, call.params[0]
    refusals = desk.engine.ranker(ranker).tally.refusals
    headers: Headers = ((b"content-type", FORMATS[form].encode()),)
    if form == "json":
        page = await asyncio.to_thread(_records, desk.store, ranker, after, limit, refusals)
        more = page[-1]["seq"] if len(page) == limit else None
        return json_answer(EventsReply(page, more))
    if form == "ndjson":
        page = await asyncio.to_thread(
            _records, desk.store, ranker, after, min(limit, _PAGE), refusals
        )
        return Answer(
            200, headers=headers, pieces=_lines(desk.store, ranker, page, limit, refusals)
        )
    file = await asyncio.to_thread(_table, desk.store, ranker, after, limit, refusals)
    name = f'attachment; filename="{ranker}.parquet"'.encode()
    headers = (*headers, (b"content-disposition", name))
    return Answer(200, headers=headers, pieces=_content(file))


def _format(call: Call, given: str | None) -> str:
    """Return the format that is asked for: by parameter, or by the first known type of Accept."""
    if given is not None:
        return check_choice(given, "The format of events", FORMATS)
    accept = call.header(b"accept") or "*/*"
    for part in accept.split(","):
        kind = part.partition(";")[0].strip().lower()
        if kind in ("*/*", "application/*", ""):
            return "json"
        for form, content_type in FORMATS.items():
            if kind == content_type:
                return form
    raise NotAcceptable(
        f"Events are offered as {', '.join(FORMATS.values())}, got Accept: {accept[:200]}."
    )


def _records(
    store: Store, ranker: str, after: int, limit: int, refusals: Sequence[int]
) -> list[dict[str, Any]]:
    return list(event_records(store, ranker, after=after, limit=limit, refusals=refusals))


async def _lines(
    store: Store, ranker: str, page: list[dict[str, Any]], limit: int, refusals: Sequence[int]
) -> AsyncGenerator[bytes, None]:
    """Yield the log as lines from its first page on, so that no more than a page is held."""
    while page:
        yield b"".join(encode(record) + b"\n" for record in page)
        after, limit = page[-1]["seq"], limit - len(page)
        if limit <= 0:
            return
        page = await asyncio.to_thread(_records, store, ranker, after, min(limit, _PAGE), refusals)


def _table(store: Store, ranker: str, after: int, limit: int, refusals: Sequence[int]) -> IO[bytes]:
    """Return impressions and their feedback as a Parquet file, a row for each item revealed."""
    file = TemporaryFile()  # noqa: SIM115 - whoever sends it closes it
    try:
        write_parquet(impressions(store, ranker, after=after, limit=limit, refusals=refusals), file)
        file.seek(0)
    except BaseException:
        file.close()
        raise
    return file


async def _content(file: IO[bytes]) -> AsyncGenerator[bytes, None]:
    with file:
        while piece := await asyncio.to_thread(file.read, _CHUNK):
            yield piece


async def get_event(call: Call) -> Answer:
    """Read an impression, its feedback, and why that list was shown."""
    ranker, event_id = call.params
    return json_answer(event_page(call.service.desk.engine.ranker(ranker), event_id))


async def ask_evaluation(call: Call) -> Answer:
    """Judge another policy on the log of a ranker."""
    request = await call.decode(_evaluation_request, b"{}")
    desk = call.service.desk
    live = desk.engine.usable(call.params[0])
    reply = call.service.evaluations.ask(live, desk.store, request)
    where = f"/v1/rankers/{live.name}/evaluations/{reply.id}"
    return json_answer(reply, 202, ((b"location", where.encode()),))


async def list_evaluations(call: Call) -> Answer:
    """List the evaluations of a ranker."""
    live = call.service.desk.engine.ranker(call.params[0])
    return json_answer(EvaluationsReply(call.service.evaluations.of(live.name)))


async def get_evaluation(call: Call) -> Answer:
    """Read an evaluation, which may not be done yet."""
    return json_answer(call.service.evaluations.find(*call.params))


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
        {200: Reply("Events in order.", _PAGE_OF_EVENTS)},
        problems=(400, 406, 422),
        query=(
            Parameter("after", {**_SEQ, "default": 0}, "Events with a greater seq."),
            Parameter(
                "limit", {**_SEQ, "minimum": 1}, "How many at most; as JSON no more than 10,000."
            ),
            Parameter("format", {"enum": list(FORMATS)}, "Instead of the Accept header."),
        ),
    ),
    Operation(
        "GET", "/v1/rankers/{ranker}/events/{event}", get_event, "read", "Read an impression",
        {200: Reply("The list, its feedback, and why.", {"application/json": dict[str, Any]})},
    ),
    Operation(
        "POST", "/v1/rankers/{ranker}/evaluations", ask_evaluation, "read",
        "Judge another policy on the log",
        {
            202: Reply(
                "It is being judged.",
                {"application/json": EvaluationReply},
                (Parameter("Location", {"type": "string"}, "Where to read what came of it."),),
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
