"""Rankers that are changed, reset, renamed and deleted: what stays, and what the log says."""

import asyncio
import json
from typing import Any

import msgspec
import numpy as np
import pytest
from typer.testing import CliRunner

from keyhole.base.errors import InvalidInput
from keyhole.cli.app import app
from keyhole.service.commands import (
    Configure,
    Delete,
    EvaluationRequest,
    ItemsEdit,
    ItemsRequest,
    Rank,
    RankerChange,
    RankerRequest,
    RankRequest,
    Rename,
    Reset,
)
from keyhole.service.engine import Engine
from keyhole.service.errors import ConflictingRequest, NoSuchResource, StaleVersion, WasDeleted
from keyhole.service.evaluations import evaluate
from keyhole.service.events import body_of
from keyhole.service.group_commit import Desk
from keyhole.service.ranker_changes import request_of, revise, revised
from keyhole.service.replay import check_ranker
from keyhole.service.startup import _configs as configs_of
from keyhole.service.store import open_store
from keyhole.service.store.memory import MemoryStore
from keyhole.service.summary import summary
from tests.service.desks import ANIMALS, answer, configure, engine_of, rank, state_of

APPRENTICE: Any = {"mode": "apprentice", "apprentice_share": 0.25, "wait_seconds": 60.0}
SETTINGS = frozenset(RankerChange.__struct_fields__) - {"items"}


def put(engine, **named):
    """Do what a PUT of these fields does."""
    left_out = frozenset(RankerRequest.__struct_fields__) - {*named}
    return engine.execute(Configure("animals", RankerRequest(**named), left_out=left_out))


def revise_now(engine, revision):
    live = engine.ranker("animals")
    request = revised(request_of(live), revision)
    return engine.execute(Configure("animals", request, live.version))


def play(engine, n=30, name="animals", liked="cat"):
    for _ in range(n):
        shown = rank(engine, name)
        answer(engine, shown.event_id, [float(shown.ranking[0] == liked)], name=name)


def state_arrays(engine, name="animals"):
    return engine.ranker(name).learner.state._asdict()


def replayed(engine, name="animals"):
    """Return the state that the log leads to, which must be that of a check, too."""
    checked = check_ranker(engine.store, name)
    assert checked.problems == ()
    assert checked.sha256 == state_of(Engine(engine.store), name)
    return checked.sha256


# --------------------------------------------------------------------------- changes


@pytest.mark.parametrize(
    ("asked", "lost"),
    [
        (APPRENTICE, "mode"),
        ({"mode": "frozen"}, "mode"),
        ({"wait_seconds": 60.0}, "wait_seconds"),
        ({"missing": 0.5}, "missing"),
        ({"simulation": True}, "simulation"),
    ],
)
def test_a_put_that_leaves_out_what_is_set_is_refused(asked, lost):
    engine = engine_of(**asked)
    with pytest.raises(ConflictingRequest, match=f"must include .*`{lost}`, which is .*PATCH"):
        put(engine, items=["eel", *ANIMALS])
    assert engine.ranker("animals").version == 1
    changed = put(engine, items=["eel", *ANIMALS], **asked)
    assert changed.version == 2
    assert (
        put(engine, items=ANIMALS, **{**asked, lost: getattr(RankerRequest(), lost)}).version == 3
    )


def test_a_put_of_what_is_as_always_leaves_out_nothing():
    engine = engine_of()
    assert put(engine, items=ANIMALS[1:]).request.items == ANIMALS[1:]


