"""How the events of a ranker follow from each other; every store holds what it is given to it."""

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from keyhole.service.errors import Conflict, StoreDamaged
from keyhole.service.events import FIRST_LINK, Event, link_of, linked


class Tip(NamedTuple):
    """What the next event of a ranker must follow."""

    seq: int = 0
    link: bytes = FIRST_LINK


def tip_of(event: Event | None) -> Tip:
    """Return what the event after this one must follow; None stands for no event so far."""
    return Tip() if event is None else Tip(event.seq, event.link)


def _what_is_wrong(tip: Tip | Event, event: Event) -> str | None:
    if event.seq != tip.seq + 1:
        return f"must have seq {tip.seq + 1}, got {event.seq}"
    if not event.link:
        linked(tip.link, event)
    elif event.link != link_of(tip.link, event):
        return f"must be linked to all before it, which event {event.seq} is not"
    return None


def follow(events: Iterable[Event], tip_before: Callable[[str], Tip]) -> dict[str, Tip]:
    """Return the tips of rankers after these events, or raise :class:`Conflict`.

    New ones, which have no link yet, get theirs here: a log is hashed once on its way to the disk.
    """
    last: dict[str, Event] = {}
    for event in events:
        ranker = event.ranker
        before = last.get(ranker)
        wrong = _what_is_wrong(tip_before(ranker) if before is None else before, event)
        if wrong:
            raise Conflict(f"The next event of ranker {ranker!r} {wrong}.")
        last[ranker] = event
    return {ranker: Tip(event.seq, event.link) for ranker, event in last.items()}


def checked(events: Iterable[Event]) -> Iterator[Event]:
    """Yield the events of one ranker from its first on, or raise where one does not follow."""
    tip = Tip()
    for event in events:
        wrong = _what_is_wrong(tip, event) if event.link else "must be linked to all before it"
        if wrong:
            raise StoreDamaged(f"The event after {tip.seq} of ranker {event.ranker!r} {wrong}.")
        tip = Tip(event.seq, event.link)
        yield event
