"""Every number that the service answers with, from the log that it has written."""

import asyncio
import json
import math
import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from keyhole.service.commands import Expire
from keyhole.service.dashboard.evaluate_page import result_page, whisker
from keyhole.service.dashboard.formatting import count, interval, signed, value
from keyhole.service.events import body_of
from keyhole.service.metrics import Metrics
from tests.service.asking import NDJSON, Asked
from tests.service.games import log_of
from tests.service.judging import judgement_of
from tests.service.page_references import index_row_of, ranker_page_of
from tests.service.played import ANIMALS, NAME
from tests.service.references import History, page_of
from tests.service.summary_references import summary_of
from tests.service.test_numbers import alike

pytestmark = pytest.mark.interpreted

ASKED = {
    "items": list(ANIMALS[:5]),
    "k": 2,
    "measure": "SumLoss",
    "max_grade": 3.0,
    "ranker": "random",
    "wait_seconds": 90.5,
}


@pytest.fixture(scope="module")
def served():
    """A service that was asked for lists and told of them, alone and in batches, late and never."""
    with Asked() as service:
        service.put(NAME, **ASKED)
        service.put("fresh", items=["ant", "bee"])
        replies, told = {}, {}
        for number in range(40):
            exclude = {"exclude": ["bee"]} if number % 4 == 1 else {}
            reply = service.rank(NAME, **exclude, deferred=number % 9 == 0).json()
            replies[reply["event_id"]] = reply
        ids = list(replies)
        for number, event_id in enumerate(ids[:12]):
            said = {"relevance": [number % 4, number % 3]} if number % 5 else {"status": "none"}
            told[event_id] = service.feedback(event_id, NAME, **said).json()
        lines = [{"event_id": event_id, "relevance": [1, 2]} for event_id in ids[12:30]]
        lines[3] = {"event_id": ids[15], "status": "not_shown"}
        lines[5] = {"event_id": "nobody", "relevance": [1, 2]}
        batch = "\n\n".join(json.dumps(line) for line in lines)
        path = f"/v1/rankers/{NAME}/feedback-batch"
        answer = service.ask("POST", path, content=batch.encode(), headers=NDJSON)
        live = service.desk.engine.ranker(NAME)
        seqs = tuple(live.seq_of[event_id] for event_id in ids[30:34])
        service.loop.run_until_complete(service.desk.submit(Expire(NAME, seqs)))
        told[ids[31]] = service.feedback(ids[31], NAME, relevance=[3, 3]).json()
        batched = [json.loads(line) for line in answer.text.splitlines()]
        yield service, History(service.desk.store), replies, told, batched


def test_every_number_of_rank_and_feedback(served):
    _, history, replies, told, batched = served
    for event_id, one in history.shown.items():
        page, reply = page_of(one), replies[event_id]
        assert (reply["k"], reply["model_seq"]) == (2, one.event.seq - 1)
        policy = ("p_marginal", "p_conditional", "explored")
        alike(reply["policy"], {name: page[name] for name in policy})
        due = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=one.event.at + 90_500)
        if not one.ranked.deferred:
            assert datetime.fromisoformat(reply["feedback_by"]) == due
    for event_id, reply in told.items():
        said = history.shown[event_id].said
        assert said is not None
        assert reply == {
            "learned": history.shown[event_id].learned,
            "seq": said.seq,
            "created": True,
        }
    ids = list(replies)
    assert [line["line"] for line in batched] == [2 * place + 1 for place in range(18)]
    for place, line in enumerate(batched):
        if place == 5:
            assert line["status"] == 404
            continue
        one = history.shown[ids[12 + place]]
        assert one.said is not None
        assert (line["status"], line["seq"], line["learned"]) == (201, one.said.seq, one.learned)


def test_every_number_of_a_ranker_and_its_pages(served):
    service, history, *_ = served
    wanted = {**summary_of(history), "simulation": False}
    page = service.ask("GET", f"/rankers/{NAME}.json").json()
    alike(page["summary"], wanted)
    reference = ranker_page_of(wanted, "SumLoss")
    for drawn in reference["charts"].values():
        del drawn["points"]
    del reference["texts"]["ranking_says"]
    for item in (*reference["rows"]["items"], *reference["rows"]["counts"]):
        for bar in [name for name in item if name.startswith("bar")]:
            item[bar] = round(item[bar], 2)
    alike(page["page"], reference)
    text = service.ask("GET", f"/rankers/{NAME}").text
    for row in (*reference["rows"]["facts"], *reference["rows"]["counts"]):
        assert row["text"] in text
    index = service.ask("GET", "/index.json").json()
    assert [each["name"] for each in index["rankers"]] == [NAME, "fresh"]
    alike(index["rankers"][0], wanted)
    row = index_row_of(wanted)
    del row["sparkline"]
    alike(index["page"]["rows"]["rankers"][0], row)
    told = {"seq": history.seq, "round": 40, "waiting": wanted["counts"]["waiting"]}
    alike(service.ask("GET", f"/v1/rankers/{NAME}/state").json(), told)
    alike(service.ask("GET", f"/v1/rankers/{NAME}").json(), {**told, "version": 1})
    alike(service.ask("GET", "/v1/rankers").json()["rankers"][0], {**told, "version": 1})


