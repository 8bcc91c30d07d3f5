"""Date ranges of pages, and the events and rounds that fall into them."""

from contextlib import suppress
from datetime import UTC, date, datetime, timedelta
from typing import NamedTuple

from keyhole.base.errors import InvalidInput, shown
from keyhole.service.events import body_of
from keyhole.service.ranker_state import LiveRanker
from keyhole.service.store.base import Store

_FIRST_YEAR = 1970
_FEW = 10_000
"""The maximum number of events searched for the next rank event."""


class Days(NamedTuple):
    """The first and the last day, in UTC; None: unbounded."""

    since: date | None
    until: date | None

    @property
    def is_all(self) -> bool:
        """Whether the range is unbounded."""
        return self.since is None and self.until is None


def days_of(since: str | None, until: str | None) -> Days:
    """Parse the days of a query, or raise."""
    days = Days(_day(since, "since"), _day(until, "until"))
    if days.since is not None and days.until is not None and days.since > days.until:
        raise InvalidInput(f"`since` must not be after `until`, got {since} and {until}.")
    return days


def _day(text: str | None, name: str) -> date | None:
    if not text:
        return None
    day = date.min
    with suppress(ValueError):
        day = date.fromisoformat(text)
    if not _FIRST_YEAR <= day.year < date.max.year:
        raise InvalidInput(f"`{name}` must be a day such as 2026-01-31, got {shown(text)}.")
    return day


def seqs_of(store: Store, ranker: str, days: Days) -> tuple[int, int]:
    """Return the seqs before the first and after the last event of some days.

    A binary search over the wall-clock times of events, which are mostly sorted.
    """
    last = store.last(ranker)
    end = 0 if last is None else last.seq
    after = 0 if days.since is None else _first_at(store, ranker, end, _start(days.since)) - 1
    before = end + 1
    if days.until is not None:
        before = _first_at(store, ranker, end, _start(days.until + timedelta(days=1)))
    return after, before


def _start(day: date) -> int:
    return int(datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp() * 1000)


def _first_at(store: Store, ranker: str, end: int, at: int) -> int:
    """Return the first seq at or after a time; one beyond the last if there is none."""
    low, high = 1, end + 1
    while low < high:
        middle = (low + high) // 2
        event = store.event(ranker, middle)
        if event is not None and event.at < at:
            low = middle + 1
        else:
            high = middle
    return low


def rounds_of(store: Store, live: LiveRanker, days: Days) -> tuple[int, int]:
    """Return the first round of some days, and the first round after them."""
    after, before = seqs_of(store, live.name, days)
    first = 0 if days.since is None else _next_round(store, live, after)
    end = live.round if days.until is None else _next_round(store, live, before - 1)
    return first, end


def _next_round(store: Store, live: LiveRanker, after: int) -> int:
    """Return the round of the first rank event after an event."""
    for event in store.events(live.name, after=max(after, live.begun), limit=_FEW):
        if event.kind == "rank":
            return int(body_of(event).round)
    return live.round
