"""Every method of the client as an exchange: each call whole, each pause, each reply."""

import asyncio
import json
import random
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import httpx
import numpy as np
import pytest

from keyhole.base.errors import InvalidInput
from keyhole.client import (
    Conflict,
    NotAllowed,
    NotFound,
    RequestRefused,
    ServiceAway,
    ServiceError,
    clients,
    retries,
)
from keyhole.client.core import Core
from keyhole.client.errors import kind_of
from keyhole.client.replies import Code, FeedbackResult, Page, RankerInfo, Ranking, RankItem, State
from keyhole.client.retries import Answer, Call, NoAnswer, Pause, error_from

pytestmark = pytest.mark.interpreted

INFO = {"name": "a/b", "version": 3, "request": {"k": 2}, "seq": 9}
LIST = {"ranking": ["b", "a"], "event_id": "e", "k": 2}


def told(body, status=200, **headers):
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    return Answer(status, headers, content)


def first(exchange) -> Any:
    """Return the first that an exchange yields."""
    return next(exchange)


def carried(exchange, *answers):
    """Return what an exchange yields and its result, given the answers to its calls in turn."""
    yielded: list[Any] = []
    left, said = list(answers), None
    while True:
        try:
            step = exchange.send(said)
        except StopIteration as done:
            assert not left
            return yielded, done.value
        yielded.append(step)
        said = None if isinstance(step, Pause) else left.pop(0)


def broken_off(exchange, *answers):
    """Return what an exchange yields and the error that it ends with."""
    yielded: list[Any] = []
    left, said = list(answers), None
    try:
        while True:
            yielded.append(exchange.send(said))
            said = None if isinstance(yielded[-1], Pause) else left.pop(0)
    except ServiceError as error:
        assert not left
        return yielded, error


def whole(call):
    """Return a call with its body read."""
    body = call.body
    if body:
        lines = [json.loads(line) for line in body.splitlines()]
        body = lines if body.endswith(b"\n") else lines[0]
    headers = {name: "…" if name == "Idempotency-Key" else value
               for name, value in call.headers.items()}  # fmt: skip
    return (call.method, call.path, body, headers, dict(call.params), call.seconds)


