"""Checks a log: its hash chain, and whether its replay reproduces the snapshots."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from keyhole.base.errors import KeyholeError
from keyhole.service.events import FIRST_LINK, Event, link_of
from keyhole.service.ranker_state import LiveRanker
from keyhole.service.store.base import Store


class Checked(NamedTuple):
    """The result of checking one ranker; ``problems`` is empty if it is intact."""

    ranker: str
    n_events: int
    seq: int
    sha256: str
    n_snapshots: int
    problems: tuple[str, ...]


def check(
    store: Store, *, on_progress: Callable[[str, int], None] | None = None
) -> Iterator[Checked]:
    """Check every ranker of a log: sequence numbers, hash links and replayed states."""
    for name in store.rankers():
        yield check_ranker(store, name, on_progress=on_progress)


def check_ranker(
    store: Store, name: str, *, on_progress: Callable[[str, int], None] | None = None
) -> Checked:
    """Replay one ranker from an empty state, and compare it with every snapshot."""
    live, link = LiveRanker(name, store), FIRST_LINK
    problems: list[str] = []
    differing: list[int] = []
    snapshots = {snapshot.seq: snapshot for snapshot in store.snapshots(name)}
    n_events = 0
    for event in store.events(name):
        n_events += 1
        problem = _follows(event, n_events, link)
        if problem is None:
            link = event.link
            problem = _applied(live, event)
        if problem is not None:
            problems.append(f"Ranker {name!r}: {problem}")
            break
        if event.kind == "rebase":
            differing.clear()  # earlier states come from another version of the library
        if event.seq in snapshots and live.differs_from(snapshots[event.seq]):
            differing.append(event.seq)
        if on_progress is not None and n_events % 1_000 == 0:
            on_progress(name, n_events)
    problems += [
        f"Ranker {name!r}: the snapshot after event {seq} does not match the replayed log."
        for seq in differing
    ]
    for seq in sorted(snapshots):
        if seq > n_events and not problems:
            problems.append(
                f"Ranker {name!r}: there is a snapshot after event {seq}, but the log ends at "
                f"{n_events}."
            )
    whole = not problems
    return Checked(
        name, n_events, live.seq, live.sha256() if whole else "", len(snapshots), tuple(problems)
    )


def _follows(event: Event, seq: int, link: bytes) -> str | None:
    if event.seq != seq:
        return f"event {seq} is missing: {event.seq} follows {seq - 1}."
    if event.link != link_of(link, event):
        return f"event {seq} does not match its hash link: it, or an event before it, was changed."
    return None


def _applied(live: LiveRanker, event: Event) -> str | None:
    try:
        live.apply(event)
    except (KeyholeError, ValueError, LookupError) as error:
        return f"event {event.seq} ({event.kind}) cannot be replayed: {error}"
    return None
