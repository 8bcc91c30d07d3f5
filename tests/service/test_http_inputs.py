"""What is sent to break the service: refused in words, never a fault, never more than the limit."""

import asyncio
import base64
import gzip
import json
from random import Random
from typing import Any

import pytest

from keyhole.service.api.impressions import _at_once, _line_by_line
from keyhole.service.configuration import check_settings
from tests.service.asking import JSON, Asked, problem

pytestmark = pytest.mark.interpreted

RANK = "/v1/rankers/animals/rank"
FEEDBACK = "/v1/rankers/animals/events/e/feedback"
RANKER = "/v1/rankers/other"
DEEP = 200_000
WHOLE = b'{"a":' + b"[" * 900 + b"]" * 900 + b"}"
THREE = b'{"features":{"shape":[1,1,1],"b64":""}}'

CORPUS = [
    # what it is, method, path, body, status, where
    ("nothing at all", "PUT", FEEDBACK, b"", 400, None),
    ("no JSON", "POST", RANK, b"rank please", 400, None),
    ("half of it", "POST", RANK, b'{"items":', 400, None),
    ("more after it", "POST", RANK, b"{} {}", 400, None),
    ("not a number", "PUT", FEEDBACK, b'{"relevance":[NaN]}', 400, None),
    ("infinity", "PUT", FEEDBACK, b'{"relevance":[Infinity]}', 400, None),
    ("1e400", "PUT", FEEDBACK, b'{"relevance":[1e400]}', 422, "/relevance/0"),
    ("-1e400", "PUT", FEEDBACK, b'{"relevance":[0,-1e400]}', 422, "/relevance/1"),
    ("1e400 in settings", "PUT", RANKER, b'{"settings":{"x":1e400}}', 422, "/settings"),
    ("thousands of digits", "PUT", RANKER, b'{"seed":' + b"9" * 5_000 + b"}", 422, "/seed"),
    ("a fraction for a seed", "PUT", RANKER, b'{"seed":1.5}', 422, "/seed"),
    ("true for a number", "PUT", RANKER, b'{"k":true}', 422, "/k"),
    ("a lone surrogate", "POST", RANK, b'{"exclude":["\\ud800"]}', 400, None),
    ("a lone surrogate, more behind", "POST", RANK, b'{"exclude":["\\ud800abcdefgh"]}', 400, None),
    ("a low surrogate", "POST", RANK, b'{"exclude":["\\udc00abcdefgh"]}', 400, None),
    ("two high surrogates", "POST", RANK, b'{"exclude":["\\ud800\\ud800"]}', 400, None),
    ("NUL in a name", "PUT", RANKER, b'{"items":["a\\u0000"]}', 422, None),
    ("NUL after backslashes", "PUT", RANKER, b'{"items":["\\\\\\\\\\u0000"]}', 422, None),
    ("a raw NUL", "PUT", RANKER, b'{"items":["a\x00"]}', 400, None),
    ("bad UTF-8", "PUT", RANKER, b'{"items":["a\xff"]}', 400, None),
    ("an overlong slash", "PUT", RANKER, b'{"items":["\xc0\xaf"]}', 400, None),
    ("a surrogate in UTF-8", "PUT", RANKER, b'{"items":["\xed\xa0\x80"]}', 400, None),
    ("UTF-16", "POST", RANK, "{}".encode("utf-16"), 400, None),
    ("a byte order mark", "POST", RANK, b"\xef\xbb\xbf{}", 400, None),
    ("deep arrays", "PUT", RANKER, b'{"settings":{"a":' + b"[" * DEEP, 400, None),
    ("deep objects", "PUT", RANKER, b'{"settings":' + b'{"a":' * DEEP, 400, None),
    ("deep and whole", "PUT", RANKER, b'{"settings":' + WHOLE + b"}", 422, None),
    ("deep where numbers go", "POST", RANK, b'{"features":' + b"[" * DEEP, 422, "/features/0/0"),
    ("deep in a feedback", "PUT", FEEDBACK, b'{"truth":' + b'{"a":' * DEEP, 422, "/truth"),
    ("another type", "POST", RANK, b"[]", 422, ""),
    ("null", "POST", RANK, b"null", 422, ""),
    ("an unknown field", "POST", RANK, b'{"itmes":[]}', 422, ""),
    ("an item without an id", "POST", RANK, b'{"items":[{"id":"a"},{}]}', 422, "/items/1"),
    ("an empty name", "PUT", RANKER, b'{"items":["a",""]}', 422, "/items/1"),
    ("a long name", "PUT", RANKER, json.dumps({"items": ["x" * 257]}).encode(), 422, "/items/0"),
    ("many items", "PUT", RANKER, json.dumps({"items": ["x"] * 1_001}).encode(), 422, "/items"),
    ("a shape of three", "POST", RANK, THREE, 422, "/features/shape"),
    ("an id with spaces", "POST", RANK, b'{"event_id":"a b"}', 422, "/event_id"),
    ("an id with a newline at its end", "POST", RANK, b'{"event_id":"a\\n"}', 422, "/event_id"),
    ("a negative relevance", "PUT", FEEDBACK, b'{"relevance":[-1]}', 422, "/relevance/0"),
    ("an unknown status", "PUT", FEEDBACK, b'{"status":"maybe"}', 422, "/status"),
]  # fmt: skip


