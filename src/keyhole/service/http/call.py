"""A request as handlers see it: its body within limits, its parameters checked."""

import re
import secrets
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import parse_qsl

import msgspec

from keyhole.errors import InvalidInput, check_choice, shown
from keyhole.service.http.problems import (
    Malformed,
    Refused,
    TooLarge,
    WrongContentType,
    refused_body,
)
from keyhole.service.http.wire import Receive, Scope
from keyhole.service.keys import Access

if TYPE_CHECKING:
    from keyhole.service.http.service import Service

T = TypeVar("T")
JSON_TYPES = (b"application/json",)
NDJSON_TYPES = (b"application/x-ndjson", b"application/jsonl", b"application/ndjson")
_REQUEST_ID = re.compile(rb"[A-Za-z0-9._-]{1,64}")
_NUL = re.compile(rb"(?<!\\)(?:\\\\)*\\u0000")


class Gone(Refused):
    """Whoever asked has left: there is nobody to answer."""


class Call:
    """A request: where it leads, who asks, and what it brings."""

    __slots__ = (
        "_request_id", "access", "began", "content", "headers", "operation", "params", "receive",
        "scope", "service",
    )  # fmt: skip

    def __init__(
        self,
        service: "Service",
        scope: Scope,
        receive: Receive,
        headers: dict[bytes, bytes],
        content: bytes | None = None,
    ) -> None:
        self.service = service
        self.scope = scope
        self.receive = receive
        self.headers = headers
        self.content = content
        """The body, where it has come whole; None where it is yet to be received."""
        self._request_id: str | None = None
        self.params: tuple[str, ...] = ()
        self.operation = "unknown"
        self.began = 0.0
        self.access: Access

    @property
    def request_id(self) -> str:
        """The name of this request in logs and problems: the caller's, or one of our own."""
        if self._request_id is None:
            given = self.headers.get(b"x-request-id", b"")
            is_fit = _REQUEST_ID.fullmatch(given) is not None
            self._request_id = given.decode() if is_fit else secrets.token_hex(8)
        return self._request_id

    def header(self, name: bytes) -> str | None:
        """Return a header as text."""
        value = self.headers.get(name)
        return None if value is None else value.decode("latin-1")

    def query(self, *names: str) -> dict[str, str]:
        """Return the parameters after the question mark, of which each may be given once."""
        try:
            pairs = parse_qsl(
                self.scope["query_string"].decode("ascii"),
                keep_blank_values=True,
                strict_parsing=bool(self.scope["query_string"]),
                errors="strict",
                max_num_fields=32,
            )
        except ValueError:  # which UnicodeDecodeError is
            raise Malformed("The query of a URL must be pairs NAME=VALUE in UTF-8.") from None
        found: dict[str, str] = {}
        for name, value in pairs:
            check_choice(name, "A parameter of this path", names or ("none",))
            if name in found:
                raise InvalidInput(f"The parameter {name} must be given once, got it twice.")
            found[name] = value
        return found

    async def decode(self, decoder: "msgspec.json.Decoder[T]", empty: bytes = b"") -> T:
        """Return the body, checked against its type; ``empty`` stands for a body without bytes."""
        body = await self.body(JSON_TYPES)
        return decode(decoder, body or empty)

    def check_head(self, types: tuple[bytes, ...]) -> None:
        """Raise where the head of a request says that its body is too large or of another kind."""
        headers, most = self.headers, self.service.settings.max_body_bytes
        length = headers.get(b"content-length")
        if length is not None and length != b"0":
            if not length.isdigit() or int(length[:20]) > most:
                raise _too_large(most)
            _check_type(headers, types)

    async def body(self, types: tuple[bytes, ...]) -> bytes:
        """Return the body, or raise before it is read if it is too large or of another kind."""
        self.check_head(types)
        if self.content is not None:
            return self.content
        headers, most = self.headers, self.service.settings.max_body_bytes
        length = headers.get(b"content-length")
        pieces: list[bytes] = []
        n_bytes, has_more = 0, True
        while has_more:
            message = await self.receive()
            if message["type"] != "http.request":
                raise Gone("Whoever asked has left, or was too slow.")
            has_more = message.get("more_body", False)
            pieces.append(message.get("body", b""))
            n_bytes += len(pieces[-1])
            if n_bytes > most:
                raise _too_large(most)
        if n_bytes and length is None:
            _check_type(headers, types)
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def decode(decoder: "msgspec.json.Decoder[T]", body: bytes) -> T:
    """Return JSON as its type has it, or raise; where a name comes twice, the last one counts."""
    if b"\\u0000" in body and _NUL.search(body):
        raise InvalidInput("Strings must not hold the character NUL, got \\u0000 in the body.")
    try:
        return decoder.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise refused_body(error) from None


def number(text: str | None, name: str, *, default: int, least: int, most: int) -> int:
    """Return a whole number of the query."""
    if text is None:
        return default
    if not (text.isascii() and text.isdigit() and len(text) <= 19 and least <= int(text) <= most):
        raise InvalidInput(
            f"The parameter {name} must be an integer between {least} and {most}, got "
            f"{shown(text)}."
        )
    return int(text)


def check_settings(settings: dict[str, Any]) -> None:
    """Raise unless settings are a few plain values: they are shown in sentences and pages."""
    waiting: list[tuple[Any, int]] = [(settings, 0)]
    for count, (value, depth) in enumerate(_walk(waiting)):
        if depth > _DEEPEST or count > _MOST_VALUES:
            raise InvalidInput(
                f"`settings` must hold at most {_MOST_VALUES} values, nested {_DEEPEST} deep, got "
                "more."
            )
        if isinstance(value, str) and len(value) > _LONGEST_TEXT:
            raise InvalidInput(
                f"`settings` must hold texts of at most {_LONGEST_TEXT} characters, got "
                f"{len(value)}."
            )


_DEEPEST = 8
_MOST_VALUES = 10_000
_LONGEST_TEXT = 1_000


def _walk(waiting: list[tuple[Any, int]]) -> Any:
    """Yield every value and how deep it lies."""
    while waiting:
        value, depth = waiting.pop()
        yield value, depth
        if isinstance(value, dict):
            waiting += [(part, depth + 1) for pair in value.items() for part in pair]
        elif isinstance(value, list):
            waiting += [(part, depth + 1) for part in value]


def _too_large(most: int) -> TooLarge:
    return TooLarge(f"A body must have at most {most} bytes.")


def _check_type(headers: dict[bytes, bytes], types: tuple[bytes, ...]) -> None:
    """Raise unless a body is of a kind that is read, and not compressed."""
    encoding = headers.get(b"content-encoding", b"identity").lower()
    if encoding != b"identity":
        got = shown(encoding.decode("latin-1"))
        raise WrongContentType(f"A body must come without Content-Encoding, got {got}.")
    given = headers.get(b"content-type", b"")
    if given in types:
        return
    kind, _, rest = given.partition(b";")
    charset = rest.strip().lower().replace(b'"', b"").replace(b" ", b"")
    if kind.strip().lower() not in types or charset not in (b"", b"charset=utf-8"):
        wanted = types[0].decode()
        got = shown(given.decode("latin-1")) if given else "none"
        raise WrongContentType(f"The Content-Type of the body must be {wanted}, got {got}.")
