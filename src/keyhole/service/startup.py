"""How the service comes up: the log is opened, the lock on the door checked, code prepared."""

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
from keyhole.service.store.base import Store
from keyhole.service.store.chain import event_at


def check_lock(settings: Settings, store: Store) -> None:
    """Raise where strangers could reach a service that asks for no key."""
    if settings.needs_key and not store.keys():
        raise InvalidInput(
            f"To listen at {settings.host}, where others can reach it, the service must have a "
            f"key: keyhole keys create --db {settings.db} --scope admin --ranker '*' makes one, "
            "--insecure lets everybody in."
        )


def opener(settings: Settings, store: Store, preparer: Preparer) -> Callable[[], Desk]:
    """Return what prepares the code of all rankers and reads the whole log: it may take a while."""

    def open_desk() -> Desk:
        # What is made now stays: to look through all of it for garbage, again and again while it
        # grows and later on, would hold up the start and requests.
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
        finally:
            gc.enable()
        return desk

    return open_desk


def _configs(store: Store) -> dict[str, Config]:
    """Return how every ranker of a log began: its code stays that until it is deleted.

    What cannot be read is left to be told of when the log is.
    """
    found = {}
    for name in store.rankers():
        with suppress(msgspec.MsgspecError, UnicodeDecodeError, StoreDamaged):
            first, last = event_at(store, name, begun_of(store, name)), store.last(name)
            if first is None or first.kind != "config" or (last and last.kind == "delete"):
                continue
            found[name] = body_of(first)
    return found
