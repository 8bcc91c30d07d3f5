"""The endpoints of the service, as a caller meets them."""

import asyncio
import io
import json
from typing import Any
from unittest.mock import AsyncMock

import polars
import pytest
import structlog

from keyhole.service.api import log
from keyhole.service.errors import ConflictingRequest, StoreFailed, StoreFull
from keyhole.service.http import problems
from tests.service.asking import NDJSON, Asked, problem


@pytest.fixture(scope="module")
def service():
    with Asked() as asked:
        asked.put()
        yield asked


def test_a_ranker_is_created_read_changed_and_listed():
    with Asked() as asked:
        made = asked.put(k=2)
        assert (made.status_code, made.headers["etag"]) == (201, '"1"')
        assert made.json()["created"]
        assert asked.put(k=2).status_code == 200
        changed = asked.ask(
            "PUT",
            "/v1/rankers/animals",
            json={"items": ["ant", "bee", "cow"], "seed": 1, "k": 2},
            headers={"if-match": '"1"'},
        )
        assert (changed.status_code, changed.headers["etag"]) == (200, '"2"')
        stale = asked.ask(
            "PUT", "/v1/rankers/animals", json={"items": ["x"]}, headers={"if-match": '"1"'}
        )
        assert "read it again" in problem(stale, 412, "stale-version")["detail"]
        read = asked.ask("GET", "/v1/rankers/animals")
        assert read.json()["request"]["items"] == ["ant", "bee", "cow"]
        assert read.headers["etag"] == '"2"'
        listed = asked.ask("GET", "/v1/rankers").json()
        assert [each["name"] for each in listed["rankers"]] == ["animals"]


@pytest.mark.parametrize("tag", ["2", 'W/"1"', '"one"', '"' + "9" * 30 + '"', ""])
def test_a_tag_that_is_none_matches_nothing(service, tag):
    answer = service.ask(
        "PUT", "/v1/rankers/animals", json={"items": ["a"]}, headers={"if-match": tag}
    )
    problem(answer, 412, "stale-version")


def test_any_version_may_be_changed_if_there_is_one(service):
    star = {"if-match": "*"}
    body = {"items": ["ant", "bee", "cat", "dog"], "seed": 1}
    assert service.ask("PUT", "/v1/rankers/animals", json=body, headers=star).status_code == 200
    problem(service.ask("PUT", "/v1/rankers/new", json=body, headers=star), 412, "stale-version")


def test_a_list_is_shown_and_learnt_from(service):
    before = service.ask("GET", "/v1/rankers/animals/state").json()
    shown = service.rank()
    assert shown.status_code == 201
    list_ = shown.json()
    assert sorted(list_["ranking"]) == ["ant", "bee", "cat", "dog"]
    first, again = service.feedback(list_["event_id"]), service.feedback(list_["event_id"])
    assert (first.status_code, again.status_code) == (201, 200)
    assert first.json() == {"learned": "learned", "seq": before["seq"] + 2, "created": True}
    other = service.feedback(list_["event_id"], relevance=[0])
    assert "the first counts" in problem(other, 409, "conflict")["detail"]
    after = service.ask("GET", "/v1/rankers/animals/state").json()
    assert after["seq"] == before["seq"] + 2
    assert after["sha256"] != before["sha256"]
    page = service.ask("GET", f"/v1/rankers/animals/events/{list_['event_id']}").json()
    assert page["event_id"] == list_["event_id"]


def test_a_rank_without_a_body_is_one_of_a_fixed_list(service):
    assert service.ask("POST", "/v1/rankers/animals/rank").status_code == 201


def test_a_repeated_request_is_answered_as_the_first_was(service):
    key = {"idempotency-key": "basket 7"}
    first, again = service.rank(headers=key), service.rank(headers=key)
    assert (again.status_code, again.json()) == (201, first.json())
    problem(service.rank(headers=key, deferred=True), 422, "key-reused")
    for bad in ("x" * 257, "\x7f", ""):
        problem(service.rank(headers={"idempotency-key": bad}), 422, "invalid")


