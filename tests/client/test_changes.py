"""What clients ask where a ranker is changed, and how long they wait for each kind of answer."""

import json

import httpx
import pytest

from keyhole.client import Client

INFO = {"name": "shop", "version": 4, "request": {}}


class Service:
    def __init__(self, *answers):
        self.answers, self.requests = list(answers), []

    def __call__(self, request):
        self.requests.append(request)
        status, body = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        return httpx.Response(status, content=body if isinstance(body, bytes) else json.dumps(body))


@pytest.mark.parametrize(
    ("call", "asked"),
    [
        (
            lambda c: c.change_ranker("shop", mode="frozen", missing=None, if_match=3),
            ("PATCH", "", {"mode": "frozen", "missing": None}),
        ),
        (
            lambda c: c.change_ranker("shop", items=("a", "b"), if_match=3),
            ("PATCH", "", {"items": ["a", "b"]}),
        ),
        (
            lambda c: c.set_items("shop", ("a", "b"), if_match=3),
            ("PUT", "/items", {"items": ["a", "b"]}),
        ),
        (
            lambda c: c.edit_items("shop", add=["c"], remove=["a"], if_match=3),
            ("POST", "/items", {"add": ["c"], "remove": ["a"]}),
        ),
        (lambda c: c.reset_ranker("shop", if_match=3), ("POST", "/reset", None)),
        (
            lambda c: c.rename_ranker("shop", "store", if_match=3),
            ("POST", "/rename", {"to": "store"}),
        ),
    ],
)
def test_changes(call, asked):
    service = Service((200, INFO))
    with Client("http://service.test", transport=httpx.MockTransport(service)) as client:
        assert call(client).version == 4
    (request,) = service.requests
    body = json.loads(request.content) if request.content else None
    assert (request.method, request.url.path.removeprefix("/v1/rankers/shop"), body) == asked
    assert request.headers["if-match"] == '"3"'


def test_a_ranker_is_deleted():
    service = Service((204, b""))
    with Client("http://service.test", transport=httpx.MockTransport(service)) as client:
        assert client.delete_ranker("shop") is None
    assert [(one.method, one.url.path) for one in service.requests] == [
        ("DELETE", "/v1/rankers/shop")
    ]


@pytest.mark.parametrize(
    ("timeout", "waits"),
    [({}, [5.0, 30.0, 120.0, 30.0, 120.0]), ({"timeout": 60.0}, [60.0, 60.0, 120.0, 60.0, 120.0])],
)
def test_only_a_list_is_waited_for_shortly(timeout, waits):
    """A first batch of feedback took 12 seconds, more than there was for any call."""
    service = Service(
        (201, {"ranking": ["a"], "event_id": "e1", "k": 1}),
        (201, {"learned": "learned", "seq": 3}),
        (200, b'{"line": 1, "status": 201}\n'),
        (200, {"seq": 3, "round": 1, "sha256": ""}),
        (200, INFO),
    )
    transport = httpx.MockTransport(service)
    with Client("http://service.test", transport=transport, **timeout) as client:
        shown = client.rank("shop")
        client.feedback("shop", shown, 1.0)
        client.feedback_batch("shop", [(shown, 1.0)])
        client.state("shop")
        client.put_ranker("shop", items=["a"])
    assert [one.extensions["timeout"]["read"] for one in service.requests] == waits
    assert {one.extensions["timeout"]["connect"] for one in service.requests} == {waits[0]}
