"""Power cuts: python -m bench.powercuts --images 10000.

A service writes events to a disk that records every call (bench/disks.py). At each call, what a cut
of the power may leave of the files is rebuilt, opened, and held against what had been acknowledged.
"""

import argparse
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

from bench.disks import Call, PaperDisk, RecordingDisk
from keyhole.base.errors import KeyholeError
from keyhole.service.events import Event, Key, Snapshot
from keyhole.service.store.integrity import check_log
from keyhole.service.store.sqlite import SqliteStore
from tests.service.chains import more

FILE = "log.db"
_RANKERS = ("news", "shop")
_CHECKPOINT_PAGES = 12
"""So few that pages are moved to the database every few batches."""


class Promise(NamedTuple):
    """What had been acknowledged: events of each ranker, access keys, the secret of the log."""

    n_events: dict[str, int]
    n_keys: int
    secret: bytes

    def is_kept(self, found: dict[str, list[Event]], keys: list[Key], secret: bytes) -> bool:
        """Return whether a log holds at least that."""
        return (
            all(len(found[ranker]) >= n_events for ranker, n_events in self.n_events.items())
            and len(keys) >= self.n_keys
            and secret == self.secret
        )


@dataclass
class Recording:
    """What reached the disk, and what the service had promised by then."""

    calls: list[Call]
    sent: dict[str, list[Event]] = field(default_factory=lambda: {name: [] for name in _RANKERS})
    whole: dict[str, set[int]] = field(default_factory=lambda: {name: {0} for name in _RANKERS})
    """The numbers of events that whole batches come to."""
    keys: list[Key] = field(default_factory=list)
    secret: bytes = b""
    promised: list[tuple[int, Promise]] = field(default_factory=list)
    """After how many calls how much had been acknowledged."""

    def promise(self) -> None:
        """Note that all that was sent has been acknowledged."""
        n_events = {ranker: len(events) for ranker, events in self.sent.items()}
        self.promised.append((len(self.calls), Promise(n_events, len(self.keys), self.secret)))

    def promised_by(self, n_calls: int) -> Promise | None:
        """Return what had been acknowledged after so many calls."""
        kept = [promise for at, promise in self.promised if at <= n_calls]
        return kept[-1] if kept else None


def record(n_batches: int, *, synchronous: str | None = None, seed: int = 0) -> Recording:
    """Return what happens when batches of events are appended to a store, reopened at times.

    The store syncs as often as it does by itself, or as ``synchronous`` says.
    """
    numbers, disk = random.Random(seed), RecordingDisk()
    recording = Recording(disk.calls)
    with tempfile.TemporaryDirectory() as folder:
        store = _open(Path(folder) / FILE, synchronous, disk.name)
        recording.secret = store.secret()
        recording.promise()
        for batch in range(n_batches):
            ranker = numbers.choice(_RANKERS)
            size = numbers.choice((30, 300, 6_000)) if batch % 5 == 0 else 60
            n_events = numbers.randint(1, 6)
            recording.sent[ranker] += more(store, n_events, ranker=ranker, size=size)
            recording.whole[ranker].add(len(recording.sent[ranker]))
            recording.promise()
            if batch % 9 == 4:
                state = numbers.randbytes(3_000)
                store.put_snapshot(Snapshot(ranker, len(recording.sent[ranker]), "", state))
            if batch % 13 == 6:
                recording.keys.append(Key(f"key {batch:03d}", b"", ("rank",), ("*",), 0))
                store.add_key(recording.keys[-1])
                recording.promise()
            if batch % 17 == 11:
                store.close()
                store = _open(Path(folder) / FILE, synchronous, disk.name)
        store.close()
    disk.unregister()
    return recording


def _open(path: Path, synchronous: str | None, vfs: str | None = None) -> SqliteStore:
    options: dict[str, Any] = {} if synchronous is None else {"_synchronous": synchronous}
    return SqliteStore(path, _vfs=vfs, _checkpoint_pages=_CHECKPOINT_PAGES, **options)


def images(
    recording: Recording, n_images: int, *, seed: int = 0
) -> Iterator[tuple[int, dict[str, bytes]]]:
    """Yield what cuts may leave, spread over all calls, and after how many calls each cut came."""
    numbers, disk, made = random.Random(seed), PaperDisk(), 0
    for n_calls, call in enumerate(recording.calls, 1):
        disk.do(call)
        due = n_images * n_calls // len(recording.calls)
        for _ in range(made, due):
            yield n_calls, disk.image(numbers)
        made = due


def verdict(recording: Recording, n_calls: int, image: dict[str, bytes]) -> str:
    """Return what became of the log in an image: whole, lost, corrupt or torn."""
    with tempfile.TemporaryDirectory() as folder:
        for name, content in image.items():
            (Path(folder) / name).write_bytes(content)
        try:
            with _open(Path(folder) / FILE, "OFF") as store:
                check_log(store)
                found = {name: list(store.events(name)) for name in _RANKERS}
                keys, secret = store.keys(), store.secret()
                for ranker in _RANKERS:
                    more(store, 2, ranker=ranker)
        except KeyholeError:
            return "corrupt"
    promise = recording.promised_by(n_calls)
    if promise is not None and not promise.is_kept(found, keys, secret):
        return "lost"
    if keys != recording.keys[: len(keys)]:
        return "corrupt"
    for ranker, events in found.items():
        if events != recording.sent[ranker][: len(events)]:
            return "corrupt"
        if len(events) not in recording.whole[ranker]:
            return "torn"
    return "whole"


def cut(
    n_images: int, *, n_batches: int, synchronous: str | None = None, seed: int = 0
) -> Counter[str]:
    """Return how many images had each verdict."""
    recording = record(n_batches, synchronous=synchronous, seed=seed)
    return Counter(
        verdict(recording, n_calls, image)
        for n_calls, image in images(recording, n_images, seed=seed)
    )


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--images", type=int, default=10_000)
    parser.add_argument("--synchronous", choices=["FULL", "NORMAL", "OFF"])
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args(arguments)
    began, total = perf_counter(), Counter[str]()
    # Many short services: their disks differ, and an image of a long one takes longer to open.
    for first in range(0, given.images, 500):
        n_images = min(500, given.images - first)
        seed = given.seed + first
        total += cut(n_images, n_batches=28, synchronous=given.synchronous, seed=seed)
        told = ", ".join(f"{n} {what}" for what, n in sorted(total.items()))
        print(f"{total.total()} images: {told} ({perf_counter() - began:.0f} s)", flush=True)
    return 0 if set(total) == {"whole"} else 1


if __name__ == "__main__":
    sys.exit(main())
