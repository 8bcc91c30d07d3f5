"""Endpoints of rankers: create, read, change, list; their state and their live stream."""

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
    """A damaged ranker, which is not served, and the reason."""

    name: str
    detail: str


class RankersReply(msgspec.Struct, frozen=True):
    """A page of the rankers that a key may see, by name, including damaged ones."""

    rankers: list[RankerReply]
    damaged: list[DamagedReply]
    next_after: str | None
    """The value of `after` for the next page; null on the last page."""


async def put_ranker(request: Request, service: "Service") -> Response:
    """Create or replace the configuration of a ranker."""
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
    """Change the given fields of a ranker."""
    return await _revise(request, service, _change)


async def put_items(request: Request, service: "Service") -> Response:
    """Replace the items of a ranker."""
    return await _revise(request, service, _items)


async def edit_items(request: Request, service: "Service") -> Response:
    """Add items to a ranker and remove some."""
    return await _revise(request, service, _edit)


async def _revise(
    request: Request, service: "Service", decoder: "msgspec.json.Decoder[Any]"
) -> Response:
    revision: Revision = await json_of(request, service.settings.max_body_bytes, decoder)
    name, if_match = _there(request, service)
    reply = await revise(service.desk, name, revision, if_match, request.state.access.who)
    return json_response(reply, headers=_etag(reply))


async def reset_ranker(request: Request, service: "Service") -> Response:
    """Discard everything a ranker has learnt."""
    await _no_body(request, service, "A reset")
    name, if_match = _there(request, service)
    reply = await service.desk.submit(Reset(name, if_match, request.state.access.who))
    return json_response(reply, headers=_etag(reply))


async def rename_ranker(request: Request, service: "Service") -> Response:
    """Rename a ranker, keeping its state."""
    asked = await json_of(request, service.settings.max_body_bytes, _rename)
    name, if_match = _there(request, service)
    access = request.state.access
    if not access.sees(asked.to):
        raise Forbidden(f"This request must have a key for the ranker {shown(asked.to)}.")
    command = Rename(name, asked.to, if_match, access.who)
    reply: RankerReply = await service.desk.submit(command)
    return json_response(reply, 201, {**_etag(reply), "location": f"/v1/rankers/{asked.to}"})


async def delete_ranker(request: Request, service: "Service") -> Response:
    """Delete a ranker; its log is kept."""
    await _no_body(request, service, "A deletion")
    name, if_match = _there(request, service)
    await service.desk.submit(Delete(name, if_match, request.state.access.who))
    return Response(status_code=204)


async def _no_body(request: Request, service: "Service", what: str) -> None:
    body = await body_of(request, service.settings.max_body_bytes, JSON_TYPES)
    if body not in (b"", b"{}"):
        raise InvalidInput(f"{what} must have an empty body.")


def _there(request: Request, service: "Service") -> tuple[str, int | None]:
    """Return the name of an existing ranker, and the version in If-Match."""
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
    """Return the progress of a ranker and the hash of its state."""
    live = service.desk.engine.ranker(request.path_params["ranker"])
    return json_response(await service.desk.read(live.state))


async def stream(request: Request, service: "Service") -> Response:
    """Stream the progress of a ranker: an event whenever it shows a list or learns."""
    ranker = request.path_params["ranker"]
    service.desk.engine.ranker(ranker)
    changes = service.desk.subscribe(ranker)
    return LiveStream(_messages(changes, service.settings.heartbeat_seconds), service)


async def _messages(changes: AsyncIterator[dict[str, Any]], beat: float) -> AsyncIterator[bytes]:
    """Yield server-sent events until the desk stops, with heartbeats in between."""
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
    """Return the name of a new ranker, or raise."""
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
    """Return the version in If-Match; 0, which never matches, for a malformed ETag."""
    given = request.headers.get("if-match")
    if given is None:
        return None
    if given.strip() == "*":
        if not exists:
            raise StaleVersion("If-Match: * requires that the ranker exists, but it does not.")
        return None
    tag = given.strip().strip('"')
    if not (given.strip() == f'"{tag}"' and tag.isascii() and tag.isdigit() and len(tag) < 19):
        raise StaleVersion(f"If-Match must be the ETag of the ranker, got {shown(given)}.")
    return int(tag)


