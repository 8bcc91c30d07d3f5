"""The files that commands read where their options are tried."""

from pathlib import Path

import numpy as np

WRONG = '''
from keyhole.measures import MEASURES
from keyhole.reveals import REVEALS
from keyhole.surrogates import SURROGATES
from keyhole.worlds import WORLDS


class Measure(MEASURES["DCG"]):
    """Another value than that of its kernel."""

    def __call__(self, relevance, ranking):
        return -1.0


class World(WORLDS["flips"]):
    """Relevance below 0."""

    def relevance(self, *given, **named):
        return super().relevance(*given, **named) - 9.0


class Reveal(REVEALS["top"]):
    """Says that it shows more than it does."""

    def depth(self, n_items):
        return n_items


class Surrogate(SURROGATES["kl"]):
    """Losses that its kernel does not have."""

    def value(self, *given):
        return -1.0
'''


def lists_text(seed, n_lists=8, length=5, *, tied=False, empty=False, named=True):
    numbers = np.random.default_rng(seed)
    rows = []
    for query in range(n_lists):
        labels = sorted(numbers.integers(0, 3, size=length), reverse=tied)
        labels[0] = 0 if empty and query % 2 else 2
        if empty and query % 2:
            labels = [0] * length
        for label in labels:
            x = [1.0, 1.0] if tied else [label + 3.0 * numbers.random(), 9.0 * numbers.random()]
            of = f" qid:{query}" if named else ""
            rows.append(f"{label}{of} 1:{x[0]:.3f} 2:{x[1]:.3f}")
    return "\n".join(rows) + "\n"


def people_text(*, users=False, gaps=False):
    numbers = np.random.default_rng(0)
    heads = [*(["user"] if users else []), "tea", "milk", "rum", "gin"]
    rows = []
    for person in range(30):
        cells = [str(each) for each in numbers.integers(1, 6, size=4)]
        if gaps and person == 3:
            cells[1] = ""
        rows.append(",".join([*([str(person % 5)] if users else []), *cells]))
    return "\n".join([",".join(heads), *rows]) + "\n"


def log_text():
    numbers = np.random.default_rng(1)
    rows = []
    for _ in range(90):
        x, action = numbers.random(2), int(numbers.integers(3))
        propensity = (0.5, 0.3, 0.2)[action]
        click = int(numbers.random() < (0.2, 0.4, 0.6)[action])
        rows.append(f"{action},{propensity},{click},{x[0]:.3f},{x[1]:.3f}")
    return "\n".join(["action,propensity,reward,x_a,x_b", *rows]) + "\n"


STUDY = """
kind = "{kind}"
title = "A study"
paper = "None"
about = "nothing"
[{kind}]
{fields}
seed = 3
[quick]
rounds = 20
[[curve]]
label = "a"
"""
CLAIM = '[[claim]]\ntext = "a"\nkind = "band"\ncurve = "a"\nlow = 0.0\n'

TEXTS: dict[str, str] = {
    "people.csv": people_text(),
    "users.csv": people_text(users=True),
    "gaps.csv": people_text(gaps=True),
    "train.txt": lists_text(1),
    "test.txt": lists_text(2),
    "tied.txt": lists_text(3, tied=True),
    "empty.txt": lists_text(4, empty=True),
    "ungrouped.txt": lists_text(5, named=False),
    "fives.txt": "5\n" * 8,
    "tens.txt": "10\n" * 4,
    "log.csv": log_text(),
    "one.toml": "rounds = 20\njson = true\n",
    "other.toml": "rounds = 30\njson = true\n",
    "service.toml": "max_waiting = 77\n",
    "wrong.py": WRONG,
    "loss.csv": "0,1\n1,0\n",
    "same.csv": "0,0\n1,1\n",
    "seen.csv": "a,b\nc,c\n",
    "hidden.csv": "a,a\nc,c\n",
    "papers/tiny/study.toml": STUDY.format(
        kind="game", fields='ranker = "random"\nitems = 4\nrounds = 30\nruns = 2'
    ),
    "papers/tiny/expected.toml": CLAIM,
    "papers/lists/study.toml": STUDY.format(
        kind="lists", fields='ranker = "random-lists"\nworld = ["train.txt"]\nrounds = 30\nruns = 2'
    ),
    "papers/lists/expected.toml": CLAIM,
}


def write_texts(folder: Path) -> None:
    for name, text in TEXTS.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
