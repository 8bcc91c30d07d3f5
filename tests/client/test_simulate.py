"""A crowd through HTTP: the same users as in the library, and so the same regret."""

import asyncio
import json
import signal
import threading
import uuid
from typing import Any

import numba
import numpy as np
import pytest
from structlog.testing import capture_logs
from typer.testing import CliRunner

import keyhole
from keyhole.cli import demo, simulate
from keyhole.cli.app import app
from keyhole.cli.demo import DEMONSTRATIONS, play_demo, start_demo
from keyhole.cli.simulated_users import Crowd, Results, Visits, judge, made_up_names
from keyhole.client import AsyncClient, Client
from keyhole.service.compilation import Preparer
from keyhole.worlds.flips import Flips
from keyhole.worlds.phases import Independent

ROUNDS = 200
NAMES = made_up_names(6)
LATE_AND_LOST: Any = {"lose": 0.2, "delay_rounds": 15.0}


def a_name():
    return f"crowd-{uuid.uuid4().hex[:8]}"


def run(*arguments, code=0):
    result = CliRunner().invoke(app, [str(a) for a in arguments], env={"COLUMNS": "200"})
    assert result.exit_code == code, result.output + result.stderr
    return result


def serve(url, crowd, rounds=ROUNDS, *, seed=5, **options):
    """Play a crowd through HTTP; return what was seen, and the ranker's spec."""

    async def play():
        async with AsyncClient(url) as client:
            info = await client.put_ranker(a_name(), items=NAMES, k=1, seed=seed, simulation=True)
            visits = Visits(client, info, NAMES, crowd)
            return await visits.play(rounds, **options), info.spec

    return asyncio.run(play())


def play_by_hand(spec, crowd, rounds=ROUNDS):
    """Return the scores of the library's ranker whose feedback is lost and late as the crowd's."""
    ranker, measure = keyhole.ranker(spec), keyhole.measure("DCG")
    due: dict[int, list[Any]] = {}
    scores = []
    for round in range(rounds):
        for late in sorted(when for when in due if when <= round):
            for impression, value in due.pop(late):
                ranker.update(impression, value)
        impression, relevance = ranker.rank(round=round), crowd.relevance(round)
        scores.append(float(measure(relevance, impression.ranking)))
        fate = crowd.fate(round)
        if not fate.is_lost:
            told = (impression, float(relevance[impression.ranking[0]]))
            due.setdefault(round + fate.rounds, []).append(told)
            for impression, value in due.pop(round, []):
                ranker.update(impression, value)
    return scores


# ------------------------------------------------------------------------ the crowd


def test_a_crowd_is_that_of_the_library_and_follows_from_its_seed():
    world = Flips(6, flip=0.3)
    crowd, again = (Crowd(world, 7, **LATE_AND_LOST) for _ in range(2))
    for round in (0, 5, 99):
        np.testing.assert_array_equal(crowd.relevance(round), world.relevance(round, seed=7))
        assert crowd.fate(round) == again.fate(round)
    fates = [crowd.fate(round) for round in range(2000)]
    # Hoeffding: a share of 2,000 draws is within 0.0372 of its mean but by a chance of 0.4 %.
    assert abs(np.mean([fate.is_lost for fate in fates]) - 0.2) < 0.0372
    assert {fate.rounds for fate in fates} == set(range(31))
    assert Crowd(world, 8, **LATE_AND_LOST).fate(0) != crowd.fate(0)


def test_another_crowd_likes_what_was_not_liked():
    crowd = Crowd(Independent(3, chances=[0, 0, 1]), changes_at=4)
    assert crowd.relevance(3).tolist() == [0.0, 0.0, 1.0]
    assert crowd.relevance(4).tolist() == [1.0, 0.0, 0.0]


def test_late_and_lost_feedback_leads_to_the_library_s_own_lists(service_url):
    crowd = Crowd(Flips(6), 3, **LATE_AND_LOST)
    seen, spec = serve(service_url, crowd)
    by_hand = play_by_hand(spec, crowd)
    assert [seen.scores[round] for round in range(ROUNDS)] == by_hand
    assert 0.1 * ROUNDS < seen.n_lost < 0.3 * ROUNDS
    assert seen.n_lost + seen.learned["learned"] == ROUNDS


