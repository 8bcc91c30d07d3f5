"""Other people's online learners on the lists of bench/lists.py, in an environment of their own.

``python -m bench.peers LISTS.npz`` reads lines "peer feedback rounds" and answers each with a line
of JSON: the CPU seconds of so many rounds, and the mean NDCG@10. A round scores every document of a
list, sorts, judges, and learns from every document ("full") or from the first ("top").
Documents are turned into the peer's own kind of example beforehand.
"""

import json
import math
import sys
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np


class Peer(NamedTuple):
    """A learner: examples by list and document, and how to score one and learn from it."""

    examples: list[list[Any]]
    score: Callable[[Any], float]
    learn: Callable[[Any, float], Any]


def river(features: Any, _grades: Any) -> Peer:
    from river import linear_model, optim  # type: ignore[import-not-found,unused-ignore]

    model = linear_model.LinearRegression(optim.SGD(0.01), intercept_lr=0.0)
    examples = [[dict(enumerate(row)) for row in rows] for rows in features.tolist()]
    return Peer(examples, model.predict_one, model.learn_one)


def vowpalwabbit(features: Any, grades: Any) -> Peer:
    from vowpalwabbit import Workspace  # type: ignore[import-not-found,unused-ignore]

    workspace = Workspace("--quiet --noconstant --bit_precision 10")
    examples = [
        [
            workspace.example(f"{grade} | " + " ".join(f"{i}:{x:.6g}" for i, x in enumerate(row)))
            for row, grade in zip(rows, list_grades, strict=True)
        ]
        for rows, list_grades in zip(features.tolist(), grades.tolist(), strict=True)
    ]
    return Peer(examples, workspace.predict, lambda example, _grade: workspace.learn(example))


def play(peer: Peer, grades: list[list[float]], full: bool, rounds: int) -> tuple[float, float]:
    """Return the CPU seconds of some rounds and the mean NDCG@10."""
    discounts = [1.0 / math.log2(place + 2.0) for place in range(10)]
    best = [
        sum(d * (2.0**g - 1.0) for d, g in zip(discounts, sorted(row, reverse=True), strict=False))
        for row in grades
    ]
    total, began = 0.0, time.thread_time()
    for t in range(rounds):
        query = t % len(grades)
        documents, relevance = peer.examples[query], grades[query]
        scores = [peer.score(document) for document in documents]
        ranking = sorted(range(len(scores)), key=scores.__getitem__, reverse=True)
        shown = zip(discounts, ranking, strict=False)
        total += sum(d * (2.0 ** relevance[i] - 1.0) for d, i in shown) / best[query]
        for item in ranking if full else ranking[:1]:
            peer.learn(documents[item], relevance[item])
    return time.thread_time() - began, total / rounds


def main() -> None:
    lists = np.load(sys.argv[1])
    features, grades = lists["features"], lists["grades"]
    peers = {"river": river, "vowpalwabbit": vowpalwabbit}
    made = {
        (name, feedback): make(features, grades)
        for name, make in peers.items()
        for feedback in ("full", "top")
    }
    for line in sys.stdin:
        name, feedback, rounds = line.split()
        found = play(made[name, feedback], grades.tolist(), feedback == "full", int(rounds))
        print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
