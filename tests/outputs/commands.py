"""Every command with ``--json`` run once or more, as small as it can be and never by default."""

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import uvicorn

import keyhole
from keyhole.cli.doctor import KNOWN_REGRET
from keyhole.lab.atlas import fill_column
from keyhole.service.group_commit import Desk
from keyhole.service.http.app import build_later
from keyhole.service.settings import Settings
from keyhole.service.store.memory import MemoryStore
from tests.lab.running import run
from tests.lab.test_own_files import FILES as OWN
from tests.outputs.drawn import kept_figures, shown_by
from tests.outputs.inputs import read_json, write_all
from tests.outputs.leaves import Output, rows_of
from tests.service.make_first import copy_first

VERSION = {"version": keyhole.__version__}
STUDY = """
title = "Two rankers on three grades"
paper = "Nobody 2025"
about = "what a study writes"

[game]
world = "gaussian"
items = 4
rounds = 40
runs = 3
seed = 5
measure = "SumLoss"
world_options = { n_relevant = 2, sd = 0.2 }

[[curve]]
label = "greedy"
ranker = "epsilon-greedy"

[[curve]]
label = "chance"
ranker = "random"

[[line]]
label = "bound"
kind = "top-k-bound"
items = 4
top = 2
measure = "SumLoss"
"""
CLAIMS = """
[[claim]]
text = "chance is worse"
kind = "order"
curves = ["greedy", "chance"]
at = 30
errors = 1.5

[[claim]]
text = "greedy is in its band"
kind = "band"
curve = "greedy"
low = 0.1
high = 0.9
"""
BROKEN = OWN["greedy.py"].replace("state.totals[seen.ranking[0]] +=", "state.totals[0] +=")


def told(*arguments: Any, code: int = 0) -> Any:
    """Return what a command prints as JSON."""
    return json.loads(run(*arguments, "--json", code=code).stdout)


def playing(folder: Path) -> Iterator[Output]:
    """Games of two and four grades, of gains and losses, of several runs and of one."""
    out, given = folder / "play", ["--items", 5, "--rounds", 60, "--runs", 3, "--seed", 4]
    flips = told(
        "play", "--ranker", "epsilon-greedy", *given, "--against", "random", "--against", "ftpl",
        "--set", "world.flip=0.3", "--set", "world.n_relevant=2", "--set", "ranker.scale=0.5",
        "--out", out,
    )  # fmt: skip
    asked = {
        "spec.items": 5, "spec.rounds": 60, "spec.runs": 3, "spec.seed": 4, "spec.points": 200,
        "spec.world_options.{}": [0.3, 2], "spec.ranker_options.{}": 0.5, **VERSION,
    }  # fmt: skip
    yield Output("keyhole play --json", flips, _with_others(asked))
    assert read_json(out / "results.json") == flips
    yield Output("keyhole play: curves.csv", rows_of((out / "curves.csv").read_text()))
    graded = told(
        "play", "--ranker", "epsilon-greedy", "--world", folder / "people.csv", "--grades", 4,
        "--measure", "NDCG@2", "--top", 2, "--rounds", 40, "--comparator", "final",
        "--same-users", "--runs", 2,
    )  # fmt: skip
    asked = {"spec.top": 2, "spec.rounds": 40, "spec.runs": 2, "spec.seed": 0}
    yield Output("keyhole play --json", graded, {**asked, "spec.world_options.{}": 4})
    loss = told(
        "play", "--ranker", "fixed", "--set", "ranker.ranking=[2,0,1]", "--items", 3,
        "--measure", "SumLoss", "--rounds", 25, "--reveal", "full",
    )  # fmt: skip
    yield Output("keyhole play --json", loss, {"spec.ranker_options.{}[]": [2, 0, 1]})


def _with_others(asked: dict[str, Any]) -> dict[str, Any]:
    """Return echoes that rankers beside the first have too, but for its own options."""
    own = "spec.ranker_options.{}"
    beside = {f"against[].{path}": value for path, value in asked.items() if path != own}
    beside["against[].spec.world_options.{}"] = 2 * asked["spec.world_options.{}"]
    return {**asked, **beside}


