"""The events page: the log, newest first, with a short description of each event."""

from collections.abc import Callable
from typing import Any
from urllib.parse import quote

from keyhole.service.dashboard.event_page import LEARNED, STATUS
from keyhole.service.dashboard.formatting import count, instant, moment
from keyhole.service.events import (
    Activated,
    Answered,
    Config,
    Deleted,
    Event,
    Expired,
    Kind,
    OutcomeOf,
    Ranked,
    Rebased,
    Repeated,
    body_of,
)
from keyhole.service.store.base import Store

PAGE_SIZE = 50
_CHUNK = 500
_MOST_SCANNED = 10_000
"""The maximum number of events scanned for one page; rare kinds continue on the next page."""
_FEW_NAMES = 3

KINDS: dict[Kind, str] = {
    "config": "created or changed",
    "rank": "a list was requested",
    "repeat": "a request was repeated under a new idempotency key",
    "feedback": "feedback arrived",
    "activate": "a deferred list was activated",
    "expire": "lists expired without feedback",
    "rebase": "the state was saved before an upgrade or a rename",
    "delete": "deleted or renamed",
}

NamesOf = Callable[[Ranked], tuple[str, ...]]


def log_page(
    store: Store, ranker: str, kind: str | None, before: int | None, after: int = 0
) -> tuple[list[Event], int | None]:
    """Return the newest events before a seq, and where the next page starts, if there is one.

    Parameters
    ----------
    kind
        The kind of event; None: all kinds.
    before
        Return events with a smaller seq; None: start at the newest.
    after
        Return events with a greater seq.
    """
    newest = store.last(ranker)
    end = 0 if newest is None else newest.seq
    top = end if before is None else min(before - 1, end)
    oldest_scanned = max(top - _MOST_SCANNED, after)
    found: list[Event] = []
    while top > oldest_scanned:
        start = max(top - _CHUNK, oldest_scanned)
        chunk = list(store.events(ranker, after=start, limit=top - start))
        for event in reversed(chunk):
            if kind is None or event.kind == kind:
                found.append(event)
                if len(found) == PAGE_SIZE:
                    return found, event.seq if event.seq > after + 1 else None
        top = start
    return found, top + 1 if top > after else None


def event_row(event: Event, names_of: NamesOf, outcome: OutcomeOf) -> dict[str, Any]:
    """Return an event as a table row; ``outcome`` returns the outcome of feedback."""
    body = body_of(event)
    what = _WHAT[event.kind](body, names_of)
    if isinstance(body, Answered):
        what = f"{what}; {LEARNED[outcome(body, event.seq)]}"
    return {
        "seq": event.seq,
        "at": instant(event.at).isoformat(timespec="milliseconds"),
        "time": moment(event.at),
        "kind": event.kind,
        "key": event.key,
        "what": what,
    }


def event_address(root: str, ranker: str, key: str) -> str:
    """Return the URL of an impression's page, with the id escaped."""
    return f"{root}/rankers/{quote(ranker, safe='')}/events/{quote(key, safe='')}"


def _config(body: Config, names_of: NamesOf) -> str:
    n = "documents per request" if body.catalogue is None else f"{count(len(body.catalogue))} items"
    what = f"{body.spec.get('name', 'ranker')}, {body.mode}, {body.measure}, top {body.k}, {n}"
    return f"{'New state: ' * body.fresh}{what}{_by(body.by)}"


def _by(who: str | None) -> str:
    return "" if who is None else f"; by {who}"


def _delete(body: Deleted, names_of: NamesOf) -> str:
    return f"{'Deleted' if body.to is None else f'Renamed to {body.to}'}{_by(body.by)}"


def _rank(body: Ranked, names_of: NamesOf) -> str:
    names = names_of(body)
    few = ", ".join(names[index] for index in body.ranking[:_FEW_NAMES])
    rest = len(body.ranking) - _FEW_NAMES
    more = f" and {count(rest)} more" if rest > 0 else ""
    why = "exploring" if body.explored else "not exploring"
    return f"Round {count(body.round)}, {why}: {few}{more}"


def _repeat(body: Repeated, names_of: NamesOf) -> str:
    if body.batch is not None:
        return "A repeated batch was answered with its earlier lists"
    return f"A repeated request was answered with the list of event {count(body.rank_seq)}"


def _feedback(body: Answered, names_of: NamesOf) -> str:
    seen = ", ".join(f"{number:g}" for number in body.relevance[:_FEW_NAMES])
    more = " …" if len(body.relevance) > _FEW_NAMES else ""
    return f"relevance {seen}{more}" if body.status == "observed" else STATUS[body.status]


def _expire(body: Expired, names_of: NamesOf) -> str:
    n = len(body.seqs)
    return f"{count(n)} {'list' if n == 1 else 'lists'} expired without feedback"


def _activate(body: Activated, names_of: NamesOf) -> str:
    return "Activated: the feedback timer starts"


def _rebase(body: Rebased, names_of: NamesOf) -> str:
    return "The whole state was saved"


_WHAT: dict[Kind, Callable[[Any, NamesOf], str]] = {
    "config": _config,
    "rank": _rank,
    "repeat": _repeat,
    "feedback": _feedback,
    "activate": _activate,
    "expire": _expire,
    "rebase": _rebase,
    "delete": _delete,
}
