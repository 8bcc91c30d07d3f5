"""Reads and validates the body and the query parameters of a request."""

import re
from typing import TypeVar
from urllib.parse import parse_qsl

import msgspec
from starlette.requests import ClientDisconnect, Request

from keyhole.base.errors import InvalidInput, check_choice, shown
from keyhole.service.http.problems import Malformed, TooLarge, WrongContentType, refused_body

T = TypeVar("T")
Fields = dict[bytes, bytes]
JSON_TYPES = (b"application/json",)
NDJSON_TYPES = (b"application/x-ndjson", b"application/jsonl", b"application/ndjson")
_NUL = re.compile(rb"(?<!\\)(?:\\\\)*\\u0000")


def query_of(request: Request, *names: str) -> dict[str, str]:
    """Return the query parameters; each may be given once."""
    text = request.scope["query_string"]
    try:
        pairs = parse_qsl(
            text.decode("ascii"),
            keep_blank_values=True,
            strict_parsing=bool(text),
            errors="strict",
            max_num_fields=32,
        )
    except ValueError:  # includes UnicodeDecodeError
        raise Malformed("The query string must be NAME=VALUE pairs in UTF-8.") from None
    found: dict[str, str] = {}
    for name, value in pairs:
        check_choice(name, "A parameter of this path", names or ("none",))
        if name in found:
            raise InvalidInput(f"The parameter {name} must be given once, got it twice.")
        found[name] = value
    return found


def number(text: str | None, name: str, *, default: int, least: int, most: int) -> int:
    """Return an integer query parameter."""
    if text is None:
        return default
    if not (text.isascii() and text.isdigit() and len(text) <= 19 and least <= int(text) <= most):
        raise InvalidInput(
            f"The parameter {name} must be an integer between {least} and {most}, got "
            f"{shown(text)}."
        )
    return int(text)


async def json_of(
    request: Request, most: int, decoder: "msgspec.json.Decoder[T]", empty: bytes = b""
) -> T:
    """Return the validated JSON body; ``empty`` stands for an empty body."""
    return decode(decoder, await body_of(request, most, JSON_TYPES) or empty)


def decode(decoder: "msgspec.json.Decoder[T]", body: bytes) -> T:
    """Decode and validate JSON; of duplicate keys the last one counts."""
    if b"\\u0000" in body and _NUL.search(body):
        raise InvalidInput("Strings must not contain NUL characters, got \\u0000 in the body.")
    try:
        return decoder.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise refused_body(error) from None


async def body_of(request: Request, most: int, types: tuple[bytes, ...]) -> bytes:
    """Return the body; raise before reading it if its size or content type is not allowed."""
    fields: Fields = request.scope["state"]["fields"]
    length = fields.get(b"content-length", b"").strip()
    if length not in (b"", b"0"):
        if not length.isdigit() or int(length[:20]) > most:
            raise _too_large(most)
        _check_type(fields, types)
    pieces: list[bytes] = []
    n_bytes, has_more = 0, True
    while has_more:
        message = await request.receive()
        if message["type"] != "http.request":
            raise ClientDisconnect
        has_more = message.get("more_body", False)
        pieces.append(message.get("body", b""))
        n_bytes += len(pieces[-1])
        if n_bytes > most:
            raise _too_large(most)
    if n_bytes and not length:
        _check_type(fields, types)
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def _too_large(most: int) -> TooLarge:
    return TooLarge(f"A body must have at most {most} bytes.")


def _check_type(fields: Fields, types: tuple[bytes, ...]) -> None:
    """Raise unless the content type is supported and the body is not compressed."""
    encoding = fields.get(b"content-encoding", b"identity").lower()
    if encoding != b"identity":
        got = shown(encoding.decode("latin-1"))
        raise WrongContentType(f"A body must not have a Content-Encoding, got {got}.")
    given = fields.get(b"content-type", b"")
    if given in types:
        return
    kind, _, rest = given.partition(b";")
    charset = rest.strip().lower().replace(b'"', b"").replace(b" ", b"")
    if kind.strip().lower() not in types or charset not in (b"", b"charset=utf-8"):
        wanted = types[0].decode()
        got = shown(given.decode("latin-1")) if given else "none"
        raise WrongContentType(f"The Content-Type of the body must be {wanted}, got {got}.")
