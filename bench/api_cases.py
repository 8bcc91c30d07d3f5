"""Requests made of the service's own description, right and wrong: ``python -m bench.api_cases``.

schemathesis makes them of /openapi.json, this module sends them to a service in memory, often to
rankers and events that exist, and holds every answer to the description: its status, its type, its
headers and its body. None may be a fault; what waits too long is refused as the description says.
"""

import argparse
import asyncio
import json
import sys
import time
from collections import Counter
from contextlib import suppress
from datetime import timedelta
from typing import Any

import httpx
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings, strategies as st
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode, checks

from keyhole.service.api.openapi import document
from keyhole.service.group_commit import Desk
from keyhole.service.http.app import build
from keyhole.service.keys import new_key
from keyhole.service.settings import Settings
from keyhole.service.store.memory import MemoryStore

checks.load_all_checks()
ANSWERS = [
    checks.CHECKS.get_one(name)
    for name in (
        "not_a_server_error",
        "status_code_conformance",
        "content_type_conformance",
        "response_headers_conformance",
        "response_schema_conformance",
    )
]
WAITING = ANSWERS[1:]
"""Of an answer that says that too much waits: no fault, but as described, to the letter."""
RANKERS = {
    "animals": {"items": ["ant", "bee", "cat", "dog"], "seed": 1},
    "queries": {"n_features": 2, "max_items": 3, "seed": 1},
    "apprentice": {"items": ["a", "b"], "mode": "apprentice", "apprentice_share": 0.5, "seed": 1},
}
EVENTS = ("first", "second", "third")
ENDING = ("DELETE /v1/rankers/{ranker}", "POST /v1/rankers/{ranker}/rename")
"""What is asked of a ranker of its own, which is made anew each time: others must stay."""


@schemathesis.serializer("application/x-ndjson")
def lines(_context, value):
    """Send text as it is, and whatever else is made up as JSON in a line of its own."""
    return (
        value.encode("utf-8", "replace") if isinstance(value, str) else json.dumps(value).encode()
    )


class Target:
    """A service in memory with a few rankers and events."""

    def __init__(self):
        self.loop = asyncio.new_event_loop()
        self.desk = Desk(MemoryStore())
        self.app = build(self.desk, Settings())
        self.running = self.app.router.lifespan_context(self.app)
        self.loop.run_until_complete(self.running.__aenter__())
        self.key, kept = new_key(["admin"], ["*"])  # one of the requests creates keys, and locks
        self.desk.store.add_key(kept)
        self.statuses: Counter[tuple[str, int]] = Counter()
        for name, body in RANKERS.items():
            self.send("PUT", f"/v1/rankers/{name}", json=body).raise_for_status()
        for event in EVENTS:
            for name in ("animals", "apprentice"):
                path = f"/v1/rankers/{name}/rank"
                self.send("POST", path, json={"event_id": event}).raise_for_status()

    def close(self):
        self.loop.run_until_complete(self.running.__aexit__(None, None, None))
        self.loop.run_until_complete(self.loop.shutdown_default_executor())
        self.loop.close()

    def send(self, method, path, **given):
        made = requests.Request(method, f"http://localhost{path}", **given).prepare()
        return self.answer(made)

    def answer(self, made):
        """Return the answer to a prepared request, sent without a wire."""
        return self.loop.run_until_complete(self._answer(made))

    async def _answer(self, made):
        url = httpx.URL(made.url)
        body = made.body or b""
        body = body.encode() if isinstance(body, str) else body
        headers = [
            (_bytes(name).lower(), _bytes(value))
            for name, value in (made.headers or {}).items()
            if _bytes(name).lower() != b"authorization"
        ]
        told, pieces, has_read = {}, [], False

        async def receive():
            nonlocal has_read
            if has_read:
                return {"type": "http.disconnect"}
            has_read = True
            return {"type": "http.request", "body": body, "more_body": False}

        async def send(message):
            told.update(message)
            pieces.append(message.get("body", b""))

        scope = {
            "type": "http",
            "method": made.method,
            "path": url.path,
            "raw_path": url.raw_path.partition(b"?")[0],
            "query_string": url.query,
            "headers": [*headers, (b"authorization", f"Bearer {self.key}".encode())],
        }
        await self.app(scope, receive, send)
        answer = httpx.Response(
            told["status"],
            headers=told["headers"],
            content=b"".join(pieces),
            request=httpx.Request(made.method, made.url),
            extensions={"http_version": b"HTTP/1.1"},
        )
        answer.elapsed = timedelta(0)
        return answer


def _bytes(text):
    return text if isinstance(text, bytes) else text.encode("latin-1", "replace")


def is_busy(answer):
    """Return whether an answer says that enough is waiting, which a slow machine comes to."""
    return answer.status_code == 503 and answer.json()["type"].endswith(":busy")


def attack(target, n_cases, number=0):
    """Send at least so many requests, many of them wrong, to every operation; return how many."""
    schema = schemathesis.openapi.from_dict(json.loads(document()))
    operations: list[Any] = [found.ok() for found in schema.get_all_operations()]  # type: ignore[union-attr]
    modes = (GenerationMode.POSITIVE, GenerationMode.NEGATIVE)
    n_sent = 0
    while n_sent < n_cases:
        each = max((n_cases - n_sent) // (len(operations) * len(modes)), 2)
        for operation in operations:
            for mode in modes:
                n_sent += _attack_one(target, operation, mode, each, number)
        number += 1
    return n_sent


def _attack_one(target, operation, mode, n_cases, number):
    ends = operation.label in ENDING
    names = st.sampled_from([None, "doomed"] if ends else [None, *RANKERS])
    events = st.sampled_from([None, *EVENTS])
    n_sent = 0

    @seed(number)
    @settings(
        max_examples=n_cases,
        deadline=None,
        database=None,
        phases=(Phase.generate,),
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy(generation_mode=mode), name=names, event=events)
    def run(case, name, event):
        nonlocal n_sent
        if ends:
            target.send("PUT", "/v1/rankers/doomed", json=RANKERS["animals"]).raise_for_status()
        for parameter, value in (("ranker", name), ("event", event)):
            if value is not None and parameter in (case.path_parameters or {}):
                case.path_parameters[parameter] = value
        made = requests.Request(**case.as_transport_kwargs(base_url="http://localhost")).prepare()
        answer = target.answer(made)
        n_sent += 1
        target.statuses[operation.label, answer.status_code] += 1
        case.validate_response(answer, checks=WAITING if is_busy(answer) else ANSWERS)

    with suppress(Unsatisfiable):  # where nothing is sent, nothing can be wrong with it
        run()
    return n_sent


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", type=int, nargs="?", default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    began, target = time.perf_counter(), Target()
    try:
        n_sent = attack(target, asked.cases, asked.seed)
    finally:
        for (label, status), times in sorted(target.statuses.items()):
            print(f"{times:6} {status} {label}")
        target.close()
    print(f"{n_sent} requests in {time.perf_counter() - began:.0f} s, and no fault.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
