"""Simulated users of a service that answers from a list: what it is asked and told."""

import asyncio
import json
import math
import shlex
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import keyhole
from keyhole.base.errors import InvalidInput, KeyholeError
from keyhole.cli import demo, simulate, simulated_users
from keyhole.cli.app import app
from keyhole.cli.simulated_users import Crowd, Results, Visits, find_or_create, judge, made_up_names
from keyhole.client import RankerInfo, Ranking, ServiceAway
from keyhole.client.replies import FeedbackResult
from keyhole.worlds.flips import Flips
from keyhole.worlds.phases import Independent

pytestmark = pytest.mark.interpreted


class Answers:
    """A client of a service that shows its items in turn, and remembers what it was told."""

    made: Any = None

    def __init__(self, url="", **given):
        self.url, self.given = url, given
        self.there: list[RankerInfo] = []
        self.put: list[tuple[str, dict[str, Any]]] = []
        self.told: list[tuple[int, list[float], dict[str, float] | None]] = []
        self.n_shown, self.names, self.k = 0, [], 1
        self.n_waiting, self.n_at_once = 0, 0
        Answers.made = self

    async def __aenter__(self):
        return self

    async def __aexit__(self, *_):
        pass

    async def rankers(self):
        return self.there

    async def put_ranker(self, name, **asked):
        self.put.append((name, asked))
        self.names, self.k = asked["items"], asked["k"]
        known = ["items", "k", "measure", "simulation"]
        request = {each: asked[each] for each in known if each in asked}
        return RankerInfo(name, 1, request)

    async def rank(self, _):
        self.n_waiting += 1
        self.n_at_once = max(self.n_at_once, self.n_waiting)
        await asyncio.sleep(0)
        self.n_waiting -= 1
        place = self.n_shown % len(self.names)
        self.n_shown += 1
        shown = [*self.names[place:], *self.names[:place]]
        return Ranking(shown, str(self.n_shown - 1), self.k)

    async def feedback(self, _, ranking, relevance, *, truth=None):
        self.told.append((int(ranking.event_id), relevance, truth))
        return FeedbackResult("learned" if int(ranking.event_id) % 3 else "late")


@pytest.fixture
def asked(monkeypatch):
    """Return what runs the command and returns its client and its JSON."""
    monkeypatch.setattr(keyhole.client, "AsyncClient", Answers)

    def run(options, code=0):
        line = f"simulate-users http://x {options} --json"
        done = CliRunner().invoke(app, shlex.split(line))
        assert done.exit_code == code, done.output
        return Answers.made, json.loads(done.stdout)

    return run


def dcg(row, order):
    return math.fsum(row[item] / math.log2(place + 2) for place, item in enumerate(order))


@pytest.mark.parametrize("drift", [None, 0.5])
@pytest.mark.parametrize("top", [1, 2])
def test_what_users_of_a_service_see_is_added_up_by_hand(asked, top, drift):
    n, rounds, seed = 4, 30, 3
    options = f"--items {n} --rounds {rounds} --seed {seed} --top {top} --lose 0.3"
    client, record = asked(f"{options} --delay-rounds 2" + (f" --drift {drift}" if drift else ""))
    due: dict[int, list[int]] = {}
    rows, scores, first, lost = [], [], [], 0
    for round in range(rounds):
        row = Flips(n).relevance(round, seed=seed).tolist()
        if drift and round >= 15:
            row = Flips(n).relabelled(np.arange(n)[::-1]).relevance(round, seed=seed).tolist()
        order = [(round + place) % n for place in range(n)]
        rows.append(row)
        scores.append(dcg(row, order))
        first.append(sum(row[item] for item in order[:top]) / top)
        is_lost, delay, _ = np.random.default_rng((seed, round)).random(3).tolist()
        if is_lost < 0.3:
            lost += 1
        else:
            due.setdefault(round + int(delay * 5), []).append(round)
    told = [round for when in sorted(due) for round in due[when]]
    assert [round for round, *_ in client.told] == told
    names = made_up_names(n)
    for round, relevance, truth in client.told:
        assert relevance == [rows[round][(round + place) % n] for place in range(top)]
        assert truth == dict(zip(names, rows[round], strict=True))
    totals = [math.fsum(column) for column in zip(*rows, strict=True)]
    best = dcg([total / rounds for total in totals], sorted(range(n), key=lambda i: -totals[i]))
    assert record["rounds"] == rounds
    assert record["average_score"] == pytest.approx(math.fsum(scores) / rounds)
    assert record["best_fixed_score"] == pytest.approx(best)
    assert record["average_regret"] == pytest.approx(best - math.fsum(scores) / rounds)
    assert record["mean_relevance"] == pytest.approx(math.fsum(first) / rounds)
    late = sum(round % 3 == 0 for round in told)
    assert record["feedback"] == {"lost": lost, "learned": len(told) - late, "late": late}
    assert record["rounds_per_second"] == pytest.approx(rounds / record["seconds"])
    assert (record["seed"], record["ranker"], record["measure"]) == (seed, "crowd", "DCG")
    ((name, given),) = client.put
    assert (name, given) == ("crowd", {
        "items": names, "k": top, "measure": "DCG", "max_grade": 1.0, "wait_seconds": 5.0,
        "simulation": True,
    })  # fmt: skip
    assert client.given == {"key": None, "retries": 6}
    full = record["full_information"]
    assert full["average_regret"] == pytest.approx(best - full["average_score"])


