"""What can go wrong in the service beyond wrong input; ``http.problems`` maps each to a status."""

from keyhole.base.errors import KeyholeError


class NotFound(KeyholeError):
    """A ranker or an impression that does not exist, or not for this key."""


class WasDeleted(NotFound):
    """A ranker that was there once."""


class Conflict(KeyholeError):
    """Something else was said before: other feedback, another request under the same key."""


class KeyReused(KeyholeError):
    """An idempotency key that came with another request before."""


class StaleVersion(KeyholeError):
    """A change of a ranker that has changed since it was read."""


class LastKey(KeyholeError):
    """The removal of the only key of a service that strangers can reach."""


class NotLearnable(KeyholeError):
    """A measure that the feedback cannot teach.

    ``verdict`` is what the oracle says: class, reason, certificate and what to use instead.
    """

    def __init__(self, message: str, verdict: dict[str, object]) -> None:
        super().__init__(message)
        self.verdict = verdict


class RankerDamaged(KeyholeError):
    """A ranker whose log is not what was written: nothing more is done with it."""


class Preparing(KeyholeError):
    """A ranker whose code is still being compiled."""


class NotAllowed(KeyholeError):
    """Something that a key may not do."""


class StoreError(KeyholeError):
    """A log that cannot be written or read."""


class StoreFull(StoreError):
    """No room for another event; nothing of it was kept."""


class StoreFailed(StoreError):
    """Writing or reading failed, and what the disk holds must be read again before going on."""


class StoreGone(StoreError):
    """The file of the log is no longer where it was."""


class StoreInUse(StoreError):
    """Another process writes to this log."""


class StoreNewer(StoreError):
    """A log that a newer version of Keyhole has written."""


class StoreDamaged(StoreError):
    """A log whose events do not follow from each other, or whose states do not."""
