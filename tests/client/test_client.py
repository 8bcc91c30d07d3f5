"""Both clients: what they send, when they try again, and what they do when nobody answers."""

import asyncio
import base64
import inspect
import json
import subprocess
import sys
from types import SimpleNamespace

import httpx
import numpy as np
import pytest

from keyhole.base.errors import InvalidInput, KeyholeError
from keyhole.client import (
    AsyncClient,
    Client,
    Conflict,
    NotAllowed,
    NotFound,
    RequestRefused,
    ServiceAway,
    ServiceError,
    clients,
)
from keyhole.client.core import Core

RANKED = {
    "event_id": "e1", "ranking": ["b", "a"], "k": 1, "model_seq": 3, "feedback_by": None,
    "policy": {"mode": "online", "explored": True, "p_marginal": 0.5, "p_conditional": 0.5},
}  # fmt: skip
PROBLEM = {"content-type": "application/problem+json"}
REFUSED = httpx.ConnectError("refused")


class Service:
    """Answers with what it is given, in turn, and remembers what it was asked."""

    def __init__(self, *answers):
        self.answers, self.requests = list(answers), []

    def __call__(self, request):
        self.requests.append(request)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        status, body, *headers = answer if isinstance(answer, tuple) else (200, answer)
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        return httpx.Response(status, content=content, headers=headers[0] if headers else {})

    @property
    def bodies(self):
        return [json.loads(request.content) for request in self.requests]


class Awaited:
    """An asynchronous client whose methods are waited for, so that both take the same tests."""

    def __init__(self, *args, **kwargs):
        self._runner = asyncio.Runner()
        self._client = AsyncClient(*args, **kwargs)

    def __getattr__(self, name):
        method = getattr(self._client, name)

        def waited_for(*args, **kwargs):
            asked = method(*args, **kwargs)
            if inspect.isasyncgen(asked):
                return self._runner.run(_all_of(asked))
            return self._runner.run(asked)

        return waited_for

    def close(self):
        self._runner.run(self._client.close())
        self._runner.close()


async def _all_of(generator):
    return [each async for each in generator]


@pytest.fixture(params=[Client, Awaited], ids=["waiting", "awaiting"])
def connect(request):
    made = []

    def make(*answers, **options):
        service = Service(*answers)
        transport = httpx.MockTransport(service)
        made.append(request.param("http://service.test/", transport=transport, **options))
        return made[-1], service

    yield make
    for client in made:
        client.close()


@pytest.fixture
def pauses(monkeypatch):
    made = []

    async def sleep(seconds):
        made.append(seconds)

    # The modules themselves stay as they are: threads of other tests sleep, too.
    monkeypatch.setattr(clients, "time", SimpleNamespace(sleep=made.append))
    monkeypatch.setattr(clients, "asyncio", SimpleNamespace(sleep=sleep))
    return made


def problem(status, detail="No.", **extra):
    return status, {"type": "urn:keyhole:x", "title": "T", "detail": detail, **extra}, PROBLEM


# ------------------------------------------------------------------------- what is sent


def test_a_fixed_list_is_asked_for_with_nothing(connect):
    client, service = connect((201, RANKED))
    ranking = client.rank("shop")
    assert (ranking.event_id, ranking.ranking, ranking.k) == ("e1", ["b", "a"], 1)
    assert ranking.policy.explored
    assert ranking.policy.p_marginal == 0.5
    assert not ranking.from_fallback
    (request,) = service.requests
    assert (request.method, request.url.path) == ("POST", "/v1/rankers/shop/rank")
    assert json.loads(request.content) == {}
    assert "authorization" not in request.headers


def test_documents_come_with_packed_features(connect):
    client, service = connect((201, RANKED))
    features = np.array([[1.0, 2.5, -3.0], [0.0, 1e-3, 7.0]])
    client.rank(
        "web", ["a", "b"], features, exclude=["c"], baseline=["b", "a"], deferred=True, event_id="m"
    )
    body = service.bodies[0]
    sent = body.pop("features")
    assert body == {
        "items": [{"id": "a"}, {"id": "b"}], "exclude": ["c"], "baseline": ["b", "a"],
        "deferred": True, "event_id": "m",
    }  # fmt: skip
    assert (sent["shape"], sent["dtype"]) == ([2, 3], "f4")
    read = np.frombuffer(base64.b64decode(sent["b64"]), "<f4").reshape(sent["shape"])
    np.testing.assert_array_equal(read, features.astype(np.float32))


