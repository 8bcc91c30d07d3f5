"""Who may do what: keys, scopes and rankers; logins; and what other sites may not do."""

import re
import statistics
import time

import pytest

from keyhole.base.errors import InvalidInput, UnknownName
from keyhole.service.keys import SCOPES, KeyRing, new_key
from keyhole.service.sessions import Sessions
from keyhole.service.settings import Settings
from keyhole.service.startup import check_lock
from tests.service.asking import Asked, problem

CALLS = {
    "rank": ("POST", "/v1/rankers/{}/rank", {}),
    "feedback": ("PUT", "/v1/rankers/{}/events/e/feedback", {"relevance": [1]}),
    "read": ("GET", "/v1/rankers/{}", None),
    "admin": ("PUT", "/v1/rankers/{}", {"items": ["ant", "bee", "cat", "dog"], "seed": 1}),
}
HTML = {"accept": "text/html"}


class Locked(Asked):
    """A service with two rankers, and a key that may do everything."""

    def __init__(self, **settings):
        super().__init__(**settings)
        self.put("mine")
        self.put("theirs")
        self.admin = self.key("admin")

    def key(self, *scopes, rankers=("*",), **given):
        text, key = new_key(scopes, rankers, **given)
        self.desk.store.add_key(key)
        self.app.service.keyring.forget()
        return text

    def by(self, key, method, path, body=None, **headers):
        given = {} if body is None else {"json": body}
        return self.ask(
            method, path, headers={"authorization": f"Bearer {key}", **headers}, **given
        )


@pytest.fixture(scope="module")
def locked():
    with Locked() as asked:
        yield asked


@pytest.mark.parametrize("scope", SCOPES)
@pytest.mark.parametrize("wanted", CALLS)
def test_a_key_may_do_what_its_scopes_say_with_its_rankers(locked, scope, wanted):
    key = locked.key(scope, rankers=("mine", "soon"))
    method, path, body = CALLS[wanted]
    done = locked.by(key, method, path.format("mine"), body)
    if scope in (wanted, "admin"):
        assert done.status_code in (200, 201) or problem(done, 404, "not-found")  # no such event
    else:
        assert f"the scope {wanted}" in problem(done, 403, "forbidden")["detail"]
    for other in ("theirs", "nobodys"):  # one exists, the other does not: nothing tells them apart
        told = problem(locked.by(key, method, path.format(other), body), 404, "not-found")
        assert told["detail"] == f"There is no ranker '{other}'."


def test_without_a_known_key_nothing_is_done(locked):
    text = locked.key("admin")
    mark, prefix, secret = text.split("_", 2)
    wrong = [
        "", "x", "kh", "kh__", text[:-1], text + "x", f"{mark}_{prefix}_{'A' * len(secret)}",
        f"{mark}_00000000_{secret}", text.upper(), secret,
    ]  # fmt: skip
    said = set()
    for token in wrong:
        answer = locked.by(token, "GET", "/v1/rankers/mine")
        assert answer.headers["www-authenticate"].startswith("Bearer")
        said.add(problem(answer, 401, "unauthorized")["detail"])
    for headers in ({}, {"authorization": f"Basic {text}"}, {"authorization": text}):
        answer = locked.ask("GET", "/v1/rankers/mine", headers=headers)
        said.add(problem(answer, 401, "unauthorized")["detail"])
    assert len(said) == 1
    assert locked.ask("GET", "/healthz").status_code == 200
    assert locked.ask("GET", "/openapi.json").status_code == 200
    problem(locked.ask("GET", "/metrics"), 401, "unauthorized")


def test_rankers_are_listed_as_far_as_a_key_sees(locked):
    def names(key):
        listed = locked.by(key, "GET", "/v1/rankers").json()["rankers"]
        return [each["name"] for each in listed]

    assert names(locked.admin) == ["mine", "theirs"]
    assert names(locked.key("read", rankers=("theirs", "soon"))) == ["theirs"]
    assert names(locked.key("read", rankers=("soon",))) == []