def test_ids_may_hold_whatever_a_path_can_escape(service):
    shown = service.rank(event_id="a/b?c%20#d").json()
    assert shown["event_id"] == "a/b?c%20#d"
    assert service.feedback("a%2Fb%3Fc%2520%23d").status_code == 201
    service.rank(event_id="a/feedback")
    for escaped in ("a%2Ffeedback", "a%2ffeedback"):
        page = service.ask("GET", f"/v1/rankers/animals/events/{escaped}")
        assert page.json()["event_id"] == "a/feedback"
    problem(service.ask("GET", "/v1/rankers/animals/events/a%00feedback"), 404, "not-found")
    problem(service.ask("GET", "/v1/rankers%2Fanimals"), 404, "not-found")
    problem(service.ask("GET", "/v1/rankers/animals%2Fstate"), 404, "not-found")


def test_a_deferred_list_is_activated(service):
    event_id = service.rank(deferred=True).json()["event_id"]
    path = f"/v1/rankers/animals/events/{event_id}/activate"
    for _ in range(2):
        answer = service.ask("POST", path)
        assert (answer.status_code, answer.content) == (204, b"")
    problem(service.ask("POST", path, json={"now": True}), 422, "invalid")


def test_a_batch_has_a_status_per_line(service):
    ids = [service.rank().json()["event_id"] for _ in range(2)]
    lines = [
        {"event_id": ids[0], "relevance": [1]},
        {"event_id": ids[1], "status": "none"},
        {"event_id": ids[0], "relevance": [1]},
        {"event_id": "nobody", "relevance": [1]},
        {"event_id": ids[1], "relevance": [1, 2]},
        {"relevance": [1]},
    ]
    body = b"\n\n".join(json.dumps(line).encode() for line in lines) + b"\n{\n\xff\n"
    path = "/v1/rankers/animals/feedback-batch"
    answer = service.ask("POST", path, content=body, headers=NDJSON)
    told = [json.loads(line) for line in answer.text.splitlines()]
    assert [each["status"] for each in told] == [201, 201, 200, 404, 422, 422, 400, 400]
    assert [each["line"] for each in told] == [1, 3, 5, 7, 9, 11, 12, 13]
    assert told[0]["learned"] == "learned"
    assert told[5]["detail"].endswith("missing required field `event_id`.")
    most = b'{"event_id":"x"}\n' * 1_000
    assert service.ask("POST", path, content=most, headers=NDJSON).status_code == 200
    more = service.ask("POST", path, content=most + b'{"event_id":"x"}', headers=NDJSON)
    assert "at most 1000 lines, got 1001" in problem(more, 422, "invalid")["detail"]
    empty = service.ask("POST", path, content=b"\n" * 2_001, headers=NDJSON)
    assert "at most 1000 lines, got 2001" in problem(empty, 422, "invalid")["detail"]
    assert service.ask("POST", path, content=b"\n" * 2_000, headers=NDJSON).content == b""


def test_the_log_comes_in_pages_as_lines_and_as_a_table():
    with Asked() as asked:
        asked.put()
        for _ in range(3):
            asked.feedback(asked.rank().json()["event_id"])
        path = "/v1/rankers/animals/events"
        page = asked.ask("GET", path, params={"limit": 4}).json()
        assert [event["seq"] for event in page["events"]] == [1, 2, 3, 4]
        rest = asked.ask("GET", path, params={"after": page["next_after"]}).json()
        assert [event["kind"] for event in rest["events"]] == ["feedback", "rank", "feedback"]
        assert rest["next_after"] is None
        lines = asked.ask("GET", path, headers={"accept": "application/x-ndjson"})
        assert lines.headers["content-type"] == "application/x-ndjson"
        assert [json.loads(line) for line in lines.text.splitlines()][:4] == page["events"]
        table = asked.ask("GET", path, params={"format": "parquet"})
        rows = polars.read_parquet(io.BytesIO(table.content))
        assert rows["reward"].to_list() == [1.0, 1.0, 1.0]
        problem(asked.ask("GET", path, headers={"accept": "image/png"}), 406, "not-acceptable")
        asked.ask("POST", "/v1/rankers/animals/rank-batch", json={"requests": [{}] * 120})
        first = asked.ask("GET", path).json()  # a page where nobody says how long
        assert (len(first["events"]), first["next_after"]) == (100, 100)
        whole = asked.ask("GET", path, params={"format": "ndjson"}).text.splitlines()
        assert [json.loads(line)["seq"] for line in whole] == list(range(1, 128))