@pytest.fixture(scope="module")
def service():
    with Asked() as asked:
        asked.put()
        asked.ask("PUT", "/v1/rankers/queries", json={"n_features": 2, "max_items": 3, "seed": 1})
        yield asked


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "where"),
    [row[1:] for row in CORPUS],
    ids=[row[0] for row in CORPUS],
)
def test_the_corpus_is_refused(service, method, path, body, status, where):
    answer = service.ask(method, path, content=body, headers=JSON)
    told = problem(answer, status, "malformed" if status == 400 else "invalid")
    assert told["detail"].endswith(".")
    assert [error["pointer"] for error in told.get("errors", [])] == (
        [] if where is None else [where]
    )


def test_of_a_field_given_twice_the_last_one_counts(service):
    event_id = service.rank().json()["event_id"]
    path = f"/v1/rankers/animals/events/{event_id}/feedback"
    twice = b'{"relevance":[0],"relevance":[1]}'
    assert service.ask("PUT", path, content=twice, headers=JSON).status_code == 201
    assert service.feedback(event_id, relevance=[1]).status_code == 200


def test_an_escaped_backslash_before_u0000_is_no_nul(service):
    body = b'{"items":["\\\\u0000"],"seed":1}'
    assert service.ask("PUT", "/v1/rankers/slash", content=body, headers=JSON).status_code == 201


@pytest.mark.parametrize(
    "features",
    [
        {"shape": [1, 2], "b64": "AAAA"},
        {"shape": [1, 2], "b64": "not base64"},
        {"shape": [1, 2], "b64": "\u00e9"},
        {"shape": [1, 2], "b64": base64.b64encode(b"\xff" * 8).decode()},
        {"shape": [1, 3], "b64": base64.b64encode(bytes(12)).decode()},
        {"shape": [2, 2], "b64": base64.b64encode(bytes(16)).decode()},
        [[1.0, 2.0], [1.0]],
        [[1.0]],
    ],
)
def test_features_that_do_not_fit_are_refused(service, features):
    body = {"items": [{"id": "a"}], "features": features}
    problem(service.ask("POST", "/v1/rankers/queries/rank", json=body), 422, "invalid")


@pytest.mark.parametrize(
    "headers",
    [
        {"content-type": "text/plain"},
        {"content-type": "application/x-www-form-urlencoded"},
        {"content-type": "application/json; charset=latin-1"},
        {"content-type": "application/json", "content-encoding": "gzip"},
        {"content-type": ""},
    ],
)
def test_bodies_of_other_kinds_are_not_read(service, headers):
    body = gzip.compress(b"{}") if "content-encoding" in headers else b"{}"
    answer = service.ask("POST", RANK, content=body, headers=headers)
    problem(answer, 415, "wrong-content-type")


