"""Every option of every command has an effect on its results, or stands in a list with a reason."""

import asyncio
import json
import os
import shlex
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import typer.main
from typer.testing import CliRunner

import keyhole.client
from keyhole.base.files import write_arrays
from keyhole.cli import doctor, warm
from keyhole.cli.app import app
from keyhole.game.log import Log
from keyhole.game.stream import LetorStream
from keyhole.monitoring.classification import classify
from keyhole.service.keys import new_key
from keyhole.service.store import open_store
from tests.lab.effects import BASES, ECHOES, EFFECTS, KEPT, WITHOUT
from tests.lab.effects_files import write_texts
from tests.service.make_first import copy_first

pytestmark = pytest.mark.interpreted


def options_in(command, path=()):
    """Give all options below a command, by their places: ``keys create --scope``."""
    own = " ".join(path) or "keyhole"
    for parameter in command.params:
        if parameter.param_type_name == "option" and "--help" not in parameter.opts:
            yield f"{own} {max(parameter.opts, key=len)}"
    for name in getattr(command, "commands", ()):
        yield from options_in(command.commands[name], (*path, name))


def test_every_option_has_a_row():
    found = list(options_in(typer.main.get_command(app)))
    assert len(found) > 150
    assert sorted(found) == sorted([*EFFECTS, *WITHOUT])
    assert not EFFECTS.keys() & WITHOUT.keys()


# --------------------------------------------------------------------------- what is run


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    """Return a folder of what commands read."""
    folder = tmp_path_factory.mktemp("inputs")
    write_texts(folder)
    for name, weights in (("good", [1.0, 0.0]), ("blind", [-1.0, 1.0])):
        write_arrays(folder / f"{name}.npz", {"weights": weights, "minmax": False})
    save_log(folder / "rankers.npz")
    proof = classify("NDCG", 3, 1).certificate()
    (folder / "sound.json").write_text(json.dumps(proof))
    other = classify("NDCG", 3, 3).certificate()
    (folder / "forged.json").write_text(json.dumps(other))
    copy_first(folder / "service.db")
    for name, scope in (("one", "rank"), ("other", "read")):
        with open_store(folder / f"{name}.db") as store:
            store.add_key(new_key([scope], ["shop"])[1])
    open_store(folder / "gone.db").close()
    (folder / "gone.db").unlink()
    run_in(folder, "train-policy log.csv --out trained.npz --model classifiers --penalty 0.1 "
                   "--hold-out 0")  # fmt: skip
    return folder


def save_log(path):
    """Write the log of a ranker of documents: two of three are seen of each list."""
    numbers = np.random.default_rng(0)
    n, m = 60, 3
    features = numbers.random((n, m, 2))
    relevance = (numbers.random((n, m)) < features[:, :, 0]).astype(float)
    rankings = np.argsort(numbers.random((n, m)), axis=1)
    values = np.take_along_axis(relevance, rankings, axis=1)
    values[:, 2] = np.nan
    Log(
        0, 0, np.arange(n), np.ones(n, bool), np.full(n, 1 / 3), np.arange(n + 1) * m,
        rankings.ravel(), values.ravel(), features.reshape(-1, 2), np.empty((n, 0)),
    ).save(path)  # fmt: skip


def run_in(folder, line):
    """Run a command in a folder."""
    before = Path.cwd()
    os.chdir(folder)
    try:
        return CliRunner().invoke(app, shlex.split(line), env={"COLUMNS": "100"})
    finally:
        os.chdir(before)


CALLS: list[Any] = []
"""What was asked of a service, and how long anybody slept."""


class Service:
    """A client of a service that always shows the same lists in turn."""

    def __init__(self, url, *, key, **_):
        self.n_asked = self.at_once = self.most = 0
        CALLS.append(("client", url, key))

    async def __aenter__(self):
        return self

    async def __aexit__(self, *_):
        CALLS.append(("at once", self.most))

    async def rankers(self):
        return []

    async def put_ranker(self, name, **request):
        CALLS.append(("put", name, request))
        self.items, self.k = request["items"], request["k"]
        return SimpleNamespace(name=name, request=request)

    async def rank(self, _):
        self.at_once += 1
        self.most = max(self.most, self.at_once)
        await real_sleep(0)
        self.at_once -= 1
        self.n_asked += 1
        turn = self.n_asked % len(self.items)
        return SimpleNamespace(
            number=self.n_asked, ranking=[*self.items[turn:], *self.items[:turn]], k=self.k
        )

    async def feedback(self, name, ranking, told, **_):
        CALLS.append(("feedback", name, ranking.number, told))
        return SimpleNamespace(learned="now")


real_sleep = asyncio.sleep


async def noted_sleep(seconds):
    CALLS.append(("sleep", float(f"{max(seconds, 0.0):.1f}")))
    await real_sleep(0)


class Server:
    """A server that says what it was given, and stops."""

    def __init__(self, _, settings):
        self.settings = settings

    def run(self, *, sockets):
        CALLS.append(("serves", self.settings, sockets))


