"""Restores a ranker from its newest snapshot and its log, and verifies both."""

from keyhole.service.errors import StoreDamaged, StoreError
from keyhole.service.events import OutcomeOf, Snapshot
from keyhole.service.ranker_state import LiveRanker
from keyhole.service.snapshots import is_sealed
from keyhole.service.store.base import Store
from keyhole.service.store.chain import Tip, as_written, checked
from keyhole.service.structured_logs import logger


def recovered(store: Store, name: str) -> LiveRanker:
    """Return a ranker, replayed from its newest valid snapshot or from its first event.

    Raises :class:`StoreDamaged` if an event is damaged. Events before the snapshot are verified
    later, in the background.
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
        wrong.append((snapshot, f"Event {kept.seq} of the log does not match."))
    for event in checked(store.events(name, after=live.seq), Tip(live.seq, live.link)):
        try:
            live.apply(event)
        except Exception as error:  # any error: the event itself is intact
            raise StoreDamaged(
                f"Event {event.seq} ({event.kind}) of ranker {name!r} cannot be replayed: {error}"
            ) from error
    for snapshot, why in wrong:  # snapshots are a cache: dropping one loses nothing
        store.drop_snapshot(name, snapshot.seq)
        logger().warning(
            "A damaged snapshot was dropped; the log was replayed instead.",
            ranker=name,
            seq=snapshot.seq,
            error=why,
        )
    return live


def outcome_in(store: Store, name: str) -> OutcomeOf:
    """Return the outcomes of feedback in a log; unknown if the log is damaged."""
    try:
        return recovered(store, name).outcome
    except StoreError:
        return LiveRanker(name, store).outcome


def _snapshots(store: Store, name: str) -> list[Snapshot]:
    """Return the snapshots of a ranker that have a checksum."""
    try:
        return [snapshot for snapshot in store.snapshots(name) if is_sealed(snapshot)]
    except StoreDamaged as error:
        logger().warning("Snapshots cannot be read.", ranker=name, error=str(error))
        return []
