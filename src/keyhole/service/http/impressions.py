"""The hot endpoints: show a list, learn from what was seen of it."""

import asyncio

import msgspec

from keyhole.errors import InvalidInput, KeyholeError, shown
from keyhole.service.commands import (
    MAX_BATCH,
    Activate,
    EventId,
    FeedbackReply,
    FeedbackRequest,
    GiveFeedback,
    IdempotencyKey,
    Rank,
    RankBatchReply,
    RankBatchRequest,
    RankItem,
    RankMany,
    RankReply,
    RankRequest,
)
from keyhole.service.desk import Desk
from keyhole.service.events import Learned
from keyhole.service.http.call import JSON_TYPES, NDJSON_TYPES, Call, decode
from keyhole.service.http.operations import Errand, Operation, Parameter, Reply
from keyhole.service.http.problems import BadBody, Refused, problem_of, refused_body
from keyhole.service.http.wire import JSON, Answer, encode, json_answer
from keyhole.service.logs import logger

MAX_LINES = 1_000


class FeedbackLine(FeedbackRequest, frozen=True, kw_only=True):
    """A line of a batch: feedback, and the list that it is about."""

    event_id: EventId


class LineReply(msgspec.Struct, frozen=True, omit_defaults=True):
    """What became of a line of a batch: the status that a request of its own would have had."""

    line: int
    """From 1, as it was sent; empty lines have no reply."""
    status: int
    event_id: str | None = None
    learned: Learned | None = None
    seq: int | None = None
    type: str | None = None
    """The type of the problem."""
    detail: str | None = None


