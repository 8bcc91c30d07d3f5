"""Where the time of a batch goes: ``python -m bench.batches``.

The computing of a list by step, asked for by itself and in batches of 64, without HTTP: requests
are decoded, decided, written (hash links, rows), committed (in the service by another thread),
applied and answered, as the group committer does. ``least`` does of a batch only what no service
with this log can leave out: the same JSON decoded and encoded, the same bodies, links and rows.
The lower quartile over all repetitions, in microseconds.
"""

import argparse
import hashlib
import sys
import tempfile
import time
from collections import defaultdict
from itertools import chain
from pathlib import Path
from typing import Any

from keyhole.service.api import impressions as api
from keyhole.service.commands import (
    Configure,
    FeedbackReply,
    GiveFeedback,
    GiveMany,
    Rank,
    RankBatchReply,
    RankBatchRequest,
    RankerRequest,
    RankMany,
    RankRequest,
)
from keyhole.service.engine import Engine, now
from keyhole.service.events import body_bytes, body_of
from keyhole.service.http.problems import encode, encode_lines
from keyhole.service.http.request import decode
from keyhole.service.store.sqlite import SqliteStore

N_BATCH, N_SINGLE, N_ITEMS = 64, 64, 20
STEPS = ("decode", "decide", "write", "commit", "apply", "answer")
_ROWS = 8


