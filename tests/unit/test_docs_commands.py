"""Every command that README and the pages of docs name is run, on small files and for few rounds.

Pages of start, tutorials and concepts are followed word for word (test_pages.py), service.md with a
server (tests/client/test_docs_service.py). Here are the lines that stand for themselves: what they
name is there, and they end well. How many rounds they play is not as the page says.
"""

import gzip
import re
import shlex
import shutil
from pathlib import Path

import numpy as np
import pytest
import typer.main
from typer.testing import CliRunner

from keyhole.cli.app import app
from keyhole.data.bandit.files import write_bandit_csv
from keyhole.data.bandit.log import BanditLog
from keyhole.service.commands import (
    Configure,
    FeedbackRequest,
    GiveFeedback,
    Rank,
    RankerRequest,
    RankRequest,
)
from keyhole.service.engine import Engine
from keyhole.service.store import open_store
from tests.service.addresses import SERVING, address_of, as_owner

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.interpreted

ELSEWHERE = {"service.md"}
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]

NOT_RUN = {
    "serve": "goes on until it is stopped: tests/unit/test_bench_commands.py starts it",
    "reproduce": "plays a paper's study: tests/papers, for every one of them",
    "warm": "compiles, which is its work: tests/lab/test_warm.py",
    "doctor": "looks at this machine: tests/lab/test_cli_doctor.py",
    "completion": "writes for a shell: tests/lab/test_cli_doctor.py",
}
"""Commands of which no line is run here, and why."""

SMALL = {"--rounds": 40, "--runs": 2, "--steps": 50, "--rows": 60}
"""Options that make a command long, and the most they are here."""
GIVEN = {
    "play": ("--rounds", "--runs"),
    "learn": ("--rounds",),
    "compare": ("--rounds", "--runs"),
    "train-policy": ("--steps",),
}
"""Commands that are long unless told otherwise."""
LESS = {"2-5": "2-3", "20000": "40", "100000": "40", "keyhole": SERVING}


def commands_of(page):
    """Return the lines of a page that are commands of Keyhole, without what is the shell's."""
    text = page.read_text().replace("\\\n", " ")
    lines = re.findall(r"^(?: {4}|)(keyhole [a-z].*)$", text, re.M)
    found = []
    for line in lines:
        words = shlex.split(line, comments=True)
        ends = [words.index(word) for word in ("&&", "|", ">", ">>") if word in words]
        found.append(tuple(words[1 : min(ends, default=len(words))]))
    return found


COMMANDS = [
    (page.name, words)
    for page in PAGES
    if page.name not in ELSEWHERE
    for words in commands_of(page)
]


def small(words):
    """Return a command that does the same with less, and in databases of the tests."""
    command, *rest = words
    made = [address_of_page(LESS.get(word, word)) for word in rest]
    if rest and "*" in rest[0]:  # which a shell makes the names of files
        made[:1] = map(str, Path().glob(made[0]))
    for option, most in SMALL.items():
        if option in made:
            made[made.index(option) + 1] = str(most)
        elif option in GIVEN.get(command, ()):
            made += [option, str(most)]
    return [command, *made]


def address_of_page(word):
    """Return the address of a database of this folder in place of that of a page."""
    return as_owner(address_of("postgresql", Path.cwd() / word)) if "://" in word else word


def lists_of(seed, n_lists=12):
    numbers, lines = np.random.default_rng(seed), []
    for query in range(n_lists):
        for _ in range(4):
            row = numbers.random(3)
            grade = int(row[0] > 0.5) + int(row[0] > 0.8)
            features = " ".join(f"{place}:{x:.3f}" for place, x in enumerate(row, 1))
            lines.append(f"{grade} qid:{query} {features}")
    return "\n".join(lines) + "\n"


def saved_as(name):
    """Return the file of a name that the page on extending shows."""
    text = (ROOT / "docs" / "extending.md").read_text()
    found = re.search(rf"Save this as `{re.escape(name)}`:\n\n```python\n(.*?)```", text, re.S)
    assert found is not None, name
    return found[1]


def games_of(seed):
    """Return a matrix game of a user's own, and what is fed back of it."""
    numbers = np.random.default_rng(seed)
    return "\n".join(",".join(map(str, row)) for row in numbers.integers(2, size=(3, 2)))


