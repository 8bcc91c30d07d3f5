"""Maps exceptions to RFC 9457 problems and HTTP statuses, in one table."""

import re
import secrets
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import msgspec
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.types import Scope

from keyhole.base import errors as library
from keyhole.base.errors import KeyholeError
from keyhole.service import errors

Headers = Mapping[str, str]

_encoder = msgspec.json.Encoder()
encode, encode_lines = _encoder.encode, _encoder.encode_lines

TYPE_PREFIX = "urn:keyhole:problem:"
CONTENT_TYPE = "application/problem+json"
NO_PATH = "This path does not exist: /openapi.json lists all paths."
_REQUEST_ID = re.compile(rb"[A-Za-z0-9._-]{1,64}")


class Refused(KeyholeError):
    """A request refused at the HTTP level; ``headers`` are added to the response."""

    def __init__(self, detail: str, headers: Headers | None = None) -> None:
        super().__init__(detail)
        self.headers = headers or {}


class Malformed(Refused):
    """A body or parameter that cannot be parsed."""


class BadBody(Refused):
    """A body that does not match its type; ``errors`` has the places."""

    def __init__(self, detail: str, errors: "list[FieldError]") -> None:
        super().__init__(detail)
        self.errors = errors


class Unauthorized(Refused):
    """No access key, or an invalid one."""


class Forbidden(Refused):
    """A valid key without the required permission."""


class NoSuchPath(Refused):
    """A path that does not exist."""


class WrongMethod(Refused):
    """A method that the path does not support."""


class NotAcceptable(Refused):
    """No offered format matches the Accept header."""


class TooLarge(Refused):
    """A body over the size limit."""


class WrongContentType(Refused):
    """A body with an unsupported content type."""


class RateLimited(Refused):
    """More requests of an access key than its limit allows."""


class Busy(Refused):
    """Too many concurrent requests."""


class NotReady(Refused):
    """The log is still being read, or cannot be opened."""


class FieldError(msgspec.Struct, frozen=True):
    """An error in one part of a body, with its JSON pointer."""

    pointer: str
    message: str


class ProblemDetails(msgspec.Struct, frozen=True, omit_defaults=True):
    """An RFC 9457 problem; ``type`` is stable, ``detail`` is for people."""

    type: str
    title: str
    status: int
    detail: str
    instance: str | None = None
    """The request id, which the service's logs use as well."""
    errors: list[FieldError] = []
    verdict: dict[str, Any] | None = None
    """If a measure cannot be learnt: the reason, a certificate and alternatives."""


class Row(NamedTuple):
    """The status, type and title of an exception."""

    status: int
    slug: str
    title: str
    headers: Headers = MappingProxyType({})


_RETRY = {"retry-after": "1"}
_BEARER = {"www-authenticate": 'Bearer realm="keyhole"'}
_INVALID = Row(422, "invalid", "The request cannot be used")

TABLE: dict[type[BaseException], Row] = {
    Malformed: Row(400, "malformed", "The request cannot be read"),
    Unauthorized: Row(401, "unauthorized", "A key is needed", _BEARER),
    Forbidden: Row(403, "forbidden", "This key may not do that"),
    errors.ScopeMissing: Row(403, "forbidden", "This key may not do that"),
    NoSuchPath: Row(404, "not-found", "Not found"),
    errors.NoSuchResource: Row(404, "not-found", "Not found"),
    WrongMethod: Row(405, "wrong-method", "Method not allowed"),
    NotAcceptable: Row(406, "not-acceptable", "This format is not offered"),
    errors.ConflictingRequest: Row(409, "conflict", "Conflict with an earlier request"),
    errors.LastKey: Row(409, "last-key", "The last key cannot be removed"),
    errors.StaleVersion: Row(412, "stale-version", "The ranker has changed since it was read"),
    TooLarge: Row(413, "too-large", "The body is too large", {"connection": "close"}),
    WrongContentType: Row(415, "wrong-content-type", "Unsupported content type"),
    BadBody: _INVALID,
    library.InvalidInput: _INVALID,
    library.UnknownName: Row(422, "unknown-name", "Unknown name"),
    library.FeedbackTooSmall: Row(422, "feedback-too-small", "The feedback shows too little"),
    library.NotObservable: Row(422, "not-observable", "The measure is not observable"),
    library.LibraryMissing: Row(422, "library-missing", "A library is not installed"),
    errors.NotLearnable: Row(422, "not-learnable", "The measure cannot be learnt"),
    errors.KeyReused: Row(422, "key-reused", "The idempotency key was used for another request"),
    RateLimited: Row(429, "rate-limited", "Too many requests with this key"),
    Busy: Row(503, "busy", "Too many concurrent requests", _RETRY),
    NotReady: Row(503, "not-ready", "The service is not ready", _RETRY),
    errors.Preparing: Row(503, "preparing", "The code of this ranker is still compiling", _RETRY),
    errors.RankerDamaged: Row(503, "ranker-damaged", "The log of this ranker is damaged"),
    errors.StoreGone: Row(503, "store-gone", "The file of the log is gone", _RETRY),
    errors.StoreError: Row(503, "store-failed", "The log cannot be used", _RETRY),
    errors.StoreFull: Row(507, "store-full", "The disk is full"),
}
_FAULT = Row(500, "fault", "Internal error")


