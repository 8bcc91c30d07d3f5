"""Endpoints about rankers: create, read, change, list; their state and their live stream."""

import asyncio
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from keyhole.base.errors import InvalidInput, shown
from keyhole.service.api.operations import Operation, Parameter, Reply, json_response
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
from keyhole.service.configuration import check_settings
from keyhole.service.errors import StaleVersion
from keyhole.service.http.problems import Forbidden, encode
from keyhole.service.http.request import JSON_TYPES, body_of, decode, json_of, number, query_of
from keyhole.service.http.streams import LiveStream
from keyhole.service.paging import page_of
from keyhole.service.ranker_changes import revise

if TYPE_CHECKING:
    from keyhole.service.http.context import Service

_request = msgspec.json.Decoder(RankerRequest)
_named = msgspec.json.Decoder(dict[str, msgspec.Raw])
_change = msgspec.json.Decoder(RankerChange)
_items = msgspec.json.Decoder(ItemsRequest)
_edit = msgspec.json.Decoder(ItemsEdit)
_rename = msgspec.json.Decoder(RenameRequest)
_FIELDS = frozenset(RankerRequest.__struct_fields__)
_RETRY_MS = 2_000
_PAGE, _LONGEST_PAGE = 100, 1_000


class DamagedReply(msgspec.Struct, frozen=True):
    """A ranker that is not served, and why."""

    name: str
    detail: str


class RankersReply(msgspec.Struct, frozen=True):
    """A page of the rankers that a key may see by name, those that are damaged among them."""

    rankers: list[RankerReply]
    damaged: list[DamagedReply]
    next_after: str | None
    """What `after` must be for the next page; null where this is the last one."""


async def put_ranker(request: Request, service: "Service") -> Response:
    """Create a ranker or change it."""
    name = _name(request.path_params["ranker"])
    body = await body_of(request, service.settings.max_body_bytes, JSON_TYPES)
    asked = decode(_request, body)
    check_settings(asked.settings)
    desk = service.desk
    command = Configure(
        name,
        asked,
        _if_match(request, name in desk.engine.rankers),
        left_out=_FIELDS - _named.decode(body).keys(),
        by=request.state.access.who,
    )
    reply: RankerReply = await desk.submit(command)
    return json_response(reply, 201 if reply.created else 200, _etag(reply))


async def patch_ranker(request: Request, service: "Service") -> Response:
    """Change what is named of a ranker."""
    return await _revise(request, service, _change)


async def put_items(request: Request, service: "Service") -> Response:
    """Change the list of a ranker."""
    return await _revise(request, service, _items)


async def edit_items(request: Request, service: "Service") -> Response:
    """Add items to the list of a ranker, and remove some."""
    return await _revise(request, service, _edit)


async def _revise(
    request: Request, service: "Service", decoder: "msgspec.json.Decoder[Any]"
) -> Response:
    revision: Revision = await json_of(request, service.settings.max_body_bytes, decoder)
    name, if_match = _there(request, service)
    reply = await revise(service.desk, name, revision, if_match, request.state.access.who)
    return json_response(reply, headers=_etag(reply))


async def reset_ranker(request: Request, service: "Service") -> Response:
    """Let a ranker forget what it has learnt."""
    await _no_body(request, service, "A reset")
    name, if_match = _there(request, service)
    reply = await service.desk.submit(Reset(name, if_match, request.state.access.who))
    return json_response(reply, headers=_etag(reply))


async def rename_ranker(request: Request, service: "Service") -> Response:
    """Let a new ranker go on from the state of this one."""
    asked = await json_of(request, service.settings.max_body_bytes, _rename)
    name, if_match = _there(request, service)
    access = request.state.access
    if not access.sees(asked.to):
        raise Forbidden(f"This key must be for the ranker {shown(asked.to)} to do that.")
    command = Rename(name, asked.to, if_match, access.who)
    reply: RankerReply = await service.desk.submit(command)
    return json_response(reply, 201, {**_etag(reply), "location": f"/v1/rankers/{asked.to}"})


