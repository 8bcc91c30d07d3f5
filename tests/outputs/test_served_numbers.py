"""What the service tells again: lists of what each has, settings, verdicts, keys and warnings."""

import time
from typing import Any

import pytest

from keyhole.monitoring.classification import classify
from tests.outputs.observability import class_of, game_of
from tests.outputs.served import APPRENTICE, CHANGED, HOPELESS, LISTS, ONLINE, of_service
from tests.outputs.test_oracle_numbers import RATE, check_advice

pytestmark = pytest.mark.interpreted

ASKED: dict[str, Any] = {
    "animals": ONLINE, "apprentice": APPRENTICE, "lists": LISTS, "hopeless": HOPELESS,
    "chance": {"ranker": "random", "k": 2, "max_grade": 3.0, "seed": 1},
}  # fmt: skip
DAY = 24 * 60 * 60 * 1000


class Told:
    """What was told last of a name of the list, or all of it."""

    def __init__(self, outputs):
        self._outputs = outputs

    def __call__(self, name, which=-1):
        return self.all(name)[which]

    def all(self, name):
        return [each.content for each in self._outputs if each.name == name]


@pytest.fixture(scope="module")
def outputs():
    before = time.time() * 1000
    found = list(of_service())
    return found, before, time.time() * 1000


@pytest.fixture
def told(outputs):
    return Told(outputs[0])


def numbers_of(asked):
    """Return what was asked for that is a number."""
    return {
        name: value for name, value in asked.items()
        if isinstance(value, int | float) and not isinstance(value, bool)
    }  # fmt: skip


def test_settings_are_those_that_were_asked_for(told):
    """In the reply, in the list of rankers and in the log, as the owner said and as it is made."""
    configs = [e for page in told.all("GET /v1/rankers/{ranker}/events") for e in page["events"]
               if e["kind"] == "config"]  # fmt: skip
    for reply in (*told.all("PUT /v1/rankers/{ranker}"), *told.all("GET /v1/rankers/{ranker}")):
        asked = ASKED[reply["name"]]
        wanted = numbers_of(asked)
        (config,) = [c for c in configs if c["request"] == reply["request"]][:1]
        for request in (reply["request"], config["request"]):
            assert numbers_of(request) == wanted
            assert request.get("settings", {}) == asked.get("settings", {})
        for spec in (reply["spec"], config["spec"]):
            made = {**asked.get("settings", {}), "seed": asked["seed"], "run": 0}
            made |= {"n_features": 2, "n_items": 5, "k": 1} if "n_features" in asked else {
                "n_items": 4, "k": asked.get("k", 1), "max_grade": asked.get("max_grade", 1.0),
            }  # fmt: skip
            known = {name: value for name, value in made.items() if name in spec}
            assert {name: spec[name] for name in known} == known
            assert set(numbers_of(spec)) <= {*made, "penalty"}
            assert spec.get("penalty", 1.0) == 1.0
        assert config["k"] == asked.get("k", 1)
        for name in ("wait_seconds", "missing", "apprentice_share"):
            if name in config and name in asked:
                assert config[name] == asked[name]
        assert reply["code"] == {"state": "ready", "seconds": 0.0}


def test_lists_have_what_each_of_them_has(told):
    rankers = {each["name"]: each for each in told.all("GET /v1/rankers/{ranker}")}
    assert {each["name"]: each for each in told("GET /v1/rankers")["rankers"]} == rankers
    pages = {each["summary"]["name"]: {**each["summary"]}
             for each in told.all("GET /rankers/{ranker}.json")}  # fmt: skip
    for page in pages.values():  # which takes long where a state is large
        del page["sha256"]
    assert {each["name"]: each for each in told("GET /index.json")["rankers"]} == pages
    assert told("GET /index.json")["page"]["texts"]["live"] == f"{len(ASKED)} rankers"
    done = [each for each in told.all("GET /v1/rankers/{ranker}/evaluations/{evaluation}")
            if each["status"] in ("done", "failed")]  # fmt: skip
    lists = told.all("GET /v1/rankers/{ranker}/evaluations")
    assert [each["evaluations"] for each in lists] == [[each] for each in done]
    (failed,) = (each["problem"] for each in done if each["status"] == "failed")
    assert failed["status"] == 422
    assert f"got {answered_rounds(told, after=3)} rounds of one that does not" in failed["detail"]
    states = told.all("GET /v1/rankers/{ranker}/state")
    assert len(states) == len(rankers)
    for state, ranker in zip(states, rankers.values(), strict=True):
        for name in ("seq", "round", "waiting"):
            assert state[name] == ranker[name]


def answered_rounds(told, after):
    """Return how many whole lists of the first ranker were answered, from its log."""
    log = told("GET /v1/rankers/{ranker}/events", which=1)["events"]  # after its first page
    assert log[0]["request"]["seed"] == ONLINE["seed"]
    said = {e["event_id"] for e in log if e["kind"] == "feedback" and e["status"] != "not_shown"}
    whole = [e for e in log if e["kind"] == "rank" and not e.get("excluded")]
    return sum(e["event_id"] in said and e["seq"] > after for e in whole)