def test_a_key_and_names_of_any_characters(connect):
    client, service = connect((201, RANKED), key="secret")
    client.rank("a/b é")
    assert service.requests[0].headers["authorization"] == "Bearer secret"
    assert service.requests[0].url.raw_path == b"/v1/rankers/a%2Fb%20%C3%A9/rank"


@pytest.mark.parametrize(
    ("given", "sent"),
    [
        ({"relevance": 1}, {"status": "observed", "relevance": [1.0]}),
        ({"relevance": np.array([0.0, 2.0])}, {"status": "observed", "relevance": [0.0, 2.0]}),
        ({"relevance": np.float64(0.5)}, {"status": "observed", "relevance": [0.5]}),
        ({"status": "none"}, {"status": "none"}),
        ({"status": "not_shown"}, {"status": "not_shown"}),
        (
            {"relevance": [1], "truth": {"a": np.float64(1.0), "b": 0}},
            {"status": "observed", "relevance": [1.0], "truth": {"a": 1.0, "b": 0.0}},
        ),
    ],
)
def test_feedback(connect, given, sent):
    client, service = connect((201, {"learned": "learned", "seq": 7}))
    result = client.feedback("shop", "e/1", **given)
    assert (result.learned, result.seq, result.created, result.sent) == ("learned", 7, True, True)
    assert service.requests[0].method == "PUT"
    assert service.requests[0].url.raw_path == b"/v1/rankers/shop/events/e%2F1/feedback"
    assert service.bodies == [sent]


def test_a_ranker_is_put_with_what_was_given_alone(connect):
    told = {"name": "shop", "version": 4, "request": {"items": ["a"]}, "new_field": 1}
    client, service = connect((201, told))
    info = client.put_ranker("shop", items=("a", "b"), k=1, simulation=True, if_match=3)
    assert (info.name, info.version, info.request) == ("shop", 4, {"items": ["a"]})
    assert service.bodies == [{"items": ["a", "b"], "k": 1, "simulation": True}]
    assert service.requests[0].headers["if-match"] == '"3"'
    assert service.requests[0].extensions["timeout"]["connect"] == 5.0
    assert service.requests[0].extensions["timeout"]["read"] == 120.0  # kernels are compiled


def test_other_requests_are_given_up_sooner(connect):
    client, service = connect((201, RANKED), timeout=0.5)
    client.rank("shop")
    assert set(service.requests[0].extensions["timeout"].values()) == {0.5}


@pytest.mark.parametrize(
    ("call", "seconds"),
    [
        (lambda c: c.rank("shop"), 5.0),
        (lambda c: c.rank_batch("shop", 1), 30.0),
        (lambda c: c.feedback("shop", "e", 1), 30.0),
        (lambda c: c.feedback_batch("shop", [("e", 1)]), 120.0),
        (lambda c: c.activate("shop", "e"), 30.0),
        (lambda c: c.put_ranker("shop", items=["a"]), 120.0),
        (lambda c: c.change_ranker("shop", missing=0.0), 120.0),
        (lambda c: c.set_items("shop", ["a"]), 120.0),
        (lambda c: c.edit_items("shop", add=["a"]), 120.0),
        (lambda c: c.reset_ranker("shop"), 120.0),
        (lambda c: c.rename_ranker("shop", "other"), 120.0),
        (lambda c: c.delete_ranker("shop"), 30.0),
        (lambda c: c.ranker("shop"), 30.0),
        (lambda c: c.rankers(), 30.0),
        (lambda c: c.state("shop"), 30.0),
        (lambda c: c.evaluate("shop", "best"), 30.0),
        (lambda c: list(c.events("shop")), 30.0),
    ],
)
def test_how_long_an_answer_may_take(connect, call, seconds):
    for timeout in (5.0, 200.0):
        client, service = connect((404, b""), timeout=timeout, retries=0)
        with pytest.raises(NotFound):
            call(client)
        allowed = service.requests[0].extensions["timeout"]
        assert allowed["read"] == (timeout if seconds == 5.0 else max(seconds, timeout))
        assert allowed["connect"] == timeout


