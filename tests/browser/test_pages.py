"""The pages as they come from the server, without a browser."""

import asyncio
import hashlib
import json
import re
import shlex
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
from starlette.requests import Request

from keyhole.base.errors import InvalidInput
from keyhole.service import dashboard
from keyhole.service.commands import FeedbackRequest, GiveFeedback, Rank, RankRequest
from keyhole.service.dashboard.commands import next_commands
from keyhole.service.dashboard.evaluate_page import (
    blank_form,
    read_form,
    request_of,
    result_page,
)
from keyhole.service.dashboard.log import PAGE_SIZE
from keyhole.service.dashboard.pages import html
from keyhole.service.dashboard.ranker_page import MAX_ITEM_ROWS, ranker_page
from keyhole.service.dashboard.stream import SHORTEST_GAP, messages
from keyhole.service.dashboard.views import Dashboard
from keyhole.service.keys import Access
from tests.browser.summaries import ITEMS, MARKUP, summary

STATIC = dashboard.STATIC
RANKER = "/rankers/attractions"


@pytest.fixture(scope="session")
def client(showroom):
    with httpx.Client(timeout=30.0) as opened:
        yield opened


@pytest.fixture
def get(client, showroom):
    return lambda path, **options: client.get(showroom.url + path, **options)


def test_what_others_wrote_is_as_it_was_published():
    lines = (STATIC / "vendor/SHA256SUMS").read_text().splitlines()
    listed = {name: digest for digest, name in (line.split("  ") for line in lines)}
    found = {
        file.name: hashlib.sha256(file.read_bytes()).hexdigest()
        for file in (STATIC / "vendor").iterdir()
        if file.name != "SHA256SUMS"
    }
    assert listed == found


def test_no_page_has_a_script_or_a_style_of_its_own():
    templates = list((Path(dashboard.__file__).parent / "templates").iterdir())
    assert len(templates) > 5
    for template in templates:
        text = template.read_text()
        assert not re.search(r"<style|\sstyle=|\son\w+=|javascript:|https?:", text), template
        assert re.findall(r"<script[^>]*>", text) == re.findall(r"<script defer src=[^>]*>", text)


def test_scripts_make_no_markup_and_ask_nobody_else():
    for script in STATIC.glob("*.js"):
        assert not re.search(
            r"innerHTML|outerHTML|insertAdjacent|eval\(|https?:", script.read_text()
        )


@pytest.mark.parametrize(
    "path", ["/", RANKER, f"{RANKER}/events", f"{RANKER}/events?kind=rank", f"{RANKER}/evaluate"]
)
def test_every_page_has_its_json_twin(get, path):
    page = get(path)
    assert page.status_code == 200
    twin = re.search(r'<a href="([^"]*)">This page as JSON', page.text)
    assert twin is not None
    answer = get(twin[1].replace("&amp;", "&"))
    assert answer.headers["content-type"] == "application/json"
    assert answer.json()
    assert 'href="/static/dashboard.css' in page.text


def test_the_page_and_its_twin_say_the_same(get):
    page, twin = get(RANKER).text, get(f"{RANKER}.json").json()
    assert twin["summary"]["sha256"] in page
    for fact in twin["page"]["rows"]["facts"]:
        assert fact["text"] in page


def test_names_are_escaped(get):
    for path in (RANKER, f"{RANKER}/events", f"{RANKER}/evaluate"):
        text = get(path).text
        assert "&lt;img" in text
        assert "<img" not in text


def test_pages_that_are_not_there_say_so(get):
    for path in ("/rankers/nobody", f"{RANKER}/events/none", f"{RANKER}/events?kind=x", "/nowhere"):
        answer = get(path)
        assert answer.status_code == 404, path
        assert "Back to the rankers" in answer.text


def test_the_log_goes_back_page_by_page(get):
    newest = get(f"{RANKER}/events.json").json()
    older = get(f"{RANKER}/events.json?before={newest['older']}").json()
    seqs = [event["seq"] for event in newest["events"] + older["events"]]
    assert len(newest["events"]) == PAGE_SIZE
    assert seqs == list(range(seqs[0], seqs[-1] - 1, -1))
    configs = get(f"{RANKER}/events.json?kind=config").json()
    assert [event["seq"] for event in configs["events"]] == [1]
    assert configs["older"] is None
    assert get(f"{RANKER}/events?before=2").text.count("<tr>") == 2
    assert "No older events" in get(f"{RANKER}/events?before=1").text


