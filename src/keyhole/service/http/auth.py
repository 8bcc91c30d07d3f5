"""Who may come in: keys in a header, sessions in a cookie, and nobody sent by another site."""

import re
from functools import lru_cache
from ipaddress import IPv6Address, ip_address
from typing import TYPE_CHECKING

from starlette.types import Scope

from keyhole.base.errors import shown
from keyhole.service.errors import NotFound
from keyhole.service.http.problems import Forbidden, Unauthorized
from keyhole.service.http.request import Fields
from keyhole.service.keys import EVERYTHING, Access, KeyRing, ScopeName

if TYPE_CHECKING:
    from keyhole.service.http.context import Service
    from keyhole.service.settings import Settings

SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
_BEARER = b"bearer "
_PORT = re.compile(r":\d*\Z")
_FORWARDED = frozenset(
    {
        b"forwarded",
        b"via",
        b"x-forwarded-for",
        b"x-forwarded-host",
        b"x-forwarded-proto",
        b"x-real-ip",
    }
)
"""Fields by which proxies say that they hand a request on."""
WHO = "A known key must come as `Authorization: Bearer kh_…`, got none."


def access_of(service: "Service", scope: Scope, *, by_session: bool) -> Access | None:
    """Return what a request may do; None where nobody says who asks.

    A key that is not known, or no longer, raises. As long as there is no key at all, this machine
    may do everything.
    """
    fields: Fields = scope["state"]["fields"]
    keyring = service.keyring
    if keyring.is_empty:
        check_origin(scope["method"], fields)
        check_here(scope, fields, service.settings)
        return EVERYTHING
    given = fields.get(b"authorization")
    if given is not None:
        return _access_by_key(keyring, given)
    if not by_session or b"cookie" not in fields:
        return None
    prefix = service.sessions.prefix(fields)
    return None if prefix is None else keyring.access_of(prefix)


def _access_by_key(keyring: KeyRing, given: bytes) -> Access:
    """Return what a key may do; one that is not known raises, always in the same words."""
    token = given[len(_BEARER) :] if given[: len(_BEARER)].lower() == _BEARER else b""
    access = keyring.access(token.decode("latin-1").strip())
    if access is None:
        raise Unauthorized(WHO)
    return access


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


def check_origin(method: str, fields: Fields) -> None:
    """Raise where a page of another site made a browser send a request that changes something."""
    if method in SAFE_METHODS:
        return
    origin = fields.get(b"origin")
    same = origin is None or origin.partition(b"://")[2] == fields.get(b"host", b"")
    if not same or fields.get(b"sec-fetch-site", b"none") not in (b"none", b"same-origin"):
        raise Forbidden("Requests that change something must not come from pages of other sites.")


def check_here(scope: Scope, fields: Fields, settings: "Settings") -> None:
    """Raise where somebody who is not on this machine asks a service that has no key.

    Whoever asks without a wire is here. A peer that cannot be told, as it hung up at once, is not.
    """
    if settings.insecure:
        return
    peer = scope.get("client", ("127.0.0.1", 0))
    if peer is None or not is_local(peer[0]):
        raise Forbidden(
            "Without a key the service answers its own machine alone: keyhole keys create makes a "
            "key, keyhole serve --insecure lets everybody in."
        )
    if not _FORWARDED.isdisjoint(fields):
        raise Forbidden(
            "Without a key the service answers nobody behind a proxy: keyhole keys create makes a "
            "key, keyhole serve --insecure lets everybody in."
        )
    check_host(fields.get(b"host", b"localhost"), settings.host)


@lru_cache(maxsize=1_000)
def is_local(address: str) -> bool:
    """Return whether an address is one of this machine's own that no other can reach.

    Examples
    --------
    >>> [is_local(each) for each in ("127.9.9.9", "::1", "::ffff:127.0.0.1", "10.0.0.1", "x")]
    [True, True, True, False, False]
    """
    try:
        parsed = ip_address(address)
    except ValueError:
        return False
    mapped = parsed.ipv4_mapped if isinstance(parsed, IPv6Address) else None
    return (mapped or parsed).is_loopback


@lru_cache(maxsize=1_000)
def check_host(host: bytes, own: str) -> None:
    """Raise where a name that somebody else owns was made to lead to this machine.

    As long as there is no key, all that keeps strangers out is that they cannot reach the port;
    a page of theirs, whose name they point here, could.
    """
    name = _PORT.sub("", host.decode("latin-1")).strip("[]").lower()
    if name in ("localhost", own.lower()):
        return
    try:
        ip_address(name)
    except ValueError:
        raise Forbidden(
            "Without a key the service must be asked by address or as localhost: keyhole keys "
            "create makes a key, keyhole serve --insecure lets everybody in."
        ) from None