def test_what_an_older_service_does_not_tell_is_as_it_was_then(connect):
    client, service = connect(
        {"name": "shop", "version": 3, "request": {}},
        {"seq": 4, "round": 2, "sha256": "0" * 64},
        {"ranking": ["a"]},
        {"learned": "late"},
        {"replies": [{"status": 404}]},
        b'{"line": 1, "status": 201}\n',
        {"id": "v", "status": "done"},
    )
    info = client.ranker("shop")
    assert (info.spec, info.seq, info.round, info.waiting) == ({}, 0, 0, 0)
    assert (info.verdict, info.created, info.code.state, info.code.seconds) == (
        None, False, "ready", 0.0,
    )  # fmt: skip
    assert client.state("shop").waiting == 0
    shown = client.rank("shop")
    assert (shown.event_id, shown.k, shown.policy, shown.model_seq) == (None, 1, None, None)
    assert (shown.feedback_by, shown.from_fallback) == (None, False)
    said = client.feedback("shop", "e", 1)
    assert (said.seq, said.created, said.sent) == (None, True, True)
    (item,) = client.rank_batch("shop", 1)
    assert (item.event_id, item.ranking, item.k, item.policy) == (None, [], 1, None)
    (line,) = client.feedback_batch("shop", [("e", 1)])
    assert (line.event_id, line.learned, line.seq, line.detail) == (None, None, None, None)
    judged = client.evaluate("shop", "best")
    assert (judged.result, judged.problem) == (None, None)
    assert len(service.requests) == 7


def test_pages_are_as_long_as_the_service_lets_them_be(connect):
    client, service = connect({"rankers": []}, {"events": []})
    assert (client.rankers(), list(client.events("shop"))) == ([], [])
    assert [request.url.params["limit"] for request in service.requests] == ["1000", "1000"]


def test_what_can_be_read(connect):
    info = {"name": "shop", "version": 1, "request": {}}
    client, service = connect(
        info,
        {"rankers": [info], "next_after": "shop"},
        {"rankers": [{**info, "name": "shoes"}], "next_after": None},
        {"seq": 1, "round": 2, "sha256": "f" * 64, "waiting": 3},
        (204, b""),
    )
    assert client.ranker("shop").name == "shop"
    assert [each.name for each in client.rankers()] == ["shop", "shoes"]
    assert service.requests[-1].url.params["after"] == "shop"
    assert client.state("shop").waiting == 3
    assert client.activate("shop", "e1") is None
    assert [f"{r.method} {r.url.path}" for r in service.requests] == [
        "GET /v1/rankers/shop", "GET /v1/rankers", "GET /v1/rankers", "GET /v1/rankers/shop/state",
        "POST /v1/rankers/shop/events/e1/activate",
    ]  # fmt: skip


def test_many_lists_are_asked_for_under_one_key(connect):
    refused = {"status": 422, "type": "urn:x", "detail": "No."}
    client, service = connect((200, {"replies": [{"status": 201, **RANKED}, refused]}))
    asked = [{"event_id": "e1"}, {"documents": ["a"], "features": [[1.0]], "deferred": False}]
    first, second = client.rank_batch("shop", asked)
    assert (first.status, first.ranking, first.event_id) == (201, ["b", "a"], "e1")
    assert first.policy.p_marginal == 0.5
    assert (second.status, second.detail, second.event_id) == (422, "No.", None)
    client.rank_batch("shop", 3, idempotency_key="mine")
    assert client.rank_batch("shop", []) == []
    listed, counted = service.requests
    assert listed.url.path == "/v1/rankers/shop/rank-batch"
    assert len(listed.headers["idempotency-key"]) == 36
    assert counted.headers["idempotency-key"] == "mine"
    packed = {"shape": [1, 1], "dtype": "f4", "b64": "AACAPw=="}
    assert service.bodies == [
        {"requests": [{"event_id": "e1"}, {"items": [{"id": "a"}], "features": packed}]},
        {"requests": [{}, {}, {}]},
    ]
    assert not client.feedback("shop", second, 1).sent
    with pytest.raises(ServiceError):  # which answers as it did before
        client.feedback("shop", first, 1)
    assert service.requests[-1].url.path == "/v1/rankers/shop/events/e1/feedback"


