"""Callers of a service whose disk is full or fails: told so, and never told what is not so."""

import asyncio
import sys

import pytest

from bench.disks import FailingDisk
from keyhole.service.commands import (
    Configure,
    FeedbackRequest,
    GiveFeedback,
    Rank,
    RankerRequest,
    RankRequest,
)
from keyhole.service.errors import StoreFailed, StoreFull
from keyhole.service.group_commit import Desk
from keyhole.service.replay import check_ranker
from keyhole.service.store.sqlite import SqliteStore
from tests.service.desks import ANIMALS
from tests.service.test_faults import FAULTS, Fault

_CREATE = Configure("animals", RankerRequest(items=ANIMALS, seed=1, wait_seconds=60.0))
_WAVES, _CALLERS = 3, 4


class Crowd:
    """Callers that try again, with the same idempotency key, until they are answered."""

    def __init__(self, path, fault: Fault) -> None:
        self.path, self.fault = path, fault
        self.disk = FailingDisk(fault.of, 0, fault.error, n_failures=0)
        self.n_refused = 0

    def open(self) -> SqliteStore:
        return SqliteStore(self.path, _vfs=self.disk.name, _checkpoint_pages=4)

    async def insist(self, desk, command):
        while True:
            try:
                return await desk.submit(command)
            except (StoreFull, StoreFailed) as error:
                refusal = type(error)
            assert refusal is (StoreFull if self.fault.is_full else StoreFailed)
            self.n_refused += 1
            self.disk.mend()
            await asyncio.sleep(0.001)

    async def play(self, at: int) -> None:
        desk = Desk(self.open(), reopen=self.open, snapshot_every=5)
        await desk.start()
        self.disk.break_at(at)
        await self.insist(desk, _CREATE)
        promised = []
        for wave in range(_WAVES):
            asked = [Rank("animals", RankRequest(), f"{wave}-{i}") for i in range(_CALLERS)]
            shown = await asyncio.gather(*(self.insist(desk, each) for each in asked))
            promised += [reply.event_id for reply in shown]
            liked = FeedbackRequest(relevance=[1.0])
            said = [GiveFeedback("animals", reply.event_id, liked) for reply in shown]
            await asyncio.gather(*(self.insist(desk, each) for each in said))
        await desk.stop()
        desk.store.close()
        self.disk.mend()
        self.check(promised, desk.engine.ranker("animals").sha256())

    def check(self, promised, sha256) -> None:
        with self.open() as store:
            ranks = [event.key for event in store.events("animals") if event.kind == "rank"]
            assert (set(ranks), len(ranks)) == (set(promised), len(promised))
            for event_id in promised:
                assert store.find("animals", event_id, "feedback") is not None
            found = check_ranker(store, "animals")
            assert (found.problems, found.sha256) == ((), sha256)


@pytest.mark.parametrize(("name", "step"), [("full", 9), ("write", 9), ("sync", 3)])
def test_no_caller_is_told_what_is_not_so(tmp_path, monkeypatch, name, step):
    # SQLite copes with some faults and tells nobody of them; apsw then tells Python's own hook.
    monkeypatch.setattr(sys, "unraisablehook", lambda _: None)
    at, n_met = 0, 0
    while True:
        folder = tmp_path / str(at)
        folder.mkdir()
        crowd = Crowd(folder / "log.db", FAULTS[name])
        asyncio.run(crowd.play(at))
        crowd.disk.unregister()
        n_met += crowd.n_refused > 0
        if crowd.disk.n_calls <= at:
            break
        at += step
    assert n_met >= 3
