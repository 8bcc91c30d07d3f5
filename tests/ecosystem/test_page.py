"""The examples of docs/ecosystems.md, section by section: each stands on its own."""

import doctest
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "ecosystems.md"
SECTIONS = dict(
    part.split("\n", 1) for part in PAGE.read_text().split("\n## ")[1:] if "\n>>> " in part
)


@pytest.mark.parametrize("title", SECTIONS)
def test_every_section_runs(title):
    examples = doctest.DocTestParser().get_doctest(
        SECTIONS[title].replace("```", ""), {}, f"ecosystems.md, {title}", str(PAGE), 0
    )
    told: list[str] = []
    result = doctest.DocTestRunner(verbose=False).run(examples, out=told.append)
    assert result.attempted > 5
    assert not result.failed, "".join(told)


def test_every_package_has_its_section():
    assert set(SECTIONS) == {
        "scikit-learn", "Open Bandit Pipeline", "Vowpal Wabbit", "PyTerrier", "MLflow", "coba"
    }  # fmt: skip
