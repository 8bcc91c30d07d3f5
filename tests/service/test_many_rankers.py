"""What many rankers and lists cost: pages of them, and work that leaves the loop."""

import asyncio
import time
from typing import Any

import numpy as np
import pytest

from keyhole.service import compilation, events, ranker_state as lives
from keyhole.service.commands import (
    Configure,
    Document,
    FeedbackRequest,
    GiveFeedback,
    ItemsEdit,
    MeasureVerdict,
    Rank,
    RankerRequest,
    RankMany,
    RankRequest,
)
from keyhole.service.compilation import Preparer
from keyhole.service.engine import Engine
from keyhole.service.events import Config
from keyhole.service.ranker_changes import revised
from keyhole.service.ranker_state import LiveRanker
from keyhole.service.replay import check_ranker
from keyhole.service.store import STORES, chain, open_store
from keyhole.service.store.memory import MemoryStore
from tests.service.addresses import address_of
from tests.service.asking import Asked, problem
from tests.service.desks import ANIMALS, answer, configure, engine_of, rank
from tests.service.test_desk import Clock, run

NAMES = [f"ranker-{place:03d}" for place in range(120)]


@pytest.fixture(scope="module")
def service():
    with Asked() as asked:
        for name in [*NAMES, "Shop", "bookshop"]:
            configure(asked.desk.engine, name)
        yield asked


def listed(service, query=""):
    told = service.ask("GET", f"/v1/rankers{query}").json()
    return [each["name"] for each in told["rankers"]], told["next_after"]


def test_rankers_are_listed_a_page_at_a_time(service):
    names = sorted([*NAMES, "Shop", "bookshop"])
    assert listed(service) == (names[:100], names[99])
    assert listed(service, f"?after={names[99]}") == (names[100:], None)
    assert listed(service, "?limit=1000") == (names, None)
    assert listed(service, f"?limit=7&after={names[2]}") == (names[3:10], names[9])
    assert listed(service, "?limit=22&after=" + names[99]) == (names[100:], None)
    assert listed(service, "?search=sHoP") == (["Shop", "bookshop"], None)
    assert listed(service, "?search=shop&limit=1") == (["Shop"], "Shop")
    assert listed(service, "?after=zzz") == ([], None)
    for limit in ("0", "1001", "x"):
        problem(service.ask("GET", f"/v1/rankers?limit={limit}"), 422, "invalid")


def test_damaged_rankers_are_on_the_pages_that_their_names_are_on():
    with Asked() as service:
        engine = service.desk.engine
        for name in ("a", "bad-1", "bad-2", "c", "d"):
            configure(engine, name)
        for name in ("bad-1", "bad-2"):
            engine.refuse(name, "Event 5 is another one.")

        def page(query=""):
            told = service.ask("GET", f"/v1/rankers{query}").json()
            names = [[each["name"] for each in told[kind]] for kind in ("rankers", "damaged")]
            return *names, told["next_after"]

        assert page() == (["a", "c", "d"], ["bad-1", "bad-2"], None)
        assert page("?limit=2") == (["a"], ["bad-1"], "bad-1")
        assert page("?limit=1&after=bad-1") == ([], ["bad-2"], "bad-2")
        assert page("?limit=2&after=bad-2") == (["c", "d"], [], None)
        assert page("?search=BAD-2") == ([], ["bad-2"], None)
        rows = service.ask("GET", "/index.json?search=bad-1").json()["page"]["rows"]
        assert [each["name"] for each in rows["damaged"]] == ["bad-1"]
        # One that was damaged while requests about it are on their way is still there.
        engine.damaged["c"] = "Event 6 is another one."
        assert page() == (["a", "d"], ["bad-1", "bad-2", "c"], None)


def test_the_index_shows_a_page_and_searches(service):
    told = service.ask("GET", "/index.json").json()
    names = sorted([*NAMES, "Shop", "bookshop"])
    assert [each["name"] for each in told["rankers"]] == names[:50]
    assert told["page"]["texts"]["live"] == "122 rankers"
    page = service.ask("GET", "/").text
    assert [name for name in names if f'"/rankers/{name}"' in page] == names[:50]
    assert f'href="/?after={names[49]}"' in page
    last = service.ask("GET", f"/?after={names[99]}").text
    assert 'rel="next"' not in last
    assert '<a href="/">First</a>' in last
    assert f'data-json="/index.json?after={names[99]}"' in last
    found = service.ask("GET", "/index.json?search=SHOP").json()
    assert [each["name"] for each in found["rankers"]] == ["Shop", "bookshop"]
    assert found["page"]["texts"]["live"] == "2 rankers"
    none = service.ask("GET", "/?search=%3Cb%3E").text
    assert "No rankers with “&lt;b&gt;” in their name." in none
    assert "Create the first ranker" not in none.partition("hidden")[0]
    flags = service.ask("GET", "/index.json?search=nobody").json()["page"]["flags"]
    assert flags == {"some": False, "none": False, "nothing": True, "damaged": False}