NUMBERS: Any = [1]
SEEN: Any = "seen"
WRONG: Any = 3
HUGE = [[1.0, 2.0], [3.0, 1e39]]
R = "/v1/rankers/a%2Fb"
MATCH = {"If-Match": '"7"'}
FEATURES = {"shape": [2, 1], "dtype": "f4", "b64": "AACAPwAAAEA="}
ASKED: dict[str, Any] = {
    "put_ranker": (
        (("a/b",), {"items": ("x", "y"), "k": 2, "missing": 0.0, "simulation": False,
                    "if_match": 7}),
        ("PUT", R, {"items": ["x", "y"], "k": 2, "missing": 0.0, "simulation": False}, MATCH, {},
         120.0), INFO,
    ),
    "change_ranker": (
        (("a/b",), {"missing": None, "items": ("x",), "if_match": 7}),
        ("PATCH", R, {"missing": None, "items": ["x"]}, MATCH, {}, 120.0), INFO,
    ),
    "set_items": (
        (("a/b", ("x", "y")), {"if_match": 7}),
        ("PUT", f"{R}/items", {"items": ["x", "y"]}, MATCH, {}, 120.0), INFO,
    ),
    "edit_items": (
        (("a/b",), {"add": ("x",), "remove": ("y",), "if_match": 7}),
        ("POST", f"{R}/items", {"add": ["x"], "remove": ["y"]}, MATCH, {}, 120.0), INFO,
    ),
    "reset_ranker": (
        (("a/b",), {"if_match": 7}), ("POST", f"{R}/reset", b"", MATCH, {}, 120.0), INFO,
    ),
    "rename_ranker": (
        (("a/b", "c"), {"if_match": 7}),
        ("POST", f"{R}/rename", {"to": "c"}, MATCH, {}, 120.0), INFO,
    ),
    "delete_ranker": ((("a/b",), {"if_match": 7}), ("DELETE", R, b"", MATCH, {}, 30.0), b""),
    "rank": (
        (("a/b", ("x", "y"), [[1], [2]]), {"exclude": ("y",), "baseline": ("y", "x"),
                                           "deferred": True, "event_id": "e"}),
        ("POST", f"{R}/rank", {"items": [{"id": "x"}, {"id": "y"}], "features": FEATURES,
                               "exclude": ["y"], "baseline": ["y", "x"], "deferred": True,
                               "event_id": "e"}, {"Idempotency-Key": "…"}, {}, 0.0), LIST,
    ),
    "rank_batch": (
        (("a/b", [{}, {"exclude": ["x"], "deferred": False},
                  {"documents": ["x", "y"], "features": [[1], [2]], "deferred": True}]), {}),
        ("POST", f"{R}/rank-batch", {"requests": [{}, {"exclude": ["x"]}, {
            "items": [{"id": "x"}, {"id": "y"}], "features": FEATURES, "deferred": True}]},
         {"Idempotency-Key": "…"}, {}, 30.0),
        {"replies": [{"status": 201, **LIST}, {"status": 422, "detail": "no"}]},
    ),
    "feedback": (
        (("a/b", "e/f", 1), {"truth": {"x": 2}}),
        ("PUT", f"{R}/events/e%2Ff/feedback",
         {"status": "observed", "relevance": [1.0], "truth": {"x": 2.0}}, {}, {}, 30.0),
        {"learned": "learned", "seq": 4},
    ),
    "feedback_batch": (
        (("a/b", [("e", [1, 0]), ("f", "none"), (Ranking(["x"], from_fallback=True), 1.0),
                  (RankItem(201, "g"), "not_shown")]), {}),
        ("POST", f"{R}/feedback-batch",
         [{"event_id": "e", "status": "observed", "relevance": [1.0, 0.0]},
          {"event_id": "f", "status": "none"}, {"event_id": "g", "status": "not_shown"}],
         {"Content-Type": "application/x-ndjson"}, {}, 120.0),
        b'{"line": 1, "status": 201}\n\n{"line": 2, "status": 404, "detail": "no"}\n',
    ),
    "activate": (
        (("a/b", Ranking(["x"], "e")), {}), ("POST", f"{R}/events/e/activate", b"", {}, {}, 30.0),
        b"",
    ),
    "events_page": (
        (("a/b", 5), {}), ("GET", f"{R}/events", b"", {}, {"after": "5", "limit": "1000"}, 30.0),
        {"events": [{"seq": 6}], "next_after": 6},
    ),
    "state": (
        (("a/b",), {}), ("GET", f"{R}/state", b"", {}, {}, 30.0),
        {"seq": 4, "round": 2, "sha256": "0a", "waiting": 1},
    ),
    "ranker": ((("a/b",), {}), ("GET", R, b"", {}, {}, 30.0), INFO),
}  # fmt: skip
REPLIES: dict[str, Any] = {
    "delete_ranker": None,
    "activate": None,
    "rank": Ranking(["b", "a"], "e", 2),
    "rank_batch": [RankItem(201, "e", ["b", "a"], 2), RankItem(422, detail="no")],
    "feedback": FeedbackResult("learned", 4),
    "events_page": Page([{"seq": 6}], 6),
    "state": State(4, 2, "0a", 1),
}


@pytest.mark.parametrize("method", ASKED)
def test_a_method_makes_one_call_and_reads_its_answer(method):
    (args, given), call, answer = ASKED[method]
    (made,), result = carried(getattr(Core(0), method)(*args, **given), told(answer))
    assert whole(made) == call
    if method == "feedback_batch":
        assert [(one.line, one.status, one.detail) for one in result] == [
            (1, 201, None), (2, 404, "no"),
        ]  # fmt: skip
    else:
        assert result == REPLIES.get(method, RankerInfo("a/b", 3, {"k": 2}, seq=9))
    if "if_match" in given:
        del given["if_match"]
        (made,), _ = carried(getattr(Core(0), method)(*args, **given), told(answer))
        assert whole(made) == (*call[:3], {}, *call[4:])


