"""Every command of ``bench`` and every target of the Makefile: a small run of each, or why not.

What is run is the function that ``python -m`` calls, in this process and as small as it can be.
That it ends with a verdict is the test, not which: no figure of so small a run means anything.
"""

import importlib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
import urllib.request
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from typer.testing import CliRunner

from bench import __main__ as whole
from bench.site import notebooks
from keyhole.cli.app import app

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.interpreted


class Run(NamedTuple):
    """A small run: its arguments, what it must print, and its exit codes."""

    arguments: str
    prints: str
    codes: tuple[int, ...] = (0,)


class Elsewhere(NamedTuple):
    """Where another test runs a command, or most of it."""

    test: str


class Help(NamedTuple):
    """Why nothing but the help is run."""

    because: str


VERDICT = (0, 1)
"""Of a promise about speed, which nobody measures here."""
COMMANDS: dict[str, Run | Elsewhere | Help] = {
    "bench": Run(
        "--only endurance --events 300 --tail 20", "All promises are kept|Not kept", VERDICT
    ),
    "bench.adversary": Run(
        "--items 2 --rounds 12 --tries 2 --against leader", r"\| 2 \| leader \|", VERDICT
    ),
    "bench.api_cases": Run("30", "requests in .* and no fault"),
    "bench.batches": Run("--repetitions 2 --folder {tmp}", "rank-batch, least"),
    "bench.bit_flips": Run("--times 6 --rounds 30", r"6 flips: .*\d+ (found|harmless|healed)"),
    "bench.battery": Run("--quick --orders philox --jobs 1", "diehard", (0,)),
    "bench.cold": Help("compiles the package and another version from empty caches, for minutes"),
    "bench.copying": Run("--events 60", "60 events in .* every hash is the same", VERDICT),
    "bench.costs": Run("--only fixed --rounds 50", r"^fixed +[\d,]+ ns"),
    "bench.coverage": Run("--logs 2", "neglected-baseline"),
    "bench.defaults": Run(
        "--rounds 1 --data 'like Yandex' --lists 1", "contextual-rtopk, squared", VERDICT
    ),
    "bench.endurance": Elsewhere("tests/unit/test_bench_commands.py::--only endurance"),
    "bench.fuzz": Elsewhere("tests/attack/test_fuzz.py"),
    "bench.game": Run("--tiny --fused", "promises kept", VERDICT),
    "bench.hostile": Run(
        "--cases 60 --at-once 4 --held 8 --flood-seconds 0.05",
        "60 hostile requests of 60",
        VERDICT,
    ),
    "bench.kills": Elsewhere("tests/attack/test_signals.py"),
    "bench.letor": Run(
        "--rows 30 --turns 1", "every bit as scikit-learn reads it .* True", VERDICT
    ),
    "bench.lists": Run("--rounds 4 --turns 1 --measured 3", "promises kept", VERDICT),
    "bench.load": Run("--seconds 0.02 --turns 1 --folder {tmp}", "feedback .* requests/s", VERDICT),
    "bench.many_rankers": Run(
        "--rankers 12 --requests 20 --turns 1 --features 16 --folder {tmp}", "GET / .* s", VERDICT
    ),
    "bench.memory": Run("4 10 20", r"^\[\d+, \d+, \d+\]"),
    "bench.mq2008": Elsewhere("tests/unit/test_batch_mq2008.py"),
    "bench.mutants": Elsewhere("tests/unit/test_mutants.py"),
    "bench.numbers": Elsewhere("tests/unit/test_numbers.py"),
    "bench.numbers_tools": Elsewhere("tests/unit/test_numbers.py::numbers.main"),
    "bench.peers": Elsewhere("tests/unit/test_bench_lists.py::contend_with_peers"),
    "bench.policies": Run("--share 0.00001", "contexts through 200 trees", VERDICT),
    "bench.powercuts": Run("--images 20", "20 images: 20 whole"),
    "bench.preparing": Elsewhere("tests/service/test_preparing.py"),
    "bench.quick": Elsewhere("tests/unit/test_quick.py"),
    "bench.recall": Run("--tiny", "3 features: ListNet", VERDICT),
    "bench.rivals": Run(
        "--crowds 'two items, 0.2' --rounds 40 --runs 2 --only keystone pege --kept {tmp}/kept",
        "1 of 1 within|0 of 1 within",
    ),
    "bench.sabotage": Run(
        "--rounds 100 --runs 2 --crowds flips", "no safe half, the hardest", VERDICT
    ),
    "bench.sbom": Elsewhere("tests/unit/test_sbom.py"),
    "bench.screenshots": Help("needs Chromium; tests/browser shows the same pages"),
    "bench.service_kills": Elsewhere("tests/service/test_kills.py"),
    "bench.site.notebooks": Run("", "^$"),
    "bench.site.pages": Elsewhere("tests/unit/test_pages.py"),
    "bench.site.papers": Elsewhere("tests/unit/test_paper_pages.py"),
    "bench.site.pictures": Run("--only winners --out {tmp}", r"winners\.svg"),
    "bench.site.sentences": Run("--count 3", "3 of [0-9]+ sentences"),
    "bench.site.tutorials": Help(
        "installs all dependencies; tests/unit/test_pages.py follows them"
    ),
    "bench.threads": Run("--calls 80 --rounds 1 --turns 1", "random-lists is safe", VERDICT),
    "bench.wheel": Elsewhere("tests/unit/test_shipped.py"),
}
"""Every module of bench that can be run."""


