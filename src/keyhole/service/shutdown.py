"""The snapshots that a service leaves as it stops: few enough to stop soon, and to start soon."""

import time
from collections.abc import Iterable

from keyhole.service.ranker_state import LiveRanker
from keyhole.service.store.base import Store

_LONGEST = 5.0
"""Seconds that it may take: of rankers that are left then, the next start replays more."""
_AT_ONCE = 64
_WORTH_A_SHARE, _LEFT_A_SHARE = 200, 10
"""A snapshot is worth it from a 200th of the events on after which there is one anyway; a tenth of
them may be left to be replayed, of all rankers together."""


def put_last_snapshots(store: Store, rankers: Iterable[LiveRanker], every: int) -> None:
    """Take snapshots of the rankers with most events to replay, until few are left of all."""
    ends_at, least = time.monotonic() + _LONGEST, max(every // _WORTH_A_SHARE, 1)
    pending = sorted(((live.seq - live.snapshot_at, live) for live in rankers), key=_most_first)
    left = sum(n_events for n_events, _ in pending)
    wanted: list[LiveRanker] = []
    for n_events, live in pending:
        if n_events < least or left <= every // _LEFT_A_SHARE:
            break
        wanted.append(live)
        left -= n_events
    for first in range(0, len(wanted), _AT_ONCE):
        if time.monotonic() > ends_at:
            return
        store.put_snapshots([live.snapshot() for live in wanted[first : first + _AT_ONCE]])


def _most_first(pending: tuple[int, LiveRanker]) -> int:
    return -pending[0]