def test_keys_are_made_listed_and_removed_by_those_who_see_everything(locked):
    asked = {"scopes": ["rank"], "rankers": ["mine"], "expires_days": 1}
    made = locked.by(locked.admin, "POST", "/v1/keys", asked)
    assert (made.status_code, made.headers["cache-control"]) == (201, "no-store")
    key = made.json()
    assert locked.by(key["key"], "POST", "/v1/rankers/mine/rank", {}).status_code == 201
    listed = locked.by(locked.admin, "GET", "/v1/keys")
    assert key["prefix"] in [each["prefix"] for each in listed.json()["keys"]]
    assert key["key"] not in listed.text
    narrow = locked.key("admin", rankers=("mine",))
    for method, path, body in [
        ("GET", "/v1/keys", None), ("POST", "/v1/keys", asked), ("GET", "/metrics", None),
        ("DELETE", f"/v1/keys/{key['prefix']}", None),
    ]:  # fmt: skip
        problem(locked.by(narrow, method, path, body), 403, "forbidden")
    gone = locked.by(locked.admin, "DELETE", f"/v1/keys/{key['prefix']}")
    assert gone.status_code == 204
    problem(locked.by(key["key"], "POST", "/v1/rankers/mine/rank", {}), 401, "unauthorized")


def test_a_key_ends_when_it_expires_and_when_another_process_removes_it():
    text, key = new_key(["read"], ["*"], expires_days=2, now_ms=0)
    kept, now = [key], [0]
    ring = KeyRing(lambda: kept, wall_ms=lambda: now[0])
    assert ring.access(text) is not None
    now[0] = 2 * 86_400_000 - 1
    assert ring.access(text) is not None
    now[0] += 1
    assert ring.access(text) is None
    assert ring.access_of(key.prefix) is None
    assert not ring.is_empty  # an expired key still locks the door
    now[0] = 0
    kept.clear()
    ring.forget()
    assert ring.access(text) is None


def test_keys_are_random_and_only_their_hash_is_kept():
    made = [new_key(["rank", "rank"], ["b", "a", "b"]) for _ in range(50)]
    assert len({text for text, _ in made}) == 50
    for text, key in made:
        assert len(text.split("_", 2)[2]) == 43  # 32 bytes in base64
        assert text.encode() not in key.sha256
        assert (key.scopes, key.rankers) == (("rank",), ("a", "b"))
    with pytest.raises(UnknownName, match="Did you mean 'rank'"):
        new_key(["ranks"], ["*"])
    for scopes, rankers, days in [([], ["*"], None), (["rank"], [], None), (["rank"], ["*"], 0)]:
        with pytest.raises(InvalidInput):
            new_key(scopes, rankers, expires_days=days)


def test_wrong_keys_take_the_same_time(locked):
    """The medians of a known and an unknown prefix, taken in turns, differ by less than half."""
    mark, prefix, secret = locked.key("read").split("_", 2)
    ring = locked.app.service.keyring
    other = "A" if secret[-1] != "A" else "E"
    tokens = [
        f"{mark}_{prefix}_{'A' * 43}",
        f"{mark}_deadbeef_{secret}",
        f"{mark}_{prefix}_{secret[:-1]}{other}",
    ]
    times: list[list[int]] = [[] for _ in tokens]
    for _ in range(2_000):
        for token, spent in zip(tokens, times, strict=True):
            began = time.perf_counter_ns()
            ring.access(token)
            spent.append(time.perf_counter_ns() - began)
    medians = [statistics.median(spent) for spent in times]
    assert max(medians) < 1.5 * min(medians), medians


def test_foreign_and_absent_rankers_take_the_same_time(locked):
    key = locked.key("rank", rankers=("mine",))
    times: dict[str, list[int]] = {"theirs": [], "nobodys": []}
    for _ in range(150):
        for name, spent in times.items():
            began = time.perf_counter_ns()
            locked.by(key, "POST", f"/v1/rankers/{name}/rank", {})
            spent.append(time.perf_counter_ns() - began)
    medians = {name: statistics.median(spent) for name, spent in times.items()}
    assert max(medians.values()) < 1.5 * min(medians.values()), medians


# ----------------------------------------------------------------------- without a key