def test_what_is_left_out_is_not_sent():
    for exchange, body in (
        (Core(0).put_ranker("a"), {}),
        (Core(0).edit_items("a"), {"add": [], "remove": []}),
        (Core(0).rank("a"), {}),
        (Core(0).feedback("a", "e", status="none"), {"status": "none"}),
        (Core(0).rank_batch("a", 2), {"requests": [{}, {}]}),
        (Core(0).evaluate("a"), {}),
    ):
        assert json.loads(first(exchange).body) == body
    call = first(Core(0).rank("a", idempotency_key="k"))
    assert call.headers == {"Idempotency-Key": "k"}
    assert first(Core(0).rank_batch("a", 1, idempotency_key="k")).headers == call.headers
    keys = {first(Core(0).rank("a")).headers["Idempotency-Key"] for _ in range(9)}
    assert len(keys) == 9


def test_every_field_of_a_ranker_is_sent_under_its_name():
    fields: dict[str, Any] = {
        "items": ["x"], "n_features": 2, "max_items": 3, "ranker": "rtopk", "settings": {"s": 1},
        "measure": "DCG", "k": 4, "max_grade": 2.0, "mode": "frozen", "wait_seconds": 5.0,
        "missing": 1.0, "apprentice_share": 0.5, "simulation": True, "accept_linear_regret": True,
        "seed": 6,
    }  # fmt: skip
    assert json.loads(first(Core(0).put_ranker("a", **fields)).body) == fields
    fields = {"policy": ["x"], "baseline": ["y"], "confidence": 0.9, "bound": "b", "after": 3}
    assert json.loads(first(Core(0).evaluate("a", **fields)).body) == fields


def info(state, version=3, seconds=0.0):
    return told({**INFO, "version": version, "code": {"state": state, "seconds": seconds}})


def test_a_new_ranker_is_waited_for_until_its_code_is_ready():
    answers = [info("preparing"), info("preparing", 4), info("ready", 5, 1.5)]
    steps, result = carried(Core(0).put_ranker("a/b", ready_within=9.0), *answers)
    assert [type(step) for step in steps] == [Call, Pause, Call, Pause, Call]
    assert [step.seconds for step in steps] == [120.0, 0.2, 30.0, 0.2, 30.0]
    assert {(step.method, step.path) for step in steps[2::2]} == {("GET", R)}
    assert (result.version, result.code) == (3, Code("ready", 1.5))
    steps, result = carried(Core(0).put_ranker("a", ready_within=0.0), info("preparing"))
    assert (len(steps), result.code.state) == (1, "preparing")
    steps, result = carried(Core(0).put_ranker("a", ready_within=0.0), info("failed"))
    assert result.code.state == "failed"
    for last in ("preparing", "failed"):
        answers = [info("preparing")] * 3 + [info(last)]
        steps, error = broken_off(Core(0).put_ranker("a", ready_within=0.5), *answers)
        pauses = [step.seconds for step in steps if isinstance(step, Pause)]
        assert pauses == pytest.approx([0.2, 0.2, 0.1])
        assert isinstance(error, ServiceAway) == (last == "preparing")
        assert error.status == (503 if last == "preparing" else 200)
    for wrong in (-1.0, 86_401.0, float("nan")):
        with pytest.raises(InvalidInput, match="`ready_within`"):
            first(Core(0).put_ranker("a", ready_within=wrong))
    first(Core(0).put_ranker("a", ready_within=86_400.0))


def test_all_rankers_are_read_page_by_page():
    asked: list[Any] = []
    exchange: Any = Core(0).rankers()
    pages = [{"rankers": [INFO], "next_after": "a/b"}, {"rankers": [{**INFO, "name": "c"}]}]
    said: Any = None
    for page in pages:
        call = exchange.send(said)
        asked.append((call.method, call.path, dict(call.params)))
        said = told(page)
    with pytest.raises(StopIteration) as done:
        exchange.send(said)
    assert asked == [
        ("GET", "/v1/rankers", {"limit": "1000"}),
        ("GET", "/v1/rankers", {"limit": "1000", "after": "a/b"}),
    ]
    assert [each.name for each in done.value.value] == ["a/b", "c"]


