"""Many lists at once: what each alone would be, in one commit, under one key."""

import asyncio
from datetime import datetime
from typing import Any

import pytest

from keyhole.base.errors import InvalidInput
from keyhole.game.batched import rank_many
from keyhole.service import batching
from keyhole.service.commands import Rank, RankMany, RankRequest
from keyhole.service.dashboard.log import event_row
from keyhole.service.engine import Engine
from keyhole.service.errors import ConflictingRequest, KeyReused, StoreFull
from keyhole.service.events import body_of
from keyhole.service.replay import check_ranker
from tests.service.asking import ANIMALS, NDJSON, Asked
from tests.service.desks import answer, configure, engine_of, rank, state_of
from tests.service.test_desk import FaultyStore, run

PLAIN = RankRequest()
KINDS = {
    "plain": {},
    "two are seen": {"k": 2, "missing": 0.0},
    "apprentice": {"mode": "apprentice", "apprentice_share": 0.5},
    "frozen": {"mode": "frozen"},
    "others": {"ranker": "random", "k": 3},
    "documents": {"n_features": 2, "max_items": 5, "ranker": "linucb"},
}
DOCUMENTS = {"features": [[0.1, 0.2], [0.3, 0.1], [0.2, 0.9]]}


def batch(engine, requests, idem=None, name="animals"):
    return engine.execute(RankMany(name, requests, idem))


def same_store(asked):
    """Two engines with the same secret and the same ranker."""
    one, other = engine_of(**asked), engine_of(**asked)
    other.secret = one.secret
    return one, other


@pytest.mark.parametrize("kind", KINDS)
def test_lists_of_a_batch_are_those_of_single_ranks(kind):
    singly, at_once = same_store(KINDS[kind])
    asked: Any = DOCUMENTS if kind == "documents" else {}
    requests = [RankRequest(**asked, deferred=place % 5 == 3) for place in range(9)]
    for turn in range(3):
        alone = [singly.execute(Rank("animals", request)) for request in requests]
        together = batch(at_once, requests)
        for one, item in zip(alone, together, strict=True):
            assert item.status == 201
            told = (item.event_id, item.ranking, item.k, item.policy)
            assert told == (one.event_id, one.ranking, one.k, one.policy)
            assert (item.feedback_by is None) == (one.feedback_by is None)
            k = at_once.ranker("animals").config.k
            for engine in (singly, at_once):
                answer(engine, one.event_id, [float(turn != 1)] * min(k, len(one.ranking)))
    # The model that lists of a batch were shown by is that before it; all else is the same.
    assert state_of(singly) == state_of(at_once)
    assert check_ranker(at_once.store, "animals").problems == ()
    assert Engine(at_once.store).ranker("animals").sha256() == state_of(at_once)


def test_a_request_that_is_refused_harms_no_other():
    engine = engine_of()
    rank(engine, event_id="before")
    requests = [
        RankRequest(exclude=["eel"]),
        PLAIN,
        InvalidInput("It cannot be read."),
        RankRequest(event_id="mine"),
        RankRequest(event_id="mine"),
        RankRequest(event_id="mine", deferred=True),
        RankRequest(event_id="before"),
        RankRequest(event_id="before", deferred=True),
        RankRequest(event_id="last"),
    ]
    told = batch(engine, requests)
    kinds = [type(one).__name__ for one in told]
    assert kinds == [
        "InvalidInput", "RankItem", "InvalidInput", "RankItem", "RankItem", "ConflictingRequest",
        "RankItem", "ConflictingRequest", "RankItem",
    ]  # fmt: skip
    assert told[3] == told[4]
    assert [told[place].event_id for place in (3, 6, 8)] == ["mine", "before", "last"]
    events = list(engine.store.events("animals"))
    assert [event.key for event in events[2:]] == [told[1].event_id, "mine", "last"]
    assert [body_of(event).round for event in events[1:]] == [0, 1, 2, 3]


def test_a_batch_that_is_repeated_is_answered_as_the_first_was():
    engine = engine_of()
    rank(engine, event_id="before")
    requests = [
        RankRequest(event_id="before"), RankRequest(exclude=["eel"]), PLAIN, PLAIN,
        RankRequest(event_id="mine"),
    ]  # fmt: skip
    first = batch(engine, requests, "key")
    n_events = len(list(engine.store.events("animals")))
    assert n_events == 5
    answer(engine, first[2].event_id, [1.0])
    n_events += 1
    for again in (engine, Engine(engine.store)):
        told = batch(again, requests, "key")
        assert [told[place] for place in (0, 2, 3, 4)] == [first[p] for p in (0, 2, 3, 4)]
        assert isinstance(told[1], ConflictingRequest)
        assert len(list(again.store.events("animals"))) == n_events
    for other in ([PLAIN], requests[::-1], [*requests, PLAIN]):
        with pytest.raises(KeyReused):
            batch(engine, other, "key")
    for single in (PLAIN, RankRequest(event_id="mine")):
        with pytest.raises(KeyReused):
            engine.execute(Rank("animals", single, "key"))
    engine.execute(Rank("animals", PLAIN, "single"))
    with pytest.raises(KeyReused):
        batch(engine, [PLAIN], "single")