class Times:
    """Computing time by kind and step."""

    def __init__(self):
        self.found = defaultdict(list)

    def lap(self, kind, step, n_lists, work):
        """Return what work returns, and note its time for each list."""
        began = time.thread_time_ns()
        result = work()
        self.found[kind, step].append((time.thread_time_ns() - began) / 1e3 / n_lists)
        return result

    def of(self, kind, step):
        """Return the lower quartile."""
        times = sorted(self.found[kind, step])
        return times[len(times) // 4] if times else 0.0


def group(times, kind, engine, commands, n_lists, answer):
    """Carry out a group of commands, and return their replies."""

    def apply():
        engine.apply_all(made)
        for decision in decisions:
            engine.settle(decision)

    at = now()
    decisions = times.lap(
        kind, "decide", n_lists, lambda: [engine.decide(each, at) for each in commands]
    )
    made = [each for decision in decisions for each in decision.made]
    commit = times.lap(
        kind, "write", n_lists, lambda: engine.store.stage([event for event, _ in made])
    )
    times.lap(kind, "commit", n_lists, commit)
    times.lap(kind, "apply", n_lists, apply)
    replies: list[Any] = []
    times.lap(
        kind,
        "answer",
        n_lists,
        lambda: replies.extend((reply := each.reply(), answer(reply))[0] for each in decisions),
    )
    return replies, [event for event, _ in made]


def lines_of(replies):
    return encode_lines([
        api.LineReply(number, 201, "e", reply.learned, reply.seq)
        for number, reply in enumerate(replies, 1)
        if isinstance(reply, FeedbackReply)
    ])  # fmt: skip


def batches(times, engine, least, number):
    """Ask for four batches, and give feedback on them."""
    n_lists, body = 4 * N_BATCH, encode(RankBatchRequest([RankRequest()] * N_BATCH))

    def read():
        return [RankMany("load", api._requests(body), f"{number}-{place}") for place in range(4)]

    def read_feedback():
        commands = []
        for each in lines:
            said: Any = api._at_once(each)
            commands.append(GiveMany("load", {one.event_id: one for _, one in said}))
        return commands

    def answer(reply):
        return encode(RankBatchReply(reply))

    commands = times.lap("rank-batch", "decode", n_lists, read)
    shown, events = group(times, "rank-batch", engine, commands, n_lists, answer)
    minimal(times, "rank-batch", least, events,
            lambda: [api._requests(body) for _ in range(4)],
            lambda: [answer(each) for each in shown])  # fmt: skip
    lines = [b"".join(b'{"event_id":"%b","relevance":[1]}\n' % one.event_id.encode()
                      for one in batch) for batch in shown]  # fmt: skip
    commands = times.lap("feedback-batch", "decode", n_lists, read_feedback)
    told, events = group(times, "feedback-batch", engine, commands, n_lists, lines_of)
    minimal(times, "feedback-batch", least, events,
            lambda: [api._at_once(each) for each in lines],
            lambda: [lines_of(each) for each in told])  # fmt: skip


def singles(times, engine, number):
    """Ask for lists one by one, and give feedback on them."""

    def read():
        return [Rank("load", decode(api._rank_request, b"{}"), f"{number}-single-{place}")
                for place in range(N_SINGLE)]  # fmt: skip

    def read_feedback():
        said = b'{"relevance":[1]}'
        return [GiveFeedback("load", one.event_id, decode(api._feedback_request, said))
                for one in shown]  # fmt: skip

    commands = times.lap("rank", "decode", N_SINGLE, read)
    shown, _ = group(times, "rank", engine, commands, N_SINGLE, encode)
    commands = times.lap("feedback", "decode", N_SINGLE, read_feedback)
    group(times, "feedback", engine, commands, N_SINGLE, encode)


def minimal(times, kind, store, events, read, answer):
    """Do for a batch only what its log and its answer need."""
    kind, db = f"{kind}, least", store._writer
    bodies = [body_of(event) for event in events]
    last = store.last("load")
    seq = 1 if last is None else last.seq + 1

    def write():
        link = bytes(16)
        rows: list[tuple[Any, ...]] = []
        for event, content in zip(events, contents, strict=True):
            place = seq + len(rows)
            head = f"load\n{place}\n{event.kind}\n={event.key}\n\n{event.at}\n"
            link = hashlib.sha256(link + head.encode() + content).digest()[:16]
            rows.append(("load", place, event.kind, event.key, None, event.at, content, link))
        db.execute("BEGIN IMMEDIATE")
        for first in range(0, len(rows), _ROWS):
            some = rows[first : first + _ROWS]
            values = ", ".join(["(?, ?, ?, ?, ?, ?, ?, ?)"] * len(some))
            db.execute(f"INSERT INTO events VALUES {values}", tuple(chain.from_iterable(some)))  # noqa: S608

    n_lists = len(events)
    times.lap(kind, "decode", n_lists, read)
    contents = times.lap(kind, "decide", n_lists, lambda: [body_bytes(each) for each in bodies])
    times.lap(kind, "write", n_lists, write)
    times.lap(kind, "commit", n_lists, lambda: db.execute("COMMIT"))
    times.lap(kind, "answer", n_lists, answer)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repetitions", type=int, default=200)
    parser.add_argument("--folder", type=Path, default=Path.cwd(), help="where the logs are kept")
    given = parser.parse_args()
    with (
        tempfile.TemporaryDirectory(dir=given.folder) as folder,
        SqliteStore(f"{folder}/log.db", create=True) as store,
        SqliteStore(f"{folder}/least.db", create=True) as least,
    ):
        engine = Engine(store)
        items = [f"item-{place}" for place in range(N_ITEMS)]
        engine.execute(Configure("load", RankerRequest(items=items, k=1, seed=1)))
        times = Times()
        for number in range(given.repetitions):
            batches(times, engine, least, number)
            singles(times, engine, number)
    for kinds in (("rank", "rank-batch"), ("feedback", "feedback-batch")):
        columns = [*kinds, f"{kinds[1]}, least"]
        print("".join([f"{'':10}", *(f"{each:>24}" for each in columns)]))
        for step in STEPS:
            print("".join([f"{step:10}", *(f"{times.of(each, step):24.2f}" for each in columns)]))
        sums = [sum(times.of(each, step) for step in STEPS if step != "commit") for each in columns]
        print("".join([f"{'loop':10}", *(f"{each:24.2f}" for each in sums)]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
