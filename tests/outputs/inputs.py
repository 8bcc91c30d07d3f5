"""Small files that commands read, none of them like the defaults: four grades, uneven chances."""

import json
from pathlib import Path

import numpy as np

from keyhole.base.files import write_arrays
from keyhole.game.log import Log

ITEMS = ["tea", "coffee", "milk", "water"]
N_ROWS = 60
N_CHOICES = 120


def write_people(path: Path, n_people: int = 9) -> None:
    """Write people by items: ratings of 0 to 3."""
    ratings = np.random.default_rng(1).integers(0, 4, size=(n_people, len(ITEMS)))
    ratings[0] = [3, 0, 2, 1]
    rows = [",".join(map(str, row)) for row in ratings.tolist()]
    path.write_text("\n".join([",".join(ITEMS), *rows]) + "\n")


def write_lists(path: Path, seed: int, n_queries: int = 8, n_items: int = 5) -> None:
    """Write query-document lists of four grades; the last query has no relevant document."""
    numbers, lines = np.random.default_rng(seed), []
    for query in range(n_queries):
        for item, x in enumerate(numbers.random((n_items, 3))):
            grade = 0 if query == n_queries - 1 else int(3.999 * x[0])
            values = " ".join(f"{place}:{value:.4f}" for place, value in enumerate(x, 1))
            lines.append(f"{grade} qid:{query + 10} {values} #docid = D{query}-{item}")
    path.write_text("\n".join(lines) + "\n")


def write_log(path: Path, seed: int = 2, n_rows: int = N_CHOICES, *, times: bool = True) -> None:
    """Write what a policy of uneven chances has done with three actions."""
    numbers, chances = np.random.default_rng(seed), [0.2, 0.3, 0.5]
    lines = ["action,propensity,reward,x_age,x_height" + ",time" * times]
    for row in range(n_rows):
        action, x = int(numbers.choice(3, p=chances)), numbers.random(2).round(3)
        clicked = int(numbers.random() < [0.3, 0.7, 0.4][action] * (0.5 + 0.5 * x[0]))
        cells = [f"a{action}", chances[action], clicked, *x.tolist(), *([row] if times else [])]
        lines.append(",".join(map(str, cells)))
    path.write_text("\n".join(lines) + "\n")


def write_ranked_log(path: Path, n_items: int = 4, n_shown: int = 2) -> Log:
    """Write the log of a ranker of documents: the first two of four shown, grades of 0 to 2."""
    numbers = np.random.default_rng(3)
    features = numbers.random((N_ROWS, n_items, 2)).round(3)
    relevance = np.floor(2.999 * features[:, :, 0])
    rankings = np.argsort(numbers.random((N_ROWS, n_items)), axis=1)
    values = np.full((N_ROWS, n_items), np.nan)
    values[:, :n_shown] = np.take_along_axis(relevance, rankings[:, :n_shown], axis=1)
    log = Log(
        0, 0, np.arange(N_ROWS), np.ones(N_ROWS, bool), np.full(N_ROWS, 1 / 6),
        np.arange(N_ROWS + 1) * n_items, rankings.ravel(), values.ravel(),
        features.reshape(-1, 2), np.empty((N_ROWS, 0)),
    )  # fmt: skip
    log.save(path)
    return log


def write_all(folder: Path) -> None:
    """Write every file that commands read."""
    write_people(folder / "people.csv")
    write_lists(folder / "train.txt", 4)
    write_lists(folder / "test.txt", 5, n_queries=6)
    write_log(folder / "log.csv")
    write_ranked_log(folder / "ranked.npz")
    write_arrays(folder / "weights.npz", {"weights": [2.0, -0.5], "minmax": False})
    (folder / "loss.csv").write_text("0,1/3\n1,0.25\n0.5,0.5\n")
    (folder / "feedback.csv").write_text("a,a\na,b\nb,b\n")


def read_json(path: Path) -> object:
    """Return what a file holds."""
    return json.loads(path.read_text(encoding="utf-8"))
