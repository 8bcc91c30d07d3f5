"""The hash chain of a ranker's events, which every store enforces on append."""

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from msgspec.structs import force_setattr

from keyhole.service.errors import ConflictingRequest, StoreDamaged
from keyhole.service.events import FIRST_LINK, Event, link_of
from keyhole.service.store.base import Store


class Tip(NamedTuple):
    """The seq and the link that the next event of a ranker must follow."""

    seq: int = 0
    link: bytes = FIRST_LINK


def tip_of(event: Event | None) -> Tip:
    """Return the tip after an event; None: before the first event."""
    return Tip() if event is None else Tip(event.seq, event.link)


def _what_is_wrong(tip: Tip | Event, event: Event) -> str | None:
    if event.seq != tip.seq + 1:
        return f"must have seq {tip.seq + 1}, got {event.seq}"
    if not event.link:
        force_setattr(event, "link", link_of(tip.link, event))
    # A damaged column may hold any type; the hashed text shows the types of the others.
    elif type(event.body) is not bytes or event.link != link_of(tip.link, event):
        return f"must link to the hash of the event before it; event {event.seq} does not"
    return None


def follow(events: Iterable[Event], tip_before: Callable[[str], Tip]) -> dict[str, Tip]:
    """Return the tips of rankers after these events, or raise :class:`ConflictingRequest`.

    New events get their links here, so that each event is hashed only once.
    """
    last: dict[str, Event] = {}
    for event in events:
        ranker = event.ranker
        before = last.get(ranker)
        wrong = _what_is_wrong(tip_before(ranker) if before is None else before, event)
        if wrong:
            raise ConflictingRequest(f"The next event of ranker {ranker!r} {wrong}.")
        last[ranker] = event
    return {ranker: Tip(event.seq, event.link) for ranker, event in last.items()}


def checked(events: Iterable[Event], tip: Tip | None = None) -> Iterator[Event]:
    """Yield the verified events of a ranker after a tip, by default from the first; or raise."""
    tip = tip or Tip()
    for event in events:
        wrong = _what_is_wrong(tip, event) if event.link else "must have a hash link"
        if wrong:
            raise StoreDamaged(f"The event after {tip.seq} of ranker {event.ranker!r} {wrong}.")
        tip = Tip(event.seq, event.link)
        yield event


def event_at(store: Store, ranker: str, seq: int) -> Event | None:
    """Return an event, verified against its predecessor, or raise."""
    event = store.event(ranker, seq)
    return None if event is None else as_written(store, event)


def as_written(store: Store, event: Event) -> Event:
    """Return an event that was looked up, verified, or raise."""
    seq = event.seq if type(event.seq) is int else 0
    before = store.event(event.ranker, seq - 1) if seq > 1 else None
    return next(checked([event], tip_of(before)))