def runnable():
    """Return the modules below bench that ``python -m`` runs."""
    names = set()
    for path in sorted((ROOT / "bench").rglob("*.py")):
        if re.search(r'^if __name__ == "__main__":', path.read_text(), re.M):
            parts = path.relative_to(ROOT).with_suffix("").parts
            names.add(".".join(part for part in parts if part != "__main__"))
    return names


def run(name, arguments, monkeypatch, capsys):
    """Return the exit code and what was printed."""
    file = f"{name}.__main__" if (ROOT / name.replace(".", "/") / "__main__.py").exists() else name
    module: Any = importlib.import_module(file)
    monkeypatch.setattr(sys, "argv", [f"python -m {name}", *shlex.split(arguments)])
    try:
        code = module.main()
    except SystemExit as ended:
        code = ended.code
    told = capsys.readouterr()
    return code, told.out + told.err


@pytest.fixture
def small(monkeypatch, tmp_path):
    """Let everything go to a folder of the test, and whoever asks for one thread have it."""
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        monkeypatch.setenv(name, "1")
    monkeypatch.setattr("bench.report.OUT", tmp_path / "bench.json")
    monkeypatch.setattr("bench.lists.OUT", tmp_path)
    # Each connection asks at least once, for as many lists as a batch has.
    monkeypatch.setattr("bench.load.CONNECTIONS", (1, 3))
    monkeypatch.setattr("bench.load.N_BATCH", 4)
    monkeypatch.setattr("bench.battery.OUT", tmp_path / "battery.json")
    monkeypatch.setattr("bench.site.notebooks.NOTEBOOKS", tmp_path / "notebooks")
    dieharder = tmp_path / "bin" / "dieharder"
    dieharder.parent.mkdir()
    dieharder.write_text(
        "#!/bin/sh\nhead -c 1000000 > /dev/null\necho 'diehard_birthdays | 0 | 0.5 | PASSED'\n"
    )
    dieharder.chmod(0o755)
    monkeypatch.setenv("PATH", f"{dieharder.parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setattr(os, "nice", lambda _: 0)  # of this process, which goes on
    return tmp_path


def test_every_command_has_a_row():
    assert set(COMMANDS) == runnable()


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", [n for n, row in COMMANDS.items() if isinstance(row, Run)])
def test_a_command_ends_with_a_verdict(name, small, monkeypatch, capsys):
    row: Any = COMMANDS[name]
    code, told = run(name, row.arguments.format(tmp=small), monkeypatch, capsys)
    assert code in row.codes, told
    assert re.search(row.prints, told, re.M), told


def test_what_runs_writes_where_it_is_told(small, monkeypatch, capsys):
    kept = sorted(notebooks.DOCS.glob("notebooks/*.ipynb"))
    run("bench.site.notebooks", "", monkeypatch, capsys)
    written = sorted((small / "notebooks").glob("*.ipynb"))
    assert [path.read_bytes() for path in written] == [path.read_bytes() for path in kept]


@pytest.mark.parametrize("name", [n for n, row in COMMANDS.items() if isinstance(row, Help)])
def test_what_is_not_run_says_what_it_would_do(name, monkeypatch, capsys):
    code, told = run(name, "--help", monkeypatch, capsys)
    assert code == 0
    assert f"python -m {name}" in told


@pytest.mark.parametrize("name", [n for n, row in COMMANDS.items() if isinstance(row, Elsewhere)])
def test_what_runs_elsewhere_is_named_there(name):
    row: Any = COMMANDS[name]
    file, _, what = row.test.partition("::")
    text = (ROOT / file).read_text()
    if what:
        assert what in text
    else:
        module = name.removeprefix("bench.")
        assert re.search(rf"bench\.{module}\b|from bench import .*\b{module}\b|/{module}\.py", text)


def test_every_part_of_the_whole_is_a_command():
    assert {f"bench.{part}" for part in whole.PARTS} <= set(COMMANDS)


# --------------------------------------------------------------------------- the Makefile


MAKEFILE = (ROOT / "Makefile").read_text()
TARGETS = sorted(re.findall(r"^([a-z][a-z-]*):", MAKEFILE, re.M))
NOT_OF_BENCH = {
    "help": Elsewhere('tests/unit/test_bench_commands.py::"make", "help"'),
    "run": Elsewhere('tests/unit/test_bench_commands.py::made("run")'),
    "play": Elsewhere('tests/unit/test_bench_commands.py::made("play")'),
    "test": Help("is what runs this"),
    "check": Help("comes before the tests in make test"),
    "format": Help("changes the sources; make check says whether it would"),
    "test-ecosystem": Help("installs a gigabyte into an environment of its own"),
    "cachecases": Elsewhere("tests/contract/test_cache.py"),
    "docs": Elsewhere("tests/unit/test_paper_pages.py"),
    "lock": Help("asks a package index for new versions"),
    "clean": Help("removes the environment that tests run in"),
}
"""Targets whose command is no module of bench."""


def made(target, *options):
    """Return what make says that it would do, with the environment that runs this."""
    return subprocess.run(
        [
            "make",
            "--no-print-directory",
            "-n",
            target,
            f"VENV={sys.prefix}",
            f"PYTHON={sys.executable}",
            *options,
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "MAKEFLAGS": ""},
    )


@pytest.mark.skipif(shutil.which("make") is None, reason="there is no make")
@pytest.mark.parametrize("target", TARGETS)
def test_every_target_is_one_that_make_knows_and_its_commands_are_tested(target):
    ran = made(target)
    assert ran.returncode == 0, ran.stderr
    modules = set(re.findall(r"-m (bench[\w.]*)", ran.stdout))
    assert modules <= set(COMMANDS)
    assert bool(modules) != (target in NOT_OF_BENCH), target
    assert f".PHONY: {target} " in MAKEFILE or f" {target}" in MAKEFILE.split(".PHONY:")[1]


def test_no_target_that_is_left_out_is_gone():
    assert set(NOT_OF_BENCH) <= set(TARGETS)
    for row in NOT_OF_BENCH.values():
        if isinstance(row, Elsewhere):
            file, _, what = row.test.partition("::")
            assert what in (ROOT / file).read_text()


@pytest.mark.skipif(shutil.which("make") is None, reason="there is no make")
def test_sizes_that_the_makefile_names_are_passed_on():
    """``KILLS="--times 10"`` and its like."""
    for target, variable in re.findall(
        r"^([a-z-]+):.*\n\t.*\$\((?:or \$\()?([A-Z]+)\)", MAKEFILE, re.M
    ):
        assert "123" in made(target, f"{variable}=123").stdout, target


def test_what_pages_name_is_there():
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "papers").rglob("*.md")]
    named = {(page.name, name) for page in pages
             for name in re.findall(r"python -m (bench[\w.]*\w)", page.read_text())}  # fmt: skip
    assert len(named) > 10
    assert [each for each in sorted(named) if each[1] not in COMMANDS] == []
    make = re.compile(r"(?:^ +|`)make ([a-z-]+)", re.M)
    made_by = {(page.name, name) for page in pages for name in make.findall(page.read_text())}
    assert len(made_by) > 20
    assert [each for each in sorted(made_by) if each[1] not in TARGETS] == []


