"""The defaults of the rankers of lists, on data of every kind and features of every scale.

    python -m bench.defaults [--rounds N] [--data NAME ...] [--lists N] [--set ranker.NAME=VALUE]

Plays every surrogate on every data set, with `rtopk` where its gradient can be estimated from the
top and with `listnet` (full feedback), features as they are, mapped onto 0 to 1 within each query
or standardised over all documents. Prints how much better than random lists the lists shown are
(running mean of NDCG@10), and exits with 1 if any ranker is worse than random. The defaults were
chosen on the first two data sets and judged on the others.
"""

import argparse
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import track

from keyhole.cli.terminal import parse_options
from keyhole.data.letor.reader import read_letor
from keyhole.game.play import play
from keyhole.lab.inputs import data_folder
from keyhole.lab.kinds.lists import make_ranker
from keyhole.surrogates import SURROGATES
from keyhole.worlds.generated import Graded
from keyhole.worlds.queries import Queries

Lists = tuple[Any, Any, Any]
"""Features and grades by document, and where lists start."""
N_GENERATED = 300
N_DOCUMENTS, N_MADE = 10, 400


def _read(folder: str, _n_lists: int, **how: Any) -> Lists:
    files = sorted((data_folder() / folder).glob(how.pop("pattern")))
    queries = read_letor(files, dtype=np.float32, **how)
    return np.asarray(queries.features), queries.relevance, queries.starts


def _generated(shape: str, n_lists: int) -> Lists:
    world = Graded.like(shape)
    lists = [(world.query(t).features, world.relevance(t)) for t in range(n_lists)]
    starts = np.cumsum([0, *(len(grades) for _, grades in lists)])
    features = np.concatenate([rows for rows, _ in lists]).astype(np.float32)
    return features, np.concatenate([grades for _, grades in lists]), starts


def _classes(name: str, wanted: int, _n_lists: int) -> Lists:
    """Return lists of random rows of a set of classes, of which one class is relevant."""
    with np.load(data_folder() / "uci_multiclass" / f"{name}.npz") as arrays:
        X, y = arrays["X"], arrays["y"]
    rng, starts = np.random.default_rng(0), np.arange(0, N_MADE + 1) * N_DOCUMENTS
    rows = rng.integers(len(X), size=N_MADE * N_DOCUMENTS)
    rows[starts[:-1]] = rng.choice(np.flatnonzero(y == wanted), N_MADE)
    rows = rng.permuted(rows.reshape(N_MADE, -1), axis=1).ravel()
    return X[rows].astype(np.float32), (y[rows] == wanted).astype(float), starts


DATA: dict[str, Callable[[int], Lists]] = {
    "MQ2008": partial(_read, "mq2008", pattern="S*.txt.gz"),
    "like Yandex": partial(_generated, "yandex"),
    "LightGBM": partial(
        _read,
        "lightgbm_rank",
        pattern="rank.t*n.gz",
        groups=[data_folder() / "lightgbm_rank" / "rank.train.query.gz"],
    ),
    "like Yahoo": partial(_generated, "yahoo"),
    "like MSLR": partial(_generated, "mslr"),
    "pendigits: 3": partial(_classes, "pendigits", 3),
    "letter: G": partial(_classes, "letter", 6),
    "optdigits: 8": partial(_classes, "optdigits", 8),
}
"""What reads or makes each, told how many lists to make where they are made."""


def rescaled(features: Any, starts: Any) -> dict[str, Any]:
    """Return features as they are, mapped onto 0 to 1 within each list, and standardised."""
    lengths = np.diff(starts)
    low = np.repeat(np.minimum.reduceat(features, starts[:-1]), lengths, axis=0)
    width = np.repeat(np.maximum.reduceat(features, starts[:-1]), lengths, axis=0) - low
    spread = features.std(axis=0)
    return {
        "raw": features,
        "min-max": (features - low) / np.where(width > 0, width, 1),
        "standardised": (features - features.mean(axis=0)) / np.where(spread > 0, spread, 1),
    }


def worlds(names: Iterable[str], most: int | None) -> Iterator[tuple[str, str, Queries]]:
    """Yield data sets in every scale, with the first lists of each or all."""
    for name in names:
        features, grades, starts = DATA[name](N_GENERATED if most is None else most)
        if most is not None:
            starts = starts[: most + 1]
            features, grades = features[: starts[-1]], grades[: starts[-1]]
        for scale, scaled in rescaled(features, starts).items():
            yield name, scale, Queries(np.ascontiguousarray(scaled, np.float32), grades, starts)


def score(ranker: str, world: Queries, options: dict[str, Any], rounds: int) -> float:
    return play(
        make_ranker(ranker, world, options, seed=0), world, rounds=rounds
    ).average_score.mean


def contenders() -> list[tuple[str, str]]:
    """Return rankers and surrogates: from the top where that is possible, and from everything."""
    seen = [name for name, cls in SURROGATES.items() if cls.parts or cls.pairs]
    return [("contextual-rtopk", name) for name in seen] + [
        ("listnet", name) for name in SURROGATES
    ]


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.defaults", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5_000)
    parser.add_argument("--set", action="append", default=[], metavar="ranker.NAME=VALUE")
    parser.add_argument("--data", nargs="+", choices=DATA, default=list(DATA), metavar="NAME")
    parser.add_argument("--lists", type=int, help="only the first lists of each data set")
    chosen = parser.parse_args(arguments)
    options = parse_options(chosen.set, ("ranker",))["ranker"]
    played = list(worlds(chosen.data, chosen.lists))
    chance = [score("random-lists", world, {}, chosen.rounds) for _, _, world in played]
    rows = {}
    for ranker, surrogate in track(contenders(), console=Console(stderr=True)):
        given = {"surrogate": surrogate, **options}
        rows[ranker, surrogate] = [
            score(ranker, world, given, chosen.rounds) - low
            for (_, _, world), low in zip(played, chance, strict=True)
        ]
    print(report(played, chance, rows))
    return 1 if min(min(row) for row in rows.values()) < 0.0 else 0


def report(played: Any, chance: list[float], rows: dict[Any, list[float]]) -> str:
    """Return the table in Markdown: raw / min-max / standardised of each data set."""
    names = list(dict.fromkeys(name for name, _, _ in played))
    lines = [f"| ranker, surrogate | {' | '.join(names)} |", "|---|" + "---|" * len(names)]

    def cells(values: list[float], form: str) -> str:
        groups = np.array(values).reshape(len(names), -1)
        return " | ".join(" / ".join(form % value for value in group) for group in groups)

    lines.append(f"| random | {cells(chance, '%.3f')} |")
    for (ranker, surrogate), row in rows.items():
        lines.append(f"| {ranker}, {surrogate} | {cells(row, '%+.3f')} |")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
