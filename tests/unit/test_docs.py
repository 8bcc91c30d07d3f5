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


LESS = re.compile(r"eystone|[Rr]ecall|sees? (?:only )?(?:one|the first)|one item of twenty")
ALL = re.compile(
    r"ftpl|full[- ](?:information|feedback)|sees? (?:all|everything)|all labels|listnet", re.I
)
AHEAD = re.compile(r"\b(?:ahead of|better than|beats?|outperforms?|less regret than|worse than)\b")
STRONGEST = {
    "one list": re.compile(r"eader\b"),
    "lists": re.compile(r"[Rr]ecall that is(?: shown all)?\b|itself"),
}
"""Who sees less, who sees all, a claim of being better, and by what the best of all is named."""


def sections():
    """Return each part of a page that a person reads at once, with where it is."""
    papers = [path / "README.md" for path in (ROOT / "papers").iterdir() if path.is_dir()]
    for page in [ROOT / "README.md", *PAGES, *papers]:
        if page.name != "numbers.md":
            for number, text in enumerate(re.split(r"^## ", page.read_text(), flags=re.M)):
                yield f"{page.relative_to(ROOT)}, section {number}", text


def claims_of_being_ahead():
    """Yield each sentence that compares who sees less with who sees all, with where it stands."""
    texts = list(sections())
    for study in list_studies().values():
        texts += [(f"a claim of {study.key}", claim["text"]) for claim in study.claims]
    texts += [(name, cls.guarantee.sense) for name, cls in RANKERS.items() if cls.guarantee]
    for where, text in texts:
        for sentence in re.split(r"(?<=[.!?:])\s+(?=[A-Z`*|])|\n\n|\n\|", text):
            said = " ".join(sentence.split())
            if LESS.search(said) and ALL.search(said) and AHEAD.search(said):
                yield where, said


def best_that_sees_all(study, group):
    """Return who has the best value of those that see everything in what is kept of a study."""
    kept = json.loads((ROOT / "docs/results" / f"{study}.json").read_text())["curves"]
    ends = {
        label.removeprefix(f"{group}: "): curve["mean"][-1]
        for label, curve in kept.items()
        if label.startswith(f"{group}: ") and ("sees everything" in label or "all labels" in label)
    }
    return (
        min(ends, key=ends.__getitem__) if study == "winners" else max(ends, key=ends.__getitem__)
    )


def unfair(sentences):
    """Return the claims that leave out the strongest of those that see everything."""
    return [
        (where, said)
        for where, said in sentences
        if not any(name.search(said) for name in STRONGEST.values())
    ]


def test_who_is_ahead_of_full_information_is_so_of_the_strongest_or_names_it():
    assert best_that_sees_all("winners", "flips") == "leader, sees everything"
    assert best_that_sees_all("winners-lists", "MQ2008") == "recall, all labels"
    claims = list(claims_of_being_ahead())
    assert len(claims) >= 5
    assert unfair(claims) == []
    for page in ("README.md", "docs/index.md", "docs/rankers.md", "docs/compare.md"):
        beside = [t for where, t in sections() if where.startswith(f"{page},") and ".0129" in t]
        assert any(re.search(r"leader\b.*\.0040", text, re.S) for text in beside), page


def test_an_unfair_claim_would_be_noticed():
    said = "keystone, which sees one item, is ahead of FTPL, which sees everything"
    assert LESS.search(said)
    assert ALL.search(said)
    assert AHEAD.search(said)
    assert unfair([("a page", said)]) == [("a page", said)]
    assert unfair([("a page", f"{said}, and behind the leader")]) == []


def test_what_is_drawn_of_full_information_names_its_tuning():
    curves = [c for c in list_studies()["winners"].curves if c.spec.ranker == "ftpl"]
    assert curves
    for curve in curves:
        assert curve.spec.as_dict()["ranker_options"] or "theorem's noise" in curve.name
    (picture,) = (ROOT / "docs/images").glob("winners.svg")
    drawn = html.unescape(picture.read_text())
    assert "FTPL, sees everything, its theorem's noise" in drawn
    assert "leader, sees everything" in drawn
