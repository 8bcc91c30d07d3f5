"""Flip single bits of a log: python -m bench.bit_flips --times 2000.

A log of many events and snapshots is made once, as a kill leaves it: the last of it is in the
write-ahead log alone. A copy with one bit changed, anywhere in either file, is opened as the
service opens it, held against what the whole log leads to (states, waiting lists, what people are
shown), and gone on with. A flip must be found, or healed from the log, or make no difference: a
service that goes on from something else without a word is what this looks for. SQLite drops a last
transaction that is changed in the write-ahead log: the lock file says that it was acknowledged.
"""

import argparse
import random
import shutil
import sys
import tempfile
from collections import Counter
from pathlib import Path
from time import perf_counter
from typing import Any

import msgspec

from keyhole.base.errors import KeyholeError
from keyhole.service.commands import (
    Activate,
    Configure,
    Document,
    Expire,
    FeedbackRequest,
    GiveFeedback,
    Rank,
    RankerRequest,
    RankRequest,
)
from keyhole.service.engine import Engine
from keyhole.service.errors import RankerDamaged, StoreError
from keyhole.service.events import Key
from keyhole.service.group_commit import Desk
from keyhole.service.ranker_state import LiveRanker
from keyhole.service.store import open_store

_ITEMS = ["coffee", "tea", "milk", "cocoa"]
_RANKERS = ("drinks", "news", "shop")
_WIDE = 40
"""Features of a document: so many that lists which wait are read again from the log."""
_LATER = 50_000
_MOST_ASKED = 30
"""Requests that each ranker is sent again."""
_N_SNAPSHOTS = 5
_SHARE = 0.25
"""Of the flips: so many are in the write-ahead log."""


class Wrong(Exception):
    """A log that leads to something else, which nobody was told."""


