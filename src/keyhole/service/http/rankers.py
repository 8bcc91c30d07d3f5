"""Endpoints about rankers: create, read, change, list; their state and their live stream."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import suppress
from typing import Annotated, Any

import msgspec

from keyhole.errors import InvalidInput, shown
from keyhole.service.commands import (
    Configure,
    Delete,
    ItemsEdit,
    ItemsRequest,
    Name,
    RankerChange,
    RankerReply,
    RankerRequest,
    Rename,
    RenameRequest,
    Reset,
    Revision,
    StateReply,
)
from keyhole.service.configuring import revise
from keyhole.service.errors import StaleVersion
from keyhole.service.http.call import JSON_TYPES, Call, check_settings, decode
from keyhole.service.http.operations import Operation, Parameter, Reply
from keyhole.service.http.problems import Busy, Forbidden
from keyhole.service.http.wire import Answer, Headers, encode, json_answer

_request = msgspec.json.Decoder(RankerRequest)
_named = msgspec.json.Decoder(dict[str, msgspec.Raw])
_change = msgspec.json.Decoder(RankerChange)
_items = msgspec.json.Decoder(ItemsRequest)
_edit = msgspec.json.Decoder(ItemsEdit)
_rename = msgspec.json.Decoder(RenameRequest)
_FIELDS = frozenset(RankerRequest.__struct_fields__)
_RETRY_MS = 2_000


class RankersReply(msgspec.Struct, frozen=True):
    """All rankers that a key may see."""

    rankers: list[RankerReply]


async def put_ranker(call: Call) -> Answer:
    """Create a ranker or change it."""
    name = _name(call.params[0])
    body = await call.body(JSON_TYPES)
    request = decode(_request, body)
    check_settings(request.settings)
    desk = call.service.desk
    command = Configure(
        name,
        request,
        _if_match(call, name in desk.engine.rankers),
        left_out=_FIELDS - _named.decode(body).keys(),
        by=call.access.who,
    )
    reply: RankerReply = await desk.submit(command)
    return json_answer(reply, 201 if reply.created else 200, _etag(reply))


async def patch_ranker(call: Call) -> Answer:
    """Change what is named of a ranker."""
    return await _revise(call, decode(_change, await call.body(JSON_TYPES)))


async def put_items(call: Call) -> Answer:
    """Change the list of a ranker."""
    return await _revise(call, decode(_items, await call.body(JSON_TYPES)))


async def edit_items(call: Call) -> Answer:
    """Add items to the list of a ranker, and remove some."""
    return await _revise(call, decode(_edit, await call.body(JSON_TYPES)))


async def _revise(call: Call, revision: Revision) -> Answer:
    name, if_match = _there(call)
    reply = await revise(call.service.desk, name, revision, if_match, call.access.who)
    return json_answer(reply, headers=_etag(reply))


async def reset_ranker(call: Call) -> Answer:
    """Let a ranker forget what it has learnt."""
    await _no_body(call, "A reset")
    name, if_match = _there(call)
    reply = await call.service.desk.submit(Reset(name, if_match, call.access.who))
    return json_answer(reply, headers=_etag(reply))


async def rename_ranker(call: Call) -> Answer:
    """Let a new ranker go on from the state of this one."""
    request = await call.decode(_rename)
    name, if_match = _there(call)
    if not call.access.sees(request.to):
        raise Forbidden(f"This key must be for the ranker {shown(request.to)} to do that.")
    command = Rename(name, request.to, if_match, call.access.who)
    reply: RankerReply = await call.service.desk.submit(command)
    where = (b"location", f"/v1/rankers/{request.to}".encode())
    return json_answer(reply, 201, (*_etag(reply), where))


async def delete_ranker(call: Call) -> Answer:
    """Delete a ranker; its log stays."""
    await _no_body(call, "A deletion")
    name, if_match = _there(call)
    await call.service.desk.submit(Delete(name, if_match, call.access.who))
    return Answer(204)


async def _no_body(call: Call, what: str) -> None:
    if await call.body(JSON_TYPES) not in (b"", b"{}"):
        raise InvalidInput(f"{what} must have an empty body.")


def _there(call: Call) -> tuple[str, int | None]:
    """Return the name of a ranker that is there, and the version that a change is for."""
    name = call.service.desk.engine.ranker(call.params[0]).name
    return name, _if_match(call, exists=True)


async def get_ranker(call: Call) -> Answer:
    """Read a ranker."""
    reply = call.service.desk.engine.ranker(call.params[0]).reply()
    return json_answer(reply, headers=_etag(reply))


async def list_rankers(call: Call) -> Answer:
    """List the rankers that this key may see."""
    call.query()
    rankers = call.service.desk.engine.rankers
    seen = [rankers[name].reply() for name in sorted(rankers) if call.access.sees(name)]
    return json_answer(RankersReply(seen))


async def get_state(call: Call) -> Answer:
    """Read how far a ranker has come, and the hash of what it knows."""
    return json_answer(call.service.desk.engine.ranker(call.params[0]).state())


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
_MATCH = (Parameter("If-Match", {"type": "string"}, "The ETag that was read, or `*`."),)
_BODYLESS = (400, 408, 409, 412, 413, 415, 422, 507)
_CHANGED = {200: Reply("Changed, or already so.", _REPLY, (_TAG,))}

OPERATIONS = (
    Operation(
        "GET", "/v1/rankers", list_rankers, "read", "List rankers",
        {200: Reply("All rankers that this key may see.", {"application/json": RankersReply})},
    ),
    Operation(
        "PUT", "/v1/rankers/{ranker}", put_ranker, "admin", "Create or change a ranker",
        {
            200: Reply("Changed, or already so.", _REPLY, (_TAG,)),
            201: Reply("Created.", _REPLY, (_TAG,)),
        },
        problems=(409, 412, 507),
        request={"application/json": RankerRequest},
        headers=_MATCH,
    ),
    Operation(
        "PATCH", "/v1/rankers/{ranker}", patch_ranker, "admin", "Change what is named of a ranker",
        _CHANGED, problems=(409, 412, 507), request={"application/json": RankerChange},
        headers=_MATCH,
    ),
    Operation(
        "PUT", "/v1/rankers/{ranker}/items", put_items, "admin", "Change the list of a ranker",
        _CHANGED, problems=(409, 412, 507), request={"application/json": ItemsRequest},
        headers=_MATCH,
    ),
    Operation(
        "POST", "/v1/rankers/{ranker}/items", edit_items, "admin",
        "Add items to the list of a ranker, and remove some",
        _CHANGED, problems=(409, 412, 507), request={"application/json": ItemsEdit},
        headers=_MATCH,
    ),
    Operation(
        "POST", "/v1/rankers/{ranker}/reset", reset_ranker, "admin",
        "Forget what a ranker has learnt",
        {200: Reply("It begins anew.", _REPLY, (_TAG,))}, problems=_BODYLESS, headers=_MATCH,
    ),
    Operation(
        "POST", "/v1/rankers/{ranker}/rename", rename_ranker, "admin", "Rename a ranker",
        {
            201: Reply(
                "The ranker of the new name.", _REPLY,
                (_TAG, Parameter("Location", {"type": "string"}, "Where it is now.")),
            )
        },
        problems=(409, 412, 507), request={"application/json": RenameRequest}, headers=_MATCH,
    ),
    Operation(
        "DELETE", "/v1/rankers/{ranker}", delete_ranker, "admin", "Delete a ranker",
        {204: Reply("It is gone; its log is kept.")}, problems=_BODYLESS, headers=_MATCH,
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