def test_an_evaluation_is_asked_for_until_it_is_done():
    def at(status, **more):
        return told({"id": "1", "status": status, **more}, location="/v1/there")

    done = at("done", result={"verdict": "keep"})
    steps, result = carried(Core(0).evaluate("a"), at("queued"), at("running"), done)
    calls = [(step.method, step.path) for step in steps if isinstance(step, Call)]
    assert calls == [("POST", "/v1/rankers/a/evaluations"), *[("GET", "/v1/there")] * 2]
    assert [step for step in steps if isinstance(step, Pause)] == [Pause(0.2)] * 2
    assert result.result == {"verdict": "keep"}
    for given, status in (({"status": 422, "detail": "no"}, 422), ({"detail": "no"}, 500)):
        with pytest.raises(ServiceError, match="no") as caught:
            carried(Core(0).evaluate("a"), at("failed", problem=given))
        assert caught.value.status == status


def test_what_cannot_be_a_request_is_refused():
    assert carried(Core(0).rank_batch("a", [])) == ([], [])
    assert carried(Core(0).feedback_batch("a", [])) == ([], [])
    assert carried(Core(0).activate("a", Ranking(["x"]))) == ([], None)
    unsent = FeedbackResult("unused", None, created=False, sent=False)
    assert carried(Core(0).feedback("a", Ranking(["x"]), 1)) == ([], unsent)
    first(Core(0).rank_batch("a", 256))
    first(Core(0).rank_batch("a", [{}] * 256))
    first(Core(0).feedback_batch("a", [("e", "none")] * 1000))
    for asked in (0, 257):
        with pytest.raises(InvalidInput, match="`requests` must be an integer between 1 and"):
            first(Core(0).rank_batch("a", asked))
    for exchange, why in (
        (Core(0).rank_batch("a", [{}] * 257), "at most 256 requests, got 257"),
        (Core(0).rank_batch("a", [{"items": ["x"]}]), "must have documents, .* got 'items'"),
        (Core(0).feedback_batch("a", [("e", "none")] * 1001), "at most 1000 lines, got 1001"),
        (Core(0).rank("a", ["x"]), "come together, got no `features`"),
        (Core(0).rank("a", features=[[1]]), "come together, got no `documents`"),
        (Core(0).rank("a", ["x", "y"], [[1]]), "each of the 2 documents .* got 1 rows and 1 col"),
        (
            Core(0).rank("a", ["x", "y"], [[1.0, 2.0], [3.0, 1e39]]),
            r"got 1e\+39 in row 1, column 1",
        ),
        (Core(0).rank("a", exclude="xy"), "`exclude` must be a list of names"),
        (Core(0).rank("a", baseline=NUMBERS), "`baseline` must be a list of names"),
        (Core(0).feedback("a", "e"), "if and only if the status is observed"),
        (Core(0).feedback("a", "e", 1, status="none"), "if and only if the status is observed"),
        (Core(0).feedback("a", "e", status=SEEN), "`status` must be observed, none or"),
        (Core(0).feedback("a", "e", np.nan), "`relevance` must be finite"),
        (Core(0).state(".."), "A name or an id must be text"),
        (Core(0).state(""), "A name or an id must be text"),
    ):
        with pytest.raises(InvalidInput, match=why):
            first(exchange)
    for count in (-1, 21):
        with pytest.raises(InvalidInput, match="`retries`"):
            Core(count)
    Core(0), Core(20)


# --------------------------------------------------------------------------- who is away


def failed(exchange, *answers):
    return broken_off(exchange, *answers)[1]