def test_prompt_feedback_reaches_the_regret_of_play(service_url):
    world = Flips(6)
    seen, spec = serve(service_url, Crowd(world, 5))
    trace = keyhole.play(keyhole.ranker(spec), world, rounds=ROUNDS, seed=5, measure="DCG")
    record = judge(seen, keyhole.measure("DCG"), 5)
    assert record["average_score"] == pytest.approx(trace.average_score.mean, abs=1e-12)
    assert record["best_fixed_score"] == pytest.approx(trace.best_fixed_score.mean, abs=1e-12)
    assert record["average_regret"] == pytest.approx(trace.average_regret.mean, abs=1e-12)
    assert 0 < record["full_information"]["average_regret"] < record["average_regret"]


def test_many_at_once_and_late_by_seconds(service_url):
    crowd = Crowd(Flips(6), 1, lose=0.1, delay_rounds=2, delay_seconds=0.02)
    watched: list[int] = []
    seen, _ = serve(
        service_url,
        crowd,
        80,
        concurrency=8,
        rate=400.0,
        watch=lambda s: watched.append(len(s.scores)),
    )
    assert sorted(seen.scores) == list(range(80))
    assert watched[-1] == 80
    assert seen.n_lost + sum(seen.learned.values()) == 80
    assert seen.seconds >= 79 / 400


def test_losses_have_the_sign_of_losses():
    measure = keyhole.measure("SumLoss")
    seen = Results({0: 2.0, 1: 2.0}, dict.fromkeys((0, 1), np.array([0.0, 1.0])), seconds=1.0)
    record = judge(seen, measure, 0)
    assert (record["best_fixed_score"], record["average_regret"]) == (1.0, 1.0)


# ---------------------------------------------------------------------- the command


def test_the_command_plays_and_tells(service_url):
    name = a_name()
    arguments = [
        "simulate-users", service_url, "--ranker", name, "--items", 6, "--rounds", 60,
        "--lose", 0.2, "--delay-rounds", 3, "--drift", 0.5, "--seed", 2,
    ]  # fmt: skip
    record = json.loads(run(*arguments, "--json").stdout)
    assert record["rounds"] == 60
    assert sum(record["feedback"].values()) == 60
    assert record["feedback"]["lost"] > 0
    assert record["average_regret"] == pytest.approx(
        record["best_fixed_score"] - record["average_score"], abs=1e-12
    )
    with Client(service_url) as client:
        info = client.ranker(name)
        assert (info.request["simulation"], info.round) == (True, 60)
        assert info.request["wait_seconds"] == 5.0
    table = run(*arguments).stdout
    assert "full information" in table
    assert f"{name}, served" in table
    again = json.loads(run(*arguments, "--json", "--measure", "DCG", "--top", 1).stdout)
    assert again["best_fixed_score"] == record["best_fixed_score"]


def test_people_of_a_file_meet_items_by_their_names(service_url, tmp_path):
    path = tmp_path / "ratings.csv"
    path.write_text("tea,coffee,milk\n" + "5,1,3\n4,2,1\n5,4,1\n" * 5)
    name = a_name()
    with Client(service_url) as client:  # in another order than the file has them
        client.put_ranker(name, items=["milk", "tea", "coffee"], simulation=True, seed=1)
        run(
            "simulate-users", service_url, "--ranker", name, "--world", path, "--threshold", 4,
            "--rounds", 30, "--json",
        )  # fmt: skip
        truths = [e["truth"] for e in client.events(name) if e["kind"] == "feedback"]
    assert all(tea == 1.0 for _, tea, _ in truths)
    assert {milk for milk, _, _ in truths} == {0.0}


def test_a_ranker_that_is_not_for_simulation_is_told_no_truth(service_url):
    name = a_name()
    with Client(service_url) as client:
        client.put_ranker(name, items=NAMES)
        run("simulate-users", service_url, "--ranker", name, "--items", 6, "--rounds", 4, "--json")
        told = [e for e in client.events(name) if e["kind"] == "feedback"]
    assert len(told) == 4
    assert all(each.get("truth") is None for each in told)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--items", 7], "number of items of the crowd"),
        (
            ["--items", "a,b,c,d,e,f"],
            "must rank the items of the simulated users, got one that ranks others",
        ),
        (["--items", 6, "--top", 2], "The k of the existing ranker"),
        (["--items", 6, "--measure", "SumLoss"], "The measure of the existing ranker"),
        (["--lose", 2], "--lose must be a number"),
        (["--delay", -1], "--delay must be a number"),
        (["--drift", 2], "--drift must be a number"),
        (["--rounds", 0], "--rounds must be an integer"),
        (["--rate", 0], "--rate must be a number above 0"),
        (["--world", "flps"], "Did you mean 'flips'?"),
    ],
)
def test_what_cannot_be_played_is_one_sentence(service_url, options, sentence):
    name = "crowd-of-six"
    with Client(service_url) as client:
        client.put_ranker(name, items=NAMES)
    arguments = ["simulate-users", service_url, "--ranker", name, "--rounds", 5, *options]
    assert sentence in run(*arguments, code=2).stderr


