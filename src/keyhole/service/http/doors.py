"""Who may come in: keys in a header, sessions in a cookie, and nobody sent by another site."""

import hmac
import re
import time
from functools import lru_cache
from http.cookies import CookieError, SimpleCookie
from ipaddress import ip_address
from typing import TYPE_CHECKING

from keyhole.errors import shown
from keyhole.service.errors import NotFound
from keyhole.service.http.problems import Forbidden, Unauthorized
from keyhole.service.keys import EVERYTHING, Access, KeyRing, ScopeName

if TYPE_CHECKING:
    from keyhole.service.settings import Settings

COOKIE = "keyhole_session"
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
_BEARER = b"bearer "
_PORT = re.compile(r":\d*\Z")
WHO = "A known key must come as `Authorization: Bearer kh_…`, got none."


def access_by_header(keyring: KeyRing, headers: dict[bytes, bytes]) -> Access | None:
    """Return what the key of a request may do; None where it brings none.

    One that is not known, or no longer, raises; all of them in the same words.
    """
    given = headers.get(b"authorization")
    if given is None:
        return None
    token = given[len(_BEARER) :] if given[: len(_BEARER)].lower() == _BEARER else b""
    access = keyring.access(token.decode("latin-1").strip())
    if access is None:
        raise Unauthorized(WHO)
    return access


def access_by_session(
    keyring: KeyRing, sessions: "Sessions", headers: dict[bytes, bytes]
) -> Access | None:
    """Return what the key that is logged in may do; None where none is, or no longer."""
    prefix = sessions.prefix(headers) if b"cookie" in headers else None
    return None if prefix is None else keyring.access_of(prefix)


def access_without_keys(settings: "Settings", method: str, headers: dict[bytes, bytes]) -> Access:
    """Return what everybody may do as long as there is no key: all, unless another site asks."""
    check_origin(method, headers)
    check_host(settings, headers.get(b"host", b"localhost"))
    return EVERYTHING


def check_access(access: Access, needs: ScopeName, ranker: str | None, needs_all: bool) -> None:
    """Raise unless a request may do what it asks for.

    A ranker that a key may not see is answered like one that does not exist, whether it does or
    not, before anything is looked up.
    """
    if ranker is not None and not access.sees(ranker):
        raise not_found(ranker)
    if not access.may(needs) or (needs_all and access.rankers is not None):
        raise Forbidden(
            f"This key must have the scope {needs}{' for all rankers' * needs_all} to do that."
        )


def not_found(ranker: str) -> NotFound:
    """Return what is said of a ranker that does not exist, or not for this key."""
    return NotFound(f"There is no ranker {shown(ranker)}.")


def check_origin(method: str, headers: dict[bytes, bytes]) -> None:
    """Raise where a page of another site made a browser send a request that changes something."""
    if method in SAFE_METHODS:
        return
    origin = headers.get(b"origin")
    host = headers.get(b"host", b"")
    same = origin is None or origin.partition(b"://")[2] == host
    if not same or headers.get(b"sec-fetch-site", b"none") not in (b"none", b"same-origin"):
        raise Forbidden("Requests that change something must not come from pages of other sites.")


@lru_cache(maxsize=1_000)
def check_host(settings: "Settings", host: bytes) -> None:
    """Raise where a name that somebody else owns was made to lead to this machine.

    As long as there is no key, all that keeps strangers out is that they cannot reach the port;
    a page of theirs, whose name they point here, could.
    """
    if settings.insecure:
        return
    name = _PORT.sub("", host.decode("latin-1")).strip("[]").lower()
    if name in ("localhost", settings.host.lower()):
        return
    try:
        ip_address(name)
    except ValueError:
        raise Forbidden(
            "Without a key the service must be asked by address or as localhost: keyhole keys "
            "create makes a key, keyhole serve --insecure lets everybody in."
        ) from None


class Sessions:
    """Logins of the dashboard: signed, so that none has to be kept."""

    def __init__(self, secret: bytes, seconds: float, *, secure: bool) -> None:
        self._secret = secret
        self._seconds = seconds
        self._secure = secure

    def cookie(self, prefix: str) -> str:
        """Return the header that logs a key in."""
        ends = int(time.time() + self._seconds)
        token = f"{prefix}.{ends}"
        return self._header(f"{token}.{self._sign('session', token)}", int(self._seconds))

    def end(self) -> str:
        """Return the header that logs out."""
        return self._header("", 0)

    def prefix(self, headers: dict[bytes, bytes]) -> str | None:
        """Return the prefix of the key that is logged in."""
        token = self.token(headers)
        prefix, _, ends = token.rpartition(".")[0].partition(".")
        return prefix if token and ends.isdigit() and time.time() < int(ends) else None

    def token(self, headers: dict[bytes, bytes]) -> str:
        """Return the session of a request if its signature holds, and nothing otherwise."""
        try:
            cookies = SimpleCookie(headers.get(b"cookie", b"").decode("latin-1"))
        except CookieError:
            return ""
        value = cookies[COOKIE].value if COOKIE in cookies else ""
        token, _, signature = value.rpartition(".")
        matches = hmac.compare_digest(signature.encode(), self._sign("session", token).encode())
        return value if matches else ""

    def csrf(self, headers: dict[bytes, bytes]) -> str:
        """Return the token that forms of this session must bring."""
        return self._sign("csrf", self.token(headers))

    def _header(self, value: str, seconds: int) -> str:
        secure = "; Secure" if self._secure else ""
        return f"{COOKIE}={value}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Strict{secure}"

    def _sign(self, use: str, text: str) -> str:
        return hmac.new(self._secret, f"{use}:{text}".encode(), "sha256").hexdigest()
