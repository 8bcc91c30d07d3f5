"""What ``keyhole simulate-users`` tells, from the log that the service has kept of it."""

import json
import time
from typing import Any

import numpy as np
import pytest

import keyhole
from keyhole import Flips
from keyhole.client import Client
from keyhole.reveals.full import Full
from keyhole.worlds.table import Ratings, Recorded
from tests.lab.running import run
from tests.outputs.by_hand import play_by_hand
from tests.outputs.commands import served
from tests.outputs.inputs import ITEMS, write_people
from tests.unit.references import dcg, sum_loss

pytestmark = pytest.mark.interpreted


@pytest.fixture(scope="module")
def url():
    with served() as address:
        yield address


def fates(seed, rounds, lose):
    """Return in which rounds feedback is lost: the first of three numbers of a round decides."""
    return [np.random.default_rng((seed, t)).random(3)[0] < lose for t in range(rounds)]


@pytest.mark.parametrize(
    ("measure", "k", "seed", "grades"), [("DCG", 2, 2, 4), ("SumLoss", 1, 5, 2)]
)
def test_a_crowd_is_judged_by_what_was_shown(measure, k, seed, grades, url, tmp_path):
    """People change half way; a fifth of the answers is lost, and the others are late."""
    path, rounds = tmp_path / "people.csv", 40
    write_people(path)
    people = np.loadtxt(path, delimiter=",", skiprows=1)
    if grades == 4:
        world: Any = Ratings(people, item_names=ITEMS)
        given = ["--world", path, "--grades", 4, "--drift", 0.5]
    else:
        world, given = Flips(4, flip=0.3), ["--items", 4, "--set", "world.flip=0.3"]
    name, began = f"crowd-{measure}", time.perf_counter()
    told = json.loads(run(
        "simulate-users", url, "--ranker", name, *given, "--top", k, "--measure", measure,
        "--rounds", rounds, "--lose", 0.2, "--delay-rounds", 3, "--seed", seed,
        "--json",
    ).stdout)  # fmt: skip
    took = time.perf_counter() - began
    with Client(url) as client:
        names = client.ranker(name).request["items"]
        shown = [e["ranking"] for e in client.events(name) if e["kind"] == "rank"]
        answers = [e for e in client.events(name) if e["kind"] == "feedback"]
    liked = np.array([world.relevance(t, seed=seed) for t in range(rounds)])
    if "--drift" in given:  # the first is liked as the last one was
        liked[rounds // 2 :] = liked[rounds // 2 :, ::-1]
    lists = [[names.index(item) for item in each] for each in shown]
    value, is_loss = (dcg, False) if measure == "DCG" else (sum_loss, True)
    sign = 1.0 if is_loss else -1.0
    score = np.mean([value(*pair) for pair in zip(liked, lists, strict=True)])
    ranker = keyhole.ranker(
        "ftpl", n_items=4, measure=measure, max_grade=max(1.0, liked.max()), horizon=rounds,
        seed=seed,
    )  # fmt: skip
    game = play_by_hand(ranker, Recorded(liked), Full(), value, rounds, seed, 0, 0)
    best, informed = game.best(is_loss)[-1] / rounds, game.shown.mean()
    assert told["rounds"] == rounds == len(shown)
    assert told["average_score"] == pytest.approx(score, rel=1e-12)
    assert told["best_fixed_score"] == pytest.approx(best, rel=1e-12)
    assert told["average_regret"] == pytest.approx(sign * (score - best), abs=1e-12)
    assert told["full_information"]["average_score"] == pytest.approx(informed, rel=1e-12)
    regret = sign * (informed - best)
    assert told["full_information"]["average_regret"] == pytest.approx(regret, abs=1e-12)
    tops = [liked[t][order[:k]].mean() for t, order in enumerate(lists)]
    assert told["mean_relevance"] == pytest.approx(np.mean(tops), rel=1e-12)
    n_lost = sum(fates(seed, rounds, 0.2))
    assert told["feedback"] == {"lost": n_lost, "learned": len(answers)}
    assert n_lost + len(answers) == rounds
    assert 0.0 < told["seconds"] < took
    assert told["rounds_per_second"] == pytest.approx(rounds / told["seconds"], rel=1e-12)
    if grades == 4:
        assert told["world"]["table"] == people.tolist()