def test_the_list_instead_is_the_first_there_is_without_what_is_left_out():
    core, away = Core(3), NoAnswer("gone")
    assert isinstance(failed(core.rank("a"), *[away] * 4), ServiceAway)
    steps, found = carried(core.rank("a", baseline=["x", "y"], exclude=["x"]), away)
    assert (found, len(steps)) == (Ranking(["y"], from_fallback=True), 1)  # known to be away
    _, found = carried(core.rank("a"), told({**LIST, "ranking": ["p", "q"]}))
    assert not found.from_fallback
    carried(core.rank("a", exclude=["p"]), told({**LIST, "ranking": ["q"]}))  # not remembered
    carried(core.rank("b", ["x"], [[1]]), told({**LIST, "ranking": ["x"]}))
    assert isinstance(failed(core.rank("b"), *[away] * 4), ServiceAway)
    for given, wanted in (
        ({}, ["p", "q"]), ({"baseline": ["x"]}, ["p", "q"]), ({"fallback": ["f"]}, ["f"]),
        ({"documents": ["d"], "features": [[1]]}, ["d"]), ({"exclude": ["p"]}, ["q"]),
        ({"documents": ["d", "e"], "features": [[1], [2]], "baseline": ["e", "d"]}, ["e", "d"]),
    ):  # fmt: skip
        _, found = carried(core.rank("a", **given), away)
        assert found == Ranking(wanted, from_fallback=True)
    assert isinstance(failed(core.rank("a", fallback=["f"]), told(b"", 404)), NotFound)
    steps, found = carried(core.rank("a", fallback=["f"]), away, away, away, away)
    calls = [step for step in steps if isinstance(step, Call)]
    assert len(calls) == 4  # it has answered meanwhile, so that it is worth asking again
    assert len({call.headers["Idempotency-Key"] for call in calls}) == 1
    carried(core.state("a"), told({"seq": 1, "round": 0, "sha256": ""}))
    assert len(carried(core.rank("a", fallback=["f"]), *[away] * 4)[0]) == 7


def test_pauses_double_up_to_a_limit_and_are_as_long_as_the_service_says(monkeypatch):
    for share, factor in ((0.5, 0.5), (1.0, 1.0)):
        monkeypatch.setattr(random, "uniform", lambda low, high, s=share: {0.5: low, 1.0: high}[s])
        steps, _ = broken_off(retries.ask(Call("GET", "/"), 11), *[NoAnswer("gone")] * 12)
        pauses = [step.seconds for step in steps if isinstance(step, Pause)]
        assert pauses == pytest.approx([factor * min(30.0, 0.1 * 2**n) for n in range(11)])
    for wait, paused in (("0", 0.1), ("7", 7.0), ("30", 30.0)):
        exchange = retries.ask(Call("GET", "/"), 1)
        first(exchange)
        assert exchange.send(told(b"", 503, **{"retry-after": wait})) == Pause(paused)
    assert failed(
        retries.ask(Call("GET", "/"), 1), told(b"", 503, **{"retry-after": "30.5"})
    ).retry_after == 30.5  # fmt: skip
    for status in (429, 502, 503, 504):
        exchange = retries.ask(Call("GET", "/"), 1)
        first(exchange)
        assert isinstance(exchange.send(told(b"", status)), Pause)
    for status in (300, 400, 404, 409, 422, 500, 501):
        assert failed(retries.ask(Call("GET", "/"), 1), told(b"", status)).status == status
    for status in (200, 201, 204, 299):
        assert carried(retries.ask(Call("GET", "/"), 0), told(b"", status))[1].status == status


def test_a_moment_to_try_again_is_read_as_seconds_from_now():
    soon = datetime.now(UTC) + timedelta(seconds=50)
    for text in (format_datetime(soon, usegmt=True), format_datetime(soon.replace(tzinfo=None))):
        assert retries._seconds_of(text) == pytest.approx(49.5, abs=3.0)
    texts = ("2.5", "12", "1.2.3", "²", "-1", "soon", "Thu, 01 Jan 1970 00:00:00 GMT", None)
    assert [retries._seconds_of(text) for text in texts] == [
        2.5, 12.0, None, None, None, None, 0.0, None,
    ]  # fmt: skip