@pytest.mark.parametrize("name", sorted(SETTINGS))
def test_a_change_is_of_what_it_names_and_of_nothing_else(name):
    engine = engine_of(**APPRENTICE, missing=0.5, simulation=True, accept_linear_regret=True)
    before = engine.ranker("animals").config.request
    changed: dict[str, Any] = {
        "mode": "frozen", "wait_seconds": 5.0, "missing": None, "apprentice_share": 0.5,
        "simulation": False, "accept_linear_regret": False,
    }  # fmt: skip
    value = changed[name]
    reply = revise_now(engine, RankerChange(**{name: value}))
    now = {**msgspec.structs.asdict(reply.request)}
    were = msgspec.structs.asdict(msgspec.convert(before, RankerRequest))
    assert {field for field in now if now[field] != were[field]} == {name}
    assert now[name] == value
    assert revise_now(engine, RankerChange()).version == reply.version  # nothing was named


def test_items_change_alone_and_the_reply_tells_the_list_as_it_is():
    engine = engine_of(**APPRENTICE)
    reply = revise_now(engine, ItemsRequest(["dog", "eel", "ant"]))
    assert reply.request.mode == "apprentice"
    assert reply.request.items == reply.spec["items"] == ["dog", "eel", "ant"]
    assert reply.spec["n_items"] == 3 == engine.ranker("animals").learner.n_items
    edit = ItemsEdit(add=["fox", "dog", "bee"], remove=["eel", "gnu"])
    reply = revise_now(engine, edit)
    assert reply.spec["items"] == ["dog", "ant", "fox", "bee"]
    assert revise_now(engine, edit).version == reply.version  # a retry finds nothing to do
    with pytest.raises(InvalidInput, match="must not name the same item, got 'ant'"):
        revise_now(engine, ItemsEdit(add=["ant"], remove=["ant"]))
    with pytest.raises(InvalidInput):
        revise_now(engine, ItemsEdit(remove=["dog", "ant", "fox", "bee"]))
    configure(engine, "queries", n_features=2)
    with pytest.raises(ConflictingRequest, match="has no fixed list"):
        revised(request_of(engine.ranker("queries")), edit)


def test_changes_that_meet_are_all_made():
    async def main():
        desk = Desk(MemoryStore())
        await desk.start()
        await desk.submit(Configure("animals", RankerRequest(items=ANIMALS, seed=1)))
        more = [ItemsEdit(add=[f"more-{i}"]) for i in range(6)]
        await asyncio.gather(*(revise(desk, "animals", each, None, None) for each in more))
        items = set(request_of(desk.engine.ranker("animals")).items or ())
        with pytest.raises(StaleVersion):
            await revise(desk, "animals", RankerChange(mode="frozen"), 1, None)
        await desk.stop()
        return items

    assert asyncio.run(main()) == {*ANIMALS, *(f"more-{i}" for i in range(6))}


def test_the_log_says_who_asked():
    engine = engine_of()
    engine.execute(Configure("animals", RankerRequest(items=ANIMALS[1:], seed=1), by="ops (1a2b)"))
    engine.execute(Reset("animals", by="ops (1a2b)"))
    engine.execute(Delete("animals", by="boss (3c4d)"))
    said = [body_of(event).by for event in engine.store.events("animals")]
    assert said == [None, "ops (1a2b)", "ops (1a2b)", "boss (3c4d)"]
    engine.execute(Configure("beasts", RankerRequest(items=ANIMALS, seed=1), by="ops (1a2b)"))
    (made,) = engine.store.events("beasts")
    assert body_of(made).by == "ops (1a2b)"


# --------------------------------------------------------------------------- reset