def row_of(error: BaseException) -> Row:
    """Return the row of an exception; an unknown one is an internal error."""
    return next((TABLE[kind] for kind in type(error).__mro__ if kind in TABLE), _FAULT)


def problem_of(error: BaseException, request_id: str | None = None) -> ProblemDetails:
    """Return the problem of an exception."""
    row = row_of(error)
    detail = str(error)
    if row is _FAULT:  # its message is for operators, not for callers
        detail = "This is a bug in Keyhole, not in the request; the service log has the details."
    return ProblemDetails(
        type=TYPE_PREFIX + row.slug,
        title=row.title,
        status=row.status,
        detail=detail,
        instance=None if request_id is None else f"urn:keyhole:request:{request_id}",
        errors=error.errors if isinstance(error, BadBody) else [],
        verdict=error.verdict if isinstance(error, errors.NotLearnable) else None,
    )


def request_id(scope: Scope) -> str:
    """Return the request id: the caller's, or a new one."""
    state = scope["state"]
    if "request_id" not in state:
        given = state["fields"].get(b"x-request-id", b"")
        is_fit = _REQUEST_ID.fullmatch(given) is not None
        state["request_id"] = given.decode() if is_fit else secrets.token_hex(8)
    name: str = state["request_id"]
    return name


def response_to(error: BaseException, scope: Scope) -> Response:
    """Return the problem response of an exception."""
    problem = problem_of(error, request_id(scope))
    given = error.headers if isinstance(error, Refused) else {}
    headers = {**row_of(error).headers, **given}
    return Response(encode(problem), problem.status, headers, CONTENT_TYPE)


def of_starlette(error: HTTPException) -> Refused:
    """Translate an exception of Starlette."""
    if error.status_code == 405:
        return WrongMethod("This page does not support this method.", error.headers)
    return NoSuchPath(NO_PATH)


_PLACE = re.compile(r"(?P<message>.*) - at (?P<key>`key` in )?`\$(?P<path>[^`]*)`", re.DOTALL)
_STEP = re.compile(r"\.([^.\[]+)|\[(\d+)\]|\[\.\.\.\]")


def refused_body(error: Exception) -> Refused:
    """Translate an error of msgspec into a message with JSON pointers."""
    if isinstance(error, msgspec.ValidationError):
        message, pointer = split_message(str(error))
        where = f" at {pointer}" if pointer else ""
        detail = f"The body must match its schema in /openapi.json: {message}{where}."
        return BadBody(detail, [FieldError(pointer, message)])
    if isinstance(error, msgspec.DecodeError):
        return Malformed(f"The body must be JSON: {_lowered(str(error))}.")
    if isinstance(error, RecursionError):
        return Malformed("The body must be JSON with less nesting.")
    return Malformed("The body must be JSON in UTF-8, got invalid UTF-8.")


def split_message(text: str) -> tuple[str, str]:
    """Split an error message of msgspec into its text and the JSON pointer of the value.

    Examples
    --------
    >>> split_message("Expected `str`, got `int` - at `$.items[3].id`")
    ('expected `str`, got `int`', '/items/3/id')
    >>> split_message("Expected `float` >= 0.0 - at `$.truth[...]`")
    ('expected `float` >= 0.0', '/truth')
    """
    match = _PLACE.fullmatch(text)
    if match is None:
        return _lowered(text), ""
    steps: list[str] = []
    for name, index in _STEP.findall(match["path"]):
        if not (name or index):  # a value of a mapping: msgspec does not report its key
            break
        steps.append(name or index)
    return _lowered(match["message"]), "".join(
        "/" + step.replace("~", "~0").replace("/", "~1") for step in steps
    )


def _lowered(text: str) -> str:
    """Return a message with a small first letter, for use inside a sentence."""
    text = text.rstrip(".")
    return text if text.startswith("JSON") else text[:1].lower() + text[1:]
