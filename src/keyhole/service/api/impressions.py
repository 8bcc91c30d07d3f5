"""The fast path: endpoints to rank and to give feedback."""

import asyncio
from typing import TYPE_CHECKING, Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from keyhole.base.errors import InvalidInput, KeyholeError, shown
from keyhole.service.api.operations import JSON, Operation, Parameter, Reply, json_response
from keyhole.service.commands import (
    MAX_BATCH,
    Activate,
    EventId,
    FeedbackReply,
    FeedbackRequest,
    GiveFeedback,
    GiveMany,
    IdempotencyKey,
    Rank,
    RankBatchReply,
    RankBatchRequest,
    RankItem,
    RankMany,
    RankReply,
    RankRequest,
)
from keyhole.service.events import Outcome
from keyhole.service.group_commit import MOST_IN_A_GROUP, Desk
from keyhole.service.http.problems import (
    BadBody,
    Refused,
    encode,
    encode_lines,
    problem_of,
    refused_body,
)
from keyhole.service.http.request import JSON_TYPES, NDJSON_TYPES, body_of, decode, json_of
from keyhole.service.structured_logs import logger

if TYPE_CHECKING:
    from keyhole.service.http.context import Service

MAX_LINES = 1_000


class FeedbackLine(FeedbackRequest, frozen=True, kw_only=True):
    """A line of a feedback batch: the event id and its feedback."""

    event_id: EventId


class LineReply(msgspec.Struct, frozen=True, omit_defaults=True):
    """The result of one line of a batch, with the status of a single request."""

    line: int
    """The line number in the request, from 1; empty lines have no reply."""
    status: int
    event_id: str | None = None
    learned: Outcome | None = None
    seq: int | None = None
    type: str | None = None
    """The problem type."""
    detail: str | None = None


