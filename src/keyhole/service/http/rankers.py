"""Endpoints about rankers: create, read, change, list; their state and their live stream."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import suppress
from typing import Annotated, Any

import msgspec

from keyhole.errors import InvalidInput, shown
from keyhole.service.commands import Configure, Name, RankerReply, RankerRequest, StateReply
from keyhole.service.errors import StaleVersion
from keyhole.service.http.call import Call, check_settings, number
from keyhole.service.http.operations import Operation, Parameter, Reply
from keyhole.service.http.problems import Busy
from keyhole.service.http.wire import Answer, Headers, encode, json_answer
from keyhole.service.listing import page_of

_request = msgspec.json.Decoder(RankerRequest)
_RETRY_MS = 2_000
_PAGE, _LONGEST_PAGE = 100, 1_000


class RankersReply(msgspec.Struct, frozen=True):
    """A page of the rankers that a key may see, in the order of their names."""

    rankers: list[RankerReply]
    next_after: str | None
    """What `after` must be for the next page; null where this is the last one."""


async def put_ranker(call: Call) -> Answer:
    """Create a ranker or change it."""
    name = _name(call.params[0])
    request = await call.decode(_request)
    check_settings(request.settings)
    desk = call.service.desk
    command = Configure(name, request, _if_match(call, name in desk.engine.rankers))
    reply: RankerReply = await desk.submit(command)
    return json_answer(reply, 201 if reply.created else 200, _etag(reply))


async def get_ranker(call: Call) -> Answer:
    """Read a ranker."""
    reply = call.service.desk.engine.ranker(call.params[0]).reply()
    return json_answer(reply, headers=_etag(reply))


async def list_rankers(call: Call) -> Answer:
    """List the rankers that this key may see."""
    query = call.query("limit", "after", "search")
    limit = number(query.get("limit"), "limit", default=_PAGE, least=1, most=_LONGEST_PAGE)
    after, search = query.get("after", ""), query.get("search", "")
    rankers = call.service.desk.engine.rankers
    page = page_of(rankers, call.access.sees, limit=limit, after=after, search=search)
    found = [rankers[name].reply() for name in page.names]
    return json_answer(RankersReply(found, page.next_after))


async def get_state(call: Call) -> Answer:
    """Read how far a ranker has come, and the hash of what it knows."""
    live = call.service.desk.engine.ranker(call.params[0])
    return json_answer(await asyncio.to_thread(live.as_it_is().state))


async def stream(call: Call) -> Answer:
    """Follow a ranker: an event whenever it has shown a list or learnt."""
    service = call.service
    service.desk.engine.ranker(call.params[0])
    if service.n_streams >= service.settings.max_streams:
        raise Busy(f"At most {service.settings.max_streams} streams may be open at once.")
    headers: Headers = ((b"content-type", b"text/event-stream"), (b"cache-control", b"no-store"))
    return Answer(200, headers=headers, pieces=_follow(call))


async def _follow(call: Call) -> AsyncGenerator[bytes, None]:
    """Yield server-sent events until the service stops, with a beat where nothing happens."""
    service = call.service
    service.n_streams += 1
    changes = aiter(service.desk.subscribe(call.params[0]))
    stopped = asyncio.ensure_future(service.stopping.wait())
    change: asyncio.Future[dict[str, Any]] | None = None
    try:
        yield b"retry: %d\n\n" % _RETRY_MS
        while True:
            change = change or asyncio.ensure_future(_next(changes))
            await asyncio.wait(
                (change, stopped),
                timeout=service.settings.heartbeat_seconds,
                return_when=asyncio.FIRST_COMPLETED,
            )
            if change.done():
                told = change.result()
                change = None
                yield b"id: %d\ndata: %s\n\n" % (told.get("seq", 0), encode(told))
            elif stopped.done():
                return
            else:
                yield b"event: beat\ndata: {}\n\n"
    except StopAsyncIteration:
        return
    finally:
        service.n_streams -= 1
        stopped.cancel()
        if change is not None:
            change.cancel()
            with suppress(asyncio.CancelledError, StopAsyncIteration):
                await change
        if hasattr(changes, "aclose"):
            await changes.aclose()


async def _next(changes: Any) -> dict[str, Any]:
    told: dict[str, Any] | None = await anext(changes, None)
    if told is None:
        raise StopAsyncIteration
    return told


def _name(text: str) -> str:
    """Return the name of a ranker to be, or raise."""
    try:
        return msgspec.convert(text, Name)
    except msgspec.ValidationError:
        raise InvalidInput(
            "The name of a ranker must be 1 to 64 letters, digits, dots, hyphens and underscores, "
            f"a letter or a digit first, got {shown(text)}."
        ) from None


def _etag(reply: RankerReply) -> Headers:
    return ((b"etag", b'"%d"' % reply.version),)


def _if_match(call: Call, exists: bool) -> int | None:
    """Return the version that a change is for; 0, which none has, where a tag is not one."""
    given = call.header(b"if-match")
    if given is None:
        return None
    if given.strip() == "*":
        if not exists:
            raise StaleVersion("If-Match: * must meet a ranker that exists, got none.")
        return None
    tag = given.strip().strip('"')
    if not (given.strip() == f'"{tag}"' and tag.isascii() and tag.isdigit() and len(tag) < 19):
        raise StaleVersion(f"If-Match must be the ETag of the ranker, got {shown(given)}.")
    return int(tag)


_TAG = Parameter("ETag", {"type": "string"}, "The version, for If-Match.")
_REPLY = {"application/json": RankerReply}

OPERATIONS = (
    Operation(
        "GET", "/v1/rankers", list_rankers, "read", "List rankers",
        {200: Reply("A page of those that this key may see.", {"application/json": RankersReply})},
        problems=(422,),
        query=(
            Parameter(
                "limit",
                {"type": "integer", "minimum": 1, "maximum": _LONGEST_PAGE, "default": _PAGE},
                "How many at most.",
            ),
            Parameter("after", {"type": "string"}, "Those whose names come after this one."),
            Parameter("search", {"type": "string"}, "Those with this text in their names."),
        ),
    ),
    Operation(
        "PUT", "/v1/rankers/{ranker}", put_ranker, "admin", "Create or change a ranker",
        {
            200: Reply("Changed, or already so.", _REPLY, (_TAG,)),
            201: Reply("Created.", _REPLY, (_TAG,)),
        },
        problems=(409, 412, 507),
        request={"application/json": RankerRequest},
        headers=(
            Parameter("If-Match", {"type": "string"}, "The ETag that was read, or `*`."),
        ),
    ),
    Operation(
        "GET", "/v1/rankers/{ranker}", get_ranker, "read", "Read a ranker",
        {200: Reply("The ranker.", _REPLY, (_TAG,))},
    ),
    Operation(
        "GET", "/v1/rankers/{ranker}/state", get_state, "read", "How far a ranker has come",
        {200: Reply("Its round, and the hash of what it knows.", {"application/json": StateReply})},
    ),
    Operation(
        "GET", "/v1/rankers/{ranker}/stream", stream, "read", "Follow a ranker live",
        {200: Reply("Server-sent events.", {"text/event-stream": Annotated[str, "events"]})},
    ),
)  # fmt: skip