def test_the_key_of_a_batch_without_a_new_list_is_kept():
    engine = engine_of()
    first = rank(engine, event_id="mine")
    batch(engine, [RankRequest(event_id="yours")])
    refused = RankRequest(event_id="mine", exclude=["bee"])
    requests = [RankRequest(event_id="yours"), refused, RankRequest(event_id="mine")]
    told = batch(engine, requests, "key")
    last = engine.store.last("animals")
    assert last is not None
    assert (last.kind, last.idem, body_of(last).rank_seq) == ("repeat", "key", 3)
    assert body_of(last).batch.seqs == (3, 0, 2)
    for each in (engine, Engine(engine.store)):
        again = batch(each, requests, "key")
        assert [again[0], again[2]] == [told[0], told[2]]
        assert (again[2].event_id, again[2].ranking) == ("mine", first.ranking)
        assert isinstance(again[1], ConflictingRequest)
        for other in ([PLAIN], requests[::-1], requests[:1]):
            with pytest.raises(KeyReused):
                batch(each, other, "key")
        with pytest.raises(KeyReused):
            rank(each, idem="key", event_id="yours")
        assert each.store.last("animals") == last
    live = engine.ranker("animals")
    row = event_row(last, live.names_of, live.outcome)
    assert row["what"] == "A repeated batch was answered with its earlier lists"
    assert check_ranker(engine.store, "animals").problems == ()


def test_the_key_of_a_batch_that_was_refused_as_a_whole_is_free():
    """As that of a single request is: nothing came of it."""
    engine = engine_of()
    rank(engine, event_id="mine")
    n_events = engine.ranker("animals").seq
    (told,) = batch(engine, [RankRequest(event_id="mine", exclude=["bee"])], "key")
    assert isinstance(told, ConflictingRequest)
    assert engine.ranker("animals").seq == n_events
    assert batch(engine, [PLAIN], "key")[0].status == 201


def test_a_batch_is_one_commit_or_nothing():
    store = FaultyStore()

    async def scenario(desk):
        configure(desk.engine, wait_seconds=60.0)
        many = RankMany("animals", [PLAIN] * 64, "key")
        store.faults = [StoreFull("No room.")]
        with pytest.raises(StoreFull):
            await desk.submit(many)
        store.batches.clear()
        first, again = await asyncio.gather(desk.submit(many), desk.submit(many))
        assert first == again
        return [one.event_id for one in first]

    told = run(scenario, store)
    assert store.batches == [64]
    logged = [event.key for event in store.events("animals") if event.kind == "rank"]
    assert logged == told
    assert check_ranker(store, "animals").problems == ()


def test_a_batch_over_http_says_of_each_request_what_became_of_it():
    path = "/v1/rankers/animals/rank-batch"
    with Asked() as service:
        service.ask("PUT", "/v1/rankers/animals", json={"items": ANIMALS, "seed": 1})
        body = {"requests": [{}, {"event_id": "mine"}, {"exclude": ["eel"]}, {"nonsense": 1},
                             {"event_id": "a\0b"}]}  # fmt: skip
        keyed = {"Idempotency-Key": "one"}
        told = service.ask("POST", path, json=body, headers=keyed)
        assert told.status_code == 200
        replies = told.json()["replies"]
        assert [one["status"] for one in replies] == [201, 201, 422, 422, 422]
        assert replies[1]["event_id"] == "mine"
        assert "eel" in replies[2]["detail"]
        assert "nonsense" in replies[3]["detail"]
        assert "NUL" in replies[4]["detail"]
        again = service.ask("POST", path, json=body, headers=keyed).json()["replies"]
        assert again[:2] == replies[:2]
        single = service.ask("POST", path.replace("-batch", ""), json={}, headers=keyed)
        assert single.json()["type"] == "urn:keyhole:problem:key-reused"
        alone = service.ask("POST", path.replace("-batch", ""), json={"event_id": "mine"}).json()
        assert {"status": 201, **alone} == replies[1]
        for one in replies[:2]:
            page = service.ask("GET", f"/v1/rankers/animals/events/{one['event_id']}").json()
            policy = {name: page[name] for name in ("explored", "p_marginal", "p_conditional")}
            assert one["policy"] == {"mode": "online", **policy}
            assert (one["k"], one["model_seq"]) == (page["k"], page["model_seq"]) == (1, 1)
            assert one["ranking"] == page["ranking"]
            until = datetime.fromisoformat(one["feedback_by"]).timestamp()
            assert until == pytest.approx(page["at"] / 1000.0 + 600.0, abs=0.0005)
        said = b"\n".join(
            b'{"event_id": "%s", "relevance": [1]}' % one["event_id"].encode()
            for one in replies[:2]
        )
        lines = service.ask(
            "POST", "/v1/rankers/animals/feedback-batch", content=said, headers=NDJSON
        )
        assert lines.text.count('"learned":"learned"') == 2
        for wrong, what in (
            ({"requests": []}, "at least one request, got none"),
            ({"requests": [{}] * 257}, "at most 256 requests, got 257"),
            ({"requests": 3}, "expected `array`"),
            ({}, "missing required field `requests`"),
        ):
            refused = service.ask("POST", path, json=wrong)
            assert refused.status_code == 422
            assert what in refused.json()["detail"]


def test_a_batch_is_ranked_in_one_compiled_call(monkeypatch):
    calls = []

    def counted(learner, round, n_rounds):
        calls.append(n_rounds)
        return rank_many(learner, round, n_rounds)

    monkeypatch.setattr(batching, "rank_many", counted)
    engine = engine_of()
    rank(engine)
    batch(engine, [PLAIN] * 64)
    batch(engine, [PLAIN] * 256)
    assert calls == [1, 64, 256]
    answer(engine, batch(engine, [PLAIN])[0].event_id, [1.0])
    rank(engine)
    assert calls[3:] == [1, 1]
