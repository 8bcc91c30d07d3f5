"""What the dashboard does: it creates, freezes and promotes, once that is confirmed."""

import asyncio
import re
from datetime import UTC, datetime

import httpx
import pytest

from keyhole.service.commands import FeedbackRequest, GiveFeedback, Rank, RankRequest, Reset
from keyhole.service.dashboard.dates import days_of, rounds_of, seqs_of
from keyhole.service.events import body_of
from keyhole.service.group_commit import Desk
from keyhole.service.http.app import build
from tests.service.asking import ANIMALS, Asked
from tests.service.desks import configure, engine_of

HTML = {"accept": "text/html"}
APPRENTICE = {"mode": "apprentice", "apprentice_share": 0.25, "wait_seconds": 60.0}
FORM = {"name": "shop", "items": "tea\ncoffee\n\nmilk", "k": "2", "mode": "apprentice"}
DAY = 86_400_000


@pytest.fixture
def service():
    with Asked() as asked:
        asked.put(**APPRENTICE)
        yield asked


def page(service, path, status=200):
    answer = service.ask("GET", path, headers=HTML)
    assert answer.status_code == status, answer.text
    return answer.text


def send(service, path, text, **more):
    """Send the form of a page, its hidden fields and more."""
    fields = dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)">', text))
    return service.ask("POST", path, data={**fields, **more}, headers=HTML)


def config(service, name="animals"):
    return service.desk.engine.ranker(name).config


def test_an_apprentice_is_promoted_and_keeps_all_else(service):
    overview = page(service, "/rankers/animals")
    assert 'href="/rankers/animals/change?to=online">Promote</a>' in overview
    assert 'href="/rankers/animals/change?to=frozen">Freeze</a>' in overview
    asked = page(service, "/rankers/animals/change?to=online")
    assert "from <strong>apprentice</strong> to <strong>online</strong>" in asked
    assert config(service).mode == "apprentice"  # nothing is done before it is confirmed
    done = send(service, "/rankers/animals/change", asked)
    assert (done.status_code, done.headers["location"]) == (303, "/rankers/animals")
    assert (config(service).mode, config(service).wait_seconds) == ("online", 60.0)
    assert config(service).apprentice_share == 0.25
    again = send(service, "/rankers/animals/change", asked)  # the page of before
    assert again.status_code in (409, 422)
    assert "Freeze" in page(service, "/rankers/animals")


def test_a_ranker_is_frozen_and_learns_again(service):
    for after in ("frozen", "online"):
        asked = page(service, f"/rankers/animals/change?to={after}")
        assert send(service, "/rankers/animals/change", asked).status_code == 303
        assert config(service).mode == after
    page(service, "/rankers/animals/change?to=apprentice", 422)
    page(service, "/rankers/animals/change", 422)


def test_a_form_without_its_token_or_of_a_ranker_that_has_changed_does_nothing(service):
    asked = page(service, "/rankers/animals/change?to=online")
    assert send(service, "/rankers/animals/change", asked, csrf="x").status_code == 403
    service.ask("PATCH", "/v1/rankers/animals", json={"wait_seconds": 5})
    stale = send(service, "/rankers/animals/change", asked)
    assert stale.status_code == 409
    assert "The version of ranker &#39;animals&#39; must be 1, but it is 2" in stale.text
    assert send(service, "/rankers/animals/change", asked, version="x").status_code == 422
    assert config(service).mode == "apprentice"
    assert service.ask("POST", "/new", data={**FORM, "confirmed": "yes"}).status_code == 403


def test_a_ranker_is_created_once_it_is_confirmed(service):
    assert 'href="/new"' in page(service, "/")
    shown = send(service, "/new", page(service, "/new"), **FORM)
    assert "in mode <strong>apprentice</strong>" in shown.text
    assert "3 items" in shown.text
    assert "shop" not in service.desk.engine.rankers
    done = send(service, "/new", shown.text.replace("&#34;", '"'), items=FORM["items"])
    assert (done.status_code, done.headers["location"]) == (303, "/rankers/shop")
    made = config(service, "shop")
    assert (made.catalogue, made.k, made.mode) == (("tea", "coffee", "milk"), 2, "apprentice")
    for wrong, why in (
        ({"name": "animals"}, "already"),
        ({"name": "a b"}, "The name must be"),
        ({"name": "x.json", "confirmed": "yes"}, "end in .json"),
        ({"name": "x", "k": "many"}, "The field k is invalid"),
        ({"name": "x", "items": "tea\ntea", "confirmed": "yes"}, "item"),
        ({"name": "x", "measure": "DGC", "confirmed": "yes"}, "Did you mean"),
    ):
        answer = send(service, "/new", page(service, "/new"), **{**FORM, **wrong})
        assert answer.status_code == 422, wrong
        assert why in answer.text