def test_a_page_of_large_events_ends_before_its_limit(service, monkeypatch):
    """Thousands of lists with megabytes of features each were held at once."""
    path = "/v1/rankers/animals/events"
    whole = service.ask("GET", f"{path}?limit=10000").json()
    assert whole["next_after"] is None
    monkeypatch.setattr(log, "_PAGE_BYTES", 1_000)
    told: list[Any] = []
    after: int | None = 0
    while after is not None:
        page = service.ask("GET", f"{path}?limit=10000&after={after}").json()
        after = page["next_after"]
        told += page["events"]
        sizes = [len(json.dumps(event, separators=(",", ":"))) for event in page["events"]]
        assert sum(sizes[:-1]) < 1_000
    assert told == whole["events"]
    lines = service.ask("GET", f"{path}?format=ndjson").text.splitlines()
    assert [json.loads(line) for line in lines] == told


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ("limit=0", 422), ("limit=10001", 422), ("after=-1", 422), ("after=1&after=2", 422),
        ("format=xml", 422), ("from=1", 422), ("after", 400), ("after=%ff", 400),
        ("after=\u0661", 422), ("limit=10001&format=ndjson", 200), ("limit=" + "9" * 5_000, 422),
    ],
)  # fmt: skip
def test_parameters_are_checked(service, query, status):
    answer = service.ask("GET", f"/v1/rankers/animals/events?{query}")
    assert answer.status_code == status, answer.text


def test_an_evaluation_is_asked_for_and_fetched():
    with Asked() as asked:
        asked.put()
        path = "/v1/rankers/animals/evaluations"
        for _ in range(12):
            asked.feedback(asked.rank().json()["event_id"])
        begun = asked.ask("POST", path, json={"policy": ["dog", "cat", "bee", "ant"]})
        assert begun.status_code == 202
        told = begun.json()
        while told["status"] in ("queued", "running"):
            told = asked.ask("GET", begun.headers["location"]).json()
        assert (told["status"], told["result"]["rows"]) == ("done", 12)
        assert told["request"]["policy"] == ["dog", "cat", "bee", "ant"]
        listed = asked.ask("GET", path).json()["evaluations"]
        assert [each["id"] for each in listed] == [told["id"]]
        problem(asked.ask("GET", f"{path}/nothing"), 404, "not-found")
        problem(asked.ask("POST", path, json={"policy": "worst"}), 422, "invalid")


def test_what_cannot_be_found_is_not_found(service):
    for method, path in [
        ("GET", "/v1/rankers/none"), ("POST", "/v1/rankers/none/rank"), ("GET", "/v1/none"),
        ("GET", "/v1/rankers/none/events"), ("GET", "/v1/rankers/none/stream"), ("GET", "/v1/"),
        ("GET", "/v1/rankers/animals/events/none"), ("GET", "/v1/rankers/"), ("GET", "/v1//rank"),
        ("GET", "/v1/rankers/animals/"), ("GET", "/v1/rankers/%ff"), ("DELETE", "/v1/keys/none"),
    ]:  # fmt: skip
        problem(service.ask(method, path), 404, "not-found")
    wrong = service.ask("POST", "/v1/rankers/animals")
    problem(wrong, 405, "wrong-method")
    assert wrong.headers["allow"] == "DELETE, GET, HEAD, PATCH, PUT"


def test_the_library_teaches_over_http(service):
    def refused(**asked):
        return service.ask("PUT", "/v1/rankers/other", json={"items": ["a", "b", "c"], **asked})

    unknown = problem(refused(ranker="keystoen"), 422, "unknown-name")
    assert unknown["detail"].endswith("Did you mean 'keystone'?")
    hopeless = problem(refused(measure="NDCG"), 422, "not-learnable")
    assert hopeless["verdict"]["class"] == "hopeless"
    assert "accept_linear_regret" in hopeless["detail"]
    problem(service.ask("PUT", "/v1/rankers/-a", json={"items": ["a"]}), 422, "invalid")
    problem(refused(ranker="os:system"), 422, "unknown-name")


def test_failures_of_the_disk_have_statuses_of_their_own(service, monkeypatch):
    for error, status, slug in [
        (StoreFull("The disk is full."), 507, "store-full"),
        (StoreFailed("It failed."), 503, "store-failed"),
        (ConflictingRequest("No."), 409, "conflict"),
        (RuntimeError("secret"), 500, "fault"),
        (RecursionError("secret"), 500, "fault"),
        (UnicodeDecodeError("utf-8", b"secret", 0, 1, "secret"), 500, "fault"),
    ]:
        monkeypatch.setattr(service.desk, "submit", AsyncMock(side_effect=error))
        answer = service.ask("POST", "/v1/rankers/animals/rank", faults=True)
        problem(answer, status, slug)
        assert "secret" not in answer.text
        assert ("retry-after" in answer.headers) == (status == 503)