def test_every_number_of_the_stream(served):
    service, history, *_ = served

    async def first():
        return await anext(aiter(service.desk.subscribe(NAME)))

    waiting = sum(one.fate == "waiting" for one in history.rounds)
    told = {"seq": history.seq, "round": 40, "waiting": waiting}
    assert service.loop.run_until_complete(asyncio.wait_for(first(), 5.0)) == told


def test_every_number_of_an_event(served):
    service, history, *_ = served
    for event_id in list(history.shown)[::3]:
        wanted = page_of(history.shown[event_id])
        alike(service.ask("GET", f"/v1/rankers/{NAME}/events/{event_id}").json(), wanted)
        alike(service.ask("GET", f"/rankers/{NAME}/events/{event_id}.json").json(), wanted)


def test_every_number_of_the_log(served):
    service, history, *_ = served
    page = service.ask("GET", f"/v1/rankers/{NAME}/events?after=7&limit=20").json()
    assert [event["seq"] for event in page["events"]] == list(range(8, 28))
    assert page["next_after"] == 27
    rest = service.ask("GET", f"/v1/rankers/{NAME}/events?after={history.seq - 3}&limit=4").json()
    assert (len(rest["events"]), rest["next_after"]) == (3, None)
    rows = service.ask("GET", f"/rankers/{NAME}/events.json?before=30").json()
    assert [row["seq"] for row in rows["events"]] == list(range(29, 0, -1))


def test_every_number_of_an_evaluation_that_is_asked_for(served):
    service, history, *_ = served
    question: dict[str, Any] = {"policy": list(ANIMALS[4::-1]), "confidence": 0.7, "after": 5}
    asked = service.ask("POST", f"/v1/rankers/{NAME}/evaluations", json=question)
    while (done := service.ask("GET", asked.headers["location"]).json())["status"] != "done":
        assert done["status"] in ("queued", "running"), done
    wanted = judgement_of(history, **question)
    alike(done["result"], wanted)
    form = {"policy": "order", "order": "\n".join(question["policy"])}
    blank = service.ask("GET", f"/rankers/{NAME}/evaluate")
    token = re.search(r'name="csrf" value="(\w+)"', blank.text)
    assert token is not None
    cookie = {"cookie": blank.headers.get("set-cookie", "").partition(";")[0]}
    form |= {"csrf": token[1], "confidence": "0.7", "after": "5"}
    page = service.ask("POST", f"/rankers/{NAME}/evaluate.json", data=form, headers=cookie).json()
    alike(page["result"], wanted)


# --------------------------------------------------------------------------- metrics


def numbers_of(text, name):
    """Return the numbers of a metric by their labels."""
    found = re.findall(rf"^{name}(\{{.*?\}})? ([^ ]+)$", text, re.MULTILINE)
    return {labels: float(number) for labels, number in found}


def test_every_number_of_the_metrics_of_a_service(served):
    service, history, *_ = served
    text = service.ask("GET", "/metrics").text
    events = [*service.desk.store.events(NAME), *service.desk.store.events("fresh")]
    kinds = {event.kind for event in events}
    assert numbers_of(text, "keyhole_events_appended_total") == {
        f'{{kind="{kind}"}}': sum(event.kind == kind for event in events) for kind in kinds
    }
    waiting = sum(one.fate == "waiting" for one in history.rounds)
    for name, numbers in (("seq", (history.seq, 1)), ("round", (40, 0)), ("waiting", (waiting, 0))):
        told = numbers_of(text, f"keyhole_ranker_{name}")
        assert told == {f'{{ranker="{NAME}"}}': numbers[0], '{ranker="fresh"}': numbers[1]}
    assert set(numbers_of(text, "keyhole_ranker_preparing_seconds").values()) == {0.0}
    assert numbers_of(text, "keyhole_commit_events_sum") == {"": len(events)}
    requests = numbers_of(text, "keyhole_requests_total")
    assert requests['{operation="rank",status="201"}'] == 40.0
    given = {
        label: n for label, n in requests.items() if "feedback" in label and "atch" not in label
    }
    assert list(given.values()) == [13.0]
    assert numbers_of(text, "keyhole_requests_in_flight") == {"": 1.0}  # the one that asks


