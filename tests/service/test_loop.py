"""What leaves the loop: hashes, snapshots, states of rankers that begin, metrics, pages."""

import asyncio
import threading
import time
from typing import Any

import pytest

from keyhole.service.commands import Configure, Rank, RankerRequest, RankRequest, Reset
from keyhole.service.errors import StoreFailed
from keyhole.service.metrics import Metrics
from keyhole.service.ranker_state import LiveRanker
from keyhole.service.store.memory import MemoryStore
from tests.service.asking import Asked
from tests.service.desks import configure
from tests.service.test_desk import FaultyStore, liked, run

_RANK = Rank("animals", RankRequest())


@pytest.fixture
def noted(monkeypatch):
    """Note what is called, and whether that is in the loop, which is in this thread."""
    calls = []

    def note(kind, name):
        function = getattr(kind, name)

        def call(self, *args, **given):
            calls.append((name, threading.current_thread() is threading.main_thread()))
            return function(self, *args, **given)

        monkeypatch.setattr(kind, name, call)
        return calls

    return note


class Lists(dict[int, Any]):
    """Lists that wait, which note where all of them are gone through."""

    places: list[bool]

    def note(self):
        self.places.append(threading.current_thread() is threading.main_thread())
        return super()

    def __iter__(self):
        return self.note().__iter__()

    def keys(self):
        return self.note().keys()

    def values(self):
        return self.note().values()

    def items(self):
        return self.note().items()


def test_hashes_and_what_is_told_of_all_lists_are_made_outside_of_the_loop(noted):
    calls = noted(LiveRanker, "sha256")
    with Asked() as service:
        service.put()
        for _ in range(3):
            service.rank()
        live = service.desk.engine.ranker("animals")
        live.waiting = Lists(live.waiting)
        live.waiting.places = []
        calls.clear()
        told = service.ask("GET", "/v1/rankers/animals/state").json()
        page = service.ask("GET", "/rankers/animals.json").json()
        service.ask("GET", "/rankers/animals")
        assert page["summary"]["sha256"] == told["sha256"]
        assert calls == [("sha256", False)] * 3
        listed = service.ask("GET", "/index.json").json()["rankers"]
        assert calls == [("sha256", False)] * 3
        assert listed == [{name: page["summary"][name] for name in listed[0]}]
        assert not any(live.waiting.places)
        assert live.sha256() == told["sha256"]


def test_snapshots_are_taken_outside_of_the_loop(noted):
    calls = noted(LiveRanker, "snapshot")
    store = FaultyStore()

    async def scenario(desk):
        configure(desk.engine)
        live = desk.engine.ranker("animals")
        live.waiting = Lists(live.waiting)
        live.waiting.places = []
        for _ in range(25):
            await desk.submit(_RANK)
        return list(live.waiting.places)

    assert not any(run(scenario, store, snapshot_every=10))
    assert calls == [("snapshot", False)] * len(calls)
    assert [kept.seq for kept in store.snapshots("animals")] == [26, 10]


def test_nothing_is_applied_while_a_ranker_is_read():
    """Whoever reads it in a thread reads one state, and holds up nobody but who changes it."""

    async def scenario(desk):
        configure(desk.engine, wait_seconds=60.0)
        shown = await desk.submit(_RANK)
        live, begun, may_end = desk.engine.ranker("animals"), asyncio.Event(), threading.Event()
        loop, before = asyncio.get_running_loop(), live.state()

        def read():
            first = live.sha256()
            loop.call_soon_threadsafe(begun.set)
            may_end.wait(10.0)
            return live.state(), first

        reading = asyncio.create_task(desk.read(read))
        await begun.wait()
        asked = [desk.submit(_RANK), desk.submit(liked(shown.event_id))]
        writing = asyncio.gather(*asked)
        while desk.store.last("animals").seq < 4:  # they are on the disk
            await asyncio.sleep(0.002)
        await asyncio.sleep(0.01)
        assert (live.state(), writing.done()) == (before, False)
        may_end.set()
        told, first = await reading
        assert (told, told.sha256) == (before, first)
        await writing
        assert live.seq == 4
        assert live.sha256() != first

    run(scenario)


