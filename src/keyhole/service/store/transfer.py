"""Copies of a log in another kind of store, event by event, with every hash as it was."""

from collections.abc import Callable, Iterable, Iterator

from keyhole.base.errors import InvalidInput
from keyhole.service.events import Event
from keyhole.service.store.base import Store
from keyhole.service.store.integrity import n_events

_EVENTS, _BYTES = 2_000, 16 * 2**20
"""The events of a transaction at most, and the bytes of their bodies that end it earlier."""


def n_missing(source: Store, target: Store) -> int:
    """Return how many events a copy lacks."""
    return sum(n_events(source).values()) - sum(n_events(target).values())


def transfer(source: Store, target: Store, advance: Callable[[int], None]) -> None:
    """Copy a log, also while a service writes to it, or what is new since an earlier copy.

    The target is empty, or an earlier copy. It checks the hash link of every event, and begins at
    the last one that it has: a copy that was interrupted goes on. Each ranker is copied up to an
    event after the beginning of the copy, so that what was acknowledged before it is there.
    """
    _check_same(source, target)
    for name in source.rankers():
        snapshots = source.snapshots(name)  # first: events up to them are there then
        last = target.last(name)
        for batch in _batches(source.events(name, after=0 if last is None else last.seq)):
            target.append(batch)
            advance(len(batch))
        for snapshot in reversed(snapshots):
            target.put_snapshot(snapshot)
    kept, given = target.keys(), source.keys()
    for key in kept:
        if key not in given:
            target.remove_key(key.prefix)
    for key in given:
        if key not in kept:
            target.add_key(key)


def _check_same(source: Store, target: Store) -> None:
    """Make an empty log a copy, or raise unless it is one, up to its last events."""
    names = target.rankers()
    if not names and source.secret() != target.secret():
        target.take_secret(source.secret())
    for name in names:
        last = target.last(name)
        if last is not None and source.event(name, last.seq) != last:
            raise InvalidInput(
                f"The target must be empty or an earlier copy of this log; event {last.seq} of "
                f"ranker {name!r} differs."
            )


def _batches(events: Iterable[Event]) -> Iterator[list[Event]]:
    batch: list[Event] = []
    n_bytes = 0
    for event in events:
        batch.append(event)
        n_bytes += len(event.body)
        if len(batch) == _EVENTS or n_bytes > _BYTES:
            yield batch
            batch, n_bytes = [], 0
    if batch:
        yield batch