def test_json_by_its_other_names_is_read(service):
    for kind in ("application/json;charset=UTF-8", 'Application/JSON; charset="utf-8"'):
        headers = {"content-type": kind, "content-encoding": "identity"}
        assert service.ask("POST", RANK, content=b"{}", headers=headers).status_code == 201


class Body:
    """A body that counts how much of it is read."""

    def __init__(self, *, pieces, size=2**20):
        self.pieces, self.size, self.n_read = pieces, size, 0

    async def receive(self):
        self.n_read += 1
        more = self.n_read < self.pieces
        return {"type": "http.request", "body": b" " * self.size, "more_body": more}


def sent(service, body, headers, path=RANK, method="POST"):
    """Return the status of an answer to a body."""
    told = []

    async def send(message):
        told.append(message)

    scope = {
        "type": "http",
        "method": method,
        "path": path,
        "query_string": b"",
        "headers": headers,
    }
    service.loop.run_until_complete(service.app(scope, body.receive, send))
    return told[0]["status"] if told else None


def test_a_body_over_the_limit_is_refused_before_it_is_read(service):
    kind = (b"content-type", b"application/json")
    for length in (b"8388609", b"9" * 400, b"-1", b"1e3"):
        body = Body(pieces=9)
        assert sent(service, body, [kind, (b"content-length", length)]) == 413
        assert body.n_read == 0
    body = Body(pieces=1_000)
    assert sent(service, body, [kind, (b"transfer-encoding", b"chunked")]) == 413
    assert body.n_read == 9  # the limit is eight of them
    assert sent(service, Body(pieces=8), [kind]) == 400  # eight million spaces are no JSON


def test_whoever_leaves_before_the_end_gets_no_answer(service):
    class Gone:
        async def receive(self):
            return {"type": "http.disconnect"}

    assert sent(service, Gone(), [(b"content-type", b"application/json")]) is None


def test_more_requests_than_the_limit_are_told_to_come_again():
    with Asked(max_concurrency=2) as asked:
        asked.put()
        asked.loop.run_until_complete(_crowd(asked))
        assert asked.app.service.metrics.in_flight == 0


async def _crowd(asked):
    gate = asyncio.Event()

    async def slow(_command):
        await gate.wait()
        raise RuntimeError("never seen")

    asked.desk.submit = slow
    waiting = [asyncio.ensure_future(asked._ask("POST", RANK, {})) for _ in range(2)]
    while asked.app.service.metrics.in_flight < 2:
        await asyncio.sleep(0)
    refused = await asked._ask("GET", "/healthz", {})
    problem(refused, 503, "busy")
    assert refused.headers["retry-after"] == "1"
    gate.set()
    assert {answer.status_code for answer in await asyncio.gather(*waiting)} == {500}


def test_settings_may_not_grow_without_end():
    check_settings({"a": [1, {"b": [None, "x"]}], "c": "x" * 1_000})
    nested: list[Any] = []
    for _ in range(20):
        nested = [nested]
    for bad in ({"a": nested}, {"a": [0] * 20_000}, {"a": "x" * 1_001}, {"x" * 1_001: 1}):
        with pytest.raises(Exception, match="`settings` must hold"):
            check_settings(bad)


_PIECES = (
    b'{"event_id":"a","relevance":[1]}', b'{"event_id":"b"}', b'{"event_id":"c","truth":{}}',
    b'{"event_id":"c","truth":{', b"}", b"{", b"\n", b"\n", b" ", b"\r", b"}\n{", b",", b'"x":1',
    b'"event_id":"z"}', b'{"event_id":"\\u0000"}', b'{"event_id":"a","event_id":"b"}', b"\xff",
)  # fmt: skip


def test_lines_decoded_at_once_are_those_decoded_one_by_one():
    """A body is whole lines or random pieces of them; whatever is taken at once is the same."""
    random, n_taken = Random(3), 0
    for number in range(20_000):
        joint = b"\n" * (number % 2)
        body = joint.join(random.choice(_PIECES) for _ in range(random.randint(0, 6)))
        lines = _at_once(body)
        if lines is not None:
            n_taken += 1
            assert lines == _line_by_line(body), body
    assert n_taken > 500
