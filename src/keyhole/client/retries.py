"""Retries with exponential backoff, without I/O, for the sync and the async client.

An exchange is a generator: it yields a :class:`Call` to send or a :class:`Pause` to sleep,
receives the :class:`Answer` to each call, and returns the result.
"""

import random
from collections.abc import Generator, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, NamedTuple, TypeVar

import msgspec

from keyhole.client.errors import ServiceAway, ServiceError, kind_of

FIRST_PAUSE = 0.1
"""Seconds before the first retry; each further pause is twice as long."""
LONGEST_PAUSE = 30.0
"""The longest pause in seconds; a service with a longer Retry-After counts as down."""

_MAY_PASS = {429, 502, 503, 504}
"""HTTP statuses worth a retry."""

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
    """The timeout in seconds, if it is longer than the client's."""


class Pause(NamedTuple):
    """A pause in seconds."""

    seconds: float


class Answer(NamedTuple):
    """An HTTP response; header names are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class NoAnswer(NamedTuple):
    """The reason why there was no response."""

    why: str


Exchange = Generator[Call | Pause, Answer | NoAnswer | None, T]


def ask(call: Call, retries: int) -> Exchange[Answer]:
    """Make a call with retries; raise the error of the last answer."""
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
    """Return the exponential backoff; half of it is random jitter."""
    longest = min(LONGEST_PAUSE, FIRST_PAUSE * 2.0**attempt)
    return longest * random.uniform(0.5, 1.0)


def error_of(answer: Answer | NoAnswer | None) -> ServiceError:
    """Return the exception of a failed call."""
    if not isinstance(answer, Answer):
        why = "it gave no reason" if answer is None else answer.why
        return ServiceAway(f"The service did not answer: {why}.")
    wait = _seconds_of(answer.headers.get("retry-after"))
    return error_from(_problem_of(answer), answer.status, wait)


def error_from(
    problem: dict[str, Any], status: int, retry_after: float | None = None
) -> ServiceError:
    """Return the exception of an RFC 9457 problem."""
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
    """Return the RFC 9457 problem of an answer; empty for answers of a proxy."""
    if not answer.headers.get("content-type", "").startswith("application/problem+json"):
        return {}
    try:
        return msgspec.json.decode(answer.body, type=dict[str, Any])
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return {}


def _seconds_of(retry_after: str | None) -> float | None:
    """Return the seconds of a Retry-After header: a number or a date.

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
    """Decode the body of an answer."""
    try:
        return msgspec.json.decode(answer.body, type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise ServiceError(
            f"The answer is not from a Keyhole service: {error}.",
            status=answer.status,
        ) from None