async def delete_ranker(request: Request, service: "Service") -> Response:
    """Delete a ranker; its log stays."""
    await _no_body(request, service, "A deletion")
    name, if_match = _there(request, service)
    await service.desk.submit(Delete(name, if_match, request.state.access.who))
    return Response(status_code=204)


async def _no_body(request: Request, service: "Service", what: str) -> None:
    body = await body_of(request, service.settings.max_body_bytes, JSON_TYPES)
    if body not in (b"", b"{}"):
        raise InvalidInput(f"{what} must have an empty body.")


def _there(request: Request, service: "Service") -> tuple[str, int | None]:
    """Return the name of a ranker that is there, and the version that a change is for."""
    name = service.desk.engine.ranker(request.path_params["ranker"]).name
    return name, _if_match(request, exists=True)


async def get_ranker(request: Request, service: "Service") -> Response:
    """Read a ranker."""
    reply = service.desk.engine.ranker(request.path_params["ranker"]).reply()
    return json_response(reply, headers=_etag(reply))


async def list_rankers(request: Request, service: "Service") -> Response:
    """List the rankers that this key may see."""
    query = query_of(request, "limit", "after", "search")
    limit = number(query.get("limit"), "limit", default=_PAGE, least=1, most=_LONGEST_PAGE)
    after, search = query.get("after", ""), query.get("search", "")
    engine, sees = service.desk.engine, request.state.access.sees
    page = page_of(engine.names, sees, limit=limit, after=after, search=search)
    damaged = [name for name in page.names if name in engine.damaged]
    found = [engine.rankers[name].reply() for name in page.names if name not in engine.damaged]
    told = [DamagedReply(name, engine.damaged[name]) for name in damaged]
    return json_response(RankersReply(found, told, page.next_after))


async def get_state(request: Request, service: "Service") -> Response:
    """Read how far a ranker has come, and the hash of what it knows."""
    live = service.desk.engine.ranker(request.path_params["ranker"])
    return json_response(await service.desk.read(live.state))


async def stream(request: Request, service: "Service") -> Response:
    """Follow a ranker: an event whenever it has shown a list or learnt."""
    ranker = request.path_params["ranker"]
    service.desk.engine.ranker(ranker)
    changes = service.desk.subscribe(ranker)
    return LiveStream(_messages(changes, service.settings.heartbeat_seconds), service)


async def _messages(changes: AsyncIterator[dict[str, Any]], beat: float) -> AsyncIterator[bytes]:
    """Yield server-sent events until the desk stops, with a beat where nothing happens."""
    yield b"retry: %d\n\n" % _RETRY_MS
    change = asyncio.ensure_future(_next(changes))
    try:
        while True:
            await asyncio.wait((change,), timeout=beat)
            if not change.done():
                yield b"event: beat\ndata: {}\n\n"
                continue
            told = change.result()
            if told is None:
                return
            change = asyncio.ensure_future(_next(changes))
            yield b"id: %d\ndata: %s\n\n" % (told.get("seq", 0), encode(told))
    finally:
        change.cancel()


async def _next(changes: AsyncIterator[dict[str, Any]]) -> dict[str, Any] | None:
    return await anext(changes, None)


def _name(text: str) -> str:
    """Return the name of a ranker to be, or raise."""
    try:
        return msgspec.convert(text, Name)
    except msgspec.ValidationError:
        raise InvalidInput(
            "The name of a ranker must be 1 to 64 letters, digits, dots, hyphens and underscores, "
            f"a letter or a digit first, got {shown(text)}."
        ) from None


def _etag(reply: RankerReply) -> dict[str, str]:
    return {"etag": f'"{reply.version}"'}


def _if_match(request: Request, exists: bool) -> int | None:
    """Return the version that a change is for; 0, which none has, where a tag is not one."""
    given = request.headers.get("if-match")
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
        {200: Reply("A page of those that this key may see.", {"application/json": RankersReply})},
        problems=(400, 422),
        query=(
            Parameter(
                "limit",
                {"type": "integer", "minimum": 1, "maximum": _LONGEST_PAGE, "default": _PAGE},
                "How many at most, damaged ones counted.",
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
        {200: Reply("Server-sent events.", {"text/event-stream": str})},
    ),
)  # fmt: skip
