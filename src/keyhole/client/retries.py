"""How a call is made, without a wire: both clients carry out the steps that are written here.

A talk is a generator. It yields what to do next, a :class:`Call` to send or a :class:`Pause` to
make, is sent the :class:`Answer` to each call, and returns what its caller wants to know. Retries
are thus written once, and are the same for both clients.
"""

import random
from collections.abc import Generator, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, NamedTuple, TypeVar

import msgspec

from keyhole.client.errors import ServiceAway, ServiceError, kind_of

FIRST_PAUSE = 0.1
"""Seconds before a call is made again; each further pause is twice as long."""
LONGEST_PAUSE = 30.0
"""Seconds that are waited at most: a service that asks for more is away."""

_MAY_PASS = {429, 502, 503, 504}
"""Statuses after which the same call may succeed a moment later."""

_PROBLEM_FIELDS = {"type", "title", "status", "detail", "errors", "instance"}

T = TypeVar("T")


class Call(NamedTuple):
    """A request to send."""

    method: str
    path: str
    body: bytes = b""
    headers: Mapping[str, str] = {}
    params: Mapping[str, str] = {}
    seconds: float = 0.0
    """How long the answer may take, where that is longer than others may."""


class Pause(NamedTuple):
    """Seconds to let pass."""

    seconds: float


class Answer(NamedTuple):
    """What came back; the names of headers are in small letters."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class NoAnswer(NamedTuple):
    """Why nothing came back."""

    why: str


Talk = Generator[Call | Pause, Answer | NoAnswer | None, T]


def ask(call: Call, retries: int) -> Talk[Answer]:
    """Make a call, up to so many times again where that can help, or raise what was answered."""
    for attempt in range(retries + 1):
        answer = yield call
        if isinstance(answer, Answer) and 200 <= answer.status < 300:
            return answer
        error = error_of(answer)
        if attempt == retries or not (error.status is None or error.status in _MAY_PASS):
            raise error
        asked_for = error.retry_after or 0.0
        if asked_for > LONGEST_PAUSE:
            raise error
        yield Pause(max(asked_for, _backoff(attempt)))
    raise AssertionError  # the last attempt returns or raises


def _backoff(attempt: int) -> float:
    """Return a pause that doubles; half of it is random, so that clients do not come at once."""
    longest = min(LONGEST_PAUSE, FIRST_PAUSE * 2.0**attempt)
    return longest * random.uniform(0.5, 1.0)


def error_of(answer: Answer | NoAnswer | None) -> ServiceError:
    """Return what an answer says that is not what was asked for."""
    if not isinstance(answer, Answer):
        why = "it gave no reason" if answer is None else answer.why
        return ServiceAway(f"The service did not answer: {why}.")
    wait = _seconds_of(answer.headers.get("retry-after"))
    return error_from(_problem_of(answer), answer.status, wait)


def error_from(
    problem: dict[str, Any], status: int, retry_after: float | None = None
) -> ServiceError:
    """Return the exception that a problem (RFC 9457) stands for."""
    title = problem.get("title") or f"The service answered with status {status}."
    return kind_of(status)(
        str(problem.get("detail") or title),
        status=status,
        type=str(problem.get("type", "about:blank")),
        errors=[e for e in problem.get("errors") or [] if isinstance(e, dict) and "pointer" in e],
        extra={name: value for name, value in problem.items() if name not in _PROBLEM_FIELDS},
        retry_after=retry_after,
    )


def _problem_of(answer: Answer) -> dict[str, Any]:
    """Return the problem (RFC 9457) that an answer tells; what a proxy answers tells none."""
    if not answer.headers.get("content-type", "").startswith("application/problem+json"):
        return {}
    try:
        return msgspec.json.decode(answer.body, type=dict[str, Any])
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return {}


def _seconds_of(retry_after: str | None) -> float | None:
    """Return the seconds that a Retry-After header asks for: a number of them, or a date.

    Examples
    --------
    >>> _seconds_of("1.5"), _seconds_of("Thu, 01 Jan 1970 00:00:00 GMT"), _seconds_of("soon")
    (1.5, 0.0, None)
    """
    if retry_after is None:
        return None
    if retry_after.replace(".", "", 1).isdecimal() and retry_after.isascii():
        return float(retry_after)
    try:
        at = parsedate_to_datetime(retry_after)
    except ValueError:
        return None
    at = at if at.tzinfo is not None else at.replace(tzinfo=UTC)
    return max(0.0, (at - datetime.now(UTC)).total_seconds())


def read(answer: Answer, kind: type[T]) -> T:
    """Return the body of an answer as what it must be."""
    try:
        return msgspec.json.decode(answer.body, type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise ServiceError(
            f"The answer must be that of a Keyhole service, got something else: {error}.",
            status=answer.status,
        ) from None