def test_every_number_of_a_histogram():
    metrics, seconds = Metrics(list), [0.0005, 0.001, 0.003, 0.003, 0.7, 60.0]
    for each in seconds:
        metrics.count("rank", 201, each)
    metrics.count("rank", 404, 0.02)
    for n_events, each in ((1, 0.002), (2, 0.004), (3, 0.006), (300, 11.0)):
        metrics.count_commit([type("Event", (), {"kind": "rank"})()] * n_events, each)
    text = metrics.text().decode()
    label = 'operation="rank",status="201"'
    buckets = numbers_of(text, "keyhole_request_seconds_bucket")
    # One millisecond to ten seconds, three ends to a power of ten.
    ends = [step * 10.0**power / 1000.0 for power in range(4) for step in (1.0, 2.5, 5.0)]
    ends += [10.0, math.inf]
    rank = {
        f'{{le="{"+Inf" if end == math.inf else end}",{label}}}': sum(s <= end for s in seconds)
        for end in ends
    }
    assert {name: n for name, n in buckets.items() if label in name} == rank
    assert numbers_of(text, "keyhole_request_seconds_count")[f"{{{label}}}"] == 6.0
    total = numbers_of(text, "keyhole_request_seconds_sum")[f"{{{label}}}"]
    assert total == pytest.approx(sum(seconds))
    assert numbers_of(text, "keyhole_requests_total")['{operation="rank",status="404"}'] == 1.0
    commits = numbers_of(text, "keyhole_commit_events_bucket")
    sizes = {f'{{le="{float(2**n)}"}}': min(n + 1, 3) for n in range(9)}
    assert commits == {**sizes, '{le="+Inf"}': 4.0}
    durations = numbers_of(text, "keyhole_commit_seconds_bucket")
    assert list(durations) == [f'{{le="{"+Inf" if end == math.inf else end}"}}' for end in ends]
    assert numbers_of(text, "keyhole_commit_events_sum") == {"": 306.0}
    assert numbers_of(text, "keyhole_commit_seconds_sum") == {"": pytest.approx(11.012)}
    assert numbers_of(text, "keyhole_commit_seconds_count") == {"": 4.0}


# --------------------------------------------------------------------------- the page of a verdict


@pytest.mark.parametrize("confidence", [0.95, 0.6])
def test_every_number_of_the_page_of_a_verdict(confidence):
    _, history = log_of("random, top 2, grades to 3")
    names = list(history.config.catalogue or ())
    told = judgement_of(history, policy=names, baseline="logged", confidence=confidence)
    page = result_page({**told, "measure": "DCG", "notes": []})
    bound, n = signed(told["lower_bound"]), count(told["rows"])
    assert page["sentence"].startswith(
        f"The {100 * confidence:g} % lower confidence bound of the difference in DCG"
    )
    assert f"and the baseline is {bound}, from {n} rounds" in page["sentence"]
    assert ("is above zero" in page["sentence"]) == page["promote"]
    assert page["skipped"] == count(told["skipped"])
    for row, name in zip(page["rows"], ("policy", "baseline", "difference"), strict=True):
        robust, plain = told[name]["doubly-robust"], told[name]["importance-weighted"]
        write = signed if name == "difference" else value
        assert row["text"] == write(robust["value"])
        assert row["plain"] == write(plain["value"])
        assert row["interval"] == interval(*robust["interval"])
        assert row["approximate"] == interval(*robust["approximate_interval"])


def test_every_number_of_the_figure_of_a_verdict():
    """The figure ends a quarter of its span beyond what it must show; the rest is cut there."""
    record = {"value": 1.0, "interval": [-9.0, 2.5], "approximate_interval": [0.5, 2.0]}
    drawn = whisker(record)  # from 0, which it must show, to 2, and .5 on either side

    def at(number):
        return round(400.0 * (number + 0.5) / 3.0, 1)

    assert (drawn["zero"], drawn["value"]) == (at(0.0), at(1.0))
    assert drawn["approximate"] == (at(0.5), at(2.0))
    assert drawn["sure"] == (0.0, 400.0)
    assert drawn["says"] == (
        "Difference +1.000; interval valid at every sample size "
        "\N{MINUS SIGN}9.000 to 2.500; approximate interval 0.500 to 2.000."
    )


def test_bodies_of_events_are_those_that_were_read(served):
    service, history, *_ = served
    for one in history.rounds:
        assert body_of(one.event) == one.ranked
        assert service.desk.store.event(NAME, one.event.seq) == one.event
