"""docs/service.md and docs/start/service.md, followed word for word against a real server."""

import ast
import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import httpx
import msgspec
import pytest

from bench.site.pages import keys_of, steps_of
from keyhole.service.api.routes import OPERATIONS
from keyhole.service.metrics import Metrics
from keyhole.service.settings import Settings

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "service.md").read_text()
OPERATING = (ROOT / "docs" / "operating.md").read_text()
START = (ROOT / "docs" / "start" / "service.md").read_text()
DEFAULT = "localhost:8360"


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Start a server as the page says, in a folder of its own, and give the folder and its port."""
    folder = tmp_path_factory.mktemp("service")
    command = folder / "bin" / "keyhole"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m keyhole "$@"\n')
    command.chmod(0o755)
    server = subprocess.Popen(
        [command, "serve", "--db", "shop.db", "--port", "0"],
        cwd=folder,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert server.stdout is not None
        (port,) = re.findall(r"http://127\.0\.0\.1:(\d+)", server.stdout.readline())
        while httpx.get(f"http://localhost:{port}/readyz", timeout=60).status_code != 200:
            assert server.poll() is None
            time.sleep(0.05)
        yield folder, f"localhost:{port}"
    finally:
        server.terminate()
        server.communicate(timeout=120)
    assert server.returncode == 0


def answers_of(page, place):
    """Do what a page says and return what each of its commands printed."""
    if shutil.which("curl") is None:
        pytest.skip("curl is not installed")
    folder, host = place
    environment = {**os.environ, "PATH": f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}"}
    answers: list[str] = []
    for step in steps_of(page):
        text = step.text.replace(DEFAULT, host)
        if step.language == "json":
            assert keys_of(json.loads(answers[-1])) == keys_of(json.loads(text)), answers[-1]
            continue
        shell = ["bash", "-euo", "pipefail", "-c", text]
        command = shell if step.language == "sh" else [sys.executable, "-c", text]
        ran = subprocess.run(
            command, cwd=folder, env=environment, capture_output=True, text=True, check=False
        )
        assert ran.returncode == 0, text + ran.stdout + ran.stderr
        answers.append(ran.stdout)
    return answers


def test_the_first_five_minutes_work_as_they_stand(place):
    *_, listed, told = answers_of(START, place)
    assert sorted(ast.literal_eval(listed)) == ["forum", "pricing", "tour", "videos"]
    assert "full information" in told


def test_the_page_works_as_it_stands(place):
    answers = answers_of(PAGE, place)
    everything = "\n".join(answers)
    assert '"status":422' in answers[4]
    assert '"verdict":{"measure":"NDCG"' in everything
    assert "learned" in answers[5]
    assert "['a', 'b']" in answers[6]
    assert "full information" in answers[7]
    let_in, kept_out = re.findall(r'"event_id"|"status":401', answers[-1])
    assert (let_in, kept_out) == ('"event_id"', '"status":401')


def test_every_setting_is_explained_with_its_default():
    rows = dict(re.findall(r"^\| `(\w+)`(?: \(`--[a-z-]+`\))? \| (.*?) \|", OPERATING, re.M))
    defaults = msgspec.structs.asdict(Settings())
    assert rows.keys() >= defaults.keys()
    for name, default in defaults.items():
        said = rows[name].strip("`").replace("8 MiB", str(8 * 2**20))
        number = isinstance(default, float) and float(said) == default
        assert number or said == str(default).lower(), name


def test_every_endpoint_and_metric_has_its_line():
    words = PAGE + OPERATING
    for operation in OPERATIONS:
        path = operation.path.replace("{ranker}", "{r}").replace("{event}", "{e}")
        shorter = "…" + path.removeprefix("/v1/rankers/{r}")
        assert f"{path}`" in words or f"{shorter}`" in words, path
    metrics = Metrics(list)
    for family in metrics.registry.collect():
        assert f"`{family.name}" in OPERATING, family.name