def comparing(folder: Path) -> Iterator[Output]:
    """Comparisons on a fixed list and on lists of a file."""
    out, seen = folder / "compare", ["--runs", 3, "--seed", 3]
    games = told(
        "compare", "--rankers", "epsilon-greedy,random,thompson", "--items", 4, "--rounds", 50,
        "--top", 2, *seen, "--measure", "Precision@2", "--against", "ftpl", "--out", out,
        "--set", "epsilon-greedy.scale=0.5",
    )  # fmt: skip
    asked = {"spec.items": 4, "spec.rounds": 50, "spec.top": 2, "spec.runs": 3, "spec.seed": 3,
             "spec.points": 200, **VERSION}  # fmt: skip
    yield Output("keyhole compare --json", games, asked)
    assert read_json(out / "results.json") == games
    yield Output("keyhole compare: curves.csv", rows_of((out / "curves.csv").read_text()))
    lists = told(
        "compare", folder / "train.txt", "--rankers", "random-lists,linucb", "--rounds", 30,
        "--measure", "NDCG@2", "--top", 2, *seen, "--shuffle", "--permute-at", 0.5,
        "--label-noise", 0.1, "--against", "listnet",
    )  # fmt: skip
    asked = {
        "spec.noise": 0.1,
        "spec.world_options.{}": [3, 15],
        "spec.rounds": 30,
    }
    yield Output("keyhole compare --json", lists, asked)
    yield Output("keyhole compare --json", told("compare", "--rounds", 20, "--items", 3))
    priced = ["--rankers", "epsilon-greedy", "--price", "--runs", 12]
    yield Output("keyhole compare --json", told("compare", "--rounds", 50, "--items", 3, *priced))


def learning(folder: Path) -> Iterator[Output]:
    """Learning from lists, judged on others, and what the model makes of them."""
    out, model = folder / "learn", folder / "model.npz"
    files = [folder / "train.txt", "--test", folder / "test.txt"]
    asked = {"rounds": 60, "runs": 2, "seed": 6, **VERSION}
    learnt = told(
        "learn", *files, "--ranker", "linucb", "--top", 2, "--rounds", 60, "--runs", 2,
        "--seed", 6, "--measure", "DCG@2", "--measure", "NDCGLoss", "--permute-at", 0.5,
        "--shuffle", "--label-noise", 0.1, "--set", "ranker.width=0.7", "--out", out,
    )  # fmt: skip
    yield Output("keyhole learn --json", learnt, {**asked, "options.{}": 0.7})
    assert read_json(out / "results.json") == learnt
    yield Output("keyhole learn: curves.csv", rows_of((out / "curves.csv").read_text()))
    told("learn", *files, "--ranker", "listnet", "--rounds", 30, "--model", model)
    both = told("learn", *files, "--rounds", 20, "--runs", 2, "--seed", 6)
    beside = {f"against[].{path}": value for path, value in {**asked, "rounds": 20}.items()}
    yield Output("keyhole learn --json", both, beside)
    ranked = ["rank", model, folder / "test.txt"]
    yield Output("keyhole rank --json", told(*ranked))
    yield Output("keyhole rank", rows_of(run(*ranked).stdout, "\t"))
    heads = "query q0 document rank score tag\n"
    text = run(*ranked, "--format", "trec", "--tag", "mine").stdout
    yield Output("keyhole rank --format trec", rows_of(heads + text, " "))


def reproducing(folder: Path) -> Iterator[Output]:
    """A study of our own, as small as one can be."""
    study, out = folder / "papers" / "small", folder / "reproduced"
    study.mkdir(parents=True)
    (study / "study.toml").write_text(STUDY)
    (study / "expected.toml").write_text(CLAIMS)
    verdicts = told("reproduce", "small", "--out", out)
    spec = {"items": 4, "rounds": 40, "runs": 3, "seed": 5, "points": 200}
    asked: dict[str, Any] = {f"curves.{{}}.{name}": value for name, value in spec.items()}
    asked["curves.{}.world_options.{}"] = [2, 0.2, 2, 0.2]
    yield Output("keyhole reproduce --json", verdicts, {**asked, **VERSION})
    yield Output("keyhole reproduce: curves.csv", rows_of((out / "curves.csv").read_text()))


