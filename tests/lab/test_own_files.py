"""docs/extending.md and docs/living-lists.md, followed word for word."""

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import keyhole
from keyhole.base.errors import InvalidInput, UnknownName
from keyhole.cli.app import app
from keyhole.rankers import RANKERS

pytestmark = pytest.mark.interpreted

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "extending.md").read_text()
FILES = dict(re.findall(r"Save this as `(\w+\.py)`:\n\n```python\n(.*?)```", PAGE, flags=re.S))
COMMANDS = re.findall(r"^    (keyhole .*)$", PAGE, flags=re.M)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("own")
    for name, text in FILES.items():
        (folder / name).write_text(text)
    return folder


def run(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def test_the_page_has_a_file_and_commands_of_each_kind():
    assert set(FILES) == {"greedy.py", "firstgood.py", "weekend.py", "absolute.py"}
    for option in ("--ranker greedy.py", "--measure firstgood.py", "--world weekend.py"):
        for command in ("keyhole play", "keyhole check"):
            assert any(c.startswith(command) and option in c for c in COMMANDS), (command, option)


@pytest.mark.parametrize("command", COMMANDS)
def test_commands_of_the_page(command, folder, monkeypatch):
    monkeypatch.chdir(folder)
    result = run(*shlex.split(command)[1:])
    assert result.exit_code == 0, result.output
    if command.startswith("keyhole check"):
        assert "PASS" in result.stdout
        assert "FAIL" not in result.stdout


def test_a_broken_ranker_fails_its_checks(folder, monkeypatch):
    monkeypatch.chdir(folder)
    broken = FILES["greedy.py"].replace("state.totals[seen.ranking[0]] += seen.values[0]",
                                        "state.totals[0] += seen.values[0]")  # fmt: skip
    (folder / "broken.py").write_text(broken)
    result = run("check", "--ranker", "broken.py:Greedy", "--json")
    assert result.exit_code == 1
    failed = [line for line in json.loads(result.stdout) if not line["holds"]]
    assert any("relabelling" in line["check"] for line in failed)


def test_a_module_on_the_path_is_found_and_goes_into_the_spec(folder, monkeypatch):
    monkeypatch.chdir(folder)
    monkeypatch.syspath_prepend(str(folder))
    for name in ("greedy:Greedy", "greedy.py:Greedy"):
        ranker = keyhole.ranker(name, n_items=4, noise=0.25)
        assert ranker.spec["name"] == name
        assert repr(keyhole.ranker(ranker.spec)) == "Greedy(n_items=4, noise=0.25)"


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("gone.py:Greedy", "'gone.py:Greedy' cannot be imported: there is no file gone.py"),
        ("no.such.module:Greedy", "cannot be imported: No module named 'no'"),
        ("greedy.py:Gredy", "there is no Gredy in greedy.py"),
        ("greedy.py:Params", "must be a subclass of Ranker"),
        ("firstgood.py:FirstGood", "must be a subclass of Ranker"),
        ("bad.py:Greedy", "cannot be imported: SyntaxError("),
        ("odd.py:Greedy", "cannot be imported: NameError(\"name 'nowhere' is not defined\")"),
    ],
)
def test_names_that_lead_nowhere_get_a_sentence(name, sentence, folder, monkeypatch):
    monkeypatch.chdir(folder)
    (folder / "bad.py").write_text("def (:\n")
    (folder / "odd.py").write_text("nowhere()\n")
    with pytest.raises(InvalidInput) as error:
        keyhole.ranker(name, n_items=3)
    assert sentence in str(error.value)
    assert run("play", "--ranker", name).exit_code == 2
    assert run("check", "--ranker", name).exit_code == 2


class _Point:
    """An entry point of an installed package."""

    name = "polite"

    def load(self):
        return RANKERS["random"]


def test_entry_points_name_rows(monkeypatch):
    asked = []

    def points(group):
        asked.append(group)
        return [_Point()]

    monkeypatch.setattr("keyhole.contracts.registry.entry_points", points)
    assert type(keyhole.ranker("polite", n_items=3)) is RANKERS["random"]
    assert asked == ["keyhole.rankers"]
    with pytest.raises(UnknownName, match="Did you mean 'polite'"):
        keyhole.ranker("polit", n_items=3)
    assert "polite" in run("list").stdout


@pytest.mark.parametrize(
    ("owner", "name"),
    [("measure", "NDCG@3"), ("reveal", "top"), ("surrogate", "squared"), ("world", "flips")],
)
def test_every_kind_of_row_can_be_checked(owner, name):
    result = run("check", f"--{owner}", name)
    assert result.exit_code == 0, result.output
    assert "PASS" in result.stdout
    assert run("check", f"--{owner}", f"{name}x").exit_code == 2


def test_a_broken_package_gets_a_sentence(monkeypatch):
    class Broken(_Point):
        def load(self):
            raise ZeroDivisionError("oops")

    monkeypatch.setattr("keyhole.contracts.registry.entry_points", lambda **_: [Broken()])
    with pytest.raises(InvalidInput, match="ranker 'polite' cannot be imported: ZeroDivisionError"):
        keyhole.ranker("polite", n_items=3)
    assert run("list").exit_code == 2


def test_worlds_of_arrays_are_not_checked_by_name():
    result = run("check", "--world", "ratings")
    assert result.exit_code == 2
    assert "world 'ratings' must be given `table`" in result.output


def test_nothing_to_check_is_said():
    result = run("check")
    assert result.exit_code == 2
    assert "must name the class to check" in result.output


def test_tables_refuse_what_is_no_name():
    table: Any = RANKERS
    for given, sentence in (
        (RANKERS["rtopk"], "must be made before it is used"),
        ({"n_items": 3}, "must be a name, a spec with a name in it"),
        ({"name": "ftpl", "version": "99.0", "n_items": 3}, "was written by version 99.0"),
    ):
        with pytest.raises(InvalidInput, match=sentence):
            table.make(given)
    with pytest.raises(InvalidInput, match="Settings go with the name"):
        table.make(keyhole.ranker("ftpl", n_items=3), seed=3)


def test_an_hour_in_production_takes_a_process_for_each_part(tmp_path):
    """What goes from one part to the next are files: nothing else is left of a process."""
    parts = re.split(r"^## ", (DOCS / "living-lists.md").read_text(), flags=re.M)[1:]
    joined = [parts[0], parts[1] + parts[2], parts[3]]
    for number, part in enumerate(joined):
        page = tmp_path / f"part{number}.md"
        page.write_text(part)
        done = subprocess.run(
            [sys.executable, "-m", "doctest", page.name], cwd=tmp_path, capture_output=True,
            text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout
    assert {path.name for path in tmp_path.iterdir()} >= {"impression.json", "shop.npz"}