def test_options_of_the_command_reach_the_service(asked):
    options = "--items tea,milk,jam --ranker shop --measure SumLoss --rounds 9 --key k --wait 7"
    client, record = asked(f"{options} --set world.flip=0.5 --seed 1")
    ((name, given),) = client.put
    assert (name, given["items"]) == ("shop", ["tea", "milk", "jam"])
    assert (given["measure"], given["wait_seconds"]) == ("SumLoss", 7.0)
    assert (client.url, client.given["key"]) == ("http://x", "k")
    rows = [Flips(3, flip=0.5).relevance(round, seed=1).tolist() for round in range(9)]
    scores = [
        sum((place + 1) * row[(round + place) % 3] for place in range(3))
        for round, row in enumerate(rows)
    ]
    assert record["average_score"] == pytest.approx(sum(scores) / 9)
    assert record["is_loss"] is True
    assert record["average_regret"] == pytest.approx(sum(scores) / 9 - record["best_fixed_score"])
    client, _ = asked("--items 3 --rounds 2 --delay 0.001 --rate 500 --concurrency 2")
    assert client.put[0][1]["wait_seconds"] == 5.0
    for wrong in ("--rounds 0", "--drift 1.5", "--drift -0.1", "--rate 0", "--concurrency 0",
                  "--concurrency 1001", "--lose 1.1", "--delay -1", "--world graded"):  # fmt: skip
        line = shlex.split(f"simulate-users http://x --rounds 2 {wrong}")
        assert CliRunner().invoke(app, line).exit_code == 2, wrong


def test_a_delay_in_seconds_is_waited_for_four_times(monkeypatch):
    plans = []
    monkeypatch.setattr(simulate, "_play", lambda _, plan, __: plans.append(plan))
    for options in ("", "--delay 2.5 --delay-rounds 4 --lose 0.25 --drift 0.29 --rate 8 "
                    "--concurrency 3 --rounds 100 --seed 6"):  # fmt: skip
        done = CliRunner().invoke(app, shlex.split(f"simulate-users http://x {options}"))
        assert done.exit_code == 0, done.output
    usual, asked = plans
    assert (usual.wait_seconds, usual.rounds, usual.rate, usual.concurrency) == (
        5.0,
        10_000,
        None,
        1,
    )
    assert (usual.ranker, usual.asked) == ("crowd", {})
    crowd = usual.crowd
    told = (crowd.seed, crowd.lose, crowd.delay_rounds, crowd.delay_seconds, crowd.changes_at)
    assert told == (0, 0.0, 0.0, 0.0, None)
    assert (asked.wait_seconds, asked.rounds, asked.rate, asked.concurrency) == (10.0, 100, 8.0, 3)
    crowd = asked.crowd
    told = (crowd.seed, crowd.lose, crowd.delay_rounds, crowd.delay_seconds, crowd.changes_at)
    assert told == (6, 0.25, 4.0, 2.5, 28)  # of 28.999…


def test_the_fate_of_feedback_is_drawn_by_seed_and_round():
    crowd = Crowd(Flips(3), 5, lose=0.4, delay_rounds=1.5, delay_seconds=0.25)
    for round in range(40):
        lost, rounds, seconds = np.random.default_rng((5, round)).random(3).tolist()
        wanted: Any = (lost < 0.4, int(rounds * 4.0), pytest.approx(seconds * 0.5))
        assert tuple(crowd.fate(round)) == wanted
    for wrong in ({"lose": -0.1}, {"lose": 1.1}, {"delay_rounds": -1}, {"delay_rounds": 1e7},
                  {"delay_seconds": -1}, {"delay_seconds": 86_401}):  # fmt: skip
        with pytest.raises(InvalidInput):
            Crowd(Flips(3), **wrong)
    Crowd(Flips(3), lose=1.0, delay_rounds=1e6, delay_seconds=86_400.0)


def test_nothing_seen_has_no_mean():
    assert Results().mean_relevance == 0.0
    assert Results({0: 1.0, 3: 2.0}, top_relevance=3.0).mean_relevance == 1.5
    with pytest.raises(InvalidInput, match="The number of rounds played"):
        judge(Results(), keyhole.measure("DCG"), 0)
    seen = Results({0: 1.0}, {0: np.array([1.0, 0.0])})
    assert judge(seen, keyhole.measure("DCG"), 0)["rounds_per_second"] is None