@pytest.mark.parametrize("event_id", ["a/b?c=d&e#f%20<i>", "x.json"])
def test_an_impression_may_have_any_name(get, showroom, event_id):
    shown = showroom.submit(Rank("attractions", RankRequest(event_id=event_id)))
    page = get(f"{RANKER}/events").text
    address = re.search(r'href="(/rankers/attractions/events/[^"]+)"', page)
    assert address is not None
    assert "waiting" in get(address[1]).text
    told = FeedbackRequest(relevance=[1.0, 0.0])
    showroom.submit(GiveFeedback("attractions", event_id, told))
    assert "learnt from" in get(address[1]).text
    twin = get(address[1] + ".json").json()
    assert twin["event_id"] == event_id
    assert twin["ranking"] == shown.ranking


def test_first_commands_can_be_pasted_into_a_shell(get):
    text = re.search(r"<pre[^>]*>(.*?)</pre>", get("/").text, re.DOTALL)
    assert text is not None
    words = shlex.split(text[1].replace("&#39;", "'").replace("&#34;", '"').replace("\\\n", ""))
    assert words.count("curl") == 3
    assert '{"items": ["news", "sport", "weather", "puzzle"], "k": 1}' in words


def test_a_policy_is_judged_on_the_log(client, showroom):
    url = f"{showroom.url}{RANKER}/evaluate"
    page = client.post(url, data={"policy": "uniform", "bound": "student-t"})
    assert page.status_code == 200, page.text
    assert "The 95 % lower confidence bound" in page.text
    assert 'class="whisker"' in page.text
    order = {"policy": "order", "order": "\r\n".join(ITEMS)}
    result = client.post(f"{url}.json", data=order).json()["result"]
    assert result["verdict"] in {"keep", "promote"}
    wrong = client.post(url, data={"policy": "order", "order": "nothing"})
    assert wrong.status_code == 422
    assert "must name each of the 7 items" in wrong.text
    assert "nothing</textarea>" in wrong.text
    assert "field confidence is invalid" in client.post(url, data={"confidence": "2"}).text


def test_forms_are_read_with_care():
    blank = blank_form(["a", "b"])
    assert read_form(b"csrf=x&policy=uniform", blank)["order"] == "a\nb"
    assert request_of({**blank, "policy": "order"}).policy == ["a", "b"]
    for body in (b"\xff", b"&".join([b"a=b"] * 99)):
        with pytest.raises(InvalidInput, match="A form must be"):
            read_form(body, blank)


def test_an_evaluation_without_bounds_is_told():
    unknown = {
        "value": 0.5,
        "interval": [None, None],
        "approximate_interval": [0.4, 0.6],
    }
    record = {"doubly-robust": unknown, "importance-weighted": unknown}
    page = result_page(
        {
            "verdict": "keep",
            "lower_bound": None,
            "confidence": 0.95,
            "rows": 12,
            "skipped": 0,
            "measure": "DCG",
            "policy": record,
            "baseline": record,
            "difference": record,
            "notes": [],
        }
    )
    assert "give no bound" in page["sentence"]
    assert page["whisker"]["sure"] == (0.0, 400.0)


def rendered(told):
    data = {
        "name": told["name"],
        "here": "overview",
        "summary": told,
        "page": ranker_page(told),
        "mode_says": "",
        "commands": "",
        "beat": 10.0,
        "days": {"since": None, "until": None},
        "acts": [],
    }
    request = Request({"type": "http", "root_path": "/below"})
    return bytes(html(request, "ranker.html", data).body).decode()


