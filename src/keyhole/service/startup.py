"""Startup: requires an access key on public addresses, opens the log, prepares code."""

import gc
from collections.abc import Callable
from contextlib import suppress

import msgspec

from keyhole.base.errors import InvalidInput
from keyhole.rankers import RANKERS
from keyhole.service.compilation import Preparer
from keyhole.service.errors import StoreDamaged
from keyhole.service.events import Config, body_of
from keyhole.service.group_commit import Desk
from keyhole.service.settings import Settings
from keyhole.service.snapshots import begun_of
from keyhole.service.store import open_store
from keyhole.service.store.addresses import shown_address
from keyhole.service.store.base import Store
from keyhole.service.store.chain import event_at

_GARBAGE = 20_000
"""The number of objects made between two garbage collections."""


def check_lock(settings: Settings, store: Store) -> None:
    """Raise if other machines could reach a service without an access key."""
    if settings.needs_key and not store.keys():
        log = shown_address(settings.db)
        raise InvalidInput(
            f"To listen on {settings.host}, which other machines can reach, the service must have "
            f"an access key: keyhole keys create --db {log} --scope admin --ranker '*' "
            "creates one, --insecure serves everybody."
        )


def opener(settings: Settings, store: Store, preparer: Preparer) -> Callable[[], Desk]:
    """Return a function that prepares the code of all rankers and replays the log."""

    def open_desk() -> Desk:
        # Objects made now live for ever: garbage collections would scan them again and again,
        # which slows down the start and later requests.
        gc.disable()
        try:
            list(RANKERS.values())  # imported now, not while a request waits
            preparer.prepare_all(_configs(store))
            desk = Desk(
                store,
                reopen=lambda: open_store(settings.db),
                most_waiting=settings.max_waiting,
                preparer=preparer,
            )
            preparer.watch()
            gc.collect()
            gc.freeze()
            gc.set_threshold(_GARBAGE)  # a group of requests makes few cycles and many objects
        finally:
            gc.enable()
        return desk

    return open_desk


def _configs(store: Store) -> dict[str, Config]:
    """Return the first config of every ranker, which determines the code it needs.

    Unreadable rankers are skipped: replay reports them.
    """
    found = {}
    for name in store.rankers():
        with suppress(msgspec.MsgspecError, UnicodeDecodeError, StoreDamaged):
            first, last = event_at(store, name, begun_of(store, name)), store.last(name)
            if first is None or first.kind != "config" or (last and last.kind == "delete"):
                continue
            found[name] = body_of(first)
    return found
