"""Every endpoint and page of a service asked, on rankers of four grades, of several modes."""

import io
import json
from collections.abc import Iterator
from typing import Any

import polars
from prometheus_client.parser import text_string_to_metric_families

from keyhole.service.commands import Expire
from keyhole.service.dashboard.evaluate_page import result_page
from keyhole.service.dashboard.event_page import event_pairs, event_rows
from tests.outputs.leaves import Output
from tests.service.asking import ANIMALS, NDJSON, Asked

LIKED = {"ant": [3, 2, 3], "bee": [0, 2, 1], "cat": [1, 0, 0], "dog": [0, 0, 2]}
"""What users think of each animal, three of them in turn."""
ONLINE = {
    "ranker": "epsilon-greedy", "k": 2, "max_grade": 3.0, "simulation": True, "seed": 7,
    "wait_seconds": 90.0, "missing": 1.0, "settings": {"scale": 0.7},
}  # fmt: skip
APPRENTICE = {"k": 2, "mode": "apprentice", "apprentice_share": 0.25, "seed": 3}
LISTS = {
    "items": None, "n_features": 2, "max_items": 5, "ranker": "linucb", "seed": 2,
    "settings": {"width": 0.4},
}  # fmt: skip
HOPELESS = {"measure": "NDCG@2", "accept_linear_regret": True, "seed": 5}
FORM = {"policy": "order", "order": "dog\ncat\nbee\nant", "baseline": "uniform",
        "confidence": "0.9", "bound": "student-t", "after": "3"}  # fmt: skip


class Heard:
    """A service whose answers are kept as outputs."""

    def __init__(self, service: Asked) -> None:
        self.service = service
        self.outputs: list[Output] = []
        self.n_lists = 0

    def ask(self, method: str, path: str, echoes: Any = None, **given: Any) -> Any:
        """Ask, and keep the JSON of the answer under its path without names of rankers and ids."""
        query, names = given.pop("query", ""), given.pop("names", {})
        answer = self.service.ask(method, path.format(**names) + query, **given)
        assert answer.status_code < 400, answer.text
        told = answer.json()
        self.outputs.append(Output(f"{method} {path}", told, echoes or {}))
        return told

    def rank(self, ranker: str, **asked: Any) -> Any:
        """Show a list."""
        where, self.n_lists = "/v1/rankers/{ranker}/rank", self.n_lists + 1
        body = {"event_id": f"list-{self.n_lists}", **asked}  # by which an apprentice draws
        return self.ask("POST", where, names={"ranker": ranker}, json=body)

    def feedback(self, ranker: str, event: str, **said: Any) -> Any:
        """Say what came of a list."""
        where = "/v1/rankers/{ranker}/events/{event}/feedback"
        return self.ask("PUT", where, names={"ranker": ranker, "event": event}, json=said)

    def expire(self, ranker: str) -> None:
        """Stop waiting for the feedback of the list shown last."""
        live = self.service.desk.engine.ranker(ranker)
        given = self.service.desk.submit(Expire(ranker, (live.seq,)))
        self.service.loop.run_until_complete(given)


def create(heard: Heard, named: str, **asked: Any) -> None:
    """Create a ranker: what was asked for is told again, but for what is as always."""
    body = {name: value for name, value in {"items": ANIMALS, **asked}.items() if value is not None}
    echoes = {
        f"request.{name}": value
        for name, value in body.items()
        if isinstance(value, int | float) and not isinstance(value, bool)
    }
    for value in asked.get("settings", {}).values():
        echoes["request.settings.{}"] = value
    heard.ask("PUT", "/v1/rankers/{ranker}", echoes, names={"ranker": named}, json=body)