def test_the_log_says_which_key_did_it_and_only_administrators_may(service):
    asked = {"scopes": ["admin"], "rankers": ["*"], "name": "ops"}
    boss = service.ask("POST", "/v1/keys", json=asked).json()
    service.headers = {"authorization": f"Bearer {boss['key']}"}
    reader = service.ask(
        "POST", "/v1/keys", json={"scopes": ["read"], "rankers": ["*"], "name": "wall"}
    ).json()
    text = page(service, "/rankers/animals/change?to=frozen")
    assert send(service, "/rankers/animals/change", text).status_code == 303
    assert body_of(service.desk.store.last("animals")).by == f"ops ({boss['prefix']})"
    assert f"by ops ({boss['prefix']})" in page(service, "/rankers/animals/events")
    told = page(service, "/keys")
    assert "ops" in told
    assert "wall" in told
    assert reader["key"] not in told
    service.headers = {"authorization": f"Bearer {reader['key']}"}
    for path in ("/new", "/keys", "/rankers/animals/change?to=online"):
        page(service, path, 403)
    assert "change?to" not in page(service, "/rankers/animals")
    assert send(service, "/rankers/animals/change", text, to="online").status_code == 403
    assert config(service).mode == "frozen"


def test_pages_lead_to_the_documentation_of_this_version(service):
    text = page(service, "/")
    for name in ("service.md", "operating.md"):
        assert f'href="/docs/{name}"' in text
        answer = service.ask("GET", f"/docs/{name}")
        assert answer.headers["content-type"].startswith("text/plain")
        assert answer.text.startswith("# ")
    page(service, "/docs/other.md", 404)
    page(service, "/docs/..%2Fpyproject.toml", 404)


# --------------------------------------------------------------------------- days


def three_days(n=4):
    """Return an engine with n lists on each of three days, from 2026-01-10 on."""
    engine, start = engine_of(), int(datetime(2026, 1, 10, tzinfo=UTC).timestamp() * 1000)
    for day in range(3):
        for number in range(n):
            at = start + day * DAY + number
            shown = engine.execute(Rank("animals", RankRequest()), at)
            said = FeedbackRequest(relevance=[float(day)] if day < 2 else [0.5])
            engine.execute(GiveFeedback("animals", shown.event_id, said), at)
    return engine


@pytest.mark.parametrize(
    ("since", "until", "rounds"),
    [
        (None, None, (0, 12)),
        ("2026-01-11", None, (4, 12)),
        (None, "2026-01-10", (0, 4)),
        ("2026-01-11", "2026-01-11", (4, 8)),
        ("2026-01-12", "2026-01-31", (8, 12)),
        ("2026-02-01", None, (12, 12)),
        (None, "2025-12-31", (0, 0)),
    ],
)
def test_days_are_a_part_of_the_log_and_of_its_rounds(since, until, rounds):
    engine = three_days()
    live, days = engine.ranker("animals"), days_of(since, until)
    assert rounds_of(engine.store, live, days) == rounds
    after, before = seqs_of(engine.store, "animals", days)
    ranks = [
        body_of(event).round
        for event in engine.store.events("animals", after=after)
        if event.seq < before and event.kind == "rank"
    ]
    assert ranks == list(range(*rounds))


def dashboard_of(engine):
    """Return what gets pages of a dashboard over the log of an engine."""
    app = build(Desk(engine.store))

    async def get(path):
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            return await client.get(path)

    return lambda path: asyncio.run(get(path))


def test_pages_are_of_the_days_that_are_asked_for():
    engine = three_days()
    get = dashboard_of(engine)
    days = "since=2026-01-11&until=2026-01-11"
    told = get(f"/rankers/animals.json?{days}").json()
    whole = get("/rankers/animals.json").json()
    chart = told["page"]["charts"]["score"]
    assert chart["rounds"] == [4, 5, 6, 7]
    place = whole["page"]["charts"]["score"]["rounds"].index(4)
    assert chart["lines"]["score"] == whole["page"]["charts"]["score"]["lines"]["score"][place:][:4]
    assert told["page"]["texts"]["range_says"].startswith("The charts show rounds 4 to 7;")
    assert told["page"]["rows"]["facts"] == whole["page"]["rows"]["facts"]
    assert [row["round"] for row in told["page"]["rows"]["series"]] == ["7", "6", "5", "4"]
    text = get(f"/rankers/animals?{days}").text
    assert 'value="2026-01-11"' in text
    assert f"animals.json?{days}".replace("&", "&amp;") in text
    listed = get(f"/rankers/animals/events.json?{days}").json()
    assert [row["seq"] for row in listed["events"]] == list(range(17, 9, -1))
    assert listed["older"] is None
    none = get("/rankers/animals.json?since=2027-01-01").json()["page"]
    assert none["texts"]["range_says"] == "The charts have no rounds on these days."
    for wrong in (
        "since=yesterday",
        "until=0001-01-01",
        "since=9999-12-31",
        "since=2026-02-01&until=2026-01-01",
    ):
        assert get(f"/rankers/animals?{wrong}").status_code == 422


def test_days_of_a_ranker_that_was_reset_are_those_since():
    engine = three_days()
    at = int(datetime(2026, 1, 12, 12, tzinfo=UTC).timestamp() * 1000)
    engine.execute(Reset("animals"), at)
    engine.execute(Rank("animals", RankRequest()), at)
    live = engine.ranker("animals")
    assert rounds_of(engine.store, live, days_of("2026-01-10", None)) == (0, 1)
    assert rounds_of(engine.store, live, days_of(None, "2026-01-11")) == (0, 0)
    assert configure(engine, items=ANIMALS[1:])