class _RawBatch(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A batch whose requests are yet to be read."""

    requests: list[msgspec.Raw]


_rank_request = msgspec.json.Decoder(RankRequest)
_rank_batch_request = msgspec.json.Decoder(RankBatchRequest)
_raw_batch = msgspec.json.Decoder(_RawBatch)
_feedback_request = msgspec.json.Decoder(FeedbackRequest)
_feedback_line = msgspec.json.Decoder(FeedbackLine)
_NDJSON = ((b"content-type", NDJSON_TYPES[0]),)


def _rank(call: Call, body: bytes) -> Rank:
    request = decode(_rank_request, body or b"{}")
    key = call.headers.get(b"idempotency-key")
    return Rank(call.params[0], request, None if key is None else _idempotency_key(key))


def _ranked(reply: RankReply) -> Answer:
    return Answer(201, encode(reply), JSON)


def _give_feedback(call: Call, body: bytes) -> GiveFeedback:
    ranker, event_id = call.params
    return GiveFeedback(ranker, event_id, decode(_feedback_request, body))


def _given(reply: FeedbackReply) -> Answer:
    return Answer(201 if reply.created else 200, encode(reply), JSON)


_RANK = Errand(_rank, _ranked)
_FEEDBACK = Errand(_give_feedback, _given)


async def rank(call: Call) -> Answer:
    """Show a list."""
    return await _RANK.run(call)


async def rank_batch(call: Call) -> Answer:
    """Show many lists at once; each request stands for itself."""
    body = await call.body(JSON_TYPES)
    key = call.headers.get(b"idempotency-key")
    idem = None if key is None else _idempotency_key(key)
    command = RankMany(call.params[0], _requests(body), idem)
    replies = await call.service.desk.submit(command)
    return json_answer(RankBatchReply([_item(reply) for reply in replies]))


def _requests(body: bytes) -> list[RankRequest | Exception]:
    """Return the requests of a batch; where one of them is wrong, what is wrong with it."""
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


def _item(reply: RankItem | Exception) -> RankItem:
    """Return what is told of one request: a mistake in one is told of that one alone."""
    if isinstance(reply, RankItem):
        return reply
    problem = problem_of(reply)
    return RankItem(problem.status, type=problem.type, detail=problem.detail)


async def give_feedback(call: Call) -> Answer:
    """Learn from what was seen of a list."""
    return await _FEEDBACK.run(call)


async def activate(call: Call) -> Answer:
    """Begin to wait for the feedback of a deferred list."""
    if await call.body(JSON_TYPES) not in (b"", b"{}"):
        raise InvalidInput("An activation must have an empty body.")
    await call.service.desk.submit(Activate(*call.params))
    return Answer(204)


async def give_feedback_batch(call: Call) -> Answer:
    """Learn from many lists at once; each line stands for itself."""
    body = await call.body(NDJSON_TYPES)
    n_lines = body.count(b"\n")
    if n_lines <= 2 * MAX_LINES:  # some may be empty
        lines = enumerate(body.split(b"\n"), 1)
        given = [(number, line) for number, line in lines if line.strip()]
        n_lines = len(given)
    if n_lines > MAX_LINES:
        raise InvalidInput(f"A batch must have at most {MAX_LINES} lines, got {n_lines}.")
    desk, ranker = call.service.desk, call.params[0]
    desk.engine.usable(ranker)
    replies = await asyncio.gather(*(_one_line(desk, ranker, *each) for each in given))
    return Answer(200, b"".join(encode(reply) + b"\n" for reply in replies), _NDJSON)


async def _one_line(desk: Desk, ranker: str, number: int, line: bytes) -> LineReply:
    """Return what became of a line: a mistake in one is told of that one alone."""
    event_id = None
    try:
        given = decode(_feedback_line, line)
        event_id = given.event_id
        request = FeedbackRequest(given.status, given.relevance, given.truth)
        reply: FeedbackReply = await desk.submit(GiveFeedback(ranker, event_id, request))
    except Exception as error:
        problem = problem_of(error)
        if problem.status == 500:
            logger().error("A line of a batch failed.", exc_info=error)
        return LineReply(number, problem.status, event_id, type=problem.type, detail=problem.detail)
    status = 201 if reply.created else 200
    return LineReply(number, status, event_id, reply.learned, reply.seq)


def _idempotency_key(value: bytes) -> str:
    """Return the key that a request may be repeated under, or raise."""
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
    "A request that is repeated under its key is answered as the first was.",
)

OPERATIONS = (
    Operation(
        "POST", "/v1/rankers/{ranker}/rank", rank, "rank", "Show a list",
        {201: Reply("The list to show, which is on the disk.", {"application/json": RankReply})},
        problems=(409, 507),
        request={"application/json": RankRequest},
        is_request_required=False,
        headers=(_IDEMPOTENT,),
        errand=_RANK,
    ),
    Operation(
        "POST", "/v1/rankers/{ranker}/rank-batch", rank_batch, "rank", "Show many lists at once",
        {
            200: Reply(
                "A reply for each request, with its status; the lists are on the disk.",
                {"application/json": RankBatchReply},
            )
        },
        problems=(507,),
        request={"application/json": RankBatchRequest},
        headers=(_IDEMPOTENT,),
    ),
    Operation(
        "PUT", "/v1/rankers/{ranker}/events/{event}/feedback", give_feedback, "feedback",
        "Learn from what was seen of a list",
        {
            200: Reply("The same was said before.", _NOTED),
            201: Reply("Noted, and on the disk.", _NOTED),
        },
        problems=(409, 507),
        request={"application/json": FeedbackRequest},
        errand=_FEEDBACK,
    ),
    Operation(
        "POST", "/v1/rankers/{ranker}/events/{event}/activate", activate, "rank",
        "Begin to wait for the feedback of a deferred list",
        {204: Reply("Feedback is awaited.")},
        problems=(400, 408, 409, 413, 415, 422, 507),
    ),
    Operation(
        "POST", "/v1/rankers/{ranker}/feedback-batch", give_feedback_batch, "feedback",
        "Learn from many lists at once",
        {200: Reply("A line for each line, with its status.", {"application/x-ndjson": LineReply})},
        request={"application/x-ndjson": FeedbackLine},
    ),
)  # fmt: skip
