"""A ranker as its log says, which is checked on the way."""

from keyhole.service.errors import StoreDamaged, StoreError
from keyhole.service.events import OutcomeOf, Snapshot
from keyhole.service.ranker_state import LiveRanker
from keyhole.service.snapshots import is_sealed
from keyhole.service.store.base import Store
from keyhole.service.store.chain import Tip, as_written, checked
from keyhole.service.structured_logs import logger


def recovered(store: Store, name: str) -> LiveRanker:
    """Return a ranker as its log says: from the newest snapshot that holds, or from the start.

    Raises :class:`StoreDamaged` where an event is not the one that was written. Those that the
    snapshot covers are left to be checked later.
    """
    last = store.last(name)
    if last is not None and last.kind == "delete":
        return LiveRanker.deleted(as_written(store, last), store)
    live, wrong = LiveRanker(name, store), []
    for snapshot in _snapshots(store, name):
        try:
            kept = LiveRanker.from_snapshot(snapshot, store)
        except StoreDamaged as error:
            wrong.append((snapshot, str(error)))
            continue
        event = store.event(name, kept.seq)
        if event is None:
            raise StoreDamaged(
                f"Event {kept.seq} of ranker {name!r} is missing: there is a snapshot after it."
            )
        if event.link == kept.link:
            live = kept
            break
        wrong.append((snapshot, f"Event {kept.seq} of the log is another one."))
    for event in checked(store.events(name, after=live.seq), Tip(live.seq, live.link)):
        try:
            live.apply(event)
        except Exception as error:  # whatever it says: the event is as it was written
            raise StoreDamaged(
                f"Event {event.seq} ({event.kind}) of ranker {name!r} cannot be replayed: {error}"
            ) from error
    for snapshot, why in wrong:  # a cache that does not hold is no loss: the log does
        store.drop_snapshot(name, snapshot.seq)
        logger().warning(
            "A snapshot is wrong and was dropped; the log was replayed instead.",
            ranker=name,
            seq=snapshot.seq,
            error=why,
        )
    return live


def outcome_in(store: Store, name: str) -> OutcomeOf:
    """Return what tells what became of feedback in a log; of a damaged one that is not known."""
    try:
        return recovered(store, name).outcome
    except StoreError:
        return LiveRanker(name, store).outcome


def _snapshots(store: Store, name: str) -> list[Snapshot]:
    """Return the snapshots of a ranker that have a checksum: others are passed over."""
    try:
        return [snapshot for snapshot in store.snapshots(name) if is_sealed(snapshot)]
    except StoreDamaged as error:
        logger().warning("Snapshots cannot be read.", ranker=name, error=str(error))
        return []