def test_a_ranker_that_is_reset_is_as_a_new_one():
    engine = engine_of(k=2, measure="DCG")
    revise_now(engine, ItemsEdit(add=["eel"]))
    for _ in range(20):
        answer(engine, rank(engine).event_id, [1.0, 0.0])
    waiting = rank(engine, event_id="visit")
    reply = engine.execute(Reset("animals", if_match=2))
    new = engine_of(k=2, items=[*ANIMALS, "eel"])
    live, fresh = engine.ranker("animals"), new.ranker("animals")
    for name, value in state_arrays(engine).items():
        np.testing.assert_array_equal(state_arrays(new)[name], value, err_msg=name)
    assert (reply.round, reply.waiting, reply.spec) == (0, 0, fresh.reply().spec)
    told, wanted = summary(live), summary(fresh)
    for what in ("counts", "series", "items", "shows", "alarms"):
        assert told[what] == wanted[what]
    assert answer(engine, waiting.event_id, [1.0, 0.0]).learned == "late"
    lists = [rank(engine) for _ in range(30)]
    assert [one.ranking for one in lists] == [rank(new).ranking for _ in range(30)]
    events = [event.key for event in engine.store.events("animals") if event.kind == "rank"]
    assert len(set(events)) == len(events)
    assert replayed(engine) == state_of(engine)
    with pytest.raises(StaleVersion):
        engine.execute(Reset("animals", if_match=2))


@pytest.mark.parametrize(
    "end", [Reset("animals"), Rename("animals", "beasts")], ids=["reset", "renamed"]
)
def test_snapshots_before_and_after_lead_to_the_same_state(end):
    engine = engine_of()
    play(engine)
    engine.store.put_snapshot(engine.ranker("animals").snapshot())
    engine.execute(end)
    name = "animals" if isinstance(end, Reset) else "beasts"
    play(engine, name=name, liked="dog")
    assert state_of(Engine(engine.store), name) == state_of(engine, name)
    engine.store.put_snapshot(engine.ranker(name).snapshot())
    play(engine, 5, name)
    again = Engine(engine.store)
    assert state_of(again, name) == state_of(engine, name) == replayed(engine, name)
    whole = engine_like(engine)
    shown, wanted = rank(again, name), rank(whole, name)
    assert (shown.event_id, shown.ranking) == (wanted.event_id, wanted.ranking)


def engine_like(engine):
    """Return an engine that goes on from the log as it is, without a snapshot."""
    store = MemoryStore()
    store._secret = engine.store.secret()
    for name in engine.store.rankers():
        store.append(list(engine.store.events(name)))
    return Engine(store)


# --------------------------------------------------------------------------- deleted


def test_a_deleted_ranker_is_gone_and_its_log_stays():
    engine = engine_of()
    play(engine, 5)
    shown = rank(engine)
    with pytest.raises(StaleVersion):
        engine.execute(Delete("animals", if_match=7))
    engine.execute(Delete("animals", if_match=1))
    for each in (engine, Engine(engine.store)):
        assert each.rankers == {}
        for asked in (Rank("animals", RankRequest()), Delete("animals"), Reset("animals")):
            with pytest.raises(WasDeleted, match="no ranker 'animals': it was deleted"):
                each.execute(asked)
        with pytest.raises(WasDeleted):
            answer(each, shown.event_id, [1.0])
        with pytest.raises(NoSuchResource, match=r"no ranker 'plants'\."):
            each.ranker("plants")
    assert [event.kind for event in engine.store.events("animals")][-1] == "delete"
    assert check_ranker(engine.store, "animals").problems == ()


def test_another_ranker_of_a_deleted_ones_name_knows_nothing_of_it():
    engine = engine_of()
    play(engine)
    mine = rank(engine, event_id="visit-1")
    keyed = rank(engine, idem="request-1")
    engine.execute(Delete("animals"))
    with pytest.raises(StaleVersion, match="does not exist"):
        engine.execute(Configure("animals", RankerRequest(items=ANIMALS), if_match=1))
    reply = configure(engine, items=["x", "y", "z"], k=2, max_grade=3.0)
    assert (reply.created, reply.round, reply.request.k) == (True, 0, 2)
    for event_id in (mine.event_id, keyed.event_id):
        with pytest.raises(NoSuchResource, match="no event"):
            answer(engine, event_id, [1.0, 1.0])
    with pytest.raises(ConflictingRequest, match="another ranker 'animals', which was deleted"):
        rank(engine, event_id="visit-1")
    with pytest.raises(ConflictingRequest, match="another ranker"):
        rank(engine, idem="request-1")
    for _ in range(20):
        answer(engine, rank(engine).event_id, [3.0, 0.0])
    assert summary(engine.ranker("animals"))["counts"]["ranks"] == 20
    assert replayed(engine) == state_of(engine)
    engine.store.put_snapshot(engine.ranker("animals").snapshot())
    again = Engine(engine.store)
    assert state_of(again) == state_of(engine)
    with pytest.raises(ConflictingRequest, match="another ranker"):
        rank(again, event_id="visit-1")


