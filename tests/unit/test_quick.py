"""``make quick`` takes the tests that a change can break, and the closest ones first."""

import subprocess
import sys
from pathlib import Path

import pytest

from bench.quick import plugin
from bench.quick.imports import Graph, module_of
from bench.quick.selection import changed_files, choose, row_of

ROOT = Path(__file__).parents[2]
FILES = {
    "src/keyhole/__init__.py": "from keyhole.rankers import Pege",
    "src/keyhole/sorting.py": "",
    "src/keyhole/rankers/__init__.py": "from keyhole.rankers.pege import Pege\nALL = [Pege]",
    "src/keyhole/rankers/pege.py": "from keyhole.sorting import sort\nclass Pege: ...",
    "src/keyhole/play.py": "from keyhole.rankers import ALL",
    "tests/test_sorting.py": "from keyhole.sorting import sort",
    "tests/test_pege.py": "from keyhole import Pege",
    "tests/test_names.py": "make('pege')",
    "tests/test_play.py": "from keyhole import play",
    "tests/contract/test_digests.py": "",
    "docs/game.md": "",
}


@pytest.fixture
def repository(tmp_path):
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path


def chosen(root, *changed):
    return choose(root, [Path(each) for each in changed])


def test_tests_of_a_module_are_those_that_import_or_name_it(repository):
    found = chosen(repository, "src/keyhole/rankers/pege.py")
    assert {"tests/test_pege.py", "tests/test_names.py"} < set(found.files)
    # A table of all rankers makes nothing depend on one of them; a row must keep the contract.
    assert "tests/test_play.py" not in found.files
    assert found.words["tests/contract/test_digests.py"] == ("pege",)


def test_the_closest_come_first(repository):
    files = chosen(repository, "src/keyhole/sorting.py").files
    tests = [path for path in files if path.startswith("tests/test_")]
    assert tests == ["tests/test_sorting.py", "tests/test_pege.py"]
    assert files.index("tests/contract/test_digests.py") > files.index("tests/test_sorting.py")
    assert files.index("tests/test_sorting.py") < files.index("tests/test_pege.py")


def test_tests_and_pages_are_run_themselves(repository):
    assert chosen(repository, "tests/test_play.py").files == ("tests/test_play.py",)
    assert chosen(repository, "docs/game.md").files[0] == "docs/game.md"
    assert chosen(repository, "papers/one.json").unknown == ("papers/one.json",)
    assert chosen(repository).files == ()


def test_names_are_followed_to_where_they_come_from(repository):
    graph = Graph.of(repository)
    assert graph.source_of("keyhole", "Pege") == "keyhole.rankers.pege"
    assert graph.source_of("keyhole", "play") == "keyhole.play"
    assert graph.source_of("keyhole.rankers", "ALL") == "keyhole.rankers"
    assert graph.source_of("numpy", "array") is None


def test_here_a_ranker_has_its_tests_and_its_rows():
    found = chosen(ROOT, "src/keyhole/rankers/fixed/pege.py")
    assert {"src/keyhole/rankers/fixed/pege.py", "tests/unit/test_baselines_fixed.py"} < set(
        found.files
    )
    assert found.words["tests/contract/test_contracts.py"] == ("pege",)
    assert len(found.files) < 15
    shared = chosen(ROOT, "src/keyhole/kernels/sorting.py").files
    assert {"tests/unit/test_sorting.py", "tests/property/test_sorting_property.py"} < set(
        shared[:6]
    )
    assert "tests/contract/test_digests.py" in shared[:8]
    assert len(shared) > 50


def test_modules_and_rows_have_the_names_of_their_files():
    assert module_of(Path("src/keyhole/rankers/fixed/cascade_ucb.py")) == (
        "keyhole.rankers.fixed.cascade_ucb"
    )
    assert module_of(Path("src/keyhole/rankers/__init__.py")) == "keyhole.rankers"
    assert module_of(Path("docs/conf.py")) is None
    assert row_of("keyhole.rankers.fixed.cascade_ucb") == "cascade-ucb"
    assert row_of("keyhole.kernels.sorting") is None


def test_only_tests_that_name_a_row_are_kept(monkeypatch):
    class Item:
        def __init__(self, nodeid):
            self.nodeid = nodeid

    class Hook:
        dropped: list[Item] = []  # noqa: RUF012

        def pytest_deselected(self, items):
            self.dropped = items

    class Config:
        hook = Hook()

    items = [Item("a.py::test[pege-top]"), Item("a.py::test[ftpl]"), Item("b.py::test")]
    monkeypatch.setitem(plugin._settings, "words", {"a.py": ["pege"]})
    plugin.pytest_collection_modifyitems(Config(), items)  # type: ignore[arg-type]
    assert [item.nodeid for item in items] == ["a.py::test[pege-top]", "b.py::test"]
    assert [item.nodeid for item in Config.hook.dropped] == ["a.py::test[ftpl]"]
    plugin.pytest_runtest_setup()
    monkeypatch.setitem(plugin._settings, "until", 0.0)
    with pytest.raises(pytest.skip.Exception, match="make test runs all"):
        plugin.pytest_runtest_setup()


def test_changes_are_asked_of_git():
    assert all(not path.is_absolute() for path in changed_files(ROOT))


COLLECT = """
import sys, pytest
assert pytest.main(["-q", "--collect-only", "src/keyhole/rankers/fixed/pege.py"]) == 0
from keyhole.rankers import RANKERS
assert sys.modules["keyhole.rankers.fixed.pege"].PEGE is RANKERS["pege"]
"""


def test_a_module_whose_examples_are_collected_first_is_the_packages_own():
    """Another of its name would have other classes, of which no code that is kept is found."""
    command = [sys.executable, "-c", COLLECT]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
