"""Asks everything of rankers after they were warmed up, and prints what was compiled for it.

It runs in a process of its own, as what other tests compiled would not be missed here.
"""

import base64
import json
import sys

import numba
import numpy as np

from keyhole.base.errors import InvalidInput
from keyhole.rankers import RANKERS
from keyhole.rankers.lists.base import ContextualRanker
from keyhole.service.commands import RankerRequest
from keyhole.service.configuration import config_of
from keyhole.service.engine import Engine
from keyhole.service.warm_up import warm_up
from tests.service.asking import NDJSON, Asked

MEASURES = {
    "semibandit": "Precision@2",
    "neighbourhood": "Precision@2",
    "slam": "NDCG",
    "max-violation": "NDCG",
    "kernel-slam": "NDCG",
    "kernel-max-violation": "NDCG",
}
ITEMS = ["ant", "bee", "cat", "dog"]


def request_of(kind):
    asked = {"ranker": kind, "seed": 1, "measure": MEASURES.get(kind, "DCG")}
    asked["accept_linear_regret"] = asked["measure"] == "NDCG"
    if issubclass(RANKERS[kind], ContextualRanker):
        asked |= {"n_features": 3, "max_items": 6}
    else:
        asked["items"] = ITEMS
    try:
        config_of(RankerRequest(**asked, k=1), kind, b"secret")
    except InvalidInput:  # some learn from whole lists alone
        return {**asked, "k": asked.get("max_items", len(ITEMS))}
    return {**asked, "k": 1}


def batch(service, kind, shown):
    lines = [json.dumps({"event_id": event, "status": "none"}) for event in shown]
    body = "\n".join(lines).encode()
    answer = service.ask("POST", f"/v1/rankers/{kind}/feedback-batch", content=body, headers=NDJSON)
    assert all(json.loads(line)["status"] == 201 for line in answer.text.splitlines()), answer.text


def lists(kind, k):
    """Yield what lists can be asked for: bodies of requests."""
    if not issubclass(RANKERS[kind], ContextualRanker):
        yield {}
        if k < len(ITEMS):
            yield {"exclude": ["ant"]}
        return
    for n_items in (1, 2, 6):
        items = [{"id": f"d{i}"} for i in range(n_items)]
        numbers = np.random.default_rng(0).random((n_items, 3))
        yield {"items": items, "features": numbers.tolist()}
        for dtype in ("f4", "f8"):
            packed = base64.b64encode(numbers.astype(f"<{dtype}").tobytes()).decode()
            features = {"shape": [n_items, 3], "dtype": dtype, "b64": packed}
            yield {"items": items, "features": features}
            yield {"features": features}
            if n_items > 1:
                yield {"items": items, "features": features, "exclude": ["d0"]}


def ask_all(service, kind):
    asked = request_of(kind)
    assert service.ask("PUT", f"/v1/rankers/{kind}", json=asked).status_code == 201
    for mode in ("online", "apprentice", "frozen", "online"):
        changed = {**asked, "mode": mode, "missing": 0.0}
        assert service.ask("PUT", f"/v1/rankers/{kind}", json=changed).status_code == 200
        for body in lists(kind, asked["k"]):
            shown = [service.rank(kind, **body).json() for _ in range(4)]
            said = {"relevance": [1.0] * shown[0]["k"]}
            service.feedback(shown[0]["event_id"], kind, **said)
            batch(service, kind, [each["event_id"] for each in shown[1:]])
    for path in ("", ".json", "/events", "/evaluate", "/evaluate.json"):
        service.ask("GET", f"/rankers/{kind}{path}")
    for path in ("", "/state", "/events", "/events?format=ndjson"):
        service.ask("GET", f"/v1/rankers/{kind}{path}")
    service.ask("GET", "/")
    if not issubclass(RANKERS[kind], ContextualRanker):
        change_items(service, kind, asked)
    service.desk.engine.ranker(kind).snapshot()


def change_items(service, kind, asked):
    told = {"relevance": [1.0] * asked["k"]}
    for _ in range(12):
        service.feedback(service.rank(kind).json()["event_id"], kind, **told)
    answer = service.ask("POST", f"/v1/rankers/{kind}/evaluations")
    if answer.status_code == 202:
        where = answer.headers["location"]
        while service.ask("GET", where).json()["status"] in {"queued", "running"}:
            pass
    shown = [service.rank(kind).json()["event_id"] for _ in range(3)]
    items = [*ITEMS[1:], "eel"]
    service.ask("PUT", f"/v1/rankers/{kind}", json={**asked, "items": items})
    service.feedback(shown[0], kind, **told)
    batch(service, kind, shown[1:])
    service.feedback(service.rank(kind).json()["event_id"], kind, **told)


def main(kinds):
    found = {}
    for kind in kinds:
        request = RankerRequest(**request_of(kind))
        warm_up(config_of(request, kind, b"secret"))
        with numba.core.event.install_recorder("numba:compile") as recorder:
            with Asked() as service:
                ask_all(service, kind)
                store = service.desk.store
            Engine(store)
        names = [each.data["dispatcher"].py_func.__qualname__ for _, each in recorder.buffer]
        if names:
            found[kind] = sorted(set(names))
    sys.stdout.write(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1:])