def make(path: Path, *, n_rounds: int = 90) -> None:
    """Make a log."""
    with open_store(path) as store:
        engine = Engine(store)
        for ranker in _RANKERS:
            engine.execute(Configure(ranker, _request(ranker)), 1_000)
        for round in range(n_rounds):
            for ranker in _RANKERS:
                _live_on(engine, ranker, round)
            if round and round % max(n_rounds // _N_SNAPSHOTS, 1) == 0:
                for live in engine.rankers.values():
                    store.put_snapshot(live.snapshot())
        store.add_key(Key("kh_first", bytes(32), ("rank", "feedback"), ("*",), 1_000))


def leave(path: Path, whole: Path, *, n_rounds: int) -> None:
    """Go on with a log, and copy it as a kill would leave it."""
    with open_store(path) as store:
        engine = Engine(store)
        for round in range(n_rounds, n_rounds + max(n_rounds // 10, 2)):
            for ranker in _RANKERS:
                _live_on(engine, ranker, round)
        engine.execute(Rank("shop", RankRequest(), "the last"), _LATER)
        _copy(path, whole)


def _copy(path: Path, other: Path) -> Path:
    for end in ("", "-wal", ".lock"):
        shutil.copy(f"{path}{end}", f"{other}{end}")
    return other


def _request(ranker: str, wait_seconds: float = 600.0) -> RankerRequest:
    if ranker == "news":
        return RankerRequest(n_features=_WIDE, max_items=8, k=2, seed=2, settings={"capacity": 16})
    mode: Any = "apprentice" if ranker == "drinks" else "online"
    share = 0.5 if ranker == "drinks" else 0.0
    return RankerRequest(
        items=_ITEMS, k=2, seed=1, mode=mode, apprentice_share=share, wait_seconds=wait_seconds
    )


def _ask(ranker: str, round: int) -> RankRequest:
    if ranker != "news":
        return RankRequest(deferred=round % 7 == 3)
    numbers = random.Random(round)
    features = [[numbers.random() for _ in range(_WIDE)] for _ in range(8)]
    return RankRequest(items=[Document(f"d{i}") for i in range(8)], features=features)


def _live_on(engine: Engine, ranker: str, round: int) -> None:
    """Let a ranker live through all that can happen to one."""
    at = 2_000 + 10 * round
    shown = engine.execute(Rank(ranker, _ask(ranker, round), f"request {round}"), at)
    if round % 14 == 3 and ranker != "news":
        engine.execute(Activate(ranker, shown.event_id), at + 1)
    if round % 4:
        said = FeedbackRequest("none") if round % 5 == 0 else _liked(shown.ranking)
        engine.execute(GiveFeedback(ranker, shown.event_id, said), at + 2)
    if round % 30 == 20:
        waiting = tuple(engine.ranker(ranker).waiting)[:3]
        engine.execute(Expire(ranker, waiting), at + 3)
        if ranker != "news":
            engine.execute(Configure(ranker, _request(ranker, 600.0 + round)), at + 4)


def _liked(ranking: list[str]) -> FeedbackRequest:
    return FeedbackRequest(relevance=[float(name in ("tea", "d3", "d5")) for name in ranking[:2]])


# --------------------------------------------------------------------------- looking


def look(path: Path) -> dict[str, Any]:
    """Return what a log leads to and what comes of going on with it; a ranker that is refused
    has no entry, and one that is refused on the way has none from there on."""
    with open_store(path) as store:
        desk = Desk(store)
        desk._checking.wait(60.0)
        desk._take_findings()
        found: dict[str, Any] = {"snapshots": {}}
        for name, live in list(desk.engine.rankers.items()):
            if desk.engine.damage is None:
                found[name] = _told_of(live)
                found["snapshots"][name] = len(store.snapshots(name))
        found["names"] = sorted({*desk.engine.rankers, *desk.engine.damaged})
        found["is_damaged"] = desk.log == "damaged"
        for name in _RANKERS:
            try:
                found[f"{name}, later"] = _gone_on(desk.engine, name)
            except (RankerDamaged, StoreError):
                found["is_damaged"] = True
        desk._checking.stop()
        return found


def _told_of(live: LiveRanker) -> dict[str, Any]:
    return {
        "seq": live.seq,
        "round": live.round,
        "sha256": live.sha256(),
        "waiting": [(seq, w.event_id, w.at, w.deferred) for seq, w in live.waiting.items()],
        "seq_of": dict(live.seq_of),
        "tally": msgspec.to_builtins(live.tally),
        "waits": live.waits,
        "reply": msgspec.to_builtins(live.reply()),
    }


def _gone_on(engine: Engine, name: str) -> list[Any]:
    """Return the answers to requests that are about what was before, and the state after them."""
    live = engine.ranker(name)
    said: list[Any] = [
        engine.execute(Rank(name, _ask(name, round), f"request {round}"), _LATER)
        for round in range(0, live.round - 1, max(3, live.round // _MOST_ASKED))  # each is known
    ]
    told = [(seq, waited.event_id) for seq, waited in live.waiting.items()]
    for seq, event_id in told[::2]:
        ranking = [live.names_of(live.ranked(seq))[i] for i in live.ranked(seq).ranking]
        said.append(
            engine.execute(GiveFeedback(name, event_id, _liked(ranking)), _LATER + 1).learned
        )
    # What an id is made of is not part of any state: it may be lost without a trace.
    again = (
        RankRequest(event_id="mine")
        if name != "news"
        else msgspec.structs.replace(_ask(name, 99), event_id="mine")
    )
    said.append(engine.execute(Rank(name, again, "a new request"), _LATER + 2).k)
    return [*map(msgspec.to_builtins, said), engine.ranker(name).seq]


def verdict(path: Path, expected: dict[str, Any]) -> str:
    """Return what became of a changed log, or raise :class:`Wrong`."""
    try:
        found = look(path)
    except (StoreError, RankerDamaged):
        return "found"
    for name in _RANKERS:
        for entry in (name, f"{name}, later"):
            if entry in found and found[entry] != expected[entry]:
                raise Wrong(f"{entry}: {_difference(found[entry], expected[entry])}")
    if found["is_damaged"]:
        return "found"
    if found["names"] != expected["names"]:
        raise Wrong(f"There are rankers {found['names']}.")
    return "harmless" if found["snapshots"] == expected["snapshots"] else "healed"


def _difference(found: Any, expected: Any) -> str:
    if isinstance(found, dict):
        return ", ".join(key for key in found if found[key] != expected[key])
    pairs = zip(found, expected, strict=False)
    return next((f"{a!r} for {b!r}" for a, b in pairs if a != b), "another number of answers")


def flip(n_times: int, *, seed: int = 0, n_rounds: int = 600) -> Counter[str]:
    """Return how many single bits, changed one at a time, had each verdict."""
    numbers, counts = random.Random(seed), Counter[str]()
    with tempfile.TemporaryDirectory() as folder:
        made, whole = Path(folder) / "made.db", Path(folder) / "whole.db"
        make(made, n_rounds=n_rounds)
        leave(made, whole, n_rounds=n_rounds)
        contents = {end: Path(f"{whole}{end}").read_bytes() for end in ("", "-wal")}
        expected = look(_copy(whole, Path(folder) / "expected.db"))
        n_events = sum(expected[name]["seq"] for name in _RANKERS)
        sizes = f"{len(contents['']):,} bytes, {len(contents['-wal']):,} in -wal"
        print(f"{n_events:,} events, {sizes}")
        for number in range(n_times):
            end = "-wal" if numbers.random() < _SHARE else ""
            bit = numbers.randrange(8 * len(contents[end]))
            changed = bytearray(contents[end])
            changed[bit // 8] ^= 1 << bit % 8
            path = _copy(whole, Path(folder) / f"{number}.db")
            Path(f"{path}{end}").write_bytes(changed)
            try:
                counts[verdict(path, expected)] += 1
            except (Wrong, Exception) as error:
                counts["WRONG"] += 1
                kind = "" if isinstance(error, Wrong) else f"{type(error).__name__}: "
                print(f"Bit {bit} of {end or 'the file'}, seed {seed}: {kind}{error}")
                if not isinstance(error, KeyholeError | Wrong):
                    raise
            for file in path.parent.glob(f"{number}.db*"):
                file.unlink()
    return counts


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--times", type=int, default=2_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--rounds", type=int, default=600, help="of each of three rankers")
    asked = parser.parse_args(arguments)
    began = perf_counter()
    counts = flip(asked.times, seed=asked.seed, n_rounds=asked.rounds)
    told = ", ".join(f"{n} {what}" for what, n in sorted(counts.items()))
    print(f"{asked.times} flips: {told} ({perf_counter() - began:.0f} s)")
    return 1 if counts["WRONG"] else 0


if __name__ == "__main__":
    sys.exit(main())
