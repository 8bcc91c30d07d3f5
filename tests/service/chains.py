"""Events that follow from each other, for tests and benchmarks of stores."""

import msgspec

from keyhole.service.events import Event, Kind, link_of
from keyhole.service.store.base import Store
from keyhole.service.store.chain import Tip, tip_of

_KINDS: tuple[Kind, ...] = ("config", "rank", "rank", "feedback", "expire")


def linked(tip: Tip, event: Event) -> Event:
    return msgspec.structs.replace(event, link=link_of(tip.link, event))


def chain(n_events: int, *, ranker: str = "shop", tip: Tip | None = None, size: int = 40):
    """Return the next events of a ranker, of all kinds in turn, with bodies of about a size."""
    tip, events = tip or Tip(), []
    for seq in range(tip.seq + 1, tip.seq + n_events + 1):
        kind = _KINDS[seq % len(_KINDS)]
        key = f"impression {seq}" if kind in ("rank", "feedback") else None
        idem = f"request {seq}" if kind == "rank" and seq % 2 else None
        body = bytes((seq * 7 + i) % 256 for i in range(size + seq % 13))
        event = linked(tip, Event(ranker, seq, kind, key, idem, 1_000 * seq, body, b""))
        events.append(event)
        tip = tip_of(event)
    return events


def more(store: Store, n_events: int, *, ranker: str = "shop", size: int = 40) -> list[Event]:
    """Append the next events of a ranker to a store, and return them."""
    events = chain(n_events, ranker=ranker, tip=tip_of(store.last(ranker)), size=size)
    store.append(events)
    return events
