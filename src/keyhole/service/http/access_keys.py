"""Endpoints about access keys, for administrators of all rankers."""

import asyncio
from typing import Annotated

import msgspec
from msgspec import Meta

from keyhole.errors import shown
from keyhole.service.errors import NotFound
from keyhole.service.events import Key
from keyhole.service.http.call import Call
from keyhole.service.http.operations import Operation, Reply
from keyhole.service.http.wire import Answer, json_answer
from keyhole.service.keys import MOST_NAME, ScopeName, new_key

RankerPattern = Annotated[
    str, Meta(min_length=1, max_length=64, pattern=r"\A(\*|[A-Za-z0-9][A-Za-z0-9._-]*)\Z")
]


class KeyRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A key to be: what it may do, and with which rankers."""

    scopes: Annotated[list[ScopeName], Meta(min_length=1, max_length=4)]
    rankers: Annotated[list[RankerPattern], Meta(min_length=1, max_length=1_000)]
    """Names; ``*`` stands for all."""
    expires_days: Annotated[int, Meta(ge=1, le=36_500)] | None = None
    name: Annotated[str, Meta(max_length=MOST_NAME)] = ""
    """What you call it: lists of keys and the log show it."""


class KeyReply(msgspec.Struct, frozen=True):
    """What is known of a key: never the key itself."""

    prefix: str
    scopes: tuple[str, ...]
    rankers: tuple[str, ...]
    created_at: int
    """The wall clock in milliseconds."""
    expires_at: int | None
    name: str
    last_used_at: int | None
    """When it was last used, to a minute; null: never."""


class NewKeyReply(KeyReply, frozen=True, kw_only=True):
    """A new key, which is shown this once."""

    key: str


class KeysReply(msgspec.Struct, frozen=True):
    """All keys."""

    keys: list[KeyReply]


_request = msgspec.json.Decoder(KeyRequest)


async def list_keys(call: Call) -> Answer:
    """List the access keys."""
    keys = await asyncio.to_thread(call.service.desk.store.keys)
    return json_answer(KeysReply([_reply(key) for key in keys]))


async def create_key(call: Call) -> Answer:
    """Create an access key, which is shown this once."""
    request = await call.decode(_request)
    text, key = new_key(
        request.scopes, request.rankers, name=request.name, expires_days=request.expires_days
    )
    await asyncio.to_thread(call.service.desk.store.add_key, key)
    call.service.keyring.forget()
    known = msgspec.structs.asdict(_reply(key))
    return json_answer(NewKeyReply(**known, key=text), 201, ((b"cache-control", b"no-store"),))


async def remove_key(call: Call) -> Answer:
    """Remove an access key."""
    prefix = call.params[0]
    removed = await asyncio.to_thread(call.service.desk.store.remove_key, prefix)
    call.service.keyring.forget()
    if not removed:
        raise NotFound(f"There is no key with the prefix {shown(prefix)}.")
    return Answer(204)


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
        {201: Reply("The key, shown this once.", {"application/json": NewKeyReply})},
        problems=(507,),
        request={"application/json": KeyRequest},
        needs_all=True,
    ),
    Operation(
        "DELETE", "/v1/keys/{prefix}", remove_key, "admin", "Remove an access key",
        {204: Reply("It is gone.")},
        problems=(507,),
        needs_all=True,
    ),
)  # fmt: skip
