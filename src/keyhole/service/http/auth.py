"""Authentication by key or session cookie, authorisation by scope, and CSRF checks."""

import re
from functools import lru_cache
from ipaddress import IPv6Address, ip_address
from typing import TYPE_CHECKING

from starlette.types import Scope

from keyhole.base.errors import shown
from keyhole.service.errors import NoSuchResource
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
"""Headers that proxies add to forwarded requests."""
WHO = "A valid access key must be sent as `Authorization: Bearer kh_…`, got none."


def access_of(service: "Service", scope: Scope, *, by_session: bool) -> Access | None:
    """Return the access of a request; None without a key or session.

    An unknown or expired key raises. While no key exists, requests from this machine have full
    access.
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
    """Return the access of a key; every invalid key raises the same error."""
    token = given[len(_BEARER) :] if given[: len(_BEARER)].lower() == _BEARER else b""
    access = keyring.access(token.decode("latin-1").strip())
    if access is None:
        raise Unauthorized(WHO)
    return access


def check_access(access: Access, needs: ScopeName, ranker: str | None, needs_all: bool) -> None:
    """Raise unless a request has the scope and may see the ranker.

    A ranker that a key may not see gets the same answer as one that does not exist, before any
    lookup.
    """
    if ranker is not None and not access.sees(ranker):
        raise not_found(ranker)
    if not access.may(needs) or (needs_all and access.rankers is not None):
        raise Forbidden(
            f"This request must have a key with the scope {needs}{' for all rankers' * needs_all}."
        )


def not_found(ranker: str) -> NoSuchResource:
    """Return the error for a ranker that does not exist or that the key may not see."""
    return NoSuchResource(f"There is no ranker {shown(ranker)}.")


def check_origin(method: str, fields: Fields) -> None:
    """Raise if a browser sends a state-changing request from another site (CSRF)."""
    if method in SAFE_METHODS:
        return
    origin = fields.get(b"origin")
    same = origin is None or origin.partition(b"://")[2] == fields.get(b"host", b"")
    if not same or fields.get(b"sec-fetch-site", b"none") not in (b"none", b"same-origin"):
        raise Forbidden("Requests that change data must not come from pages of other sites.")


def check_here(scope: Scope, fields: Fields, settings: "Settings") -> None:
    """Raise if a request from another machine reaches a service without keys.

    Requests without a socket, as in tests, are local. A peer without an address, because it hung up
    at once, is not.
    """
    if settings.insecure:
        return
    peer = scope.get("client", ("127.0.0.1", 0))
    if peer is None or not is_local(peer[0]):
        raise Forbidden(
            "Without a key the service answers only its own machine: keyhole keys create creates a "
            "key, keyhole serve --insecure serves everybody."
        )
    if not _FORWARDED.isdisjoint(fields):
        raise Forbidden(
            "Without a key the service answers no proxy: keyhole keys create creates a "
            "key, keyhole serve --insecure serves everybody."
        )
    check_host(fields.get(b"host", b"localhost"), settings.host)


@lru_cache(maxsize=1_000)
def is_local(address: str) -> bool:
    """Return whether an address is a loopback address.

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
    """Raise if the Host header is a foreign name (DNS rebinding).

    Without keys, only the unreachable port protects the service. A foreign page whose host name
    resolves to this machine could reach it through a browser.
    """
    name = _PORT.sub("", host.decode("latin-1")).strip("[]").lower()
    if name in ("localhost", own.lower()):
        return
    try:
        ip_address(name)
    except ValueError:
        raise Forbidden(
            "Without a key the Host of a request must be an address or localhost: keyhole keys "
            "create creates a key, keyhole serve --insecure serves everybody."
        ) from None