def test_a_restart_after_a_ranker_was_deleted_changes_nothing_of_the_next_one_of_its_name():
    engine = engine_of(wait_seconds=5.0)
    play(engine, 5)
    engine.execute(Delete("animals"))
    for again in (engine_like(engine), engine):
        configure(again, wait_seconds=60.0)
        play(again, 5)
        again.store.put_snapshot(again.ranker("animals").snapshot())
        assert check_ranker(again.store, "animals").problems == ()
        assert [wait for _, wait in again.ranker("animals").waits] == [60.0]


def test_what_is_asked_while_a_ranker_is_being_deleted_waits():
    engine = engine_of()
    decision: Any = engine.decide(Delete("animals"), 0)
    assert engine.decide(Rank("animals", RankRequest()), 0) is None
    assert engine.decide(Configure("animals", RankerRequest(items=ANIMALS)), 0) is None
    engine.store.append([event for event, _ in decision.made])
    engine.apply_all(decision.made)
    engine.settle(decision)
    with pytest.raises(NoSuchResource):
        engine.decide(Rank("animals", RankRequest()), 0)


# --------------------------------------------------------------------------- renamed


def test_a_renamed_ranker_goes_on_from_what_it_knew():
    engine = engine_of()
    alone = engine_of()
    play(engine)
    play(alone)
    revise_now(engine, ItemsEdit(remove=["bee"]))
    revise_now(alone, ItemsEdit(remove=["bee"]))
    left = rank(engine)
    rank(alone)
    with pytest.raises(ConflictingRequest, match="There is a ranker 'animals' already"):
        engine.execute(Rename("animals", "animals"))
    reply = engine.execute(Rename("animals", "beasts", by="ops (1a2b)"))
    assert (reply.name, reply.created, reply.waiting) == ("beasts", True, 0)
    assert reply.spec["items"] == ["ant", "cat", "dog"]
    assert [rank(engine, "beasts").ranking for _ in range(9)] == [
        rank(alone).ranking for _ in range(9)
    ]
    with pytest.raises(WasDeleted, match="it was renamed to 'beasts'"):
        answer(engine, left.event_id, [1.0])
    with pytest.raises(NoSuchResource):
        answer(engine, left.event_id, [1.0], name="beasts")
    assert [event.kind for event in engine.store.events("beasts")][:2] == ["config", "rebase"]
    last: Any = engine.store.last("animals")
    ends = body_of(last)
    assert (ends.to, ends.by) == ("beasts", "ops (1a2b)")
    assert replayed(engine, "beasts") == state_of(engine, "beasts")


def test_a_ranker_may_be_renamed_back():
    engine = engine_of()
    play(engine)
    rank(engine, event_id="visit-1")
    engine.execute(Rename("animals", "beasts"))
    play(engine, 5, "beasts")
    knows = {name: value.copy() for name, value in state_arrays(engine, "beasts").items()}
    engine.execute(Rename("beasts", "animals"))
    for name, value in state_arrays(engine).items():
        np.testing.assert_array_equal(knows[name], value, err_msg=name)
    play(engine, 5)
    assert replayed(engine) == state_of(engine)
    assert set(engine.rankers) == {"animals"}
    with pytest.raises(ConflictingRequest, match="another ranker"):
        rank(engine, event_id="visit-1")


