"""Whatever a user can name is in the docs, and what the docs link to is there."""

import html
import importlib
import json
import re
from pathlib import Path

import pytest
import typer.main

from keyhole.cli.app import app
from keyhole.contracts.registry import options_of
from keyhole.data.bandit.campaign import SHAPES
from keyhole.lab import atlas
from keyhole.lab.bound_lines import LINES
from keyhole.lab.claims import CLAIMS
from keyhole.lab.kinds import KINDS
from keyhole.lab.study import list_studies
from keyhole.measures import MEASURES
from keyhole.policies import POLICIES, SCORERS
from keyhole.policies.aligning import ALIGNMENTS
from keyhole.policies.pairs import LOSSES
from keyhole.policies.training import NO_CLICK_RULES
from keyhole.rankers import RANKERS
from keyhole.rankers.fixed.base import FixedListRanker
from keyhole.rankers.fixed.subroutines import SUBROUTINES
from keyhole.rankers.lists.base import ContextualRanker
from keyhole.reveals import REVEALS
from keyhole.worlds import WORLDS

ROOT = Path(__file__).parents[2]
PAGES = [path for path in (ROOT / "docs").rglob("*.md") if path.parent.name != "papers"]
"""Pages of papers are made of the studies when the site is built."""
DOCS = {path.name: path.read_text() for path in (ROOT / "docs").glob("*.md")}
COMMANDS = typer.main.get_command(app).commands  # type: ignore[attr-defined]


COMPARED = sorted(
    {
        name.partition(", ")[0]
        for name in json.loads((ROOT / "tests/contract/digests.json").read_text())
    }
)
"""Rankers whose games are kept: one that is new may come later to the page that compares all."""


def _of(base):
    return [name for name, cls in RANKERS.items() if issubclass(cls, base)]


@pytest.mark.parametrize(
    ("page", "names"),
    [
        ("rankers.md", [*_of(FixedListRanker), *SUBROUTINES, *options_of(RANKERS["rtopk"])]),
        ("contextual.md", _of(ContextualRanker)),
        ("compare.md", COMPARED),
        ("measures.md", list(MEASURES)),
        ("worlds.md", list(WORLDS)),
        ("reveals.md", list(REVEALS)),
        ("policies.md", [*POLICIES, *SCORERS, *ALIGNMENTS, *LOSSES, *SHAPES, *NO_CLICK_RULES[1:]]),
        ("studies.md", [*list_studies(), *CLAIMS, *LINES, *KINDS]),
    ],
)
def test_every_row_has_its_line(page, names):
    missing = [
        name for name in names if not re.search(rf"`{re.escape(name)}[`@]|{name}", DOCS[page])
    ]
    assert not missing


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_and_option_is_documented(command):
    page = DOCS["command-line.md"]
    section = page.split(f"## keyhole {command}")[1].split("\n## ")[0]
    options = [name for p in COMMANDS[command].params for name in p.opts if name.startswith("--")]
    assert [name for name in options if f"`{name}" not in section] == []


def test_every_ranker_option_is_explained_in_its_docstring():
    for cls in RANKERS.values():
        for name in options_of(cls):
            assert re.search(rf"^    [\w, ]*\b{name}\b[\w, ]*$", cls.__doc__ or "", re.M), (
                cls,
                name,
            )


def leads_somewhere(target):
    """Return whether a file is there, or will be when the site is built."""
    made = target.parent == ROOT / "docs" / "papers"
    return target.exists() or (made and target.stem in ("index", *list_studies()))


def test_links_between_pages_lead_somewhere():
    for page in [*PAGES, *ROOT.glob("*.md")]:
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text()):
            leads = leads_somewhere((page.parent / target).resolve())
            assert leads, f"{page.name} links to {target}"


def test_every_page_is_in_the_navigation():
    """Of the site: a page that no toctree names is found by nobody."""
    named = set()
    for page in PAGES:
        for tree in re.findall(r"```{toctree}\n(.*?)```", page.read_text(), re.S):
            lines = [line for line in tree.split("\n") if line and not line.startswith(":")]
            named |= {(page.parent / f"{line}.md").resolve() for line in lines}
    assert [page for page in PAGES if page not in named] == [ROOT / "docs" / "index.md"]
    assert [page for page in named if not leads_somewhere(page)] == []


