"""What goes wrong, as RFC 9457 problems: one table from exceptions to statuses."""

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

encode = msgspec.json.Encoder().encode

TYPE_PREFIX = "urn:keyhole:problem:"
CONTENT_TYPE = "application/problem+json"
NO_PATH = "There is no such path: /openapi.json has all there are."
_REQUEST_ID = re.compile(rb"[A-Za-z0-9._-]{1,64}")


class Refused(KeyholeError):
    """A request that HTTP itself refuses; ``headers`` go with the answer."""

    def __init__(self, detail: str, headers: Headers | None = None) -> None:
        super().__init__(detail)
        self.headers = headers or {}


class Malformed(Refused):
    """A body or a parameter that cannot be read at all."""


class BadBody(Refused):
    """A body that can be read, but is not what its type says; ``errors`` says where."""

    def __init__(self, detail: str, errors: "list[FieldError]") -> None:
        super().__init__(detail)
        self.errors = errors


class Unauthorized(Refused):
    """No key, or none that is known."""


class Forbidden(Refused):
    """A known key that may not do this."""


class NoSuchPath(Refused):
    """A path that leads nowhere."""


class WrongMethod(Refused):
    """A method that a path does not have."""


class NotAcceptable(Refused):
    """A format that is not offered."""


class TooLarge(Refused):
    """A body over the limit."""


class WrongContentType(Refused):
    """A body in a form that is not read."""


class Busy(Refused):
    """More requests at once than are let in."""


class NotReady(Refused):
    """The log is still being read, or cannot be."""


class FieldError(msgspec.Struct, frozen=True):
    """What is wrong with one part of a body, by its JSON pointer."""

    pointer: str
    message: str


class Problem(msgspec.Struct, frozen=True, omit_defaults=True):
    """An error, as RFC 9457 describes it; ``type`` is stable, ``detail`` is for people."""

    type: str
    title: str
    status: int
    detail: str
    instance: str | None = None
    """Names the request; the logs of the service use the same id."""
    errors: list[FieldError] = []
    verdict: dict[str, Any] | None = None
    """Where a measure cannot be learnt: why, the certificate, and what to use instead."""


class Row(NamedTuple):
    """How exceptions of a kind are answered."""

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
    errors.NotAllowed: Row(403, "forbidden", "This key may not do that"),
    NoSuchPath: Row(404, "not-found", "There is no such thing"),
    errors.NotFound: Row(404, "not-found", "There is no such thing"),
    WrongMethod: Row(405, "wrong-method", "This path has no such method"),
    NotAcceptable: Row(406, "not-acceptable", "This format is not offered"),
    errors.Conflict: Row(409, "conflict", "Something else was said before"),
    errors.LastKey: Row(409, "last-key", "The last key cannot be removed"),
    errors.StaleVersion: Row(412, "stale-version", "It has changed since it was read"),
    TooLarge: Row(413, "too-large", "The body is too large", {"connection": "close"}),
    WrongContentType: Row(415, "wrong-content-type", "This kind of body is not read"),
    BadBody: _INVALID,
    library.InvalidInput: _INVALID,
    library.UnknownName: Row(422, "unknown-name", "There is nothing of that name"),
    library.FeedbackTooSmall: Row(422, "feedback-too-small", "The feedback shows too little"),
    library.NotObservable: Row(422, "not-observable", "The feedback does not show this"),
    library.LibraryMissing: Row(422, "library-missing", "A library is not installed"),
    errors.NotLearnable: Row(422, "not-learnable", "This feedback cannot teach this measure"),
    errors.KeyReused: Row(422, "key-reused", "The key came with another request before"),
    Busy: Row(503, "busy", "Too many requests at once", _RETRY),
    NotReady: Row(503, "not-ready", "The service is not ready", _RETRY),
    errors.Preparing: Row(503, "preparing", "The code of this ranker is being prepared", _RETRY),
    errors.RankerDamaged: Row(503, "ranker-damaged", "The log of this ranker is damaged"),
    errors.StoreGone: Row(503, "store-gone", "The file of the log is gone", _RETRY),
    errors.StoreError: Row(503, "store-failed", "The log cannot be used", _RETRY),
    errors.StoreFull: Row(507, "store-full", "There is no room for another event"),
}
_FAULT = Row(500, "fault", "A fault of Keyhole")


