"""What pages are filled with, whole: addresses, pages before and after, who may do what."""

import json
import shlex
import time
from urllib.parse import parse_qsl, urlsplit

import pytest

from keyhole.base.errors import InvalidInput
from keyhole.service.dashboard import views
from keyhole.service.dashboard.commands import first_commands, next_commands
from keyhole.service.dashboard.evaluate_page import blank_form, read_form, request_of, whisker
from keyhole.service.dashboard.pages import plain, with_query
from keyhole.service.sessions import COOKIE, Sessions
from tests.service.asking import ANIMALS, Asked
from tests.service.desks import engine_of

pytestmark = pytest.mark.interpreted


@pytest.fixture(scope="module")
def service():
    with Asked(insecure=True) as asked:
        asked.put(k=2)
        for round in range(30):
            shown = asked.rank(event_id=f"e{round}")
            if round % 3:
                asked.feedback(shown.json()["event_id"], relevance=[1, round % 2])
        for number in range(52):
            asked.put(f"shop-{number:02d}", k=1)
        asked.put("wide", mode="apprentice")
        yield asked


@pytest.fixture
def filled(service, monkeypatch):
    """Return what gives the name and the data of the template of a page."""
    found = []

    def noted(request, template, data, *, status=200):
        found.append((template, data, status))
        return plain(None)

    monkeypatch.setattr(views, "html", noted)

    def ask(path):
        service.ask("GET", path)
        return found.pop()

    return ask


def address(text):
    """Return the path of an address, and its query."""
    parts = urlsplit(text)
    return parts.path, dict(parse_qsl(parts.query))


def test_the_list_of_rankers_goes_on_page_by_page(filled, service):
    names = sorted(["animals", *(f"shop-{number:02d}" for number in range(52)), "wide"])
    template, data, _ = filled("/")
    shown = [row["name"] for row in data["page"]["rows"]["rankers"]]
    assert (template, shown) == ("index.html", names[:50])
    assert data["page"]["texts"]["live"] == "54 rankers"
    assert address(data["next"]) == ("/", {"after": names[49]})
    assert (data["first"], address(data["twin"])) == (None, ("/index.json", {}))
    assert (data["search"], data["needs_key"]) == ("", False)
    assert (data["may_act"], data["may_see_keys"]) == (True, True)
    assert data["commands"] == first_commands("http://localhost", False)
    _, data, _ = filled(f"/?after={names[49]}")
    assert [row["name"] for row in data["page"]["rows"]["rankers"]] == names[50:]
    assert data["next"] is None
    assert (address(data["first"]), address(data["twin"])) == (
        ("/", {}), ("/index.json", {"after": names[49]}),
    )  # fmt: skip
    _, data, _ = filled("/?search=+SHOP+&after=shop-00")
    shown = [row["name"] for row in data["page"]["rows"]["rankers"]]
    assert shown == [f"shop-{number:02d}" for number in range(1, 51)]
    assert data["page"]["texts"]["live"] == "52 rankers"
    assert data["search"] == "SHOP"
    assert address(data["first"]) == ("/", {"search": "SHOP"})
    assert address(data["next"]) == ("/", {"search": "SHOP", "after": "shop-50"})
    assert address(data["twin"]) == ("/index.json", {"search": "SHOP", "after": "shop-00"})
    for query, none, nothing in (("?search=no", False, True), ("?after=zzz", False, True)):
        flags = filled(f"/{query}")[1]["page"]["flags"]
        assert (flags["none"], flags["nothing"], flags["some"]) == (none, nothing, False)
    told = service.ask("GET", "/index.json?search=wide").json()
    assert [each["name"] for each in told["rankers"]] == ["wide"]


def test_the_page_of_a_ranker_knows_its_days_its_twin_and_what_may_be_done(filled):
    template, data, _ = filled("/rankers/animals?since=2020-01-01&until=&other=1")
    assert (template, data["name"], data["here"]) == ("ranker.html", "animals", "overview")
    assert data["days"] == {"since": "2020-01-01", "until": None}
    assert address(data["twin"]) == ("/rankers/animals.json", {"since": "2020-01-01"})
    assert data["acts"] == [("frozen", "Freeze")]
    assert data["mode_says"] == "shows its own lists and learns from their feedback"
    assert "rounds 0 to 29" in data["page"]["texts"]["range_says"]
    _, data, _ = filled("/rankers/wide")
    assert (data["name"], data["page"]["texts"]["range_says"]) == ("wide", "")
    assert data["acts"] == [("online", "Promote"), ("frozen", "Freeze")]
    assert address(data["twin"]) == ("/rankers/wide.json", {})
    assert data["beat"] == 10.0
    _, data, _ = filled("/rankers/animals?until=2020-01-01")
    assert data["page"]["texts"]["range_says"] == "The charts have no rounds on these days."


