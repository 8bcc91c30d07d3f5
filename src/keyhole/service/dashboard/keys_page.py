"""The access keys page: a table of keys."""

from keyhole.service.dashboard.formatting import moment
from keyhole.service.events import Key


def key_row(key: Key) -> dict[str, str]:
    """Return a key as a table row."""
    return {
        "prefix": key.prefix,
        "name": key.name or "no name",
        "scopes": ", ".join(key.scopes),
        "rankers": ", ".join(key.rankers),
        "created": moment(key.created_at),
        "expires": "never" if key.expires_at is None else moment(key.expires_at),
        "used": "never" if key.used_at is None else moment(key.used_at),
    }