_TAG = Parameter("ETag", {"type": "string"}, "The version, to send in If-Match.")
_REPLY = {"application/json": RankerReply}
_MATCH = (Parameter("If-Match", {"type": "string"}, "The ETag of the version to change, or `*`."),)
_BODYLESS = (400, 408, 409, 412, 413, 415, 422, 507)
_CHANGED = {200: Reply("The ranker after the change.", _REPLY, (_TAG,))}

OPERATIONS = (
    Operation(
        "GET", "/v1/rankers", list_rankers, "read", "List rankers",
        {200: Reply("A page of rankers.", {"application/json": RankersReply})},
        problems=(400, 422),
        query=(
            Parameter(
                "limit",
                {"type": "integer", "minimum": 1, "maximum": _LONGEST_PAGE, "default": _PAGE},
                "Maximum number of rankers, including damaged ones.",
            ),
            Parameter("after", {"type": "string"}, "Return rankers after this name."),
            Parameter("search", {"type": "string"}, "Return rankers with this text in their name."),
        ),
    ),
    Operation(
        "PUT", "/v1/rankers/{ranker}", put_ranker, "admin", "Create or change a ranker",
        {
            200: Reply("The ranker after the change.", _REPLY, (_TAG,)),
            201: Reply("Created.", _REPLY, (_TAG,)),
        },
        problems=(409, 412, 507),
        request={"application/json": RankerRequest},
        headers=_MATCH,
    ),
    Operation(
        "PATCH", "/v1/rankers/{ranker}", patch_ranker, "admin", "Change fields of a ranker",
        _CHANGED, problems=(409, 412, 507), request={"application/json": RankerChange},
        headers=_MATCH,
    ),
    Operation(
        "PUT", "/v1/rankers/{ranker}/items", put_items, "admin", "Replace the items of a ranker",
        _CHANGED, problems=(409, 412, 507), request={"application/json": ItemsRequest},
        headers=_MATCH,
    ),
    Operation(
        "POST", "/v1/rankers/{ranker}/items", edit_items, "admin",
        "Add and remove items of a ranker",
        _CHANGED, problems=(409, 412, 507), request={"application/json": ItemsEdit},
        headers=_MATCH,
    ),
    Operation(
        "POST", "/v1/rankers/{ranker}/reset", reset_ranker, "admin",
        "Discard everything a ranker has learnt",
        {200: Reply("It begins anew.", _REPLY, (_TAG,))}, problems=_BODYLESS, headers=_MATCH,
    ),
    Operation(
        "POST", "/v1/rankers/{ranker}/rename", rename_ranker, "admin", "Rename a ranker",
        {
            201: Reply(
                "The ranker under its new name.", _REPLY,
                (_TAG, Parameter("Location", {"type": "string"}, "The new URL of the ranker.")),
            )
        },
        problems=(409, 412, 507), request={"application/json": RenameRequest}, headers=_MATCH,
    ),
    Operation(
        "DELETE", "/v1/rankers/{ranker}", delete_ranker, "admin", "Delete a ranker",
        {204: Reply("The ranker is deleted; its log is kept.")}, problems=_BODYLESS, headers=_MATCH,
    ),
    Operation(
        "GET", "/v1/rankers/{ranker}", get_ranker, "read", "Read a ranker",
        {200: Reply("The ranker.", _REPLY, (_TAG,))},
    ),
    Operation(
        "GET", "/v1/rankers/{ranker}/state", get_state, "read", "Read the progress of a ranker",
        {200: Reply("The round and state hash of the ranker.", {"application/json": StateReply})},
    ),
    Operation(
        "GET", "/v1/rankers/{ranker}/stream", stream, "read", "Stream the progress of a ranker",
        {200: Reply("Server-sent events.", {"text/event-stream": str})},
    ),
)  # fmt: skip