def test_evaluations_judge_by_what_a_ranker_has_shown_since_it_began():
    engine = engine_of(ranker="random")
    play(engine, 60)
    engine.execute(Reset("animals"))
    play(engine, 40)
    live = engine.ranker("animals")
    asked = EvaluationRequest(policy="uniform")
    judged = evaluate(engine.store, "animals", live.config, tuple(ANIMALS), asked)
    assert (judged["rows"], judged["skipped"]) == (40, 0)


def test_both_names_wait_while_a_ranker_is_renamed():
    engine = engine_of()
    assert engine.decide(Rename("animals", "beasts"), 0)
    create = Configure("beasts", RankerRequest(items=ANIMALS))
    assert engine.decide(create, 0) is None
    assert engine.decide(Rank("beasts", RankRequest()), 0) is None
    engine.forget()
    assert engine.decide(create, 0)
    assert engine.decide(Rename("animals", "beasts"), 0) is None


# --------------------------------------------------------------------------- the log as a file


def test_the_log_of_a_deleted_ranker_is_checked_exported_and_copied(tmp_path):
    path, run = tmp_path / "log.db", CliRunner().invoke
    with open_store(path) as store:
        engine = Engine(store)
        configure(engine)
        play(engine, 5)
        engine.store.put_snapshot(engine.ranker("animals").snapshot())
        engine.execute(Rename("animals", "beasts"))
        play(engine, 5, "beasts")
        engine.execute(Delete("beasts"))
        configure(engine, "beasts", items=["x", "y"])
        play(engine, 5, "beasts", liked="x")
        wanted = state_of(engine, "beasts")
    checked = run(app, ["db", "check", str(path), "--json"])
    assert checked.exit_code == 0, checked.output
    told = {each["ranker"]: each for each in json.loads(checked.stdout)["rankers"]}
    assert told["beasts"]["sha256"] == wanted
    for name, n_events in (("animals", 12), ("beasts", 24)):
        out = tmp_path / f"{name}.ndjson"
        assert run(app, ["db", "export", str(path), name, "--out", str(out)]).exit_code == 0
        records = [json.loads(line) for line in out.read_text().splitlines()]
        assert len(records) == told[name]["n_events"] == n_events
        table = ["db", "export", str(path), name, "--out", str(tmp_path / f"{name}.parquet")]
        assert run(app, table).exit_code == 0
    copy = tmp_path / "copy.db"
    assert run(app, ["db", "backup", str(path), str(copy)]).exit_code == 0
    with open_store(copy) as store:
        assert state_of(Engine(store), "beasts") == wanted


def test_code_is_prepared_of_rankers_that_are_there():
    engine = engine_of()
    configure(engine, "gone")
    engine.execute(Delete("gone"))
    engine.execute(Delete("animals"))
    configure(engine, k=2, items=[*ANIMALS, "eel"])
    engine.store.put_snapshot(engine.ranker("animals").snapshot())
    (config,) = configs_of(engine.store).values()
    assert (config.k, config.fresh) == (2, True)


def test_a_desk_goes_on_with_another_ranker_of_the_name():
    async def main():
        desk = Desk(MemoryStore(), snapshot_every=4)
        await desk.start()
        create = Configure("animals", RankerRequest(items=ANIMALS, seed=1))
        for end in (Reset("animals"), Delete("animals"), None):
            if "animals" not in desk.engine.rankers:
                assert (await desk.submit(create)).created
            for _ in range(5):
                await desk.submit(Rank("animals", RankRequest()))
            if end is not None:
                await desk.submit(end)
        live = desk.engine.ranker("animals")
        told = (live.round, len(live.waiting), live.sha256())
        await desk.stop()
        return told, desk.store

    (n_rounds, n_waiting, sha256), store = asyncio.run(main())
    assert (n_rounds, n_waiting) == (5, 5)
    assert state_of(Engine(store)) == check_ranker(store, "animals").sha256 == sha256