def run(words):
    """Run a command, whose settings are those of a page, and return what it has printed."""
    ran = CliRunner().invoke(app, list(words), env={"COLUMNS": "100"})
    assert ran.exit_code in (0, 1), f"{shlex.join(words)}\n{ran.output}{ran.stderr}"
    return ran.output


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Make a folder with every file that a line of the pages names."""
    folder = tmp_path_factory.mktemp("pages")
    numbers = np.random.default_rng(0)
    (folder / "train.txt").write_text(lists_of(1))
    (folder / "vali.txt").write_text(lists_of(2))
    (folder / "test.txt").write_text(lists_of(3))
    with gzip.open(folder / "S1.txt.gz", "wt") as out:
        out.write(lists_of(4))
    rows = [",".join(map(str, row)) for row in numbers.integers(1, 6, size=(9, 4))]
    (folder / "ratings.csv").write_text("ant,bee,cat,dog\n" + "\n".join(rows) + "\n")
    for seed, name in enumerate(("log.csv", "rest.csv")):
        write_bandit_csv(clicks(seed), folder / name)
    for name in ("service.db", "keyhole.db", "monday.db"):
        fill(folder / name)
    for name in ("loss.csv", "feedback.csv"):
        (folder / name).write_text(games_of(len(name)) + "\n")
    for name in ("greedy.py", "firstgood.py", "weekend.py", "absolute.py"):
        (folder / name).write_text(saved_as(name))
    page = (ROOT / "docs" / "command-line.md").read_text()
    settings = re.search(r"^    # game\.toml\n((?:    .*\n|\n)+?)\n    keyhole", page, re.M)
    assert settings is not None
    (folder / "game.toml").write_text(settings[1].replace("    ", "").replace("100000", "40"))
    return folder


def clicks(seed):
    """Return a log of two advertisements, the second of which earns more."""
    numbers = np.random.default_rng(seed)
    contexts, actions = numbers.normal(size=(200, 2)), numbers.integers(2, size=200)
    rewards = numbers.random(200) < 0.3 + 0.3 * actions
    return BanditLog.of(contexts, actions, rewards, np.full(200, 0.5))


def fill(path):
    """Write a service's log with a ranker called shop."""
    with open_store(path) as store:
        engine = Engine(store)
        engine.execute(Configure("shop", RankerRequest(items=["tea", "milk"], seed=1)))
        for _ in range(3):
            shown = engine.execute(Rank("shop", RankRequest()))
            told = FeedbackRequest(relevance=[1.0])
            engine.execute(GiveFeedback("shop", shown.event_id, told))


BEFORE = {
    "m.npz": "learn train.txt --rounds 40 --model m.npz",
    "model.npz": "learn train.txt --rounds 40 --model model.npz",
    "policy.npz": "train-policy log.csv --out policy.npz --steps 50",
    "ranker.npz": "train-policy log.csv --out ranker.npz --steps 50",
    "proof.json": "classify NDCG --items 4 --top 2 --certificate proof.json",
}
"""What makes the files that other commands have made before."""


def made_before(words):
    """Return the files that a command needs of others; ``learn`` and ``train-policy`` make some."""
    makes = {words[words.index(o) + 1] for o in ("--out", "--certificate") if o in words}
    if words[0] == "learn" and "--model" in words:
        makes.add(words[words.index("--model") + 1])
    return [name for name in BEFORE if name in words and name not in makes]


def test_there_are_many_and_every_exception_has_one():
    named = {words[0] for _, words in COMMANDS}
    assert len(COMMANDS) > 60
    assert set(NOT_RUN) <= named
    known = set(typer.main.get_command(app).commands)  # type: ignore[attr-defined]
    assert named <= known


@pytest.mark.parametrize(
    ("page", "words"), [(page, w) for page, w in dict.fromkeys(COMMANDS) if w[0] not in NOT_RUN]
)
def test_a_command_of_a_page_works(page, words, files, tmp_path, monkeypatch):
    folder = shutil.copytree(files, tmp_path / "files")
    monkeypatch.chdir(folder)
    for name in made_before(words):
        run(BEFORE[name].split())
    if words[:2] == ("db", "restore"):
        (folder / words[3]).unlink()  # never over a file that is there
    if words[:2] == ("db", "backup"):
        (folder / words[3]).unlink()
    if words[:2] == ("keys", "remove"):
        database = words[words.index("--db") + 1]
        key = run(["keys", "create", "--db", database, "--scope", "admin", "--ranker", "*"])
        words = tuple(key.split("_")[1] if word == "0123abcd" else word for word in words)
    run(small(words))