@pytest.fixture(autouse=True)
def nothing_is_slow(monkeypatch, inputs):
    """Let figures be what they would draw, and services be here."""
    from keyhole.service.http import app as http_app, server as http_server

    monkeypatch.setitem(LetorStream.__init__.__kwdefaults__, "block_bytes", 100)
    monkeypatch.setattr(keyhole.client, "AsyncClient", Service)
    monkeypatch.setattr(asyncio, "sleep", noted_sleep)
    monkeypatch.setattr("matplotlib.figure.Figure.savefig", write_axes)
    monkeypatch.setattr(doctor, "play_known_game", lambda: doctor.KNOWN_REGRET)
    monkeypatch.setattr(warm, "_all_cases", lambda _: [("nothing", lambda: None)])
    monkeypatch.setattr("keyhole.lab.study.papers_folder", lambda: inputs / "papers")
    monkeypatch.setattr(http_server, "Server", Server)
    monkeypatch.setattr(http_server, "bound_socket", lambda settings: ("socket", settings.port))
    monkeypatch.setattr(http_server, "address_of", str)
    monkeypatch.setattr("keyhole.service.structured_logs.configure_logs", lambda _: None)
    without_failure = SimpleNamespace(service=SimpleNamespace(failure=None))
    monkeypatch.setattr(http_app, "build_later", lambda *_: without_failure)
    monkeypatch.setattr("keyhole.cli.demo.start_demo", note_demo)


def note_demo(*_):
    CALLS.append("demo")
    return SimpleNamespace(join=lambda **_: None)


def write_axes(figure, buffer, **_):
    told = [(plot.get_xscale(), plot.get_yscale()) for plot in figure.axes]
    buffer.write(repr(told).encode())


# --------------------------------------------------------------------------- what came of it


def without_echoes(found):
    """Return plain data without times, and without what was asked."""
    if isinstance(found, dict):
        return {name: without_echoes(each) for name, each in found.items() if name not in ECHOES}
    return [without_echoes(each) for each in found] if isinstance(found, list) else found


def results_of(text, command):
    """Return what the JSON of a command has found out, or a text without its times."""
    try:
        record = json.loads(text)
    except ValueError:
        return "\n".join(line for line in text.splitlines() if " s" not in line)
    kept = KEPT.get(command)
    if kept is not None and isinstance(record, dict):
        record = {name: each for name, each in record.items() if name in kept}
        for name in ("against", "rankers"):
            record[name] = [
                {key: each[key] for key in each if key not in ("measure", "reveal", "rounds")}
                for each in record.get(name, [])
            ]
    return without_echoes(record)


def observed(inputs, folder, line, then=""):
    """Return the exit code of a command, what it says, what it writes and what it asks."""
    shutil.copytree(inputs, folder)
    with_prefix = line.replace("PREFIX", prefix_of(folder / "one.db"))
    CALLS.clear()
    ended = run_in(folder, with_prefix)
    command = line.split()[0]
    calls = [repr(each) for each in CALLS]
    told = [run_in(folder, then).stdout] if then else []
    written = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder)
        if path.is_dir() or (inputs / name).exists() or name.parts[0] == "__pycache__":
            continue
        is_of_the_machine = "cells" in name.parts or ".db" in path.name
        written[str(name)] = None if is_of_the_machine else content_of(path, command)
    said = results_of(ended.stdout, command) if command != "keys" or not then else ""
    return ended, (ended.exit_code, said, written, calls, [results_of(t, command) for t in told])


def content_of(path, command):
    content = path.read_bytes()
    if path.suffix == ".json":
        return json.dumps(results_of(content.decode(), command))
    return content.decode() if path.suffix in (".csv", ".md", ".ndjson", ".svg") else len(content)


def prefix_of(path):
    with open_store(path, read_only=True) as store:
        (key,) = store.keys()
    return key.prefix


@pytest.mark.parametrize("option", EFFECTS)
def test_two_values_of_an_option_have_two_results(option, inputs, tmp_path):
    row = EFFECTS[option]
    base = BASES[option.rpartition(" ")[0]] if row.base is None else row.base
    found = []
    for place, ends in enumerate((row.one, row.other)):
        ended, seen = observed(inputs, tmp_path / str(place), f"{base} {ends}", row.then)
        allowed = (0, 1) if row.codes is None else (row.codes[place],)
        assert ended.exit_code in allowed, (ended.output, ended.stderr, ended.exception)
        found.append(seen)
    assert found[0] != found[1]


FIRST_ROWS = {option.rpartition(" ")[0]: option for option in reversed(EFFECTS)}


@pytest.mark.parametrize("command", FIRST_ROWS)
def test_the_same_command_has_the_same_result(command, inputs, tmp_path):
    """Else two results that differ would say nothing."""
    row = EFFECTS[FIRST_ROWS[command]]
    line = f"{BASES[command] if row.base is None else row.base} {row.one}"
    found = [observed(inputs, tmp_path / str(place), line, row.then)[1] for place in range(2)]
    assert found[0] == found[1]