def play_online(heard: Heard, n_rounds: int = 30) -> None:
    """Let users answer early, late or never, and some lists be short of an item."""
    for round in range(n_rounds):
        asked = {"exclude": ["ant"]} if round % 7 == 3 else {}
        shown = heard.rank("animals", **asked)
        grades = {name: float(each[round % 3]) for name, each in LIKED.items()}
        said: dict[str, Any] = {"relevance": [grades[n] for n in shown["ranking"][:2]]}
        if round % 6 == 5:
            heard.expire("animals")
            if round % 12 == 5:
                continue
        elif round % 10 == 4:
            said = {"status": "none"}
        elif round % 10 == 8:
            said = {"status": "not_shown"}
        if said.get("relevance") and not asked:
            said["truth"] = grades
        heard.feedback("animals", shown["event_id"], **said)
    live = heard.service.desk.engine.ranker("animals")
    for round in (4, 9, 20):
        live.tally.count_alarm(round, 3 * round)
    deferred = heard.rank("animals", deferred=True)["event_id"]
    path = f"/v1/rankers/animals/events/{deferred}/activate"
    assert heard.service.ask("POST", path).status_code == 204
    left = [heard.rank("animals")["event_id"] for _ in range(3)]
    some = {"requests": [{"event_id": "many-1"}, {"exclude": ["nobody"]}, {"event_id": "many-2"}]}
    heard.ask("POST", "/v1/rankers/{ranker}/rank-batch", names={"ranker": "animals"}, json=some)
    lines = [{"event_id": left[0], "relevance": [2, 1]}, {"event_id": "nobody", "status": "none"}]
    body = "\n\n".join(map(json.dumps, lines)).encode()
    path = "/v1/rankers/{ranker}/feedback-batch"
    answer = heard.service.ask("POST", path.format(ranker="animals"), content=body, headers=NDJSON)
    told = [json.loads(line) for line in answer.text.splitlines()]
    heard.outputs.append(Output(f"POST {path}", told))


def play_others(heard: Heard, n_rounds: int = 24) -> None:
    """Let an apprentice look on, and a ranker of documents learn."""
    for round in range(n_rounds):
        baseline = ANIMALS[round % 4 :] + ANIMALS[: round % 4]
        shown = heard.rank("apprentice", baseline=baseline)
        relevance = [float(LIKED[name][round % 3] > 1) for name in shown["ranking"][:2]]
        heard.feedback("apprentice", shown["event_id"], relevance=relevance)
    for round in range(4):
        items = [{"id": name} for name in "xyz"]
        rows = [[0.1 * round, 0.5], [0.7, 0.1], [0.3, 0.2 + 0.1 * round]]
        shown = heard.rank("lists", items=items, features=rows)
        heard.feedback("lists", shown["event_id"], relevance=[round % 2])
    heard.rank("hopeless")


def evaluate(heard: Heard) -> None:
    """Judge other lists, by the interface and by the form of the page."""
    path = "/v1/rankers/{ranker}/evaluations"
    asked = {"policy": ANIMALS[::-1], "baseline": "uniform", "confidence": 0.9,
             "bound": "student-t", "after": 3}  # fmt: skip
    for ranker in ("apprentice", "chance", "animals"):  # the last one knows no chances
        begun = heard.ask(
            "POST", path, {"request.confidence": 0.9, "request.after": 3},
            names={"ranker": ranker}, json=asked,
        )  # fmt: skip
        where = f"{path}/{{evaluation}}"
        while True:
            done = heard.ask(
                "GET", where, {"request.confidence": 0.9, "request.after": 3},
                names={"ranker": ranker, "evaluation": begun["id"]},
            )  # fmt: skip
            if done["status"] in ("done", "failed"):
                break
        heard.ask("GET", path, names={"ranker": ranker})
    page = "/rankers/{ranker}/evaluate.json"
    heard.ask("GET", page, names={"ranker": "chance"})
    token = heard.service.ask("GET", "/rankers/chance/evaluate").text
    csrf = token.split('name="csrf" value="')[1].split('"')[0]
    judged = heard.ask(
        "POST", page, {"form.confidence": "0.9", "form.after": "3"}, names={"ranker": "chance"},
        data={**FORM, "csrf": csrf},
    )  # fmt: skip
    heard.outputs.append(Output("page of an evaluation", result_page(judged["result"])))


