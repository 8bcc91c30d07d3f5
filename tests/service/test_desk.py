"""Many callers at once: groups, failures of the disk, waits that no wall clock can change."""

import asyncio
import random
import time

import pytest

from keyhole.base.errors import InvalidInput
from keyhole.service.commands import (
    Configure,
    Expire,
    FeedbackRequest,
    GiveFeedback,
    MeasureVerdict,
    Rank,
    RankerRequest,
    RankMany,
    RankRequest,
)
from keyhole.service.engine import Engine
from keyhole.service.errors import ConflictingRequest, StoreFailed, StoreFull
from keyhole.service.events import body_of
from keyhole.service.group_commit import Desk
from keyhole.service.ranker_state import LiveRanker
from keyhole.service.replay import check_ranker
from keyhole.service.store.memory import MemoryStore
from tests.service.desks import ANIMALS

_CREATE = Configure("animals", RankerRequest(items=ANIMALS, seed=1, wait_seconds=60.0))
_RANK = Rank("animals", RankRequest())


def liked(event_id, relevance=1.0):
    return GiveFeedback("animals", event_id, FeedbackRequest(relevance=[relevance]))


class Clock:
    """Seconds that a test decides about."""

    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


class FaultyStore(MemoryStore):
    """A store whose next appends fail as they are told to."""

    def __init__(self):
        super().__init__()
        self.faults = []
        self.batches = []

    def append(self, events):
        if self.faults:
            raise self.faults.pop(0)
        self.batches.append(len(events))
        super().append(events)


def run(scenario, store=None, **options):
    """Run a scenario with a desk, and return what it returns."""

    async def main():
        desk = Desk(MemoryStore() if store is None else store, **options)
        await desk.start()
        try:
            return await scenario(desk)
        finally:
            await desk.stop()

    return asyncio.run(main())


def test_callers_share_commits_and_each_gets_the_own_reply():
    store = FaultyStore()

    async def scenario(desk):
        await desk.submit(_CREATE)
        shown = await asyncio.gather(*(desk.submit(_RANK) for _ in range(100)))
        await asyncio.gather(*(desk.submit(liked(reply.event_id)) for reply in shown))
        return shown, desk.engine.ranker("animals").sha256()

    shown, sha256 = run(scenario, store)
    assert len({reply.event_id for reply in shown}) == 100
    assert sum(store.batches) == 201
    assert len(store.batches) < 20
    checked = check_ranker(store, "animals")
    assert (checked.problems, checked.sha256, checked.seq) == ((), sha256, 201)
    rounds = [event for event in store.events("animals") if event.kind == "rank"]
    assert [event.key for event in rounds] == [reply.event_id for reply in shown]


def test_what_is_about_one_list_is_decided_one_after_the_other():
    async def scenario(desk):
        await desk.submit(_CREATE)
        keyed = Rank("animals", RankRequest(), "key")
        first, second = await asyncio.gather(desk.submit(keyed), desk.submit(keyed))
        assert first == second
        said = await asyncio.gather(
            desk.submit(liked(first.event_id)),
            desk.submit(liked(first.event_id)),
            desk.submit(liked(first.event_id, 0.0)),
            return_exceptions=True,
        )
        shorter = RankerRequest(items=["bee", "cat"], seed=1, wait_seconds=60.0)
        changed = Configure("animals", shorter, judged=MeasureVerdict(None))
        before, _, after = await asyncio.gather(
            desk.submit(_RANK), desk.submit(changed), desk.submit(_RANK)
        )
        return said, before.ranking, after.ranking

    said, before, after = run(scenario)
    assert [reply.created for reply in said[:2]] == [True, False]
    assert isinstance(said[2], ConflictingRequest)
    assert (sorted(before), sorted(after)) == (ANIMALS, ["bee", "cat"])


def test_a_full_disk_acknowledges_nothing_and_is_got_over():
    store = FaultyStore()

    async def scenario(desk):
        await desk.submit(_CREATE)
        shown = await desk.submit(_RANK)
        state = desk.engine.ranker("animals").sha256()
        store.faults = [StoreFull("No room.")] * 2
        with pytest.raises(StoreFull):
            await desk.submit(liked(shown.event_id))
        with pytest.raises(StoreFull):
            await desk.submit(_RANK)
        assert desk.engine.ranker("animals").sha256() == state
        assert desk.is_ready
        assert (await desk.submit(liked(shown.event_id))).created
        return (await desk.submit(_RANK)).event_id, desk.engine.ranker("animals").sha256()

    event_id, sha256 = run(scenario, store)
    assert event_id == list(store.events("animals"))[-1].key
    assert check_ranker(store, "animals").sha256 == sha256


