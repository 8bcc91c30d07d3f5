"""A service in memory, asked over HTTP without a wire, which tests of it share."""

import asyncio

import httpx

from keyhole.service.group_commit import Desk
from keyhole.service.http.app import build
from keyhole.service.settings import Settings
from keyhole.service.store.memory import MemoryStore

ANIMALS = ["ant", "bee", "cat", "dog"]
JSON = {"content-type": "application/json"}
NDJSON = {"content-type": "application/x-ndjson"}


class Asked:
    """A service; ``ask`` is a request, and raises where an answer says that Keyhole has a fault."""

    def __init__(self, store=None, **settings):
        self.loop = asyncio.new_event_loop()
        self.desk = Desk(MemoryStore() if store is None else store)
        self.app = build(self.desk, Settings(**settings))
        self.running = self.app.router.lifespan_context(self.app)
        self.loop.run_until_complete(self.running.__aenter__())
        self.headers = {}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.loop.run_until_complete(self.running.__aexit__(None, None, None))
        self.loop.run_until_complete(self.loop.shutdown_default_executor())
        self.loop.close()

    def ask(self, method, path, *, faults=False, **given):
        answer = self.loop.run_until_complete(self._ask(method, path, given))
        assert faults or answer.status_code < 500, answer.text
        return answer

    async def _ask(self, method, path, given):
        transport = httpx.ASGITransport(self.app)
        given["headers"] = {**self.headers, **given.get("headers", {})}
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            return await client.request(method, path, **given)

    def put(self, name="animals", **asked):
        body = {"items": ANIMALS, "seed": 1, **asked}
        return self.ask("PUT", f"/v1/rankers/{name}", json=body)

    def rank(self, name="animals", headers=None, **asked):
        return self.ask("POST", f"/v1/rankers/{name}/rank", json=asked, headers=headers or {})

    def feedback(self, event_id, name="animals", **said):
        path = f"/v1/rankers/{name}/events/{event_id}/feedback"
        return self.ask("PUT", path, json=said or {"relevance": [1]})


def problem(answer, status, slug):
    """Return the problem that an answer is, which must be of a kind."""
    told = answer.json()
    assert (answer.status_code, told["status"]) == (status, status), told
    assert told["type"] == f"urn:keyhole:problem:{slug}"
    assert answer.headers["content-type"] == "application/problem+json"
    assert told["instance"] == f"urn:keyhole:request:{answer.headers['x-request-id']}"
    return told