def test_a_batch_has_a_result_for_every_line(connect):
    lines = [
        {"line": 1, "status": 201, "event_id": "e1", "learned": "learned", "seq": 9},
        {"line": 2, "status": 404, "event_id": "e2", "type": "urn:x", "detail": "No."},
        {"line": 3, "status": 200, "event_id": "e3", "learned": "late", "seq": 3},
    ]
    body = b"".join(json.dumps(line).encode() + b"\n" for line in lines)
    client, service = connect((200, body))
    results = client.feedback_batch("shop", [("e1", 1), ("e2", [0, 1]), ("e3", "none")])
    assert [(each.status, each.learned) for each in results] == [
        (201, "learned"), (404, None), (200, "late"),
    ]  # fmt: skip
    assert results[1].detail == "No."
    (request,) = service.requests
    assert request.url.path == "/v1/rankers/shop/feedback-batch"
    assert request.headers["content-type"] == "application/x-ndjson"
    assert [json.loads(line) for line in request.content.splitlines()] == [
        {"event_id": "e1", "status": "observed", "relevance": [1.0]},
        {"event_id": "e2", "status": "observed", "relevance": [0.0, 1.0]},
        {"event_id": "e3", "status": "none"},
    ]


def test_events_come_page_by_page(connect):
    client, service = connect(
        {"events": [{"seq": 6}, {"seq": 7}], "next_after": 7},
        {"events": [{"seq": 8}], "next_after": None},
    )
    assert [event["seq"] for event in client.events("shop", after=5)] == [6, 7, 8]
    assert [request.url.params["after"] for request in service.requests] == ["5", "7"]


def test_an_evaluation_is_waited_for(connect, pauses):
    told = {"id": "v", "ranker": "shop", "request": {}}
    client, service = connect(
        (202, {**told, "status": "queued"}, {"location": "/v1/rankers/shop/evaluations/v"}),
        {**told, "status": "running"},
        {**told, "status": "done", "result": {"value": 1}},
        (202, {**told, "status": "failed", "problem": {"status": 422, "detail": "Too few."}}),
    )
    assert client.evaluate("shop", ["b", "a"], after=7).result == {"value": 1}
    assert [request.url.path[-14:] for request in service.requests] == [
        "op/evaluations", "/evaluations/v", "/evaluations/v",
    ]  # fmt: skip
    assert json.loads(service.requests[0].content) == {"policy": ["b", "a"], "after": 7}
    assert len(pauses) == 2
    with pytest.raises(RequestRefused, match="Too few"):
        client.evaluate("shop", ["b", "a"], after=7)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda c: c.rank("shop", ["a"]), "got no `features`"),
        (lambda c: c.rank("shop", None, [[1.0]]), "got no `documents`"),
        (lambda c: c.rank("shop", ["a"], [[1.0], [2.0]]), "each of the 1 documents"),
        (lambda c: c.rank("shop", ["a"], [[1e300]]), "finite numbers of 32 bits, got 1e[+]300"),
        (lambda c: c.rank("shop", ["a"], [[np.nan]]), "got nan in row 0, column 0"),
        (lambda c: c.rank("shop", fallback="ab"), "list of names, got 'ab'"),
        (lambda c: c.rank(""), "must be text, got ''"),
        (lambda c: c.rank(".."), "must be text, got '..'"),
        (lambda c: c.feedback("shop", "e"), "`relevance` must be given"),
        (
            lambda c: c.feedback("shop", "e", 1, status="none"),
            "if and only if the status is observed",
        ),
        (lambda c: c.feedback("shop", "e", [float("nan")]), "finite"),
        (lambda c: c.feedback("shop", "e", ["x"]), "`relevance` must be a list of numbers"),
        (lambda c: c.feedback("shop", "e", status="seen"), "observed, none or not_shown"),
        (lambda c: c.put_ranker("shop", settings={"a": object()}), "must be JSON data"),
        (lambda c: c.feedback_batch("shop", [("e", 1)] * 1001), "at most 1000 lines, got 1001"),
        (lambda c: c.rank_batch("shop", 257), "`requests` must be an integer between 1 and 256"),
        (lambda c: c.rank_batch("shop", [{}] * 257), "at most 256 requests, got 257"),
        (lambda c: c.rank_batch("shop", [{"k": 1}]), "must have documents, .*, got 'k'"),
    ],
)
def test_what_cannot_be_sent_is_refused_here(connect, call, sentence):
    client, service = connect((201, RANKED))
    with pytest.raises(InvalidInput, match=sentence):
        call(client)
    assert service.requests == []


@pytest.mark.parametrize("url", ["localhost:8360", "ftp://x", "http://", "", None, "http://[::1"])
def test_an_address_that_is_none(url):
    with pytest.raises(InvalidInput, match="`url` must look like"):
        Client(url)


