"""What is said of an apprentice agrees with itself; items may be left out of its lists."""

from typing import Any

import pytest

from keyhole.base.errors import InvalidInput
from keyhole.service.commands import Document
from keyhole.service.dashboard.formatting import NONE
from keyhole.service.dashboard.ranker_page import ranker_page
from keyhole.service.events import body_of
from keyhole.service.replay import check_ranker
from keyhole.service.summary import summary
from tests.service.desks import ANIMALS, answer, configure, engine_of, rank

pytestmark = pytest.mark.interpreted


def warnings(engine):
    return summary(engine.ranker("animals"))["warnings"]


def play_apprentice(engine, n=300):
    """Show a list of which the apprentice learns little, as its own is mostly another one."""
    for round in range(n):
        reply = rank(engine, baseline=["dog"])
        answer(engine, reply.event_id, [float(round % 5 == 0 and reply.ranking[0] == "dog")])


def test_intervals_of_an_apprentice_are_of_all_that_was_seen():
    engine = engine_of(mode="apprentice", apprentice_share=0.1)
    play_apprentice(engine)
    told = summary(engine.ranker("animals"))
    (dog,) = [item for item in told["items"] if item["name"] == "dog"]
    item = engine.ranker("animals").tally.items["dog"]
    assert dog["observed"] == item.observed > 250
    assert dog["mean"] == item.total / item.observed
    assert dog["high"] - dog["low"] < 0.1  # as 250 values say, whatever it has learnt from
    configure(engine, mode="online")  # promoted: it still has not learnt from most of them
    (after,) = [i for i in summary(engine.ranker("animals"))["items"] if i["name"] == "dog"]
    assert (after["mean"], after["low"], after["high"]) == (dog["mean"], dog["low"], dog["high"])


def test_beliefs_are_told_where_they_rest_on_what_was_seen():
    engine = engine_of()
    for _ in range(40):
        reply = rank(engine)
        answer(engine, reply.event_id, [float(reply.ranking[0] == "cat")])
    live = engine.ranker("animals")
    told = {item["name"]: item["mean"] for item in summary(live)["items"]}
    beliefs: Any = live.learner.beliefs()
    assert told["cat"] == beliefs[0][2]


def test_a_list_that_nothing_is_known_of_has_no_value():
    engine = engine_of(mode="apprentice", ranker="fixed", settings={"ranking": [2, 0, 1, 3]})
    said = summary(engine.ranker("animals"))["apprentice"]
    assert [said[which]["value"] for which in ("baseline", "own", "difference")] == [None] * 3
    for _ in range(3):
        answer(engine, rank(engine, baseline=["ant"]).event_id, [1.0])
    told = summary(engine.ranker("animals"))
    said = told["apprentice"]
    assert (said["baseline"]["value"], said["own"]["value"], said["own"]["n"]) == (1.0, None, 0)
    assert (said["difference"]["value"], said["better"]) == (None, False)
    page = ranker_page(told)
    assert [row["text"] for row in page["rows"]["apprentice"]] == ["1.000", NONE, NONE]
    assert page["texts"]["apprentice_says"].startswith(
        "The apprentice's lists have no feedback yet"
    )


def test_nobody_is_asked_for_a_share_that_is_set():
    asked: Any = {"mode": "apprentice", "ranker": "fixed", "settings": {"ranking": [2, 0, 1, 3]}}
    for share, is_warned in ((0.0, True), (1e-9, False)):
        engine = engine_of(**asked, apprentice_share=share)
        for _ in range(101):
            answer(engine, rank(engine, baseline=["ant"]).event_id, [1.0])
        assert any("`apprentice_share`" in each for each in warnings(engine)) == is_warned


@pytest.mark.parametrize(("share", "is_warned"), [(0.0, True), (0.5, False)])
def test_lists_of_requests_that_are_never_shown_are_named(share, is_warned):
    engine = engine_of(
        n_features=1, ranker="random-lists", mode="apprentice", apprentice_share=share
    )
    for _ in range(220):
        items = [Document("a"), Document("b")]
        reply = rank(engine, items=items, features=[[0.0], [1.0]], baseline=["b"])
        answer(engine, reply.event_id, [1.0])
    assert any("never shown" in each for each in warnings(engine)) == is_warned
    told = summary(engine.ranker("animals"))
    assert ranker_page(told)["texts"]["ranking_says"] == "Every query has its own best list."
    own = told["apprentice"]["own"]
    assert (own["value"] is None) == (own["n"] == 0) == is_warned


@pytest.mark.parametrize("share", [0.0, 0.5])
def test_items_are_left_out_of_both_lists_of_an_apprentice(share):
    engine = engine_of(mode="apprentice", apprentice_share=share, k=2)
    live, shown = engine.ranker("animals"), set()
    for round in range(60):
        out = ANIMALS[round % 4]
        reply = rank(engine, baseline=ANIMALS[::-1], exclude=[out])
        event: Any = engine.store.find("animals", reply.event_id, "rank")
        ranked = body_of(event)
        assert sorted([*reply.ranking, out]) == ANIMALS
        if ranked.own is not None:
            assert reply.ranking == [name for name in ANIMALS[::-1] if name != out]
        names = [ANIMALS[index] for index in (ranked.own or ranked.ranking)[:2]]
        agree = set(names) == set(reply.ranking[:2])
        if ranked.own is not None:
            assert ranked.teaches == (agree and share == 0.0)
        elif not ranked.teaches:  # its own list would have had the item on top
            assert ranked.chances is ranked.p_marginal is None
        said = answer(engine, reply.event_id, [1.0, 0.0]).learned
        assert said == ("learned" if ranked.teaches else "unused")
        shown.add((ranked.own is None, ranked.teaches))
    assert len(shown) > 1
    assert check_ranker(engine.store, "animals").sha256 == live.sha256()


@pytest.mark.parametrize(
    ("k", "out", "teaches"),
    [(1, "cat", False), (1, "ant", True), (1, "dog", True), (2, "ant", False), (2, "bee", True)],
)
def test_an_own_list_that_is_short_of_its_top_teaches_nothing(k, out, teaches):
    asked: Any = {"mode": "apprentice", "apprentice_share": 1.0, "ranker": "fixed", "k": k}
    engine = engine_of(settings={"ranking": [2, 0, 1, 3]}, **asked)
    reply = rank(engine, exclude=[out])
    assert reply.ranking == [name for name in ("cat", "ant", "bee", "dog") if name != out]
    assert (reply.policy.p_marginal is not None) == teaches
    said = answer(engine, reply.event_id, [1.0] * k).learned
    assert said == ("learned" if teaches else "unused")


def test_documents_that_are_left_out_may_be_in_the_baseline():
    engine = engine_of(n_features=1, ranker="random-lists", mode="apprentice")
    items = [Document("a"), Document("b"), Document("c")]
    asked: Any = {"items": items, "features": [[0.0], [1.0], [2.0]], "exclude": ["b"]}
    assert rank(engine, **asked, baseline=["b", "c", "a"]).ranking == ["c", "a"]
    with pytest.raises(InvalidInput, match="`baseline` must name items of the list, got 'eel'"):
        rank(engine, **asked, baseline=["eel"])