def judging(folder: Path) -> Iterator[Output]:
    """Policies judged on logs: of choices, and of a ranker of documents."""
    log, out = folder / "log.csv", folder / "values"
    trained = told(
        "train-policy", log, "--out", folder / "policy.npz", "--model", "classifiers",
        "--folds", 2, "--penalty", 0.1, "--penalty", 0.01, "--hold-out", 0.4, "--seed", 3,
        "--confidence", 0.9,
    )  # fmt: skip
    asked = {"seed": 3, "penalties[].penalty": [0.1, 0.01], "evaluation.confidence": 0.9}
    yield Output("keyhole train-policy --json", trained, {**asked, **VERSION})
    judged = told(
        "evaluate", log, "--policy", folder / "policy.npz", "--allow-training-rows",
        "--baseline", "uniform", "--confidence", 0.9, "--rewards", -1, 2, "--clip", 1.5,
        "--floor", 0.1, "--seed", 5, "--bound", "student-t", "--out", out, code=0,
    )  # fmt: skip
    asked = {"confidence": 0.9, "seed": 5, **VERSION}
    yield Output("keyhole evaluate --json", judged, asked)
    assert read_json(out / "evaluation.json") == judged
    fixed = told("evaluate", log, "--policy", "best-fixed", "--seed", 2, code=1)
    yield Output("keyhole evaluate --json", fixed, {"confidence": 0.95, "seed": 2})
    ranked = told(
        "evaluate", folder / "ranked.npz", "--policy", folder / "weights.npz", "--measure",
        "DCG@2", "--top", 2, "--rewards", 0, 3, "--seed", 1, "--bound", "student-t", code=1,
    )  # fmt: skip
    yield Output("keyhole evaluate --json", ranked, {"confidence": 0.95, "seed": 1})


def classifying(folder: Path) -> Iterator[Output]:
    """What can be learnt, and what is promised."""
    proof = folder / "proof.json"
    for name, grades, more in (("NDCG", 2, ["--certificate", proof]), ("DCG", 3, [])):
        game = [name, "--items", 3, "--top", 1, "--grades", grades]
        asked = {"n_items": 3, "k": 1, "grades": grades, **VERSION}
        yield Output("keyhole classify --json", told("classify", *game, *more), asked)
    own = ["--loss", folder / "loss.csv", "--feedback", folder / "feedback.csv"]
    yield Output("keyhole classify --json", told("classify", *own), VERSION)
    checked = told("classify", "--check", proof)
    asked = {"game.n_items": 3, "game.k": 1, "game.grades": 2}
    yield Output("keyhole classify --check --json", checked, asked)
    yield Output("keyhole classify: certificate", read_json(proof))
    out = folder / "atlas"
    asked_of = ["--items", "2-3", "--grades", 2, 3, "--measures", "NDCG", "DCG@2"]
    drawn = told("atlas", *asked_of, "--out", out)
    yield Output("keyhole atlas --json", drawn, VERSION)
    yield Output("keyhole atlas: atlas.csv", rows_of((out / "atlas.csv").read_text()))
    for measure, features in (("NDCG@2", 0), ("DCG@2", 0), ("NDCG@2", 3)):
        given = ["--items", 3, "--top", 2, "--grades", 3, "--rounds", 10**6]
        advice = told("advise", measure, *given, "--features", features)
        asked = {"rounds": 10**6, "classification.n_items": 3, "classification.k": 2,
                 "classification.grades": 3, **VERSION}  # fmt: skip
        yield Output("keyhole advise --json", advice, asked)