def test_a_wrong_key_is_not_shown():
    with pytest.raises(InvalidInput) as refused:
        Client("http://a", key="sécret")
    assert "cret" not in str(refused.value)


# ------------------------------------------------------------------- trying again


@pytest.mark.parametrize(
    "failure",
    [REFUSED, httpx.ReadTimeout("late"), problem(503), problem(429), (502, b"<html>"), (504, b"")],
    ids=["refused", "timeout", "503", "429", "502", "504"],
)
def test_a_call_is_made_again_under_the_same_key(connect, pauses, failure):
    client, service = connect(failure, failure, (201, RANKED))
    assert client.rank("shop").event_id == "e1"
    keys = {request.headers["idempotency-key"] for request in service.requests}
    assert (len(service.requests), len(keys)) == (3, 1)
    client.rank("shop")
    assert service.requests[-1].headers["idempotency-key"] not in keys
    assert 0.05 <= pauses[0] <= 0.1 <= pauses[1] <= 0.2


def test_a_key_of_the_callers_own(connect):
    client, service = connect((201, RANKED))
    client.rank("shop", idempotency_key="mine")
    assert service.requests[0].headers["idempotency-key"] == "mine"


def test_pauses_double_and_are_not_all_the_same(connect, pauses):
    client, service = connect(REFUSED, retries=20)
    with pytest.raises(ServiceAway, match="did not answer: ConnectError: refused"):
        client.state("shop")
    assert len(service.requests) == 21
    ratios = [pause / min(0.1 * 2**i, 30.0) for i, pause in enumerate(pauses)]
    assert all(0.5 <= ratio <= 1.0 for ratio in ratios)
    assert max(ratios) > 0.75 > min(ratios)  # of a million such, one has them all on one side
    assert len(set(ratios)) == 20


def test_no_earlier_than_the_service_asks_for(connect, pauses):
    busy = (429, b"", {"retry-after": "3"})
    dated = (503, b"", {"retry-after": "Fri, 31 Dec 1999 23:59:59 GMT"})
    client, _ = connect(busy, dated, (201, RANKED))
    client.rank("shop")
    assert pauses[0] == 3.0
    assert pauses[1] <= 0.2


def test_who_asks_for_more_than_we_wait_is_away(connect, pauses):
    client, service = connect((503, b"", {"retry-after": "31"}))
    with pytest.raises(ServiceAway) as away:
        client.state("shop")
    assert (away.value.retry_after, len(service.requests), pauses) == (31.0, 1, [])
    client, service = connect((503, b"", {"retry-after": "30"}), (201, RANKED))
    assert client.rank("shop").event_id == "e1"
    assert (len(service.requests), pauses) == (2, [30.0])


@pytest.mark.parametrize("status", [400, 401, 404, 409, 412, 413, 422, 500, 507])
def test_what_will_not_pass_is_not_tried_again(connect, pauses, status):
    client, service = connect(problem(status))
    with pytest.raises(ServiceError):
        client.feedback("shop", "e", 1)
    assert (len(service.requests), pauses) == (1, [])


# -------------------------------------------------------------- when nobody answers


def test_the_fallback_that_was_given(connect, pauses):
    client, service = connect(REFUSED)
    ranking = client.rank("shop", fallback=["c", "d", "e"], exclude=["d"])
    assert (ranking.ranking, ranking.from_fallback, ranking.event_id) == (["c", "e"], True, None)
    n_asked = len(service.requests)
    result = client.feedback("shop", ranking, 1)
    assert (result.sent, result.learned, result.seq) == (False, "unused", None)
    assert client.feedback_batch("shop", [(ranking, 1)]) == []
    assert client.activate("shop", ranking) is None
    assert len(service.requests) == n_asked == 5


def test_the_list_seen_last_then_the_order_given(connect, pauses):
    client, _ = connect((201, RANKED), REFUSED)
    client.rank("shop")
    assert client.rank("shop").ranking == ["b", "a"]
    assert client.rank("shop", fallback=["z"]).ranking == ["z"]
    assert client.rank("shop", ["x", "y"], [[1.0], [2.0]]).ranking == ["x", "y"]
    assert client.rank("web", ["x", "y"], [[1.0], [2.0]], baseline=["y", "x"]).ranking == ["y", "x"]
    with pytest.raises(ServiceAway):
        client.rank("other")


