"""Access keys: their scopes and rankers; only a hash of the secret is stored."""

import hashlib
import hmac
import secrets
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Literal, NamedTuple, get_args

from keyhole.base.errors import InvalidInput, check_choice, check_integer, shown
from keyhole.service.events import Key

ScopeName = Literal["rank", "feedback", "read", "admin"]
SCOPES: tuple[ScopeName, ...] = get_args(ScopeName)
EVERY_RANKER = "*"
_MARK = "kh"
_SECRET_BYTES = 32
_PREFIX_BYTES = 4
_REFRESH_SECONDS = 1.0
"""Seconds after which a key added or removed by another process is noticed."""
MOST_NAME = 64
_NOTED_EVERY_MS = 60_000
"""The precision of a key's last use: at most one write per minute and key."""
_DAY_MS = 86_400_000
_NOBODY = hashlib.sha256(b"").digest()
"""Compared with if the prefix is unknown, so that timing does not reveal valid prefixes."""


class Access(NamedTuple):
    """The permissions of a request; ``rankers`` is None if it may see all."""

    scopes: frozenset[str]
    rankers: frozenset[str] | None
    prefix: str | None = None
    name: str = ""

    @property
    def who(self) -> str | None:
        """The key in the log, by name and prefix; None without a key."""
        if self.prefix is None:
            return None
        return f"{self.name} ({self.prefix})" if self.name else self.prefix

    def sees(self, ranker: str) -> bool:
        """Return whether this access may see a ranker."""
        return self.rankers is None or ranker in self.rankers

    def may(self, scope: ScopeName) -> bool:
        """Return whether this access has a scope; admin includes all scopes."""
        return scope in self.scopes or "admin" in self.scopes


EVERYTHING = Access(frozenset(SCOPES), None)
"""The access of local requests while no key exists: everything."""


def new_key(
    scopes: Sequence[str],
    rankers: Sequence[str],
    *,
    name: str = "",
    expires_days: int | None = None,
    now_ms: int | None = None,
) -> tuple[str, Key]:
    """Return the text of a new key, to be shown once, and the record to store.

    Examples
    --------
    >>> text, key = new_key(["rank"], ["shop"])
    >>> text.startswith(f"kh_{key.prefix}_"), key.scopes, key.rankers
    (True, ('rank',), ('shop',))
    """
    if not scopes:
        raise InvalidInput(f"A key must have one of the scopes {', '.join(SCOPES)}, got none.")
    if not rankers:
        raise InvalidInput(f"A key must name rankers, or {EVERY_RANKER} for all, got none.")
    if len(name) > MOST_NAME or not name.isprintable() or name != name.strip():
        raise InvalidInput(
            f"The name of a key must be at most {MOST_NAME} printable characters, without blanks "
            f"around them, got {shown(name)}."
        )
    for scope in scopes:
        check_choice(scope, "The scope of a key", SCOPES)
    now = int(time.time() * 1000) if now_ms is None else now_ms
    expires_at = None
    if expires_days is not None:
        days = check_integer(
            expires_days, "The days until a key expires", at_least=1, at_most=36_500
        )
        expires_at = now + days * _DAY_MS
    prefix = secrets.token_hex(_PREFIX_BYTES)
    text = f"{_MARK}_{prefix}_{secrets.token_urlsafe(_SECRET_BYTES)}"
    chosen = tuple(scope for scope in SCOPES if scope in scopes)
    return text, Key(
        prefix=prefix,
        sha256=_hash(text),
        scopes=chosen,
        rankers=tuple(sorted(set(rankers))),
        created_at=now,
        expires_at=expires_at,
        name=name,
    )


class KeyRing:
    """The access keys of a store, read again every second.

    It takes ``read_keys`` instead of a store because requests arrive before the store is open.
    """

    def __init__(
        self,
        read_keys: Callable[[], Iterable[Key]],
        *,
        wall_ms: Callable[[], int] = lambda: int(time.time() * 1000),
        note_use: Callable[[str, int], None] | None = None,
    ) -> None:
        self._read_keys = read_keys
        self._note_use = note_use
        self._noted_at: dict[str, int] = {}
        self._wall_ms = wall_ms
        self._keys: dict[str, tuple[Key, Access]] = {}
        self._read_at = -_REFRESH_SECONDS

    def forget(self) -> None:
        """Invalidate the cache: the next request reads the keys again."""
        self._read_at = -_REFRESH_SECONDS

    @property
    def is_empty(self) -> bool:
        """Whether no key exists, so that no authentication is needed; expired keys count."""
        return not self._current()

    def access(self, token: str) -> Access | None:
        """Return the access of a key; None if it is unknown or expired."""
        parts = token.split("_", 2)
        prefix = parts[1] if len(parts) == 3 else ""
        found = self._current().get(prefix)
        kept = _NOBODY if found is None else found[0].sha256
        matches = hmac.compare_digest(_hash(token), kept)
        return self._valid(found) if matches else None

    def access_of(self, prefix: str) -> Access | None:
        """Return the access of a session's key; None if it was removed or has expired."""
        return self._valid(self._current().get(prefix))

    def _valid(self, found: tuple[Key, Access] | None) -> Access | None:
        if found is None:
            return None
        key, access = found
        now = self._wall_ms()
        if key.expires_at is not None and now >= key.expires_at:
            return None
        if self._note_use is not None and self._is_due(key.prefix, now):
            self._noted_at[key.prefix] = now
            self._note_use(key.prefix, now)
        return access

    def _is_due(self, prefix: str, now: int) -> bool:
        """Return whether the last use of a key is due for a write, also after clock changes."""
        noted = self._noted_at.get(prefix)
        return noted is None or abs(now - noted) >= _NOTED_EVERY_MS

    def _current(self) -> dict[str, tuple[Key, Access]]:
        now = time.monotonic()
        if now - self._read_at >= _REFRESH_SECONDS:
            self._keys = {key.prefix: (key, access_of_key(key)) for key in self._read_keys()}
            self._read_at = now
        return self._keys


def access_of_key(key: Key) -> Access:
    """Return the access of a stored key."""
    rankers = None if EVERY_RANKER in key.rankers else frozenset(key.rankers)
    return Access(frozenset(key.scopes), rankers, key.prefix, key.name)


def _hash(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