def test_a_page_tells_what_is_rare():
    verdict = {"reason": "Two grades look the same.", "advice": ["Use DCG."]}
    text = rendered(summary(verdict=verdict))
    assert "Why DCG cannot be learnt from the top 2" in text
    assert "Use DCG." in text
    assert "Two grades look the same." in text
    assert "The apprentice is better" in text
    assert "Feedback takes longer than a tenth" in text
    assert "Round 1,400" in text
    assert text.count('class="alarm-mark"') == 3 + 3
    assert 'href="/below/rankers/attractions"' in text
    assert MARKUP not in text


def test_a_page_of_queries_says_why_it_has_no_items():
    text = rendered(summary(items=None, shows=None, best=None, apprentice=None, simulation=False))
    assert "Each request brings its own documents" in text
    assert 'id="regret-title"' not in text


def test_a_long_list_is_cut_and_says_so():
    item = summary()["items"][0]
    page = ranker_page(summary(items=[{**item, "name": str(n)} for n in range(60)]))
    assert len(page["rows"]["items"]) == MAX_ITEM_ROWS
    assert page["texts"]["items_left_out"].startswith("10 more items")


def test_the_stream_merges_what_comes_too_fast_and_beats():
    async def happenings():
        for seq in range(50):
            yield {"seq": seq}
            await asyncio.sleep(0.001)
        await asyncio.sleep(0.6 * SHORTEST_GAP)

    async def listen():
        began = asyncio.get_running_loop().time()
        heard = [message async for message in messages(happenings(), beat=0.1)]
        return heard, asyncio.get_running_loop().time() - began

    heard, seconds = asyncio.run(listen())
    said = [message for message in heard if message.startswith("data")]
    assert said == ['data: {"seq": 0}\n\n', 'data: {"seq": 49}\n\n']
    assert heard[0] == "retry: 2000\n\n"
    assert seconds < 3 * SHORTEST_GAP


def test_the_stream_beats_while_nothing_happens():
    async def silence():
        await asyncio.sleep(0.1)
        yield {}

    async def listen():
        return [message async for message in messages(silence(), beat=0.03)]

    assert "event: beat\ndata: {}\n\n" in asyncio.run(listen())


def test_a_page_about_a_mistake_needs_no_view():
    page = dashboard.error_html(503, "Not ready", "<b>Soon.</b>", is_passing=True).decode()
    assert "&lt;b&gt;Soon." in page
    assert 'http-equiv="refresh"' in page
    assert "refresh" not in dashboard.error_html(500, "A fault", "Ours.").decode()


def seen_with(showroom, path, view, access):
    """Return a page as someone with a key sees it; the service puts the key's rights there."""
    scope = {
        "type": "http",
        "method": "GET",
        "path": path,
        "query_string": b"",
        "headers": [(b"host", b"here")],
        "path_params": {"ranker": "attractions"},
        "state": {"access": access, "csrf": "a token"},
    }
    pages = Dashboard(showroom.desk, None)  # type: ignore[arg-type]
    return asyncio.run(getattr(pages, view)(Request(scope)))


def test_a_key_sees_its_own_rankers_and_gets_a_token_for_forms(showroom):
    access = Access(frozenset({"read"}), frozenset({"attractions"}), "ab12")
    page = seen_with(showroom, f"{RANKER}/evaluate", "evaluate", access).body.decode()
    assert page.count('<input type="hidden" name="csrf" value="a token">') == 2
    assert "Log out" in page
    index = seen_with(showroom, "/", "index", access).body.decode()
    assert "attractions" in index
    assert "fresh" not in index
    other = access._replace(rankers=frozenset({"fresh"}))
    assert seen_with(showroom, f"{RANKER}/evaluate", "evaluate", other).status_code == 404


def test_commands_for_queries_bring_documents_with_features():
    config = SimpleNamespace(k=5, catalogue=None, request={"n_features": 2})
    live: Any = SimpleNamespace(name="search", config=config)
    words = shlex.split(next_commands("http://here", live, needs_key=True).replace("\\\n", ""))
    bodies = [json.loads(word) for word in words if word.startswith("{")]
    assert bodies[0]["features"] == [[1, 0], [0, 1], [0, 0]]
    assert bodies[1] == {"relevance": [1, 0, 0]}
    assert words.count("authorization: Bearer $KEYHOLE_KEY") == 2
