"""Copies of a log as hive-partitioned Parquet, which other programs read without Keyhole.

A folder has ``ranker=NAME/day=YYYY-MM-DD/FIRST-LAST.parquet``: the events FIRST to LAST of a
ranker. The names of the files are the only record of what was copied, and a file appears under its
name once it is on the disk: so a copy that is interrupted anywhere goes on without gaps, and no
event is in two files.
"""

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from keyhole.base.errors import InvalidInput
from keyhole.base.files import shortened, writing_atomically
from keyhole.service.events import Event
from keyhole.service.store.base import Store
from keyhole.service.store.chain import checked, tip_of
from keyhole.service.store.export import NamesOf, event_record, load_polars, names_in, time_text

_MOST_EVENTS, _MOST_BYTES = 50_000, 64 * 2**20
"""The events of a file, and the bytes of their bodies, that end it."""

_encoder = msgspec.json.Encoder()
_IN_COLUMNS = ("seq", "kind", "event_id", "idempotency_key", "at", "link")
"""Fields of a record that have a column; the others are the column ``body``, as JSON."""


class Part(NamedTuple):
    """A file of the folder: the first and the last event in it."""

    first: int
    last: int
    path: Path


def parts_of(folder: Path, ranker: str) -> list[Part]:
    """Return the files of a ranker in order, or raise if one is missing between them."""
    found = []
    for path in folder.glob(f"ranker={ranker}/day=*/*.parquet"):
        first, _, last = path.stem.partition("-")
        if not (first.isdecimal() and last.isdecimal()):
            raise InvalidInput(
                f"{shortened(path)} must be named by its first and last event, as 1-500.parquet."
            )
        found.append(Part(int(first), int(last), path))
    found.sort()
    for before, part in pairwise([Part(0, 0, folder), *found]):
        if part.first != before.last + 1:
            raise InvalidInput(
                f"{shortened(part.path)} must begin with event {before.last + 1}, the next after "
                "the files before it: put missing files back, or begin with an empty folder."
            )
    return found


def n_copied(store: Store, folder: Path) -> int:
    """Return the number of events that the folder has."""
    parts = (parts_of(folder, ranker) for ranker in store.rankers())
    return sum(found[-1].last for found in parts if found)


def copy_events(store: Store, folder: Path, advance: Callable[[int], None]) -> int:
    """Copy what is new of all rankers; return the number of events.

    Every copied event is checked against the hash link of the event before it.
    """
    return sum(_copy_ranker(store, ranker, folder, advance) for ranker in store.rankers())


def _copy_ranker(store: Store, ranker: str, folder: Path, advance: Callable[[int], None]) -> int:
    found = parts_of(folder, ranker)
    last = found[-1].last if found else 0
    tip = tip_of(store.event(ranker, last) if last else None)
    if found and _last_link(found[-1].path) != tip.link.hex():
        raise InvalidInput(
            f"{shortened(found[-1].path)} must end with event {last} of ranker {ranker!r} of this "
            "log, but it is of another one: choose another folder."
        )
    names_of, n_new = names_in(store, ranker), 0
    for events in _in_parts(checked(store.events(ranker, after=last), tip)):
        day = _day(events[0])
        name = f"{events[0].seq}-{events[-1].seq}.parquet"
        with writing_atomically(folder / f"ranker={ranker}" / f"day={day}" / name) as file:
            _frame(events, names_of).write_parquet(file)
        n_new += len(events)
        advance(len(events))
    return n_new


def _day(event: Event) -> str:
    return time_text(event.at)[:10]


def _in_parts(events: Iterator[Event]) -> Iterator[list[Event]]:
    """Yield runs of events of one day that are not too large for a file."""
    part: list[Event] = []
    n_bytes = 0
    for event in events:
        is_full = len(part) == _MOST_EVENTS or n_bytes >= _MOST_BYTES
        if part and (is_full or _day(event) != _day(part[0])):
            yield part
            part, n_bytes = [], 0
        part.append(event)
        n_bytes += len(event.body)
    if part:
        yield part


def _frame(events: list[Event], names_of: NamesOf) -> Any:
    pl = load_polars()
    records = [event_record(event, names_of) for event in events]
    bodies = [
        _encoder.encode({key: value for key, value in record.items() if key not in _IN_COLUMNS})
        for record in records
    ]
    columns = {
        "seq": (pl.Int64, [event.seq for event in events]),
        "kind": (pl.String, [event.kind for event in events]),
        "event_id": (pl.String, [event.key for event in events]),
        "idempotency_key": (pl.String, [event.idem for event in events]),
        "at": (pl.Datetime("ms", "UTC"), [event.at for event in events]),
        "link": (pl.String, [event.link.hex() for event in events]),
        "body": (pl.String, [body.decode() for body in bodies]),
    }
    return pl.DataFrame(
        {name: values for name, (_, values) in columns.items()},
        schema={name: kind for name, (kind, _) in columns.items()},
    )


def _last_link(path: Path) -> str:
    pl = load_polars()
    try:
        return str(pl.read_parquet(path, columns=["link"], hive_partitioning=False)["link"][-1])
    except (pl.exceptions.PolarsError, OSError, IndexError) as error:
        raise InvalidInput(
            f"{shortened(path)} must be a file that keyhole db outbox wrote: {error}."
        ) from None


@contextmanager
def held(folder: Path) -> Iterator[None]:
    """Keep a second copy out of a folder, which is made if it is missing."""
    folder.mkdir(parents=True, exist_ok=True)
    handle = os.open(folder / ".outbox.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise InvalidInput(
                f"{shortened(folder)} is in use: another process copies events to it."
            ) from None
        yield
    finally:
        os.close(handle)
