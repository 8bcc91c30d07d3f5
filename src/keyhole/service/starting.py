"""How the service comes up: the log is opened, the lock on the door checked, kernels compiled."""

import gc
from collections.abc import Callable

from keyhole.errors import InvalidInput
from keyhole.service.desk import Desk
from keyhole.service.settings import Settings
from keyhole.service.specs import warm_up
from keyhole.service.store import open_store
from keyhole.service.store.base import Store


def check_lock(settings: Settings, store: Store) -> None:
    """Raise where strangers could reach a service that asks for no key."""
    if not (settings.is_loopback or settings.insecure or store.keys()):
        raise InvalidInput(
            f"To listen at {settings.host}, where others can reach it, the service must have a "
            f"key: keyhole keys create --db {settings.db} --scope admin --ranker '*' makes one, "
            "--insecure lets everybody in."
        )


def opener(settings: Settings, store: Store) -> Callable[[], Desk]:
    """Return what reads the whole log and compiles what is needed first: it may take a while."""

    def open_desk() -> Desk:
        desk = Desk(
            store, reopen=lambda: open_store(settings.db), most_waiting=settings.max_waiting
        )
        for live in desk.engine.rankers.values():
            warm_up(live.config)
        # What is there now stays: to look through all of it for garbage would hold up requests.
        gc.collect()
        gc.freeze()
        return desk

    return open_desk