def test_after_a_failure_the_log_is_read_again():
    store = FaultyStore()
    reopened = []

    def reopen():
        reopened.append(True)
        if len(reopened) == 1:
            raise StoreFailed("Not yet.")
        return store

    async def scenario(desk):
        await desk.submit(_CREATE)
        shown = await desk.submit(_RANK)
        store.faults = [OSError("I/O error")]
        with pytest.raises(StoreFailed):
            await desk.submit(liked(shown.event_id))
        while not desk.is_ready:
            with pytest.raises(StoreFailed):
                await desk.submit(_RANK)
            await asyncio.sleep(0.01)
        assert (await desk.submit(liked(shown.event_id))).created
        return desk.engine.ranker("animals").sha256()

    sha256 = run(scenario, store, reopen=reopen)
    assert len(reopened) == 2
    assert check_ranker(store, "animals").sha256 == sha256


def test_a_command_that_is_refused_harms_no_other():
    async def scenario(desk):
        await desk.submit(_CREATE)
        bad = Rank("animals", RankRequest(exclude=["eel"]))
        said = await asyncio.gather(
            desk.submit(_RANK), desk.submit(bad), desk.submit(_RANK), return_exceptions=True
        )
        assert isinstance(said[1], InvalidInput)
        return said[0], said[2], desk.engine.ranker("animals").round

    first, second, round = run(scenario)
    assert first.event_id != second.event_id
    assert round == 2


def test_waits_end_by_a_clock_that_only_goes_forward(monkeypatch):
    clock = Clock()

    async def scenario(desk):
        await desk.submit(_CREATE)
        live = desk.engine.ranker("animals")
        await desk.submit(_RANK)
        deferred = await desk.submit(Rank("animals", RankRequest(deferred=True)))
        for years in (10, -10):
            offset = years * 365 * 86_400 * 10**9
            monkeypatch.setattr(time, "time_ns", lambda o=offset: 1_800_000_000 * 10**9 + o)
            await desk.submit(_RANK)
            assert desk.overdue(live) == []
        clock.now += 59.0
        assert desk.overdue(live) == []
        from keyhole.service.commands import Activate

        await desk.submit(Activate("animals", deferred.event_id))
        clock.now += 2.0
        assert desk.overdue(live) == [2, 4, 5]  # all but the one that waits anew
        clock.now += 58.0
        assert desk.overdue(live) == [2, 3, 4, 5]
        while live.waiting:
            await asyncio.sleep(0.05)
        return live.tally.expired, [e.at for e in desk.store.events("animals")]

    expired, times = run(scenario, clock=clock)
    assert expired == 4
    assert max(times) - min(times) > 19 * 365 * 86_400 * 1_000  # the log notes what the wall said


def test_a_restart_waits_anew_whatever_the_wall_says(monkeypatch):
    store, clock = MemoryStore(), Clock()

    async def show(desk):
        await desk.submit(_CREATE)
        return (await desk.submit(_RANK)).event_id

    event_id = run(show, store, clock=clock)
    monkeypatch.setattr(time, "time_ns", lambda: 4_000_000_000 * 10**9)

    async def go_on(desk):
        await asyncio.sleep(0.6)
        return (await desk.submit(liked(event_id))).learned

    assert run(go_on, store, clock=clock) == "learned"


def most_that_waited(store):
    """Return how many lists ever waited at once, by the log."""
    waiting, most = {}, 0
    for event in store.events("animals"):
        if event.kind == "rank":
            waiting[event.key] = event.seq
        elif event.kind == "feedback":
            waiting.pop(event.key, None)
        elif event.kind == "expire":
            gone = set(body_of(event).seqs)
            waiting = {key: seq for key, seq in waiting.items() if seq not in gone}
        most = max(most, len(waiting))
    return most


@pytest.mark.parametrize("room", [1, 2, 10, 40])
def test_no_more_lists_wait_than_there_is_room_for(room):
    """However many come at once: those that were shown first are given up as others are."""
    store = MemoryStore()

    async def scenario(desk):
        await desk.submit(_CREATE)
        await asyncio.gather(*(desk.submit(_RANK) for _ in range(50)))
        many = RankMany("animals", [RankRequest()] * room)
        await asyncio.gather(*(desk.submit(many) for _ in range(3)))
        with pytest.raises(InvalidInput, match=rf"at most max_waiting={room} requests, got"):
            await desk.submit(RankMany("animals", [RankRequest()] * (room + 1)))
        return list(desk.engine.ranker("animals").waiting)

    waiting = run(scenario, store, most_waiting=room)
    shown = [event.seq for event in store.events("animals") if event.kind == "rank"]
    assert len(shown) == 50 + 3 * room
    assert waiting == shown[-room:]
    assert most_that_waited(store) == room


