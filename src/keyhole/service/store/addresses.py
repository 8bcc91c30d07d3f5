"""Addresses of logs, as they may be shown: without passwords."""

import re

from keyhole.base.errors import InvalidInput

_URL = re.compile(
    r"(?P<scheme>postgres(?:ql)?)://"
    r"(?:(?P<user>[^@/?#:]*)(?::[^@/?#]*)?@)?"
    r"(?P<hosts>(?:\[[0-9A-Fa-f:.%]*\]|[^@/?#:,\[\]]*)(?::\d*)?(?:,(?:\[[0-9A-Fa-f:.%]*\]|[^@/?#:,\[\]]*)(?::\d*)?)*)"
    r"(?P<path>/[^@?#]*)?"
    r"(?:\?[^@#]*)?"
)
"""A URL whose parts cannot be taken for each other: a password with an @ or a / is not one."""


def shown_address(address: str) -> str:
    """Return the address of a log without what must not be shown.

    Examples
    --------
    >>> shown_address("keyhole.db")
    'keyhole.db'
    >>> shown_address("postgresql://shop:secret@db.example:5433/log?sslpassword=secret")
    'postgresql://shop@db.example:5433/log'
    >>> shown_address("postgresql://shop:se@cret@db.example/log")
    'postgresql://…'
    """
    scheme, colon, _ = address.partition(":")
    if scheme not in {"postgresql", "postgres"} or not colon:
        return address
    match = _URL.fullmatch(address)
    if match is None:
        return f"{scheme}://…"
    user = "" if match["user"] is None else f"{match['user']}@"
    return f"{scheme}://{user}{match['hosts']}{match['path'] or ''}"


def check_url(url: str) -> str:
    """Return the URL of a database; the error of another text does not repeat it."""
    if _URL.fullmatch(url) is None:
        raise InvalidInput(
            "The address of a log in PostgreSQL must be postgresql://user@host:port/database, with "
            "@, :, /, ? and # of a password written as %40, %3A, %2F, %3F and %23; better leave it "
            "to a password file. The one given is another text."
        )
    return url