def read(heard: Heard) -> None:
    """Read all that can be read of all rankers."""
    heard.ask("GET", "/v1/rankers")
    heard.ask("GET", "/index.json")
    for ranker in ("animals", "apprentice", "lists", "hopeless", "chance"):
        named = {"ranker": ranker}
        for path in ("", "/state"):
            heard.ask("GET", f"/v1/rankers/{{ranker}}{path}", names=named)
        heard.ask("GET", "/rankers/{ranker}.json", names=named)
        heard.ask("GET", "/rankers/{ranker}/events.json", names=named)
        path = "/v1/rankers/{ranker}/events"
        page = heard.ask("GET", path, names=named, query="?limit=9")
        whole = heard.service.ask("GET", f"/v1/rankers/{ranker}/events?format=ndjson").text
        lines = [json.loads(line) for line in whole.splitlines()]
        assert lines[: len(page["events"])] == page["events"]
        heard.outputs.append(Output(f"GET {path}", {"events": lines}))
        table = heard.service.ask("GET", f"/v1/rankers/{ranker}/events?format=parquet").content
        rows = polars.read_parquet(io.BytesIO(table)).rows(named=True)
        heard.outputs.append(Output(f"GET {path}?format=parquet", rows))
        for event in [e["event_id"] for e in lines if e["kind"] == "rank"][:12]:
            where = "/v1/rankers/{ranker}/events/{event}"
            told = heard.ask("GET", where, names={**named, "event": event})
            page = heard.service.ask("GET", f"/rankers/{ranker}/events/{event}.json").json()
            assert page == told  # the page has what the interface has
            shown = {"rows": event_rows(told), "pairs": event_pairs(told)}
            heard.outputs.append(Output("page of an event", shown))
    heard.outputs.append(Output("GET /metrics", series(heard.service.ask("GET", "/metrics").text)))
    problem = heard.service.ask("GET", "/v1/rankers/nobody").json()
    heard.outputs.append(Output("a problem", problem))
    heard.ask("GET", "/healthz")
    heard.ask("GET", "/readyz")


def series(text: str) -> dict[str, list[float]]:
    """Return the series of Prometheus by name."""
    found: dict[str, list[float]] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            found.setdefault(sample.name, []).append(sample.value)
    return found


def follow(heard: Heard) -> None:
    """Hear what is told live."""

    async def first() -> Any:
        changes: Any = heard.service.desk.subscribe("animals")
        told = await anext(changes)
        await changes.aclose()
        return told

    told = heard.service.loop.run_until_complete(first())
    heard.outputs.append(Output("GET /v1/rankers/{ranker}/stream", told))


CHANGED: dict[str, Any] = {
    "changing": {**ONLINE, "items": ANIMALS, "apprentice_share": 0.5},
    "changing-lists": {name: each for name, each in LISTS.items() if each is not None},
}


def change(heard: Heard) -> None:
    """Change rankers in all ways, once each has shown a list."""
    path = "/v1/rankers/{ranker}"
    for named, asked in CHANGED.items():
        heard.service.ask("PUT", path.format(ranker=named), json=asked).raise_for_status()
        shown = {"items": [{"id": "x"}], "features": [[0.5, 0.25]]} if "lists" in named else {}
        heard.service.rank(named, **shown).raise_for_status()
        heard.ask("PATCH", path, names={"ranker": named}, json={"wait_seconds": 45.0})
    fixed = {"ranker": "changing"}
    heard.ask("PUT", f"{path}/items", names=fixed, json={"items": ANIMALS[:3]})
    heard.ask("POST", f"{path}/items", names=fixed, json={"add": ["eel"], "remove": ["ant"]})
    for named in CHANGED:
        told = heard.ask(
            "POST", f"{path}/rename", names={"ranker": named}, json={"to": f"{named}-again"}
        )
        heard.ask("POST", f"{path}/reset", names={"ranker": told["name"]})


def keys(heard: Heard) -> None:
    """Make keys, after which nothing can be asked without one."""
    asked = {"scopes": ["admin", "read"], "rankers": ["*"]}
    first = heard.ask("POST", "/v1/keys", json=asked)
    heard.service.headers = {"authorization": f"Bearer {first['key']}"}
    heard.ask("POST", "/v1/keys", json={**asked, "expires_days": 3})
    heard.ask("GET", "/v1/keys")


def of_service() -> Iterator[Output]:
    """Yield every answer of a service that has numbers in it."""
    with Asked() as service:
        heard = Heard(service)
        create(heard, "animals", **ONLINE)
        create(heard, "apprentice", **APPRENTICE)
        create(heard, "lists", **LISTS)
        create(heard, "hopeless", **HOPELESS)
        create(heard, "chance", ranker="random", k=2, max_grade=3.0, seed=1)
        play_online(heard)
        play_others(heard)
        for round in range(20):
            shown = heard.rank("chance")
            relevance = [float(LIKED[name][round % 3]) for name in shown["ranking"][:2]]
            heard.feedback("chance", shown["event_id"], relevance=relevance)
        evaluate(heard)
        read(heard)
        follow(heard)
        change(heard)
        keys(heard)
        yield from heard.outputs