def test_every_study_has_its_results():
    """`python -m bench.site.papers out/KEY` keeps those of a study that was reproduced."""
    kept = {path.stem: json.loads(path.read_text()) for path in (ROOT / "docs/results").iterdir()}
    assert sorted(kept) == sorted(list_studies())
    for key, study in list_studies().items():
        assert [v["claim"] for v in kept[key]["verdicts"]] == [c["text"] for c in study.claims]
        assert set(kept[key]["curves"]) <= {curve.label for curve in study.curves}


def test_the_atlas_of_the_docs_is_what_the_command_writes(tmp_path, monkeypatch):
    monkeypatch.setattr(atlas, "_ENUMERATED", 400)  # what else can be enumerated, tests are of
    columns = atlas.columns_of(atlas.MEASURES, (3, 4, 5), (2, 3))
    table = atlas.atlas_markdown(atlas.make_atlas(columns, tmp_path, workers=1))
    assert table in DOCS["learnability.md"]


def resolves(name):
    """Return whether a dotted name is a module of the package, or something in one."""
    parts = name.split(".")
    for n_parts in range(len(parts), 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:n_parts]))
        except ModuleNotFoundError:
            continue
        for part in parts[n_parts:]:
            if part in getattr(found, "__dataclass_fields__", ()):
                return True
            if not hasattr(found, part):
                return False
            found = getattr(found, part)
        return True
    return False


SOURCES = sorted((ROOT / "src").rglob("*.py"))
TEXTS = [*SOURCES, *PAGES, ROOT / "README.md", ROOT / "CONTRIBUTING.md"]


def test_names_that_texts_refer_to_are_there():
    assert not resolves("keyhole.game.play.nothing")
    names = {
        (name, path.name)
        for path in TEXTS
        for name in re.findall(r"\bkeyhole(?:\.[A-Za-z_]\w*)+", path.read_text())
        if not name.endswith((".db", ".toml"))  # files of a user's own
    }
    assert [(name, where) for name, where in sorted(names) if not resolves(name)] == []


def test_pages_that_the_code_refers_to_are_there():
    pages = {
        (page, path.name)
        for path in SOURCES
        for page in re.findall(r"[\w/-]+\.md\b", path.read_text())
    }
    written = {("atlas.md", "atlas.py")}  # by the command of that name
    missing = [(page, where) for page, where in pages - written if not (ROOT / page).is_file()]
    assert missing == []


THEOREMS_NOISE, A_HUNDREDTH = re.compile(r"\.020[02]?\b"), re.compile(r"\.004[03]?\b")
"""What FTPL, told everything, comes to on flips: as its theorem says, and with less noise."""


def sections():
    """Return each part of a page that a person reads at once, with where it is."""
    papers = [path / "README.md" for path in (ROOT / "papers").iterdir() if path.is_dir()]
    for page in [ROOT / "README.md", *PAGES, *papers]:
        if page.name != "numbers.md":
            for number, text in enumerate(re.split(r"^## ", page.read_text(), flags=re.M)):
                yield f"{page.relative_to(ROOT)}, section {number}", text


def test_who_is_ahead_of_full_information_says_of_which_and_shows_the_best():
    """keystone is ahead of FTPL with its theorem's noise, and far behind it with less."""
    alone = [
        where
        for where, text in sections()
        if "eystone" in text and re.search("ftpl", text, re.I) and THEOREMS_NOISE.search(text)
        and not A_HUNDREDTH.search(text)
    ]  # fmt: skip
    assert alone == []
    untuned = [
        where
        for where, text in sections()
        if "Keystone(" in text and "FTPL(" in text and "eps_scale=0.01" not in text
    ]
    assert untuned == []
    told = {where for where, text in sections() if A_HUNDREDTH.search(text) and "0136" in text}
    for page in ("README.md", "docs/index.md", "docs/rankers.md", "docs/compare.md"):
        assert any(where.startswith(f"{page},") for where in told), page


def test_what_is_drawn_and_advised_of_full_information_names_its_tuning():
    curves = [c for c in list_studies()["winners"].curves if c.spec.ranker == "ftpl"]
    assert curves
    for curve in curves:
        assert curve.spec.as_dict()["ranker_options"] or "theorem's noise" in curve.name
    (picture,) = (ROOT / "docs/images").glob("winners.svg")
    assert "FTPL, sees everything, its theorem's noise" in html.unescape(picture.read_text())
    proved = RANKERS["keystone"].guarantee
    assert proved is not None
    said = proved.sense
    assert THEOREMS_NOISE.search(said)
    assert A_HUNDREDTH.search(said)
