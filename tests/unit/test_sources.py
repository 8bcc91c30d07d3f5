"""Short names of the papers' statements: each has its entry, and no user meets one at work."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer.main
from typer.testing import CliRunner

from keyhole.bounds.guarantees import Problem, guarantees
from keyhole.cli.app import app
from keyhole.lab.study import find_study, list_studies, papers_folder
from keyhole.measures import MEASURES
from keyhole.monitoring.classification import classify

ROOT = Path(__file__).parents[2]
LEGEND = ROOT / "docs" / "sources.md"
FOLDERS = ("src", "docs", "tests", "bench", "papers")
COMMANDS = sorted(typer.main.get_command(app).commands)  # type: ignore[attr-defined]

CODE = re.compile(r"\b[MSABXER][1-9]\d?\b")
"""A letter and one or two digits: codes of linters, such as E402, have three."""
KEY = re.compile(r"\[([A-Z][A-Za-z]*\d{2,4}|Ai)\]")
RANGE = re.compile(r"\b([MSABXER])(\d+)(?: to |-)\1(\d+)\b")
NOT_CITED = re.compile(r'"[MSABXER]\d+(\.txt)?"')
"""Names in quotes: the parts of LETOR's folds (S1.txt to S5.txt) and keys of tables in tests."""


def codes_in(text: str) -> set[str]:
    """Return the codes and keys in a text, those inside a range ("B1 to B5") among them."""
    text = NOT_CITED.sub("", text)
    between = {
        f"{letter}{number}"
        for letter, first, last in RANGE.findall(text)
        for number in range(int(first), int(last) + 1)
    }
    return between | set(CODE.findall(KEY.sub("", text))) | set(KEY.findall(text))


def cited() -> dict[str, str]:
    """Return every code and key with one file that cites it."""
    files = [
        path
        for folder in FOLDERS
        for pattern in ("*.py", "*.md", "*.toml")
        for path in (ROOT / folder).rglob(pattern)
        if path not in (LEGEND, Path(__file__))
    ]
    files += [ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
    return {code: str(path) for path in files for code in codes_in(path.read_text("utf-8"))}


def entries() -> list[str]:
    """Return the first column of every table of the legend, in its order."""
    rows = re.findall(r"^\| \[?(\w+)\]? \|", LEGEND.read_text("utf-8"), re.M)
    return [row for row in rows if row not in ("code", "key")]


def test_every_cited_code_has_its_entry_and_every_entry_is_cited():
    legend = entries()
    assert len(set(legend)) == len(legend)
    found = cited()
    assert {code: path for code, path in found.items() if code not in legend} == {}
    assert [code for code in legend if code not in found] == []


def test_codes_are_told_from_what_looks_like_them():
    assert codes_in("A4 and B2's, M1-M3; (R27), [T16] x[i]") == {
        "A4", "B2", "M1", "M2", "M3", "R27", "T16",
    }  # fmt: skip
    assert codes_in('noqa: E402, "S1.txt", MQ2008, H200, T16, A4x, x = row["A2"]') == set()


# ------------------------------------------------------------------ what users see


def shown_by_commands() -> Iterator[tuple[str, str]]:
    runner = CliRunner()
    for arguments in (["list"], ["--help"], *([command, "--help"] for command in COMMANDS)):
        result = runner.invoke(app, arguments, env={"COLUMNS": "200"})
        assert result.exit_code == 0
        yield f"keyhole {' '.join(arguments)}", result.stdout


def shown_by_studies() -> Iterator[tuple[str, str]]:
    """Titles, labels, names and texts of all studies and claims; comments are not shown."""
    for key in list_studies():
        for quick in (False, True):
            study = find_study(key, quick=quick)
            yield f"study {key}", repr(study)
            yield f"claims of {key}", repr(study.claims)
        yield f"page of {key}", (papers_folder() / key / "README.md").read_text("utf-8")


def shown_by_bounds() -> Iterator[tuple[str, str]]:
    for ball in ("l2", "l1"):
        for surrogate in ("listnet", "smooth_dcg", "squared"):
            problem = Problem(
                surrogate, n_queries=100, n_items=5, ball=ball, n_features=4, loss_bound=1.0
            )
            for row in guarantees(problem):
                yield f"bound {row.name}", repr(row)
    for name in MEASURES:
        for grades in (2, 3):
            answer = classify(name, n_items=20, k=1, grades=grades)
            yield f"class of {name}, {grades} grades", str(answer.as_dict())
    yield "certificate", repr(classify("NDCG", n_items=3, k=1).certificate())


def shown_by_strings() -> Iterator[tuple[str, str]]:
    """Every string of the package but docstrings: errors, names, headings and evidence."""
    for path in sorted((ROOT / "src").rglob("*.py")):
        nodes = list(ast.walk(ast.parse(path.read_text("utf-8"))))
        docstrings = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
        for node in nodes:
            if isinstance(node, ast.Constant) and id(node) not in docstrings:
                yield f"{path.name}, line {node.lineno}", str(node.value)


@pytest.mark.parametrize(
    "source", [shown_by_commands, shown_by_studies, shown_by_bounds, shown_by_strings]
)
def test_no_user_meets_a_code(source):
    shown = dict(source())
    assert len(shown) > 5
    assert {place: codes_in(text) for place, text in shown.items() if codes_in(text)} == {}