@pytest.mark.skipif(shutil.which("make") is None, reason="there is no make")
def test_help_has_a_line_for_every_target():
    told = subprocess.run(
        ["make", "--no-print-directory", "help"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    lines = {line.split()[0]: line.split()[1:] for line in told.stdout.splitlines()}
    assert sorted(lines) == TARGETS
    assert all(lines.values())


@pytest.mark.skipif(shutil.which("make") is None, reason="there is no make")
def test_the_game_that_make_plays_is_played(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (line,) = [
        each for each in made("play").stdout.replace("\\\n", " ").splitlines() if " play " in each
    ]
    words = shlex.split(line)[1:]
    for option, less in (("--rounds", "30"), ("--runs", "2"), ("--items", "5")):
        words[words.index(option) + 1] = less
    ran = CliRunner().invoke(app, words)
    assert ran.exit_code == 0, ran.output
    assert {"keystone", "rtopk", "ftpl", "random"} <= set(ran.output.split())
    assert list((tmp_path / "out").iterdir())


@pytest.mark.skipif(shutil.which("make") is None, reason="there is no make")
def test_the_service_that_make_runs_has_a_demonstration_that_learns(tmp_path):
    (line,) = [each for each in made("run").stdout.splitlines() if " serve " in each]
    words = shlex.split(line)[1:]
    words[words.index("--db") + 1] = str(tmp_path / "keyhole.db")
    with subprocess.Popen(
        [sys.executable, "-W", "ignore", "-m", "keyhole", *words, "--port", "0"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as served:
        assert served.stdout is not None
        try:
            found = re.search(r"http://\S+:\d+", served.stdout.readline())
            assert found is not None
            url = f"{found[0]}/v1/rankers/demo-bookshop/state"
            until, told = time.monotonic() + 60, 0
            while time.monotonic() < until and not told:
                with suppress(OSError), urllib.request.urlopen(url) as answer:  # noqa: S310
                    state = json.load(answer)
                    told = state["seq"] - state["round"] - 1  # it was made, lists were shown
                time.sleep(0.1)
            assert told > 0
        finally:
            served.terminate()
            assert served.wait(30) == 0
