"""Numbers of a ranker whose lists come with their requests, and of one whose code is prepared."""

import random
import re

import pytest

from keyhole.service.commands import Document, Expire
from keyhole.service.compile_status import Preparation
from keyhole.service.dashboard.index_page import index_page
from keyhole.service.dashboard.ranker_page import ranker_page
from keyhole.service.events import body_of
from keyhole.service.metrics import Metrics
from keyhole.service.summary import event_page, summary
from tests.service.desks import answer, engine_of, rank
from tests.service.summary_references import around, variance_of_mean
from tests.service.test_numbers import alike

pytestmark = pytest.mark.interpreted

SHARE = 0.4


@pytest.fixture(scope="module")
def queries():
    """A ranker of queries as an apprentice, and what was said of each of its lists."""
    engine = engine_of(
        "queries", ranker="random-lists", n_features=2, k=3, mode="apprentice",
        apprentice_share=SHARE, max_grade=2.0,
    )  # fmt: skip
    rng, said = random.Random(4), []
    for number in range(90):
        names = [f"d{place}" for place in range(rng.choice((2, 3, 6)))]
        rows = [[rng.random(), rng.random()] for _ in names]
        reply = rank(
            engine, "queries", items=[Document(name) for name in names], features=rows,
            baseline=names[::-1],
        )  # fmt: skip
        relevance = [float(rng.randint(0, 2)) for _ in range(reply.k)]
        if number % 6 == 5:
            relevance = []
        else:
            answer(engine, reply.event_id, relevance, name="queries")
        said.append((reply, names, relevance))
    live = engine.ranker("queries")
    engine.execute(Expire("queries", tuple(live.waiting)[:5]))
    return live, said


def test_every_number_of_a_summary_of_queries(queries):
    live, said = queries
    scores: dict[bool, list[float]] = {True: [], False: []}
    for reply, names, relevance in said:
        assert reply.k == min(3, len(names))
        ranked = body_of(live.store.find("queries", reply.event_id, "rank"))
        assert (ranked.own is None) or reply.ranking == names[::-1]
        if relevance:
            scores[ranked.own is None].append(sum(relevance) / len(relevance))
    means = {is_own: sum(of) / len(of) for is_own, of in scores.items()}
    spreads = {is_own: variance_of_mean(of) for is_own, of in scores.items()}
    assert min(len(of) for of in scores.values()) > 20
    apart = around(means[True] - means[False], spreads[True] + spreads[False])
    alike(
        summary(live),
        {
            "items": None,
            "best": None,
            "round": 90,
            "answer_rate": 75 / 80,
            "counts": {"ranks": 90, "observed": 75, "expired": 5, "waiting": 10},
            "apprentice": {
                "baseline": {**around(means[False], spreads[False]), "n": len(scores[False])},
                "own": {**around(means[True], spreads[True]), "n": len(scores[True])},
                "difference": apart,
                "better": apart["low"] > 0.0,
            },
            "shows": said[-1][0].ranking,
        },
    )
    told = [sum(relevance) / len(relevance) if relevance else None for *_, relevance in said]
    alike(summary(live)["series"]["score"], told)


def test_every_number_of_the_event_of_a_query(queries):
    live, said = queries
    for reply, names, relevance in said:
        page = event_page(live, reply.event_id)
        assert page["k"] == min(3, len(names))
        assert page["ranking"] == reply.ranking
        assert (page["feedback"] or {}).get("relevance", []) == relevance


def test_a_list_ends_before_what_feedback_reaches():
    """Of a short list no more is told than it has, and it is scored by that."""
    engine = engine_of("queries", ranker="random-lists", n_features=1, k=3)
    reply = rank(engine, "queries", items=[Document("a"), Document("b")], features=[[0.0], [1.0]])
    answer(engine, reply.event_id, [1.0, 0.0], name="queries")
    assert summary(engine.ranker("queries"))["series"]["score"] == [0.5]


@pytest.mark.parametrize(
    ("ends", "state"), [(None, "preparing"), ("end", "ready"), ("fail", "failed")]
)
def test_every_number_of_code_that_is_prepared(monkeypatch, ends, state):
    clock = [100.0]
    monkeypatch.setattr("keyhole.service.compile_status.time.monotonic", lambda: clock[0])
    engine = engine_of()
    live = engine.ranker("animals")
    live.preparation = Preparation("animals", live.config)
    clock[0] = 103.25
    if ends == "end":
        live.preparation.end("disk")
    elif ends == "fail":
        live.preparation.fail(ValueError("no"))
    clock[0] = 107.5
    seconds = 7.5 if ends is None else 3.25
    told = summary(live)
    assert told["code"] == {"state": state, "seconds": seconds}
    assert (live.reply().code.state, live.reply().code.seconds) == (state, seconds)
    row = index_page([told], "")["rows"]["rankers"][0]
    assert row["code"] == f"{state}, {round(seconds)} s"
    assert ranker_page(told)["texts"]["preparing"] == row["code_says"]
    assert bool(re.search(rf"\b{round(seconds)} s\b", row["code_says"])) == (state != "ready")
    metrics = Metrics(lambda: [live]).text().decode()
    going_on = seconds if ends is None else 0.0
    assert f'keyhole_ranker_preparing_seconds{{ranker="animals"}} {going_on}' in metrics