def test_a_service_that_is_not_there(monkeypatch):
    monkeypatch.setattr("keyhole.client.retries.FIRST_PAUSE", 1e-4)
    error = run("simulate-users", "http://localhost:1", code=2).stderr
    assert error.startswith("Error: The service did not answer: ConnectError")
    error = run("simulate-users", "nowhere", code=2).stderr
    assert error == "Error: URL must look like http://localhost:8360, got 'nowhere'.\n"


def test_an_interrupt_ends_with_what_was_seen(service_url, monkeypatch):
    plays = simulate.play_plan

    async def interrupted(client, plan, watch, begun):
        def watch_and_interrupt(seen):
            watch(seen)
            if len(seen.scores) == 10:
                signal.raise_signal(signal.SIGINT)

        await plays(client, plan, watch_and_interrupt, begun)

    monkeypatch.setattr(simulate, "play_plan", interrupted)
    arguments = ["simulate-users", service_url, "--ranker", a_name(), "--items", 6, "--json"]
    result = run(*arguments, code=130)
    assert json.loads(result.stdout)["rounds"] in (10, 11)
    assert "Interrupted after 1" in result.stderr


# ----------------------------------------------------------------- the demonstration


def test_a_demonstration_is_for_an_empty_service(service_url):
    short = tuple(demo._replace(rounds=10, rate=1000.0) for demo in DEMONSTRATIONS)

    class Empty(AsyncClient):
        async def rankers(self):
            return []

    async def play(kind):
        async with kind(service_url) as client:
            await play_demo(client, short)
            return {info.name: info for info in await AsyncClient.rankers(client)}

    made = asyncio.run(play(Empty))
    assert made["demo-bookshop"].round == made["demo-apprentice"].round == 10
    assert made["demo-apprentice"].request["mode"] == "apprentice"
    assert all(made[demo.name].request["simulation"] for demo in DEMONSTRATIONS)
    again = asyncio.run(play(AsyncClient))
    assert again["demo-bookshop"].round == 10


def test_a_demonstration_learns_and_notices_the_change():
    demo = DEMONSTRATIONS[0]
    names, crowd = demo.names, demo.crowd
    ranker = keyhole.ranker("keystone", items=names, k=1, seed=0)
    alarms: list[int] = []
    for round in range(demo.rounds):
        impression, relevance = ranker.rank(round=round), crowd.relevance(round)
        if not crowd.fate(round).is_lost:
            ranker.update(impression, float(relevance[impression.ranking[0]]))
        if ranker.n_alarms > len(alarms):
            alarms.append(round)
        if round == demo.rounds // 2 - 1:
            assert ranker.best()[0] == "Night Trains of Europe"
    assert len(alarms) == 1
    assert demo.rounds // 2 < alarms[0] < demo.rounds // 2 + 100
    assert ranker.best()[0] == "Violins and Their Makers"


def test_a_demonstration_stops_with_the_service():
    stop = threading.Event()
    thread = start_demo("http://localhost:1", stop)
    stop.set()
    thread.join(timeout=10)
    assert not thread.is_alive()


def test_what_the_users_of_a_demonstration_compile_is_no_request_that_waits(monkeypatch):
    compiled: Any = numba.njit

    async def play(url, stop):
        compiled(lambda: 1)()

    monkeypatch.setattr(demo, "_play_until", play)
    preparer = Preparer()
    preparer.watch()
    with capture_logs() as logs:
        start_demo("http://localhost:1", threading.Event()).join(timeout=30)
        assert logs == []
        compiled(lambda: 2)()
        preparer.halt()
    assert [line["log_level"] for line in logs] == ["warning"]