def test_room_is_kept_where_feedback_and_lists_come_together():
    """Feedback on a list that is being given up waits for that, and is late."""
    store = MemoryStore()

    async def scenario(desk):
        await desk.submit(_CREATE)
        first = [await desk.submit(_RANK) for _ in range(5)]
        asked = [desk.submit(_RANK) for _ in range(5)]
        said = [desk.submit(liked(reply.event_id)) for reply in first[::-1]]
        told = await asyncio.gather(
            *(each for pair in zip(asked, said, strict=True) for each in pair)
        )
        return [reply.learned for reply in told[1::2]]

    assert set(run(scenario, store, most_waiting=5)) == {"late", "learned"}
    assert most_that_waited(store) <= 5
    assert check_ranker(store, "animals").problems == ()


def test_a_start_with_less_room_gives_up_what_is_too_much():
    store = MemoryStore()

    async def show(desk):
        await desk.submit(_CREATE)
        await asyncio.gather(*(desk.submit(_RANK) for _ in range(2_500)))

    async def go_on(desk):
        for _ in range(3):
            await desk.submit(_RANK)
        return len(desk.engine.ranker("animals").waiting)

    run(show, store)
    assert run(go_on, store, most_waiting=10) == 10


def test_snapshots_are_taken_on_the_way_and_at_the_end():
    store = MemoryStore()

    async def scenario(desk):
        await desk.submit(_CREATE)
        for _ in range(30):
            await desk.submit(_RANK)

    run(scenario, store, snapshot_every=20)
    assert [snapshot.seq for snapshot in store.snapshots("animals")] == [31, 20]
    assert check_ranker(store, "animals").problems == ()


def test_snapshots_come_after_as_many_events_as_lists_wait():
    taken: list[int] = []

    class Noting(MemoryStore):
        def put_snapshots(self, snapshots):
            taken.extend(each.seq for each in snapshots)
            super().put_snapshots(snapshots)

    async def scenario(desk):
        await desk.submit(_CREATE)
        for _ in range(12):
            await desk.submit(_RANK)
        for _ in range(15):
            shown = await desk.submit(_RANK)
            await desk.submit(liked(shown.event_id))

    run(scenario, Noting(), snapshot_every=5)
    # After event 5 four lists wait, later twelve: so many events suffice; 43 is the end.
    assert taken == [5, 17, 29, 41, 43]


def test_who_watches_is_told():
    async def scenario(desk):
        await desk.submit(_CREATE)
        watching = desk.subscribe("animals")
        seen = [await anext(watching)]
        await desk.submit(_RANK)
        seen.append(await asyncio.wait_for(anext(watching), 5))
        await watching.aclose()
        return seen

    assert [told["seq"] for told in run(scenario)] == [1, 2]


def test_a_desk_that_stops_finishes_what_came_in():
    store = MemoryStore()

    async def main():
        desk = Desk(store)
        await desk.start()
        await desk.submit(_CREATE)
        asked = [asyncio.create_task(desk.submit(_RANK)) for _ in range(20)]
        await asyncio.sleep(0)
        await desk.stop()
        with pytest.raises(StoreFailed):
            await desk.submit(_RANK)
        return await asyncio.gather(*asked)

    replies = asyncio.run(main())
    assert len({reply.event_id for reply in replies}) == 20
    assert len(list(store.events("animals"))) == 21


@pytest.mark.parametrize("k", [1, 2])
def test_a_hundred_thousand_duplicated_and_shuffled_feedbacks(k):
    """The state is that of the log's order, which is the order in which each came first."""
    n_lists, n_times = 10_000, 5
    store = MemoryStore()
    engine = Engine(store)
    engine.execute(Configure("animals", RankerRequest(items=ANIMALS, seed=1, k=k)))
    shown = [engine.execute(_RANK).event_id for _ in range(n_lists)]
    rng = random.Random(k)
    said = {event_id: [float(rng.random() < 0.5)] * k for event_id in shown}
    deliveries = shown * n_times
    rng.shuffle(deliveries)
    n_created = 0
    for event_id in deliveries:
        given = GiveFeedback("animals", event_id, FeedbackRequest(relevance=said[event_id]))
        n_created += engine.execute(given).created
    assert n_created == n_lists
    logged = [event.key for event in store.events("animals") if event.kind == "feedback"]
    assert logged == list(dict.fromkeys(deliveries))
    assert check_ranker(store, "animals").sha256 == engine.ranker("animals").sha256()


