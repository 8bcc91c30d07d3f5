"""What a service may answer instead of what was asked for."""

from typing import Any

from keyhole.base.errors import InvalidInput, KeyholeError


class ServiceError(KeyholeError):
    """A call that was not answered with what was asked for.

    ``status`` is that of HTTP, None where nobody answered; ``type`` names the kind of problem for
    programs, ``detail`` says it to people, and ``errors`` has a ``pointer`` (RFC 6901) and a
    ``message`` for every part of the request that cannot be used. ``extra`` is what else the
    problem tells, such as the ``verdict`` on a measure that cannot be learnt. ``retry_after`` is
    how many seconds the service asks to wait.
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
        """Where in the request the mistakes are."""
        return [each["pointer"] for each in self.errors]


class ServiceAway(ServiceError):
    """Nobody answered, or the service says that it cannot answer now."""


class NotAllowed(ServiceError):
    """A key that is missing, wrong, or not for this."""


class NotFound(ServiceError):
    """A ranker or an event that is not there, or not for this key."""


class Conflict(ServiceError):
    """Something else was said before, or the ranker has changed since it was read."""


class RequestRefused(ServiceError, InvalidInput):
    """A request that cannot be used."""


_KINDS: dict[int, type[ServiceError]] = {
    401: NotAllowed,
    403: NotAllowed,
    404: NotFound,
    409: Conflict,
    412: Conflict,
    429: ServiceAway,
}


def kind_of(status: int) -> type[ServiceError]:
    """Return the exception that a status of HTTP stands for."""
    if status in _KINDS:
        return _KINDS[status]
    if status >= 500:
        return ServiceAway
    return RequestRefused if status >= 400 else ServiceError