def test_a_list_with_items_left_out_is_not_the_last_one(connect, pauses):
    client, _ = connect((201, RANKED), (201, {**RANKED, "ranking": ["b"]}), REFUSED)
    client.rank("shop")
    client.rank("shop", exclude=["a"])
    assert client.rank("shop").ranking == ["b", "a"]


@pytest.mark.parametrize("failure", [problem(500), problem(507), problem(503)])
def test_a_service_that_cannot_is_away(connect, pauses, failure):
    client, _ = connect(failure)
    assert client.rank("shop", fallback=["a"]).from_fallback


def test_what_was_asked_wrongly_has_no_fallback(connect):
    client, _ = connect(problem(404))
    with pytest.raises(NotFound):
        client.rank("shop", fallback=["a"])


def test_nobody_waits_for_retries_of_a_service_known_to_be_away(connect, pauses):
    client, service = connect(*[REFUSED] * 6, (201, RANKED), REFUSED)
    client.rank("shop", fallback=["a"])
    assert (len(service.requests), len(pauses)) == (5, 4)
    client.rank("shop", fallback=["a"])
    assert (len(service.requests), len(pauses)) == (6, 4)
    assert client.rank("shop", fallback=["a"]).event_id == "e1"
    client.rank("shop", fallback=["a"])
    assert len(service.requests) == 12


# ------------------------------------------------------------------------ errors


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, RequestRefused), (401, NotAllowed), (403, NotAllowed), (404, NotFound),
        (409, Conflict), (412, Conflict), (413, RequestRefused), (422, RequestRefused),
        (429, ServiceAway), (500, ServiceAway), (507, ServiceAway), (302, ServiceError),
        (300, ServiceError),
    ],
)  # fmt: skip
def test_errors_tell_what_the_problem_tells(connect, status, kind):
    errors = [{"pointer": "/relevance/0", "message": "must be finite"}]
    answer = problem(status, "Wrong.", errors=errors, verdict={"class": "hopeless"})
    client, _ = connect(answer, retries=0)
    with pytest.raises(ServiceError) as raised:
        client.feedback("shop", "e", 1)
    error = raised.value
    assert type(error) is kind
    assert isinstance(error, KeyholeError)
    assert (error.status, error.type, error.detail) == (status, "urn:keyhole:x", "Wrong.")
    assert (error.pointers, error.errors) == (["/relevance/0"], errors)
    assert error.extra == {"verdict": {"class": "hopeless"}}
    assert str(error) == "Wrong."
    assert isinstance(error, ValueError) == (kind is RequestRefused)


@pytest.mark.parametrize(
    "answer", [(404, b"<html>"), (404, b"{", PROBLEM), (404, b"\xff\xfe", PROBLEM), (404, b"[]")]
)
def test_answers_that_are_no_problems(connect, answer):
    client, _ = connect(answer)
    with pytest.raises(NotFound, match=r"^The service answered with status 404\.$"):
        client.state("shop")


@pytest.mark.parametrize("body", [b"<html>", b"{}", b'{"ranking": 3}', b"\xff"])
def test_answers_of_somebody_else(connect, body):
    client, _ = connect((200, body))
    with pytest.raises(ServiceError, match="is not from a Keyhole service"):
        client.rank("shop")


# ------------------------------------------------------------------- both are one


def test_both_clients_have_every_talk():
    talks = {name for name in vars(Core) if not name.startswith("_")} - {"events_page"}
    for kind in (Client, AsyncClient):
        assert talks | {"events", "close"} == {n for n in vars(kind) if not n.startswith("_")}
        for name in talks:
            method, talk = getattr(kind, name), getattr(Core, name)
            assert list(inspect.signature(method).parameters) == list(
                inspect.signature(talk).parameters
            )
            assert method.__doc__ == talk.__doc__


def test_the_client_imports_no_compiler_and_no_server():
    script = (
        "import sys, time; began = time.perf_counter(); import keyhole.client;"
        "print(time.perf_counter() - began, *sys.modules)"
    )
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    seconds, *modules = ran.stdout.split()
    heavy = {"numba", "scipy", "polars", "starlette", "uvicorn", "apsw", "typer", "keyhole.rankers"}
    assert heavy.isdisjoint(modules)
    assert float(seconds) < 3.0  # 0.2 on a quiet machine


def test_without_its_library_it_says_so():
    script = "import sys; sys.modules['httpx'] = None\nimport keyhole.client"
    ran = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert "LibraryMissing: The client needs httpx: pip install -e '.[client]'" in ran.stderr