def test_readers_take_turns_with_what_is_applied():
    """However many read, an event waits for one of them at most."""

    async def scenario(desk):
        configure(desk.engine, wait_seconds=60.0)
        order = []
        readers = [asyncio.create_task(desk.read(lambda: order.append("read"))) for _ in range(20)]
        await asyncio.sleep(0)
        writing = asyncio.create_task(desk.submit(_RANK))
        writing.add_done_callback(lambda _: order.append("written"))
        await asyncio.gather(*readers, writing)
        return order

    assert run(scenario).index("written") < 20


def test_the_state_of_a_ranker_that_begins_is_made_before_it_is_asked(noted):
    calls = noted(LiveRanker, "make_state")
    noted(LiveRanker, "draw")

    async def scenario(desk):
        configure(desk.engine, wait_seconds=60.0)
        await desk.submit(_RANK)
        calls.clear()
        await asyncio.gather(desk.submit(Reset("animals")), desk.submit(_RANK))

    run(scenario)
    assert calls == [("make_state", False), ("draw", True)]


def test_after_a_failure_states_are_made_outside_of_the_loop(noted):
    store = FaultyStore()
    calls = noted(LiveRanker, "make_state")

    async def scenario(desk):
        configure(desk.engine, wait_seconds=60.0)
        calls.clear()
        store.faults = [StoreFailed("It failed.")]
        with pytest.raises(StoreFailed):
            await desk.submit(_RANK)
        while not desk.is_ready:
            await asyncio.sleep(0.002)

    run(scenario, store, reopen=lambda: store)
    assert calls == [("make_state", False)]


def test_metrics_are_written_outside_of_the_loop(noted):
    calls = noted(Metrics, "text")
    with Asked() as service:
        service.put()
        assert 'keyhole_ranker_seq{ranker="animals"} 1.0' in service.ask("GET", "/metrics").text
    assert calls == [("text", False)]


class SlowStore(MemoryStore):
    def append(self, events):
        time.sleep(0.02)
        super().append(events)


@pytest.mark.parametrize("n_features", [511, 512])
def test_large_lists_are_learnt_from_outside_of_the_loop(monkeypatch, n_features):
    """Meanwhile the loop does other things, but decides no command, even during a commit."""
    apply_all, may_end = LiveRanker.apply_all, threading.Event()
    in_threads = []

    def applied(live, events):
        if threading.current_thread() is not threading.main_thread():
            in_threads.append([event.kind for event, _ in events])
            may_end.wait(10.0)
        apply_all(live, events)

    async def scenario(desk):
        described = RankerRequest(n_features=n_features, max_items=2, ranker="random-lists")
        await desk.submit(Configure("animals", described))
        monkeypatch.setattr(LiveRanker, "apply_all", applied)
        row = [0.5] * n_features
        rank = Rank("animals", RankRequest(features=[row, row]))
        shown = await desk.submit(rank)
        learning = asyncio.create_task(desk.submit(liked(shown.event_id)))
        await asyncio.sleep(0.005)
        committing = asyncio.create_task(desk.submit(rank))
        while n_features == 512 and not in_threads:
            await asyncio.sleep(0.002)
        ranking = asyncio.create_task(desk.submit(rank))
        await asyncio.sleep(0.1)
        assert ranking.done() is (n_features == 511)
        may_end.set()
        said, earlier, later = await asyncio.gather(learning, committing, ranking)
        assert (said.learned, earlier.model_seq) == ("learned", 2)
        assert later.model_seq >= (3 if n_features == 512 else 2)

    run(scenario, SlowStore())
    assert in_threads == ([["feedback"]] if n_features == 512 else [])
