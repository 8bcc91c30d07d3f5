"""What docs/extending.md adds to the package: in how many places, and found by the tests' tables.

A copy of the tree gets a row of each kind, made of nothing but the page. Its own tests must know
them all.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

pytestmark = pytest.mark.interpreted

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "extending.md").read_text("utf-8")
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE, re.S)
PLACES = {
    kind: re.findall(r"`((?:src|docs)/[\w./-]+)`", rest)
    for kind, rest in re.findall(r"^\| ([\w -]+) \| (.*`docs/\S+ \|)$", PAGE, re.M)
}
"""The files and folders that the table of the page names for each kind."""
MOST = 3


def block(text: str) -> str:
    """Return the one block of the page with some text."""
    (found,) = [each for each in BLOCKS if text in each]
    return found


class New(NamedTuple):
    """A new thing: its file, the text of its row and that of its page."""

    file: str
    text: str
    row: str
    said: str


def added(kind: str) -> New:
    """Return what the page adds of a kind."""
    rows_of = "from keyhole.contracts.rows import DASHED, Guarantee, Look\n"
    ranker = block("class Greedy").replace("import numpy", f"{rows_of}import numpy", 1)
    ranker = ranker.replace("    by_item =", f"{block('look = Look')}    by_item =")
    rows = {
        "ranker of one list": New(
            "greedy.py",
            ranker,
            '"by-totals": "keyhole.rankers.fixed.greedy:Greedy"',
            "`by-totals`",
        ),
        "measure": New(
            "first_good.py",
            block("class FirstGood"),
            '"FirstGood": "keyhole.measures.first_good:FirstGood"',
            "`FirstGood`",
        ),
        "world": New(
            "weekend.py",
            block("class Weekend"),
            '"weekend": "keyhole.worlds.weekend:Weekend"',
            "`weekend`",
        ),
        "surrogate": New(
            "absolute.py",
            block("class Absolute"),
            '"absolute": "keyhole.surrogates.absolute:Absolute"',
            "`absolute`",
        ),
        "store": New(
            "counted.py",
            block("class CountedStore"),
            'StoreRow("counted", "keyhole.service.store.counted:CountedStore")',
            "`counted:`",
        ),
        "command": New(
            "count.py",
            block("def count_command"),
            '"count": CommandRow("count:count_command", "Say how many rankers there are.")',
            "## keyhole count\n\nSays how many rankers there are.",
        ),
        "endpoint": New("system.py", block("def hello"), block('"/hello"'), "`/hello`"),
    }
    return rows[kind]


BEFORE = {
    "ranker of one list": "        # of query-document lists\n",
    "store": "    )\n}\n",
    "endpoint": ")  # fmt: skip\n",
}
"""What a row is written before, where that is not the end of the first table of its file."""


def add(kind: str, new: New, root: Path) -> None:
    """Write a new thing into the places that the page names."""
    *code, page = PLACES[kind]
    folder, table = root / code[0], root / code[-1]
    if kind == "endpoint":
        table = folder / new.file
        text = table.read_text("utf-8").replace("OPERATIONS = (", f"{new.text}\n\nOPERATIONS = (")
        table.write_text(text, "utf-8")
    else:
        (folder / new.file).write_text(new.text, "utf-8")
    before, text = BEFORE.get(kind), table.read_text("utf-8")
    if before is None:
        before = re.findall(r"^(?:    \},\n\)|\})\n", text, re.M)[0]
    assert text.count(before) >= 1, (kind, before)
    row = new.row.rstrip().rstrip(",")
    table.write_text(text.replace(before, f"        {row},\n{before}", 1), "utf-8")
    with (root / page).open("a", encoding="utf-8") as file:
        file.write(f"\n{new.said}\n")


def contents(root: Path) -> dict[Path, bytes]:
    """Return every file of the package and the docs."""
    return {
        path.relative_to(root): path.read_bytes()
        for top in ("src", "docs")
        for path in (root / top).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    """Return a copy of the tree, whose tests and settings are links."""
    root = tmp_path_factory.mktemp("tree")
    for top in ("src", "docs"):
        shutil.copytree(ROOT / top, root / top, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("tests", "bench", "pyproject.toml", "README.md", "papers"):
        (root / name).symlink_to(ROOT / name)
    return root


KINDS = ["ranker of one list", "measure", "world", "surrogate", "store", "command", "endpoint"]


def test_the_page_names_three_places_at_most_and_they_are_there():
    assert {*KINDS, "ranker of query-document lists", "reveal"} == set(PLACES)
    for kind, places in PLACES.items():
        assert 2 <= len(places) <= MOST, kind
        assert all((ROOT / place).exists() for place in places), kind


@pytest.fixture(scope="module")
def touched(tree):
    """Return how many files each kind has touched or added."""
    counts = {}
    for kind in KINDS:
        before = contents(tree)
        add(kind, added(kind), tree)
        after = contents(tree)
        counts[kind] = sum(after[path] != before.get(path) for path in after)
    return counts


def test_a_new_thing_touches_three_files_at_most(touched):
    assert touched == dict.fromkeys(KINDS, 3) | {"endpoint": 2}
    assert max(touched.values()) <= MOST


CHECKED = {
    "tests/contract/test_contracts.py": ["test_ranker[by-totals-default]", "FirstGood", "Weekend"],
    "tests/contract/test_surrogates_policies.py": ["test_surrogate[absolute-default]"],
    "tests/service/test_stores.py": ["test_every_row", "counted"],
    "tests/service/test_openapi.py": ["test_every_endpoint", "test_every_operation"],
    "tests/unit/test_docs.py": ["test_every_row", "count]"],
    "tests/unit/test_monitoring_games.py": ["FirstGood"],
    "tests/unit/test_references_measures.py": ["FirstGood", "test_facts"],
    "tests/lab/test_figures_render.py": ["test_every_ranker_has_a_name"],
    "tests/lab/test_cli_doctor.py": ["count]"],
}
"""Tests of the tree that find new rows by the tables, by parts of their names."""


def test_the_tests_of_the_tree_check_what_is_new(tree, touched):
    found = run(tree, "--collect-only", *CHECKED).splitlines()
    chosen = []
    for file, parts in CHECKED.items():
        for part in parts:
            named = [name for name in found if name.startswith(file) and part in name]
            assert named, (file, part)
            chosen += named
    told = run(tree, *dict.fromkeys(chosen))
    assert re.search(r"^\d+ passed", told, re.M), told[-3000:]
    assert "failed" not in told


def run(tree: Path, *arguments: str) -> str:
    """Run tests of a tree on its own package, interpreted, and return what they print."""
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments],
        env={**os.environ, "PYTHONPATH": str(tree / "src"), "NUMBA_DISABLE_JIT": "1"},
        cwd=tree,
        capture_output=True,
        text=True,
        check=False,
    )
    return ran.stdout + ran.stderr