@pytest.fixture(scope="module")
def open_service():
    with Asked() as asked:
        asked.put()
        yield asked


def test_without_keys_everybody_here_may_do_everything(open_service):
    for host in ("localhost", "127.0.0.1:8360", "[::1]:8360", "LOCALHOST:1"):
        assert open_service.ask("GET", "/v1/rankers", headers={"host": host}).status_code == 200
    answer = open_service.ask("GET", "/v1/rankers", headers={"authorization": "Bearer kh_a_b"})
    assert answer.status_code == 200


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8360", "localhost.evil.example"])
def test_names_that_others_own_do_not_lead_here(open_service, host):
    told = problem(open_service.ask("GET", "/v1/rankers", headers={"host": host}), 403, "forbidden")
    assert "keyhole keys create" in told["detail"]
    assert open_service.ask("GET", "/", headers={"host": host}).status_code == 403
    with Asked(insecure=True) as asked:
        assert asked.ask("GET", "/v1/rankers", headers={"host": host}).status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
    ],
)
def test_pages_of_other_sites_change_nothing(open_service, headers):
    path = "/v1/rankers/animals/rank"
    problem(open_service.ask("POST", path, headers=headers), 403, "forbidden")
    here = {"origin": "http://localhost", "sec-fetch-site": "same-origin"}
    assert open_service.ask("POST", path, headers=here).status_code == 201
    assert (
        "access-control-allow-origin"
        not in open_service.ask("GET", "/healthz", headers=headers).headers
    )


def test_a_port_that_others_reach_needs_a_key(open_service):
    store = open_service.desk.store
    for host in ("127.0.0.1", "::1", "localhost", "127.9.9.9"):
        check_lock(Settings(host=host), store)
    check_lock(Settings(host="0.0.0.0", insecure=True), store)  # noqa: S104
    for host in ("0.0.0.0", "::", "10.0.0.1", "example.org"):  # noqa: S104
        with pytest.raises(InvalidInput, match=r"keyhole keys create .* --insecure"):
            check_lock(Settings(host=host), store)


# ----------------------------------------------------------------------- pages


def test_pages_are_safe_and_need_a_login(locked):
    refused = locked.ask("GET", "/rankers/mine?x=1", headers=HTML)
    assert (refused.status_code, refused.headers["location"]) == (303, "/login?next=/rankers/mine")
    assert locked.ask("GET", "/index.json").status_code == 401
    form = locked.ask("GET", "/login?next=/rankers/mine", headers=HTML)
    policy = form.headers["content-security-policy"]
    assert "default-src 'self'" in policy
    assert "frame-ancestors 'none'" in policy
    assert form.headers["x-content-type-options"] == "nosniff"
    assert form.headers["referrer-policy"] == "same-origin"
    wrong = locked.ask("POST", "/login", data={"key": "kh_a_b", "next": "/"})
    assert (wrong.status_code, "set-cookie" in wrong.headers) == (401, False)
    key = locked.key("read", rankers=("mine",))
    entered = locked.ask("POST", "/login", data={"key": key, "next": "/rankers/mine"})
    assert (entered.status_code, entered.headers["location"]) == (303, "/rankers/mine")
    cookie = entered.headers["set-cookie"]
    assert all(
        each in cookie for each in ("HttpOnly", "SameSite=Strict", "Path=/", "Max-Age=43200")
    )
    session = {"cookie": cookie.partition(";")[0], **HTML}
    for path, status in [("/", 200), ("/rankers/mine", 200), ("/rankers/theirs", 404), ("/x", 404)]:
        page = locked.ask("GET", path, headers=session)
        assert page.status_code == status, path
        assert "default-src 'self'" in page.headers["content-security-policy"]
        assert "theirs" not in page.text or path == "/rankers/theirs"
    assert locked.ask("GET", "/v1/rankers/mine", headers=session).status_code == 200
    problem(locked.ask("POST", "/v1/rankers/mine/rank", headers=session), 401, "unauthorized")
    out = locked.ask("POST", "/logout", headers=session)
    assert "Max-Age=0" in out.headers["set-cookie"]


