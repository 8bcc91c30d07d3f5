"""Rankers that are changed, reset, renamed and deleted over HTTP: who may, and what is answered."""

import pytest

from tests.service.asking import ANIMALS, Asked, problem

APPRENTICE = {"mode": "apprentice", "apprentice_share": 0.25, "wait_seconds": 60.0}
WHERE = "/v1/rankers/animals"


@pytest.fixture
def service():
    with Asked() as asked:
        asked.put(**APPRENTICE)
        yield asked


def test_new_items_do_not_take_an_apprentice_live(service):
    told = problem(service.put(items=ANIMALS[1:]), 409, "conflict")
    assert '`mode`, which is "apprentice"' in told["detail"]
    assert "PATCH" in told["detail"]
    request = service.ask("GET", WHERE).json()["request"]
    assert (request["mode"], request["items"]) == ("apprentice", ANIMALS)
    assert service.put(items=ANIMALS[1:], **APPRENTICE).json()["spec"]["items"] == ANIMALS[1:]


@pytest.mark.parametrize(
    ("method", "path", "body", "now"),
    [
        ("PATCH", "", {"mode": "frozen"}, {"mode": "frozen"}),
        ("PATCH", "", {"missing": 0.5}, {"missing": 0.5}),
        ("PUT", "/items", {"items": ["dog", "eel"]}, {"items": ["dog", "eel"]}),
        ("POST", "/items", {"add": ["eel"]}, {"items": [*ANIMALS, "eel"]}),
        ("POST", "/items", {"remove": ["ant"]}, {"items": ANIMALS[1:]}),
    ],
)
def test_a_change_is_of_what_it_names(service, method, path, body, now):
    before = service.ask("GET", WHERE)
    stale = service.ask(method, WHERE + path, json=body, headers={"if-match": '"7"'})
    problem(stale, 412, "stale-version")
    tag = {"if-match": before.headers["etag"]}
    changed = service.ask(method, WHERE + path, json=body, headers=tag)
    assert changed.status_code == 200
    assert changed.headers["etag"] == '"2"'
    assert changed.json()["request"] == {**before.json()["request"], **now}
    assert service.ask(method, WHERE + path, json=body).json() == changed.json()
    problem(service.ask(method, f"/v1/rankers/nobody{path}", json=body), 404, "not-found")


def test_what_cannot_change_is_refused(service):
    told = problem(service.ask("PATCH", WHERE, json={"k": 2}), 422, "invalid")
    assert "unknown field `k`" in told["detail"]
    problem(service.ask("PATCH", WHERE, json={"items": None}), 422, "invalid")
    problem(service.ask("PUT", WHERE + "/items", json={}), 422, "invalid")


def test_reset_rename_and_delete(service):
    shown = service.rank().json()["event_id"]
    reset = service.ask("POST", WHERE + "/reset", headers={"if-match": "*"})
    assert (reset.status_code, reset.json()["round"], reset.headers["etag"]) == (200, 0, '"3"')
    assert service.feedback(shown).json()["learned"] == "late"
    renamed = service.ask("POST", WHERE + "/rename", json={"to": "beasts"})
    assert (renamed.status_code, renamed.headers["location"]) == (201, "/v1/rankers/beasts")
    assert "renamed to 'beasts'" in problem(service.rank(), 404, "not-found")["detail"]
    problem(service.ask("POST", "/v1/rankers/beasts/reset", json={"k": 1}), 422, "invalid")
    assert service.ask("DELETE", "/v1/rankers/beasts").status_code == 204
    told = problem(service.ask("DELETE", "/v1/rankers/beasts"), 404, "not-found")
    assert told["detail"].endswith("it was deleted.")
    assert service.ask("GET", "/v1/rankers").json() == {
        "rankers": [],
        "damaged": [],
        "next_after": None,
    }
    assert service.put(items=["x", "y"]).status_code == 201


def test_a_stream_ends_with_its_ranker(service):
    async def follow():
        changes = service.desk.subscribe("animals")
        first = await anext(changes)
        told = [first]
        from keyhole.service.commands import Delete

        await service.desk.submit(Delete("animals"))
        told += [each async for each in changes]
        return told

    assert len(service.loop.run_until_complete(follow())) == 1


def test_only_administrators_change_rankers_and_the_log_says_which(service):
    asked = {"scopes": ["admin"], "rankers": ["*"], "name": "ops"}
    boss = service.ask("POST", "/v1/keys", json=asked).json()
    some = {"scopes": ["admin"], "rankers": ["animals"]}
    service.headers = {"authorization": f"Bearer {boss['key']}"}
    own = service.ask("POST", "/v1/keys", json=some).json()
    reader = service.ask("POST", "/v1/keys", json={**some, "scopes": ["read", "rank"]}).json()
    for key, status in ((reader, 403), (own, 403), (boss, 201)):
        service.headers = {"authorization": f"Bearer {key['key']}"}
        answer = service.ask("POST", WHERE + "/rename", json={"to": "beasts"})
        assert answer.status_code == status, answer.text
    last = service.desk.store.last("animals")
    from keyhole.service.events import body_of

    assert body_of(last).by == f"ops ({boss['prefix']})"
    page = service.ask("GET", "/v1/rankers/beasts/events").json()["events"]
    assert page[0]["by"] == f"ops ({boss['prefix']})"