def bounding(folder: Path) -> Iterator[Output]:
    """Bounds on new lists, and on the regret of a game."""
    asked = {"queries": 5000, "items": 7, "radius": 2.0, "norm": 1.5, "confidence": 0.9,
             "grade": 3.0, "optimal_loss": 0.02, "features": 11}  # fmt: skip
    given = [text for name, value in asked.items() if name != "grade"
             for text in (f"--{name.replace('_', '-')}", value)]  # fmt: skip
    for surrogate in ("listnet", "squared"):
        bounds = told("bound", "--surrogate", surrogate, *given, "--max-grade", 3)
        yield Output("keyhole bound --json", bounds, {**asked, **VERSION})
    game = {"rounds": 10**5, "items": 5, "top": 2}
    given = [text for name, value in game.items() for text in (f"--{name}", value)]
    bounds = told("bound", *given, "--max-grade", 3, "--measure", "DCG@3")
    yield Output("keyhole bound --rounds --json", bounds, {**game, **VERSION})


def looking_after(folder: Path) -> Iterator[Output]:
    """Checks, lists, keys, logs of the service, and what is installed."""
    yield Output("keyhole check --json", told("check", "--measure", "ERR", "--items", 4))
    (folder / "own.py").write_text(BROKEN)
    failed = told("check", "--ranker", f"{folder / 'own.py'}:Greedy", "--items", 4, code=1)
    yield Output("keyhole check --json", failed)
    yield Output("keyhole list --json", told("list"))
    (folder / "data" / "mq2008").mkdir(parents=True)
    with (
        patch("keyhole.cli.doctor.play_known_game", lambda: KNOWN_REGRET),  # it is a long one
        patch.dict("os.environ", KEYHOLE_DATA=str(folder / "data"), OMP_NUM_THREADS="2"),
    ):
        yield Output("keyhole doctor --json", told("doctor"))
    yield Output("keyhole warm --json", told("warm", "random", "--jobs", 1))
    log = folder / "service.db"
    copy_first(log)
    yield Output("keyhole db check --json", told("db", "check", log))
    for more in ([], ["--expires-days", 3]):
        run("keys", "create", "--scope", "rank", "--ranker", "news", "--db", log, *more)
    yield Output("keyhole keys list --json", told("keys", "list", "--db", log))


@contextmanager
def served() -> Iterator[str]:
    """Run a service in a thread, and give its address."""
    app = build_later(lambda: Desk(MemoryStore()), Settings())
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_config=None))
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        while not server.started:
            time.sleep(0.01)
        yield f"http://localhost:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()


def visiting(folder: Path) -> Iterator[Output]:
    """A crowd of four grades that answers late, or never, and changes."""
    with served() as url:
        crowd = told(
            "simulate-users", url, "--world", folder / "people.csv", "--grades", 4, "--top", 2,
            "--rounds", 40, "--lose", 0.2, "--delay-rounds", 3, "--drift", 0.5, "--seed", 2,
            "--measure", "DCG",
        )  # fmt: skip
        yield Output("keyhole simulate-users --json", crowd, {"seed": 2})
        told("simulate-users", url, "--items", 9, "--ranker", "long", "--rounds", 1)


def of_commands(folder: Path) -> Iterator[Output]:
    """Yield what every command with ``--json`` tells, and the tables and figures it writes.

    The folder that the files are in is left out of all texts: its name may have digits.
    """
    write_all(folder)
    with (
        kept_figures() as figures,
        patch("keyhole.lab.study.papers_folder", lambda: folder / "papers"),
        patch(
            "keyhole.lab.atlas._filled", lambda columns, _: ((c, fill_column(c)) for c in columns)
        ),
    ):
        for produce in (
            playing, comparing, learning, reproducing, judging, classifying, bounding,
            looking_after, visiting,
        ):  # fmt: skip
            for output in produce(folder):
                yield output._replace(content=_without(str(folder), output.content))
                command = " ".join(output.name.split()[:2])
                for figure in figures:
                    shown = _without(str(folder), shown_by(figure))
                    yield Output(f"{command.rstrip(':')}: figure", shown)
                figures.clear()


def _without(text: str, content: Any) -> Any:
    """Return content with a text left out of all texts within."""
    if isinstance(content, dict):
        return {key: _without(text, value) for key, value in content.items()}
    if isinstance(content, list):
        return [_without(text, value) for value in content]
    return content.replace(text, "") if isinstance(content, str) else content