def test_a_commit_looks_at_no_ranker_that_it_is_not_about(monkeypatch):
    """With 300 rankers, of which one is asked: no other is touched by commits or by waits."""
    store, clock = MemoryStore(), Clock()
    engine = Engine(store)
    for place in range(300):
        configure(engine, f"other-{place}", wait_seconds=60.0)
    configure(engine, wait_seconds=60.0)
    touched = set()

    class Watched(LiveRanker):
        def __getattribute__(self, name):
            if not name.startswith("__"):
                touched.add(object.__getattribute__(self, "__dict__").get("name"))
            return object.__getattribute__(self, name)

    async def scenario(desk):
        for live in desk.engine.rankers.values():
            live.__class__ = Watched
        touched.clear()
        for _ in range(30):
            await desk.submit(Rank("animals", RankRequest()))
        await asyncio.sleep(0.6)
        clock.now += 61.0
        while desk.engine.ranker("animals").waiting:
            await asyncio.sleep(0.05)
        return set(touched)

    assert run(scenario, store, clock=clock, snapshot_every=10) == {"animals"}


def test_waits_of_many_rankers_end_together():
    """They share commits: ten thousand that end at once do not take a commit each."""
    clock, batches = Clock(), []

    class Counting(MemoryStore):
        def append(self, events):
            batches.append(len(events))
            super().append(events)

    async def scenario(desk):
        for place in range(100):
            configure(desk.engine, f"ranker-{place}", wait_seconds=10.0)
            await desk.submit(Rank(f"ranker-{place}", RankRequest()))
        batches.clear()
        clock.now += 11.0
        while any(live.waiting for live in desk.engine.rankers.values()):
            await asyncio.sleep(0.02)
        return list(batches)

    told = run(scenario, Counting(), clock=clock)
    assert sum(told) == 100
    assert len(told) < 10


def test_a_shorter_wait_is_noticed():
    clock = Clock()

    async def scenario(desk):
        configure(desk.engine, wait_seconds=1000.0)
        await desk.submit(Rank("animals", RankRequest()))
        clock.now += 20.0
        await asyncio.sleep(0.3)
        asked = RankerRequest(items=ANIMALS, seed=1, wait_seconds=10.0)
        await desk.submit(Configure("animals", asked, judged=MeasureVerdict(None)))
        for _ in range(40):
            await asyncio.sleep(0.05)
        return len(desk.engine.ranker("animals").waiting)

    assert run(scenario, clock=clock) == 0


def test_lines_of_waits_do_not_grow_with_what_was_answered():
    async def scenario(desk):
        configure(desk.engine, wait_seconds=1000.0)
        kept = await desk.submit(Rank("animals", RankRequest()))
        for _ in range(400):
            shown = await desk.submit(Rank("animals", RankRequest()))
            answer(desk.engine, shown.event_id, [1.0])
        return kept, len(desk._waits._lines["animals"])

    _, n_noted = run(scenario)
    assert n_noted < 100


def test_the_last_snapshots_are_of_those_with_most_to_replay():
    store = MemoryStore()

    async def scenario(desk):
        for place, n_lists in enumerate((1, 900, 300, 3)):
            configure(desk.engine, f"ranker-{place}", wait_seconds=60.0)
            for _ in range(n_lists):
                rank(desk.engine, f"ranker-{place}")

    run(scenario, store, snapshot_every=4_000)
    taken = {name: [shot.seq for shot in store.snapshots(name)] for name in store.rankers()}
    # 1,204 events: without the 901 of one ranker less than a tenth of 4,000 are left to replay.
    assert taken == {"ranker-0": [], "ranker-1": [901], "ranker-2": [], "ranker-3": []}
    assert (
        Engine(store).ranker("ranker-1").sha256()
        == LiveRanker.from_snapshot(store.snapshots("ranker-1")[0], store).sha256()
    )


def test_what_many_short_runs_leave_is_not_replayed_for_ever():
    store = MemoryStore()

    async def scenario(desk):
        if not desk.engine.rankers:
            configure(desk.engine, wait_seconds=60.0)
        for _ in range(30):
            rank(desk.engine)
        return desk.engine.ranker("animals").snapshot_at

    assert [run(scenario, store, snapshot_every=1_000) for _ in range(8)] == [
        0, 0, 0, 0, 121, 121, 121, 121,
    ]  # fmt: skip