def row_of(error: BaseException) -> Row:
    """Return how an exception is answered; what no row knows is a fault of ours."""
    return next((TABLE[kind] for kind in type(error).__mro__ if kind in TABLE), _FAULT)


def problem_of(error: BaseException, request_id: str | None = None) -> Problem:
    """Return the problem that an exception is."""
    row = row_of(error)
    detail = str(error)
    if row is _FAULT:  # what it says is for those who run the service, not for those who ask
        detail = "This is a fault of Keyhole, not of what was given; its log says more."
    return Problem(
        type=TYPE_PREFIX + row.slug,
        title=row.title,
        status=row.status,
        detail=detail,
        instance=None if request_id is None else f"urn:keyhole:request:{request_id}",
        errors=error.errors if isinstance(error, BadBody) else [],
        verdict=error.verdict if isinstance(error, errors.NotLearnable) else None,
    )


def request_id(scope: Scope) -> str:
    """Return the name of a request in logs and problems: the caller's, or one of our own."""
    state = scope["state"]
    if "request_id" not in state:
        given = state["fields"].get(b"x-request-id", b"")
        is_fit = _REQUEST_ID.fullmatch(given) is not None
        state["request_id"] = given.decode() if is_fit else secrets.token_hex(8)
    name: str = state["request_id"]
    return name


def response_to(error: BaseException, scope: Scope) -> Response:
    """Return the response to a request that ended with an exception."""
    problem = problem_of(error, request_id(scope))
    given = error.headers if isinstance(error, Refused) else {}
    headers = {**row_of(error).headers, **given}
    return Response(encode(problem), problem.status, headers, CONTENT_TYPE)


def of_starlette(error: HTTPException) -> Refused:
    """Return what Starlette refuses in our own words."""
    if error.status_code == 405:
        return WrongMethod("This page has no such method.", error.headers)
    return NoSuchPath(NO_PATH)


_PLACE = re.compile(r"(?P<message>.*) - at (?P<key>`key` in )?`\$(?P<path>[^`]*)`", re.DOTALL)
_STEP = re.compile(r"\.([^.\[]+)|\[(\d+)\]|\[\.\.\.\]")


def refused_body(error: Exception) -> Refused:
    """Return what is wrong with a body that msgspec refuses, in words and by JSON pointer."""
    if isinstance(error, msgspec.ValidationError):
        message, pointer = split_message(str(error))
        where = f" at {pointer}" if pointer else ""
        detail = f"The body must be as /openapi.json says: {message}{where}."
        return BadBody(detail, [FieldError(pointer, message)])
    if isinstance(error, msgspec.DecodeError):
        return Malformed(f"The body must be JSON: {_lowered(str(error))}.")
    if isinstance(error, RecursionError):
        return Malformed("The body must be JSON that is not nested this deep.")
    return Malformed("The body must be JSON in UTF-8, got bytes that are none.")


def split_message(text: str) -> tuple[str, str]:
    """Return what msgspec says of a value, and the JSON pointer to it.

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
        if not (name or index):  # the value of a mapping: msgspec does not say under which key
            break
        steps.append(name or index)
    return _lowered(match["message"]), "".join(
        "/" + step.replace("~", "~0").replace("/", "~1") for step in steps
    )


def _lowered(text: str) -> str:
    """Return a message as it stands within a sentence."""
    text = text.rstrip(".")
    return text if text.startswith("JSON") else text[:1].lower() + text[1:]
