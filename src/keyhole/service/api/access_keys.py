"""Endpoints of access keys, for administrators of all rankers."""

import asyncio
from typing import TYPE_CHECKING, Annotated

import msgspec
from msgspec import Meta
from starlette.requests import Request
from starlette.responses import Response

from keyhole.base.errors import shown
from keyhole.service.api.operations import Operation, Reply, json_response
from keyhole.service.errors import NoSuchResource
from keyhole.service.events import Key
from keyhole.service.http.request import json_of
from keyhole.service.keys import MOST_NAME, ScopeName, new_key

if TYPE_CHECKING:
    from keyhole.service.http.context import Service

RankerPattern = Annotated[
    str, Meta(min_length=1, max_length=64, pattern=r"\A(\*|[A-Za-z0-9][A-Za-z0-9._-]*)\Z")
]


class KeyRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A new access key: its scopes and rankers."""

    scopes: Annotated[list[ScopeName], Meta(min_length=1, max_length=4)]
    rankers: Annotated[list[RankerPattern], Meta(min_length=1, max_length=1_000)]
    """The rankers it may use; ``*``: all."""
    expires_days: Annotated[int, Meta(ge=1, le=36_500)] | None = None
    name: Annotated[str, Meta(max_length=MOST_NAME)] = ""
    """A name, shown in the list of keys and in the log."""


class KeyReply(msgspec.Struct, frozen=True):
    """An access key without its secret."""

    prefix: str
    scopes: tuple[str, ...]
    rankers: tuple[str, ...]
    created_at: int
    """Milliseconds since the Unix epoch."""
    expires_at: int | None
    name: str
    last_used_at: int | None
    """The time of its last use, to the minute; null: never used."""


class NewKeyReply(KeyReply, frozen=True, kw_only=True):
    """A new access key with its secret, which is shown only once."""

    key: str


class KeysReply(msgspec.Struct, frozen=True):
    """All keys."""

    keys: list[KeyReply]


_request = msgspec.json.Decoder(KeyRequest)


async def list_keys(request: Request, service: "Service") -> Response:
    """List the access keys."""
    keys = await asyncio.to_thread(service.desk.store.keys)
    return json_response(KeysReply([_reply(key) for key in keys]))


async def create_key(request: Request, service: "Service") -> Response:
    """Create an access key; its secret is shown only once."""
    asked = await json_of(request, service.settings.max_body_bytes, _request)
    text, key = new_key(
        asked.scopes, asked.rankers, name=asked.name, expires_days=asked.expires_days
    )
    await asyncio.to_thread(service.desk.store.add_key, key)
    service.keyring.forget()
    known = msgspec.structs.asdict(_reply(key))
    return json_response(NewKeyReply(**known, key=text), 201, {"cache-control": "no-store"})


async def remove_key(request: Request, service: "Service") -> Response:
    """Remove an access key."""
    prefix = request.path_params["prefix"]
    removed = await asyncio.to_thread(service.remove_key, prefix)
    service.keyring.forget()
    if not removed:
        raise NoSuchResource(f"There is no key with the prefix {shown(prefix)}.")
    return Response(status_code=204)


def _reply(key: Key) -> KeyReply:
    return KeyReply(
        key.prefix,
        key.scopes,
        key.rankers,
        key.created_at,
        key.expires_at,
        key.name,
        key.used_at,
    )


OPERATIONS = (
    Operation(
        "GET", "/v1/keys", list_keys, "admin", "List access keys",
        {200: Reply("All keys, without their secrets.", {"application/json": KeysReply})},
        needs_all=True,
    ),
    Operation(
        "POST", "/v1/keys", create_key, "admin", "Create an access key",
        {201: Reply("The key, shown only once.", {"application/json": NewKeyReply})},
        problems=(507,),
        request={"application/json": KeyRequest},
        needs_all=True,
    ),
    Operation(
        "DELETE", "/v1/keys/{prefix}", remove_key, "admin", "Remove an access key",
        {204: Reply("The key is removed.")},
        problems=(409, 507),
        needs_all=True,
    ),
)  # fmt: skip