def test_rankers_that_need_the_same_code_have_it_prepared_once(monkeypatch):
    loaded: list[Config] = []
    monkeypatch.setattr(compilation, "_load", loaded.append)
    engine = Engine(MemoryStore())
    for place in range(20):
        configure(engine, f"shop-{place}", seed=place, items=[f"{place}-{i}" for i in range(4)])
    configure(engine, "other", ranker="random")
    configure(engine, "longer", items=[*ANIMALS, "eel"])
    configs = {name: live.config for name, live in engine.rankers.items()}
    preparer = Preparer()
    preparer.prepare_all(configs)
    assert len(loaded) == 3
    assert set(preparer.known) == set(configs)
    assert {each.state for each in preparer.known.values()} == {"ready"}

    async def later():
        made = preparer.begin("new", configs["shop-3"], lambda: None)
        await preparer.look(made)
        return made.state

    assert asyncio.run(later()) == "ready"
    assert len(loaded) == 3


def counted(monkeypatch, module, name):
    """Count the calls of a function of a module."""
    calls, function = [], getattr(module, name)

    def noted(*args, **given):
        calls.append(args)
        return function(*args, **given)

    monkeypatch.setattr(module, name, noted)
    return calls


@pytest.mark.parametrize("scheme", list(STORES))
def test_an_event_is_hashed_once_on_its_way(monkeypatch, tmp_path, scheme):
    with open_store(address_of(scheme, tmp_path)) as store:
        engine = Engine(store)
        configure(engine)
        hashed = [counted(monkeypatch, module, "link_of") for module in (events, chain)]
        shown = rank(engine)
        answer(engine, shown.event_id, [1.0])
        assert sum(map(len, hashed)) == 2
        assert check_ranker(store, "animals").problems == ()


@pytest.mark.parametrize("asked", [{}, {"n_features": 300, "max_items": 4, "ranker": "linucb"}])
def test_a_list_is_read_once_for_its_feedback(monkeypatch, asked):
    """Of one that is kept as it waits, and of one that is read again, as it is large."""
    engine = engine_of(**asked)
    rows: Any = {"features": [[0.5] * 300, [0.25] * 300]} if asked else {}
    shown = rank(engine, **rows)
    kept, large = (counted(monkeypatch, lives, name) for name in ("_decode_ranked", "body_of"))
    decision: Any = engine.decide(
        GiveFeedback("animals", shown.event_id, FeedbackRequest(relevance=[1.0])), 0
    )
    engine.store.append([event for event, _ in decision.made])
    engine.apply_all(decision.made)
    engine.settle(decision)
    assert (len(kept), len(large)) == ((0, 1) if asked else (1, 0))


def test_a_state_is_copied_once_for_what_a_group_teaches():
    engine = engine_of()
    learner = engine.ranker("animals").learner
    shown = [rank(engine) for _ in range(4)]
    copies = []

    class Noted(np.ndarray):
        def copy(self, *args, **given):
            copies.append(self.dtype)
            return np.asarray(self).copy(*args, **given)

    said = [GiveFeedback("animals", one.event_id, FeedbackRequest("none")) for one in shown]
    decided: list[Any] = [engine.decide(one, 0) for one in said]
    made = [each for decision in decided for each in decision.made]
    engine.store.append([event for event, _ in made])
    learner._pieces = [piece.view(Noted) for piece in learner.pieces]
    engine.apply_all(made)
    assert len(copies) == len(learner.pieces)


MANY_ITEMS = [f"item-{place:03d}" for place in range(1_000)]


def seconds_of(work):
    """Return how long something computes at least: other processes do not lengthen it."""
    took = []
    for _ in range(5):
        began = time.thread_time()
        work()
        took.append(time.thread_time() - began)
    return min(took)


@pytest.mark.parametrize("kind", ["fixed", "with features"])
def test_items_that_must_not_be_shown_are_looked_up_and_not_compared_with_all(kind):
    """A batch of lists that leave out nearly all items held the loop for a second."""
    asked: Any = {"items": MANY_ITEMS, "ranker": "random"}
    of_list: Any = {}
    if kind == "with features":
        asked = {"n_features": 1, "max_items": 1_000, "ranker": "random-lists"}
        documents = [Document(name) for name in MANY_ITEMS]
        of_list = {"items": documents, "features": [[0.5]] * len(documents)}
    engine = engine_of(**asked)
    plain = RankRequest(**of_list)
    short = RankRequest(exclude=MANY_ITEMS[:-2], **of_list)

    def seconds(request):
        def decide():
            engine.decide(RankMany("animals", [request] * 8, None), 0)
            engine.forget()

        return seconds_of(decide)

    assert seconds(short) < (30.0 if kind == "fixed" else 6.0) * seconds(plain)


def test_items_are_taken_from_a_list_without_comparing_all_with_all():
    edit = ItemsEdit(add=[f"new-{place}" for place in range(1_000)], remove=MANY_ITEMS[:-2])
    request = RankerRequest(items=MANY_ITEMS)
    assert revised(request, edit).items == [*MANY_ITEMS[-2:], *edit.add]
    whole = seconds_of(lambda: revised(request, edit))
    assert whole < 60.0 * seconds_of(lambda: {*MANY_ITEMS, *edit.add, *edit.remove})
