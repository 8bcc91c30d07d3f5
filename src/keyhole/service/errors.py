"""Exceptions of the service; ``http.problems`` maps each to an HTTP status."""

from keyhole.base.errors import KeyholeError


class NoSuchResource(KeyholeError):
    """A ranker or an event that does not exist, or that this access key may not see."""


class WasDeleted(NoSuchResource):
    """A ranker that was deleted."""


class ConflictingRequest(KeyholeError):
    """A conflict with an earlier request: different feedback or a taken event id."""


class KeyReused(KeyholeError):
    """An idempotency key reused for a different request."""


class StaleVersion(KeyholeError):
    """If-Match does not match: the ranker has changed since the caller read it."""


class LastKey(KeyholeError):
    """Removing the last key of a service that other machines can reach."""


class NotLearnable(KeyholeError):
    """A measure that cannot be learnt from the feedback.

    ``verdict`` has the observability class, the reason, a certificate and alternatives.
    """

    def __init__(self, message: str, verdict: dict[str, object]) -> None:
        super().__init__(message)
        self.verdict = verdict


class RankerDamaged(KeyholeError):
    """A ranker whose log is damaged: it is not served."""


class Preparing(KeyholeError):
    """A ranker whose code is still being compiled."""


class ScopeMissing(KeyholeError):
    """An access key without the required scope."""


class StoreError(KeyholeError):
    """A log that cannot be read or written."""


class StoreFull(StoreError):
    """The disk is full; nothing was written."""


class StoreFailed(StoreError):
    """An I/O error: the log must be read again before anything else is written."""


class StoreGone(StoreError):
    """The file of the log is no longer where it was."""


class StoreInUse(StoreError):
    """Another process has this log open for writing."""


class StoreNewer(StoreError):
    """A log written by a newer version of Keyhole."""


class StoreDamaged(StoreError):
    """A log whose hash chain or replayed state does not match."""