def there(**request):
    return RankerInfo("a", 1, request)


def found(client, asked, world=None):
    return asyncio.run(find_or_create(client, "a", world or Flips(3), asked, 9.0))


def test_a_ranker_that_is_there_must_be_the_one_that_was_asked_for():
    client = Answers()
    client.there = [there(items=["x", "y", "z"], k=2, measure="AP"), RankerInfo("b", 1, {})]
    same = {"k": 2, "measure": "AP", "items": ["z", "x", "y"]}
    for given in ({}, same, {"k": 2}, {"measure": "AP"}):
        assert found(client, given) is client.there[0]
    assert client.put == []
    for asked, why in (({"k": 1}, "The k of the existing ranker a must be 2, got 1"),
                       ({"measure": "DCG"}, "The measure of the existing ranker a must be AP"),
                       ({"items": ["x", "y", "w"]}, "one that ranks others")):  # fmt: skip
        with pytest.raises(InvalidInput, match=why):
            found(client, asked)
    for n in (2, 4):
        with pytest.raises(InvalidInput, match="The number of items of the crowd of a"):
            found(client, {}, Flips(n))
    client.there = [there(items=["x", "y", "z"])]  # of an older service
    assert found(client, {"k": 1, "measure": "DCG"}) is client.there[0]
    client.there = [there(n_features=2)]
    with pytest.raises(InvalidInput, match="one that ranks documents"):
        found(client, {})
    client.there = []
    graded = Independent(3, chances=[0.1, 0.2, 0.3])
    assert found(client, {"k": 2}, graded).name == "a"
    assert client.put == [("a", {
        "items": ["item-1", "item-2", "item-3"], "k": 2, "measure": "DCG", "max_grade": 1.0,
        "wait_seconds": 9.0, "simulation": True,
    })]  # fmt: skip


def test_a_service_that_is_no_simulation_is_told_no_truth():
    async def play(**request):
        client: Any = Answers()
        client.names = ["x", "y"]
        await Visits(client, there(items=["x", "y"], **request), ["x", "y"], Crowd(Flips(2))).play(
            3
        )
        assert client.n_at_once == 1
        return [truth for *_, truth in client.told]

    assert asyncio.run(play()) == [None] * 3
    assert None not in asyncio.run(play(simulation=True))


# --------------------------------------------------------------------------- the demonstration


def test_the_demonstration_asks_for_what_it_shows(monkeypatch):
    played = []

    class Noted:
        def __init__(self, _, info, names, crowd):
            self.seen = (info.name, names, crowd)

        async def play(self, rounds, *, rate):
            played.append((*self.seen, rounds, rate))

    monkeypatch.setattr(demo, "Visits", Noted)
    client: Any = Answers()
    asyncio.run(demo.play_demo(client))
    shop, help_pages = demo.DEMONSTRATIONS
    for (name, given), each in zip(client.put, demo.DEMONSTRATIONS, strict=True):
        share = 0.2 if each is help_pages else None
        assert (name, given) == (each.name, {
            "items": list(each.chances), "k": 1, "mode": each.mode, "apprentice_share": share,
            "wait_seconds": 5.0, "simulation": True, "seed": 0, "ready_within": 3600.0,
        })  # fmt: skip
    assert [each[0] for each in played] == ["demo-bookshop", "demo-apprentice"]
    for (_, names, crowd, rounds, rate), each in zip(played, demo.DEMONSTRATIONS, strict=True):
        assert names == sorted(each.chances, key=lambda name: each.chances[name])
        chances = [each.chances[name] for name in names]
        assert np.allclose(np.asarray(crowd.world.settings["chances"]), chances)
        assert (crowd.lose, crowd.delay_seconds, crowd.delay_rounds) == (0.15, 0.3, 0.0)
        assert (rounds, rate) == ((3000, 60.0) if each is shop else (1000, 20.0))
        assert crowd.changes_at == (1500 if each is shop else None)
    assert (shop.mode, help_pages.mode) == ("online", "apprentice")
    client.there = [there()]
    client.put.clear()
    asyncio.run(demo.play_demo(client))
    assert client.put == []


def test_the_demonstration_waits_for_the_service_and_for_nothing_else(monkeypatch):
    client: Any = Answers()
    pauses: list[float] = []

    async def none(seconds):
        pauses.append(seconds)

    answers = [ServiceAway("a"), ServiceAway("b"), [there()]]

    async def rankers():
        said = answers.pop(0)
        if isinstance(said, Exception):
            raise said
        return said

    monkeypatch.setattr("keyhole.cli.demo.asyncio.sleep", none)
    client.rankers = rankers
    asyncio.run(demo.play_demo(client))
    assert (pauses, client.put, answers) == ([0.2, 0.2], [], [])
    answers.append(KeyholeError("no"))
    with pytest.raises(KeyholeError, match="no"):
        asyncio.run(demo.play_demo(client))
    assert simulated_users.made_up_names(100)[8] == "item-009"