def test_what_cannot_be_learnt_has_the_verdict_of_its_game(told):
    game = game_of("NDCG@2", 4, 1, 2)
    assert class_of(game) == "hopeless"
    replies = [
        *told.all("PUT /v1/rankers/{ranker}"), *told.all("GET /v1/rankers/{ranker}"),
        *told("GET /v1/rankers")["rankers"], *told("GET /index.json")["rankers"],
        *[each["summary"] for each in told.all("GET /rankers/{ranker}.json")],
        *[e for page in told.all("GET /v1/rankers/{ranker}/events") for e in page["events"]],
    ]  # fmt: skip
    verdicts = [each["verdict"] for each in replies if each.get("verdict") is not None]
    assert len(verdicts) >= 6
    for verdict in verdicts:
        assert [verdict[name] for name in ("n_items", "k", "grades")] == [4, 1, 2]
        assert (verdict["class"], verdict["rate"]) == ("hopeless", RATE["hopeless"])
        assert (verdict["tolerance"], verdict["margin"]) == (0.0, None)
        assert verdict == verdicts[0]
    rule = classify("NDCG@2", 4, 1, method="rule")  # which needs no compiled code
    assert (verdicts[0]["source"], verdicts[0]["reason"]) == ("rule", rule.reason)
    check_advice(verdicts[0]["advice"], "NDCG@2", 4, 1, 2, "hopeless")


def test_warnings_count_lists_and_rounds(told):
    """Changes were seen in rounds 4, 9 and 20: every 8 rounds, and 3 lists wait."""
    for summary in told("GET /index.json")["rankers"]:
        waiting = summary["counts"]["waiting"]
        said = " ".join(summary["warnings"])
        if summary["name"] == "animals":
            rounds = [alarm["round"] for alarm in summary["alarms"]]
            assert rounds == [4, 9, 20]
            assert [alarm["seq"] for alarm in summary["alarms"]] == [12, 27, 60]
            assert f"{waiting} lists wait for feedback, and the crowd seems to change" in said
            assert f"every {(20 - 4) / 2:.0f} rounds: changes are seen late" in said
        if summary["name"] == "hopeless":
            assert "NDCG@2 cannot be learnt from the relevance of the top 1" in said
    for page in told.all("GET /rankers/{ranker}.json"):
        rows = page["page"]["rows"]["warnings"]
        assert [row["text"] for row in rows] == page["summary"]["warnings"]


def test_keys_end_as_many_days_after_they_were_made(told, outputs):
    _, before, after = outputs
    lasting, ending = told.all("POST /v1/keys")
    assert lasting["expires_at"] is None
    assert ending["expires_at"] == ending["created_at"] + 3 * DAY
    for key in (lasting, ending):
        assert before - 1 <= key["created_at"] <= after
    listed = {key["prefix"]: key for key in told("GET /v1/keys")["keys"]}
    for key in (lasting, ending):
        row = listed[key["prefix"]]
        assert (row["created_at"], row["expires_at"]) == (key["created_at"], key["expires_at"])
        assert key["last_used_at"] is None
    assert listed[ending["prefix"]]["last_used_at"] is None
    assert before - 1 <= (listed[lasting["prefix"]]["last_used_at"] or before) <= after


def test_rankers_that_are_changed_tell_how_they_are(told):
    """Each has shown a list, then waits shorter, has other items, another name, and begins anew."""
    path, where = "PATCH /v1/rankers/{ranker}", "/v1/rankers/{ranker}"
    fixed, lists = CHANGED["changing"], CHANGED["changing-lists"]
    steps: list[Any] = [
        (told.all(path)[0], {**fixed, "wait_seconds": 45.0}, (3, 3, 1, 1)),
        (told.all(path)[1], {**lists, "wait_seconds": 45.0}, (3, 3, 1, 1)),
    ]
    for method, seq, items in (
        ("PUT", 4, ["ant", "bee", "cat"]),
        ("POST", 5, ["bee", "cat", "eel"]),
    ):
        asked = {**fixed, "wait_seconds": 45.0, "items": items}
        steps.append((told(f"{method} {where}/items"), asked, (seq, seq, 1, 1)))
    last = [steps[3][1], steps[1][1]]
    for after, numbers in (("rename", (1, 2, 1, 0)), ("reset", (3, 3, 0, 0))):
        replies = told.all(f"POST {where}/{after}")
        steps += [(reply, asked, numbers) for reply, asked in zip(replies, last, strict=True)]
    for reply, asked, numbers in steps:
        assert {name: reply["request"].get(name) for name in asked} == asked
        assert (reply["version"], reply["seq"], reply["round"], reply["waiting"]) == numbers
        assert reply["code"]["seconds"] == 0.0
        spec = {**asked["settings"], "seed": asked["seed"], **asked.get("spec", {})}
        if "items" in asked:
            spec |= {"items": asked["items"], "n_items": len(asked["items"]), "k": asked["k"]}
        assert {name: reply["spec"][name] for name in spec} == spec


def test_forms_begin_as_the_interface_does(told):
    form = told("GET /rankers/{ranker}/evaluate.json")["form"]
    assert (form["confidence"], form["after"]) == ("0.95", "0")
