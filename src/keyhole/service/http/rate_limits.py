"""A limit on the requests of each access key: a token bucket."""

import math
import time
from collections.abc import Callable
from typing import NamedTuple

_Field = tuple[bytes, bytes]


class Taken(NamedTuple):
    """A request of a key: the fields of its response, and the seconds to wait if it is refused."""

    fields: tuple[_Field, _Field]
    retry_after: int


class RateLimits:
    """Every key has ``burst`` requests at once, and gets ``rate`` of them back a second.

    Notes
    -----
    A bucket is one number, the time at which it will be full again. A refused request takes
    nothing. The fields are those of draft-ietf-httpapi-ratelimit-headers-11.
    """

    def __init__(
        self, rate: float, burst: int, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._rate, self._burst, self._clock = rate, burst, clock
        self._full_at: dict[str, float] = {}
        window = math.ceil(burst / rate)
        self._policy = (b"ratelimit-policy", b'"key";q=%d;w=%d' % (burst, window))

    def take(self, prefix: str) -> Taken:
        """Take a request from the bucket of a key."""
        now = self._clock()
        full_at = max(self._full_at.get(prefix, now), now)
        left = self._burst - round((full_at - now) * self._rate, 6)
        retry_after = 0 if left >= 1.0 else math.ceil((1.0 - left) / self._rate)
        if not retry_after:
            full_at += 1.0 / self._rate
            left -= 1.0
            self._full_at[prefix] = full_at
        until_full = math.ceil(round(full_at - now, 6))
        field = (b"ratelimit", b'"key";r=%d;t=%d' % (left, until_full))
        return Taken((self._policy, field), retry_after)