def test_others_are_served_while_a_ranker_is_judged_and_compiled(monkeypatch):
    from keyhole.service import group_commit as desks

    def slow(request):
        time.sleep(1.0)

    async def scenario(desk):
        await desk.submit(_CREATE)
        monkeypatch.setattr(desks, "check_learnable", slow)
        other = Configure("others", RankerRequest(items=ANIMALS))
        creating = asyncio.create_task(desk.submit(other))
        n_served = 0
        while not creating.done():
            await desk.submit(_RANK)
            n_served += 1
        return n_served, (await creating).created

    n_served, created = run(scenario)
    assert created
    assert n_served > 20


def test_what_cannot_be_applied_is_read_again(monkeypatch):
    """A fault of ours while committed events are folded in: nobody hangs, and nothing is lost."""
    store = FaultyStore()

    async def scenario(desk):
        await desk.submit(_CREATE)
        apply_all, failures = desk.engine.apply_all, [RuntimeError("a fault")]

        def failing(events):
            if failures:
                raise failures.pop()
            apply_all(events)

        monkeypatch.setattr(desk.engine, "apply_all", failing)
        with pytest.raises(StoreFailed):
            await asyncio.wait_for(desk.submit(_RANK), 5)
        while not desk.is_ready:
            await asyncio.sleep(0.01)
        assert desk.engine.ranker("animals").round == 1  # it is in the log, told or not
        return (await desk.submit(_RANK)).event_id, desk.engine.ranker("animals").sha256()

    event_id, sha256 = run(scenario, store, reopen=lambda: store)
    assert list(store.events("animals"))[-1].key == event_id
    assert check_ranker(store, "animals").sha256 == sha256


def test_what_was_decided_after_a_group_that_failed_is_decided_anew():
    """A commit fails while the next group is decided already: that one is kept all the same."""

    class Slow(FaultyStore):
        def stage(self, events):
            fault = self.faults.pop(0) if self.faults else None

            def commit():
                time.sleep(0.1)
                if fault is not None:
                    raise fault
                self.append(events)

            return commit

    store = Slow()

    async def scenario(desk):
        await desk.submit(_CREATE)
        store.faults = [StoreFull("No room.")]
        first = asyncio.create_task(desk.submit(_RANK))
        await asyncio.sleep(0.03)
        others = [asyncio.create_task(desk.submit(_RANK)) for _ in range(5)]
        with pytest.raises(StoreFull):
            await first
        return await asyncio.gather(*others)

    replies = run(scenario, store)
    logged = [event.key for event in store.events("animals") if event.kind == "rank"]
    assert logged == [reply.event_id for reply in replies]
    assert check_ranker(store, "animals").problems == ()


@pytest.mark.parametrize("asked", [{}, {"k": 2, "missing": 0.0}, {"mode": "apprentice"}], ids=str)
def test_what_groups_teach_is_what_each_alone_would(asked):
    """Lessons are learnt together and lists ranked ahead: a replay, one by one, has the same."""
    store, k = MemoryStore(), asked.get("k", 1)

    async def scenario(desk):
        made = RankerRequest(items=ANIMALS, seed=1, wait_seconds=60.0, **asked)
        await desk.submit(Configure("animals", made))
        for turn in range(25):
            shown = await asyncio.gather(*(desk.submit(_RANK) for _ in range(24)))
            liked_now = "ant" if turn < 12 else "dog"
            said = [
                GiveFeedback(
                    "animals",
                    reply.event_id,
                    FeedbackRequest(relevance=[float(n == liked_now) for n in reply.ranking[:k]]),
                )
                for reply in shown
            ]
            random.Random(turn).shuffle(said)
            await asyncio.gather(*(desk.submit(one) for one in said[:-2]))
        desk.engine.execute(Expire("animals", tuple(desk.engine.ranker("animals").waiting)))
        return desk.engine.ranker("animals")

    live = run(scenario, store)
    again = Engine(store)
    checked = check_ranker(store, "animals")
    assert (checked.problems, checked.sha256) == ((), live.sha256())
    replayed = LiveRanker("animals", store)
    for event in store.events("animals"):
        replayed.apply(event)
    assert replayed.tally == live.tally == again.ranker("animals").tally
    assert live.tally.alarms