def test_every_row_of_the_table_of_problems_can_be_told_from_the_others():
    kinds = {(row.slug, row.title) for row in problems.TABLE.values()}
    assert len({slug for slug, _ in kinds}) == len(kinds)


def test_health_and_readiness(service, monkeypatch):
    assert service.ask("GET", "/healthz").json()["status"] == "ok"
    assert service.ask("HEAD", "/healthz").status_code == 200
    assert service.ask("GET", "/readyz").json() == {"status": "ready", "log": "checked"}
    monkeypatch.setattr(service.desk, "is_ready", False)
    problem(service.ask("GET", "/readyz", faults=True), 503, "not-ready")
    problem(service.ask("GET", "/v1/rankers", faults=True), 503, "not-ready")
    page = service.ask("GET", "/", faults=True, headers={"accept": "text/html"})
    assert (page.status_code, "refresh" in page.text) == (503, True)
    assert service.ask("GET", "/healthz").status_code == 200


def test_metrics_count_requests_and_events(service):
    service.rank()
    text = service.ask("GET", "/metrics").text
    assert 'keyhole_requests_total{operation="rank",status="201"}' in text
    assert 'keyhole_request_seconds_bucket{le="+Inf",operation="rank",status="201"}' in text
    assert (
        f'keyhole_ranker_seq{{ranker="animals"}} {service.desk.engine.ranker("animals").seq}.0'
        in text
    )
    seen = {line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in text.splitlines()
            if not line.startswith("#")}  # fmt: skip
    assert seen['keyhole_events_appended_total{kind="rank"}'] >= 1.0
    appended = [n for name, n in seen.items() if name.startswith("keyhole_events_appended_total")]
    assert seen["keyhole_commit_events_sum"] == sum(appended)
    commits = seen["keyhole_commit_events_count"]
    assert 1.0 <= seen['keyhole_commit_events_bucket{le="1.0"}'] <= commits <= sum(appended)
    assert seen["keyhole_commit_seconds_count"] == commits
    assert 0.0 < seen["keyhole_commit_seconds_sum"] < 10.0


def test_a_request_keeps_the_name_that_its_caller_gave_it(service):
    named = service.ask("GET", "/v1/rankers/none", headers={"x-request-id": "mine-1"})
    assert problem(named, 404, "not-found")["instance"] == "urn:keyhole:request:mine-1"
    forged = service.ask("GET", "/v1/rankers/none", headers={"x-request-id": "a b\tc"})
    assert forged.headers["x-request-id"] != "a b\tc"


def test_requests_are_logged_if_asked_for():
    with Asked(log_requests=True) as asked, structlog.testing.capture_logs() as logged:
        asked.ask("GET", "/healthz", headers={"x-request-id": "mine"})
        asked.ask("GET", "/v1/rankers/none")
    assert [(each["operation"], each["status"]) for each in logged] == [
        ("healthz", 200),
        ("get_ranker", 404),
    ]
    assert logged[0]["request"] == "mine"


def test_a_stream_tells_of_changes_and_beats_and_ends():
    with Asked(heartbeat_seconds=0.05, max_streams=1) as asked:
        asked.put()
        assert asked.loop.run_until_complete(_follow(asked)) == [
            b"retry: 2000\n\n",
            b'id: 1\ndata: {"seq":1,"round":0,"waiting":0}\n\n',
            b"event: beat\ndata: {}\n\n",
            b'id: 2\ndata: {"seq":2,"round":1,"waiting":1}\n\n',
            b"",
        ]
        assert asked.app.service.n_streams == 0


async def _follow(asked):
    """Return what a stream says: a list is shown after its first beat, then its reader leaves."""
    told, is_gone = [], asyncio.Event()
    path = "/v1/rankers/animals/stream"

    async def receive():
        await is_gone.wait()
        return {"type": "http.disconnect"}

    async def send(message):
        if message["type"] != "http.response.body":
            return
        told.append(message["body"])
        if len(told) == 3:
            busy = await asked._ask("GET", path, {})
            assert problem(busy, 503, "busy")
            await asked._ask("POST", "/v1/rankers/animals/rank", {})
        if len(told) == 4:
            is_gone.set()

    scope = {"type": "http", "method": "GET", "path": path, "headers": [], "query_string": b""}
    await asyncio.wait_for(asked.app(scope, receive, send), 10)
    return told
