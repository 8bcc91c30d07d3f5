"""Takes final snapshots at shutdown, for a fast restart, within a time limit."""

import time
from collections.abc import Iterable

from keyhole.service.ranker_state import LiveRanker
from keyhole.service.store.base import Store

_LONGEST = 5.0
"""The time limit in seconds; the next start replays more events of the remaining rankers."""
_AT_ONCE = 64
_WORTH_A_SHARE, _LEFT_A_SHARE = 200, 10
"""A ranker gets a snapshot from 1/200 of the snapshot interval on; events up to 1/10 of the
interval, over all rankers, may remain to be replayed."""


def put_last_snapshots(store: Store, rankers: Iterable[LiveRanker], every: int) -> None:
    """Take snapshots of the rankers with the most events to replay, until few events remain."""
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
