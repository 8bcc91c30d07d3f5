"""Integrity check of a log: storage, hash chain and indexes."""

from collections.abc import Callable

from keyhole.service.errors import StoreDamaged
from keyhole.service.events import Event
from keyhole.service.store.base import Store
from keyhole.service.store.chain import checked


def n_events(store: Store) -> dict[str, int]:
    """Return the number of events of each ranker, from the seq of its last event."""
    lasts = {ranker: store.last(ranker) for ranker in store.rankers()}
    return {ranker: 0 if last is None else last.seq for ranker, last in lasts.items()}


def check_log(store: Store, advance: Callable[[int], None] = lambda _: None) -> dict[str, int]:
    """Return the number of events of each ranker, or raise :class:`StoreDamaged`.

    ``advance`` is called with the number of checked events. Their bodies are not decoded.
    """
    for said in store.damage():
        raise StoreDamaged(f"The log is damaged: {said}.")
    told = n_events(store)
    for ranker, n_told in told.items():
        n_found = 0
        for event in checked(store.events(ranker)):
            _check_found(store, event)
            n_found += 1
            advance(1)
        if n_found < n_told:
            raise StoreDamaged(f"Ranker {ranker!r} must have {n_told} events, got {n_found}.")
    return told


def _check_found(store: Store, event: Event) -> None:
    """Check that the indexes find an event by its keys."""
    name = f"Event {event.seq} of ranker {event.ranker!r}"
    if event.key is not None and store.find(event.ranker, event.key, event.kind) != event:
        raise StoreDamaged(f"{name} must be in the index by its key {event.key!r}, and is not.")
    if event.idem is not None and store.find_idem(event.ranker, event.idem) != event:
        raise StoreDamaged(f"{name} must be in the index by its idempotency key, and is not.")