def test_a_login_ends_with_its_key_and_its_time(locked, monkeypatch):
    text = locked.key("read")
    entered = locked.ask("POST", "/login", data={"key": text})
    session = {"cookie": entered.headers["set-cookie"].partition(";")[0]}
    assert locked.ask("GET", "/index.json", headers=session).status_code == 200
    forged = {"cookie": session["cookie"][:-1] + ("0" if session["cookie"][-1] != "0" else "1")}
    assert locked.ask("GET", "/index.json", headers=forged).status_code == 401
    locked.desk.store.remove_key(text.split("_")[1])
    locked.app.service.keyring.forget()
    assert locked.ask("GET", "/index.json", headers=session).status_code == 401
    brief = Sessions(bytes(32), 60.0, secure=True)
    header = brief.cookie("abc")
    assert "; Secure" in header
    cookie = {b"cookie": header.partition(";")[0].encode()}
    assert brief.prefix(cookie) == "abc"
    monkeypatch.setattr(time, "time", lambda now=time.time: now() + 61.0)
    assert brief.prefix(cookie) is None
    assert brief.prefix({b"cookie": b'keyhole_session="\\'}) is None


@pytest.mark.parametrize("where", ["//evil.example", "/\\evil.example", "http://evil.example", "x"])
def test_a_login_leads_nowhere_else(locked, where):
    entered = locked.ask("POST", "/login", data={"key": locked.key("read"), "next": where})
    assert entered.headers["location"] == "/"


def test_forms_must_be_of_the_session_that_sends_them(locked):
    entered = locked.ask("POST", "/login", data={"key": locked.key("admin")})
    session = {"cookie": entered.headers["set-cookie"].partition(";")[0]}
    path = "/rankers/mine"
    raw = {b"cookie": session["cookie"].encode()}
    token = locked.app.service.sessions.csrf(raw)
    for form in (
        {},
        {"csrf": ""},
        {"csrf": "0" * 64},
        {"csrf": locked.app.service.sessions.csrf({})},
    ):
        problem_ = locked.ask("POST", path, data=form, headers=session)
        assert (problem_.status_code, "token" in problem_.text) == (403, True)
    away = {**session, "origin": "http://evil.example"}
    assert locked.ask("POST", path, data={"csrf": token}, headers=away).status_code == 403
    # The dashboard has no form there; that it says so shows that the token was enough.
    assert locked.ask("POST", path, data={"csrf": token}, headers=session).status_code == 405
    by_script = {**session, "x-csrf-token": token}
    assert locked.ask("POST", path, json={}, headers=by_script).status_code == 405


def test_a_form_of_the_dashboard_is_sent_with_the_token_of_its_page(locked):
    entered = locked.ask("POST", "/login", data={"key": locked.key("read")})
    session = {"cookie": entered.headers["set-cookie"].partition(";")[0], **HTML}
    page = locked.ask("GET", "/rankers/mine/evaluate", headers=session)
    token = re.search(r'name="csrf" value="(\w+)"', page.text)
    assert token is not None
    form = {"policy": "best", "baseline": "logged", "csrf": token[1]}
    sent = locked.ask("POST", "/rankers/mine/evaluate", data=form, headers=session)
    assert (sent.status_code, "at least 10 answered rounds" in sent.text) == (422, True)
    del form["csrf"]
    assert (
        locked.ask("POST", "/rankers/mine/evaluate", data=form, headers=session).status_code == 403
    )


def test_forms_without_end_are_refused(locked):
    body = b"a=1&" * 300_000
    headers = {"content-type": "application/x-www-form-urlencoded"}
    answer = locked.ask("POST", "/login", content=body, headers=headers)
    assert answer.json()["detail"] == "A form must have at most 1000 fields."


@pytest.mark.parametrize("insecure", [False, True])
def test_the_page_of_keys_says_who_is_let_in_without_one(insecure):
    with Asked(insecure=insecure) as asked:
        page = asked.ask("GET", "/keys").text
    assert ("everybody who can reach the port has full access" in page) == insecure
    assert ("requests from this machine have full access" in page) != insecure