def test_the_pages_of_the_log_lead_to_each_other(filled, service):
    path = "/rankers/animals/events"
    template, data, _ = filled(f"{path}?since=2020-01-01")
    assert (template, data["here"], data["kind"]) == ("events.html", "events", None)
    seqs = [row["seq"] for row in data["events"]]
    assert seqs == list(range(51, 1, -1))  # of 51: one config, 30 lists, 20 answers
    query = {"since": "2020-01-01"}
    assert address(data["older"]) == (path, {"before": "2", **query})
    assert (data["newest"], address(data["twin"])) == (None, (f"{path}.json", query))
    _, data, _ = filled(f"{path}?before=2&kind=config")
    assert [row["seq"] for row in data["events"]] == [1]
    assert data["older"] is None
    assert address(data["newest"]) == (path, {"kind": "config"})
    assert address(data["twin"]) == (f"{path}.json", {"kind": "config", "before": "2"})
    assert [row["address"] for row in data["events"]] == [None]
    for row in filled(f"{path}?before=9")[1]["events"][:-1]:
        assert row["address"] == f"/rankers/animals/events/{row['key']}"
    for text in ("x", "²", "1" * 19, "-1", ""):
        assert filled(f"{path}?before={text}")[1]["newest"] is None
    assert filled(f"{path}?until=2020-01-01")[1]["events"] == []
    told = service.ask("GET", f"{path}.json?kind=feedback&before=9").json()
    assert (told["kind"], {row["kind"] for row in told["events"]}) == ("feedback", {"feedback"})
    assert max(row["seq"] for row in told["events"]) < 9
    assert service.ask("GET", f"{path}?kind=no").status_code == 404


def test_the_page_of_a_list_is_there_twice(filled, service):
    template, data, _ = filled("/rankers/animals/events/e4")
    assert (template, data["twin"]) == ("event.html", "/rankers/animals/events/e4.json")
    assert (len(data["rows"]), data["left_out"]) == (4, 0)
    told = service.ask("GET", "/rankers/animals/events/e4.json")
    assert told.headers["content-type"] == "application/json"
    assert told.json()["ranking"] == [row["name"] for row in data["rows"]]
    assert service.ask("GET", "/rankers/animals/events/e99.json").status_code == 404


def test_the_page_that_judges_begins_with_the_best_list(filled, service):
    template, data, status = filled("/rankers/animals/evaluate")
    assert (template, data["here"], status, data["result"]) == (
        "evaluate.html",
        "evaluate",
        200,
        None,
    )
    assert (data["fixed"], data["measure"], data["error"]) == (True, "DCG", None)
    assert sorted(data["form"]["order"].split("\n")) == ANIMALS
    assert data["twin"] == "/rankers/animals/evaluate.json"
    told = service.ask("GET", "/rankers/animals/evaluate.json").json()
    assert told == {"ranker": "animals", "form": data["form"], "result": None}


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [("GET", "/login", 200), ("POST", "/login", 401), ("PUT", "/login", 403),
     ("GET", "/logout", 404), ("POST", "/logout", 303), ("DELETE", "/logout", 403)],
)  # fmt: skip
def test_sessions_begin_and_end_by_their_own_methods(service, method, path, status):
    told = service.ask(method, path, data={})
    assert told.status_code == status
    assert ("set-cookie" in told.headers) == (status == 303)


# --------------------------------------------------------------------------- parts of pages


def test_addresses_have_what_is_known_alone():
    assert with_query("/a") == with_query("/a", b=None) == "/a"
    assert with_query("/a", b="c d", e=0, f=None) == "/a?b=c+d&e=0"


FORM = {
    "policy": "order", "order": "b\n\na\n", "baseline": "uniform", "confidence": "0.9",
    "bound": "student-t", "after": "7",
}  # fmt: skip


def test_a_form_is_read_field_by_field():
    blank = blank_form(["x", "y"])
    assert blank == {
        "policy": "best", "order": "x\ny", "baseline": "logged", "confidence": "0.95",
        "bound": "betting", "after": "0",
    }  # fmt: skip
    assert read_form(b"", blank) == blank
    assert read_form(b"after=&policy=uniform&no=1&policy=best", blank) == {
        **blank, "after": "", "policy": "uniform",
    }  # fmt: skip
    asked = request_of(FORM)
    told = (asked.policy, asked.baseline, asked.confidence, asked.bound, asked.after)
    assert told == (["b", "a"], "uniform", 0.9, "student-t", 7)
    assert request_of({**FORM, "policy": "best"}).policy == "best"
    read_form(b"&".join(b"a%d=1" % n for n in range(16)), blank)
    for body in (b"\xff=1", b"&".join(b"a%d=1" % n for n in range(17))):
        with pytest.raises(InvalidInput, match="must be NAME=VALUE pairs"):
            read_form(body, blank)
    with pytest.raises(InvalidInput, match="The field after is invalid"):
        request_of({**FORM, "after": "x"})