def test_a_problem_is_told_with_all_its_parts():
    problem = {
        "type": "urn:x", "title": "T", "detail": "D", "status": 9, "instance": "i", "more": 1,
        "errors": [{"pointer": "/a", "message": "m"}, {"message": "m"}, "text"],
    }  # fmt: skip
    error = error_from(problem, 412, 4.0)
    assert type(error) is Conflict
    assert (error.detail, str(error), error.status, error.type) == ("D", "D", 412, "urn:x")
    assert (error.extra, error.retry_after, error.pointers) == ({"more": 1}, 4.0, ["/a"])
    bare = error_from({}, 418)
    assert (bare.detail, bare.type) == ("The service answered with status 418.", "about:blank")
    assert (bare.errors, bare.extra, bare.retry_after) == ([], {}, None)
    assert error_from({"title": "T"}, 418).detail == "T"
    kinds = {
        399: ServiceError, 400: RequestRefused, 401: NotAllowed, 403: NotAllowed, 404: NotFound,
        409: Conflict, 412: Conflict, 422: RequestRefused, 429: ServiceAway, 499: RequestRefused,
        500: ServiceAway, 503: ServiceAway,
    }  # fmt: skip
    assert {status: kind_of(status) for status in kinds} == kinds
    told_so = told(problem, 404, **{"content-type": "application/problem+json; charset=utf-8"})
    assert retries.error_of(told_so).detail == "D"
    assert retries.error_of(told(problem, 404)).detail.endswith("status 404.")
    assert retries.error_of(None).detail == "The service did not answer: it gave no reason."
    with pytest.raises(ServiceError, match="not from a Keyhole service") as caught:
        retries.read(told(b"<html>", 203), State)
    assert caught.value.status == 203


def test_a_request_waits_as_long_as_its_call_and_no_shorter_than_the_client():
    with httpx.Client(timeout=5.0, base_url="http://x") as http:
        for seconds, wanted in ((0.0, 5.0), (5.0, 5.0), (30.0, 30.0)):
            call = Call("POST", "/p", b"{}", {"A": "b"}, {"q": "1"}, seconds)
            made = clients._request(http, call)
            assert made.extensions["timeout"] == {
                "connect": 5.0, "read": wanted, "write": 5.0, "pool": 5.0,
            }  # fmt: skip
            assert (made.method, str(made.url), made.content) == ("POST", "http://x/p?q=1", b"{}")
            assert (made.headers["content-type"], made.headers["a"]) == ("application/json", "b")
        made = clients._request(http, Call("GET", "/p"))
        assert "content-type" not in made.headers
        assert (str(made.url), made.content) == ("http://x/p", b"")
    for url in ("localhost:8360", "ftp://x", "http://", WRONG):
        with pytest.raises(InvalidInput, match="`url` must look like"):
            clients._settings(url, None, 1.0)
    for key in ("", "ä", "a\n", WRONG):
        with pytest.raises(InvalidInput, match="`key` must be a key"):
            clients._settings("http://x", key, 1.0)
    for timeout in (0.0, 3601.0):
        with pytest.raises(InvalidInput, match="`timeout`"):
            clients._settings("http://x", None, timeout)
    told_all = clients._settings("https://x", "k", 3600.0)
    assert (told_all["headers"]["Authorization"], told_all["timeout"]) == ("Bearer k", 3600.0)
    assert "Authorization" not in clients._settings("https://x", None, 1.0)["headers"]


@pytest.mark.parametrize("kind", [clients.Client, clients.AsyncClient])
def test_a_client_waits_five_seconds_and_tries_five_times(kind):
    for given, timeout, tries in (
        ({}, 5.0, 4),
        ({"timeout": 9.0, "retries": 1, "key": "k"}, 9.0, 1),
    ):
        made = kind("http://x", **given)
        assert (made._http.timeout.read, made._core._retries) == (timeout, tries)
        assert made._http.headers.get("authorization") == ("Bearer k" if given else None)


@pytest.mark.parametrize("given", [{}, {"after": 6}])
def test_the_log_is_read_from_its_beginning_unless_told_otherwise(given):
    asked, pages = [], [{"events": [{"seq": 8}], "next_after": 8}, {"events": [{"seq": 9}]}]

    def answer(request):
        asked.append(request.url.params["after"])
        return httpx.Response(200, json=pages[len(asked) - 1])

    async def all_of(client):
        return [event async for event in client.events("a", **given)]

    first_after = str(given.get("after", 0))
    with clients.Client("http://x", transport=httpx.MockTransport(answer)) as client:
        assert list(client.events("a", **given)) == [{"seq": 8}, {"seq": 9}]
    assert asked == [first_after, "8"]
    asked.clear()
    made = clients.AsyncClient("http://x", transport=httpx.MockTransport(answer))
    assert asyncio.run(all_of(made)) == [{"seq": 8}, {"seq": 9}]
    assert asked == [first_after, "8"]
