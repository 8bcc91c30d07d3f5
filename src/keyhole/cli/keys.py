"""The commands that manage access keys of the service."""

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from keyhole.base.errors import InvalidInput, shown
from keyhole.cli.description_options import command
from keyhole.cli.terminal import Json, escape, print_json, say, show_table

if TYPE_CHECKING:
    from keyhole.service.events import Key
    from keyhole.service.store.base import Store

keys_app = typer.Typer(
    name="keys",
    help="Manage the access keys of the service.",
    no_args_is_help=True,
    add_completion=False,
)

Db = Annotated[str, typer.Option(help="The log of the service: a file or a URL.")]
_DEFAULT_DB = "keyhole.db"


def _open(db: str) -> "Store":
    """Open a log to change its keys, also while the service runs."""
    from keyhole.service.store import open_for_keys

    return open_for_keys(db)


@keys_app.command("create")
@command(of_service=True)
def create_command(
    scope: Annotated[list[str], "A scope: rank, feedback, read or admin; repeatable."],
    ranker: Annotated[list[str], "A ranker that the key may use, or * for all; repeatable."],
    db: Db = _DEFAULT_DB,
    name: Annotated[str, "A name, shown in lists and in the log."] = "",
    expires_days: Annotated[int | None, "Days until the key expires."] = None,
) -> None:
    """Create a key and print it, only this once: the log stores only its hash."""
    from keyhole.service.keys import new_key

    text, key = new_key(scope, ranker, name=name, expires_days=expires_days)
    with _open(db) as store:
        store.add_key(key)
    say(text)


@keys_app.command("list")
@command(of_service=True)
def list_command(db: Db = _DEFAULT_DB, as_json: Json = False) -> None:
    """List the keys with scopes, rankers and last use, without their secrets."""
    with _open(db) as store:
        keys = store.keys()
    if as_json:
        print_json([_record(key) for key in keys])
        return
    rows = [
        (
            key.prefix,
            escape(key.name) or "-",
            ", ".join(key.scopes),
            escape(", ".join(key.rankers)),
            _date(key.created_at),
            _date(key.expires_at),
            _time(key.used_at),
        )
        for key in keys
    ]
    columns = ("prefix", "name", "scopes", "rankers", "created", "expires", "last used")
    show_table("Access keys", columns, rows)


@keys_app.command("remove")
@command(of_service=True)
def remove_command(
    prefix: Annotated[str, typer.Argument(help="The prefix of a key, between its underscores.")],
    db: Db = _DEFAULT_DB,
) -> None:
    """Remove a key; a running service notices within a second."""
    with _open(db) as store:
        removed = store.remove_key(prefix)
    if not removed:
        raise InvalidInput(f"PREFIX must be the prefix of an existing key, got {shown(prefix)}.")
    say(f"Key {prefix} has been removed.")


def _record(key: "Key") -> dict[str, object]:
    return {
        "prefix": key.prefix,
        "scopes": list(key.scopes),
        "rankers": list(key.rankers),
        "created_at": key.created_at,
        "expires_at": key.expires_at,
        "name": key.name,
        "last_used_at": key.used_at,
    }


def _date(milliseconds: int | None) -> str:
    return _time(milliseconds)[:10]


def _time(milliseconds: int | None) -> str:
    """Return a time to the minute, the precision of a key's last use."""
    if milliseconds is None:
        return "never"
    return f"{datetime.fromtimestamp(milliseconds / 1000.0, UTC):%Y-%m-%d %H:%M}"