@pytest.mark.parametrize(
    ("value", "sure", "approximate"),
    [(0.5, (-0.5, 1.5), (0.25, 1.0)), (-2.0, (-9.0, 9.0), (-3.0, -1.0)),
     (0.0, (None, None), (None, None)), (2.0, (1.0, None), (None, 3.0))],
)  # fmt: skip
def test_a_whisker_fits_the_approximate_interval_and_zero(value, sure, approximate):
    ends = [value, 0.0, *(end for end in approximate if end is not None)]
    low, high = min(ends), max(ends)
    room = (high - low) / 4 if high > low else 1.0

    def at(number):
        share = (number - (low - room)) / (high - low + 2 * room)
        return round(400 * min(max(share, 0), 1), 1)

    found = whisker({"value": value, "interval": sure, "approximate_interval": approximate})
    assert (found["zero"], found["value"]) == (at(0.0), at(value))
    for name, (left, right) in (("sure", sure), ("approximate", approximate)):
        both = (0.0 if left is None else at(left), 400.0 if right is None else at(right))
        assert found[name] == pytest.approx(both)


@pytest.mark.parametrize("needs_key", [True, False])
def test_commands_of_a_page_are_requests(needs_key):
    def requests_of(text):
        parts = shlex.split(text.replace("\\\n", " "))
        starts = [place for place, part in enumerate(parts) if part == "curl"]
        for begin, end in zip(starts, [*starts[1:], len(parts)], strict=True):
            part = parts[begin:end]
            has_key = "authorization: Bearer $KEYHOLE_KEY" in part
            assert has_key == needs_key
            url = next(each for each in part if each.startswith("http"))
            yield part[part.index("-X") + 1], url, json.loads(part[-1])

    base = "http://x/v1/rankers"
    assert list(requests_of(first_commands("http://x", needs_key))) == [
        ("PUT", f"{base}/front-page", {"items": ["news", "sport", "weather", "puzzle"], "k": 1}),
        ("POST", f"{base}/front-page/rank", {"event_id": "first"}),
        ("PUT", f"{base}/front-page/events/first/feedback", {"relevance": [1]}),
    ]
    live = engine_of(k=3).ranker("animals")
    assert list(requests_of(next_commands("http://x", live, needs_key))) == [
        ("POST", f"{base}/animals/rank", {"event_id": "first"}),
        ("PUT", f"{base}/animals/events/first/feedback", {"relevance": [1, 0, 0]}),
    ]
    live = engine_of(n_features=2, max_items=9, k=5).ranker("animals")
    items = [{"id": name} for name in ("first", "second", "third")]
    assert list(requests_of(next_commands("http://x", live, needs_key))) == [
        ("POST", f"{base}/animals/rank",
         {"items": items, "features": [[1, 0], [0, 1], [0, 0]], "event_id": "first"}),
        ("PUT", f"{base}/animals/events/first/feedback", {"relevance": [1, 0, 0]}),
    ]  # fmt: skip


def test_a_session_lasts_its_seconds_and_is_only_its_own(monkeypatch):
    now = [1000.5]
    monkeypatch.setattr(time, "time", lambda: now[0])
    sessions = Sessions(b"secret", 60.0, secure=True)
    header = sessions.cookie("ab12")
    value, *rest = header.split("; ")
    assert rest == ["Path=/", "Max-Age=60", "HttpOnly", "SameSite=Strict", "Secure"]
    fields = {b"cookie": value.encode()}
    assert value.startswith(f"{COOKIE}=ab12.1060.")
    for moment, prefix in ((1000.5, "ab12"), (1059.9, "ab12"), (1060.0, None), (2000.0, None)):
        now[0] = moment
        assert sessions.prefix(fields) == prefix
    now[0] = 1000.5
    for other in (b"", b"keyhole_session=ab12.1060.0", value.replace("ab", "ba").encode()):
        assert sessions.prefix({b"cookie": other}) is None
        assert sessions.token({b"cookie": other}) == ""
    assert Sessions(b"other", 60.0, secure=True).prefix(fields) is None
    assert sessions.csrf(fields) != sessions.csrf({})
    assert sessions.end().startswith(f"{COOKIE}=; Path=/; Max-Age=0; ")
    assert not Sessions(b"secret", 60.0, secure=False).end().endswith("Secure")
