"""A service that has no key, or is losing its last: its own machine is let in, and nobody else."""

import asyncio

import httpx
import pytest

from keyhole.service.keys import new_key
from tests.service.asking import Asked, problem


def foreign(asked, method, path, peer, **given):
    """Return the answer to a request from another address."""

    async def ask():
        transport = httpx.ASGITransport(asked.app, client=(peer, 4_711))
        async with httpx.AsyncClient(transport=transport, base_url="http://10.0.0.1") as client:
            return await client.request(method, path, **given)

    return asked.loop.run_until_complete(ask())


def test_the_last_key_of_a_public_service_stays():
    with Asked(host="0.0.0.0") as asked:  # noqa: S104
        (text, first), (_, second) = (new_key(["admin"], ["*"]) for _ in range(2))
        asked.desk.store.add_key(first)
        asked.desk.store.add_key(second)
        asked.headers = {"authorization": f"Bearer {text}"}
        assert asked.ask("DELETE", f"/v1/keys/{second.prefix}").status_code == 204
        told = problem(asked.ask("DELETE", f"/v1/keys/{first.prefix}"), 409, "last-key")
        assert "create another key first" in told["detail"]
        assert asked.ask("GET", "/v1/keys").status_code == 200


@pytest.mark.parametrize("settings", [{"host": "127.0.0.1"}, {"host": "0.0.0.0", "insecure": True}])  # noqa: S104
def test_the_last_key_of_a_service_of_ones_own_may_go(settings):
    with Asked(**settings) as asked:
        text, key = new_key(["admin"], ["*"])
        asked.desk.store.add_key(key)
        asked.headers = {"authorization": f"Bearer {text}"}
        assert asked.ask("DELETE", f"/v1/keys/{key.prefix}").status_code == 204


def test_two_who_remove_the_last_two_keys_at_once_leave_one():
    with Asked(host="0.0.0.0") as asked:  # noqa: S104
        made = [new_key(["admin"], ["*"]) for _ in range(2)]
        for _, key in made:
            asked.desk.store.add_key(key)

        async def both():
            return await asyncio.gather(
                *(
                    asked._ask(
                        "DELETE",
                        f"/v1/keys/{key.prefix}",
                        {"headers": {"authorization": f"Bearer {text}"}},
                    )
                    for text, key in made
                )
            )

        answers = asked.loop.run_until_complete(both())
        assert sorted(answer.status_code for answer in answers) in ([204, 401], [204, 409])
        assert len(asked.desk.store.keys()) == 1


@pytest.mark.parametrize("host", ["0.0.0.0", "127.0.0.1"])  # noqa: S104
def test_a_service_that_lost_its_keys_answers_its_own_machine_alone(host):
    """A key can be removed beside a running service; strangers stay out whatever it was."""
    with Asked(host=host) as asked:
        _, key = new_key(["admin"], ["*"])
        asked.desk.store.add_key(key)
        ring = asked.app.service.keyring
        ring.forget()
        body = {"json": {"items": ["a"], "seed": 1}}
        asks = [("PUT", "/v1/rankers/new", body), ("POST", "/v1/keys", {}), ("GET", "/", {})]
        for method, path, given in asks:
            assert foreign(asked, method, path, "10.0.0.9", **given).status_code == 401
        asked.desk.store.remove_key(key.prefix)
        ring.forget()
        for peer in ("10.0.0.9", "::ffff:10.0.0.9", "fe80::1%eth0", "2001:db8::1"):
            for method, path, given in asks:
                assert foreign(asked, method, path, peer, **given).status_code == 403
        for peer in ("127.0.0.1", "::1", "127.0.0.9", "::ffff:127.0.0.1"):
            assert foreign(asked, "GET", "/v1/rankers", peer).status_code == 200
        assert not asked.desk.engine.rankers


def test_a_peer_that_cannot_be_told_is_a_stranger():
    """Whoever hangs up at once has no address any more when the request is looked at."""
    with Asked() as asked:
        told = []

        async def receive():
            return {"type": "http.request", "body": b"", "more_body": False}

        async def send(message):
            told.append(message)

        scope = {
            "type": "http", "method": "GET", "path": "/v1/rankers", "query_string": b"",
            "headers": [(b"host", b"localhost")], "client": None,
        }  # fmt: skip
        asked.loop.run_until_complete(asked.app(scope, receive, send))
        assert told[0]["status"] == 403


def test_an_insecure_service_lets_everybody_in():
    with Asked(host="0.0.0.0", insecure=True) as asked:  # noqa: S104
        assert foreign(asked, "GET", "/v1/rankers", "10.0.0.9").status_code == 200


@pytest.mark.parametrize(
    "field",
    [
        {"Forwarded": "for=10.0.0.9"},
        {"X-Forwarded-For": "10.0.0.9"},
        {"X-Real-IP": ""},
        {"Via": "1.1 proxy"},
        {"X-Forwarded-Host": "shop.example"},
        {"X-Forwarded-Proto": "https"},
    ],
)
def test_whoever_comes_through_a_proxy_on_this_machine_is_a_stranger(field):
    with Asked() as asked:
        asked.put()
        for method, path in [("GET", "/v1/rankers"), ("GET", "/"), ("POST", "/v1/keys")]:
            told = asked.ask(method, path, headers={"host": "127.0.0.1:8360", **field})
            assert told.status_code == 403, path
            assert "keyhole keys create" in told.text
            assert "no proxy" in told.text
        text, key = new_key(["admin"], ["*"])
        asked.desk.store.add_key(key)
        asked.app.service.keyring.forget()
        asked.headers = {"authorization": f"Bearer {text}"}
        assert asked.ask("GET", "/v1/rankers", headers=field).status_code == 200
    with Asked(insecure=True) as asked:
        assert asked.ask("GET", "/v1/rankers", headers=field).status_code == 200
