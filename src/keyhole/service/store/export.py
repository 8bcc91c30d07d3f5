"""The log as plain records, for people and for other tools."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from keyhole.service.events import Event, body_of


def event_record(event: Event) -> dict[str, Any]:
    """Return an event as plain data."""
    return {
        "ranker": event.ranker,
        "seq": event.seq,
        "kind": event.kind,
        "event_id": event.key,
        "at": event.at,
        "body": msgspec.to_builtins(body_of(event)),
    }


def write_parquet(events: Iterable[Event], path: Path) -> None:
    """Write events to a Parquet file."""
    raise NotImplementedError
