"""Exceptions of the client."""

from typing import Any

from keyhole.base.errors import InvalidInput, KeyholeError


class ServiceError(KeyholeError):
    """A call that failed.

    ``status`` is the HTTP status, None without an answer. ``type`` identifies the problem for
    programs, ``detail`` explains it to people, and ``errors`` has a ``pointer`` (RFC 6901) and a
    ``message`` for every invalid part of the request. ``extra`` has further fields of the problem,
    such as the ``verdict`` on a measure that cannot be learnt. ``retry_after`` is the number of
    seconds the service asks to wait before a retry.
    """

    def __init__(
        self,
        detail: str,
        *,
        status: int | None = None,
        type: str = "about:blank",
        errors: list[dict[str, Any]] | None = None,
        extra: dict[str, Any] | None = None,
        retry_after: float | None = None,
    ) -> None:
        self.detail, self.status, self.type = detail, status, type
        self.errors, self.extra = errors or [], extra or {}
        self.retry_after = retry_after
        super().__init__(detail)

    @property
    def pointers(self) -> list[str]:
        """The JSON pointers to the invalid parts of the request."""
        return [each["pointer"] for each in self.errors]


class ServiceAway(ServiceError):
    """The service did not answer, or is temporarily unavailable."""


class NotAllowed(ServiceError):
    """The access key is missing or invalid, or lacks the scope."""


class NotFound(ServiceError):
    """A ranker or an event that does not exist, or that this key may not see."""


class Conflict(ServiceError):
    """A conflict with an earlier request, or the ranker has changed since it was read."""


class RequestRefused(ServiceError, InvalidInput):
    """An invalid request."""


_KINDS: dict[int, type[ServiceError]] = {
    401: NotAllowed,
    403: NotAllowed,
    404: NotFound,
    409: Conflict,
    412: Conflict,
    429: ServiceAway,
}


def kind_of(status: int) -> type[ServiceError]:
    """Return the exception class of an HTTP status."""
    if status in _KINDS:
        return _KINDS[status]
    if status >= 500:
        return ServiceAway
    return RequestRefused if status >= 400 else ServiceError