class _RawBatch(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A batch whose requests are not parsed yet."""

    requests: list[msgspec.Raw]


_rank_request = msgspec.json.Decoder(RankRequest)
_rank_batch_request = msgspec.json.Decoder(RankBatchRequest)
_raw_batch = msgspec.json.Decoder(_RawBatch)
_feedback_request = msgspec.json.Decoder(FeedbackRequest)
_feedback_line = msgspec.json.Decoder(FeedbackLine)


async def rank(request: Request, service: "Service") -> Response:
    """Show a list."""
    body = await body_of(request, service.settings.max_body_bytes, JSON_TYPES)
    asked = decode(_rank_request, body or b"{}")
    key = request.scope["state"]["fields"].get(b"idempotency-key")
    command = Rank(
        request.path_params["ranker"], asked, None if key is None else _idempotency_key(key)
    )
    return Response(encode(await service.desk.submit(command)), 201, media_type=JSON)


async def rank_batch(request: Request, service: "Service") -> Response:
    """Rank several lists; a failing request does not affect the others."""
    body = await body_of(request, service.settings.max_body_bytes, JSON_TYPES)
    key = request.scope["state"]["fields"].get(b"idempotency-key")
    idem = None if key is None else _idempotency_key(key)
    command = RankMany(request.path_params["ranker"], _requests(body), idem)
    replies = await service.desk.submit(command)
    items = [each if isinstance(each, RankItem) else _problem(each) for each in replies]
    return json_response(RankBatchReply(items))


def _requests(body: bytes) -> list[RankRequest | Exception]:
    """Return the requests of a batch; an invalid request is returned as its exception."""
    try:
        return [*decode(_rank_batch_request, body).requests]
    except (BadBody, InvalidInput):
        raw = _apart(body)
    if len(raw) > MAX_BATCH:
        raise InvalidInput(f"A batch must have at most {MAX_BATCH} requests, got {len(raw)}.")
    if not raw:
        raise InvalidInput("A batch must have at least one request, got none.")
    found: list[RankRequest | Exception] = []
    for each in raw:
        try:
            found.append(decode(_rank_request, bytes(each)))
        except (KeyholeError, Refused) as error:
            found.append(error)
    return found


def _apart(body: bytes) -> list[msgspec.Raw]:
    try:
        return _raw_batch.decode(body).requests
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise refused_body(error) from None


def _problem(error: Exception) -> RankItem:
    """Return the result of a request that was refused."""
    problem = problem_of(error)
    return RankItem(problem.status, type=problem.type, detail=problem.detail)


async def give_feedback(request: Request, service: "Service") -> Response:
    """Give feedback on a list."""
    said = await json_of(request, service.settings.max_body_bytes, _feedback_request)
    ranker, event_id = request.path_params["ranker"], request.path_params["event"]
    reply: FeedbackReply = await service.desk.submit(GiveFeedback(ranker, event_id, said))
    return Response(encode(reply), 201 if reply.created else 200, media_type=JSON)


async def activate(request: Request, service: "Service") -> Response:
    """Start the feedback timer of a deferred list."""
    if await body_of(request, service.settings.max_body_bytes, JSON_TYPES) not in (b"", b"{}"):
        raise InvalidInput("An activation must have an empty body.")
    ranker, event_id = request.path_params["ranker"], request.path_params["event"]
    await service.desk.submit(Activate(ranker, event_id))
    return Response(status_code=204)


async def give_feedback_batch(request: Request, service: "Service") -> Response:
    """Give feedback on several lists; a failing line does not affect the others."""
    body = await body_of(request, service.settings.max_body_bytes, NDJSON_TYPES)
    n_lines = body.count(b"\n")
    if n_lines <= 2 * MAX_LINES:  # some may be empty
        n_lines = sum(not line.isspace() for line in body.split(b"\n") if line)
    if n_lines > MAX_LINES:
        raise InvalidInput(f"A batch must have at most {MAX_LINES} lines, got {n_lines}.")
    desk, ranker = service.desk, request.path_params["ranker"]
    desk.engine.usable(ranker)
    replies = await _became_of(desk, ranker, _at_once(body) or _line_by_line(body))
    return Response(encode_lines(replies), media_type=NDJSON_TYPES[0].decode())


_Lines = list[tuple[int, FeedbackLine | Exception]]
"""The lines of a batch with their numbers; an exception becomes its line's problem."""


def _at_once(body: bytes) -> _Lines | None:
    """Return the lines of a batch decoded in one call; None if they must be decoded one by one.

    The decoder does not insist on one value per line, but a value that ends and another one that
    begins at every line end leave no other reading of as many values as lines.
    """
    text = body.removesuffix(b"\n")
    n_lines = text.count(b"\n") + 1
    if text.count(b"}\n{") != n_lines - 1 or b"\\u0000" in text:
        return None
    try:
        said = _feedback_line.decode_lines(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return [*enumerate(said, 1)] if len(said) == n_lines else None


def _line_by_line(body: bytes) -> _Lines:
    found: _Lines = []
    for number, line in enumerate(body.split(b"\n"), 1):
        if line.strip():
            try:
                found.append((number, decode(_feedback_line, line)))
            except Exception as error:
                found.append((number, error))
    return found


async def _became_of(desk: Desk, ranker: str, lines: _Lines) -> list[LineReply]:
    """Return the results of lines, in their order."""
    waves: list[dict[str, FeedbackRequest]] = [{}]
    for _, said in lines:
        if isinstance(said, FeedbackLine):
            if said.event_id in waves[-1] or len(waves[-1]) == MOST_IN_A_GROUP:
                waves.append({})  # the second feedback on a list is compared with the first
            waves[-1][said.event_id] = said
    commands = [GiveMany(ranker, wave) for wave in waves]
    outcomes = await asyncio.gather(*map(desk.submit, commands), return_exceptions=True)
    told: list[Any] = []
    for wave, outcome in zip(waves, outcomes, strict=True):
        told += [outcome] * len(wave) if isinstance(outcome, BaseException) else outcome
    replies = iter(told)
    return [
        _line_reply(number, said.event_id, next(replies))
        if isinstance(said, FeedbackLine)
        else _refused_line(number, None, said)
        for number, said in lines
    ]


def _line_reply(number: int, event_id: str, reply: FeedbackReply | Exception) -> LineReply:
    if isinstance(reply, FeedbackReply):
        status = 201 if reply.created else 200
        return LineReply(number, status, event_id, reply.learned, reply.seq)
    return _refused_line(number, event_id, reply)


def _refused_line(number: int, event_id: str | None, error: Exception) -> LineReply:
    problem = problem_of(error)
    if problem.status == 500:
        logger().error("A line of a batch failed.", exc_info=error)
    return LineReply(number, problem.status, event_id, type=problem.type, detail=problem.detail)


def _idempotency_key(value: bytes) -> str:
    """Return the idempotency key of a request, or raise."""
    text = value.decode("latin-1")
    try:
        return msgspec.convert(text, IdempotencyKey)
    except msgspec.ValidationError:
        raise InvalidInput(
            f"An Idempotency-Key must be 1 to 256 printable characters of ASCII, got {shown(text)}."
        ) from None


_NOTED = {"application/json": FeedbackReply}
_IDEMPOTENT = Parameter(
    "Idempotency-Key",
    {"type": "string", "minLength": 1, "maxLength": 256, "pattern": "^[!-~]+$"},
    "Makes retries safe: a repeated request with the same key gets the first answer.",
)

OPERATIONS = (
    Operation(
        "POST", "/v1/rankers/{ranker}/rank", rank, "rank", "Show a list",
        {201: Reply("The list to show; its event is durable.", {"application/json": RankReply})},
        problems=(409, 507),
        request={"application/json": RankRequest},
        is_request_required=False,
        headers=(_IDEMPOTENT,),
    ),
    Operation(
        "POST", "/v1/rankers/{ranker}/rank-batch", rank_batch, "rank", "Rank several lists",
        {
            200: Reply(
                "One result per request, each with its status; the events are durable.",
                {"application/json": RankBatchReply},
            )
        },
        problems=(507,),
        request={"application/json": RankBatchRequest},
        headers=(_IDEMPOTENT,),
    ),
    Operation(
        "PUT", "/v1/rankers/{ranker}/events/{event}/feedback", give_feedback, "feedback",
        "Give feedback on a list",
        {
            200: Reply("The same feedback was given before.", _NOTED),
            201: Reply("The feedback is accepted; its event is durable.", _NOTED),
        },
        problems=(409, 507),
        request={"application/json": FeedbackRequest},
    ),
    Operation(
        "POST", "/v1/rankers/{ranker}/events/{event}/activate", activate, "rank",
        "Start the feedback timer of a deferred list",
        {204: Reply("The feedback timer has started.")},
        problems=(400, 408, 409, 413, 415, 422, 507),
    ),
    Operation(
        "POST", "/v1/rankers/{ranker}/feedback-batch", give_feedback_batch, "feedback",
        "Give feedback on several lists",
        {200: Reply("One result per line, with status.", {"application/x-ndjson": LineReply})},
        request={"application/x-ndjson": FeedbackLine},
    ),
)  # fmt: skip
